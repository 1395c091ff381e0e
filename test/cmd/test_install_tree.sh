#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The target install_tree, which ./demo builds, makes every file that `cmake --install` copies out of the build.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
[ -f "$BUILD/build.ninja" ] || { echo "skipped: not built by ninja"; exit 77; }
commands() { ninja -C "$BUILD" -t commands "$@" | sort -u; }

# What the install scripts name, as far as a rule makes it: cmake itself has written the rest.
ninja -C "$BUILD" -t targets all | sed -n 's/: [^:]*$//p' | sed "s|^$BUILD/||" | sort -u >"$work/targets"
find "$BUILD" -name cmake_install.cmake -exec grep -hoE '"[^"]*"' {} + | tr -d '"' | tr ';' '\n' |
	sed -n "s|^$BUILD/||p" | sort -u | comm -12 - "$work/targets" >"$work/installed"
[ "$(grep -c . "$work/installed")" -ge 7 ] || fail "the install scripts name too few files: $(cat "$work/installed")"

commands install_tree >"$work/run" || fail "no target install_tree"
while read -r file; do
	at=$file
	ninja -C "$BUILD" -t query "$file" >/dev/null 2>&1 || at=$BUILD/$file
	commands "$at" | comm -23 - "$work/run" | grep -q . && fail "install_tree does not make $file"
done <"$work/installed"
grep -q 'ninja -C build heat install_tree' "$SOURCE/demo" || fail "./demo does not build install_tree"
exit 0
