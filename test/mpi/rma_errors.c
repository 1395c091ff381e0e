/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rma_errors.c - erroneous one-sided calls, one a row: its class, and the handler of the window (of the communicator where there is
 * none yet), which is called once, with the window and the code that the call returns.  After each the window works.
 */
/* ranks: 1 2 */
#include <mpi-ext.h>
#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include "mpitest.h"

#define N 16

static MPI_Win win, dynamic;
static MPI_Comm comm, inter;
static MPI_Group all, me, none_of_us;
static MPI_Datatype pair, mixed, uncommitted;
static MPI_Op own_op;
static MPI_Errhandler comm_handler;
static int memory[N], value[4], result[4];
static double real;

static int calls, code_seen;
static void *handle_seen;

static void on_win(MPI_Win *w, int *code, ...)
{
	calls++;
	code_seen = *code;
	handle_seen = *w;
}

static void on_comm(MPI_Comm *c, int *code, ...)
{
	calls++;
	code_seen = *code;
	handle_seen = *c;
}

static void add(void *in, void *inout, int *n, MPI_Datatype *t)
{
	CHECK(!in && !inout && !n && !t); /* it is never called */
}

/* What surrounds a row's call. */
enum epoch { NONE, FENCE, FENCE_USED, LOCK, LOCK_ALL, START, POST };

static void epoch_open(enum epoch e)
{
	if (e == FENCE || e == FENCE_USED)
		OK(MPI_Win_fence(0, win));
	if (e == FENCE_USED)
		OK(MPI_Put(value, 1, MPI_INT, rank, 0, 1, MPI_INT, win));
	if (e == LOCK) {
		OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
		OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, dynamic));
	}
	if (e == LOCK_ALL)
		OK(MPI_Win_lock_all(0, win));
	if (e == POST || e == START)
		OK(MPI_Win_post(me, 0, win));
	if (e == START)
		OK(MPI_Win_start(me, 0, win));
}

static void epoch_close(enum epoch e)
{
	if (e == FENCE || e == FENCE_USED)
		OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
	if (e == LOCK) {
		/* What a refused access left is heard of here, at the latest. */
		(void)MPI_Win_flush(rank, dynamic);
		OK(MPI_Win_unlock(rank, dynamic));
		OK(MPI_Win_unlock(rank, win));
	}
	if (e == LOCK_ALL)
		OK(MPI_Win_unlock_all(win));
	if (e == POST)
		OK(MPI_Win_start(me, 0, win));
	if (e == POST || e == START) {
		OK(MPI_Win_complete(win));
		OK(MPI_Win_wait(win));
	}
}

/* The row's call; its handler is that of the window, the dynamic window, or the communicator. */
#define ROW(text, epoch, want, of, call)                                                           \
	do {                                                                                       \
		epoch_open(epoch);                                                                 \
		calls = 0;                                                                         \
		handle_seen = NULL;                                                                \
		int row_code = (call), row_class = -1;                                             \
		int row_calls = calls, row_seen = code_seen;                                       \
		MPI_Error_class(row_code, &row_class);                                             \
		if (row_class != (want))                                                           \
			printf("%s: ", text);                                                      \
		CHECK_EQ(row_class, want);                                                         \
		if (row_calls != 1 || handle_seen != (void *)(of))                                 \
			printf("%s: ", text);                                                      \
		CHECK_EQ(row_calls, 1);                                                            \
		CHECK_EQ(row_seen, row_code);                                                      \
		CHECK((void *)(of) == handle_seen);                                                \
		epoch_close(epoch);                                                                \
	} while (0)

#define PUT(n, t, r, at, m, u) MPI_Put(value, n, t, r, at, m, u, win)
#define ACC(t, n, op) MPI_Accumulate(value, n, t, rank, 0, n, t, op, win)

static void rows_of_making(void)
{
	MPI_Win w;
	void *p;
	MPI_Info bad = (MPI_Info)(intptr_t)0x7fffff01;
	ROW("size", NONE, MPI_ERR_SIZE, comm,
	    MPI_Win_create(memory, -1, 1, MPI_INFO_NULL, comm, &w));
	ROW("unit", NONE, MPI_ERR_DISP, comm,
	    MPI_Win_create(memory, 4, 0, MPI_INFO_NULL, comm, &w));
	ROW("unit", NONE, MPI_ERR_DISP, comm,
	    MPI_Win_create(memory, 4, -4, MPI_INFO_NULL, comm, &w));
	ROW("base", NONE, MPI_ERR_BASE, comm, MPI_Win_create(NULL, 4, 1, MPI_INFO_NULL, comm, &w));
	ROW("info", NONE, MPI_ERR_INFO, comm, MPI_Win_create(memory, 4, 1, bad, comm, &w));
	ROW("size", NONE, MPI_ERR_SIZE, comm, MPI_Win_allocate(-4, 1, MPI_INFO_NULL, comm, &p, &w));
	ROW("unit", NONE, MPI_ERR_DISP, comm, MPI_Win_allocate(4, 0, MPI_INFO_NULL, comm, &p, &w));
	ROW("size", NONE, MPI_ERR_SIZE, comm,
	    MPI_Win_allocate_shared(-4, 1, MPI_INFO_NULL, comm, &p, &w));
	ROW("unit", NONE, MPI_ERR_DISP, comm,
	    MPI_Win_allocate_shared(4, -1, MPI_INFO_NULL, comm, &p, &w));
	if (inter == MPI_COMM_NULL)
		return;
	ROW("inter", NONE, MPI_ERR_COMM, inter,
	    MPI_Win_create(memory, 4, 1, MPI_INFO_NULL, inter, &w));
	ROW("inter", NONE, MPI_ERR_COMM, inter, MPI_Win_create_dynamic(MPI_INFO_NULL, inter, &w));
}

static void rows_of_windows(void)
{
	MPI_Aint size_of, unit_of;
	int unit;
	void *p;
	MPI_Group g;
	ROW("attach", NONE, MPI_ERR_RMA_FLAVOR, win, MPI_Win_attach(win, memory, 4));
	ROW("detach", NONE, MPI_ERR_RMA_FLAVOR, win, MPI_Win_detach(win, memory));
	ROW("attach", NONE, MPI_ERR_SIZE, dynamic, MPI_Win_attach(dynamic, memory, -4));
	ROW("attach", NONE, MPI_ERR_BASE, dynamic, MPI_Win_attach(dynamic, NULL, 4));
	ROW("attach", NONE, MPI_ERR_RMA_ATTACH, dynamic, MPI_Win_attach(dynamic, memory + 1, 4));
	ROW("detach", NONE, MPI_ERR_RMA_ATTACH, dynamic, MPI_Win_detach(dynamic, memory + 1));
	ROW("query", NONE, MPI_ERR_RMA_FLAVOR, dynamic,
	    MPI_Win_shared_query(dynamic, 0, &size_of, &unit, &p));
	ROW("query", NONE, MPI_ERR_RANK, win,
	    MPI_Win_shared_query_c(win, size, &size_of, &unit_of, &p));
	ROW("info", NONE, MPI_ERR_INFO, win, MPI_Win_set_info(win, (MPI_Info)(intptr_t)0x7fffff01));
	ROW("name", NONE, MPI_ERR_ARG, win, MPI_Win_set_name(win, NULL));
	ROW("group", NONE, MPI_ERR_ARG, win, MPI_Win_get_group(win, NULL));
	ROW("handler", NONE, MPI_ERR_ERRHANDLER, win, MPI_Win_set_errhandler(win, comm_handler));
	ROW("attribute", NONE, MPI_ERR_KEYVAL, win, MPI_Win_set_attr(win, MPI_WIN_SIZE, &unit));
	ROW("attribute", NONE, MPI_ERR_KEYVAL, win, MPI_Win_delete_attr(win, MPI_WIN_BASE));
	ROW("free in lock", LOCK, MPI_ERR_RMA_SYNC, win, MPI_Win_free(&(MPI_Win){win}));
	ROW("free in lock_all", LOCK_ALL, MPI_ERR_RMA_SYNC, win, MPI_Win_free(&(MPI_Win){win}));
	ROW("free in start", START, MPI_ERR_RMA_SYNC, win, MPI_Win_free(&(MPI_Win){win}));
	ROW("free in post", POST, MPI_ERR_RMA_SYNC, win, MPI_Win_free(&(MPI_Win){win}));
	/* No window, so MPI_COMM_SELF hears of it. */
	ROW("no window", NONE, MPI_ERR_WIN, MPI_COMM_SELF, MPI_Win_fence(0, MPI_WIN_NULL));
	ROW("no window", NONE, MPI_ERR_WIN, MPI_COMM_SELF, MPI_Win_free(&(MPI_Win){MPI_WIN_NULL}));
	ROW("no window", NONE, MPI_ERR_WIN, MPI_COMM_SELF, MPI_Win_get_group(MPI_WIN_NULL, &g));
	ROW("no window", NONE, MPI_ERR_WIN, MPI_COMM_SELF,
	    MPI_Put(value, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_WIN_NULL));
	ROW("no window", NONE, MPI_ERR_WIN, MPI_COMM_SELF, MPI_Win_lock_all(0, MPI_WIN_NULL));
}

static void rows_of_accesses(void)
{
	MPI_Request req;
	MPI_Aint here, far = (MPI_Aint)1 << 62;
	OK(MPI_Get_address(memory, &here));
	ROW("no epoch", NONE, MPI_ERR_RMA_SYNC, win, PUT(1, MPI_INT, rank, 0, 1, MPI_INT));
	ROW("no epoch", NONE, MPI_ERR_RMA_SYNC, win,
	    MPI_Get(result, 1, MPI_INT, rank, 0, 1, MPI_INT, win));
	ROW("no epoch", NONE, MPI_ERR_RMA_SYNC, win, ACC(MPI_INT, 1, MPI_SUM));
	ROW("no epoch", NONE, MPI_ERR_RMA_SYNC, win,
	    MPI_Rput(value, 1, MPI_INT, rank, 0, 1, MPI_INT, win, &req));
	ROW("exposed only", POST, MPI_ERR_RMA_SYNC, win, PUT(1, MPI_INT, rank, 0, 1, MPI_INT));
	ROW("type", LOCK, MPI_ERR_TYPE, win, PUT(1, MPI_DATATYPE_NULL, rank, 0, 1, MPI_INT));
	ROW("type", LOCK, MPI_ERR_TYPE, win, PUT(1, MPI_INT, rank, 0, 1, MPI_DATATYPE_NULL));
	ROW("type", LOCK, MPI_ERR_TYPE, win, PUT(1, uncommitted, rank, 0, 1, uncommitted));
	ROW("lengths", LOCK, MPI_ERR_TYPE, win, PUT(1, MPI_INT, rank, 0, 2, MPI_INT));
	ROW("count", LOCK, MPI_ERR_COUNT, win, PUT(-1, MPI_INT, rank, 0, 1, MPI_INT));
	ROW("count", LOCK, MPI_ERR_COUNT, win, PUT(1, MPI_INT, rank, 0, -1, MPI_INT));
	ROW("rank", LOCK, MPI_ERR_RANK, win, PUT(1, MPI_INT, size, 0, 1, MPI_INT));
	ROW("rank", LOCK, MPI_ERR_RANK, win, PUT(1, MPI_INT, MPI_ANY_SOURCE, 0, 1, MPI_INT));
	ROW("negative", LOCK, MPI_ERR_DISP, win, PUT(1, MPI_INT, rank, -1, 1, MPI_INT));
	ROW("overflow", LOCK, MPI_ERR_DISP, win, PUT(1, MPI_INT, rank, far, 1, MPI_INT));
	ROW("behind", LOCK, MPI_ERR_RMA_RANGE, win, PUT(1, MPI_INT, rank, N, 1, MPI_INT));
	ROW("across", LOCK, MPI_ERR_RMA_RANGE, win, PUT(2, MPI_INT, rank, N - 1, 2, MPI_INT));
	ROW("null", LOCK, MPI_ERR_BUFFER, win, MPI_Put(NULL, 1, MPI_INT, rank, 0, 1, MPI_INT, win));
	ROW("behind", LOCK, MPI_ERR_RMA_RANGE, win,
	    MPI_Get(result, 1, MPI_INT, rank, N, 1, MPI_INT, win));
	ROW("behind", LOCK, MPI_ERR_RMA_RANGE, win,
	    MPI_Rget(result, 1, MPI_INT, rank, N, 1, MPI_INT, win, &req));
	ROW("behind", LOCK, MPI_ERR_RMA_RANGE, win,
	    MPI_Fetch_and_op(value, result, MPI_INT, rank, N, MPI_SUM, win));
	ROW("behind", LOCK, MPI_ERR_RMA_RANGE, win,
	    MPI_Compare_and_swap(value, value, result, MPI_INT, rank, N, win));
	ROW("own operation", LOCK, MPI_ERR_OP, win, ACC(MPI_INT, 1, own_op));
	ROW("no operation", LOCK, MPI_ERR_OP, win, ACC(MPI_INT, 1, MPI_NO_OP));
	ROW("null operation", LOCK, MPI_ERR_OP, win, ACC(MPI_INT, 1, MPI_OP_NULL));
	ROW("bits of reals", LOCK, MPI_ERR_OP, win, ACC(MPI_FLOAT, 1, MPI_BAND));
	ROW("places of one", LOCK, MPI_ERR_OP, win, ACC(MPI_INT, 1, MPI_MAXLOC));
	ROW("several types", LOCK, MPI_ERR_TYPE, win, ACC(mixed, 1, MPI_SUM));
	ROW("derived", LOCK, MPI_ERR_TYPE, win,
	    MPI_Fetch_and_op(value, result, pair, rank, 0, MPI_SUM, win));
	ROW("swap of reals", LOCK, MPI_ERR_TYPE, win,
	    MPI_Compare_and_swap(&real, &real, &real, MPI_DOUBLE, rank, 0, win));
	ROW("notification", LOCK, MPI_ERR_ARG, win,
	    MPIX_Put_notify(value, 1, MPI_INT, rank, 0, 1, MPI_INT, MPIX_WIN_NOTIFICATIONS, win));
	/* On a dynamic window the access itself or the flush says it. */
	ROW("not attached", LOCK, MPI_ERR_RMA_RANGE, dynamic,
	    (MPI_Put(value, 1, MPI_INT, rank, here + (MPI_Aint)sizeof memory, 1, MPI_INT,
		     dynamic) ||
	     MPI_Win_flush(rank, dynamic))
		    ? code_seen
		    : MPI_SUCCESS);
	/* The request says it, and its window's handler is called. */
	ROW("not attached", LOCK, MPI_ERR_RMA_RANGE, dynamic,
	    (MPI_Rput(value, 1, MPI_INT, rank, here + (MPI_Aint)sizeof memory, 1, MPI_INT, dynamic,
		      &req) ||
	     MPI_Wait(&req, MPI_STATUS_IGNORE))
		    ? code_seen
		    : MPI_SUCCESS);
}

static void rows_of_epochs(void)
{
	int flag;
	ROW("assertion", NONE, MPI_ERR_ASSERT, win, MPI_Win_fence(1 << 30, win));
	ROW("assertion", NONE, MPI_ERR_ASSERT, win, MPI_Win_fence(MPI_MODE_NOCHECK, win));
	ROW("assertion", NONE, MPI_ERR_ASSERT, win, MPI_Win_post(me, MPI_MODE_NOSUCCEED, win));
	ROW("assertion", NONE, MPI_ERR_ASSERT, win, MPI_Win_start(me, MPI_MODE_NOSTORE, win));
	ROW("assertion", NONE, MPI_ERR_ASSERT, win,
	    MPI_Win_lock(MPI_LOCK_SHARED, rank, MPI_MODE_NOPUT, win));
	ROW("assertion", NONE, MPI_ERR_ASSERT, win, MPI_Win_lock_all(MPI_MODE_NOPRECEDE, win));
	ROW("fence in lock", LOCK, MPI_ERR_RMA_SYNC, win, MPI_Win_fence(0, win));
	ROW("fence in lock_all", LOCK_ALL, MPI_ERR_RMA_SYNC, win, MPI_Win_fence(0, win));
	ROW("fence in start", START, MPI_ERR_RMA_SYNC, win, MPI_Win_fence(0, win));
	ROW("fence in post", POST, MPI_ERR_RMA_SYNC, win, MPI_Win_fence(0, win));
	ROW("group", NONE, MPI_ERR_GROUP, win, MPI_Win_post(MPI_GROUP_NULL, 0, win));
	ROW("group", NONE, MPI_ERR_GROUP, win, MPI_Win_start(MPI_GROUP_NULL, 0, win));
	if (none_of_us != MPI_GROUP_NULL) {
		ROW("outside", NONE, MPI_ERR_GROUP, win, MPI_Win_post(none_of_us, 0, win));
		ROW("outside", NONE, MPI_ERR_GROUP, win, MPI_Win_start(none_of_us, 0, win));
	}
	ROW("posted", POST, MPI_ERR_RMA_SYNC, win, MPI_Win_post(me, 0, win));
	ROW("started", START, MPI_ERR_RMA_SYNC, win, MPI_Win_start(me, 0, win));
	ROW("start in lock", LOCK, MPI_ERR_RMA_SYNC, win, MPI_Win_start(me, 0, win));
	ROW("start in lock_all", LOCK_ALL, MPI_ERR_RMA_SYNC, win, MPI_Win_start(me, 0, win));
	ROW("start in fence", FENCE_USED, MPI_ERR_RMA_SYNC, win, MPI_Win_start(me, 0, win));
	ROW("complete", NONE, MPI_ERR_RMA_SYNC, win, MPI_Win_complete(win));
	ROW("wait", NONE, MPI_ERR_RMA_SYNC, win, MPI_Win_wait(win));
	ROW("test", NONE, MPI_ERR_RMA_SYNC, win, MPI_Win_test(win, &flag));
	ROW("lock type", NONE, MPI_ERR_LOCKTYPE, win, MPI_Win_lock(4711, rank, 0, win));
	ROW("rank", NONE, MPI_ERR_RANK, win, MPI_Win_lock(MPI_LOCK_SHARED, size, 0, win));
	ROW("rank", NONE, MPI_ERR_RANK, win, MPI_Win_unlock(-5, win));
	ROW("locked", LOCK, MPI_ERR_RMA_SYNC, win, MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win));
	ROW("lock in lock_all", LOCK_ALL, MPI_ERR_RMA_SYNC, win,
	    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
	ROW("lock in start", START, MPI_ERR_RMA_SYNC, win,
	    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
	ROW("lock in fence", FENCE_USED, MPI_ERR_RMA_SYNC, win,
	    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
	ROW("unlock", NONE, MPI_ERR_RMA_SYNC, win, MPI_Win_unlock(rank, win));
	ROW("unlock in lock_all", LOCK_ALL, MPI_ERR_RMA_SYNC, win, MPI_Win_unlock(rank, win));
	ROW("unlock_all in lock", LOCK, MPI_ERR_RMA_SYNC, win, MPI_Win_unlock_all(win));
	ROW("unlock_all", NONE, MPI_ERR_RMA_SYNC, win, MPI_Win_unlock_all(win));
	ROW("lock_all twice", LOCK_ALL, MPI_ERR_RMA_SYNC, win, MPI_Win_lock_all(0, win));
	ROW("lock_all in lock", LOCK, MPI_ERR_RMA_SYNC, win, MPI_Win_lock_all(0, win));
	ROW("lock_all in start", START, MPI_ERR_RMA_SYNC, win, MPI_Win_lock_all(0, win));
	ROW("lock_all in fence", FENCE_USED, MPI_ERR_RMA_SYNC, win, MPI_Win_lock_all(0, win));
	ROW("flush", NONE, MPI_ERR_RMA_SYNC, win, MPI_Win_flush(rank, win));
	ROW("flush in fence", FENCE, MPI_ERR_RMA_SYNC, win, MPI_Win_flush_local(rank, win));
	ROW("flush in start", START, MPI_ERR_RMA_SYNC, win, MPI_Win_flush_all(win));
	ROW("flush", NONE, MPI_ERR_RMA_SYNC, win, MPI_Win_flush_local_all(win));
	ROW("flush", LOCK, MPI_ERR_RANK, win, MPI_Win_flush(size, win));
}

/* The system gives no memory that can be shared. */
static void rows_of_sharing(void)
{
	MPI_Win w;
	void *p;
	struct rlimit was, none;
	CHECK(!getrlimit(RLIMIT_FSIZE, &was));
	none = was;
	none.rlim_cur = 0;
	CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR && !setrlimit(RLIMIT_FSIZE, &none));
	calls = 0;
	int code = MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, comm, &p, &w);
	CHECK(!setrlimit(RLIMIT_FSIZE, &was));
	CHECK_EQ(calls, 1);
	FAILS(code, MPI_ERR_RMA_SHARED);
}

static void handlers_make(void)
{
	MPI_Errhandler h;
	OK(MPI_Comm_create_errhandler((MPI_Comm_errhandler_function *)(void *)on_comm,
				      &comm_handler));
	OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
	OK(MPI_Comm_set_errhandler(comm, comm_handler));
	OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, comm_handler));
	OK(MPI_Win_create_errhandler((MPI_Win_errhandler_function *)(void *)on_win, &h));
	OK(MPI_Win_set_errhandler(win, h));
	OK(MPI_Win_set_errhandler(dynamic, h));
	OK(MPI_Errhandler_free(&h));
}

static void types_make(void)
{
	int one[2] = {1, 1};
	MPI_Aint at[2] = {0, 8};
	MPI_Datatype of[2] = {MPI_INT, MPI_DOUBLE};
	OK(MPI_Type_contiguous(2, MPI_INT, &pair));
	OK(MPI_Type_commit(&pair));
	OK(MPI_Type_create_struct(2, one, at, of, &mixed));
	OK(MPI_Type_commit(&mixed));
	OK(MPI_Type_contiguous(2, MPI_INT, &uncommitted));
	OK(MPI_Op_create(add, 1, &own_op));
}

/* With two ranks also an intercommunicator, and a window that one of them is not in. */
static void groups_make(MPI_Comm halves)
{
	int other = 1 - rank;
	OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
	OK(MPI_Group_incl(all, 1, &rank, &me));
	none_of_us = MPI_GROUP_NULL;
	inter = MPI_COMM_NULL;
	if (size != 2)
		return;
	OK(MPI_Group_incl(all, 1, &other, &none_of_us));
	OK(MPI_Intercomm_create(halves, 0, MPI_COMM_WORLD, other, 1, &inter));
	OK(MPI_Comm_set_errhandler(inter, comm_handler));
}

int main(int argc, char **argv)
{
	MPI_Comm half;
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	OK(MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &half));
	/* Of this rank alone, so that the rank of a row's target is 0 and each row needs no other rank. */
	int world = rank, members = size;
	OK(MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, half, &win));
	OK(MPI_Win_create_dynamic(MPI_INFO_NULL, half, &dynamic));
	OK(MPI_Win_attach(dynamic, memory, sizeof memory));
	handlers_make();
	types_make();
	groups_make(half);
	rows_of_making();
	rows_of_sharing();
	rank = 0;
	size = 1;
	rows_of_windows();
	rows_of_accesses();
	rows_of_epochs();
	rank = world;
	size = members;
	OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
	OK(MPI_Win_free(&win));
	OK(MPI_Win_free(&dynamic));
	if (inter != MPI_COMM_NULL) {
		OK(MPI_Comm_free(&inter));
		OK(MPI_Group_free(&none_of_us));
	}
	OK(MPI_Type_free(&pair));
	OK(MPI_Type_free(&mixed));
	OK(MPI_Type_free(&uncommitted));
	OK(MPI_Op_free(&own_op));
	OK(MPI_Group_free(&me));
	OK(MPI_Group_free(&all));
	OK(MPI_Comm_free(&half));
	OK(MPI_Comm_free(&comm));
	OK(MPI_Errhandler_free(&comm_handler));
	return test_end();
}
