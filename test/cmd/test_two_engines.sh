#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A program linked with libweft-task before libmpi_abi has two engines: both work, and MPI_Init says
# so in one line.  The other way round there is one, and nothing to say.
set -e
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cat >"$dir/two.c" <<'END'
#include <mpi.h>
#include <stdio.h>
#include <weft/task.h>
static enum weft_task_verdict set(struct weft_task *t, void *arg)
{
	*(int *)arg = 1;
	return WEFT_TASK_DONE;
}
int main(int argc, char **argv)
{
	struct weft_task t;
	int ran = 0, rank, sum = 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (weft_engine_start())
		return 1;
	weft_task_launch(&t, "set", set, &ran);
	weft_task_wait(&t);
	MPI_Allreduce(&ran, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	weft_engine_stop();
	MPI_Finalize();
	if (rank == 0)
		printf("sum %d\n", sum);
	return 0;
}
END
link() { # order of the libraries
	cc=$BUILD/bin/mpicc
	"$cc" -I"$SOURCE/include" "$dir/two.c" -L"$BUILD/lib" -Wl,--no-as-needed "$@" -Wl,-rpath,"$BUILD/lib" -o "$dir/two"
	"$BUILD/bin/mpiexec" -n 2 --timeout 100 "$dir/two" >"$dir/out" 2>"$dir/err" || { cat "$dir/err"; exit 1; }
	grep -q '^sum 2$' "$dir/out" || { cat "$dir/out"; exit 1; }
}
link -lweft-task -lmpi_abi
[ "$(grep -c 'two progress engines: .*libweft-task.*libmpi_abi' "$dir/err")" = 2 ] || { cat "$dir/err"; exit 1; }
link -lmpi_abi -lweft-task
if grep 'two progress engines' "$dir/err"; then exit 1; fi
echo "two engines are named, one is not"
