#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that ranks of two versions of weft whose wires differ do not talk, do not hang, and say in one line which
# versions meet; over shared memory and over tcp, whichever side is the older one.
# Run with BUILD and SOURCE set.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
older=$BUILD/test/older
[ -e "$older/libmpi_abi.so.1" ] || { echo "skipped: no other version was built"; exit 77; }
"$BUILD/bin/mpicc" "$SOURCE/test/mpiexec/ring.c" -o "$work/ring" || exit 1
bad=0
run() { timeout 200 "$BUILD/bin/mpiexec" --timeout 120 "$@" >"$work/out" 2>&1; }
for drivers in self,shm self,tcp; do
	WEFT_DRIVERS=$drivers
	export WEFT_DRIVERS
	run -n 2 -x LD_LIBRARY_PATH="$older" "$work/ring" || { echo "FAILED: $drivers: two older ones: $(cat "$work/out")" >&2; bad=1; }
	for order in 0 1; do
		set -- -n 1 -x LD_LIBRARY_PATH="$older" "$work/ring" : -n 1 "$work/ring"
		[ $order = 0 ] || set -- -n 1 "$work/ring" : -n 1 -x LD_LIBRARY_PATH="$older" "$work/ring"
		run "$@"
		rc=$?
		[ $rc != 0 ] && [ $rc != 124 ] || { echo "FAILED: $drivers, $order: exit code $rc" >&2; bad=1; }
		grep -qE 'speaks version [0-9]+ of the handshake, this process version [0-9]+' "$work/out" || {
			echo "FAILED: $drivers, $order: no line about the versions: $(head -n 5 "$work/out")" >&2
			bad=1
		}
	done
done
exit $bad
