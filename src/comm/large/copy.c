/* SPDX-License-Identifier: BSD-3-Clause */
/* copy.c - the steps of large copies: tasks, and work that only the application's calls do. */
#include <stdlib.h>
#include "base/counters.h"
#include "comm/core.h"
#include "comm/large/copy.h"
#include "comm/request.h"
#include "task/queue/weft_task.h"

struct copy {
	struct weft_task task;
	struct weft_core *core;
	struct weft_req *req;
	weft_comm_copy_step *step;
	enum weft_comm_copy_turn turn;
	struct weft_task_app_work aside;
};

/* What is counted keeps the core from ending (weft_comm_core_idle). */
static void count_up(struct weft_core *core)
{
	/* Relaxed would do to count; weft_comm_core_idle reads it with acquire. */
	atomic_fetch_add_explicit(&core->x_owed, 1, memory_order_acq_rel);
}

static void count_down(struct weft_core *core)
{
	/* LAST -> SEE (weft_comm_core_idle).  Carries: the answers that the steps have posted. */
	atomic_fetch_sub_explicit(&core->x_owed, 1, memory_order_acq_rel);
}

static enum weft_task_verdict run_copy(struct weft_task *t, void *arg);

/* A thread has come to wait here, or none has for a while. */
static void resume_copy(struct weft_task_app_work *w)
{
	struct copy *c = weft_container_of(w, struct copy, aside);
	weft_task_init(&c->task, "copy", run_copy, c, 0); /* the engine is through with it: GONE */
	(void)weft_task_submit(&c->task);
}

static enum weft_task_verdict run_copy(struct weft_task *t, void *arg)
{
	struct copy *c = arg;

	(void)t;
	switch (c->step(c->req, c->turn)) {
	case WEFT_COPY_ASIDE:
		weft_assert(c->turn == WEFT_COPY_FIRST);
		c->turn = WEFT_COPY_BACK;
		c->aside.fn = resume_copy;
		weft_task_engine_leave_awhile(&c->aside);
		return WEFT_TASK_GONE;
	case WEFT_COPY_WAIT:
		weft_assert(c->turn != WEFT_COPY_NEXT);
		return WEFT_TASK_AGAIN;
	case WEFT_COPY_AGAIN:
		c->turn = WEFT_COPY_NEXT;
		return WEFT_TASK_AGAIN;
	case WEFT_COPY_OVER:
		break;
	}
	count_down(c->core);
	free(c);
	return WEFT_TASK_GONE;
}

/* ---- in the application's calls ------------------------------------------------------------ */

struct where {
	struct weft_core *core;
	struct weft_comm_copy_left *left;
	bool explicit_only;
};

static struct where where_of(struct weft_req *r, enum weft_comm_side side)
{
	struct weft_core_req_send *s = weft_comm_req_send(r);
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	if (side == WEFT_SIDE_SENDER)
		return (struct where){s->gate->core, &s->left, s->explicit_only};
	return (struct where){v->gate->core, &v->left, v->explicit_only};
}

static struct weft_req *req_of(struct weft_task_app_work *w, enum weft_comm_side side)
{
	if (side == WEFT_SIDE_SENDER)
		return weft_comm_req_of_send_out(
			&weft_container_of(w, struct weft_core_req_send, left.work)->out);
	return weft_comm_req_of_recv_out(
		&weft_container_of(w, struct weft_core_req_recv, left.work)->out);
}

/* One step per poll. */
static void step_in_call(struct weft_task_app_work *w, enum weft_comm_side side)
{
	struct weft_req *r = req_of(w, side);
	struct where at = where_of(r, side);
	if (at.left->step(r, WEFT_COPY_NEXT) == WEFT_COPY_OVER)
		count_down(at.core);
	else
		weft_task_engine_leave(w);
}

static void step_send_in_call(struct weft_task_app_work *w)
{
	step_in_call(w, WEFT_SIDE_SENDER);
}

static void step_receive_in_call(struct weft_task_app_work *w)
{
	step_in_call(w, WEFT_SIDE_RECEIVER);
}

static void begin_in_call(struct weft_task_app_work *w, enum weft_comm_side side)
{
	struct weft_req *r = req_of(w, side);
	struct where at = where_of(r, side);
	at.left->begin(r);
	count_down(at.core);
}

static void begin_send_in_call(struct weft_task_app_work *w)
{
	begin_in_call(w, WEFT_SIDE_SENDER);
}

static void begin_receive_in_call(struct weft_task_app_work *w)
{
	begin_in_call(w, WEFT_SIDE_RECEIVER);
}

bool weft_comm_copy_defer(struct weft_req *r, enum weft_comm_side side,
			  void (*begin)(struct weft_req *r))
{
	struct where at = where_of(r, side);
	if (weft_likely(!at.explicit_only) || !at.core->background ||
	    weft_task_engine_runner() == WEFT_RUNNER_APPLICATION)
		return false;
	weft_count(WEFT_CNT_LEFT, 1);
	count_up(at.core);
	at.left->begin = begin;
	at.left->work.fn = side == WEFT_SIDE_SENDER ? begin_send_in_call : begin_receive_in_call;
	weft_task_engine_leave(&at.left->work);
	return true;
}

/* ---- starting ------------------------------------------------------------------------------- */

void weft_comm_copy_start(struct weft_req *r, enum weft_comm_side side, weft_comm_copy_step *step,
			  bool now)
{
	struct where at = where_of(r, side);
	bool later = at.core->background && !now;

	count_up(at.core);
	if (later && weft_unlikely(at.explicit_only)) {
		/* A task could be run by any thread. */
		at.left->step = step;
		at.left->work.fn =
			side == WEFT_SIDE_SENDER ? step_send_in_call : step_receive_in_call;
		weft_task_engine_leave(&at.left->work);
		return;
	}
	struct copy *c = later ? malloc(sizeof *c) : NULL;
	if (!c) {
		while (step(r, WEFT_COPY_NEXT) != WEFT_COPY_OVER)
			; /* Bound: the message's pieces. */
		count_down(at.core);
		return;
	}
	c->core = at.core;
	c->req = r;
	c->step = step;
	c->turn = WEFT_COPY_FIRST;
	weft_task_init(&c->task, "copy", run_copy, c, 0);
	/* An application thread that found the message here: it may wait for it at once. */
	if (weft_task_engine_runner() == WEFT_RUNNER_APPLICATION)
		(void)weft_task_submit_later(&c->task);
	else
		(void)weft_task_submit(&c->task);
}
