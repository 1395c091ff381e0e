#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that ranks which call different collectives end with a line that names both, and do not hang, where
# they meet in shared memory (more ranks than cores): the odd one first, last, nonblocking, the root for which others
# wait, and one for which a root waits; and a broadcast of which one expects so much that it waits for a message.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
n=$(($(getconf _NPROCESSORS_ONLN) * 2))
[ $n -le 32 ] || { echo "skipped: the ring has room for 32 members, and $n ranks are needed here"; exit 77; }
cat >"$work/odd.c" <<'END'
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>
#define LARGE 4096
static char data[LARGE];
int main(int argc, char **argv)
{
	int rank, value = 0, sum, how = atoi(argv[1]);
	MPI_Request r;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = 0; i < 20; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	/* A hint who comes last; the answer is the same either way. */
	if ((rank == 1) == (how == 1 || how == 6))
		usleep(50000);
	if (rank == 1 && how == 2) {
		MPI_Ibarrier(MPI_COMM_WORLD, &r);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
	} else if (rank != 1 && how == 3) {
		MPI_Bcast(&value, 1, MPI_INT, 1, MPI_COMM_WORLD);
	} else if (rank != 1 && how == 4) {
		MPI_Reduce(&value, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	} else if (how >= 5) {
		MPI_Bcast(data, rank == 1 ? LARGE : 8, MPI_CHAR, 0, MPI_COMM_WORLD);
		MPI_Barrier(MPI_COMM_WORLD);
	} else if (rank == 1 && how < 2) {
		MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
	} else {
		MPI_Barrier(MPI_COMM_WORLD);
	}
	MPI_Finalize();
	return 0;
}
END
"$BUILD/bin/mpicc" "$work/odd.c" -o "$work/odd" || exit 1
bad=0
for how in 0 1 2 3 4 5 6; do
	timeout 200 "$BUILD/bin/mpiexec" -n $n --timeout 120 "$work/odd" $how >"$work/out" 2>&1
	rc=$?
	[ $rc != 0 ] && [ $rc != 124 ] || { echo "FAILED: case $how: exit code $rc" >&2; bad=1; }
	grep -qE 'collectives that do not match: rank [0-9]+ .*(barrier|bcast|reduce).*(rank [0-9]+|root) in' "$work/out" || {
		echo "FAILED: case $how: no line about it" >&2
		head -n 5 "$work/out" >&2
		bad=1
	}
done
exit $bad
