/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that end in the midst of things: cancelled while they wait, or before they send, the
 * operation completes first; with operations in flight, others complete them; in a destructor of
 * thread-specific data MPI works; and the main thread may end before the others.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include "mpitest.h"

#define ROUNDS 40
#define LARGE (1 << 20)

static _Atomic int x_begun, x_done;
static int value;

/* ---- cancelled ------------------------------------------------------------------------------- */

static void *receives(void *arg)
{
	(void)arg;
	atomic_store(&x_begun, 1);
	OK(MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	atomic_store(&x_done, 1);
	pthread_testcancel();
	CHECK(!"not cancelled after its receive");
	return NULL;
}

/* Wherever it is: about to wait, polling, or asleep for all. */
static void cancelled_in_a_wait(int round)
{
	pthread_t t;
	void *result;
	int go = round;
	if (rank == 0) {
		OK(MPI_Recv(&go, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
		OK(MPI_Send(&go, 1, MPI_INT, 1, 1, MPI_COMM_WORLD));
		return;
	}
	if (rank != 1)
		return;
	atomic_store(&x_begun, 0);
	atomic_store(&x_done, 0);
	CHECK_EQ(pthread_create(&t, NULL, receives, NULL), 0);
	while (!atomic_load(&x_begun)) /* ends: it starts */
		sched_yield();
	/* Any time will do; the longer ones mostly find it asleep. */
	struct timespec nap = {0, 100000 * (round % 20)};
	nanosleep(&nap, NULL);
	CHECK_EQ(pthread_cancel(t), 0);
	OK(MPI_Send(&go, 1, MPI_INT, 0, 2, MPI_COMM_WORLD));
	CHECK_EQ(pthread_join(t, &result), 0);
	CHECK(result == PTHREAD_CANCELED);
	CHECK_EQ(atomic_load(&x_done), 1);
	CHECK_EQ(value, round);
}

/* Its cancel is pending from the first call on; none of them acts on it. */
static void *talks(void *arg)
{
	char *data = arg;
	int peer = 1 - rank, flag, sum = 0;
	MPI_Request r[2];
	CHECK_EQ(pthread_cancel(pthread_self()), 0);
	for (int n = 1; n <= LARGE; n *= 1024) {
		OK(MPI_Irecv(data + LARGE, n, MPI_CHAR, peer, 3, MPI_COMM_WORLD, &r[0]));
		OK(MPI_Isend(data, n, MPI_CHAR, peer, 3, MPI_COMM_WORLD, &r[1]));
		OK(MPI_Iprobe(peer, 4, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
		OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
		OK(MPI_Sendrecv(&rank, 1, MPI_INT, peer, 5, &value, 1, MPI_INT, peer, 5,
				MPI_COMM_WORLD, MPI_STATUS_IGNORE));
		CHECK_EQ(value, peer);
	}
	OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
	CHECK_EQ(sum, 1);
	atomic_fetch_add(&x_done, 1);
	pthread_testcancel();
	return NULL;
}

static void cancelled_before_calls(void)
{
	pthread_t t;
	void *result;
	char *data = calloc(2, LARGE);
	CHECK(data != NULL);
	atomic_store(&x_done, 0);
	CHECK_EQ(pthread_create(&t, NULL, talks, data), 0);
	CHECK_EQ(pthread_join(t, &result), 0);
	CHECK(result == PTHREAD_CANCELED);
	CHECK_EQ(atomic_load(&x_done), 1);
	free(data);
}

/* ---- operations outlive their thread --------------------------------------------------------- */

static struct {
	char *in, *out;
	MPI_Request r[4];
	int small[2];
} left;

static void *starts(void *arg)
{
	int peer = 1 - rank;
	(void)arg;
	OK(MPI_Irecv(left.in, LARGE, MPI_CHAR, peer, 6, MPI_COMM_WORLD, &left.r[0]));
	OK(MPI_Irecv(&left.small[0], 1, MPI_INT, peer, 7, MPI_COMM_WORLD, &left.r[1]));
	OK(MPI_Isend(left.out, LARGE, MPI_CHAR, peer, 6, MPI_COMM_WORLD, &left.r[2]));
	OK(MPI_Isend(&left.small[1], 1, MPI_INT, peer, 7, MPI_COMM_WORLD, &left.r[3]));
	pthread_exit(NULL);
}

static void ends_with_operations(int round)
{
	pthread_t t;
	left.in = malloc(LARGE);
	left.out = malloc(LARGE);
	CHECK(left.in && left.out);
	memset(left.out, rank + round, LARGE);
	left.small[1] = 1000 * rank + round;
	CHECK_EQ(pthread_create(&t, NULL, starts, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	OK(MPI_Waitall(4, left.r, MPI_STATUSES_IGNORE));
	CHECK_EQ(left.small[0], 1000 * (1 - rank) + round);
	for (int i = 0; i < LARGE; i += 4095)
		CHECK_EQ(left.in[i], (char)(1 - rank + round));
	free(left.in);
	free(left.out);
}

/* ---- destructors ----------------------------------------------------------------------------- */

static pthread_key_t early, late;

static void says_good_bye(void *arg)
{
	int peer = 1 - rank, got = -1, mine = (int)(intptr_t)arg;
	OK(MPI_Sendrecv(&mine, 1, MPI_INT, peer, 8, &got, 1, MPI_INT, peer, 8, MPI_COMM_WORLD,
			MPI_STATUS_IGNORE));
	CHECK_EQ(got, mine);
	atomic_fetch_add(&x_done, 1);
}

/* Each destructor sets the other key: they are called again, after ours have been, too. */
static void comes_again(void *arg)
{
	says_good_bye(arg);
	if ((intptr_t)arg == 1)
		pthread_setspecific(late, (void *)(intptr_t)2);
}

static void *sets_keys(void *arg)
{
	int peer = 1 - rank, got;
	CHECK_EQ(pthread_setspecific(early, (void *)(intptr_t)1), 0);
	if (arg) /* one that has called MPI, one that has not */
		OK(MPI_Sendrecv(&rank, 1, MPI_INT, peer, 9, &got, 1, MPI_INT, peer, 9,
				MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	return NULL;
}

static void destructors_call_mpi(int rounds)
{
	pthread_t t;
	atomic_store(&x_done, 0);
	for (int i = 0; i < rounds; i++) {
		CHECK_EQ(pthread_create(&t, NULL, sets_keys, i % 2 ? &x_done : NULL), 0);
		CHECK_EQ(pthread_join(t, NULL), 0);
	}
	CHECK_EQ(atomic_load(&x_done), 2 * rounds);
}

/* ---- main ends first ------------------------------------------------------------------------- */

static void *goes_on(void *arg)
{
	pthread_t main_thread = *(pthread_t *)arg;
	CHECK_EQ(pthread_join(main_thread, NULL), 0);
	for (int i = 0; i < ROUNDS; i++)
		test_barrier();
	ends_with_operations(ROUNDS);
	exit(test_end());
}

int main(int argc, char **argv)
{
	static pthread_t self, t;
	test_start(&argc, &argv, MPI_THREAD_MULTIPLE);
	CHECK_EQ(pthread_key_create(&early, comes_again), 0);
	CHECK_EQ(pthread_key_create(&late, says_good_bye), 0);
	for (int i = 0; i < ROUNDS; i++)
		cancelled_in_a_wait(i);
	for (int i = 0; i < ROUNDS / 4; i++)
		cancelled_before_calls();
	for (int i = 0; i < ROUNDS / 4; i++)
		ends_with_operations(i);
	destructors_call_mpi(ROUNDS / 2);
	self = pthread_self();
	CHECK_EQ(pthread_create(&t, NULL, goes_on, &self), 0);
	pthread_exit(NULL);
}
