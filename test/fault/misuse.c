/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * misuse.c - wrong arguments to everything beside point-to-point give the right class, and messages
 * go on; test/mpi/p2p_errors.c has the rest.
 *
 * All mistakes are counted before the program ends; a crash names the line that led to it.
 */
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#include "../mpi/mpitest.h"

static volatile int at_line;
static int mistakes;

/* One of up to two classes; says where it is not so and goes on. */
#define GIVES2(call, a, b)                                                                         \
	do {                                                                                       \
		int cls = -1, code;                                                                \
		at_line = __LINE__;                                                                \
		code = (call);                                                                     \
		MPI_Error_class(code, &cls);                                                       \
		if (cls != (a) && cls != (b)) {                                                    \
			fprintf(stderr, "misuse.c:%d: class %d, want %s: %s\n", __LINE__, cls, #a, \
				#call);                                                            \
			mistakes++;                                                                \
		}                                                                                  \
	} while (0)
#define GIVES(call, a) GIVES2(call, a, a)

#define WILD(type, value) ((type)(uintptr_t)(value))

static MPI_Comm W;
static int v[8], w[8];

static void on_fault(int s)
{
	static char text[] = "misuse.c:00000: crash\n";
	int line = at_line;

	for (int i = 13; i > 8; i--, line /= 10)
		text[i] = (char)('0' + line % 10);
	(void)!write(2, text, sizeof(text) - 1);
	_exit(128 + s);
}

static void collectives(void)
{
	MPI_Request req;
	MPI_Op op;

	GIVES(MPI_Bcast(v, 1, MPI_INT, size, W), MPI_ERR_ROOT);
	GIVES(MPI_Bcast(v, 1, MPI_INT, -1, W), MPI_ERR_ROOT);
	GIVES(MPI_Bcast(v, -1, MPI_INT, 0, W), MPI_ERR_COUNT);
	GIVES(MPI_Bcast(v, 1, MPI_DATATYPE_NULL, 0, W), MPI_ERR_TYPE);
	GIVES(MPI_Bcast(v, 1, MPI_INT, 0, MPI_COMM_NULL), MPI_ERR_COMM);
	GIVES(MPI_Ibcast(v, 1, MPI_INT, 0, W, NULL), MPI_ERR_ARG);
	GIVES(MPI_Barrier(MPI_COMM_NULL), MPI_ERR_COMM);
	GIVES(MPI_Ibarrier(WILD(MPI_Comm, 3), &req), MPI_ERR_COMM);
	GIVES(MPI_Allreduce(v, w, 1, MPI_INT, MPI_OP_NULL, W), MPI_ERR_OP);
	GIVES(MPI_Allreduce(v, w, 1, MPI_INT, WILD(MPI_Op, 0x7777000011112222), W), MPI_ERR_OP);
	GIVES(MPI_Allreduce(v, w, 1, MPI_FLOAT, MPI_BAND, W), MPI_ERR_OP);
	GIVES(MPI_Allreduce(v, w, -2, MPI_INT, MPI_SUM, W), MPI_ERR_COUNT);
	GIVES(MPI_Allreduce(NULL, w, 1, MPI_INT, MPI_SUM, W), MPI_ERR_BUFFER);
	GIVES(MPI_Reduce(v, w, 1, MPI_INT, MPI_SUM, 99, W), MPI_ERR_ROOT);
	GIVES(MPI_Reduce_local(v, w, 1, MPI_INT, MPI_OP_NULL), MPI_ERR_OP);
	GIVES(MPI_Scan(v, w, 1, MPI_DATATYPE_NULL, MPI_SUM, W), MPI_ERR_TYPE);
	GIVES(MPI_Gather(v, 1, MPI_INT, w, 1, MPI_INT, size + 5, W), MPI_ERR_ROOT);
	GIVES(MPI_Scatter(v, -1, MPI_INT, w, -1, MPI_INT, 0, W), MPI_ERR_COUNT);
	GIVES2(MPI_Alltoallv(v, NULL, v, MPI_INT, w, v, v, MPI_INT, W), MPI_ERR_ARG, MPI_ERR_COUNT);
	GIVES(MPI_Op_create(NULL, 1, &op), MPI_ERR_ARG);
	op = MPI_SUM;
	GIVES(MPI_Op_free(&op), MPI_ERR_OP);
	op = MPI_OP_NULL;
	GIVES(MPI_Op_free(&op), MPI_ERR_OP);
}

static void datatypes(void)
{
	MPI_Datatype t, gone, parts[1] = {MPI_INT};
	int bad[1] = {-1}, one[1] = {1}, n, pos = 0;
	MPI_Aint zero[1] = {0}, lb, extent;

	GIVES(MPI_Type_contiguous(-1, MPI_INT, &t), MPI_ERR_COUNT);
	GIVES(MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &t), MPI_ERR_TYPE);
	GIVES(MPI_Type_contiguous(1, MPI_INT, NULL), MPI_ERR_ARG);
	GIVES2(MPI_Type_vector(2, -1, 1, MPI_INT, &t), MPI_ERR_ARG, MPI_ERR_COUNT);
	GIVES2(MPI_Type_indexed(1, bad, one, MPI_INT, &t), MPI_ERR_ARG, MPI_ERR_COUNT);
	GIVES2(MPI_Type_create_struct(1, bad, zero, parts, &t), MPI_ERR_ARG, MPI_ERR_COUNT);
	GIVES(MPI_Type_create_struct(1, NULL, zero, parts, &t), MPI_ERR_ARG);
	GIVES2(MPI_Type_create_subarray(1, one, one, one, MPI_ORDER_C, MPI_INT, &t), MPI_ERR_ARG,
	       MPI_ERR_COUNT);
	OK(MPI_Type_contiguous(2, MPI_INT, &t));
	GIVES(MPI_Send(v, 1, t, 0, 0, MPI_COMM_SELF), MPI_ERR_TYPE); /* not committed */
	gone = t;
	OK(MPI_Type_free(&t));
	GIVES(MPI_Type_size(gone, &n), MPI_ERR_TYPE);
	GIVES(MPI_Type_free(&gone), MPI_ERR_TYPE);
	gone = MPI_INT;
	GIVES(MPI_Type_free(&gone), MPI_ERR_TYPE);
	GIVES(MPI_Type_size(MPI_INT, NULL), MPI_ERR_ARG);
	GIVES(MPI_Type_get_extent(MPI_DATATYPE_NULL, &lb, &extent), MPI_ERR_TYPE);
	GIVES2(MPI_Pack(v, 4, MPI_INT, w, 4, &pos, W), MPI_ERR_TRUNCATE, MPI_ERR_ARG);
	GIVES2(MPI_Unpack(v, 4, &pos, w, 4, MPI_INT, W), MPI_ERR_TRUNCATE, MPI_ERR_ARG);
	GIVES(MPI_Get_count(NULL, MPI_INT, &n), MPI_ERR_ARG);
}

static void communicators(void)
{
	MPI_Comm c = MPI_COMM_NULL;
	MPI_Group g, h;
	int range[1][3] = {{0, 99, 1}}, far = 99, none = 0, two[2] = {0, 0}, dims[2] = {50, 50}, n;

	OK(MPI_Comm_group(W, &g));
	GIVES(MPI_Comm_dup(MPI_COMM_NULL, &c), MPI_ERR_COMM);
	GIVES(MPI_Comm_dup(W, NULL), MPI_ERR_ARG);
	GIVES2(MPI_Comm_split(MPI_COMM_SELF, -77, 0, &c), MPI_ERR_ARG, MPI_ERR_ARG);
	GIVES(MPI_Comm_create(MPI_COMM_SELF, MPI_GROUP_NULL, &c), MPI_ERR_GROUP);
	GIVES(MPI_Comm_free(&c), MPI_ERR_COMM);
	GIVES(MPI_Comm_free(NULL), MPI_ERR_ARG);
	GIVES(MPI_Comm_remote_size(W, &n), MPI_ERR_COMM);
	GIVES(MPI_Group_incl(g, 1, &far, &h), MPI_ERR_RANK);
	GIVES2(MPI_Group_incl(g, 2, two, &h), MPI_ERR_RANK, MPI_ERR_ARG);
	GIVES2(MPI_Group_incl(g, -1, &none, &h), MPI_ERR_ARG, MPI_ERR_COUNT);
	GIVES2(MPI_Group_range_incl(g, 1, range, &h), MPI_ERR_RANK, MPI_ERR_ARG);
	GIVES(MPI_Group_rank(MPI_GROUP_NULL, &n), MPI_ERR_GROUP);
	h = MPI_GROUP_NULL;
	GIVES(MPI_Group_free(&h), MPI_ERR_GROUP);
	OK(MPI_Group_free(&g));
	GIVES2(MPI_Cart_create(MPI_COMM_SELF, 2, dims, two, 0, &c), MPI_ERR_DIMS, MPI_ERR_ARG);
	GIVES2(MPI_Cart_create(MPI_COMM_SELF, -1, dims, two, 0, &c), MPI_ERR_DIMS, MPI_ERR_ARG);
	GIVES2(MPI_Cart_coords(W, 0, 2, dims), MPI_ERR_TOPOLOGY, MPI_ERR_COMM);
	GIVES2(MPI_Dims_create(7, -1, dims), MPI_ERR_DIMS, MPI_ERR_ARG);
	dims[0] = 3, dims[1] = 0;
	GIVES2(MPI_Dims_create(7, 2, dims), MPI_ERR_DIMS, MPI_ERR_ARG);
}

static void the_rest(void)
{
	static char key[MPI_MAX_INFO_KEY + 300], value[100000], text[MPI_MAX_ERROR_STRING];
	MPI_Request req[2] = {MPI_REQUEST_NULL, WILD(MPI_Request, 0x6006000100000009)};
	MPI_Info info;
	int flag, n, keyval = MPI_KEYVAL_INVALID;
	void *attr;

	memset(key, 'k', sizeof(key) - 1);
	memset(value, 'v', sizeof(value) - 1);
	OK(MPI_Info_create(&info));
	GIVES(MPI_Info_set(info, key, "1"), MPI_ERR_INFO_KEY);
	GIVES(MPI_Info_set(info, "", "1"), MPI_ERR_INFO_KEY);
	GIVES2(MPI_Info_set(info, NULL, "1"), MPI_ERR_INFO_KEY, MPI_ERR_ARG);
	GIVES(MPI_Info_set(info, "key", value), MPI_ERR_INFO_VALUE);
	GIVES(MPI_Info_delete(info, "absent"), MPI_ERR_INFO_NOKEY);
	GIVES(MPI_Info_get_nthkey(info, 5, key), MPI_ERR_ARG);
	GIVES(MPI_Info_set(MPI_INFO_NULL, "a", "b"), MPI_ERR_INFO);
	OK(MPI_Info_free(&info));
	GIVES(MPI_Info_free(&info), MPI_ERR_INFO);
	GIVES2(MPI_Comm_get_attr(W, MPI_KEYVAL_INVALID, &attr, &flag), MPI_ERR_KEYVAL, MPI_ERR_ARG);
	GIVES2(MPI_Comm_free_keyval(&keyval), MPI_ERR_KEYVAL, MPI_ERR_ARG);
	keyval = MPI_TAG_UB;
	GIVES2(MPI_Comm_set_attr(W, keyval, v), MPI_ERR_KEYVAL, MPI_ERR_ARG);
	GIVES(MPI_Waitany(2, req, &n, MPI_STATUS_IGNORE), MPI_ERR_REQUEST);
	GIVES(MPI_Testsome(2, req, &n, v, MPI_STATUSES_IGNORE), MPI_ERR_REQUEST);
	GIVES(MPI_Startall(2, req), MPI_ERR_REQUEST);
	GIVES(MPI_Waitany(1, NULL, &n, MPI_STATUS_IGNORE), MPI_ERR_ARG);
	GIVES(MPI_Error_string(-5, text, &n), MPI_ERR_ARG);
	GIVES(MPI_Error_string(1 << 30, text, &n), MPI_ERR_ARG);
	GIVES(MPI_Bsend(v, 1, MPI_INT, 0, 0, MPI_COMM_SELF), MPI_ERR_BUFFER);
	GIVES(MPI_Buffer_attach(NULL, -4), MPI_ERR_ARG);
	GIVES(MPI_Initialized(NULL), MPI_ERR_ARG);
	GIVES(MPI_Init(NULL, NULL), MPI_ERR_OTHER);
}

/* Afterwards all is as it was. */
static void still_works(void)
{
	int right = (rank + 1) % size, left = (rank + size - 1) % size, sum = 0, got = -1;

	at_line = __LINE__;
	OK(MPI_Sendrecv(&rank, 1, MPI_INT, right, 3, &got, 1, MPI_INT, left, 3, W,
			MPI_STATUS_IGNORE));
	CHECK_EQ(got, left);
	OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, W));
	CHECK_EQ(sum, size * (size - 1) / 2);
}

int main(int argc, char **argv)
{
	static int never;
	MPI_Request req;

	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	signal(SIGSEGV, on_fault);
	signal(SIGBUS, on_fault);
	signal(SIGFPE, on_fault);
	OK(MPI_Comm_dup(MPI_COMM_WORLD, &W));
	OK(MPI_Comm_set_errhandler(W, MPI_ERRORS_RETURN));
	OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	collectives();
	still_works();
	datatypes();
	still_works();
	communicators();
	still_works();
	the_rest();
	still_works();
	CHECK_EQ(mistakes, 0);
	/* A receive without a message does not keep MPI_Finalize. */
	OK(MPI_Irecv(&never, 1, MPI_INT, (rank + 1) % size, 99, MPI_COMM_WORLD, &req));
	return test_end();
}
