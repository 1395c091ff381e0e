/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 */
/* Threads and user-level threads make partitions ready, of one request and of many, while another waits. */
#include <pthread.h>
#include <stdatomic.h>
#include <weft/ult.h>

#include "mpitest.h"

enum { THREADS = 4, PARTS = 4096, EACH = 16, ROUNDS = 30, ULTS = 200 };

static int out[PARTS * EACH], in[PARTS * EACH];
static int right, left, now;
static MPI_Request sends;
static pthread_barrier_t gate;
static _Atomic int x_refused;

static void fill(int part)
{
	for (int i = 0; i < EACH; i++)
		out[part * EACH + i] = rank + now * 31 + part * EACH + i;
}

/* Each thread has every THREADS-th partition; some are given twice, and the second is refused. */
static void *worker(void *arg)
{
	int me = (int)(long)arg, class;

	for (int round = 0; round < ROUNDS; round++) {
		pthread_barrier_wait(&gate);
		for (int p = me; p < PARTS; p += THREADS) {
			fill(p);
			OK(MPI_Pready(p, sends));
			if (p % 1000 != me)
				continue;
			MPI_Error_class(MPI_Pready(p, sends), &class);
			CHECK_EQ(class, MPI_ERR_ARG);
			atomic_fetch_add(&x_refused, 1);
		}
		pthread_barrier_wait(&gate);
	}
	return NULL;
}

static void check(void)
{
	for (int i = 0; i < PARTS * EACH; i++)
		CHECK_EQ(in[i], left + now * 31 + i);
}

static void by_threads(void)
{
	pthread_t t[THREADS];
	MPI_Request recvs;

	OK(MPI_Psend_init(out, PARTS, EACH, MPI_INT, right, 1, MPI_COMM_WORLD, MPI_INFO_NULL,
			  &sends));
	OK(MPI_Precv_init(in, 8, PARTS / 8 * EACH, MPI_INT, left, 1, MPI_COMM_WORLD, MPI_INFO_NULL,
			  &recvs));
	pthread_barrier_init(&gate, NULL, THREADS + 1);
	for (long i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&t[i], NULL, worker, (void *)i));
	for (now = 0; now < ROUNDS; now++) {
		memset(in, 0, sizeof in);
		OK(MPI_Start(&recvs));
		OK(MPI_Start(&sends));
		pthread_barrier_wait(&gate);
		/* While they run: the requests end when the last partition is there. */
		OK(MPI_Wait(&sends, MPI_STATUS_IGNORE));
		OK(MPI_Wait(&recvs, MPI_STATUS_IGNORE));
		pthread_barrier_wait(&gate);
		check();
	}
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_join(t[i], NULL));
	CHECK(atomic_load(&x_refused) > 0);
	OK(MPI_Request_free(&sends));
	OK(MPI_Request_free(&recvs));
}

static void *one_part(void *arg)
{
	int first = (int)(long)arg * (PARTS / ULTS), last = first + PARTS / ULTS;

	if ((int)(long)arg == ULTS - 1)
		last = PARTS;
	for (int p = first; p < last; p++) {
		fill(p);
		OK(MPI_Pready(p, sends));
		if (p % 7 == 0)
			weft_ult_yield();
	}
	return NULL;
}

static void by_ults(void)
{
	static weft_ult *t[ULTS];
	struct weft_ult_attr a = WEFT_ULT_ATTR_INIT;
	MPI_Request recvs;

	a.stack_size = 4096;
	OK(MPI_Psend_init(out, PARTS, EACH, MPI_INT, right, 2, MPI_COMM_WORLD, MPI_INFO_NULL,
			  &sends));
	OK(MPI_Precv_init(in, PARTS, EACH, MPI_INT, left, 2, MPI_COMM_WORLD, MPI_INFO_NULL,
			  &recvs));
	for (now = 100; now < 105; now++) {
		memset(in, 0, sizeof in);
		OK(MPI_Start(&recvs));
		OK(MPI_Start(&sends));
		for (long i = 0; i < ULTS; i++)
			CHECK_EQ(weft_ult_create(&t[i], &a, one_part, (void *)i), WEFT_OK);
		for (int p = 0, flag; p < PARTS; p += 500)
			for (flag = 0; !flag;)
				OK(MPI_Parrived(recvs, p, &flag));
		OK(MPI_Wait(&sends, MPI_STATUS_IGNORE));
		OK(MPI_Wait(&recvs, MPI_STATUS_IGNORE));
		for (int i = 0; i < ULTS; i++)
			CHECK_EQ(weft_ult_join(t[i], NULL), WEFT_OK);
		check();
	}
	OK(MPI_Request_free(&sends));
	OK(MPI_Request_free(&recvs));
}

/* Each thread has a pair of its own, frees it and makes the next: sides are used again at once. */
static void *own_pairs(void *arg)
{
	int me = (int)(long)arg, v[64], w[64];
	MPI_Request s, r;

	for (int round = 0; round < 300; round++) {
		int parts = 1 << (round % 7);
		OK(MPI_Psend_init(v, parts, 64 / parts, MPI_INT, right, 10 + me, test_comm,
				  MPI_INFO_NULL, &s));
		OK(MPI_Precv_init(w, 1, 64, MPI_INT, left, 10 + me, test_comm, MPI_INFO_NULL, &r));
		OK(MPI_Start(&s));
		OK(MPI_Start(&r));
		for (int i = 0; i < 64; i++)
			v[i] = round + me + i;
		for (int p = parts - 1; p >= 0; p--)
			OK(MPI_Pready(p, s));
		OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
		OK(MPI_Wait(&s, MPI_STATUS_IGNORE));
		for (int i = 0; i < 64; i++)
			CHECK_EQ(w[i], round + me + i);
		OK(MPI_Request_free(&s));
		OK(MPI_Request_free(&r));
	}
	return NULL;
}

static void many_pairs(void)
{
	pthread_t t[THREADS];

	for (long i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&t[i], NULL, own_pairs, (void *)i));
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_join(t[i], NULL));
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_MULTIPLE);
	OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	right = (rank + 1) % size;
	left = (rank + size - 1) % size;
	by_threads();
	by_ults();
	many_pairs();
	return test_end();
}
