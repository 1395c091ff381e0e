/* SPDX-License-Identifier: BSD-3-Clause */
/* event_list.c - a source's requests: those that are pending, and those that a callback has completed. */
#include "base/assert.h"
#include "task/event/event_int.h"

/* By priority, behind those of the same. */
void weft_task_events_add(struct weft_events *es, struct weft_ev *ev)
{
	int priority = weft_task_event_public(ev)->priority;
	struct weft_link *at = es->pending.head.prev;
	while (at != &es->pending.head &&
	       weft_task_event_public(weft_task_event_of_link(at))->priority < priority)
		at = at->prev; /* ends at the head */
	weft_list_insert_before(at->next, &ev->link);
	es->count++;
}

void weft_event_complete(struct weft_event *event, int64_t result)
{
	struct weft_ev *ev = weft_task_event_of(event);
	struct weft_events *es = ev->es;
	weft_assert(es->count > 0);
	weft_assert(!weft_wait_completion_done(&ev->done));
	if (es->cursor == &ev->link)
		es->cursor = ev->link.next;
	weft_list_remove(&ev->link);
	es->count--;
	ev->result = result;
	weft_list_push_back(&es->done, &ev->link);
}

struct weft_event *weft_events_next(struct weft_events *es)
{
	struct weft_link *l = es->cursor;
	if (l == &es->pending.head)
		return NULL;
	es->cursor = l->next;
	return weft_task_event_public(weft_task_event_of_link(l));
}

struct weft_event *weft_events_first(struct weft_events *es)
{
	es->cursor = es->pending.head.next;
	return weft_events_next(es);
}
