/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * snapshots.c - all ranks write one array, again and again, each while the next one is computed.
 *
 * A block of columns per rank, so that the ranks' rows interleave in the file.  Two arrays take turns: one is
 * computed, the other on its way to the file.  At the end every rank reads the last one and checks it.
 *
 *   mpicc -O2 examples/snapshots.c -o snapshots && mpiexec -n 4 ./snapshots /tmp/snapshots.dat
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 512, COLUMNS = 256, STEPS = 8 }; /* of a rank */

static void compute(double *a, int step, int rank)
{
	for (int i = 0; i < ROWS * COLUMNS; i++)
		a[i] = step + 1e-3 * rank + 1e-9 * i;
}

/* One line, and the end: file errors are returned, not fatal. */
static void must(int err, const char *what)
{
	char text[MPI_MAX_ERROR_STRING];
	int n;
	if (!err)
		return;
	MPI_Error_string(err, text, &n);
	fprintf(stderr, "snapshots: %s: %s\n", what, text);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "snapshots.dat";
	int rank, size, wrong = 0;
	MPI_File file;
	MPI_Datatype block;
	MPI_Request write = MPI_REQUEST_NULL;
	double *a[2], *check = malloc(sizeof(double) * ROWS * COLUMNS);

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	a[0] = malloc(sizeof(double) * ROWS * COLUMNS);
	a[1] = malloc(sizeof(double) * ROWS * COLUMNS);
	if (!a[0] || !a[1] || !check)
		MPI_Abort(MPI_COMM_WORLD, 1);

	int whole[] = {ROWS, COLUMNS * size}, part[] = {ROWS, COLUMNS}, at[] = {0, COLUMNS * rank};
	MPI_Type_create_subarray(2, whole, part, at, MPI_ORDER_C, MPI_DOUBLE, &block);
	MPI_Type_commit(&block);
	must(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL,
			   &file),
	     name);
	must(MPI_File_set_size(file, 0), name);
	must(MPI_File_set_view(file, 0, MPI_DOUBLE, block, "native", MPI_INFO_NULL), name);

	double begin = MPI_Wtime(), waited = 0;
	for (int step = 0; step < STEPS; step++) {
		compute(a[step % 2], step, rank);
		double t = MPI_Wtime();
		must(MPI_Wait(&write, MPI_STATUS_IGNORE), "the snapshot before");
		waited += MPI_Wtime() - t;
		must(MPI_File_iwrite_all(file, a[step % 2], ROWS * COLUMNS, MPI_DOUBLE, &write),
		     name);
	}
	must(MPI_Wait(&write, MPI_STATUS_IGNORE), "the last snapshot");
	if (!rank)
		printf("%d snapshots of %.1f MB in %.3f s, of which %.3f s waiting\n", STEPS,
		       8e-6 * ROWS * COLUMNS * size, MPI_Wtime() - begin, waited);

	must(MPI_File_read_at_all(file, (MPI_Offset)(STEPS - 1) * ROWS * COLUMNS, check,
				  ROWS * COLUMNS, MPI_DOUBLE, MPI_STATUS_IGNORE),
	     name);
	for (int i = 0; i < ROWS * COLUMNS; i++)
		wrong += check[i] != a[(STEPS - 1) % 2][i];
	must(MPI_File_close(&file), name);
	MPI_Type_free(&block);
	free(a[0]);
	free(a[1]);
	free(check);
	MPI_Finalize();
	return wrong != 0;
}
