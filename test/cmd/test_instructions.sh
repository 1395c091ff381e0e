#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that sending and receiving 8 bytes over shm cost no more instructions than doc/cost.md allows, and of locked ones
# and fences the sender none.
# Skips without valgrind, and for builds that are not optimised.  Run with BUILD and SOURCE set.
set -u
SEND_MAX=260 RECV_MAX=1270 WINDOW_SEND_MAX=308 WINDOW_RECV_MAX=398
grep -qE '^CMAKE_BUILD_TYPE:.*=Rel' "$BUILD/CMakeCache.txt" || { echo "skipped: not a release build"; exit 77; }
grep -qE '^WEFT_SANITIZE:[^=]*=.' "$BUILD/CMakeCache.txt" && { echo "skipped: built with a sanitizer"; exit 77; }
[ "$(uname -m)" = x86_64 ] || { echo "skipped: the bounds are for x86_64"; exit 77; }
# few NAME ROW MOST: in the ROW-th table of $said at most so many are locked.
few() {
	locked=$(echo "$said" | awk 'NF == 4 && $4 == "all" { print $2 }' | sed -n "$2p")
	[ -n "$locked" ] && awk "BEGIN { exit !($locked <= $3) }" || { echo "FAILED: $1: ${locked:-no} locked instructions, may be $3" >&2; exit 1; }
}
said=$(sh "$SOURCE/tools/count-instructions" "$BUILD" show)
rc=$?
echo "$said"
[ $rc = 0 ] || exit $rc
send=$(echo "$said" | sed -n 's/MPI_Send \([0-9]*\) .*/\1/p') recv=$(echo "$said" | sed -n 's/.*MPI_Recv \([0-9]*\)$/\1/p')
[ -n "$send" ] && [ -n "$recv" ] || { echo "FAILED: no counts" >&2; exit 1; }
# Zero would mean that nothing was counted.
[ "$send" -gt 100 ] && [ "$recv" -gt 100 ] || { echo "FAILED: the counts make no sense" >&2; exit 1; }
[ "$send" -le $SEND_MAX ] || { echo "FAILED: MPI_Send may take $SEND_MAX instructions" >&2; exit 1; }
[ "$recv" -le $RECV_MAX ] || { echo "FAILED: MPI_Recv may take $RECV_MAX instructions" >&2; exit 1; }
few MPI_Send 1 0
few MPI_Recv 2 4.5
# The same within windows of MPI_Isend and MPI_Irecv.
said=$(sh "$SOURCE/tools/count-instructions" "$BUILD" window)
echo "$said"
send=$(echo "$said" | sed -n 's/.*: \([0-9]*\) instructions to send.*/\1/p') recv=$(echo "$said" | sed -n 's/.*, \([0-9]*\) to receive$/\1/p')
[ "${send:-0}" -gt 100 ] && [ "${recv:-0}" -gt 100 ] || { echo "FAILED: no counts for windows" >&2; exit 1; }
[ "$send" -le $WINDOW_SEND_MAX ] || { echo "FAILED: a message of a window may take its sender $WINDOW_SEND_MAX instructions" >&2; exit 1; }
[ "$recv" -le $WINDOW_RECV_MAX ] || { echo "FAILED: a message of a window may take its receiver $WINDOW_RECV_MAX instructions" >&2; exit 1; }
few "a window's sender" 1 0
few "a window's receiver" 2 0.25
