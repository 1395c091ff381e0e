/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 4 */
/* Thousands of user-level threads wait in MPI calls, each for its own message, and block alone. */
#include <stdatomic.h>
#include <weft/ult.h>

#include "mpitest.h"

enum { MANY = 2000, FEW = 50, TURNS = 20, WORDS = 20000 };

static _Atomic int x_waiting, x_answered;

static int right(void)
{
	return (rank + 1) % size;
}

static int left(void)
{
	return (rank + size - 1) % size;
}

/* All of them wait before the first message comes. */
static void *answers(void *arg)
{
	int tag = (int)(long)arg, value = -1;
	MPI_Status st;

	atomic_fetch_add(&x_waiting, 1);
	OK(MPI_Recv(&value, 1, MPI_INT, left(), tag, MPI_COMM_WORLD, &st));
	CHECK_EQ(value, left() * MANY + tag);
	CHECK_EQ(st.MPI_TAG, tag);
	atomic_fetch_add(&x_answered, 1);
	return NULL;
}

static void each_waits_for_its_own(void)
{
	static weft_ult *t[MANY];
	struct weft_ult_attr a = WEFT_ULT_ATTR_INIT;

	a.stack_size = 4096; /* enough for messages: what needs more runs on the worker's stack */
	atomic_store(&x_waiting, 0);
	for (long i = 0; i < MANY; i++)
		CHECK_EQ(weft_ult_create(&t[i], &a, answers, (void *)i), WEFT_OK);
	while (atomic_load(&x_waiting) < MANY)
		weft_ult_sleep_ns(100000);
	OK(MPI_Barrier(MPI_COMM_WORLD));
	for (int i = MANY - 1; i >= 0; i--) {
		int value = rank * MANY + i;
		OK(MPI_Send(&value, 1, MPI_INT, right(), i, MPI_COMM_WORLD));
	}
	for (int i = 0; i < MANY; i++)
		CHECK_EQ(weft_ult_join(t[i], NULL), WEFT_OK);
	CHECK_EQ(atomic_load(&x_answered), MANY);
	atomic_store(&x_answered, 0);
}

/* There and back, small and large, in every kind of wait. */
static void *talks(void *arg)
{
	int tag = (int)(long)arg, n = tag % 5 ? 8 : WORDS;
	int *out = malloc(sizeof(*out) * (size_t)n), *in = malloc(sizeof(*in) * (size_t)n);
	MPI_Request req[2];
	MPI_Status st;

	CHECK(out && in);
	for (int turn = 0; turn < TURNS; turn++) {
		int which, flag = 0;
		for (int i = 0; i < n; i++)
			out[i] = rank + tag + turn + i;
		OK(MPI_Irecv(in, n, MPI_INT, left(), tag, MPI_COMM_WORLD, &req[0]));
		OK(MPI_Isend(out, n, MPI_INT, right(), tag, MPI_COMM_WORLD, &req[1]));
		switch (turn % 4) {
		case 0:
			OK(MPI_Waitall(2, req, MPI_STATUSES_IGNORE));
			break;
		case 1:
			OK(MPI_Waitany(2, req, &which, &st));
			OK(MPI_Wait(&req[!which], &st));
			break;
		case 2:
			while (!flag) {
				OK(MPI_Test(&req[0], &flag, &st));
				weft_ult_yield();
			}
			OK(MPI_Wait(&req[1], &st));
			break;
		default:
			OK(MPI_Wait(&req[0], &st));
			OK(MPI_Wait(&req[1], &st));
		}
		CHECK_EQ(in[n - 1], left() + tag + turn + n - 1);
	}
	OK(MPI_Sendrecv(out, n, MPI_INT, right(), tag, in, n, MPI_INT, left(), tag, MPI_COMM_WORLD,
			&st));
	free(out);
	free(in);
	return NULL;
}

static void every_kind_of_wait(void)
{
	static weft_ult *t[FEW];

	for (long i = 0; i < FEW; i++)
		CHECK_EQ(weft_ult_create(&t[i], NULL, talks, (void *)i), WEFT_OK);
	for (int i = 0; i < FEW; i++)
		CHECK_EQ(weft_ult_join(t[i], NULL), WEFT_OK);
}

/* Collectives, each thread on a communicator of its own. */
static MPI_Comm comm[4];

static void *reduces(void *arg)
{
	MPI_Comm c = comm[(long)arg];

	for (int turn = 0; turn < TURNS; turn++) {
		int sum = 0, mine = rank + turn;
		OK(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, c));
		CHECK_EQ(sum, size * turn + size * (size - 1) / 2);
		OK(MPI_Barrier(c));
	}
	return NULL;
}

static void collectives(void)
{
	weft_ult *t[4];

	for (int i = 0; i < 4; i++)
		OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]));
	for (long i = 0; i < 4; i++)
		CHECK_EQ(weft_ult_create(&t[i], NULL, reduces, (void *)i), WEFT_OK);
	for (int i = 0; i < 4; i++) {
		CHECK_EQ(weft_ult_join(t[i], NULL), WEFT_OK);
		OK(MPI_Comm_free(&comm[i]));
	}
}

int main(int argc, char **argv)
{
	int got;

	OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &got));
	CHECK_EQ(got, MPI_THREAD_MULTIPLE);
	OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
	CHECK_EQ(weft_ult_start(0), WEFT_OK);
	for (int turn = 0; turn < 2; turn++)
		each_waits_for_its_own();
	every_kind_of_wait();
	collectives();
	OK(MPI_Barrier(MPI_COMM_WORLD));
	CHECK_EQ(weft_ult_stop(), WEFT_OK);
	OK(MPI_Finalize());
	return 0;
}
