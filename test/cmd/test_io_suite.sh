#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that tools/suite-io runs what lies there as IOR and as ROMIO's tests, each with its number of ranks and a file of its own, and
# believes only a run that says that its data is right.  The programs are scripts.  Run with BUILD set.
set -u
command -v python3 >/dev/null 2>&1 || {
	echo "skipped: no python3" >&2
	exit 77
}
here=$(cd -- "$(dirname -- "$0")/../.." && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
bad=0
fail() {
	echo "FAILED: $*" >&2
	bad=1
}
# program NAME SHELL: every rank runs it.
program() {
	printf '#!/bin/sh\n# libmpi_abi.so.0\n%s\n' "$2" >"$work/$1"
	chmod +x "$work/$1"
}
mkdir "$work/files"
program ior 'case "$*" in *-c*-C*) echo "WARNING: incorrect data on read" ;; esac
[ "$2" = MPIIO ] || [ "$2" = POSIX ] || exit 9
touch "$8"; echo "Finished : now"'
program simple '[ "$1" = -fname ] && touch "$2.$$" && echo " No Errors"'
program async 'echo nothing'
program noncontig '[ "$PMI_SIZE" = 2 ] || exit 4; echo " No Errors"'
program aggregation1 '[ "$1 $2" = "-h -f" ] || exit 5; echo " No Errors"'
program excl 'exec sleep 60'
program perf 'echo 100 MB/s'
program hindexed 'echo " No Errors"; exit 3'
printf '#!/bin/sh\n# libmpich.so.12\n' >"$work/error"
chmod +x "$work/error"

suite() { TMPDIR="$work/files" python3 -B "$here/tools/suite-io" "$@" --build "$BUILD" >"$work/out" 2>&1; }
suite "$work" --links shm --ranks "1 3" --list
grep -qx 'ior collective odd 3 shm' "$work/out" && grep -qx 'ior posix apart 1 shm' "$work/out" &&
	grep -qx 'romio noncontig 2 shm' "$work/out" && grep -qx 'romio simple 4 shm' "$work/out" &&
	! grep -q 'files' "$work/out" || fail "suite-io --list says: $(cat "$work/out")"
suite "$work" --links shm --ranks 2 --only '^romio' --limit 4
code=$?
[ $code -eq 1 ] && grep -q '^4 passed, 4 failed' "$work/out" || fail "suite-io: exit code $code, says: $(cat "$work/out")"
for said in 'romio simple .* ok ' 'romio noncontig .* ok ' 'romio aggregation1 .* ok ' 'romio perf .* ok ' \
	'romio async .*does not say' 'romio excl .*no end within 4 s' 'romio hindexed .*exit code 3' 'romio error .*built with another MPI'; do
	grep -q "^$said" "$work/out" || fail "suite-io lacks '$said': $(cat "$work/out")"
done
suite "$work/ior" --links shm --ranks 2 --only 'collective|posix'
code=$?
[ $code -eq 1 ] && grep -q '^8 passed, 1 failed' "$work/out" && grep -q '^ior collective reordered .*incorrect data' "$work/out" ||
	fail "suite-io with ior: exit code $code, says: $(cat "$work/out")"
[ -z "$(ls "$work/files")" ] || fail "suite-io leaves files: $(ls "$work/files")"
suite "$work/files"
[ $? -eq 77 ] || fail "suite-io without programs says: $(cat "$work/out")"
exit $bad
