/* SPDX-License-Identifier: BSD-3-Clause */
/* completion.c - waking the threads that sleep in a completion's list. */
#include "base/assert.h"
#include "wait/completion.h"

#include "wait/waiter.h"

_Thread_local struct weft_wake_batch *weft_wait_wake_batch_self;
_Thread_local const struct weft_completion *weft_wait_completion_own;

/* Lets n go; wakes its owner, which may free n at once. */
static void release_node(struct weft_wait_node *n, struct weft_parker *parker)
{
	weft_assert(!atomic_load_explicit(&n->x_left, memory_order_relaxed));
	/* LEFT -> leaving waiter.  Carries: our reads of *n are over.  Without it the waiter could
	 * return and its stack frame be used again under our eyes. */
	atomic_store_explicit(&n->x_left, true, memory_order_release);
	if (parker)
		weft_wait_unpark(parker);
}

/* Does n's waiter wait for nothing else?  Counts n as come. */
static bool last_of_waiter(struct weft_wait_node *n)
{
	/* acq_rel: the last one wakes on behalf of all, so it carries what the others saw. */
	return atomic_fetch_sub_explicit(&n->waiter->x_need, 1, memory_order_acq_rel) <= 1;
}

void weft_wait_list_wake(struct weft_wait_node *list)
{
	struct weft_wake_batch *b = weft_wait_wake_batch_self;
	while (list) { /* ends: the list is ours and finite */
		struct weft_wait_node *n = list;
		list = n->next;
		if (!last_of_waiter(n)) {
			release_node(n, NULL);
		} else if (b) {
			n->next = NULL;
			*b->last_p = n;
			b->last_p = &n->next;
			b->count++;
			weft_assert(b->first && !n->next);
		} else {
			release_node(n, n->waiter->parker);
		}
	}
}

unsigned weft_wait_wake_batch_flush(struct weft_wake_batch *b, const struct weft_parker *except)
{
	unsigned others = 0;
	struct weft_wait_node *n = b->first;
	weft_wait_wake_batch_init(b);
	while (n) { /* ends: as above; nothing is appended, no user code runs here */
		struct weft_wait_node *next = n->next;
		struct weft_parker *parker = n->waiter->parker;
		if (parker != except)
			others++;
		release_node(n, parker == except ? NULL : parker);
		n = next;
	}
	return others;
}

void weft_wait_completion_signal(struct weft_completion *c)
{
	struct weft_wait_node *list = weft_wait_completion_finish(c);
	if (weft_unlikely(list != NULL))
		weft_wait_list_wake(list);
}
