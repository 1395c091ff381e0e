/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 4 */
/* Wait and test in all their forms complete what is complete, and nothing else. */
#include "mpitest.h"

enum { N = 100 };
static int in[N], out[N];
static MPI_Request rx[N], tx[N];

/* Posts N receives from the left; the right neighbour's sends come with start_sends. */
static void post(void)
{
	for (int i = 0; i < N; i++) {
		in[i] = -1;
		OK(MPI_Irecv(&in[i], 1, MPI_INT, (rank + size - 1) % size, i, MPI_COMM_WORLD,
			     &rx[i]));
	}
}

static void start_sends(void)
{
	for (int i = 0; i < N; i++) {
		out[i] = rank * N + i;
		OK(MPI_Isend(&out[i], 1, MPI_INT, (rank + 1) % size, i, MPI_COMM_WORLD, &tx[i]));
	}
}

static void finish(void)
{
	int left = (rank + size - 1) % size;

	OK(MPI_Waitall(N, tx, MPI_STATUSES_IGNORE));
	for (int i = 0; i < N; i++) {
		CHECK(rx[i] == MPI_REQUEST_NULL && tx[i] == MPI_REQUEST_NULL);
		CHECK_EQ(in[i], left * N + i);
	}
	test_barrier();
}

static void all(void)
{
	MPI_Status st[N];
	int flag = 1;

	post();
	test_barrier();
	OK(MPI_Testall(N, rx, &flag, st));
	CHECK(!flag);
	test_barrier();
	start_sends();
	OK(MPI_Waitall(N, rx, st));
	for (int i = 0; i < N; i++) {
		CHECK_EQ(st[i].MPI_TAG, i);
		CHECK_EQ(st[i].MPI_ERROR, MPI_SUCCESS);
	}
	finish();
	post();
	start_sends();
	for (flag = 0; !flag;)
		OK(MPI_Testall(N, rx, &flag, st));
	finish();
}

static void any(void)
{
	char seen[N] = {0};
	int i, flag;
	MPI_Status st;

	post();
	start_sends();
	for (int k = 0; k < N / 2; k++) {
		OK(MPI_Waitany(N, rx, &i, &st));
		CHECK(i >= 0 && i < N && !seen[i]);
		CHECK_EQ(st.MPI_TAG, i);
		seen[i] = 1;
	}
	for (int k = N / 2; k < N;) {
		OK(MPI_Testany(N, rx, &i, &flag, &st));
		if (!flag)
			continue;
		CHECK(i >= 0 && i < N && !seen[i]);
		seen[i] = 1;
		k++;
	}
	OK(MPI_Waitany(N, rx, &i, &st));
	CHECK_EQ(i, MPI_UNDEFINED);
	CHECK_EQ(st.MPI_SOURCE, MPI_ANY_SOURCE);
	OK(MPI_Testany(N, rx, &i, &flag, &st));
	CHECK(flag && i == MPI_UNDEFINED);
	finish();
}

static void some(void)
{
	int done = 0, n, where[N];
	MPI_Status st[N];

	post();
	start_sends();
	for (int turn = 0; done < N; turn++) {
		if (turn % 2)
			OK(MPI_Testsome(N, rx, &n, where, st));
		else
			OK(MPI_Waitsome(N, rx, &n, where, st));
		CHECK(turn % 2 || n > 0);
		for (int k = 0; k < n; k++)
			CHECK_EQ(st[k].MPI_TAG, where[k]);
		done += n;
	}
	OK(MPI_Waitsome(N, rx, &n, where, st));
	CHECK_EQ(n, MPI_UNDEFINED);
	OK(MPI_Testsome(N, rx, &n, where, st));
	CHECK_EQ(n, MPI_UNDEFINED);
	finish();
}

static void look_first(void)
{
	MPI_Status st, sts[2];
	MPI_Request two[2];
	int v[2] = {0}, w = 3, flag = 1, i, n, where[2];

	OK(MPI_Irecv(&v[0], 1, MPI_INT, 0, 1, MPI_COMM_SELF, &two[0]));
	OK(MPI_Irecv(&v[1], 1, MPI_INT, 0, 2, MPI_COMM_SELF, &two[1]));
	OK(MPI_Request_get_status(two[0], &flag, &st));
	CHECK(!flag);
	OK(MPI_Send(&w, 1, MPI_INT, 0, 2, MPI_COMM_SELF));
	for (flag = 0; !flag;)
		OK(MPI_Request_get_status(two[1], &flag, &st));
	CHECK_EQ(st.MPI_TAG, 2);
	OK(MPI_Request_get_status_any(2, two, &i, &flag, &st));
	CHECK(flag && i == 1);
	OK(MPI_Request_get_status_some(2, two, &n, where, sts));
	CHECK(n == 1 && where[0] == 1);
	OK(MPI_Request_get_status_all(2, two, &flag, sts));
	CHECK(!flag);
	OK(MPI_Send(&w, 1, MPI_INT, 0, 1, MPI_COMM_SELF));
	for (flag = 0; !flag;)
		OK(MPI_Request_get_status_all(2, two, &flag, sts));
	CHECK(two[0] != MPI_REQUEST_NULL);
	OK(MPI_Waitall(2, two, sts));
	CHECK(v[0] == 3 && v[1] == 3);
	OK(MPI_Request_get_status(MPI_REQUEST_NULL, &flag, &st));
	CHECK(flag && st.MPI_SOURCE == MPI_ANY_SOURCE && st.MPI_TAG == MPI_ANY_TAG);
}

static void null_requests(void)
{
	MPI_Request none[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
	MPI_Status st[3];
	int flag = 0;

	OK(MPI_Wait(&none[0], &st[0]));
	CHECK(st[0].MPI_SOURCE == MPI_ANY_SOURCE && st[0].MPI_ERROR == MPI_SUCCESS);
	OK(MPI_Test(&none[0], &flag, &st[0]));
	CHECK(flag);
	OK(MPI_Waitall(3, none, st));
	OK(MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE));
	OK(MPI_Testall(3, none, &flag, st));
	CHECK(flag);
}

static void freed_while_active(void)
{
	static int v[50], w[50];
	MPI_Request req;

	for (int i = 0; i < 50; i++) {
		w[i] = i;
		OK(MPI_Irecv(&v[i], 1, MPI_INT, 0, 77, MPI_COMM_SELF, &req));
		OK(MPI_Request_free(&req));
		CHECK(req == MPI_REQUEST_NULL);
	}
	for (int i = 0; i < 50; i++) {
		OK(MPI_Isend(&w[i], 1, MPI_INT, 0, 77, MPI_COMM_SELF, &req));
		OK(MPI_Request_free(&req));
	}
	int last = 1, got = 0;
	OK(MPI_Sendrecv(&last, 1, MPI_INT, 0, 78, &got, 1, MPI_INT, 0, 78, MPI_COMM_SELF,
			MPI_STATUS_IGNORE));
	for (int i = 0; i < 50; i++)
		CHECK_EQ(v[i], i);
}

/* Small sends, most of them over as they start, in every way to complete them; their requests go back and forth
 * with others of the same pool, and their handles are good once. */
static void over_at_once(void)
{
	int next = (rank + 1) % size, left = (rank + size - 1) % size, flag, i, code;
	int value[6] = {0, 1, 2, 3, 4, 5};
	MPI_Request req[6], copy, keep;
	MPI_Status st;

	OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	for (int round = 0; round < 50; round++) {
		for (i = 0; i < 6; i++)
			OK(MPI_Isend(&value[i], 1, MPI_INT, next, i, MPI_COMM_WORLD, &req[i]));
		OK(MPI_Recv_init(&code, 1, MPI_INT, left, 7, MPI_COMM_WORLD, &keep));
		for (flag = 0; !flag;)
			OK(MPI_Request_get_status(req[0], &flag, &st));
		CHECK(st.MPI_SOURCE == MPI_ANY_SOURCE && st.MPI_TAG == MPI_ANY_TAG);
		copy = req[0];
		OK(MPI_Wait(&req[0], &st));
		CHECK_EQ(st.MPI_TAG, MPI_ANY_TAG);
		CHECK_EQ(MPI_Wait(&copy, &st), MPI_ERR_REQUEST);
		OK(MPI_Cancel(&req[1]));
		OK(MPI_Wait(&req[1], &st));
		OK(MPI_Test_cancelled(&st, &flag));
		if (flag) /* a strategy still held it */
			OK(MPI_Send(&value[1], 1, MPI_INT, next, 1, MPI_COMM_WORLD));
		OK(MPI_Request_free(&req[2]));
		for (flag = 0; !flag;)
			OK(MPI_Test(&req[3], &flag, MPI_STATUS_IGNORE));
		CHECK(req[3] == MPI_REQUEST_NULL);
		OK(MPI_Waitany(6, req, &i, &st));
		CHECK(i == 4 || i == 5);
		OK(MPI_Waitall(6, req, MPI_STATUSES_IGNORE));
		for (i = 0; i < 6; i++) {
			int got = -1;
			CHECK(req[i] == MPI_REQUEST_NULL);
			OK(MPI_Recv(&got, 1, MPI_INT, left, i, MPI_COMM_WORLD, &st));
			CHECK_EQ(got, i);
		}
		OK(MPI_Request_free(&keep));
	}
	test_barrier();
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	all();
	any();
	some();
	look_first();
	null_requests();
	freed_while_active();
	over_at_once();
	return test_end();
}
