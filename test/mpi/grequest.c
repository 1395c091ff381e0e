/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 */
/* Generalized requests: waited for beside others, completed by a thread, freed and cancelled. */
#include <pthread.h>
#include <time.h>

#include "mpitest.h"

static int frees, cancels;

/* What the callbacks of failing() return. */
static int query_code, free_code, cancel_code;

static int query_fails(void *extra, MPI_Status *st)
{
	(void)extra;
	OK(MPI_Status_set_elements(st, MPI_INT, 0));
	OK(MPI_Status_set_cancelled(st, 0));
	st->MPI_ERROR = MPI_ERR_INTERN; /* not the callback's to set */
	return query_code;
}

static int release_fails(void *extra)
{
	++*(int *)extra;
	return free_code;
}

static int cancel_fails(void *extra, int complete)
{
	(void)extra, (void)complete;
	return cancel_code;
}

static int freed;

static MPI_Request failing(int q, int f, int c)
{
	MPI_Request r;

	query_code = q;
	free_code = f;
	cancel_code = c;
	freed = 0;
	OK(MPI_Grequest_start(query_fails, release_fails, cancel_fails, &freed, &r));
	return r;
}

static MPI_Request failing_done(int q, int f)
{
	MPI_Request r = failing(q, f, MPI_SUCCESS);

	OK(MPI_Grequest_complete(r));
	return r;
}

/* The codes of the callbacks come out of the call that ran them; the last that failed counts. */
static void callbacks_fail(void)
{
	MPI_Status st = {.MPI_ERROR = 77}, sts[1];
	MPI_Request r;
	int flag, i;

	r = failing_done(MPI_ERR_BUFFER, MPI_SUCCESS);
	FAILS(MPI_Wait(&r, &st), MPI_ERR_BUFFER);
	CHECK_EQ(st.MPI_ERROR, 77); /* calls that complete one request leave it */
	CHECK(r == MPI_REQUEST_NULL && freed == 1);
	r = failing_done(MPI_SUCCESS, MPI_ERR_BUFFER);
	FAILS(MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_ERR_BUFFER);
	r = failing_done(MPI_ERR_TOPOLOGY, MPI_ERR_BUFFER);
	FAILS(MPI_Test(&r, &flag, &st), MPI_ERR_BUFFER);
	CHECK(flag && r == MPI_REQUEST_NULL && freed == 1);
	r = failing_done(MPI_SUCCESS, MPI_ERR_BUFFER);
	FAILS(MPI_Waitany(1, &r, &i, &st), MPI_ERR_BUFFER);
	r = failing_done(MPI_SUCCESS, MPI_ERR_BUFFER);
	FAILS(MPI_Testany(1, &r, &i, &flag, &st), MPI_ERR_BUFFER);
	r = failing_done(MPI_SUCCESS, MPI_ERR_BUFFER);
	FAILS(MPI_Waitall(1, &r, sts), MPI_ERR_IN_STATUS);
	CHECK_EQ(sts[0].MPI_ERROR, MPI_ERR_BUFFER);
	r = failing_done(MPI_SUCCESS, MPI_ERR_BUFFER);
	FAILS(MPI_Waitsome(1, &r, &i, &flag, sts), MPI_ERR_IN_STATUS);
	CHECK_EQ(sts[0].MPI_ERROR, MPI_ERR_BUFFER);
	r = failing_done(MPI_ERR_TOPOLOGY, MPI_ERR_BUFFER);
	FAILS(MPI_Request_free(&r), MPI_ERR_BUFFER); /* asks no status */
	CHECK(r == MPI_REQUEST_NULL && freed == 1);
	r = failing(MPI_SUCCESS, MPI_SUCCESS, MPI_ERR_BUFFER);
	FAILS(MPI_Cancel(&r), MPI_ERR_BUFFER);
	OK(MPI_Grequest_complete(r));
	OK(MPI_Wait(&r, &st));
}

static void *free_it(void *arg)
{
	OK(MPI_Request_free(arg));
	return NULL;
}

/* Freed while active: its end is the call that completes it, also when both come at once. */
static void freed_while_active(void)
{
	MPI_Request r = failing(MPI_SUCCESS, MPI_SUCCESS, MPI_SUCCESS), copy = r;
	pthread_t t;

	OK(MPI_Request_free(&r));
	CHECK(r == MPI_REQUEST_NULL && freed == 0);
	OK(MPI_Grequest_complete(copy));
	CHECK_EQ(freed, 1);
	FAILS(MPI_Grequest_complete(copy), MPI_ERR_REQUEST);
	copy = r = failing(MPI_SUCCESS, MPI_ERR_BUFFER, MPI_SUCCESS);
	OK(MPI_Request_free(&r));
	FAILS(MPI_Grequest_complete(copy), MPI_ERR_BUFFER);
	for (int i = 0; i < 200; i++) {
		copy = r = failing(MPI_SUCCESS, MPI_SUCCESS, MPI_SUCCESS);
		CHECK_EQ(pthread_create(&t, NULL, free_it, &r), 0);
		OK(MPI_Grequest_complete(copy));
		CHECK_EQ(pthread_join(t, NULL), 0);
		CHECK_EQ(freed, 1);
	}
	/* One that is never completed keeps no rank from ending. */
	r = failing(MPI_SUCCESS, MPI_SUCCESS, MPI_SUCCESS);
	OK(MPI_Request_free(&r));
}

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
	callbacks_fail();
	freed_while_active();
	return test_end();
}
