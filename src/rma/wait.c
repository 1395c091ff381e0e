/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wait.c - waiting until a condition of a window holds.
 *
 * Few threads wait in a window at a time, so a change wakes all of them, and each looks again.
 *
 *   waiter                          changer
 *   joins the list, counts itself   changes the state
 *   looks at the state              looks at the count
 *   sleeps
 *
 * Both are ordered by seq_cst: either the waiter sees the change, or the changer the waiter.  Where the
 * changer is another member of the host, told.h has the same between them; its message is a change.
 */
#include "rma/win_int.h"
#include "task/look.h"

struct weft_rma_waiter {
	struct weft_rma_waiter *next;
	struct weft_completion done;
};

/* False: a changer has taken w off the list, and will signal it. */
static bool leave_list(struct weft_rma_win *win, struct weft_rma_waiter *w)
{
	weft_comm_spin_lock(&win->lock);
	struct weft_rma_waiter **at = &win->waiters;
	while (*at && *at != w)
		at = &(*at)->next;
	bool there = *at != NULL;
	if (there)
		*at = w->next;
	weft_comm_spin_unlock(&win->lock);
	return there;
}

/* x_sleeps: of this member, if it waits for a word of others; else NULL. */
static void sleep_until(struct weft_rma_win *win, bool (*ready)(struct weft_rma_win *, void *),
			void *arg, _Atomic uint32_t *x_sleeps)
{
	/* Ends when the condition holds: each turn but the last has slept until a change. */
	while (!ready(win, arg)) {
		struct weft_rma_waiter w = {0};
		weft_wait_completion_init(&w.done);
		weft_comm_spin_lock(&win->lock);
		w.next = win->waiters;
		win->waiters = &w;
		weft_comm_spin_unlock(&win->lock);
		/* seq_cst: before the look. */
		atomic_fetch_add_explicit(&win->x_waiters, 1, memory_order_seq_cst);
		if (x_sleeps)
			weft_rma_sleeper_say(x_sleeps);
		bool over = ready(win, arg);
		if (!over || !leave_list(win, &w))
			weft_task_engine_wait(&w.done);
		/* Relaxed: a hint that is too high costs a lock. */
		atomic_fetch_sub_explicit(&win->x_waiters, 1, memory_order_relaxed);
		if (over)
			return;
	}
}

void weft_rma_wait_until(struct weft_rma_win *win, bool (*ready)(struct weft_rma_win *, void *),
			 void *arg)
{
	sleep_until(win, ready, arg, NULL);
}

struct condition {
	struct weft_rma_win *win;
	bool (*ready)(struct weft_rma_win *, void *);
	void *arg;
};

static bool condition_holds(const void *arg)
{
	const struct condition *c = arg;
	return c->ready(c->win, c->arg);
}

void weft_rma_wait_until_told(struct weft_rma_win *win,
			      bool (*ready)(struct weft_rma_win *, void *), void *arg)
{
	struct condition c = {win, ready, arg};
	/* Alone on its host, it waits for messages: the engine looks for those better. */
	if (win->places == 1 || !weft_task_look_for_a_while(condition_holds, &c))
		sleep_until(win, ready, arg, &win->target[win->rank].slot->x_sleeps);
}

void weft_rma_notify(struct weft_rma_win *win)
{
	/* seq_cst: the change comes before the look. */
	atomic_thread_fence(memory_order_seq_cst);
	if (weft_likely(!atomic_load_explicit(&win->x_waiters, memory_order_relaxed)))
		return;
	weft_comm_spin_lock(&win->lock);
	struct weft_rma_waiter *w = win->waiters;
	win->waiters = NULL;
	weft_comm_spin_unlock(&win->lock);
	while (w) { /* ends: the list is ours */
		struct weft_rma_waiter *next = w->next;
		weft_wait_completion_signal(&w->done);
		w = next;
	}
}
