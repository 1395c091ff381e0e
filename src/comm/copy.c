/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * copy.c - large copies between the memories of two processes as tasks of the progress engine: a
 * piece per round, outside every mask, by whoever polls.
 *
 * Either side may copy.  Normally the receiver fetches.  If it is the watcher that comes to run
 * the fetch, the receiver's threads are computing, and on this core a copy would take from them:
 * then the sender is offered the buffer (rndv.c), who perhaps only waits.
 */
#include <stdlib.h>
#include "comm/comm_int.h"
#include "task/task.h"
#include "task/weft_task.h"

struct copy {
	struct weft_task task;
	struct weft_core *core;
	struct weft_req *req;
	bool push;
	bool begun;
};

static enum weft_task_verdict run(struct weft_task *t, void *arg)
{
	struct copy *c = arg;
	bool over;

	(void)t;
	if (c->push) {
		over = weft_push_step(c->req);
	} else if (!c->begun && weft_engine_runner() == WEFT_RUNNER_WATCHER &&
		   weft_rndv_offer(c->req)) {
		over = true; /* c->core: the request may be over already */
		atomic_fetch_sub_explicit(&c->core->x_owed, 1, memory_order_acq_rel);
	} else {
		over = weft_pull_step(c->req);
	}
	c->begun = true;
	if (!over)
		return WEFT_TASK_AGAIN;
	free(c);
	return WEFT_TASK_GONE;
}

void weft_copy_start(struct weft_core *core, struct weft_req *r, bool push, bool small)
{
	struct copy *c = core->background && !small ? malloc(sizeof *c) : NULL;

	/* Relaxed would do to count; weft_core_idle reads it with acquire to see the answers. */
	atomic_fetch_add_explicit(&core->x_owed, 1, memory_order_acq_rel);
	if (!c) {
		while (!(push ? weft_push_step(r) : weft_pull_step(r)))
			; /* Bound: the message's pieces. */
		return;
	}
	c->core = core;
	c->req = r;
	c->push = push;
	c->begun = false;
	weft_task_init(&c->task, push ? "push" : "fetch", run, c, 0);
	(void)weft_task_submit(&c->task);
}
