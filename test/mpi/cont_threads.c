/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 2 */
/* Continuations and threads: callbacks in the background while no thread calls MPI; inside another
 * thread's calls; one continuation request used by several threads at once. */
#include <mpi-ext.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "mpitest.h"

#define THREADS 4
#define EACH 2000

static MPI_Request cont;
static sem_t came;
static _Atomic int ran;

static int post_cb(int rc, void *arg)
{
	(void)arg;
	CHECK_EQ(rc, MPI_SUCCESS);
	sem_post(&came);
	return MPI_SUCCESS;
}

static void cont_new(const char *threads)
{
	MPI_Info info;

	OK(MPI_Info_create(&info));
	OK(MPI_Info_set(info, "mpi_continue_thread", threads));
	OK(MPIX_Continue_init(0, 0, info, &cont));
	OK(MPI_Info_free(&info));
	OK(MPI_Start(&cont));
}

/* The receiver sleeps outside MPI; the callback runs all the same. */
static void in_the_background(size_t bytes)
{
	char *data = calloc(1, bytes);
	MPI_Request r;

	CHECK(data != NULL);
	for (int i = 0; i < 50; i++) {
		if (rank == 0) {
			OK(MPI_Irecv(data, (int)bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &r));
			OK(MPIX_Continue(&r, post_cb, NULL, 0, MPI_STATUS_IGNORE, cont));
			OK(MPI_Send(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
			while (sem_wait(&came))
				;
		} else {
			OK(MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
			OK(MPI_Send(data, (int)bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD));
		}
	}
	free(data);
}

static int count_cb(int rc, void *arg)
{
	CHECK_EQ(rc, MPI_SUCCESS);
	CHECK_EQ(*(int *)arg, 1);
	*(int *)arg = 2;
	atomic_fetch_add(&ran, 1);
	return MPI_SUCCESS;
}

struct one {
	int from, to, done;
};

/* Sends to itself on the other rank: tag says the thread. */
static void *worker(void *arg)
{
	int tag = (int)(size_t)arg;
	static struct one all[THREADS][EACH];

	for (int i = 0; i < EACH; i++) {
		struct one *o = &all[tag][i];
		MPI_Request r[2];
		o->from = i;
		o->done = 1;
		OK(MPI_Irecv(&o->to, 1, MPI_INT, 1 - rank, tag, MPI_COMM_WORLD, &r[0]));
		OK(MPI_Isend(&o->from, 1, MPI_INT, 1 - rank, tag, MPI_COMM_WORLD, &r[1]));
		OK(MPIX_Continueall(2, r, count_cb, &o->done, 0, MPI_STATUSES_IGNORE, cont));
	}
	return NULL;
}

static void together(const char *threads)
{
	pthread_t t[THREADS];

	cont_new(threads);
	atomic_store(&ran, 0);
	for (size_t i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, worker, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	OK(MPI_Wait(&cont, MPI_STATUS_IGNORE));
	CHECK_EQ(atomic_load(&ran), THREADS * EACH);
	OK(MPI_Request_free(&cont));
}

static void *receive(void *arg)
{
	OK(MPI_Recv(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	return arg;
}

/* A thread in some other call runs the callback of this one, which is in no call. */
static void in_another_call(void)
{
	pthread_t t;
	MPI_Request r;
	int in = 0, out = 6;

	cont_new("application");
	if (rank == 0) {
		OK(MPI_Irecv(&in, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &r));
		OK(MPIX_Continue(&r, post_cb, NULL, 0, MPI_STATUS_IGNORE, cont));
		CHECK_EQ(pthread_create(&t, NULL, receive, NULL), 0);
		OK(MPI_Send(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
		while (sem_wait(&came))
			;
		CHECK_EQ(in, 6);
		OK(MPI_Send(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
		CHECK_EQ(pthread_join(t, NULL), 0);
	} else {
		OK(MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
		OK(MPI_Send(&out, 1, MPI_INT, 0, 3, MPI_COMM_WORLD));
		OK(MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
		OK(MPI_Send(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD));
	}
	OK(MPI_Wait(&cont, MPI_STATUS_IGNORE));
	OK(MPI_Request_free(&cont));
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_MULTIPLE);
	CHECK_EQ(sem_init(&came, 0, 0), 0);
	cont_new("all");
	in_the_background(8);
	in_the_background(3 << 20);
	OK(MPI_Wait(&cont, MPI_STATUS_IGNORE));
	OK(MPI_Request_free(&cont));
	together("all");
	together("application");
	in_another_call();
	test_barrier();
	return test_end();
}
