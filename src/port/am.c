/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * am.c - active messages: a few receives that are always posted, each with its buffer; the thread
 * that completes one runs the handler and posts it again.
 *
 * More messages than receives lie unexpected until one is free, within the senders' credit.
 *
 * A receive that is posted while a message is there completes within the call that posts it.  So
 * that handlers do not nest as deep as messages lie there, its state says which thread goes on:
 * POSTING in the call, POSTED after it, ARRIVED when it is complete.
 *
 *            poster                      completer
 *   POSTING  ---- call returns ---->  POSTED   ---- runs the handler, posts
 *   POSTING  <--- runs the handler -- ARRIVED  (leaves it to the poster)
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "port/am.h"

#define RECEIVES 16

enum state { POSTING, POSTED, ARRIVED };

struct receive {
	struct weft_req req;
	_Atomic int x_state;
	char data[WEFT_COMM_AM_MAX];
};

static struct receive *receives;
static _Atomic int x_posted; /* receives that will go on by themselves */
static _Atomic bool x_stop;
static _Atomic(weft_comm_handler) x_fn[WEFT_PORT_AM_HANDLERS];
static void *fn_arg[WEFT_PORT_AM_HANDLERS];

static void run_handler(struct receive *r)
{
	const struct weft_status *st = &r->req.status;
	if (st->err || st->cancelled)
		return;
	weft_comm_handler fn = NULL;
	if (st->tag >= 0 && st->tag < WEFT_PORT_AM_HANDLERS)
		/* SEE <- SET (am_set).  Carries: its argument. */
		fn = atomic_load_explicit(&x_fn[st->tag], memory_order_acquire);
	weft_port_depth++;
	if (fn)
		fn(st->peer, r->data, st->bytes, fn_arg[st->tag]);
	else
		weft_warn("an active message from rank %d names handler %d, which is not there",
			  st->peer, st->tag);
	weft_port_depth--;
}

static void am_arrived(struct weft_req *req, void *arg);

/* Posts r until it stays posted; handles what is there already. */
static void post_receive(struct receive *r)
{
	struct weft_buf b = weft_data_buf_flat(r->data, sizeof r->data);
	/* Ends when no message is there, or when stop has begun. */
	for (;;) {
		int was = POSTING;
		atomic_store_explicit(&r->x_state, POSTING, memory_order_relaxed);
		weft_comm_req_init(&r->req, am_arrived, r);
		if (atomic_load_explicit(&x_stop, memory_order_seq_cst) ||
		    weft_comm_core_irecv(&r->req, weft_port_ctx[WEFT_PORT_AM], WEFT_ANY_PEER,
					 WEFT_ANY_TAG, &b))
			break;
		/* LEAVE -> GO ON (am_arrived).  Acquire: SEE <- DONE (am_arrived), the message. */
		if (atomic_compare_exchange_strong_explicit(
			    &r->x_state, &was, POSTED, memory_order_acq_rel, memory_order_acquire))
			return;
		run_handler(r);
	}
	/* GONE -> STOP (am_stop).  Carries: that nothing of r is used any more. */
	atomic_fetch_sub_explicit(&x_posted, 1, memory_order_release);
}

static void am_arrived(struct weft_req *req, void *arg)
{
	struct receive *r = arg;
	(void)req;
	/* DONE -> SEE (post_receive).  GO ON <- LEAVE.  Carries: the message; that the poster is
	 * out. */
	if (atomic_exchange_explicit(&r->x_state, ARRIVED, memory_order_acq_rel) == POSTING)
		return;
	run_handler(r);
	post_receive(r);
}

weft_err weft_port_am_start(void)
{
	receives = calloc(RECEIVES, sizeof *receives);
	if (!receives)
		return WEFT_ERR_NOMEM;
	atomic_store_explicit(&x_stop, false, memory_order_relaxed);
	atomic_store_explicit(&x_posted, RECEIVES, memory_order_relaxed);
	for (int i = 0; i < RECEIVES; i++)
		post_receive(&receives[i]);
	return WEFT_OK;
}

void weft_port_am_stop(void)
{
	if (!receives)
		return;
	/* seq_cst: before the cancels; a receive that is posted later sees it. */
	atomic_store_explicit(&x_stop, true, memory_order_seq_cst);
	/* Each round takes back what is posted; ends when the last handler has returned.  A receive
	 * that is just being posted is taken back in a later round. */
	for (;;) {
		/* STOP <- GONE (post_receive). */
		if (!atomic_load_explicit(&x_posted, memory_order_acquire))
			break;
		for (int i = 0; i < RECEIVES; i++)
			/* Acquire: LEAVE, what the poster wrote. */
			if (atomic_load_explicit(&receives[i].x_state, memory_order_acquire) ==
			    POSTED)
				(void)weft_comm_recv_cancel(&receives[i].req);
		(void)weft_task_engine_poll();
		sched_yield();
	}
	free(receives);
	receives = NULL;
	for (int i = 0; i < WEFT_PORT_AM_HANDLERS; i++)
		atomic_store_explicit(&x_fn[i], NULL, memory_order_relaxed);
}

/* ---- sending ------------------------------------------------------------------------------ */

struct copy {
	struct weft_req req;
	char data[];
};

static void copy_sent(struct weft_req *req, void *arg)
{
	(void)req;
	free(arg);
}

weft_err weft_port_am_send(int peer, int id, const void *data, size_t bytes)
{
	struct weft_buf b = weft_data_buf_flat(data, bytes);
	struct weft_ctx *ctx = weft_port_ctx[WEFT_PORT_AM];
	weft_err err = weft_comm_send_now(ctx, peer, id, &b);
	if (err != WEFT_AGAIN)
		return err;
	struct copy *c = malloc(sizeof *c + bytes);
	if (!c)
		return WEFT_ERR_NOMEM;
	if (bytes)
		memcpy(c->data, data, bytes);
	b = weft_data_buf_flat(c->data, bytes);
	weft_comm_req_init(&c->req, copy_sent, c);
	err = weft_comm_core_isend(&c->req, ctx, peer, id, &b, WEFT_SEND_STANDARD);
	if (err)
		free(c);
	else
		weft_task_engine_pending();
	return err;
}

weft_err weft_comm_am(int peer, int id, const void *data, size_t bytes)
{
	struct weft_buf b = weft_data_buf_flat(data, bytes);
	struct weft_req req;
	struct weft_completion *c = &req.done;

	if (!weft_port_is_open())
		return WEFT_ERR_STATE;
	if (id < 0 || id >= WEFT_COMM_AM_HANDLERS || bytes > WEFT_COMM_AM_MAX || (bytes && !data))
		return WEFT_ERR_ARG;
	if (weft_port_in_handler())
		return weft_port_am_send(peer, id, data, bytes);
	weft_err err = weft_comm_send_now(weft_port_ctx[WEFT_PORT_AM], peer, id, &b);
	if (err != WEFT_AGAIN)
		return err;
	weft_comm_req_init(&req, NULL, NULL);
	err = weft_comm_core_isend(&req, weft_port_ctx[WEFT_PORT_AM], peer, id, &b,
				   WEFT_SEND_STANDARD);
	if (!err)
		err = weft_task_engine_wait_all(&c, 1, WEFT_FOREVER);
	return err ? err : req.status.err;
}

void weft_port_am_set(int id, weft_comm_handler fn, void *arg)
{
	fn_arg[id] = arg;
	/* SET -> SEE (run_handler).  Carries: the argument. */
	atomic_store_explicit(&x_fn[id], fn, memory_order_release);
}

weft_err weft_comm_am_handler(int id, weft_comm_handler fn, void *arg)
{
	if (id < 0 || id >= WEFT_COMM_AM_HANDLERS)
		return WEFT_ERR_ARG;
	weft_port_am_set(id, fn, arg);
	return WEFT_OK;
}
