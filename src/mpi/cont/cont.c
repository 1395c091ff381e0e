/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cont.c - a continuation: attached to requests, counted down by them, run.
 *
 * A waker's last access to an operation is in its wake function: after that the continuation may
 * run and be freed.
 */
#include "mpi/cont/cont.h"

#include <stdlib.h>

#include "base/assert.h"
#include "mpi/entry.h"
#include "mpi/error.h"
#include "wait/stack.h"

/* The calling thread is in a callback: what is complete already does not run inside it. */
static _Thread_local int nested;

/* ---- operations --------------------------------------------------------------------------- */

/* One less to wait for; here: see weft_mpi_cont_ready. */
static void count_down(struct weft_mpi_cont *k, bool here)
{
	/* LAST -> LAST.  Carries: what each operation wrote, to the callback. */
	if (atomic_fetch_sub_explicit(&k->x_left, 1, memory_order_acq_rel) == 1)
		weft_mpi_cont_ready(k, here);
}

static void op_wake(struct weft_parker *p)
{
	struct weft_mpi_cont_op *o = p->ops_arg;

	if (o->r->ops->advance)
		weft_task_engine_leave(&o->step);
	else
		count_down(o->k, false);
}

static void never_sleeps(struct weft_parker *p, uint64_t deadline_ns)
{
	(void)p;
	(void)deadline_ns;
}

static const struct weft_parker_ops op_parker_ops = {
	.name = "continuation", .sleep = never_sleeps, .wake = op_wake};

/* False: c is done already. */
static bool op_enlist(struct weft_mpi_cont_op *o, struct weft_completion *c)
{
	/* Relaxed, both: published with the node. */
	atomic_store_explicit(&o->parker.x_word, WEFT_PARKER_PARKED, memory_order_relaxed);
	atomic_store_explicit(&o->waiter.x_need, 1, memory_order_relaxed);
	weft_wait_node_init(&o->node, &o->waiter);
	return weft_wait_completion_enlist(c, &o->node);
}

/* Goes on until the operation is over, or waits for something. */
static void op_go_on(struct weft_mpi_cont_op *o)
{
	/* Ends: each round takes the operation a step on, or finds it over. */
	while (!weft_mpi_request_done(o->r)) {
		struct weft_completion *c = o->r->ops->wait_on(o->r);
		if (c && op_enlist(o, c))
			return;
	}
	count_down(o->k, false);
}

static void op_step(struct weft_task_app_work *w)
{
	op_go_on(weft_container_of(w, struct weft_mpi_cont_op, step));
}

/* ---- running ------------------------------------------------------------------------------ */

/* Ends the operation, with its status; its error went to the handler of its communicator. */
static int op_end(struct weft_mpi_cont *k, int i)
{
	struct weft_mpi_request *r = k->op[i].r;
	MPI_Status *st = k->statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &k->statuses[i];
	MPI_Request gone;

	if (!r) {
		weft_mpi_status_empty(st);
		return MPI_SUCCESS;
	}
	struct weft_mpi_comm *comm = weft_mpi_request_owner(r);
	if (comm)
		weft_mpi_comm_ref(comm);
	r->continued = false;
	int err = weft_mpi_request_end(r, &gone, st);
	if (st != MPI_STATUS_IGNORE && k->several)
		st->MPI_ERROR = err;
	if (weft_unlikely(err != MPI_SUCCESS)) {
		err = weft_mpi_raise(err, k->several ? "MPIX_Continueall" : "MPIX_Continue");
		if (!k->comm) {
			k->comm = comm;
			comm = NULL;
		}
	}
	if (comm)
		weft_mpi_comm_unref(comm);
	return err;
}

void weft_mpi_cont_run(struct weft_mpi_cont *k)
{
	int first = MPI_SUCCESS, code;

	for (int i = 0; i < k->count; i++) {
		int err = op_end(k, i);
		if (!first)
			first = err;
	}
	code = first;
	if (!first || k->flags & MPIX_CONT_INVOKE_FAILED) {
		nested++;
		code = k->cb(first, k->cb_data);
		nested--;
	}
	weft_mpi_cont_close(k, code);
}

void weft_mpi_cont_run_ready(void)
{
	if (!nested && !weft_wait_stack_may_be_small())
		weft_task_engine_run_left();
}

void weft_mpi_cont_free(struct weft_mpi_cont *k)
{
	if (k->comm)
		weft_mpi_comm_unref(k->comm);
	free(k);
}

/* ---- attaching ---------------------------------------------------------------------------- */

/* Takes the requests; on an error none is taken. */
static int take_requests(struct weft_mpi_cont *k, MPI_Request requests[])
{
	int err = MPI_SUCCESS, n = 0;

	for (; n < k->count; n++) {
		struct weft_mpi_request *r;
		err = weft_mpi_request_active(requests[n], k->several ? n : -1, &r);
		if (!err && r && weft_mpi_cont_req_is(r))
			err = weft_mpi_err(MPI_ERR_REQUEST,
					   "a continuation request can have no continuation");
		if (!err && r && r->continued)
			err = weft_mpi_err(MPI_ERR_REQUEST,
					   "the request has a continuation already");
		if (err)
			break;
		k->op[n].r = r;
		k->op[n].k = k;
		if (r)
			r->continued = true;
	}
	if (!err)
		return MPI_SUCCESS;
	while (n-- > 0)
		if (k->op[n].r)
			k->op[n].r->continued = false;
	return err;
}

/* The handle is no longer the program's, but for what it must still call with it. */
static void take_handle(struct weft_mpi_cont *k, struct weft_mpi_request *r, MPI_Request *handle)
{
	if (r->persistent && !(k->flags & MPIX_CONT_REQUESTS_FREE))
		return;
	r->persistent = false;
	*handle = MPI_REQUEST_NULL;
	if (!r->ops->free_active)
		weft_mpi_object_unname(&r->head);
}

static void op_begin(struct weft_mpi_cont_op *o)
{
	weft_wait_parker_init(&o->parker, &op_parker_ops, o);
	o->waiter.parker = &o->parker;
	o->step.fn = op_step;
	op_go_on(o);
}

static int bad_arguments(int count, const MPI_Request requests[], MPIX_Continue_cb_function *cb,
			 int flags)
{
	if (count < 0)
		return weft_mpi_err(MPI_ERR_COUNT, "count is negative (%d)", count);
	if (count && !requests)
		return weft_mpi_bad_pointer("requests");
	if (!cb)
		return weft_mpi_bad_pointer("cb");
	if (flags & ~(MPIX_CONT_REQBUF_VOLATILE | MPIX_CONT_REQUESTS_FREE |
		      MPIX_CONT_DEFER_COMPLETE | MPIX_CONT_INVOKE_FAILED))
		return weft_mpi_err(MPI_ERR_ARG, "unknown flags (0x%x)", (unsigned)flags);
	return MPI_SUCCESS;
}

static int attach_callback(int count, MPI_Request requests[], MPIX_Continue_cb_function *cb,
			   void *cb_data, int flags, bool several, MPI_Status *statuses,
			   MPI_Request cont_req)
{
	struct weft_mpi_cont_req *c;
	int err = bad_arguments(count, requests, cb, flags);

	if (!err)
		err = weft_mpi_cont_req_of(cont_req, &c);
	if (err)
		return err;
	struct weft_mpi_cont *k = calloc(1, sizeof(*k) + (size_t)count * sizeof(k->op[0]));
	if (!k)
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	k->of = c;
	k->cb = cb;
	k->cb_data = cb_data;
	k->flags = flags;
	k->count = count;
	k->several = several;
	k->statuses = statuses;
	err = take_requests(k, requests);
	if (err) {
		free(k);
		return err;
	}
	weft_mpi_cont_open(c);
	/* Relaxed: the operations are enlisted after it. */
	atomic_store_explicit(&k->x_left, count + 1, memory_order_relaxed);
	for (int i = 0; i < count; i++) {
		if (k->op[i].r) {
			take_handle(k, k->op[i].r, &requests[i]);
			op_begin(&k->op[i]);
		} else {
			count_down(k, false);
		}
	}
	/* Not inside a callback, and not on a stack that the program has made small. */
	count_down(k, !nested && !c->defer && !(flags & MPIX_CONT_DEFER_COMPLETE) &&
			      !weft_wait_stack_may_be_small());
	return MPI_SUCCESS;
}

/* ---- entry points ------------------------------------------------------------------------- */

WEFT_API int PMPIX_Continueall(int count, MPI_Request requests[], MPIX_Continue_cb_function *cb,
			       void *cb_data, int flags, MPI_Status statuses[],
			       MPI_Request cont_req)
{
	if (weft_unlikely(!weft_mpi_running()))
		weft_mpi_not_running("MPIX_Continueall");
	int err = attach_callback(count, requests, cb, cb_data, flags, true, statuses, cont_req);
	return err ? weft_mpi_raise(err, "MPIX_Continueall") : MPI_SUCCESS;
}

WEFT_API int PMPIX_Continue(MPI_Request *request, MPIX_Continue_cb_function *cb, void *cb_data,
			    int flags, MPI_Status *status, MPI_Request cont_req)
{
	if (weft_unlikely(!weft_mpi_running()))
		weft_mpi_not_running("MPIX_Continue");
	int err = attach_callback(1, request, cb, cb_data, flags, false, status, cont_req);
	return err ? weft_mpi_raise(err, "MPIX_Continue") : MPI_SUCCESS;
}

WEFT_API int MPIX_Continueall(int count, MPI_Request requests[], MPIX_Continue_cb_function *cb,
			      void *cb_data, int flags, MPI_Status statuses[], MPI_Request cont_req)
	__attribute__((weak, alias("PMPIX_Continueall")));
WEFT_API int MPIX_Continue(MPI_Request *request, MPIX_Continue_cb_function *cb, void *cb_data,
			   int flags, MPI_Status *status, MPI_Request cont_req)
	__attribute__((weak, alias("PMPIX_Continue")));
