/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tqueue.h - queues of tasks, one per place of the machine tree.
 *
 * A task that comes to an empty queue lies in its slot: one exchange puts it there, one takes it,
 * and the thread that took it runs it, without the mask.  Everything else goes through a submission queue,
 * one of a few, so that cores that submit at once do not fight for a line, and from there, by the
 * holder of the mask, into the main queue.
 *
 * Callers   push: any thread.  round, visit_all, purge: any thread that may run tasks.
 * Owner     a queue owns its tasks while they wait in it.
 * Order     see mask.h and mpsc.h: what a submitter wrote is visible to the function.
 * Progress  push: lock-free.  A queue whose mask is taken is skipped; the mask's holder looks once
 *           more before it lets go.
 * Closed    a submission at that moment is refused, or runs, or ends with what was left; a
 *           thread that lets a mask go after it ends what is there.  A submission that is stalled
 *           until the next start belongs to that start, or ends, if the tree is another by then.
 *
 *           push round purge    .  together, no help needed
 *   push      .    .     .      M  one holds the mask, the other skips (round) or comes back
 * (purge) round     .    M     M
 */
#ifndef WEFT_TQUEUE_H
#define WEFT_TQUEUE_H

#include <stddef.h>
#include <stdio.h>
#include "base/assert.h"
#include "base/base.h"
#include "queue/list.h"
#include "queue/mask.h"
#include "queue/mpsc.h"
#include "task/queue/weft_task.h"
#include "wait/waiter.h"

#define WEFT_TQUEUE_SHARDS 4
#define WEFT_TQUEUE_LASTS 8

struct weft_tqueue {
	alignas(WEFT_CACHELINE) struct weft_mask mask;
	_Atomic uint32_t x_visits;  /* pollers, relaxed: visits, also those that found nothing */
	struct weft_tqueue *parent; /* I; NULL: the root */
	/* Pollers, relaxed; see weft_task_tqueue_parent_due(). */
	_Atomic uint32_t x_parent_visits; /* of the parent, as we last saw them */
	_Atomic uint32_t x_skip;          /* visits until we look again whether siblings go there */
	_Atomic uint32_t x_skip_next;     /* how many that will be the next time */
	struct weft_list main;            /* M: by priority, then in order of submission */
	/* M: the last task of some priorities, so that very many are no hindrance */
	struct weft_task *last[WEFT_TQUEUE_LASTS];
	struct weft_tqueue *older; /* I, of the root: those of another tree, before */
	/* Submitters and takers: a task that came to an empty queue, without any mask. */
	alignas(WEFT_CACHELINE) _Atomic(struct weft_task *) x_slot;
	_Atomic uint32_t x_main; /* M: tasks in main; read without the mask as a hint */
	_Atomic uint32_t x_once; /* M: of these, tasks that any thread may run and finish */
	/* Read by each submission, so here, where no empty visit writes. */
	uint32_t shards; /* I: how many of sub are in use */
	int place;       /* I: number in the tree */
	/* Submitters push, each thread into one of them, holder of the mask pops. */
	struct weft_mpsc sub[WEFT_TQUEUE_SHARDS];
};
_Static_assert(offsetof(struct weft_tqueue, place) / WEFT_CACHELINE ==
		       offsetof(struct weft_tqueue, x_slot) / WEFT_CACHELINE,
	       "a submission to an empty queue reads one line of it");

/* Puts t there; false: it is taken. */
static inline bool weft_task_tqueue_slot_put(struct weft_tqueue *q, struct weft_task *t)
{
	struct weft_task *none = NULL;
	/* PUT -> GET.  Carries: *t.  Without it the taker could call a function that is not yet
	 * written.  seq_cst: comes before the submitter's look at the baton. */
	return atomic_compare_exchange_strong_explicit(&q->x_slot, &none, t, memory_order_seq_cst,
						       memory_order_relaxed);
}

/* What lies there is the caller's, alone; or NULL. */
static inline struct weft_task *weft_task_tqueue_slot_take(struct weft_tqueue *q)
{
	/* Relaxed: the exchange decides. */
	struct weft_task *t = atomic_load_explicit(&q->x_slot, memory_order_relaxed);
	if (!t)
		return NULL;
	weft_prefetch_write(t); /* it is ours most likely; at worst another core loses the line */
	/* GET <- PUT. */
	return atomic_exchange_explicit(&q->x_slot, NULL, memory_order_acq_rel);
}

/* Mask held: the next submission; NULL: none, or one that is half done. */
static inline struct weft_task *weft_task_tqueue_pop_locked(struct weft_tqueue *q)
{
	weft_assert_held(weft_mask, &q->mask);
	struct weft_task *t = weft_task_tqueue_slot_take(q);
	for (uint32_t i = 0; !t && i < q->shards; i++) {
		struct weft_mpsc_node *n =
			weft_mpsc_empty(&q->sub[i]) ? NULL : weft_mpsc_pop(&q->sub[i]);
		t = n ? weft_task_of_sub(n) : NULL;
	}
	return t;
}

/*
 * Mask held: around moving submissions into main.  Between the two a task may be in neither, and
 * the one thread that may run it, rung for it, must not find the queue idle and sleep.
 */
static inline void weft_task_tqueue_moving_locked(struct weft_tqueue *q, bool begin)
{
	weft_assert_held(weft_mask, &q->mask);
	/* MOVING -> IDLE.  Single writer.  Relaxed: the pop that empties a submission queue
	 * releases it, the look at that queue acquires it. */
	uint32_t n = atomic_load_explicit(&q->x_main, memory_order_relaxed);
	atomic_store_explicit(&q->x_main, begin ? n + 1 : n - 1, memory_order_relaxed);
}

/* Nothing submitted that no holder of the mask has seen. */
static inline bool weft_task_tqueue_sub_empty(const struct weft_tqueue *q)
{
	for (uint32_t i = 0; i < q->shards; i++)
		if (!weft_mpsc_empty(&q->sub[i]))
			return false;
	return true;
}

static inline bool weft_task_tqueue_submitted(const struct weft_tqueue *q)
{
	/* seq_cst, as for the submission queues: a thread that goes to sleep relies on it. */
	return atomic_load_explicit(&q->x_slot, memory_order_seq_cst) ||
	       !weft_task_tqueue_sub_empty(q);
}

/* ---- the way up --------------------------------------------------------------------------------
 */

#define WEFT_TQUEUE_SKIP_MAX 15 /* visits that a queue relies on a sibling without a look */

/*
 * Before a visit of q, which is not the root: shall its parent be visited, too?  Not if a sibling
 * has been there since the last look from here.  So of N children that poll one goes up at each
 * visit, and the parent is visited as often as by a child that polls alone.  When that child stops,
 * another goes up at its next look but one at the latest, 2 * (WEFT_TQUEUE_SKIP_MAX + 1) visits
 * later.
 */
static inline bool weft_task_tqueue_parent_due(struct weft_tqueue *q)
{
	/* Relaxed, all: pollers at one leaf may mix up their numbers, which costs a visit. */
	uint32_t skip = atomic_load_explicit(&q->x_skip, memory_order_relaxed);
	if (skip) {
		atomic_store_explicit(&q->x_skip, skip - 1, memory_order_relaxed);
		return false;
	}
	weft_assert(q->parent);
	uint32_t visits = atomic_load_explicit(&q->parent->x_visits, memory_order_relaxed);
	if (weft_likely(visits ==
			atomic_load_explicit(&q->x_parent_visits, memory_order_relaxed))) {
		atomic_store_explicit(&q->x_parent_visits, visits + 1, memory_order_relaxed);
		if (atomic_load_explicit(&q->x_skip_next, memory_order_relaxed))
			atomic_store_explicit(&q->x_skip_next, 0, memory_order_relaxed);
		return true;
	}
	atomic_store_explicit(&q->x_parent_visits, visits, memory_order_relaxed);
	skip = atomic_load_explicit(&q->x_skip_next, memory_order_relaxed);
	skip = skip < WEFT_TQUEUE_SKIP_MAX ? 2 * skip + 1 : skip;
	atomic_store_explicit(&q->x_skip_next, skip, memory_order_relaxed);
	atomic_store_explicit(&q->x_skip, skip, memory_order_relaxed);
	return false;
}

/* ---- closing -----------------------------------------------------------------------------------
 */

/* Asked after a push, and before a mask is let go.  Also true when another tree's queues are open. */
static inline bool weft_task_tqueue_closed(const struct weft_tqueue *q,
					   const _Atomic(struct weft_tqueue *) *x_open)
{
	/* PUSH <- CLOSE.  seq_cst: comes after the exchange of the push, so either we see it
	 * closed, or the closer sees what was pushed, or at least a push that is half done.
	 * Without it both could miss, and the task would lie there for ever. */
	return atomic_load_explicit(x_open, memory_order_seq_cst) != q - q->place;
}

static inline void weft_task_tqueue_close(_Atomic(struct weft_tqueue *) *x_open)
{
	/* CLOSE -> PUSH.  seq_cst: comes before the look at what was pushed. */
	atomic_store_explicit(x_open, NULL, memory_order_seq_cst);
}

typedef void weft_tqueue_end_fn(struct weft_tqueue *q); /* collects, and ends what is in main */

/* Mask held, closed: all that is there ends, and what is just being pushed. */
static inline void weft_task_tqueue_end_locked(struct weft_tqueue *q, weft_tqueue_end_fn *end)
{
	unsigned turns = 0;
	weft_assert_held(weft_mask, &q->mask);
	for (end(q); weft_task_tqueue_submitted(q); end(q)) /* ends: a push is some instructions */
		weft_backoff(&turns);
}

/* Lets the mask go.  False: a thread was turned away, look again. */
static inline bool weft_task_tqueue_release(struct weft_tqueue *q,
					    const _Atomic(struct weft_tqueue *) *x_open,
					    weft_tqueue_end_fn *end)
{
	if (weft_unlikely(weft_task_tqueue_closed(q, x_open)))
		weft_task_tqueue_end_locked(q, end);
	return weft_mask_done(&q->mask);
}

/* After a push: if it came too late, it ends here. */
static inline void weft_task_tqueue_pushed(struct weft_tqueue *q,
					   const _Atomic(struct weft_tqueue *) *x_open,
					   weft_tqueue_end_fn *end)
{
	/* Turned away: its holder, perhaps we ourselves, sees it closed before it lets go. */
	if (weft_unlikely(weft_task_tqueue_closed(q, x_open)) && weft_mask_try(&q->mask))
		while (!weft_task_tqueue_release(q, x_open,
						 end)) /* ends: submits are refused by now */
			;
}

/* A queue for each place of the loaded topology; those of before, if they fit. */
weft_err weft_task_tqueues_create(void) weft_must_use;
/* Reports tasks that are still queued and ends them; from now on submissions are refused.  Other
 * threads may still look at the queues, and push: they stay for ever. */
void weft_task_tqueues_close(void);

/* NULL: there are no queues. */
struct weft_tqueue *weft_task_tqueue_of_place(int place);
struct weft_tqueue *weft_task_tqueue_here(void); /* of the leaf where the caller runs */

void weft_task_tqueue_push(struct weft_tqueue *q, struct weft_task *t);

static inline bool weft_task_tqueue_idle(const struct weft_tqueue *q)
{
	/* IDLE <- MOVING.  Relaxed for main, looked at second: where a submission is gone, it is
	 * there by then, or has been run. */
	return !weft_task_tqueue_submitted(q) &&
	       atomic_load_explicit(&q->x_main, memory_order_relaxed) == 0;
}

/* Takes t out of q's slot if it lies there and q is where the caller's own round would look. */
bool weft_task_tqueue_slot_take_this(struct weft_tqueue *q, struct weft_task *t);

/*
 * From leaf up, each queue once, as far as no poller below a sibling goes on from there.  quiet:
 * leave no trace at queues whose mask is taken.  Returns how many tasks ran.
 */
int weft_task_tqueues_round(struct weft_tqueue *leaf, bool quiet);

/* From leaf up, every queue; waits for masks that are taken.  May the caller sleep after it
 * found nothing?  *half_p: no, a submission is half done. */
int weft_task_tqueues_branch(struct weft_tqueue *leaf, bool *half_p);

/* Every queue of the machine. */
int weft_task_tqueues_visit_all(void);

/* Is there a submission that no poller has seen yet? */
bool weft_task_tqueues_submitted(void);
/* Or a task that a poller has seen and left to other threads? */
bool weft_task_tqueues_left(void);

/* Takes cancelled tasks out of q and runs none.  May wait for a repeat task to return. */
void weft_task_tqueue_purge(struct weft_tqueue *q);

/* Asserts what holds in each queue while its mask is held; any thread, at any time. */
void weft_task_tqueues_check(void);

void weft_task_tqueues_describe(FILE *out);

/* t runs again: back into q, from where it was taken without the mask. */
void weft_task_tqueue_requeue(struct weft_tqueue *q, struct weft_task *t);

/* task_run.c: runs t, which was taken out of q; true: it runs again: put it back, into the main queue
 * (mask held), or by requeue. */
bool weft_task_run(struct weft_task *t, struct weft_tqueue *q, bool masked);
/* t was cancelled while it was queued: finishes it.  False: that was taken back, queue it again. */
bool weft_task_drop(struct weft_task *t);
/* The engine has stopped and t will never run. */
void weft_task_end(struct weft_task *t);
/* Says that t is done; the last access to it. */
void weft_task_finish(struct weft_task *t);
/* May the calling thread run it? */
bool weft_task_allowed(const struct weft_task *t);

#endif
