#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that tools/suite-nas and `weft bench nas` run what lies there as benchmarks of NAS, with the numbers of ranks that these can
# have, and believe only a run that verifies its result.  The benchmarks are scripts.  Run with BUILD set.
set -u
command -v python3 >/dev/null 2>&1 || {
	echo "skipped: no python3" >&2
	exit 77
}
here=$(cd -- "$(dirname -- "$0")/../.." && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" && bad=0 || exit 1 # the programs write where they run
fail() {
	echo "FAILED: $*" >&2
	bad=1
}
# program MPI NAME VERDICT SECONDS [SHELL]: rank 0 says what a benchmark says.
program() {
	mkdir -p "$work/$1/bin"
	{
		echo '#!/bin/sh'
		echo '# libmpifort_abi.so.1'
		echo "$5"
		echo '[ "${PMI_RANK:-0}" = 0 ] || exit 0'
		echo "echo ' Time in seconds =             $4'; echo ' Verification    =               $3'"
	} >"$work/$1/bin/$2"
	chmod +x "$work/$1/bin/$2"
}
program weft ep.S.x SUCCESSFUL 1.25 :
program weft is.S.x UNSUCCESSFUL 0.10 :
program weft cg.S.x SUCCESSFUL 0.10 'exit 3'
program weft bt.S.x SUCCESSFUL 2.00 "pwd >'$work/where'; echo here >btio.full.out"
program weft bt.W.x.mpi_io_full SUCCESSFUL 2.00 :
program weft mg.S.x SUCCESSFUL 0.10 'exec sleep 60'
printf '#!/bin/sh\n# libmpich.so.12\n' >"$work/weft/bin/lu.S.x"
chmod +x "$work/weft/bin/lu.S.x"
: >"$work/weft/bin/notes.S.x"

suite() { python3 -B "$here/tools/suite-nas" "$@" --build "$BUILD" >"$work/out" 2>&1; }
suite "$work/weft" --ranks "1 8" --links shm --list
[ "$(grep -c . "$work/out")" -eq 16 ] && grep -qx 'bt.S.x 9 shm' "$work/out" && grep -qx 'bt.W.x.mpi_io_full 8 shm' "$work/out" &&
	! grep -q 'ep.S.x 9\|notes' "$work/out" || fail "suite-nas --list says: $(cat "$work/out")"
suite "$work/weft" --ranks 2 --links shm --limit 3
code=$?
[ $code -eq 1 ] && grep -q '^3 passed, 4 failed$' "$work/out" || fail "suite-nas: exit code $code, says: $(cat "$work/out")"
for said in 'is.S.x .*verification UNSUCCESSFUL' 'cg.S.x .*exit code 3' 'mg.S.x .*no end within 3 s' 'lu.S.x .*built with another MPI' \
	'bt.W.x.mpi_io_full .* ok '; do
	grep -q "^$said" "$work/out" || fail "suite-nas lacks '$said': $(cat "$work/out")"
done
[ -s "$work/where" ] && [ ! -e "$(cat "$work/where")" ] || fail "suite-nas leaves files of BT-IO"
suite "$work/weft" --ranks 4 --links "shm tcp" --only '^ep'
code=$?
[ $code -eq 0 ] && grep -q '^2 passed, 0 failed$' "$work/out" || fail "suite-nas --only: exit code $code, says: $(cat "$work/out")"
suite "$work"
[ $? -eq 77 ] || fail "suite-nas without benchmarks: says: $(cat "$work/out")"

bench() { "$BUILD/bin/weft" bench nas --path "$work" --class S --runs 1 "$@" >"$work/out" 2>"$work/err"; }
bench --programs ep,bt,sp --ranks 2,4,8 --csv "$work/nas.csv"
code=$?
[ $code -eq 0 ] && grep -q '^4 ranks: bt.S *2  *2$' "$work/out" && grep -q '^2 ranks: ep.S *1.25 ' "$work/out" &&
	grep -q 'bt.S: not on 2 ranks' "$work/err" && grep -q 'sp.S: not built for weft' "$work/err" &&
	grep -qx 'nas,weft,shm,9 ranks: bt.S progress off,time,s,2,2,2,1' "$work/nas.csv" ||
	fail "weft bench nas: exit code $code, says: $(cat "$work/out" "$work/err")"
"$BUILD/bin/weft" bench paper --from "$work/nas.csv" --html "$work/nas.html" >"$work/out" 2>&1 && grep -q 'bt.S' "$work/nas.html" ||
	fail "weft bench paper shows no NAS: $(cat "$work/out")"
bench --programs is --ranks 2
code=$?
[ $code -eq 1 ] && grep -q 'not verified' "$work/err" || fail "weft bench nas believes a wrong result: exit code $code"
bench --idle --ranks 1
[ $? -eq 0 ] && grep -q 'weft idle 10000 us' "$work/out" || fail "weft bench nas --idle: $(cat "$work/out" "$work/err")"
# Beside another MPI, here weft under another name: its programs lie in its folder, and a ratio ends the row.
program twin ep.S.x SUCCESSFUL 2.50 :
bench --programs ep --ranks 2 --against "twin=$BUILD"
[ $? -eq 0 ] && grep -q '^2 ranks: ep.S .* 0.500$' "$work/out" || fail "weft bench nas --against: $(cat "$work/out" "$work/err")"
for wrong in "--programs dt" "--ranks x" "--class W" "--runs 0" "--against gone=$work/gone"; do
	bench $wrong
	code=$?
	[ $code -eq 2 ] && [ "$(wc -l <"$work/err")" -eq 1 ] || fail "weft bench nas $wrong: exit code $code, says: $(cat "$work/err")"
done
exit $bad
