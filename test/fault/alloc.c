/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alloc.c - every call that makes something, its k-th allocation failing, for k from 1 until none
 * fails any more: an error class, nothing broken, and the same call works right after.
 *
 *	alloc [LIMIT]     k up to LIMIT (default: no limit); needs shim.c preloaded
 *
 * Of the two ranks the last one is short of memory; the first must not notice.
 */
#include <dlfcn.h>
#include <weft/ult.h>

#include "../mpi/mpitest.h"

#define LARGE 300000

static void (*arm)(long k);
static long (*disarm)(void);
static long made, most = 100000;
static char out[LARGE], in[LARGE];

/* The calls under test alone are short of memory. */
static long left_k; /* allocations until one fails; 0: none does */
static int failed;  /* an allocation of this try did */
#define SHORT(call)                                                                                \
	do {                                                                                       \
		long before = left_k;                                                              \
		arm(before);                                                                       \
		err = (call);                                                                      \
		left_k = disarm();                                                                 \
		failed += before && !left_k;                                                       \
	} while (0)

static int dup_comm(void)
{
	MPI_Comm c = MPI_COMM_NULL;
	int err;
	SHORT(MPI_Comm_dup(MPI_COMM_SELF, &c));
	if (!err)
		OK(MPI_Comm_free(&c));
	return err;
}

static int split_comm(void)
{
	MPI_Comm c = MPI_COMM_NULL;
	int err;
	SHORT(MPI_Comm_split(MPI_COMM_SELF, 0, 0, &c));
	if (!err)
		OK(MPI_Comm_free(&c));
	return err;
}

static int cart_comm(void)
{
	MPI_Comm c = MPI_COMM_NULL;
	int err, dims[2] = {1, 1}, periods[2] = {1, 0};
	SHORT(MPI_Cart_create(MPI_COMM_SELF, 2, dims, periods, 0, &c));
	if (!err)
		OK(MPI_Comm_free(&c));
	return err;
}

static int idup_comm(void)
{
	MPI_Comm c = MPI_COMM_NULL;
	MPI_Request r = MPI_REQUEST_NULL;
	int err, end;
	SHORT(MPI_Comm_idup(MPI_COMM_SELF, &c, &r));
	if (err)
		return err;
	end = MPI_Wait(&r, MPI_STATUS_IGNORE);
	if (!end)
		OK(MPI_Comm_free(&c));
	return end;
}

static int make_type(void)
{
	MPI_Datatype t = MPI_DATATYPE_NULL;
	int err, lengths[3] = {1, 5, 2};
	MPI_Aint at[3] = {0, 16, 64};
	MPI_Datatype parts[3] = {MPI_INT, MPI_CHAR, MPI_DOUBLE};
	SHORT(MPI_Type_create_struct(3, lengths, at, parts, &t));
	if (err)
		return err;
	SHORT(MPI_Type_commit(&t));
	OK(MPI_Type_free(&t));
	return err;
}

static int make_group(void)
{
	MPI_Group g = MPI_GROUP_NULL;
	int err;
	SHORT(MPI_Comm_group(MPI_COMM_WORLD, &g));
	if (!err)
		OK(MPI_Group_free(&g));
	return err;
}

static int make_info(void)
{
	MPI_Info i = MPI_INFO_NULL;
	int err;
	SHORT(MPI_Info_create(&i));
	if (err)
		return err;
	SHORT(MPI_Info_set(i, "key", "a value that needs some room of its own"));
	OK(MPI_Info_free(&i));
	return err;
}

static int make_key(void)
{
	int err, key = MPI_KEYVAL_INVALID;
	SHORT(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL));
	if (err)
		return err;
	SHORT(MPI_Comm_set_attr(MPI_COMM_SELF, key, &made));
	if (!err)
		OK(MPI_Comm_delete_attr(MPI_COMM_SELF, key));
	OK(MPI_Comm_free_keyval(&key));
	return err;
}

static void sum(void *a, void *b, int *n, MPI_Datatype *t)
{
	(void)a, (void)b, (void)n, (void)t;
}

static int make_op(void)
{
	MPI_Op op = MPI_OP_NULL;
	int err;
	SHORT(MPI_Op_create(sum, 1, &op));
	if (!err)
		OK(MPI_Op_free(&op));
	return err;
}

static int reduce(void)
{
	int err;
	memset(out, 1, sizeof out);
	SHORT(MPI_Allreduce(out, in, LARGE, MPI_CHAR, MPI_MAX, MPI_COMM_SELF));
	CHECK(err || in[LARGE - 1] == 1);
	return err;
}

static int self_message(int n)
{
	MPI_Request r = MPI_REQUEST_NULL;
	int err;
	SHORT(MPI_Isend(out, n, MPI_CHAR, 0, 7, MPI_COMM_SELF, &r));
	if (err)
		return err;
	OK(MPI_Recv(in, n, MPI_CHAR, 0, 7, MPI_COMM_SELF, MPI_STATUS_IGNORE));
	OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
	return err;
}

static int self_small(void)
{
	return self_message(8);
}

static int self_large(void)
{
	return self_message(LARGE);
}

static int persistent(void)
{
	MPI_Request r = MPI_REQUEST_NULL;
	int err;
	SHORT(MPI_Recv_init(in, 8, MPI_CHAR, 0, 8, MPI_COMM_SELF, &r));
	if (err)
		return err;
	SHORT(MPI_Start(&r));
	if (!err) {
		OK(MPI_Send(out, 8, MPI_CHAR, 0, 8, MPI_COMM_SELF));
		OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
	}
	OK(MPI_Request_free(&r));
	return err;
}

/* Messages to the other rank: what could not be started has sent nothing. */
static int send_typed(int blocks)
{
	static MPI_Datatype t[2];
	int err, which = blocks > 100;
	if (!t[which]) {
		OK(MPI_Type_vector(blocks, 3, 5, MPI_CHAR, &t[which]));
		OK(MPI_Type_commit(&t[which]));
	}
	MPI_Request r = MPI_REQUEST_NULL;
	SHORT(MPI_Isend(out, 1, t[which], 0, 1, MPI_COMM_WORLD, &r));
	if (err)
		return err;
	OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
	made++;
	return err;
}

static int send_pieces(void)
{
	return send_typed(20);
}

static int send_many_pieces(void)
{
	return send_typed(50000);
}

static int send_large(void)
{
	MPI_Request r = MPI_REQUEST_NULL;
	int err;
	SHORT(MPI_Issend(out, LARGE, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &r));
	if (err)
		return err;
	OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
	made++;
	return err;
}

static int receive(void)
{
	MPI_Request r = MPI_REQUEST_NULL;
	int err;
	SHORT(MPI_Irecv(in, 8, MPI_CHAR, 0, 2, MPI_COMM_WORLD, &r));
	if (err)
		return err;
	OK(MPI_Cancel(&r));
	OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
	return err;
}

static void *nothing(void *arg)
{
	return arg;
}

static int thread(void)
{
	weft_ult *t = NULL;
	int err;
	SHORT(weft_ult_create(&t, NULL, nothing, &t));
	if (err)
		return MPI_ERR_NO_MEM; /* a class of its own library */
	CHECK_EQ(weft_ult_join(t, NULL), WEFT_OK);
	return MPI_SUCCESS;
}

static const struct {
	const char *name;
	int (*fn)(void);
} steps[] = {
	{"communicator", dup_comm},
	{"split", split_comm},
	{"grid", cart_comm},
	{"communicator later", idup_comm},
	{"type", make_type},
	{"group", make_group},
	{"info", make_info},
	{"attribute", make_key},
	{"operation", make_op},
	{"reduction", reduce},
	{"small message", self_small},
	{"large message", self_large},
	{"persistent", persistent},
	{"pieces", send_pieces},
	{"many pieces", send_many_pieces},
	{"large to a peer", send_large},
	{"receive", receive},
	{"thread", thread},
};

static void sweep(const char *name, int (*fn)(void))
{
	long fails = 0, k;
	/* Ends: a call makes finitely many allocations. */
	for (k = 1; k <= most; k++) {
		failed = 0;
		left_k = k;
		int err = fn(), class = 0;
		if (err) {
			OK(MPI_Error_class(err, &class));
			if (class != MPI_ERR_NO_MEM && class != MPI_ERR_OTHER)
				fprintf(stderr, "%s, allocation %ld: class %d\n", name, k, class);
			CHECK(failed);
			CHECK(class == MPI_ERR_NO_MEM || class == MPI_ERR_OTHER);
			fails++;
		}
		left_k = 0;
		int missed = failed;
		CHECK_EQ(fn(), MPI_SUCCESS);
		if (!err && !missed)
			break;
	}
	printf("%-20s %ld allocations, %ld of them are missed\n", name, k - 1, fails);
}

/* The first rank takes what comes until it is told how much that was. */
static void take(void)
{
	long want = -1, got = 0;
	MPI_Request end;
	OK(MPI_Irecv(&want, 1, MPI_LONG, 1, 3, MPI_COMM_WORLD, &end));
	for (int over = 0; !over || got < want;) {
		int there = 0;
		MPI_Status st;
		if (!over)
			OK(MPI_Test(&end, &over, MPI_STATUS_IGNORE));
		OK(MPI_Iprobe(1, 1, MPI_COMM_WORLD, &there, &st));
		if (!there)
			continue;
		OK(MPI_Recv(in, LARGE, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
		got++;
	}
	CHECK_EQ(got, want);
}

int main(int argc, char **argv)
{
	/* A pointer to a function from dlsym: by way of an object, as POSIX has it. */
	*(void **)&arm = dlsym(RTLD_DEFAULT, "fault_arm");
	*(void **)&disarm = dlsym(RTLD_DEFAULT, "fault_disarm");
	CHECK(arm && disarm);
	if (argc > 1)
		most = atol(argv[1]);
	test_start(&argc, &argv, MPI_THREAD_MULTIPLE);
	OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	CHECK_EQ(size, 2);
	if (rank == 0) {
		take();
	} else {
		for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
			sweep(steps[i].name, steps[i].fn);
		OK(MPI_Send(&made, 1, MPI_LONG, 0, 3, MPI_COMM_WORLD));
	}
	return test_end();
}
