/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 4 7 */
/*
 * Small blocking collectives one after the other, as they go through shared memory when ranks outnumber
 * cores, and larger ones by stages and reads: results, layouts, order beside other collectives and
 * messages, members that come late and so let the rest sleep, ranks that look beside ranks that
 * sleep at once, several communicators with other ranks, more communicators than there are rings,
 * and threads.  Seed as argument.
 */
#include <pthread.h>
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

#define MOST 200       /* numbers: more than there is room for */
#define MANY 10000     /* several pieces of a stage */
#define TOO_MANY 70000 /* integers: for stages, too */
#define BITS 30000     /* numbers: the same */

static void sums(MPI_Comm c, int n)
{
	int me, members;
	long *in = malloc((size_t)n * sizeof *in), *out = malloc((size_t)n * sizeof *out);
	MPI_Comm_rank(c, &me);
	MPI_Comm_size(c, &members);
	for (int i = 0; i < n; i++)
		in[i] = out[i] = me * 10 + i;
	OK(MPI_Allreduce(n % 2 ? in : MPI_IN_PLACE, out, n, MPI_LONG, MPI_SUM, c));
	for (int i = 0; i < n; i++)
		CHECK_EQ(out[i], 10L * members * (members - 1) / 2 + (long)members * i);
	free(in);
	free(out);
}

/* Blocking and nonblocking combine in the same order. */
static void same_bits(MPI_Comm c)
{
	int me;
	static double in[BITS], now[BITS], later[BITS];
	int n = rnd(2) ? 1 : rnd(4) ? 20 : rnd(2) ? MANY : BITS;
	MPI_Request req;
	MPI_Comm_rank(c, &me);
	for (int i = 0; i < n; i++)
		in[i] = 1.0 / (3 + me + i) * (me % 2 ? 1e10 : 1);
	OK(MPI_Allreduce(in, now, n, MPI_DOUBLE, MPI_SUM, c));
	OK(MPI_Iallreduce(in, later, n, MPI_DOUBLE, MPI_SUM, c, &req));
	OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
	CHECK(!memcmp(now, later, sizeof now[0] * (size_t)n));
}

/* Blocks of b integers, in layouts that differ from rank to rank. */
static void all_to_all(MPI_Comm c, int b, int in_place)
{
	int me, members;
	MPI_Datatype spread = MPI_DATATYPE_NULL;
	MPI_Comm_rank(c, &me);
	MPI_Comm_size(c, &members);
	int *out = malloc((size_t)members * (size_t)b * sizeof *out);
	int *in = malloc((size_t)members * (size_t)b * 2 * sizeof *in);
	int wide = me % 2 && !in_place ? 2 : 1; /* holes between what is received */
	memset(in, -1, (size_t)members * (size_t)b * 2 * sizeof *in);
	for (int r = 0; r < members; r++)
		for (int i = 0; i < b; i++)
			(in_place ? in : out)[r * b + i] = me * 10000 + r * 100 + i;
	if (wide == 2) {
		MPI_Datatype vector;
		OK(MPI_Type_vector(b, 1, 2, MPI_INT, &vector));
		OK(MPI_Type_create_resized(vector, 0, (MPI_Aint)sizeof(int) * b * 2, &spread));
		OK(MPI_Type_commit(&spread));
		OK(MPI_Type_free(&vector));
		OK(MPI_Alltoall(out, b, MPI_INT, in, 1, spread, c));
	} else {
		OK(MPI_Alltoall(in_place ? MPI_IN_PLACE : out, b, MPI_INT, in, b, MPI_INT, c));
	}
	for (int r = 0; r < members; r++)
		for (int i = 0; i < b; i++)
			CHECK_EQ(in[(r * b + i) * wide], r * 10000 + me * 100 + i);
	for (int i = 0; i < members * b && wide == 2; i++)
		CHECK_EQ(in[2 * i + 1], -1);
	if (in_place)
		for (int i = 0; i < b; i++)
			in[me * b + i] = me * 10000 + i;
	else
		for (int i = 0; i < b; i++)
			out[i] = me * 10000 + i;
	if (wide == 2)
		OK(MPI_Allgather(out, b, MPI_INT, in, 1, spread, c));
	else
		OK(MPI_Allgather(in_place ? MPI_IN_PLACE : out, b, MPI_INT, in, b, MPI_INT, c));
	for (int r = 0; r < members; r++)
		for (int i = 0; i < b; i++)
			CHECK_EQ(in[(r * b + i) * wide], r * 10000 + i);
	if (wide == 2)
		OK(MPI_Type_free(&spread));
	free(out);
	free(in);
}

/* What all do next is drawn from a seed that they share. */
static void mixture(MPI_Comm c, int steps, int may_be_late)
{
	int me, members, value;
	MPI_Comm_rank(c, &me);
	MPI_Comm_size(c, &members);
	for (int i = 0; i < steps; i++) {
		unsigned what = rnd(12), root = rnd((unsigned)members);
		if (may_be_late && rnd(40) == 0 && (int)root == me)
			late();
		if (what < 3) {
			OK(MPI_Barrier(c));
		} else if (what < 6) {
			sums(c, 1 + (int)rnd(i % 4 ? 8 : i % 3 ? MOST : MANY));
		} else if (what == 6) {
			value = me == (int)root ? i : -1;
			OK(MPI_Bcast(&value, 1, MPI_INT, (int)root, c));
			CHECK_EQ(value, i);
		} else if (what == 7) {
			int in = me, out;
			OK(MPI_Allreduce(MPI_IN_PLACE, &in, 1, MPI_INT, MPI_MAX, c));
			CHECK_EQ(in, members - 1);
			OK(MPI_Reduce(&me, &out, 1, MPI_INT, MPI_SUM, (int)root, c));
			if (me == (int)root)
				CHECK_EQ(out, members * (members - 1) / 2);
		} else if (what == 8) {
			int to = (me + 1) % members, from = (me + members - 1) % members;
			OK(MPI_Sendrecv(&i, 1, MPI_INT, to, 5, &value, 1, MPI_INT, from, 5, c,
					MPI_STATUS_IGNORE));
			CHECK_EQ(value, i);
		} else if (what < 11) {
			/* Small ones, and now and then more than there is room for. */
			all_to_all(c, 1 + (int)rnd(i % 8 ? 8 : 200), (int)rnd(2));
			if (rnd(8) == 0)
				all_to_all(c, 1 + (int)rnd(rnd(4) ? MANY : TOO_MANY), (int)rnd(2));
		} else {
			same_bits(c);
		}
	}
}

static void test_world(void)
{
	mixture(MPI_COMM_WORLD, 300, 1);
}

/* A large message on its way while all meet: a waiter in shared memory moves it. */
static void test_beside_messages(void)
{
	static char out[1 << 20], in[1 << 20];
	int to = (rank + 1) % size, from = (rank + size - 1) % size;
	for (int k = 0; k < 4; k++) {
		MPI_Request req[2];
		memset(out, rank + k, sizeof out);
		OK(MPI_Irecv(in, sizeof in, MPI_CHAR, from, 6, MPI_COMM_WORLD, &req[0]));
		OK(MPI_Isend(out, sizeof out, MPI_CHAR, to, 6, MPI_COMM_WORLD, &req[1]));
		for (int i = 0; i < 10; i++)
			OK(MPI_Barrier(MPI_COMM_WORLD));
		OK(MPI_Waitall(2, req, MPI_STATUSES_IGNORE));
		CHECK_EQ(in[0], (char)(from + k));
		CHECK_EQ(in[sizeof in - 1], (char)(from + k));
	}
}

/* More than there are rings, alive at once, then gone, and again. */
static void test_many_comms(void)
{
	MPI_Comm c[12], part;
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 12; i++)
			OK(MPI_Comm_dup(MPI_COMM_WORLD, &c[i]));
		for (int i = 0; i < 12; i++)
			mixture(c[i], 12, 0);
		for (int i = 11; i >= 0; i--)
			OK(MPI_Comm_free(&c[i]));
	}
	for (int round = 0; round < 5; round++) {
		/* Reversed: the first member is another process. */
		OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &part));
		for (int i = 0; i < 10; i++) {
			sums(part, 2);
			OK(MPI_Barrier(part));
		}
		OK(MPI_Comm_free(&part));
	}
}

/* Blocks that are read from each other's memory, and sums of such size, in place and not. */
static void test_reads(void)
{
	MPI_Comm c;
	OK(MPI_Comm_dup(MPI_COMM_WORLD, &c));
	for (int i = 0; i < 12; i++)
		OK(MPI_Barrier(c));
	for (int i = 0; i < 24; i++) {
		if (rnd(6) == 0 && (int)rnd((unsigned)size) == rank)
			late();
		sums(c, 17000 + (int)rnd(100000));
	}
	/* Not in place, without holes; then as they come, so that by messages from there on. */
	int b = 5000 + (int)rnd(20000), *out = malloc((size_t)size * (size_t)b * sizeof *out);
	int *in = malloc((size_t)size * (size_t)b * sizeof *in);
	for (int k = 0; k < 16; k++) {
		for (int i = 0; i < size * b; i++)
			out[i] = (rank * size + i / b) * 1000 + i % b + k;
		OK(MPI_Alltoall(out, b, MPI_INT, in, b, MPI_INT, c));
		for (int i = 0; i < size * b; i++)
			CHECK_EQ(in[i], (i / b * size + rank) * 1000 + i % b + k);
	}
	free(out);
	free(in);
	for (int k = 0; k < 3; k++)
		all_to_all(c, 5000 + (int)rnd(5000), k == 1);
	sums(c, 40000);
	OK(MPI_Comm_free(&c));
}

static void *worker(void *arg)
{
	MPI_Comm c = *(MPI_Comm *)arg;
	for (int i = 0; i < 60; i++) {
		sums(c, 1 + i % 8);
		OK(MPI_Barrier(c));
	}
	return NULL;
}

static void test_threads(void)
{
	MPI_Comm c[3];
	pthread_t t[3];
	for (int i = 0; i < 3; i++)
		OK(MPI_Comm_dup(MPI_COMM_WORLD, &c[i]));
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, worker, &c[i]);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < 3; i++)
		OK(MPI_Comm_free(&c[i]));
}

/* How many collectives went through shared memory, by the library's counter. */
static unsigned long long counted(const char *name)
{
	int provided, index, n = 0;
	unsigned long long value = 0;
	MPI_T_pvar_session s;
	MPI_T_pvar_handle h;
	OK(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided));
	CHECK_EQ(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index), MPI_SUCCESS);
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
	int provided;
	/* Every third rank sleeps at once instead of looking. */
	if (r && atoi(r) % 3 == 1)
		setenv("WEFT_SPIN_US", "0", 1);
	OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc > 1)
		seed = strtoull(argv[1], NULL, 10);
	if (!rank)
		printf("seed %llu\n", seed);
	test_world();
	test_beside_messages();
	test_many_comms();
	test_reads();
	test_threads();
	if (!getenv("WEFT_DRIVERS"))
		CHECK(counted("weft_coll_meetings") > 100 && counted("weft_coll_stages") > 0);
	/* Where the system lets processes read from each other. */
	if (size > sysconf(_SC_NPROCESSORS_ONLN) && !getenv("WEFT_DRIVERS") &&
	    !getenv("WEFT_CROWDED"))
		CHECK(!counted("weft_rndv_fetched") || counted("weft_coll_reads") > 10);
	OK(MPI_Finalize());
	return 0;
}
