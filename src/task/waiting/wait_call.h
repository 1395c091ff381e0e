/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wait_call.h - one call that waits for one, any or all of some completions, or for an idle
 * worker's condition: what it waits for, and its places in their lists.
 *
 * Callers   the thread that waits, for its own call.
 * Owner     the call lies on the waiter's stack; its nodes there too, or on the heap.
 * Promise   after delist no list holds its nodes.
 */
#ifndef WEFT_WAIT_CALL_H
#define WEFT_WAIT_CALL_H

#include "base/cancel.h"
#include "task/wake/ending.h"
#include "task/engine_int.h"

#include <unistd.h>

#define WEFT_NAP_US 50 /* without memory for a node, or turned away often */

struct wait_call {
	struct weft_completion *const *c;
	size_t n;
	bool all;
	size_t first;         /* all: everything before is done */
	uint64_t deadline_ns; /* WEFT_NEVER or of the clock */
	const void *site;     /* where the caller waits: it learns how long to spin */
	struct weft_parker *parker;
	struct weft_wait_node *node; /* n of them */
	bool (*ready)(void *arg);    /* an idle worker's: instead of completions */
	void *ready_arg;
	bool pauses, found;   /* a poller's pause: it sleeps at once, and any find ends it */
	bool held;            /* the baton is ours already, and the batch set up */
	unsigned turned_away; /* so often in this wait */
	uint64_t slice_ns;    /* our own slice, while we have a short one; else 0 */
	bool enlisted, parked_once, slept;
	struct weft_waiter waiter;
	struct weft_wake_batch batch; /* what our rounds completed for others */
};

static inline bool weft_task_wait_call_done(struct wait_call *w)
{
	if (w->ready)
		return w->ready(w->ready_arg);
	if (w->all) {
		while (w->first < w->n && /* ends at n */
		       (!w->c[w->first] || weft_wait_completion_done(w->c[w->first])))
			w->first++;
		return w->first == w->n;
	}
	for (size_t i = 0; i < w->n; i++)
		if (!w->c[i] || weft_wait_completion_done(w->c[i]))
			return true;
	return w->n == 0;
}

/* The engine has been stopped under us: what we wait for will not come. */
static inline bool weft_task_wait_call_stopped(struct weft_engine *e)
{
	return weft_unlikely(!weft_task_ending_parks(&e->x_running));
}

static inline bool weft_task_wait_call_expired(const struct wait_call *w)
{
	return w->deadline_ns != WEFT_NEVER && weft_clock_ns() >= w->deadline_ns;
}

/* WEFT_ERR_STATE: stopped, WEFT_ERR_TIMEOUT: expired, else WEFT_OK. */
static inline weft_err weft_task_wait_call_given_up(struct weft_engine *e,
						    const struct wait_call *w)
{
	if (weft_task_wait_call_stopped(e))
		return WEFT_ERR_STATE;
	return weft_task_wait_call_expired(w) ? WEFT_ERR_TIMEOUT : WEFT_OK;
}

/* Without memory for a parker: a nap instead. */
static inline void weft_task_wait_call_nap(void)
{
	int was = weft_cancel_off();
	usleep(WEFT_NAP_US);
	weft_cancel_back(was);
}

/* Puts us into the lists of all that is not done yet; false: no parker, do not sleep. */
bool weft_task_wait_call_enlist(struct wait_call *w);
/* No list holds our nodes, or the node, any more when these return. */
void weft_task_wait_call_delist(struct wait_call *w);
void weft_task_wait_call_delist_node(struct weft_completion *c, struct weft_wait_node *n);

/* Among the sleepers that a leaver of the baton may wake; counted by weft_task_baton_park(). */
void weft_task_parked_add(struct weft_engine *e, struct weft_parked *me);
void weft_task_parked_remove(struct weft_engine *e, struct weft_parked *me);

/* May this thread wait at all?  Logs why not. */
weft_err weft_task_wait_call_may(struct weft_engine *e);

/* waiting.c: sleeps for w, by whatever way fits the caller; n at most 4.  As a wait's end. */
weft_err weft_task_wait_call_sleep(struct wait_call *w);

/* wait_ult.c: for threads that block beside the kernel's: their worker polls, not they. */
weft_err weft_task_wait_ult(struct wait_call *w);
/* For one, without a deadline, and with no more on its stack than that takes.  False: the caller is
 * no such thread, or may not wait. */
bool weft_task_wait_ult_alone(struct weft_completion *c);

#endif
