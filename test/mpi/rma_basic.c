/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 3 */
/*
 * rma_basic.c - windows of each flavour: put, get, accumulates, each epoch, against what they must give.
 */
#include <stdint.h>
#include <stdlib.h>
#include "mpitest.h"

#define N 4096

static int *base;
static MPI_Win win;

static void fill(int from)
{
	for (int i = 0; i < N; i++)
		base[i] = from + i;
}

/* After a fence on both sides. */
static void test_fence(void)
{
	int to = (rank + 1) % size, from = (rank + size - 1) % size;
	int out[64], in[64];

	fill(rank * 100000);
	for (int i = 0; i < 64; i++)
		out[i] = -rank - i;
	OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
	OK(MPI_Get(in, 64, MPI_INT, to, 100, 64, MPI_INT, win));
	OK(MPI_Put(out, 64, MPI_INT, to, 200, 64, MPI_INT, win));
	OK(MPI_Win_fence(0, win));
	for (int i = 0; i < 64; i++) {
		CHECK_EQ(in[i], to * 100000 + 100 + i);
		CHECK_EQ(base[200 + i], -from - i);
	}
	CHECK_EQ(base[199], rank * 100000 + 199);
	CHECK_EQ(base[264], rank * 100000 + 264);
	OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
}

/* Large accesses go another way than small ones. */
static void test_large(void)
{
	int to = (rank + 1) % size, from = (rank + size - 1) % size;
	int *out = malloc(N * sizeof *out), *in = malloc(N * sizeof *in);

	fill(7 * rank);
	for (int i = 0; i < N; i++)
		out[i] = rank * 3 + i * 5;
	OK(MPI_Win_fence(0, win));
	OK(MPI_Get(in, N, MPI_INT, to, 0, N, MPI_INT, win));
	OK(MPI_Win_fence(0, win));
	for (int i = 0; i < N; i++)
		CHECK_EQ(in[i], 7 * to + i);
	OK(MPI_Put(out, N, MPI_INT, to, 0, N, MPI_INT, win));
	OK(MPI_Win_fence(0, win));
	for (int i = 0; i < N; i++)
		CHECK_EQ(base[i], from * 3 + i * 5);
	OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
	free(out);
	free(in);
}

/* Columns there from a row here, and back. */
static void test_layout(void)
{
	int to = (rank + 1) % size, out[32], in[32];
	MPI_Datatype column;

	OK(MPI_Type_vector(32, 1, 64, MPI_INT, &column));
	OK(MPI_Type_commit(&column));
	fill(0);
	OK(MPI_Win_fence(0, win));
	for (int i = 0; i < 32; i++)
		out[i] = 1000 * (rank + 1) + i;
	OK(MPI_Put(out, 32, MPI_INT, to, 3, 1, column, win));
	OK(MPI_Win_fence(0, win));
	int from = (rank + size - 1) % size;
	for (int i = 0; i < 32 * 64; i++)
		CHECK_EQ(base[i], i % 64 == 3 ? 1000 * (from + 1) + i / 64 : i);
	OK(MPI_Get(in, 32, MPI_INT, to, 3, 1, column, win));
	OK(MPI_Win_fence(0, win));
	for (int i = 0; i < 32; i++)
		CHECK_EQ(in[i], 1000 * (rank + 1) + i);
	OK(MPI_Type_free(&column));
	OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
}

static void test_post_start(void)
{
	MPI_Group world, to_group, from_group;
	int to = (rank + 1) % size, from = (rank + size - 1) % size, value = 4711 + rank, flag = 0;

	OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
	OK(MPI_Group_incl(world, 1, &to, &to_group));
	OK(MPI_Group_incl(world, 1, &from, &from_group));
	for (int turn = 0; turn < 20; turn++) {
		fill(0);
		OK(MPI_Win_post(from_group, 0, win));
		OK(MPI_Win_start(to_group, 0, win));
		OK(MPI_Put(&value, 1, MPI_INT, to, turn, 1, MPI_INT, win));
		OK(MPI_Win_complete(win));
		if (turn % 2)
			OK(MPI_Win_wait(win));
		else
			for (flag = 0; !flag;)
				OK(MPI_Win_test(win, &flag));
		CHECK_EQ(base[turn], 4711 + from);
	}
	OK(MPI_Group_free(&world));
	OK(MPI_Group_free(&to_group));
	OK(MPI_Group_free(&from_group));
}

/* Every rank adds to rank 0, by each of the calls that must not lose an update. */
static void test_counters(void)
{
	enum { TURNS = 500 };
	int one = 1, was = -1, fetched = 0;
	int64_t seen = 0;

	fill(0);
	base[0] = base[1] = base[2] = 0;
	test_barrier();
	OK(MPI_Win_lock_all(0, win));
	for (int i = 0; i < TURNS; i++) {
		OK(MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win));
		OK(MPI_Fetch_and_op(&one, &was, MPI_INT, 0, 1, MPI_SUM, win));
		OK(MPI_Win_flush(0, win));
		CHECK(was >= fetched);
		fetched = was + 1;
		int expected = was = 0, next;
		do { /* ends: another rank's success is progress */
			expected = was;
			next = expected + 1;
			OK(MPI_Compare_and_swap(&next, &expected, &was, MPI_INT, 0, 2, win));
			OK(MPI_Win_flush(0, win));
		} while (was != expected);
		seen += was;
	}
	OK(MPI_Win_unlock_all(win));
	test_barrier();
	CHECK(seen >= 0);
	if (rank == 0)
		for (int i = 0; i < 3; i++) {
			OK(MPI_Get(&was, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win));
			OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
			OK(MPI_Get(&was, 1, MPI_INT, 0, i, 1, MPI_INT, win));
			OK(MPI_Win_unlock(0, win));
			CHECK_EQ(was, TURNS * size);
		}
	test_barrier();
}

/* A lock that excludes: read, change, write. */
static void test_lock(void)
{
	enum { TURNS = 200 };
	int target = size - 1, value;

	base[9] = 0;
	test_barrier();
	for (int i = 0; i < TURNS; i++) {
		OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
		OK(MPI_Get(&value, 1, MPI_INT, target, 9, 1, MPI_INT, win));
		OK(MPI_Win_flush(target, win));
		value++;
		OK(MPI_Put(&value, 1, MPI_INT, target, 9, 1, MPI_INT, win));
		OK(MPI_Win_unlock(target, win));
	}
	test_barrier();
	OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
	OK(MPI_Get(&value, 1, MPI_INT, target, 9, 1, MPI_INT, win));
	OK(MPI_Win_unlock(target, win));
	CHECK_EQ(value, TURNS * size);
	test_barrier();
}

static void test_requests(void)
{
	int to = (rank + 1) % size, out = 77 + rank, in = 0, sum = 5, was = 0;
	MPI_Request r[2];

	fill(1000);
	test_barrier();
	OK(MPI_Win_lock_all(0, win));
	OK(MPI_Rput(&out, 1, MPI_INT, to, 1, 1, MPI_INT, win, &r[0]));
	OK(MPI_Rget(&in, 1, MPI_INT, to, 0, 1, MPI_INT, win, &r[1]));
	OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
	CHECK_EQ(in, 1000);
	OK(MPI_Raccumulate(&sum, 1, MPI_INT, to, 2, 1, MPI_INT, MPI_SUM, win, &r[0]));
	OK(MPI_Wait(&r[0], MPI_STATUS_IGNORE));
	OK(MPI_Rget_accumulate(NULL, 0, MPI_DATATYPE_NULL, &was, 1, MPI_INT, to, 2, 1, MPI_INT,
			       MPI_NO_OP, win, &r[0]));
	OK(MPI_Wait(&r[0], MPI_STATUS_IGNORE));
	CHECK_EQ(was, 1007);
	OK(MPI_Win_flush_all(win));
	OK(MPI_Win_unlock_all(win));
	test_barrier();
	CHECK_EQ(base[1], 77 + (rank + size - 1) % size);
	CHECK_EQ(base[2], 1007);
	test_barrier();
}

/* The first rank whose value is largest wins, whatever the order. */
static void test_pairs(void)
{
	struct {
		double value;
		int index;
	} mine = {rank % 2 ? 1.5 : 0.5, rank}, *there = (void *)base;
	struct {
		short value;
		int index;
	} small = {(short)(3 - rank), rank}, *small_there = (void *)(base + 4);

	there->value = -1;
	there->index = 99;
	small_there->value = 99;
	small_there->index = 99;
	OK(MPI_Win_fence(0, win));
	OK(MPI_Accumulate(&mine, 1, MPI_DOUBLE_INT, 0, 0, 1, MPI_DOUBLE_INT, MPI_MAXLOC, win));
	OK(MPI_Accumulate(&small, 1, MPI_SHORT_INT, 0, 4, 1, MPI_SHORT_INT, MPI_MINLOC, win));
	OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
	if (rank == 0) {
		CHECK(there->value == (size > 1 ? 1.5 : 0.5));
		CHECK_EQ(there->index, size > 1 ? 1 : 0);
		CHECK_EQ(small_there->value, 3 - (size - 1));
		CHECK_EQ(small_there->index, size - 1);
	}
	test_barrier();
}

/* Many elements: the sum of all ranks' arrays. */
static void test_arrays(void)
{
	double *there = (void *)base, out[1500];

	for (int i = 0; i < 1500; i++) {
		there[i] = 0;
		out[i] = i + rank * 0.25;
	}
	OK(MPI_Win_fence(0, win));
	/* The displacement counts ints. */
	for (int r = 0; r < size; r++)
		OK(MPI_Accumulate(out, 1500, MPI_DOUBLE, r, 0, 1500, MPI_DOUBLE, MPI_SUM, win));
	OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
	for (int i = 0; i < 1500; i++)
		CHECK(there[i] == i * size + 0.25 * size * (size - 1) / 2);
	test_barrier();
}

static void test_errors(void)
{
	int value = 0, *p, flag;
	MPI_Aint bytes, *size_p;

	OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
	FAILS(MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win), MPI_ERR_RMA_SYNC);
	FAILS(MPI_Win_unlock(0, win), MPI_ERR_RMA_SYNC);
	FAILS(MPI_Win_flush(0, win), MPI_ERR_RMA_SYNC);
	FAILS(MPI_Win_complete(win), MPI_ERR_RMA_SYNC);
	FAILS(MPI_Win_wait(win), MPI_ERR_RMA_SYNC);
	FAILS(MPI_Win_lock(4711, 0, 0, win), MPI_ERR_LOCKTYPE);
	FAILS(MPI_Win_lock(MPI_LOCK_SHARED, size, 0, win), MPI_ERR_RANK);
	FAILS(MPI_Win_fence(1 << 30, win), MPI_ERR_ASSERT);
	OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
	FAILS(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win), MPI_ERR_RMA_SYNC);
	FAILS(MPI_Put(&value, 1, MPI_INT, rank, N, 1, MPI_INT, win), MPI_ERR_RMA_RANGE);
	FAILS(MPI_Put(&value, 1, MPI_INT, rank, N - 1, 2, MPI_INT, win), MPI_ERR_TYPE);
	FAILS(MPI_Put(&value, 1, MPI_INT, rank, -1, 1, MPI_INT, win), MPI_ERR_DISP);
	FAILS(MPI_Put(&value, -1, MPI_INT, rank, 0, 1, MPI_INT, win), MPI_ERR_COUNT);
	FAILS(MPI_Put(&value, 1, MPI_INT, size, 0, 1, MPI_INT, win), MPI_ERR_RANK);
	FAILS(MPI_Accumulate(&value, 1, MPI_INT, rank, 0, 1, MPI_INT, MPI_MAXLOC, win), MPI_ERR_OP);
	FAILS(MPI_Win_free(&win), MPI_ERR_RMA_SYNC);
	OK(MPI_Put(&value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win));
	OK(MPI_Win_unlock(rank, win));
	OK(MPI_Win_get_attr(win, MPI_WIN_BASE, &p, &flag));
	CHECK(flag && p == base);
	OK(MPI_Win_get_attr(win, MPI_WIN_SIZE, &size_p, &flag));
	bytes = flag ? *size_p : 0;
	CHECK_EQ(bytes, (MPI_Aint)(N * sizeof *base));
	FAILS(MPI_Win_attach(win, base, 4), MPI_ERR_RMA_FLAVOR);
	test_barrier();
}

static void test_window(void)
{
	test_fence();
	test_large();
	test_layout();
	test_post_start();
	test_counters();
	test_lock();
	test_requests();
	test_pairs();
	test_arrays();
	test_errors();
}

/* Memory that comes and goes, named by addresses. */
static void test_dynamic(void)
{
	int *memory = calloc(N, sizeof *memory), to = (rank + 1) % size, value = rank + 5, in[2];
	MPI_Aint mine, *all = malloc((size_t)size * sizeof *all);

	OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
	OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
	OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)); /* for MPI_Wait */
	OK(MPI_Win_attach(win, memory, N * sizeof *memory));
	FAILS(MPI_Win_attach(win, memory + 1, 4), MPI_ERR_RMA_ATTACH);
	OK(MPI_Get_address(memory, &mine));
	OK(MPI_Allgather(&mine, 1, MPI_AINT, all, 1, MPI_AINT, MPI_COMM_WORLD));
	OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win));
	OK(MPI_Put(&value, 1, MPI_INT, to, MPI_Aint_add(all[to], 40), 1, MPI_INT, win));
	OK(MPI_Win_flush(to, win));
	OK(MPI_Get(in, 1, MPI_INT, to, MPI_Aint_add(all[to], 40), 1, MPI_INT, win));
	OK(MPI_Win_unlock(to, win));
	CHECK_EQ(in[0], rank + 5);
	test_barrier();
	CHECK_EQ(memory[10], (rank + size - 1) % size + 5);
	/* Behind what is attached: an error, and nothing is touched. */
	OK(MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win));
	int code = MPI_Put(&value, 1, MPI_INT, to, MPI_Aint_add(all[to], N * 4), 1, MPI_INT, win);
	int late = MPI_Win_flush(to, win);
	FAILS(code ? code : late, MPI_ERR_RMA_RANGE);
	OK(MPI_Win_unlock(to, win));
	test_barrier();
	OK(MPI_Win_detach(win, memory));
	FAILS(MPI_Win_detach(win, memory), MPI_ERR_RMA_ATTACH);
	/* What is detached is out of reach. */
	test_barrier();
	OK(MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win));
	code = MPI_Get(in, 1, MPI_INT, to, all[to], 1, MPI_INT, win);
	late = MPI_Win_flush(to, win);
	FAILS(code ? code : late, MPI_ERR_RMA_RANGE);
	int *back = calloc(N, sizeof *back);
	MPI_Request r = MPI_REQUEST_NULL;
	code = MPI_Get(back, N, MPI_INT, to, all[to], N, MPI_INT, win);
	late = MPI_Win_flush(to, win);
	FAILS(code ? code : late, MPI_ERR_RMA_RANGE);
	code = MPI_Put(back, N, MPI_INT, to, all[to], N, MPI_INT, win);
	late = MPI_Win_flush(to, win);
	FAILS(code ? code : late, MPI_ERR_RMA_RANGE);
	code = MPI_Rget(back, N, MPI_INT, to, all[to], N, MPI_INT, win, &r);
	late = MPI_Wait(&r, MPI_STATUS_IGNORE);
	FAILS(code ? code : late, MPI_ERR_RMA_RANGE);
	OK(MPI_Win_flush(to, win));
	OK(MPI_Win_unlock(to, win));
	test_barrier();
	/* More ranges than their table holds, one behind the other: an access may span several. */
	for (int i = 0; i < 128; i++)
		OK(MPI_Win_attach(win, memory + i * (N / 128), N / 128 * sizeof *memory));
	test_barrier();
	OK(MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win));
	for (int i = 0; i < N; i += N / 256) {
		value = 1000 * rank + i;
		OK(MPI_Put(&value, 1, MPI_INT, to, MPI_Aint_add(all[to], 4 * i), 1, MPI_INT, win));
	}
	OK(MPI_Win_flush(to, win));
	OK(MPI_Get(back, N, MPI_INT, to, all[to], N, MPI_INT, win));
	OK(MPI_Win_unlock(to, win));
	for (int i = 0; i < N; i += N / 256)
		CHECK_EQ(back[i], 1000 * rank + i);
	free(back);
	test_barrier();
	for (int i = 127; i >= 0; i--)
		OK(MPI_Win_detach(win, memory + i * (N / 128)));
	OK(MPI_Win_free(&win));
	free(memory);
	free(all);
}

int main(int argc, char **argv)
{
	MPI_Aint bytes, query_size, unit;
	int query_unit, *other;

	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	bytes = N * sizeof *base;
	(void)unit;

	base = malloc((size_t)bytes);
	OK(MPI_Win_create(base, bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
	test_window();
	OK(MPI_Win_free(&win));
	CHECK(win == MPI_WIN_NULL);
	free(base);

	OK(MPI_Win_allocate(bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
	test_window();
	OK(MPI_Win_free(&win));

	OK(MPI_Win_allocate_shared(bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
	OK(MPI_Win_shared_query(win, (rank + 1) % size, &query_size, &query_unit, &other));
	CHECK_EQ(query_size, bytes);
	CHECK_EQ(query_unit, (int)sizeof(int));
	OK(MPI_Win_fence(0, win));
	other[5] = rank;
	OK(MPI_Win_fence(0, win));
	CHECK_EQ(base[5], (rank + size - 1) % size);
	if (rank + 1 < size)
		CHECK(other == base + N); /* one after the other */
	test_window();
	OK(MPI_Win_free(&win));

	test_dynamic();
	return test_end();
}
