/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 3 */
/* Continuations: when callbacks run, for every kind of request, also from within callbacks; what
 * failed is told; wrong arguments are errors. */
#include <mpi-ext.h>

#include "mpitest.h"

#define MANY 10000
#define ROUNDS 2000

static MPI_Request cont;
static _Atomic int calls, last_rc;

static int count_cb(int rc, void *arg)
{
	(void)arg;
	last_rc = rc;
	calls++;
	return MPI_SUCCESS;
}

static void cont_new(int flags, int max_poll, const char *key, const char *value)
{
	MPI_Info info = MPI_INFO_NULL;

	if (key) {
		OK(MPI_Info_create(&info));
		OK(MPI_Info_set(info, key, value));
	}
	OK(MPIX_Continue_init(flags, max_poll, info, &cont));
	if (key)
		OK(MPI_Info_free(&info));
	calls = 0;
}

static void cont_free(void)
{
	OK(MPI_Request_free(&cont));
	CHECK(cont == MPI_REQUEST_NULL);
}

/* ---- when --------------------------------------------------------------------------------- */

/* A receive from oneself, and the message for it. */
static void one_message(int flags)
{
	int out = 7, in = 0, flag = 1;
	MPI_Request r;
	MPI_Status st = {.MPI_ERROR = 77};

	calls = 0;
	OK(MPI_Start(&cont));
	OK(MPI_Irecv(&in, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &r));
	OK(MPIX_Continue(&r, count_cb, NULL, flags, &st, cont));
	CHECK(r == MPI_REQUEST_NULL);
	OK(MPI_Test(&cont, &flag, MPI_STATUS_IGNORE));
	CHECK(!flag && calls == 0);
	OK(MPI_Send(&out, 1, MPI_INT, 0, 5, MPI_COMM_SELF));
	OK(MPI_Wait(&cont, MPI_STATUS_IGNORE));
	CHECK(cont != MPI_REQUEST_NULL);
	CHECK_EQ(calls, 1);
	CHECK_EQ(in, 7);
	CHECK(st.MPI_SOURCE == 0 && st.MPI_TAG == 5 && st.MPI_ERROR == 77);
	/* Inactive now. */
	OK(MPI_Wait(&cont, MPI_STATUS_IGNORE));
}

/* What is complete already runs in the call, unless that is not wanted. */
static void complete_already(void)
{
	MPI_Request none[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
	MPI_Status sts[2] = {{.MPI_ERROR = 77}, {.MPI_ERROR = 77}};
	int flag = 0;

	cont_new(0, 0, NULL, NULL);
	OK(MPI_Start(&cont));
	OK(MPI_Test(&cont, &flag, MPI_STATUS_IGNORE)); /* nothing registered */
	CHECK(flag);
	OK(MPIX_Continueall(2, none, count_cb, NULL, 0, sts, cont));
	CHECK_EQ(calls, 0); /* not started */
	OK(MPI_Start(&cont));
	OK(MPI_Wait(&cont, MPI_STATUS_IGNORE));
	CHECK_EQ(calls, 1);
	CHECK(sts[1].MPI_SOURCE == MPI_ANY_SOURCE && sts[1].MPI_ERROR == MPI_SUCCESS);
	OK(MPI_Start(&cont));
	OK(MPIX_Continueall(0, NULL, count_cb, NULL, 0, MPI_STATUSES_IGNORE, cont));
	CHECK_EQ(calls, 2);
	OK(MPIX_Continue(none, count_cb, NULL, MPIX_CONT_DEFER_COMPLETE, MPI_STATUS_IGNORE, cont));
	CHECK_EQ(calls, 2);
	OK(MPI_Wait(&cont, MPI_STATUS_IGNORE));
	CHECK_EQ(calls, 3);
	cont_free();
	cont_new(0, 0, "mpi_continue_enqueue_complete", "true");
	OK(MPI_Start(&cont));
	OK(MPIX_Continue(none, count_cb, NULL, 0, MPI_STATUS_IGNORE, cont));
	CHECK_EQ(calls, 0);
	OK(MPI_Wait(&cont, MPI_STATUS_IGNORE));
	CHECK_EQ(calls, 1);
	cont_free();
}

/* Callbacks of a poll-only request run in its tests alone, as many as it says. */
static void poll_only(void)
{
	MPI_Request none = MPI_REQUEST_NULL;
	int flag = 1, in, out = 1;

	cont_new(MPIX_CONT_POLL_ONLY, 2, NULL, NULL);
	OK(MPI_Start(&cont));
	for (int i = 0; i < 20; i++)
		OK(MPIX_Continue(&none, count_cb, NULL, 0, MPI_STATUS_IGNORE, cont));
	OK(MPI_Sendrecv(&out, 1, MPI_INT, 0, 0, &in, 1, MPI_INT, 0, 0, MPI_COMM_SELF,
			MPI_STATUS_IGNORE));
	CHECK_EQ(calls, 0);
	OK(MPI_Request_get_status(cont, &flag, MPI_STATUS_IGNORE));
	CHECK(!flag && calls >= 2 && calls < 20);
	OK(MPI_Wait(&cont, MPI_STATUS_IGNORE));
	CHECK_EQ(calls, 20);
	one_message(0);
	cont_free();
	/* Its handle gone, they run like all others. */
	cont_new(0, 0, "mpi_continue_poll_only", "true");
	OK(MPIX_Continue(&none, count_cb, NULL, 0, MPI_STATUS_IGNORE, cont));
	cont_free();
	while (!calls)
		OK(MPI_Iprobe(0, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE));
}

/* May block: it runs inside the wait. */
static int blocking_cb(int rc, void *arg)
{
	int *from = arg, to = 0;
	MPI_Request r;

	OK(MPI_Irecv(&to, 1, MPI_INT, 0, 9, MPI_COMM_SELF, &r));
	OK(MPI_Ssend(from, 1, MPI_INT, 0, 9, MPI_COMM_SELF));
	OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
	CHECK_EQ(to, *from);
	return count_cb(rc, NULL);
}

static void poll_only_blocks(void)
{
	MPI_Request none = MPI_REQUEST_NULL;
	int value = 11;

	cont_new(MPIX_CONT_POLL_ONLY, 0, NULL, NULL);
	OK(MPI_Start(&cont));
	OK(MPIX_Continue(&none, blocking_cb, &value, 0, MPI_STATUS_IGNORE, cont));
	OK(MPI_Wait(&cont, MPI_STATUS_IGNORE));
	CHECK_EQ(calls, 1);
	cont_free();
}

/* ---- every kind of request ---------------------------------------------------------------- */

static int query(void *extra, MPI_Status *st)
{
	(void)extra;
	OK(MPI_Status_set_elements(st, MPI_INT, 3));
	OK(MPI_Status_set_cancelled(st, 0));
	return MPI_SUCCESS;
}

static int released;

static int release(void *extra)
{
	(void)extra;
	released++;
	return MPI_SUCCESS;
}

static int cancel(void *extra, int complete)
{
	(void)extra, (void)complete;
	return MPI_SUCCESS;
}

static void user_sum(void *in, void *inout, int *len, MPI_Datatype *type)
{
	(void)type;
	for (int i = 0; i < *len; i++)
		((int *)inout)[i] += ((int *)in)[i];
}

static void kinds(int flags)
{
	int one = 1, sum = 0, all = 0, got = 0, n = -1, next = (rank + 1) % size;
	int before = (rank + size - 1) % size;
	MPI_Request r[7], g;
	MPI_Status sts[7];
	MPI_Comm dup;
	MPI_Op op;

	OK(MPI_Op_create(user_sum, 1, &op));
	cont_new(flags, 0, NULL, NULL);
	OK(MPI_Start(&cont));
	released = 0;
	OK(MPI_Ibarrier(MPI_COMM_WORLD, &r[0]));
	OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT, op, MPI_COMM_WORLD, &r[1]));
	OK(MPI_Comm_idup(MPI_COMM_WORLD, &dup, &r[2]));
	OK(MPI_Grequest_start(query, release, cancel, NULL, &r[3]));
	g = r[3];
	r[4] = MPI_REQUEST_NULL;
	OK(MPI_Isendrecv(&rank, 1, MPI_INT, next, 3, &got, 1, MPI_INT, before, 3, MPI_COMM_WORLD,
			 &r[5]));
	OK(MPI_Iallreduce(&rank, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &r[6]));
	OK(MPIX_Continueall(7, r, count_cb, NULL, MPIX_CONT_REQBUF_VOLATILE, sts, cont));
	for (int i = 0; i < 7; i++)
		CHECK(r[i] == MPI_REQUEST_NULL);
	CHECK_EQ(calls, 0);
	OK(MPI_Grequest_complete(g));
	OK(MPI_Wait(&cont, MPI_STATUS_IGNORE));
	CHECK_EQ(calls, 1);
	CHECK(sum == size && all == size - 1 && got == before && released == 1);
	OK(MPI_Get_count(&sts[3], MPI_INT, &n));
	CHECK_EQ(n, 3);
	CHECK_EQ(sts[5].MPI_SOURCE, before);
	OK(MPI_Comm_free(&dup));
	cont_free();
	OK(MPI_Op_free(&op));
}

static MPI_Request inner;

/* Completes another one: its callback runs, but not inside this one. */
static int completing_cb(int rc, void *arg)
{
	(void)arg;
	int before = calls;
	OK(MPI_Grequest_complete(inner));
	CHECK_EQ(calls, before);
	return count_cb(rc, NULL);
}

static MPI_Request continued_grequest(MPIX_Continue_cb_function *cb)
{
	MPI_Request r, g;
	OK(MPI_Grequest_start(query, release, cancel, NULL, &r));
	g = r;
	OK(MPIX_Continue(&r, cb, NULL, 0, MPI_STATUS_IGNORE, cont));
	return g;
}

/* The call that completes an operation runs its callback, but for one that runs in tests alone. */
static void completed_here(void)
{
	cont_new(0, 0, NULL, NULL);
	OK(MPI_Start(&cont));
	OK(MPI_Grequest_complete(continued_grequest(count_cb)));
	CHECK_EQ(calls, 1);
	inner = continued_grequest(count_cb);
	OK(MPI_Grequest_complete(continued_grequest(completing_cb)));
	CHECK(calls >= 2);
	OK(MPI_Wait(&cont, MPI_STATUS_IGNORE));
	CHECK_EQ(calls, 3);
	cont_free();
	cont_new(MPIX_CONT_POLL_ONLY, 0, NULL, NULL);
	OK(MPI_Start(&cont));
	OK(MPI_Grequest_complete(continued_grequest(count_cb)));
	CHECK_EQ(calls, 0);
	OK(MPI_Wait(&cont, MPI_STATUS_IGNORE));
	CHECK_EQ(calls, 1);
	cont_free();
}

static MPI_Request pair[2];
static int value_in, value_out, turns;

/* Starts both again, and waits for them again. */
static int again(int rc, void *arg)
{
	(void)arg;
	CHECK_EQ(rc, MPI_SUCCESS);
	CHECK_EQ(value_in, turns);
	if (++turns == ROUNDS)
		return MPI_SUCCESS;
	value_out = turns;
	OK(MPI_Startall(2, pair));
	return MPIX_Continueall(2, pair, again, NULL, 0, MPI_STATUSES_IGNORE, cont);
}

/* Persistent requests keep their handles; a ring that goes round by callbacks alone. */
static void persistent(const char *threads)
{
	int flag;

	cont_new(0, 0, "mpi_continue_thread", threads);
	OK(MPI_Start(&cont));
	OK(MPI_Recv_init(&value_in, 1, MPI_INT, (rank + size - 1) % size, 1, MPI_COMM_WORLD,
			 &pair[0]));
	OK(MPI_Send_init(&value_out, 1, MPI_INT, (rank + 1) % size, 1, MPI_COMM_WORLD, &pair[1]));
	turns = value_out = 0;
	OK(MPI_Startall(2, pair));
	OK(MPIX_Continueall(2, pair, again, NULL, 0, MPI_STATUSES_IGNORE, cont));
	OK(MPI_Wait(&cont, MPI_STATUS_IGNORE));
	CHECK_EQ(turns, ROUNDS);
	/* It is the continuation that ends them; freed with the flag. */
	OK(MPI_Start(&cont));
	OK(MPI_Start(&pair[0]));
	MPI_Request copy = pair[0];
	calls = 0;
	OK(MPIX_Continue(&pair[0], count_cb, NULL, MPIX_CONT_REQUESTS_FREE, MPI_STATUS_IGNORE,
			 cont));
	CHECK(pair[0] == MPI_REQUEST_NULL);
	FAILS(MPI_Test(&copy, &flag, MPI_STATUS_IGNORE), MPI_ERR_REQUEST);
	OK(MPI_Start(&pair[1]));
	OK(MPIX_Continue(&pair[1], count_cb, NULL, 0, MPI_STATUS_IGNORE, cont));
	OK(MPI_Wait(&cont, MPI_STATUS_IGNORE));
	CHECK_EQ(calls, 2);
	OK(MPI_Request_free(&pair[1]));
	cont_free();
}

/* ---- many --------------------------------------------------------------------------------- */

static int order[MANY];
static _Atomic int ran; /* in the background several callbacks may run at once */

static int note_cb(int rc, void *arg)
{
	CHECK_EQ(rc, MPI_SUCCESS);
	order[(int *)arg - order]++;
	ran++;
	return MPI_SUCCESS;
}

static void many(int flags, const char *threads)
{
	static int in[MANY];
	MPI_Request r;

	cont_new(flags, 0, "mpi_continue_thread", threads);
	OK(MPI_Start(&cont));
	ran = 0;
	for (int i = 0; i < MANY; i++) {
		order[i] = 0;
		in[i] = -1;
		OK(MPI_Irecv(&in[i], 1, MPI_INT, (rank + size - 1) % size, i, MPI_COMM_WORLD, &r));
		OK(MPIX_Continue(&r, note_cb, &order[i], 0, MPI_STATUS_IGNORE, cont));
	}
	for (int i = MANY - 1; i >= 0; i--)
		OK(MPI_Send(&i, 1, MPI_INT, (rank + 1) % size, i, MPI_COMM_WORLD));
	OK(MPI_Wait(&cont, MPI_STATUS_IGNORE));
	CHECK_EQ(ran, MANY);
	for (int i = 0; i < MANY; i++)
		CHECK(order[i] == 1 && in[i] == i);
	cont_free();
}

/* A chain of callbacks that are due at once uses no stack. */
static int chain(int rc, void *arg)
{
	MPI_Request none = MPI_REQUEST_NULL;

	if (++*(int *)arg == 10 * MANY)
		return rc;
	return MPIX_Continue(&none, chain, arg, 0, MPI_STATUS_IGNORE, cont);
}

static void chained(int flags)
{
	MPI_Request none = MPI_REQUEST_NULL;
	int links = 0;

	cont_new(flags, 0, NULL, NULL);
	OK(MPI_Start(&cont));
	OK(MPIX_Continue(&none, chain, &links, 0, MPI_STATUS_IGNORE, cont));
	OK(MPI_Wait(&cont, MPI_STATUS_IGNORE));
	CHECK_EQ(links, 10 * MANY);
	cont_free();
}

/* ---- errors ------------------------------------------------------------------------------- */

static int fails_cb(int rc, void *arg)
{
	(void)rc, (void)arg;
	calls++;
	return MPI_ERR_OTHER;
}

static int handled;

static void handler(MPI_Comm *comm, int *code, ...)
{
	int class;

	(void)comm;
	OK(MPI_Error_class(*code, &class));
	CHECK_EQ(class, MPI_ERR_TRUNCATE);
	handled++;
}

/* A message that is longer than its receive. */
static void truncated(MPI_Comm comm, int flags, void *data)
{
	int out[2] = {1, 2}, in;
	MPI_Request r;
	MPI_Status st;

	OK(MPI_Irecv(&in, 1, MPI_INT, 0, 0, comm, &r));
	OK(MPIX_Continueall(1, &r, count_cb, data, flags, &st, cont));
	OK(MPI_Send(out, 2, MPI_INT, 0, 0, comm));
	while (calls + handled == 0)
		OK(MPI_Iprobe(0, 1, comm, &(int){0}, MPI_STATUS_IGNORE));
	int class;
	OK(MPI_Error_class(st.MPI_ERROR, &class));
	CHECK_EQ(class, MPI_ERR_TRUNCATE);
}

static void failures(void)
{
	MPI_Request none = MPI_REQUEST_NULL;
	MPI_Errhandler eh;
	MPI_Comm comm;
	void *failed[4];
	int n = 4, a, b;

	OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
	OK(MPI_Comm_create_errhandler(handler, &eh));
	OK(MPI_Comm_set_errhandler(comm, eh));
	cont_new(0, 0, NULL, NULL);
	OK(MPI_Start(&cont));
	handled = 0;
	truncated(comm, 0, &a);
	CHECK(calls == 0 && handled == 1);
	FAILS(MPI_Wait(&cont, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
	CHECK_EQ(handled, 2); /* of the same communicator */
	OK(MPIX_Continue_get_failed(cont, &n, failed));
	CHECK(n == 1 && failed[0] == &a);
	n = 4;
	OK(MPIX_Continue_get_failed(cont, &n, failed));
	CHECK_EQ(n, 0);
	/* Called with the error, and content. */
	OK(MPI_Start(&cont));
	handled = 0;
	calls = 0;
	truncated(comm, MPIX_CONT_INVOKE_FAILED, &a);
	CHECK(calls == 1 && handled == 1);
	FAILS(last_rc, MPI_ERR_TRUNCATE);
	OK(MPI_Wait(&cont, MPI_STATUS_IGNORE));
	n = 4;
	OK(MPIX_Continue_get_failed(cont, &n, failed));
	CHECK_EQ(n, 0);
	/* The callback's own. */
	OK(MPI_Start(&cont));
	OK(MPIX_Continue(&none, fails_cb, &a, 0, MPI_STATUS_IGNORE, cont));
	OK(MPIX_Continue(&none, fails_cb, &b, 0, MPI_STATUS_IGNORE, cont));
	FAILS(MPI_Wait(&cont, MPI_STATUS_IGNORE), MPI_ERR_OTHER);
	n = 1;
	OK(MPIX_Continue_get_failed(cont, &n, failed));
	CHECK(n == 1 && failed[0] == &a);
	cont_free(); /* with one that was not asked for */
	OK(MPI_Errhandler_free(&eh));
	OK(MPI_Comm_free(&comm));
}

static void mistakes(void)
{
	MPI_Request r, self = MPI_REQUEST_NULL, none = MPI_REQUEST_NULL;
	MPI_Info info;
	int in, n = -1;
	void *failed[1];

	OK(MPI_Info_create(&info));
	OK(MPI_Info_set(info, "mpi_continue_thread", "mine"));
	FAILS(MPIX_Continue_init(0, 0, info, &r), MPI_ERR_INFO_VALUE);
	OK(MPI_Info_free(&info));
	FAILS(MPIX_Continue_init(1024, 0, MPI_INFO_NULL, &r), MPI_ERR_ARG);
	FAILS(MPIX_Continue_init(0, -1, MPI_INFO_NULL, &r), MPI_ERR_ARG);
	FAILS(MPIX_Continue_init(0, 0, MPI_INFO_NULL, NULL), MPI_ERR_ARG);
	cont_new(0, 0, NULL, NULL);
	OK(MPI_Start(&cont));
	FAILS(MPI_Start(&cont), MPI_ERR_REQUEST);
	FAILS(MPIX_Continue(&none, NULL, NULL, 0, MPI_STATUS_IGNORE, cont), MPI_ERR_ARG);
	FAILS(MPIX_Continue(&none, count_cb, NULL, 1024, MPI_STATUS_IGNORE, cont), MPI_ERR_ARG);
	FAILS(MPIX_Continue(NULL, count_cb, NULL, 0, MPI_STATUS_IGNORE, cont), MPI_ERR_ARG);
	FAILS(MPIX_Continueall(-1, &none, count_cb, NULL, 0, MPI_STATUSES_IGNORE, cont),
	      MPI_ERR_COUNT);
	FAILS(MPIX_Continue(&none, count_cb, NULL, 0, MPI_STATUS_IGNORE, self), MPI_ERR_REQUEST);
	FAILS(MPIX_Continue_get_failed(self, &n, failed), MPI_ERR_REQUEST);
	FAILS(MPIX_Continue_get_failed(cont, &n, failed), MPI_ERR_COUNT);
	self = cont;
	FAILS(MPIX_Continue(&self, count_cb, NULL, 0, MPI_STATUS_IGNORE, cont), MPI_ERR_REQUEST);
	OK(MPI_Irecv(&in, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &r));
	FAILS(MPIX_Continue(&r, count_cb, NULL, 0, MPI_STATUS_IGNORE, r), MPI_ERR_REQUEST);
	MPI_Request twice[2] = {r, r};
	FAILS(MPIX_Continueall(2, twice, count_cb, NULL, 0, MPI_STATUSES_IGNORE, cont),
	      MPI_ERR_REQUEST);
	CHECK(twice[0] == r && calls == 0);
	/* None was taken: it is as good as before; cancelled under the continuation it completes. */
	MPI_Request copy = r;
	OK(MPI_Cancel(&r));
	OK(MPIX_Continue(&r, count_cb, NULL, 0, MPI_STATUS_IGNORE, cont));
	FAILS(MPI_Wait(&copy, MPI_STATUS_IGNORE), MPI_ERR_REQUEST);
	OK(MPI_Wait(&cont, MPI_STATUS_IGNORE));
	CHECK_EQ(calls, 1);
	/* A persistent one that has a continuation. */
	OK(MPI_Recv_init(&in, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &r));
	OK(MPI_Start(&r));
	OK(MPI_Start(&cont));
	OK(MPIX_Continue(&r, count_cb, NULL, 0, MPI_STATUS_IGNORE, cont));
	FAILS(MPIX_Continue(&r, count_cb, NULL, 0, MPI_STATUS_IGNORE, cont), MPI_ERR_REQUEST);
	FAILS(MPI_Request_free(&r), MPI_ERR_REQUEST);
	FAILS(MPI_Start(&r), MPI_ERR_REQUEST);
	OK(MPI_Cancel(&r));
	OK(MPI_Wait(&cont, MPI_STATUS_IGNORE));
	CHECK_EQ(calls, 2);
	OK(MPI_Request_free(&r));
	cont_free();
}

/* Freed while callbacks are to come: they come. */
static void freed_active(void)
{
	int in = 0, out = 4, flag;
	MPI_Request r;

	cont_new(0, 0, NULL, NULL);
	OK(MPI_Start(&cont));
	OK(MPI_Irecv(&in, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &r));
	OK(MPIX_Continue(&r, count_cb, NULL, 0, MPI_STATUS_IGNORE, cont));
	cont_free();
	OK(MPI_Send(&out, 1, MPI_INT, 0, 0, MPI_COMM_SELF));
	while (!calls)
		OK(MPI_Iprobe(0, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE));
	CHECK_EQ(in, 4);
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_MULTIPLE);
	OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	cont_new(0, 0, NULL, NULL);
	one_message(0);
	one_message(MPIX_CONT_REQUESTS_FREE);
	cont_free();
	complete_already();
	poll_only();
	poll_only_blocks();
	completed_here();
	kinds(0);
	kinds(MPIX_CONT_POLL_ONLY);
	persistent("application");
	persistent("all");
	many(0, "application");
	many(0, "all");
	many(MPIX_CONT_POLL_ONLY, "application");
	chained(0);
	chained(MPIX_CONT_POLL_ONLY);
	failures();
	mistakes();
	freed_active();
	test_barrier();
	return test_end();
}
