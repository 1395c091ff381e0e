#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# weft sample: what it writes is read at the next start, settings win over it, a spoilt file is one line.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
weft=$BUILD/bin/weft
unset WEFT_EAGER_SHM WEFT_EAGER_TCP WEFT_SHARE_COPY
WEFT_SAMPLE_FILE=$work/a/b/file
export WEFT_SAMPLE_FILE

"$weft" info --settings | grep -q '^  eager_shm  *8k  (guessed)' || fail "no guess without a file"
"$weft" sample --quick >"$work/out" || fail "sample --quick: $(cat "$work/out")"
[ "$(ls "$work/a/b")" = file ] || fail "more than the file: $(ls "$work/a/b")"
for name in eager_shm eager_tcp; do
	bytes=$(sed -n "s/^$name //p" "$WEFT_SAMPLE_FILE")
	[ "$bytes" -ge 512 ] || fail "$name: '$bytes'"
	"$weft" info --settings | grep -q "^  $name  *$bytes  (from the file)" || fail "$name is not used"
done
WEFT_EAGER_SHM=3k "$weft" info --settings | grep -q '^  eager_shm  *3k  (set)' || fail "a setting does not win"

echo rubbish >>"$WEFT_SAMPLE_FILE"
"$weft" info >"$work/out" 2>"$work/err" || fail "info with a spoilt file: $?"
[ "$(wc -l <"$work/err")" = 1 ] || fail "not one line: $(cat "$work/err")"
grep -q "$WEFT_SAMPLE_FILE: line [0-9]*: no switch point" "$work/err" || fail "$(cat "$work/err")"
grep -q '^  eager_shm  *8k  (guessed)' "$work/out" || fail "the guess does not stand"

"$weft" sample --foo 2>"$work/err"
[ $? = 2 ] || fail "no error for --foo"
WEFT_SAMPLE_FILE=none "$weft" sample --quick 2>"$work/err"
[ $? = 1 ] || fail "no error without a file"
WEFT_SAMPLE_FILE=/dev/null/x "$weft" info --settings >/dev/null 2>"$work/err" || fail "a place that is none"
exit 0
