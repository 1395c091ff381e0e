/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 4 7 13 */
/*
 * Small blocking collectives with a root, one after the other, as they take turns in shared memory
 * when ranks outnumber cores: results and order while the quick run ahead, roots that change,
 * members that come late and so let the rest sleep, layouts that differ from rank to rank, in
 * place, sizes around the ends of a turn, other collectives in between. Seed as argument.
 */
#include <unistd.h>

#include "mpitest.h"

static unsigned long long seed = 1;

static unsigned rnd(unsigned n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(seed >> 33) % n;
}

/* Keeps the core without calling MPI: waiters run out of patience. */
static void late(void)
{
	volatile double x = 1;
	for (int i = 0; i < 1000000; i++)
		x = x * 1.0000001 + 1e-9;
}

#define MOST 1200 /* integers: beyond what goes in turns */

static int out[MOST * 8], in[MOST * 16];

static int value(int step, int r, int i)
{
	return step * 1000003 + r * 1009 + i;
}

/* n integers, on odd ranks with a hole after each. */
static MPI_Datatype layout(int n, int *step_p)
{
	MPI_Datatype vector, t;
	*step_p = rank % 2 ? 2 : 1;
	OK(MPI_Type_vector(n, 1, *step_p, MPI_INT, &vector));
	OK(MPI_Type_create_resized(vector, 0, (MPI_Aint)sizeof(int) * n * *step_p, &t));
	OK(MPI_Type_commit(&t));
	OK(MPI_Type_free(&vector));
	return t;
}

static void bcast(int step, int n, int root)
{
	int wide, spread = (int)rnd(2);
	MPI_Datatype t = layout(n, &wide);
	if (!spread)
		wide = 1;
	for (int i = 0; i < 2 * n; i++)
		in[i] = -1;
	for (int i = 0; i < n && rank == root; i++)
		in[i * wide] = value(step, root, i);
	OK(MPI_Bcast(in, spread ? 1 : n, spread ? t : MPI_INT, root, MPI_COMM_WORLD));
	for (int i = 0; i < n; i++)
		CHECK_EQ(in[i * wide], value(step, root, i));
	for (int i = 0; i < n && wide == 2; i++)
		CHECK_EQ(in[2 * i + 1], -1);
	OK(MPI_Type_free(&t));
}

static void scatter(int step, int n, int root)
{
	int wide, in_place = (int)rnd(2) && rank == root;
	MPI_Datatype t = layout(n, &wide);
	for (int i = 0; i < 2 * n; i++)
		in[i] = -1;
	for (int r = 0; r < size && rank == root; r++)
		for (int i = 0; i < n; i++)
			out[r * n + i] = value(step, r, i);
	OK(MPI_Scatter(out, n, MPI_INT, in_place ? MPI_IN_PLACE : in, 1, t, root, MPI_COMM_WORLD));
	for (int i = 0; i < n && !in_place; i++) {
		CHECK_EQ(in[i * wide], value(step, rank, i));
		CHECK(wide == 1 || in[2 * i + 1] == -1);
	}
	OK(MPI_Type_free(&t));
}

static void gather(int step, int n, int root)
{
	int wide, in_place = (int)rnd(2) && rank == root;
	MPI_Datatype t = layout(n, &wide);
	for (int i = 0; i < 2 * n * size; i++)
		in[i] = -1;
	for (int i = 0; i < n; i++)
		(in_place ? in + (size_t)root * n * wide : out)[in_place ? i * wide : i] =
			value(step, rank, i);
	OK(MPI_Gather(in_place ? MPI_IN_PLACE : out, n, MPI_INT, in, 1, t, root, MPI_COMM_WORLD));
	for (int r = 0; r < size && rank == root; r++)
		for (int i = 0; i < n; i++)
			CHECK_EQ(in[(r * n + i) * wide], value(step, r, i));
	OK(MPI_Type_free(&t));
}

static void reduce(int step, int n, int root)
{
	int in_place = (int)rnd(2) && rank == root;
	for (int i = 0; i < n; i++)
		(in_place ? in : out)[i] = value(step, rank, i) % 10007;
	OK(MPI_Reduce(in_place ? MPI_IN_PLACE : out, in, n, MPI_INT, MPI_SUM, root,
		      MPI_COMM_WORLD));
	for (int i = 0; i < n && rank == root; i++) {
		int sum = 0;
		for (int r = 0; r < size; r++)
			sum += value(step, r, i) % 10007;
		CHECK_EQ(in[i], sum);
	}
}

/* Blocking and nonblocking combine in the same order. */
static void same_bits(int n, int root)
{
	static double from[MOST], now[MOST], then[MOST];
	MPI_Request req;
	for (int i = 0; i < n; i++)
		from[i] = 1.0 / (3 + rank + i) * (rank % 2 ? 1e10 : 1);
	OK(MPI_Reduce(from, now, n, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD));
	OK(MPI_Ireduce(from, then, n, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD, &req));
	OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
	CHECK(rank != root || !memcmp(now, then, sizeof now[0] * (size_t)n));
}

/* What all do next is drawn from a seed that they share; runs of the same, long enough to go round
 * the ring, with one root or with several. */
static void mixture(int rounds)
{
	static void (*const call[])(int, int, int) = {bcast, scatter, gather, reduce};
	static const int sizes[] = {1, 2, 3, 4, 12, 30, 60, 107, 108, 109, 300, 1024, MOST};
	for (int k = 0; k < rounds; k++) {
		unsigned what = rnd(6), many = 1 + rnd(100), first = rnd((unsigned)size);
		unsigned slow = rnd((unsigned)size), moves = rnd(2), mixed = rnd(2);
		int n = sizes[rnd(rnd(3) ? 6 : 13)];
		for (unsigned i = 0; i < many; i++) {
			if (i % 37 == 36 && k % 4 == 0 && (int)slow == rank)
				late();
			int root = (int)(moves ? (first + i) % (unsigned)size : first);
			call[mixed ? (what + i) % 4 : what % 4](k * 100 + (int)i, n, root);
		}
		if (what == 4)
			OK(MPI_Barrier(MPI_COMM_WORLD));
		else if (what == 5)
			same_bits(1 + (int)rnd(8), (int)first);
	}
}

/* Rank 0 is late where it collects, and the next one gets a ring ahead and collects there, too:
 * with any number of turns in between. */
static void collectors(void)
{
	for (int k = 0; k < 40; k++) {
		if (!rank)
			late();
		gather(k, 1, 0);
		for (int i = 0; i < 31; i++)
			bcast(k * 100 + i, 1, 1);
		gather(k + 50, 1, 1);
		if (k % 3 == 0)
			bcast(k, 1, 2 % size);
	}
}

/* How many collectives took a turn, by the library's counter. */
static unsigned long long turns(void)
{
	int provided, index, n = 0;
	unsigned long long value = 0;
	MPI_T_pvar_session s;
	MPI_T_pvar_handle h;
	OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
	CHECK_EQ(MPI_T_pvar_get_index("weft_coll_rooted", MPI_T_PVAR_CLASS_COUNTER, &index),
		 MPI_SUCCESS);
	OK(MPI_T_pvar_session_create(&s));
	CHECK_EQ(MPI_T_pvar_handle_alloc(s, index, NULL, &h, &n), MPI_SUCCESS);
	CHECK_EQ(MPI_T_pvar_read(s, h, &value), MPI_SUCCESS);
	OK(MPI_T_pvar_session_free(&s));
	OK(MPI_T_finalize());
	return value;
}

int main(int argc, char **argv)
{
	const char *r = getenv("PMI_RANK");
	/* Every third rank sleeps at once instead of looking. */
	if (r && atoi(r) % 3 == 1)
		setenv("WEFT_SPIN_US", "0", 1);
	OK(MPI_Init(&argc, &argv));
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc > 1)
		seed = strtoull(argv[1], NULL, 10);
	if (!rank)
		printf("seed %llu\n", seed);
	mixture(60);
	collectors();
	if (size > sysconf(_SC_NPROCESSORS_ONLN) && !getenv("WEFT_DRIVERS"))
		CHECK(turns() > 100);
	OK(MPI_Finalize());
	return 0;
}
