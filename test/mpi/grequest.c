/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/* Generalized requests: waited for beside others, completed by a thread, freed and cancelled. */
#include <pthread.h>
#include <time.h>

#include "mpitest.h"

static int frees, cancels;

static int query(void *extra, MPI_Status *st)
{
	OK(MPI_Status_set_elements(st, MPI_INT, *(int *)extra));
	OK(MPI_Status_set_cancelled(st, cancels));
	st->MPI_SOURCE = 11;
	st->MPI_TAG = 12;
	return MPI_SUCCESS;
}

static int release(void *extra)
{
	(void)extra;
	frees++;
	return MPI_SUCCESS;
}

static int cancel(void *extra, int complete)
{
	(void)extra;
	CHECK(!complete);
	cancels++;
	return MPI_SUCCESS;
}

static void *complete_later(void *arg)
{
	struct timespec ms = {.tv_nsec = 20000000};

	nanosleep(&ms, NULL); /* the waiter sleeps by then, or not: both must work */
	OK(MPI_Grequest_complete(*(MPI_Request *)arg));
	return NULL;
}

int main(int argc, char **argv)
{
	int extra = 7, n = 0, flag = 1, v = 0, w = 1;
	MPI_Request req, two[2];
	MPI_Status st, sts[2];
	pthread_t t;

	test_start(&argc, &argv, MPI_THREAD_MULTIPLE);
	OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	OK(MPI_Grequest_start(query, release, cancel, &extra, &req));
	OK(MPI_Test(&req, &flag, &st));
	CHECK(!flag);
	CHECK_EQ(pthread_create(&t, NULL, complete_later, &req), 0);
	MPI_Request copy = req;
	OK(MPI_Wait(&copy, &st));
	CHECK_EQ(pthread_join(t, NULL), 0);
	OK(MPI_Get_count(&st, MPI_INT, &n));
	CHECK(n == 7 && st.MPI_SOURCE == 11 && st.MPI_TAG == 12 && frees == 1);

	OK(MPI_Grequest_start(query, release, cancel, &extra, &two[0]));
	OK(MPI_Irecv(&v, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &two[1]));
	OK(MPI_Send(&w, 1, MPI_INT, 0, 0, MPI_COMM_SELF));
	OK(MPI_Waitany(2, two, &n, &st));
	CHECK_EQ(n, 1);
	OK(MPI_Cancel(&two[0]));
	CHECK_EQ(cancels, 1);
	OK(MPI_Grequest_complete(two[0]));
	OK(MPI_Waitall(2, two, sts));
	OK(MPI_Test_cancelled(&sts[0], &flag));
	CHECK(flag && frees == 2);

	OK(MPI_Irecv(&v, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &req));
	FAILS(MPI_Grequest_complete(req), MPI_ERR_REQUEST);
	OK(MPI_Cancel(&req));
	OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
	return test_end();
}
