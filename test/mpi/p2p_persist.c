/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 */
/* Persistent sends and receives start as often as one likes. */
#include "mpitest.h"

static void many_rounds(void)
{
	enum { N = 8 };
	int right = (rank + 1) % size, left = (rank + size - 1) % size;
	int out[N], in[N], flag;
	MPI_Request req[2 * N];
	MPI_Status st[2 * N];

	for (int i = 0; i < N; i++) {
		OK(MPI_Recv_init(&in[i], 1, MPI_INT, left, i, MPI_COMM_WORLD, &req[i]));
		if (i % 2)
			OK(MPI_Send_init(&out[i], 1, MPI_INT, right, i, MPI_COMM_WORLD,
					 &req[N + i]));
		else
			OK(MPI_Ssend_init(&out[i], 1, MPI_INT, right, i, MPI_COMM_WORLD,
					  &req[N + i]));
	}
	OK(MPI_Test(&req[0], &flag, &st[0]));
	CHECK(flag && st[0].MPI_SOURCE == MPI_ANY_SOURCE);
	for (int round = 0; round < 100; round++) {
		for (int i = 0; i < N; i++) {
			out[i] = round * 100 + i + rank;
			in[i] = -1;
		}
		OK(MPI_Startall(2 * N, req));
		FAILS(MPI_Start(&req[0]), MPI_ERR_REQUEST);
		OK(MPI_Waitall(2 * N, req, st));
		for (int i = 0; i < N; i++) {
			CHECK_EQ(in[i], round * 100 + i + left);
			CHECK(req[i] != MPI_REQUEST_NULL);
		}
	}
	for (int i = 0; i < 2 * N; i++) {
		OK(MPI_Request_free(&req[i]));
		CHECK(req[i] == MPI_REQUEST_NULL);
	}
}

static void buffered_ready_nobody(void)
{
	static char room[4096];
	char *back = NULL;
	int v = 5, w = 0, n = 0;
	MPI_Request req[3];

	OK(MPI_Buffer_attach(room, sizeof(room)));
	OK(MPI_Bsend_init(&v, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &req[0]));
	OK(MPI_Recv_init(&w, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &req[1]));
	OK(MPI_Send_init(&v, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_SELF, &req[2]));
	for (int i = 0; i < 5; i++) {
		v = 40 + i;
		OK(MPI_Startall(3, req));
		v = 0;
		OK(MPI_Waitall(3, req, MPI_STATUSES_IGNORE));
		CHECK_EQ(w, 40 + i);
	}
	for (int i = 0; i < 3; i++)
		OK(MPI_Request_free(&req[i]));
	OK(MPI_Rsend_init(&v, 1, MPI_INT, 0, 2, MPI_COMM_SELF, &req[0]));
	OK(MPI_Irecv(&w, 1, MPI_INT, 0, 2, MPI_COMM_SELF, &req[1]));
	v = 9;
	OK(MPI_Start(&req[0]));
	OK(MPI_Waitall(2, req, MPI_STATUSES_IGNORE));
	CHECK_EQ(w, 9);
	OK(MPI_Request_free(&req[0]));
	OK(MPI_Buffer_detach(&back, &n));
	CHECK(back == room && n == (int)sizeof(room));
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	many_rounds();
	buffered_ready_nobody();
	return test_end();
}
