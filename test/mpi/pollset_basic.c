/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 3 */
/* The descriptor for a set of requests: readable when one is complete, for every kind of request;
 * what is taken is complete; wrong arguments are errors. */
#include <mpi-ext.h>
#include <poll.h>

#include "mpitest.h"

#define MANY 500

static MPIX_Pollset set;
static int fd;

/* Sleeps until something can be taken, by the descriptor alone; the key. */
static void *next(void)
{
	void *key = NULL;
	int n = 0, ready;

	while (!n) { /* ends when a request is complete */
		OK(MPIX_Pollset_arm(set, &ready));
		struct pollfd p = {.fd = fd, .events = POLLIN};
		if (!ready)
			CHECK_EQ(poll(&p, 1, -1), 1);
		OK(MPIX_Pollset_take(set, 1, &key, &n));
	}
	return key;
}

/* A request that is taken out is complete; collectives may have to be added again. */
static void until_over(MPI_Request *r, int n)
{
	for (int i = 0; i < n; i++)
		OK(MPIX_Pollset_add(set, r[i], &r[i]));
	for (int left = n, flag; left;) {
		MPI_Request *one = next();
		OK(MPI_Test(one, &flag, MPI_STATUS_IGNORE));
		if (flag)
			left--;
		else
			OK(MPIX_Pollset_add(set, *one, one));
	}
}

static void messages(void)
{
	static int in[MANY], seen[MANY];
	static MPI_Request r[MANY];
	int flag, before = (rank + size - 1) % size, after = (rank + 1) % size;

	for (int i = 0; i < MANY; i++) {
		OK(MPI_Irecv(&in[i], 1, MPI_INT, before, i, MPI_COMM_WORLD, &r[i]));
		OK(MPIX_Pollset_add(set, r[i], &r[i]));
		seen[i] = 0;
	}
	test_barrier();
	for (int i = MANY - 1; i >= 0; i--)
		OK(MPI_Send(&i, 1, MPI_INT, after, i, MPI_COMM_WORLD));
	for (int left = MANY; left; left--) {
		MPI_Request *one = next();
		OK(MPI_Test(one, &flag, MPI_STATUS_IGNORE));
		CHECK(flag && !seen[one - r]++);
		CHECK_EQ(in[one - r], one - r);
	}
}

/* A peer's message makes it readable while this rank sleeps in poll; small and large. */
static void asleep(int bytes)
{
	char *data = calloc(1, (size_t)bytes);
	MPI_Request r;

	CHECK(data != NULL);
	for (int i = 0; i < 20 && size > 1 && rank < 2; i++) {
		if (rank == 0) {
			OK(MPI_Irecv(data, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &r));
			OK(MPI_Send(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
			until_over(&r, 1);
		} else {
			OK(MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
			OK(MPI_Send(data, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD));
		}
	}
	free(data);
}

static void user_sum(void *in, void *inout, int *len, MPI_Datatype *type)
{
	(void)type;
	for (int i = 0; i < *len; i++)
		((int *)inout)[i] += ((int *)in)[i];
}

static int query(void *extra, MPI_Status *st)
{
	(void)extra;
	OK(MPI_Status_set_elements(st, MPI_INT, 0));
	return MPI_Status_set_cancelled(st, 0);
}

static int release(void *extra)
{
	(void)extra;
	return MPI_SUCCESS;
}

static int cancel(void *extra, int complete)
{
	(void)extra, (void)complete;
	return MPI_SUCCESS;
}

static void kinds(void)
{
	int one = 1, sum = 0, all = 0, flag;
	MPI_Request r[4], grequest, persistent;
	MPI_Comm dup;
	MPI_Op op;

	OK(MPI_Op_create(user_sum, 1, &op));
	OK(MPI_Ibarrier(MPI_COMM_WORLD, &r[0]));
	OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT, op, MPI_COMM_WORLD, &r[1]));
	OK(MPI_Comm_idup(MPI_COMM_WORLD, &dup, &r[2]));
	OK(MPI_Iallreduce(&rank, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &r[3]));
	until_over(r, 4);
	CHECK(sum == size && all == size - 1);
	OK(MPI_Comm_free(&dup));
	OK(MPI_Op_free(&op));
	OK(MPI_Grequest_start(query, release, cancel, NULL, &grequest));
	OK(MPIX_Pollset_add(set, grequest, &sum));
	struct pollfd p = {.fd = fd, .events = POLLIN};
	void *key;
	OK(MPIX_Pollset_arm(set, &flag));
	OK(MPIX_Pollset_take(set, 1, &key, &flag));
	CHECK_EQ(flag, 0);
	OK(MPI_Grequest_complete(grequest));
	CHECK_EQ(poll(&p, 1, -1), 1);
	CHECK(next() == &sum);
	OK(MPI_Wait(&grequest, MPI_STATUS_IGNORE));
	OK(MPI_Recv_init(&sum, 1, MPI_INT, 0, 77, MPI_COMM_SELF, &persistent));
	FAILS(MPIX_Pollset_add(set, persistent, NULL), MPI_ERR_REQUEST);
	OK(MPI_Start(&persistent));
	OK(MPI_Send(&one, 1, MPI_INT, 0, 77, MPI_COMM_SELF));
	OK(MPIX_Pollset_add(set, persistent, &persistent));
	CHECK(next() == &persistent);
	OK(MPI_Wait(&persistent, MPI_STATUS_IGNORE));
	OK(MPI_Request_free(&persistent));
	CHECK_EQ(sum, 1);
}

static void mistakes(void)
{
	MPIX_Pollset other;
	MPI_Request r;
	void *key;
	int n, in, out = 3;

	FAILS(MPIX_Pollset_create(NULL), MPI_ERR_ARG);
	FAILS(MPIX_Pollset_add(set, MPI_REQUEST_NULL, NULL), MPI_ERR_REQUEST);
	FAILS(MPIX_Pollset_add(MPIX_POLLSET_NULL, MPI_REQUEST_NULL, NULL), MPI_ERR_ARG);
	FAILS(MPIX_Pollset_take(set, -1, &key, &n), MPI_ERR_COUNT);
	FAILS(MPIX_Pollset_take(set, 1, NULL, &n), MPI_ERR_ARG);
	FAILS(MPIX_Pollset_fd(set, NULL), MPI_ERR_ARG);
	FAILS(MPIX_Pollset_arm(MPIX_POLLSET_NULL, &n), MPI_ERR_ARG);
	OK(MPIX_Pollset_take(set, 1, &key, &n));
	CHECK_EQ(n, 0);
	/* Freed with a request in it, which then goes on as if nothing had been. */
	OK(MPIX_Pollset_create(&other));
	OK(MPI_Irecv(&in, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &r));
	OK(MPIX_Pollset_add(other, r, NULL));
	OK(MPIX_Pollset_free(&other));
	CHECK(other == MPIX_POLLSET_NULL);
	FAILS(MPIX_Pollset_free(&other), MPI_ERR_ARG);
	OK(MPI_Send(&out, 1, MPI_INT, 0, 0, MPI_COMM_SELF));
	OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
	CHECK_EQ(in, 3);
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	OK(MPIX_Pollset_create(&set));
	OK(MPIX_Pollset_fd(set, &fd));
	messages();
	asleep(8);
	asleep(3 << 20);
	kinds();
	mistakes();
	test_barrier();
	OK(MPIX_Pollset_free(&set));
	return test_end();
}
