/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ev_timer.c - timers as an event source: a heap of times, and one timerfd for the earliest while
 * no thread polls.
 */
#include "base/assert.h"
#include "base/log.h"
#include "task/event/event_int.h"
#include "task/event/late.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

struct timer_request {
	uint64_t at_ns;
	size_t index; /* in the heap */
};

_Static_assert(sizeof(struct timer_request) <= sizeof(((struct weft_ev *)0)->of_source), "it fits");

struct timers {
	int fd;
	struct weft_event **heap; /* M: a parent is never later than its children */
	size_t n, room;           /* M */
	uint64_t set_ns;          /* M: what the timerfd is set to; 0: not */
};

static struct timer_request *request_of(const struct weft_event *ev)
{
	return weft_task_event_data(ev);
}

static void heap_put(struct timers *t, size_t i, struct weft_event *ev)
{
	t->heap[i] = ev;
	request_of(ev)->index = i;
}

static void heap_rise(struct timers *t, size_t i)
{
	struct weft_event *ev = t->heap[i];
	while (i > 0 && request_of(t->heap[(i - 1) / 2])->at_ns > request_of(ev)->at_ns) {
		/* ends at the root */
		heap_put(t, i, t->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	heap_put(t, i, ev);
}

static void heap_sink(struct timers *t, size_t i)
{
	struct weft_event *ev = t->heap[i];
	for (;;) { /* ends at a leaf */
		size_t child = 2 * i + 1;
		if (child >= t->n)
			break;
		if (child + 1 < t->n &&
		    request_of(t->heap[child + 1])->at_ns < request_of(t->heap[child])->at_ns)
			child++;
		if (request_of(t->heap[child])->at_ns >= request_of(ev)->at_ns)
			break;
		heap_put(t, i, t->heap[child]);
		i = child;
	}
	heap_put(t, i, ev);
}

static void heap_remove(struct timers *t, struct weft_event *ev)
{
	size_t i = request_of(ev)->index;
	weft_assert(i < t->n && t->heap[i] == ev);
	struct weft_event *last = t->heap[--t->n];
	if (last == ev)
		return;
	heap_put(t, i, last);
	heap_rise(t, i);
	heap_sink(t, request_of(last)->index);
}

static bool timer_attach(void *arg, struct weft_event *ev, int64_t *result_p)
{
	struct timers *t = arg;
	if (t->n == t->room) {
		size_t room = t->room ? 2 * t->room : 64;
		struct weft_event **more = realloc(t->heap, room * sizeof(struct weft_event *));
		if (!more) {
			*result_p = -ENOMEM;
			return true;
		}
		t->heap = more;
		t->room = room;
	}
	heap_put(t, t->n, ev);
	heap_rise(t, t->n++);
	return false;
}

static bool timer_detach(void *arg, struct weft_event *ev)
{
	heap_remove(arg, ev);
	return true;
}

static void timer_poll_group(void *arg, struct weft_events *es)
{
	struct timers *t = arg;
	uint64_t now = weft_clock_ns();
	while (t->n && request_of(t->heap[0])->at_ns <= now) { /* ends: the rest is later */
		struct weft_event *ev = t->heap[0];
		uint64_t late = now - request_of(ev)->at_ns;
		heap_remove(t, ev);
		weft_task_late(late);
		weft_event_complete(ev, (int64_t)late);
	}
}

static weft_err timer_arm(void *arg, struct weft_events *es)
{
	struct timers *t = arg;
	if (!t->n)
		return WEFT_OK;
	uint64_t at = request_of(t->heap[0])->at_ns;
	if (at <= weft_clock_ns())
		return WEFT_AGAIN;
	if (at == t->set_ns)
		return WEFT_OK;
	struct itimerspec spec = {.it_value = {.tv_sec = (time_t)(at / 1000000000u),
					       .tv_nsec = (long)(at % 1000000000u)}};
	if (timerfd_settime(t->fd, TFD_TIMER_ABSTIME, &spec, NULL))
		return WEFT_ERR_SYS;
	t->set_ns = at;
	return WEFT_OK;
}

static void timer_free(void *arg)
{
	struct timers *t = arg;
	close(t->fd);
	free(t->heap);
	free(t);
}

weft_err weft_events_open_timers(struct weft_events **es_p)
{
	struct timers *t = calloc(1, sizeof *t);
	if (!t || !es_p) {
		free(t);
		return es_p ? WEFT_ERR_NOMEM : WEFT_ERR_ARG;
	}
	t->fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (t->fd < 0) {
		weft_error("no descriptor for timers: %s", strerror(errno));
		free(t);
		return WEFT_ERR_LIMIT;
	}
	struct weft_events_ops ops = {.name = "timers",
				      .poll_group = timer_poll_group,
				      .arm = timer_arm,
				      .attach = timer_attach,
				      .detach = timer_detach,
				      .fd = t->fd,
				      .has_fd = true};
	weft_err err = weft_events_open(&ops, t, es_p);
	if (err)
		timer_free(t);
	else
		(*es_p)->free_arg = timer_free;
	return err;
}

weft_err weft_event_post_at(struct weft_events *es, struct weft_event *ev, uint64_t at_ns)
{
	request_of(ev)->at_ns = at_ns;
	return weft_event_post(es, ev);
}

weft_err weft_event_post_after(struct weft_events *es, struct weft_event *ev, uint64_t ns)
{
	uint64_t now = weft_clock_ns();
	return weft_event_post_at(es, ev, ns > UINT64_MAX - now ? UINT64_MAX : now + ns);
}
