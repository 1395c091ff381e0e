#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that tools/setup installs only what is missing, refreshes the package list when it must,
# does nothing when nothing is missing, and prints the one command where it may not install.
# dpkg-query, apt-get, sudo and id are played by scripts.  Run with SOURCE set.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
bad=0
fail() {
	echo "FAILED: $*" >&2
	cat "$work/out" >&2
	bad=1
}
mkdir "$work/bin"
# Everything of the list is installed, except the names in $work/missing.
cat >"$work/bin/dpkg-query" <<END
#!/bin/sh
shift 3
for p in "\$@"; do
	grep -qx -- "\$p" "$work/missing" && echo "not-installed \$p" || echo "installed \$p"
done
END
cat >"$work/bin/apt-get" <<END
#!/bin/sh
echo "apt-get \$*" >>"$work/calls"
case "\$*" in
*update*) touch "$work/fresh" ;;
*install*) [ -f "$work/fresh" ] ;;
esac
END
printf '#!/bin/sh\necho "$PLAYED_UID"\n' >"$work/bin/id"
printf '#!/bin/sh\nexit 1\n' >"$work/bin/sudo"
chmod +x "$work/bin/"*
PATH=$work/bin:$PATH
run() { # run UID [group...]
	PLAYED_UID=$1
	export PLAYED_UID
	shift
	: >"$work/calls"
	"$SOURCE/tools/setup" "$@" >"$work/out" 2>&1 </dev/null
	rc=$?
}

: >"$work/missing"
run 0 all
[ $rc = 0 ] && [ ! -s "$work/out" ] && [ ! -s "$work/calls" ] || fail "something happens though nothing is missing"

printf 'cmake\nlibhwloc-dev\nmpich\n' >"$work/missing"
touch "$work/fresh"
run 0 build demo
[ $rc = 0 ] || fail "installing ends with $rc"
grep -q 'install.* cmake libhwloc-dev$' "$work/calls" || fail "not exactly the missing packages: $(cat "$work/calls")"

rm "$work/fresh"
run 0 build
[ $rc = 0 ] && [ "$(grep -c install "$work/calls")" = 2 ] && [ "$(grep -c update "$work/calls")" = 1 ] ||
	fail "an old package list is not refreshed"

run 1000 build
[ $rc = 1 ] || fail "an ordinary user gets $rc"
grep -q '^    sudo apt-get install .* cmake libhwloc-dev$' "$work/out" || fail "the command is not printed"
[ ! -s "$work/calls" ] || fail "an ordinary user calls apt-get"

run 0 nonsense
[ $rc = 2 ] || fail "a wrong group gives $rc"
exit $bad
