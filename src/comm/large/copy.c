/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * copy.c - large copies between the memories of two processes as tasks of the progress engine: a
 * piece per round, outside every mask, by whoever polls.
 *
 * Either side may copy.  Normally the receiver fetches.  If it is the watcher that comes to run
 * the fetch, the receiver's threads are computing, and on this core a copy would take from them:
 * then the sender is offered the buffer (rndv.c), who perhaps only waits.
 *
 * What a thread has started that wants no background progress takes these steps in the next poll
 * or wait of an application thread (weft_task_engine_leave), never in the watcher.
 */
#include <stdlib.h>
#include "base/counters.h"
#include "comm/core.h"
#include "comm/large/copy.h"
#include "comm/large/rndv.h"
#include "task/queue/weft_task.h"
#include "task/task.h"

struct copy {
	struct weft_task task;
	struct weft_core *core;
	struct weft_req *req;
	bool push;
	bool begun;
	bool aside; /* has been left for a while */
	struct weft_task_app_work left;
};

/* It would copy on a core that computes as well, and two watchers would have to wake for it. */
static bool sender_computes(struct weft_req *r)
{
	struct weft_gate *g = weft_comm_req_recv(r)->gate;
	return g->driver->computes && g->driver->computes(g->net, g->peer);
}

static enum weft_task_verdict run(struct weft_task *t, void *arg);

/* Somebody has come to wait here, or nobody for a while. */
static void back(struct weft_task_app_work *l)
{
	struct copy *c = weft_container_of(l, struct copy, left);
	if (!weft_task_engine_behind())
		(void)weft_comm_share_begin(c->req);
	weft_task_init(&c->task, "fetch", run, c, 0); /* the engine is through with it: GONE */
	(void)weft_task_submit(&c->task);
}

/*
 * Both sides compute, and no core is left: to copy now would only take from them, and a copy by
 * both, once they wait, takes half as long.
 */
static bool waits_for_us(struct copy *c)
{
	return !c->begun && !c->aside && weft_task_engine_behind() &&
	       weft_task_engine_cores_taken() && sender_computes(c->req);
}

static enum weft_task_verdict run(struct weft_task *t, void *arg)
{
	struct copy *c = arg;
	bool over;

	(void)t;
	if (!c->push && waits_for_us(c)) {
		c->aside = true;
		c->left.fn = back;
		weft_task_engine_leave_awhile(&c->left);
		return WEFT_TASK_GONE;
	}
	if (c->push) {
		over = weft_comm_push_step(c->req);
	} else if (!c->begun && weft_comm_share_waits(c->req)) {
		return WEFT_TASK_AGAIN;
	} else if (!c->begun && weft_task_engine_behind() && !sender_computes(c->req) &&
		   weft_comm_rndv_offer(c->req)) {
		over = true; /* c->core: the request may be over already */
		atomic_fetch_sub_explicit(&c->core->x_owed, 1, memory_order_acq_rel);
	} else {
		over = weft_comm_pull_step(c->req);
	}
	c->begun = true;
	if (!over)
		return WEFT_TASK_AGAIN;
	free(c);
	return WEFT_TASK_GONE;
}

/* ---- operations that are not progressed in the background ---------------------------------- */

static void left_recv(struct weft_task_app_work *l)
{
	struct weft_core_req_recv *v = weft_container_of(l, struct weft_core_req_recv, left);
	struct weft_core *core = v->gate->core;
	weft_comm_rndv_go_on(weft_comm_req_of_recv_out(&v->out));
	atomic_fetch_sub_explicit(&core->x_owed, 1, memory_order_acq_rel);
}

static void left_send(struct weft_task_app_work *l)
{
	struct weft_core_req_send *s = weft_container_of(l, struct weft_core_req_send, left);
	struct weft_core *core = s->gate->core;
	weft_comm_rndv_cts_go_on(weft_comm_req_of_send_out(&s->out), s->push);
	/* LAST -> SEE (weft_comm_core_idle).  Carries: the answers that its steps have posted. */
	atomic_fetch_sub_explicit(&core->x_owed, 1, memory_order_acq_rel);
}

/* One piece per poll. */
static void left_pull(struct weft_task_app_work *l)
{
	struct weft_core_req_recv *v = weft_container_of(l, struct weft_core_req_recv, left);
	if (!weft_comm_pull_step(weft_comm_req_of_recv_out(&v->out)))
		weft_task_engine_leave(l);
}

static void left_push(struct weft_task_app_work *l)
{
	struct weft_core_req_send *s = weft_container_of(l, struct weft_core_req_send, left);
	if (!weft_comm_push_step(weft_comm_req_of_send_out(&s->out)))
		weft_task_engine_leave(l);
}

static bool leave(struct weft_core *core, struct weft_task_app_work *l,
		  void (*fn)(struct weft_task_app_work *))
{
	if (!core->background || weft_task_engine_runner() == WEFT_RUNNER_APPLICATION)
		return false;
	weft_count(WEFT_CNT_LEFT, 1);
	/* As in weft_comm_copy_start. */
	atomic_fetch_add_explicit(&core->x_owed, 1, memory_order_acq_rel);
	l->fn = fn;
	weft_task_engine_leave(l);
	return true;
}

bool weft_comm_copy_leave_recv(struct weft_req *r)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	return weft_unlikely(v->explicit_only) && leave(v->gate->core, &v->left, left_recv);
}

bool weft_comm_copy_leave_send(struct weft_req *r, bool push)
{
	struct weft_core_req_send *s = weft_comm_req_send(r);
	s->push = push;
	return weft_unlikely(s->explicit_only) && leave(s->gate->core, &s->left, left_send);
}

/* A task could be picked up by anybody. */
static bool start_left(struct weft_req *r, bool push)
{
	struct weft_task_app_work *l;
	if (push ? !weft_comm_req_send(r)->explicit_only : !weft_comm_req_recv(r)->explicit_only)
		return false;
	l = push ? &weft_comm_req_send(r)->left : &weft_comm_req_recv(r)->left;
	l->fn = push ? left_push : left_pull;
	weft_task_engine_leave(l);
	return true;
}

void weft_comm_copy_start(struct weft_core *core, struct weft_req *r, bool push, bool small)
{
	/* Relaxed would do to count; weft_comm_core_idle reads it with acquire to see the answers. */
	atomic_fetch_add_explicit(&core->x_owed, 1, memory_order_acq_rel);
	bool later = core->background && !small;
	if (later && weft_unlikely(start_left(r, push)))
		return;
	struct copy *c = later ? malloc(sizeof *c) : NULL;
	if (!c) {
		while (!(push ? weft_comm_push_step(r) : weft_comm_pull_step(r)))
			; /* Bound: the message's pieces. */
		return;
	}
	c->core = core;
	c->req = r;
	c->push = push;
	c->begun = c->aside = false;
	weft_task_init(&c->task, push ? "push" : "fetch", run, c, 0);
	/* An application thread that found the message here: it may wait for it at once. */
	if (weft_task_engine_runner() == WEFT_RUNNER_APPLICATION)
		(void)weft_task_submit_later(&c->task);
	else
		(void)weft_task_submit(&c->task);
}
