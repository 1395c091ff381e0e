#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that WEFT_CHECK names each mistake of test/mpi/aid_mistakes.c, with its place, and none in a program that is right; that
# `weft doctor` says what each rank waits for, running or stopped, and names a deadlock; and that WEFT_DEADLOCK=abort
# ends one.  Run with BUILD set.
set -u
work=$(mktemp -d) || exit 1
job=
trap '[ -z "$job" ] || kill $job 2>/dev/null; rm -rf "$work"' EXIT
prog=$BUILD/test/mpi/mpi_aid_mistakes
[ -x "$prog" ] || { echo "skipped: the program is not built"; exit 77; }
mpiexec=$BUILD/bin/mpiexec weft=$BUILD/bin/weft
# The build may leave out what places come from.
line=' at aid_mistakes\.c:[0-9]+'
command -v addr2line >/dev/null 2>&1 && readelf -S "$prog" | grep -q '\.debug_line' || line=''
bad=0
fail() {
	echo "FAILED: $*"
	cat "$work/out"
	bad=1
}
# finds MODE RANKS PATTERN...: one line each, and nothing else is reported.
finds() {
	mode=$1 ranks=$2
	shift 2
	WEFT_CHECK=1 "$mpiexec" -n "$ranks" --timeout 60 "$prog" "$mode" >"$work/out" 2>&1
	grep 'check: ' "$work/out" >"$work/said"
	for want in "$@"; do
		grep -Eq "check: $want" "$work/said" || fail "$mode: nothing said of: $want"
		grep -Ev "check: $want" "$work/said" >"$work/rest"
		mv "$work/rest" "$work/said"
	done
	[ ! -s "$work/said" ] || fail "$mode: too much was said"
}
finds right 2
finds right 3
finds makes_right 2
finds makes_right 3
finds leaks 2 "MPI_Finalize: a communicator .left. that MPI_Comm_dup made$line was not freed" \
	"MPI_Finalize: an operation that MPI_Op_create made$line was not freed" \
	"MPI_Finalize: a datatype that MPI_Type_contiguous made$line was not freed" \
	"MPI_Finalize: a request .from rank 0, tag 0, on MPI_COMM_WORLD. that MPI_Recv_init made$line was not completed or freed"
finds lost 2 "MPI_Comm_free: a message of 12 bytes from rank 0, tag 6, on left behind was never received" \
	"MPI_Finalize: a message of 4 bytes from rank 0, tag 4, on MPI_COMM_WORLD was never received"
finds overlap 2 "MPI_Irecv$line .rank [01], tag 2, on MPI_COMM_WORLD.: its buffer overlaps that of MPI_Irecv$line .rank [01], tag 1.*not completed"
finds changed 2 "MPI_Isend$line .to rank 1, tag 9, on MPI_COMM_WORLD.: the data has changed before the send was completed"
finds types 2 "MPI_Recv$line .tag 1, on types.: process 0 has sent 4 bytes of float, the receive means int32_t: both sides must name the same elements" \
	"MPI_Irecv$line .tag 2, on types.: process 0 has sent 8 bytes of elements of several types, the receive means other elements of several types" \
	"MPI_Recv_init$line .tag 5, on types.: process 0 has sent 4 bytes of float, the receive means int32_t: both sides must name the same elements"
finds partitions 2 "MPI_Precv_init$line .tag 6.: the partitions of process 0 are 32 bytes of float, those here are int32_t"
finds blocks_right 2
finds blocks_right 5
finds blocks_right 70 # more than are compared in a call
on='collectives that do not match on'
n='in its collective number'
one="4 bytes of float$line" whole="4 bytes of int32_t$line"
finds blocks_types 3 "$on blocks .different datatypes.: $n 1, MPI_Gather$line, rank 0 expects 4 bytes of int32_t of rank 1, which gives $one" \
	"$on blocks .different datatypes.: $n 2, MPI_Gatherv$line, rank 0 expects 4 bytes of int32_t of rank 1, which gives $one" \
	"$on blocks .different datatypes.: $n 3, MPI_Scatterv$line, rank 1 expects 4 bytes of float of rank 0, which gives $whole" \
	"$on blocks .different datatypes.: $n 4, MPI_Allgather$line, rank 1 expects 4 bytes of int32_t of rank 1, which gives $one" \
	"$on blocks .different datatypes.: $n 5, MPI_Alltoallw$line, rank 0 expects 4 bytes of int32_t of rank 1, which gives $one" \
	"$on blocks .different datatypes.: $n 5, MPI_Alltoallw$line, rank 1 expects 4 bytes of float of rank 0, which gives $whole" \
	"$on the ring .different datatypes.: $n 1, MPI_Neighbor_allgather$line, rank [02] expects 4 bytes of int32_t of rank 1, which gives $one" \
	"$on the ring .different datatypes.: $n 1, MPI_Neighbor_allgather$line, rank 1 expects 4 bytes of float of rank [02], which gives $whole"
finds blocks_amounts 3 "$on blocks .different amounts of data.: $n 1, MPI_Gatherv$line, rank 0 expects 8 bytes of int32_t of rank 1, which gives $whole" \
	"$on blocks .different counts.: $n 2 rank [12] is in MPI_Reduce_scatter, 24 bytes$line, rank [01] in MPI_Reduce_scatter, 24 bytes$line" \
	"$on both sides .different amounts of data.: $n 1, MPI_Bcast$line, rank [01] expects 4 bytes of int32_t of rank 0 of the other group, which gives 8 bytes of int32_t$line"
left='MPI_Finalize: a communicator .operations. that MPI_Comm_dup made.* was not freed'
finds operations 2 "collectives that do not match on operations .different operations.: in its collective number 1 rank [01] is in MPI_Allreduce, MPI_(SUM|MAX), 4 bytes$line, rank [01] in MPI_Allreduce, MPI_(SUM|MAX), 4 bytes$line" \
	"collectives that do not match on operations .different datatypes.: in its collective number 2 rank [01] is in MPI_Allreduce_init, 4 bytes of (int32_t|float)$line, rank [01] in MPI_Allreduce_init, 4 bytes of (int32_t|float)$line" "$left"
finds empty_blocks 2
finds empty_blocks 3
finds window_right 2
finds window_right 3
finds window_fence 2 "accesses that conflict in one epoch of window table: MPI_Put of rank 0, bytes 0 to 39, and MPI_Get of rank 1, bytes 32 to 51 of rank 1" \
	"accesses that conflict in one epoch of window table: MPI_Accumulate of rank 0, bytes 200 to 203, and MPI_Accumulate of rank 1, bytes 200 to 203 of rank 0"
finds window_start 2 "accesses that conflict in one epoch of window posted: MPI_Put of rank 0, bytes 240 to 243, and MPI_Put of rank 1, bytes 240 to 243 of rank 0"
finds window_lock 2 "accesses that conflict in one epoch of a window without a name: MPI_Put of rank 1, bytes 40 to 55, and MPI_Accumulate of rank 1, bytes 52 to 55 of rank 0"
# These do not end: the mistake is named all the same, here by its end.
ends() { # ends MODE RANKS PATTERN
	WEFT_CHECK=abort "$mpiexec" -n "$2" --timeout 60 "$prog" "$1" >"$work/out" 2>&1
	rc=$?
	[ $rc != 0 ] && [ $rc != 124 ] && grep -Eq "$3" "$work/out" || fail "$1: exit code $rc, or not named: $3"
}
ends order 2 "collectives that do not match on order .different calls.: .*rank 0.* in MPI_Allreduce, 4 bytes$line"
ends blocks_order 3 "collectives that do not match on both sides .different calls.: in its collective number 1 rank 0 is in MPI_(Barrier$line, rank 0 of the other group in MPI_Allreduce, 4 bytes|Allreduce, 4 bytes$line, rank 0 of the other group in MPI_Barrier)"
ends makes 3 "collectives that do not match on makes .different calls.: in its collective number 1 rank [0-2] is in MPI_(Comm_split|Barrier)$line, rank [0-2] in MPI_(Comm_split|Barrier)"
ends makes_window 2 "collectives that do not match on makes .different calls.: in its collective number 1 rank [01] is in MPI_(Win_create_dynamic|Comm_idup)$line, rank [01] in MPI_(Win_create_dynamic|Comm_idup)"
ends roots 2 "collectives that do not match on roots .different roots.: .* in MPI_Bcast, root [01], 4 bytes$line"
WEFT_CHECK=1 "$mpiexec" -n 2 --timeout 60 "$prog" crossed >"$work/out" 2>&1 || fail "crossed: exit code $?"
grep -Eq "check: collectives that do not match on crossed .different calls.: .*rank 0 (is )?in MPI_Iallreduce, 4 bytes$line, rank 1 in MPI_Barrier$line" "$work/out" ||
	grep -Eq "check: collectives that do not match on crossed .different calls.: .*rank 1 (is )?in MPI_Barrier$line, rank 0 in MPI_Iallreduce, 4 bytes$line" "$work/out" || fail "crossed: not named"
# A rank that calls more than another ends all the same, and is told; one that waits for ranks in MPI_Finalize does not wait for ever.
left="MPI_Bcast, root 1, 4 bytes$line" more='collectives that do not match on MPI_COMM_WORLD .different calls.: in its collective number 2'
for m in one_more one_waits; do
	[ $m = one_more ] && a=0 b=1 || a=1 b=0
	ends $m 2 "$more rank $a is in MPI_Finalize, rank $b in $left|$more rank $b is in $left, rank $a in MPI_Finalize"
done
"$mpiexec" -n 2 --timeout 60 "$prog" one_more >"$work/out" 2>&1 || fail "one_more, unchecked: exit code $?"
"$mpiexec" -n 3 --timeout 60 "$prog" one_waits >"$work/out" 2>&1
[ $? = 15 ] && grep -Eq "process [12] is through, and calls no further one of MPI_COMM_WORLD, and so this rank ends its bcast" "$work/out" || fail "one_waits, unchecked: not named"
# Without WEFT_CHECK a rank knows its own call alone, and the way to know more.
"$mpiexec" -n 2 --timeout 60 "$prog" crossed >"$work/out" 2>&1 || fail "crossed, unchecked: exit code $?"
grep -Eq "collectives that do not match: .*is in (barrier|allreduce).* on crossed, .*WEFT_CHECK=1 names both calls" "$work/out" || fail "crossed, unchecked: not named"
WEFT_CHECK=1 "$mpiexec" -n 2 --timeout 60 "$prog" freed >"$work/out" 2>&1
grep -Eq "MPI_Barrier: .*was freed.: made by MPI_Comm_dup$line, freed by MPI_Comm_free$line" "$work/out" || fail "freed: not named"

# ---- weft doctor
# begins MODE RANKS: its ranks all wait, or as many as say so.
begins() {
	rm -f "$work/in"
	mkfifo "$work/in"
	"$mpiexec" -n "$2" --timeout 100 "$prog" "$1" <"$work/in" >"$work/job" 2>&1 &
	job=$!
	exec 9>"$work/in"
}
# says PATTERN COUNT CODE: the doctor says it so often, and ends so, before long.
says() {
	for try in $(seq 60); do
		"$weft" doctor $job >"$work/out" 2>&1
		code=$?
		[ "$(grep -Ec "$1" "$work/out")" = "$2" ] && [ $code = "$3" ] && return
		sleep 0.1
	done
	fail "weft doctor: exit code $code; not $2 times: $1"
}
over() {
	kill $job 2>/dev/null
	exec 9>&-
	wait $job 2>/dev/null
	job=
}
begins ring 3
says 'main thread waits in MPI_Recv for a message from rank [0-2], tag 7, on the ring, since [0-9.]+ s' 3 3
# A rank that has just gone to sleep is none of a deadlock yet: the next look finds it.
says 'deadlock of all ranks: rank . waits for rank . .MPI_Recv, tag 7, on the ring., rank' 1 3
ranks=$(sed -n 's/^rank [0-9]*, process \([0-9]*\).*/\1/p' "$work/out")
kill -STOP $ranks
says '^rank [0-2], process [0-9]+, stopped' 3 3
says 'deadlock of all ranks' 1 3
# By the name of the job, and by one of its ranks.
name=$(sed -n 's/^job \([^:]*\):.*/\1/p' "$work/out")
"$weft" doctor "$name" >"$work/out" 2>&1
[ $? = 3 ] || fail "weft doctor $name"
"$weft" doctor "$(echo $ranks | cut -d " " -f 1)" >"$work/out" 2>&1
[ $? = 3 ] || fail "weft doctor by a rank"
kill -CONT $ranks
over
begins absent 3
says 'main thread waits in MPI_(Barrier for the other members|Recv for a message from rank 0, tag 3), on MPI_COMM_WORLD' 3 3
says 'deadlock of all ranks: rank 0 waits for rank [12] .MPI_Barrier.*, rank [12] waits for rank 0 .MPI_Recv' 1 3
over
# A rank that computes is no deadlock.
begins late 3
says 'main thread waits in MPI_Bcast for the other members, root 0, on MPI_COMM_WORLD' 2 0
grep -q 'rank 0, process [0-9]*: no thread waits in MPI' "$work/out" && ! grep -q deadlock "$work/out" || fail "late"
echo >&9
over
begins passed 3
says 'rank 2, process|main thread waits in MPI_(Reduce|Barrier) for the other members' 3 0
! grep -q deadlock "$work/out" || fail "passed"
echo >&9
over
# One of several requests is enough: hopeless if all of them are.
begins any_ring 3
says 'main thread waits in MPI_Waitany for a message from rank [0-2], tag 7, or for one of 1 other request, on the ring, since' 3 3
says 'deadlock of all ranks: rank . waits for rank . .MPI_Waitany' 1 3
over
begins any_late 3
says 'main thread waits in MPI_Waitsome for a message from rank [0-2], tag 7, or for one of 1 other request, on MPI_COMM_WORLD' 2 0
! grep -q deadlock "$work/out" || fail "any_late"
echo >&9
exec 9>&-
wait $job || fail "any_late does not end"
job=
# Windows: a fence that a member does not reach; a lock that a member holds.
begins window_absent 3
says 'main thread waits in MPI_(Win_fence for the other members, on table|Barrier for the other members, on MPI_COMM_WORLD), since' 3 3
says 'deadlock of all ranks: rank 0 waits for rank [12] .MPI_Win_fence, on table.*, rank [12] waits for rank 0 .MPI_Barrier' 1 3
over
begins window_held 2
says 'main thread waits in MPI_(Barrier for the other members, on MPI_COMM_WORLD|Win_lock at rank 1, held by rank 0, on table), since' 2 3
says 'deadlock of all ranks: rank 0 waits for rank 1 .MPI_Barrier, on MPI_COMM_WORLD., rank 1 waits for rank 0 .MPI_Win_lock, on table.' 1 3
over
begins window_crossed 3
says 'main thread waits in MPI_Win_lock at rank 0, held by rank [01], on (left|right), since' 2 3
says 'deadlock of all ranks: rank 0 waits for rank 1 .MPI_Win_lock, on right., rank 1 waits for rank 0 .MPI_Win_lock, on left.' 1 3
over
# User-level threads, each by its own message.
cat >"$work/u.c" <<'END'
#include <mpi.h>
#include <weft/ult.h>
static void *wait_for(void *tag)
{
	int x;
	MPI_Recv(&x, 1, MPI_INT, 1, (int)(long)tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return 0;
}
int main(int argc, char **argv)
{
	int level, rank, x;
	weft_ult *t[3];
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (long i = 0; rank == 0 && i < 3; i++)
		weft_ult_create(&t[i], 0, wait_for, (void *)i);
	for (int i = 0; rank == 0 && i < 3; i++)
		weft_ult_join(t[i], 0);
	if (rank == 1)
		MPI_Recv(&x, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return MPI_Finalize();
}
END
"$BUILD/bin/mpicc" "$work/u.c" -o "$work/u" || fail "mpicc"
was=$prog prog=$work/u
begins u 2
prog=$was
says 'user-level thread [0-9]+\.[0-9]+ waits in MPI_Recv for a message from rank 1, tag [0-2], on MPI_COMM_WORLD, since' 3 3
says 'deadlock of all ranks: rank 0 waits for rank 1 .MPI_Recv' 1 3
over
# A job that is ended since it may hang says what its ranks wait for, and one of other programs says nothing of it.
"$mpiexec" -n 2 --timeout 2 "$prog" ring >"$work/out" 2>&1
[ $? = 124 ] && [ "$(grep -c 'main thread waits in MPI_Recv for a message from rank [01], tag 7, on the ring, since' "$work/out")" = 2 ] &&
	grep -q 'deadlock of all ranks' "$work/out" || fail "--timeout: no last look"
"$mpiexec" -n 2 --timeout 1 sleep 60 >"$work/out" 2>&1
[ $? = 124 ] && ! grep -Eq 'waits in|no job' "$work/out" || fail "--timeout: a look at other programs"
begins ring 3
says 'main thread waits in MPI_Recv for a message from rank [0-2], tag 7, on the ring, since' 3 3
kill -QUIT $job
wait $job
[ $? = 131 ] || fail "SIGQUIT: another exit code"
cp "$work/job" "$work/out"
[ "$(grep -c 'main thread waits in MPI_Recv for a message from rank [0-2], tag 7, on the ring, since' "$work/out")" = 3 ] || fail "SIGQUIT: no last look"
over
"$weft" doctor 1 >"$work/out" 2>&1 && fail "a job of process 1"
"$weft" doctor a b >"$work/out" 2>&1
[ $? = 2 ] || fail "two jobs are accepted"
# It ends a job by itself, and leaves one alone that goes on.
WEFT_DEADLOCK=abort "$mpiexec" -n 2 --timeout 100 "$prog" ring >"$work/out" 2>&1
rc=$?
[ $rc != 0 ] && [ $rc != 124 ] && grep -q 'deadlock of all ranks: rank 0 waits for rank 1' "$work/out" || fail "WEFT_DEADLOCK=abort: exit code $rc"
WEFT_DEADLOCK=abort "$mpiexec" -n 2 --timeout 100 "$prog" right >"$work/out" 2>&1 || fail "WEFT_DEADLOCK=abort: a program that is right"
exit $bad
