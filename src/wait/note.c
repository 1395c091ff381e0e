/* SPDX-License-Identifier: BSD-3-Clause */
/* note.c - completes the notes of waiting calls, and shows them to readers outside. */
#include "wait/note.h"

#include <stdio.h>
#include <time.h>
#include "base/live.h"

struct weft_wait_live weft_wait_live = {.rank = -1};
_Thread_local struct weft_wait_note *weft_wait_note_self;

/* An alarm comes at least that often. */
#define ALARMS_MOST_NS 10000000000u

static void (*complete_hook)(struct weft_wait_note *);
static void (*alarm_hook)(struct weft_wait_note *);

void weft_wait_note_show(const char *job, int rank, int size)
{
	weft_wait_live.rank = rank;
	weft_wait_live.size = size;
	snprintf(weft_wait_live.job, sizeof weft_wait_live.job, "%s", job);
	weft_live_tell(WEFT_WAIT_LIVE, WEFT_WAIT_LAYOUT, &weft_wait_live);
}

void weft_wait_note_set_hooks(void (*complete)(struct weft_wait_note *),
			      void (*alarm)(struct weft_wait_note *))
{
	complete_hook = complete;
	alarm_hook = alarm;
}

#ifndef __x86_64__
__attribute__((noinline)) void weft_wait_note_set(struct weft_wait_note *n)
{
	weft_wait_note_self = n;
}

__attribute__((noinline)) struct weft_wait_note *weft_wait_note_get(void)
{
	return weft_wait_note_self;
}
#endif

void weft_wait_note_complete(struct weft_wait_note *n)
{
	struct timespec t;
	/* Coarse: some milliseconds are nothing to a reader, and a park of 60 ns comes next. */
	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	n->patience_ns = 0;
	n->alarms = 0;
	if (complete_hook)
		complete_hook(n);
	uint64_t now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	n->alarm_ns = n->patience_ns ? now + n->patience_ns : WEFT_NEVER;
	n->since_ns = now;
}

void weft_wait_note_expired(struct weft_parker *p)
{
	struct weft_wait_note *n = p->note;
	uint64_t now = weft_clock_ns();
	if (!n || !n->since_ns || now < n->alarm_ns)
		return;
	uint64_t next = n->patience_ns << (n->alarms < 16 ? n->alarms + 1 : 16);
	alarm_hook(n);
	n->alarms++;
	n->alarm_ns = now + (next < ALARMS_MOST_NS ? next : ALARMS_MOST_NS);
}
