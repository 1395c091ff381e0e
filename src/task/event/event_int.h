/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * event_int.h - what lies in a public event, and a source with requests (weft/source.h) inside.
 *
 * event.c requests and the look at a source | blocker.c the thread for blocking calls | ev_*.c the
 * ready-made sources, built on the public functions
 *
 * A request goes from post through `sub` (lock-free) into `pending` (under the source's mask, by
 * priority), and through `done`, while a callback runs, out again.
 */
#ifndef WEFT_EVENT_INT_H
#define WEFT_EVENT_INT_H

#include <weft/source.h>
#include "queue/list.h"
#include "queue/mpsc.h"
#include "task/engine_int.h"

enum weft_ev_state {
	WEFT_EV_IDLE = 0,
	WEFT_EV_POSTED = 1,
	WEFT_EV_IN_FN = 2,     /* its function runs: may post it again */
	WEFT_EV_CANCELLED = 4, /* with POSTED: to be withdrawn at the next look */
};

/* In struct weft_event.weft_private. */
struct weft_ev {
	struct weft_mpsc_node sub;   /* posted, not yet seen */
	struct weft_link link;       /* M: in pending or done */
	struct weft_completion done; /* true while it is not posted */
	struct weft_events *es;      /* poster */
	int64_t result;              /* M, until done */
	_Atomic uint32_t x_state;    /* poster, canceller, holder of the mask */
	bool blocked;                /* M: the blocking thread is at it */
	bool leaving;                /* M: detach said that it will still complete */
	uint64_t of_source[9];       /* the ready-made source's */
} __attribute__((may_alias));

_Static_assert(sizeof(struct weft_ev) <= sizeof(((struct weft_event *)0)->weft_private),
	       "the public event has room");

static inline struct weft_ev *weft_task_event_of(const struct weft_event *ev)
{
	return (struct weft_ev *)(void *)(uintptr_t)ev->weft_private;
}

static inline struct weft_ev *weft_task_event_of_link(struct weft_link *l)
{
	return weft_container_of(l, struct weft_ev, link);
}

static inline struct weft_event *weft_task_event_public(struct weft_ev *ev)
{
	return (struct weft_event *)(void *)((char *)ev -
					     offsetof(struct weft_event, weft_private));
}

static inline void *weft_task_event_data(const struct weft_event *ev)
{
	return weft_task_event_of(ev)->of_source;
}

/* A flag of a ready-made source's ops: threads of its own look at it when something is there. */
#define WEFT_EVENTS_LOOKS (1u << 31)

struct weft_blocker;

struct weft_events {
	struct weft_events_ops ops;  /* I */
	void *arg;                   /* I */
	struct weft_mpsc sub;        /* posters push, holder of the mask pops */
	struct weft_list pending;    /* M: by priority */
	struct weft_list done;       /* M: completed by a callback that still runs */
	struct weft_link *cursor;    /* M: what weft_events_next returns */
	size_t count;                /* M: in pending */
	enum weft_events_method now; /* M: as chosen last */
	bool chosen;                 /* M: by the source or the program, not by default */
	unsigned looks;              /* M */
	bool retry;                  /* M: arming did not succeed: the timer shall look */
	bool closed;                 /* M */
	bool in_block;               /* M: a blocking call is made */
	_Atomic bool x_cancels;      /* cancellers set, the holder clears */
	/* I: of a ready-made source. */
	void (*stop_arg)(void *arg);  /* no request is left; threads of its own end */
	void (*free_arg)(void *arg);  /* after the last call */
	struct weft_blocker *blocker; /* I */
	struct weft_source source;
};

/* Can it be looked at without a blocking call? */
static inline bool weft_task_events_can_poll(const struct weft_events *es)
{
	return es->ops.poll || es->ops.poll_group;
}

static inline bool weft_task_events_can_block(const struct weft_events *es)
{
	return es->ops.block || es->ops.block_group;
}

/* event_list.c; mask held: into pending. */
void weft_task_events_add(struct weft_events *es, struct weft_ev *ev);

/* event.c; mask held: looks as a round would, and wakes the waiters. */
int weft_task_events_harvest(struct weft_events *es);

/* blocker.c: the thread of a source that has blocking calls only for sleeping; harvest: as above. */
weft_err weft_task_blocker_create(struct weft_events *es, int (*harvest)(struct weft_events *es),
				  struct weft_blocker **b_p) weft_must_use;
/* Mask held: blocking calls are wanted while there are requests; or no longer. */
void weft_task_blocker_want(struct weft_blocker *b, bool want);
/* Not held: returns when the thread has ended. */
void weft_task_blocker_destroy(struct weft_blocker *b);

#endif
