/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 4 */
/* Messages of every mode and many lengths arrive whole, in order, with the right status. */
#include "mpitest.h"

static void fill(unsigned char *b, int n, int seed)
{
	for (int i = 0; i < n; i++)
		b[i] = (unsigned char)(seed * 31 + i * 7 + (i >> 8));
}

static void same(const unsigned char *b, int n, int seed)
{
	for (int i = 0; i < n; i++)
		CHECK_EQ(b[i], (unsigned char)(seed * 31 + i * 7 + (i >> 8)));
}

static int (*const isends[])(const void *, int, MPI_Datatype, int, int, MPI_Comm,
			     MPI_Request *) = {MPI_Isend, MPI_Issend};

static void lengths_around_a_ring(void)
{
	static const int lengths[] = {0,    1,     7,     64,    255,    4096,   8191,
				      8193, 16384, 65535, 65537, 300000, 1048576};
	static unsigned char out[1048576], in[1048576];
	int right = (rank + 1) % size, left = (rank + size - 1) % size;

	for (unsigned m = 0; m < 2; m++)
		for (unsigned k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
			int n = lengths[k], got = -1;
			MPI_Request req;
			MPI_Status st;
			fill(out, n, rank + (int)k);
			memset(in, 0, (size_t)n);
			OK(isends[m](out, n, MPI_BYTE, right, (int)k, MPI_COMM_WORLD, &req));
			OK(MPI_Recv(in, n, MPI_BYTE, left, (int)k, MPI_COMM_WORLD, &st));
			OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
			CHECK(req == MPI_REQUEST_NULL);
			same(in, n, left + (int)k);
			CHECK_EQ(st.MPI_SOURCE, left);
			CHECK_EQ(st.MPI_TAG, (int)k);
			OK(MPI_Get_count(&st, MPI_BYTE, &got));
			CHECK_EQ(got, n);
		}
}

static void order_is_kept(void)
{
	enum { N = 500 };
	int right = (rank + 1) % size, left = (rank + size - 1) % size, v;
	MPI_Request req[N];
	static int out[N];

	for (int i = 0; i < N; i++) {
		out[i] = i;
		OK(MPI_Isend(&out[i], 1, MPI_INT, right, 5, MPI_COMM_WORLD, &req[i]));
	}
	for (int i = 0; i < N; i++) {
		MPI_Status st;
		OK(MPI_Recv(&v, 1, MPI_INT, i % 3 ? left : MPI_ANY_SOURCE, i % 2 ? 5 : MPI_ANY_TAG,
			    MPI_COMM_WORLD, &st));
		CHECK_EQ(v, i);
		CHECK_EQ(st.MPI_SOURCE, left);
		CHECK_EQ(st.MPI_TAG, 5);
	}
	OK(MPI_Waitall(N, req, MPI_STATUSES_IGNORE));
}

static void everyone_to_zero(void)
{
	int v[3] = {rank, rank * rank, 17};
	char seen[64] = {0};
	MPI_Request req;

	OK(MPI_Isend(v, 3, MPI_INT, 0, 100 + rank, MPI_COMM_WORLD, &req));
	for (int i = 0; rank == 0 && i < size; i++) {
		int in[4] = {0}, n;
		MPI_Status st;
		OK(MPI_Recv(in, 4, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &st));
		OK(MPI_Get_count(&st, MPI_INT, &n));
		CHECK_EQ(n, 3);
		CHECK_EQ(in[0], st.MPI_SOURCE);
		CHECK_EQ(st.MPI_TAG, 100 + st.MPI_SOURCE);
		CHECK(!seen[st.MPI_SOURCE]);
		seen[st.MPI_SOURCE] = 1;
	}
	OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
}

static void nobody_answers_at_once(void)
{
	MPI_Status st;
	MPI_Request req;
	int v = 4, n = -1;

	OK(MPI_Send(&v, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD));
	OK(MPI_Recv(&v, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &st));
	CHECK_EQ(st.MPI_SOURCE, MPI_PROC_NULL);
	CHECK_EQ(st.MPI_TAG, MPI_ANY_TAG);
	OK(MPI_Get_count(&st, MPI_INT, &n));
	CHECK_EQ(n, 0);
	OK(MPI_Irecv(&v, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &req));
	OK(MPI_Wait(&req, &st));
	CHECK_EQ(st.MPI_SOURCE, MPI_PROC_NULL);
	CHECK_EQ(v, 4);
}

static void both_ways_in_one_call(void)
{
	int right = (rank + 1) % size, left = (rank + size - 1) % size;
	int out[100], in[100];
	MPI_Status st;
	MPI_Request req;

	for (int i = 0; i < 100; i++)
		out[i] = rank * 1000 + i;
	OK(MPI_Sendrecv(out, 100, MPI_INT, right, 1, in, 100, MPI_INT, left, MPI_ANY_TAG,
			MPI_COMM_WORLD, &st));
	CHECK_EQ(st.MPI_TAG, 1);
	CHECK_EQ(in[99], left * 1000 + 99);
	OK(MPI_Sendrecv_replace(out, 100, MPI_INT, right, 2, left, 2, MPI_COMM_WORLD, &st));
	CHECK_EQ(out[50], left * 1000 + 50);
	OK(MPI_Isendrecv(in, 100, MPI_INT, left, 3, out, 100, MPI_INT, right, 3, MPI_COMM_WORLD,
			 &req));
	OK(MPI_Wait(&req, &st));
	CHECK_EQ(out[7], rank * 1000 + 7);
	OK(MPI_Isendrecv_replace(out, 100, MPI_INT, left, 4, right, 4, MPI_COMM_WORLD, &req));
	OK(MPI_Wait(&req, &st));
	CHECK_EQ(st.MPI_SOURCE, right);
	CHECK_EQ(out[7], right * 1000 + 7);
}

static void ready_and_self(void)
{
	int v = 11, w = 0, flag = 0;
	MPI_Request req;
	MPI_Status st;

	OK(MPI_Irecv(&w, 1, MPI_INT, 0, 9, MPI_COMM_SELF, &req));
	OK(MPI_Test(&req, &flag, &st));
	CHECK(!flag);
	OK(MPI_Rsend(&v, 1, MPI_INT, 0, 9, MPI_COMM_SELF));
	OK(MPI_Wait(&req, &st));
	CHECK_EQ(w, 11);
	CHECK_EQ(st.MPI_SOURCE, 0);
}

static void large_counts(void)
{
	MPI_Count n = -1;
	MPI_Status st;
	MPI_Request req;
	short out[4] = {1, 2, 3, 4}, in[4] = {0};

	OK(MPI_Isend_c(out, 4, MPI_SHORT, rank, 8, MPI_COMM_WORLD, &req));
	OK(MPI_Recv_c(in, 4, MPI_SHORT, rank, 8, MPI_COMM_WORLD, &st));
	OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
	OK(MPI_Get_count_c(&st, MPI_SHORT, &n));
	CHECK_EQ(n, 4);
	OK(MPI_Get_elements_x(&st, MPI_SHORT, &n));
	CHECK_EQ(n, 4);
	CHECK_EQ(in[3], 4);
	CHECK_EQ(PMPI_Comm_rank(MPI_COMM_SELF, &size), MPI_SUCCESS);
	OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	lengths_around_a_ring();
	test_barrier();
	order_is_kept();
	test_barrier();
	everyone_to_zero();
	test_barrier();
	nobody_answers_at_once();
	both_ways_in_one_call();
	ready_and_self();
	large_counts();
	return test_end();
}
