/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 */
/* Wrong arguments and messages that do not fit give the right error class, and nothing breaks. */
#include <stdint.h>

#include "mpitest.h"

static MPI_Comm W;

static void arguments(void)
{
	int v = 0, flag;
	MPI_Request req;
	MPI_Status st;

	FAILS(MPI_Send(&v, 1, MPI_INT, size, 0, W), MPI_ERR_RANK);
	FAILS(MPI_Send(&v, 1, MPI_INT, -7, 0, W), MPI_ERR_RANK);
	FAILS(MPI_Send(&v, 1, MPI_INT, MPI_ANY_SOURCE, 0, W), MPI_ERR_RANK);
	FAILS(MPI_Send(&v, 1, MPI_INT, 0, -1, W), MPI_ERR_TAG);
	FAILS(MPI_Send(&v, 1, MPI_INT, 0, MPI_ANY_TAG, W), MPI_ERR_TAG);
	FAILS(MPI_Send(&v, -1, MPI_INT, 0, 0, W), MPI_ERR_COUNT);
	FAILS(MPI_Send(&v, 1, MPI_DATATYPE_NULL, 0, 0, W), MPI_ERR_TYPE);
	FAILS(MPI_Send(&v, 1, (MPI_Datatype)(uintptr_t)0x123456789abcdef0, 0, 0, W), MPI_ERR_TYPE);
	FAILS(MPI_Send(NULL, 1, MPI_INT, 0, 0, W), MPI_ERR_BUFFER);
	FAILS(MPI_Send(&v, 1, MPI_INT, 0, 0, MPI_COMM_NULL), MPI_ERR_COMM);
	FAILS(MPI_Send(&v, 1, MPI_INT, 0, 0, (MPI_Comm)(uintptr_t)7), MPI_ERR_COMM);
	FAILS(MPI_Send(&v, 1, MPI_INT, 0, 0, (MPI_Comm)(uintptr_t)MPI_INT), MPI_ERR_COMM);
	FAILS(MPI_Recv(&v, 1, MPI_INT, size, 0, W, &st), MPI_ERR_RANK);
	FAILS(MPI_Recv(&v, 1, MPI_INT, 0, -5, W, &st), MPI_ERR_TAG);
	FAILS(MPI_Irecv(&v, 1, MPI_INT, 0, 0, W, NULL), MPI_ERR_ARG);
	FAILS(MPI_Iprobe(0, 0, W, NULL, &st), MPI_ERR_ARG);
	FAILS(MPI_Comm_rank(W, NULL), MPI_ERR_ARG);
	req = MPI_REQUEST_NULL;
	FAILS(MPI_Start(&req), MPI_ERR_REQUEST);
	FAILS(MPI_Cancel(&req), MPI_ERR_REQUEST);
	FAILS(MPI_Request_free(&req), MPI_ERR_REQUEST);
	req = (MPI_Request)(uintptr_t)0x0900000100000005;
	FAILS(MPI_Wait(&req, &st), MPI_ERR_REQUEST);
	FAILS(MPI_Waitall(-1, &req, &st), MPI_ERR_COUNT);
	FAILS(MPI_Test(&req, &flag, &st), MPI_ERR_REQUEST);
}

static void stale_handles(void)
{
	int v = 0;
	MPI_Request req, old;
	MPI_Comm comm, gone;
	MPI_Group group, group2;
	MPI_Info info, info2;

	OK(MPI_Irecv(&v, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &req));
	old = req;
	OK(MPI_Cancel(&req));
	OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
	FAILS(MPI_Wait(&old, MPI_STATUS_IGNORE), MPI_ERR_REQUEST);
	OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
	gone = comm;
	OK(MPI_Comm_free(&comm));
	CHECK(comm == MPI_COMM_NULL);
	FAILS(MPI_Comm_rank(gone, &v), MPI_ERR_COMM);
	FAILS(MPI_Comm_free(&gone), MPI_ERR_COMM);
	gone = MPI_COMM_WORLD;
	FAILS(MPI_Comm_free(&gone), MPI_ERR_COMM);
	OK(MPI_Comm_group(MPI_COMM_SELF, &group));
	group2 = group;
	OK(MPI_Group_free(&group));
	FAILS(MPI_Group_size(group2, &v), MPI_ERR_GROUP);
	OK(MPI_Info_create(&info));
	info2 = info;
	OK(MPI_Info_free(&info));
	FAILS(MPI_Info_get_nkeys(info2, &v), MPI_ERR_INFO);
	FAILS(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRHANDLER_NULL), MPI_ERR_ERRHANDLER);
}

/* The bytes beyond the buffer stay as they are; the sender completes; later messages are whole. */
static void truncated(int n)
{
	static unsigned char out[300000], in[300000];
	MPI_Request req;
	MPI_Status st;
	int from = (rank + 1) % size, got = 0;

	memset(out, 3, (size_t)n);
	memset(in, 9, sizeof(in));
	OK(MPI_Isend(out, n, MPI_BYTE, (rank + size - 1) % size, 1, W, &req));
	FAILS(MPI_Recv(in, n / 2, MPI_BYTE, from, 1, W, &st), MPI_ERR_TRUNCATE);
	OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
	CHECK_EQ(in[n / 2], 9);
	OK(MPI_Isend(out, n, MPI_BYTE, (rank + size - 1) % size, 2, W, &req));
	OK(MPI_Recv(in, n, MPI_BYTE, from, 2, W, &st));
	OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
	OK(MPI_Get_count(&st, MPI_BYTE, &got));
	CHECK_EQ(got, n);
	CHECK_EQ(in[n - 1], 3);
}

static void one_of_many_fails(void)
{
	MPI_Request req[3];
	MPI_Status st[3];
	int v[3] = {0}, w[2] = {1, 2};

	for (int i = 0; i < 3; i++)
		OK(MPI_Irecv(&v[i], 1, MPI_INT, 0, i, MPI_COMM_SELF, &req[i]));
	OK(MPI_Send(w, 1, MPI_INT, 0, 0, MPI_COMM_SELF));
	OK(MPI_Send(w, 2, MPI_INT, 0, 1, MPI_COMM_SELF));
	OK(MPI_Send(w, 1, MPI_INT, 0, 2, MPI_COMM_SELF));
	FAILS(MPI_Waitall(3, req, st), MPI_ERR_IN_STATUS);
	CHECK_EQ(st[0].MPI_ERROR, MPI_SUCCESS);
	CHECK_EQ(st[1].MPI_ERROR, MPI_ERR_TRUNCATE);
	CHECK_EQ(st[2].MPI_ERROR, MPI_SUCCESS);
}

static void not_supported(void)
{
	int cls = 0;

	OK(MPI_Error_class(MPI_ERR_UNSUPPORTED_OPERATION, &cls));
	CHECK_EQ(cls, MPI_ERR_UNSUPPORTED_OPERATION);
}

int main(int argc, char **argv)
{
	static const int lengths[] = {2, 1000, 20000, 300000};

	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	W = MPI_COMM_WORLD;
	OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	arguments();
	stale_handles();
	for (int i = 0; i < 4; i++)
		truncated(lengths[i]);
	one_of_many_fails();
	not_supported();
	FAILS(MPI_Init(NULL, NULL), MPI_ERR_OTHER);
	return test_end();
}
