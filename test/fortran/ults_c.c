/* SPDX-License-Identifier: BSD-3-Clause */
/* ults_c.c - calls a subroutine of Fortran in user-level threads; a rank by a Fortran handle. */
#include <mpi.h>
#include <stdlib.h>
#include <weft/ult.h>

typedef void work_fn(int k);

void c_on_threads(work_fn *fn, int n);
int c_rank(int comm);

struct job {
	work_fn *fn;
	int k;
};

static void *run(void *arg)
{
	struct job *job = arg;
	job->fn(job->k);
	return NULL;
}

void c_on_threads(work_fn *fn, int n)
{
	struct weft_ult_attr attr = WEFT_ULT_ATTR_INIT;
	struct job *job = calloc((size_t)n, sizeof *job);
	weft_ult **t = calloc((size_t)n, sizeof(weft_ult *));
	attr.stack_size = 64 << 10; /* descriptors and temporaries of Fortran */
	if (!job || !t || weft_ult_start(2))
		abort();
	for (int i = 0; i < n; i++) {
		job[i] = (struct job){fn, i + 1};
		if (weft_ult_create(&t[i], &attr, run, &job[i]))
			abort();
	}
	for (int i = 0; i < n; i++)
		if (weft_ult_join(t[i], NULL))
			abort();
	if (weft_ult_stop())
		abort();
	free(job);
	free((void *)t);
}

int c_rank(int comm)
{
	int rank = -1;
	PMPI_Comm_rank(MPI_Comm_fromint(comm), &rank);
	return rank;
}
