/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fortran.c - what does a call by mpi_f08 or mpif.h cost beyond the same call in C?
 *
 * Unit      ns per call, of 8 bytes to MPI_PROC_NULL and back from it; us, half of there and back.
 * Bound     the call of a function that checks a descriptor of 40 bytes: a few ns.
 * Method    The library's entry points are called as compilers call them, with a descriptor of one element; no compiler of
 *           Fortran is needed.  The three forms take turns, block by block; medians of the blocks.
 */
#include "bench_mpi.h"
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

/* CFI_cdesc_t of real(8) :: x(1). */
struct descriptor {
	void *base;
	size_t elem;
	int version;
	unsigned char rank, kinds[3];
	ptrdiff_t dim[3];
};

typedef void send_f08(struct descriptor *, const int *n, const int *type, const int *to,
		      const int *tag, const int *comm, int *error);
typedef void recv_f08(struct descriptor *, const int *n, const int *type, const int *from,
		      const int *tag, const int *comm, void *status, int *error);
typedef void send_f(void *, const int *n, const int *type, const int *to, const int *tag,
		    const int *comm, int *error);
typedef void recv_f(void *, const int *n, const int *type, const int *from, const int *tag,
		    const int *comm, void *status, int *error);

static send_f08 *f08_send;
static recv_f08 *f08_recv;
static send_f *f77_send;
static recv_f *f77_recv;
static void *ignore;

static int one = 1, tag = 1, type, comm;
static double x;
static struct descriptor box = {&x, sizeof x, 20180515, 1, {0}, {1, 1, sizeof x}};

enum form { IN_C, F08, F77, FORMS };
static const char *const form_name[] = {"C", "mpi_f08", "mpif.h"};

static void put(enum form form, int to)
{
	int error = 0;
	if (form == F08)
		f08_send(&box, &one, &type, &to, &tag, &comm, &error);
	else if (form == F77)
		f77_send(&x, &one, &type, &to, &tag, &comm, &error);
	else
		error = MPI_Send(&x, 1, MPI_DOUBLE, to, 1, MPI_COMM_WORLD);
	if (error)
		MPI_Abort(MPI_COMM_WORLD, 1);
}

static void get(enum form form, int from)
{
	int error = 0;
	if (form == F08)
		f08_recv(&box, &one, &type, &from, &tag, &comm, ignore, &error);
	else if (form == F77)
		f77_recv(&x, &one, &type, &from, &tag, &comm, ignore, &error);
	else
		error = MPI_Recv(&x, 1, MPI_DOUBLE, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (error)
		MPI_Abort(MPI_COMM_WORLD, 1);
}

/* n sends and receives each, that go nowhere: us per call. */
static double nowhere(enum form form, int n)
{
	double t = bench_now_us();
	for (int i = 0; i < n; i++) {
		put(form, MPI_PROC_NULL);
		get(form, MPI_PROC_NULL);
	}
	return (bench_now_us() - t) / n / 2;
}

static double there_and_back(enum form form, int n)
{
	int other = 1 - bench_rank;
	MPI_Barrier(MPI_COMM_WORLD);
	double t = bench_now_us();
	for (int i = 0; i < n; i++) {
		if (bench_rank == 0)
			put(form, other);
		get(form, other);
		if (bench_rank == 1)
			put(form, other);
	}
	return (bench_now_us() - t) / n / 2;
}

static void measure(double (*run)(enum form, int), int n, const char *what, const char *metric,
		    const char *unit, double factor)
{
	static double block[FORMS][BENCH_BLOCKS_MAX];
	int blocks = bench_quick ? 11 : 41;
	for (int i = -2; i < blocks; i++)
		for (int form = 0; form < FORMS; form++) {
			double us = run((enum form)form, n);
			if (i >= 0)
				block[form][i] = us;
		}
	for (int form = 0; form < FORMS && bench_rank == 0; form++) {
		char name[64];
		snprintf(name, sizeof name, "%s by %s", what, form_name[form]);
		bench_row(name, metric, unit, factor * bench_median(block[form], blocks));
	}
}

static void *entry(void *library, const char *name)
{
	void *at = dlsym(library, name);
	if (!at) {
		fprintf(stderr, "bench: libmpifort_abi.so.1 has no %s\n", name);
		exit(1);
	}
	return at;
}

int main(int argc, char **argv)
{
	bench_start(&argc, &argv, MPI_THREAD_SINGLE);
	void *library = dlopen("libmpifort_abi.so.1", RTLD_NOW);
	if (!library || bench_ranks != 2) {
		fprintf(stderr, "bench: %s\n", library ? "needs two ranks" : dlerror());
		return 1;
	}
	f08_send = (send_f08 *)(uintptr_t)entry(library, "mpi_send_f08ts_");
	f08_recv = (recv_f08 *)(uintptr_t)entry(library, "mpi_recv_f08ts_");
	f77_send = (send_f *)(uintptr_t)entry(library, "mpi_send_");
	f77_recv = (recv_f *)(uintptr_t)entry(library, "mpi_recv_");
	ignore = entry(library, "weft_f_status_ignore_");
	type = MPI_Type_toint(MPI_DOUBLE);
	comm = MPI_Comm_toint(MPI_COMM_WORLD);
	measure(nowhere, bench_quick ? 20000 : 100000, "nowhere", "call", "ns", 1e3);
	measure(there_and_back, bench_quick ? 2000 : 10000, "8 B", "latency", "us", 1);
	MPI_Finalize();
	return 0;
}
