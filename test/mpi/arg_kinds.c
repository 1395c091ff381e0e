/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 */
/* Arguments are judged by what they are in each function, not by their names: tags, ranks, roots,
 * counts, handles and pointers of every family of functions; and a status may hold any tag and source. */
#include <limits.h>

#include "mpitest.h"

#define W MPI_COMM_WORLD

static int buf[4], other[4];
static MPI_Status st;
static MPI_Request req;
static MPI_Message msg;

static void sends_and_receives(void)
{
	static int (*const send[])(const void *, int, MPI_Datatype, int, int,
				   MPI_Comm) = {MPI_Send, MPI_Bsend, MPI_Ssend, MPI_Rsend};
	static int (*const start[])(const void *, int, MPI_Datatype, int, int, MPI_Comm,
				    MPI_Request *) = {MPI_Isend,      MPI_Ibsend,    MPI_Issend,
						      MPI_Irsend,     MPI_Send_init, MPI_Bsend_init,
						      MPI_Ssend_init, MPI_Rsend_init};
	static int (*const start_c[])(const void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm,
				      MPI_Request *) = {MPI_Isend_c, MPI_Issend_c, MPI_Send_init_c};
	for (size_t i = 0; i < sizeof(send) / sizeof(send[0]); i++) {
		FAILS(send[i](buf, 1, MPI_INT, 0, -1, W), MPI_ERR_TAG);
		FAILS(send[i](buf, 1, MPI_INT, 0, MPI_ANY_TAG, W), MPI_ERR_TAG);
		FAILS(send[i](buf, 1, MPI_INT, size, 0, W), MPI_ERR_RANK);
		FAILS(send[i](buf, 1, MPI_INT, MPI_ANY_SOURCE, 0, W), MPI_ERR_RANK);
		FAILS(send[i](buf, -1, MPI_INT, 0, 0, W), MPI_ERR_COUNT);
		FAILS(send[i](buf, 1, MPI_DATATYPE_NULL, 0, 0, W), MPI_ERR_TYPE);
		FAILS(send[i](buf, 1, MPI_INT, 0, 0, MPI_COMM_NULL), MPI_ERR_COMM);
		OK(send[i](buf, 1, MPI_INT, MPI_PROC_NULL, 0, W));
		/* "Has no effect" and "succeeds", MPI says: nothing of the data is looked at but its
		 * count. */
		OK(send[i](NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, W));
	}
	for (size_t i = 0; i < sizeof(start) / sizeof(start[0]); i++) {
		FAILS(start[i](buf, 1, MPI_INT, 0, MPI_ANY_TAG, W, &req), MPI_ERR_TAG);
		FAILS(start[i](buf, 1, MPI_INT, -7, 0, W, &req), MPI_ERR_RANK);
		FAILS(start[i](buf, -1, MPI_INT, 0, 0, W, &req), MPI_ERR_COUNT);
		FAILS(start[i](buf, 1, MPI_INT, 0, 0, W, NULL), MPI_ERR_ARG);
	}
	for (size_t i = 0; i < sizeof(start_c) / sizeof(start_c[0]); i++) {
		FAILS(start_c[i](buf, 1, MPI_INT, 0, -3, W, &req), MPI_ERR_TAG);
		FAILS(start_c[i](buf, -1, MPI_INT, 0, 0, W, &req), MPI_ERR_COUNT);
	}
	FAILS(MPI_Recv(buf, 1, MPI_INT, size, 0, W, &st), MPI_ERR_RANK);
	FAILS(MPI_Recv(buf, 1, MPI_INT, MPI_ROOT, 0, W, &st), MPI_ERR_RANK);
	FAILS(MPI_Recv(buf, 1, MPI_INT, 0, -5, W, &st), MPI_ERR_TAG);
	FAILS(MPI_Recv(buf, -1, MPI_INT, 0, 0, W, &st), MPI_ERR_COUNT);
	FAILS(MPI_Recv_init(buf, 1, MPI_INT, 0, -5, W, &req), MPI_ERR_TAG);
	OK(MPI_Recv(buf, 1, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG, W, &st));
	OK(MPI_Irecv(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, W, &req));
	OK(MPI_Wait(&req, &st));
	CHECK_EQ(st.MPI_SOURCE, MPI_PROC_NULL);
	OK(MPI_Recv_init(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, W, &req));
	OK(MPI_Start(&req));
	OK(MPI_Wait(&req, &st));
	OK(MPI_Request_free(&req));
	FAILS(MPI_Irecv(NULL, 0, MPI_DATATYPE_NULL, 0, 0, W, &req), MPI_ERR_TYPE);
	OK(MPI_Irecv(buf, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, W, &req));
	OK(MPI_Cancel(&req));
	OK(MPI_Wait(&req, &st));
	OK(MPI_Recv_init(buf, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, W, &req));
	OK(MPI_Request_free(&req));
}

static void pairs_and_probes(void)
{
	int flag;

	/* Each tag belongs to the rank before it: the first may not be a wildcard, the second may. */
	FAILS(MPI_Sendrecv(buf, 1, MPI_INT, 0, MPI_ANY_TAG, other, 1, MPI_INT, 0, 0, W, &st),
	      MPI_ERR_TAG);
	FAILS(MPI_Sendrecv(buf, 1, MPI_INT, 0, 0, other, 1, MPI_INT, 0, -5, W, &st), MPI_ERR_TAG);
	FAILS(MPI_Sendrecv(buf, 1, MPI_INT, MPI_ANY_SOURCE, 0, other, 1, MPI_INT, 0, 0, W, &st),
	      MPI_ERR_RANK);
	FAILS(MPI_Sendrecv(buf, 1, MPI_INT, 0, 0, other, -1, MPI_INT, 0, 0, W, &st), MPI_ERR_COUNT);
	OK(MPI_Sendrecv(buf, 1, MPI_INT, rank, 3, other, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, W,
			&st));
	FAILS(MPI_Isendrecv(buf, 1, MPI_INT, 0, MPI_ANY_TAG, other, 1, MPI_INT, 0, 0, W, &req),
	      MPI_ERR_TAG);
	FAILS(MPI_Sendrecv_replace(buf, 1, MPI_INT, 0, MPI_ANY_TAG, 0, 0, W, &st), MPI_ERR_TAG);
	FAILS(MPI_Sendrecv_replace(buf, 1, MPI_INT, 0, 0, size, 0, W, &st), MPI_ERR_RANK);
	OK(MPI_Sendrecv_replace(buf, 1, MPI_INT, rank, 3, MPI_ANY_SOURCE, MPI_ANY_TAG, W, &st));
	FAILS(MPI_Iprobe(size, 0, W, &flag, &st), MPI_ERR_RANK);
	FAILS(MPI_Iprobe(0, -5, W, &flag, &st), MPI_ERR_TAG);
	FAILS(MPI_Improbe(0, -5, W, &flag, &msg, &st), MPI_ERR_TAG);
	FAILS(MPI_Probe(-9, 0, W, &st), MPI_ERR_RANK);
	FAILS(MPI_Mprobe(0, -2000, W, &msg, &st), MPI_ERR_TAG);
	OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, W, &flag, &st));
	OK(MPI_Iprobe(MPI_PROC_NULL, MPI_ANY_TAG, W, &flag, &st));
	CHECK(flag);
}

static void communicators(void)
{
	MPI_Comm c;
	MPI_Group g;
	int n;

	OK(MPI_Comm_group(W, &g));
	FAILS(MPI_Comm_create_group(W, g, -1, &c), MPI_ERR_TAG);
	FAILS(MPI_Comm_create_group(W, g, MPI_ANY_TAG, &c), MPI_ERR_TAG);
	FAILS(MPI_Comm_create_group(W, MPI_GROUP_NULL, 0, &c), MPI_ERR_GROUP);
	FAILS(MPI_Intercomm_create(W, 0, W, 0, -1, &c), MPI_ERR_TAG);
	FAILS(MPI_Intercomm_create(W, size, W, 0, 0, &c), MPI_ERR_RANK);
	FAILS(MPI_Comm_size(MPI_COMM_NULL, &n), MPI_ERR_COMM);
	FAILS(MPI_Comm_size(W, NULL), MPI_ERR_ARG);
	FAILS(MPI_Comm_dup((MPI_Comm)MPI_INT, &c), MPI_ERR_COMM);
	FAILS(MPI_Comm_split_type(W, 4711, 0, MPI_INFO_NULL, &c), MPI_ERR_ARG);
	OK(MPI_Group_free(&g));
}

static void collectives(void)
{
	MPI_Op op = MPI_SUM;

	FAILS(MPI_Bcast(buf, 1, MPI_INT, size, W), MPI_ERR_ROOT);
	FAILS(MPI_Bcast(buf, 1, MPI_INT, MPI_PROC_NULL, W), MPI_ERR_ROOT);
	FAILS(MPI_Bcast(buf, -1, MPI_INT, 0, W), MPI_ERR_COUNT);
	FAILS(MPI_Ibcast(buf, 1, MPI_INT, -1, W, &req), MPI_ERR_ROOT);
	FAILS(MPI_Gather(buf, 1, MPI_INT, other, 1, MPI_INT, MPI_ROOT, W), MPI_ERR_ROOT);
	FAILS(MPI_Scatter_init(buf, 1, MPI_INT, other, 1, MPI_INT, size, W, MPI_INFO_NULL, &req),
	      MPI_ERR_ROOT);
	FAILS(MPI_Reduce(buf, other, -1, MPI_INT, op, 0, W), MPI_ERR_COUNT);
	FAILS(MPI_Reduce(buf, other, 1, MPI_INT, op, size, W), MPI_ERR_ROOT);
	FAILS(MPI_Allreduce(buf, other, 1, MPI_DATATYPE_NULL, op, W), MPI_ERR_TYPE);
	FAILS(MPI_Allreduce(buf, other, 1, MPI_INT, MPI_OP_NULL, W), MPI_ERR_OP);
	FAILS(MPI_Allgather(buf, -1, MPI_INT, other, 1, MPI_INT, W), MPI_ERR_COUNT);
	FAILS(MPI_Alltoall_c(buf, 1, MPI_INT, other, -1, MPI_INT, W), MPI_ERR_COUNT);
	FAILS(MPI_Reduce_local(buf, other, -1, MPI_INT, op), MPI_ERR_COUNT);
	FAILS(MPI_Barrier(MPI_COMM_NULL), MPI_ERR_COMM);
	FAILS(MPI_Ibarrier(W, NULL), MPI_ERR_ARG);
}

static void datatypes(void)
{
	MPI_Datatype t;
	MPI_Count n;
	int at = 0, i;

	FAILS(MPI_Type_contiguous(-1, MPI_INT, &t), MPI_ERR_COUNT);
	FAILS(MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &t), MPI_ERR_TYPE);
	FAILS(MPI_Type_vector(-1, 1, 1, MPI_INT, &t), MPI_ERR_COUNT);
	/* A stride is no count. */
	OK(MPI_Type_vector(2, 1, -3, MPI_INT, &t));
	OK(MPI_Type_free(&t));
	OK(MPI_Type_create_hvector(2, 1, -8, MPI_INT, &t));
	OK(MPI_Type_free(&t));
	FAILS(MPI_Type_create_struct(-1, NULL, NULL, NULL, &t), MPI_ERR_COUNT);
	FAILS(MPI_Pack(buf, -1, MPI_INT, other, sizeof(other), &at, W), MPI_ERR_COUNT);
	FAILS(MPI_Unpack(buf, sizeof(buf), &at, other, -1, MPI_INT, W), MPI_ERR_COUNT);
	FAILS(MPI_Pack_size(-1, MPI_INT, W, &i), MPI_ERR_COUNT);
	FAILS(MPI_Type_size(MPI_DATATYPE_NULL, &i), MPI_ERR_TYPE);
	FAILS(MPI_Type_size_c(MPI_INT, NULL), MPI_ERR_ARG);
	OK(MPI_Type_size_c(MPI_INT, &n));
	CHECK_EQ(n, sizeof(int));
}

/* No communicator, so no rank or tag is out of range there. */
static void statuses(void)
{
	static const int values[] = {0, 7, -1, -2, -3, -5, -77, INT_MAX, INT_MIN};

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		int v = values[i], got = ~v;
		OK(MPI_Status_set_tag(&st, v));
		OK(MPI_Status_get_tag(&st, &got));
		CHECK_EQ(got, v);
		OK(MPI_Status_set_source(&st, v));
		OK(MPI_Status_get_source(&st, &got));
		CHECK_EQ(got, v);
		OK(MPI_Status_set_error(&st, v));
		OK(MPI_Status_get_error(&st, &got));
		CHECK_EQ(got, v);
	}
	FAILS(MPI_Status_set_elements(&st, MPI_INT, -1), MPI_ERR_COUNT);
	FAILS(MPI_Status_set_tag(NULL, 0), MPI_ERR_ARG);
	FAILS(MPI_Get_count(&st, MPI_DATATYPE_NULL, buf), MPI_ERR_TYPE);
}

static void requests(void)
{
	MPI_Request none = MPI_REQUEST_NULL;
	int flag, n;

	FAILS(MPI_Waitall(-1, &req, MPI_STATUSES_IGNORE), MPI_ERR_COUNT);
	FAILS(MPI_Testany(-1, &req, &n, &flag, &st), MPI_ERR_COUNT);
	FAILS(MPI_Startall(-1, &req), MPI_ERR_COUNT);
	FAILS(MPI_Start(&none), MPI_ERR_REQUEST);
	FAILS(MPI_Request_free(&none), MPI_ERR_REQUEST);
	FAILS(MPI_Wait(NULL, &st), MPI_ERR_ARG);
	FAILS(MPI_Test(&none, NULL, &st), MPI_ERR_ARG);
	OK(MPI_Wait(&none, MPI_STATUS_IGNORE));
}

static void groups_topologies_infos(void)
{
	MPI_Group g, h;
	MPI_Info info;
	MPI_Comm c;
	int dims[1] = {0}, bad = -1, n;

	OK(MPI_Comm_group(W, &g));
	FAILS(MPI_Group_incl(g, -1, &bad, &h), MPI_ERR_ARG);
	FAILS(MPI_Group_incl(g, 1, &bad, &h), MPI_ERR_RANK);
	FAILS(MPI_Group_translate_ranks(g, -1, &bad, g, &n), MPI_ERR_ARG);
	FAILS(MPI_Group_size(MPI_GROUP_NULL, &n), MPI_ERR_GROUP);
	OK(MPI_Group_free(&g));
	FAILS(MPI_Cart_create(W, -1, dims, dims, 0, &c), MPI_ERR_DIMS);
	FAILS(MPI_Cartdim_get(W, &n), MPI_ERR_TOPOLOGY);
	dims[0] = size;
	OK(MPI_Cart_create(W, 1, dims, dims, 0, &c));
	FAILS(MPI_Cart_coords(c, size, 1, &n), MPI_ERR_RANK);
	FAILS(MPI_Cart_coords(c, -1, 1, &n), MPI_ERR_RANK);
	OK(MPI_Comm_free(&c));
	FAILS(MPI_Info_get_nkeys(MPI_INFO_NULL, &n), MPI_ERR_INFO);
	OK(MPI_Info_create(&info));
	FAILS(MPI_Info_set(info, NULL, "1"), MPI_ERR_ARG);
	FAILS(MPI_Comm_dup_with_info(W, (MPI_Info)MPI_INT, &c), MPI_ERR_INFO);
	OK(MPI_Info_free(&info));
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	OK(MPI_Comm_set_errhandler(W, MPI_ERRORS_RETURN));
	OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	sends_and_receives();
	pairs_and_probes();
	communicators();
	collectives();
	datatypes();
	statuses();
	requests();
	groups_topologies_infos();
	return test_end();
}
