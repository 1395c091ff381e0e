/* SPDX-License-Identifier: BSD-3-Clause */
/* tqueue.c - the queues and the walk over them. */
#include "task/queue/tqueue.h"

#include <limits.h>
#include <stdlib.h>
#include "base/counters.h"
#include "base/log.h"
#include "task/engine_int.h"
#include "task/wake/kick.h"
#include "task/queue/life.h"
#include "topo/topo.h"

#define TURNS_MAX 8 /* of one visit; then other queues and the sources have their turn */

/*
 * All of them.  Closed they stay, empty, and are opened again by the next start: threads may still
 * be on their way out of a wait, or stalled within a submission.  On another machine's tree the old
 * ones stay beside the new ones, for those; what comes there still is ended (weft_task_tqueue_closed).
 */
static struct weft_tqueue *queues;
static _Atomic(struct weft_tqueue *) x_open; /* the same, or NULL: submissions are refused */
static int queue_count;

static void make_queue(struct weft_tqueue *all, int i)
{
	const struct weft_topo_node *t = weft_topo_node(i);
	struct weft_tqueue *q = &all[i];
	weft_mask_init(&q->mask);
	for (int k = 0; k < WEFT_TQUEUE_SHARDS; k++)
		weft_mpsc_init(&q->sub[k]);
	/* A leaf is submitted to by its own core above all. */
	q->shards = t->childn ? WEFT_TQUEUE_SHARDS : 2;
	atomic_store_explicit(&q->x_slot, NULL, memory_order_relaxed);
	weft_list_init(&q->main);
	for (int k = 0; k < WEFT_TQUEUE_LASTS; k++)
		q->last[k] = NULL;
	atomic_store_explicit(&q->x_main, 0, memory_order_relaxed);
	atomic_store_explicit(&q->x_once, 0, memory_order_relaxed);
	q->parent = t->parent < 0 ? NULL : &all[t->parent];
	q->place = i;
	q->older = NULL;
}

/* Do the queues of the last start fit the tree of now? */
static bool queues_fit_tree(int n)
{
	if (n != queue_count)
		return false;
	for (int i = 0; i < n; i++) {
		const struct weft_topo_node *t = weft_topo_node(i);
		const struct weft_tqueue *q = &queues[i];
		if ((q->parent ? q->parent->place : -1) != t->parent ||
		    q->shards != (t->childn ? (uint32_t)WEFT_TQUEUE_SHARDS : 2))
			return false;
	}
	return true;
}

weft_err weft_task_tqueues_create(void)
{
	int n = weft_topo_count();
	if (!queues_fit_tree(n)) {
		struct weft_tqueue *all = aligned_alloc(WEFT_CACHELINE, (size_t)n * sizeof *queues);
		if (!all)
			return WEFT_ERR_NOMEM;
		for (int i = 0; i < n; i++)
			make_queue(all, i);
		all->older = queues;
		queues = all;
		queue_count = n;
	}
	for (int i = 0; i < n; i++) {
		/* Relaxed: they only spread visits, and are a statistic. */
		atomic_store_explicit(&queues[i].x_visits, 0, memory_order_relaxed);
		atomic_store_explicit(&queues[i].x_parent_visits, 0, memory_order_relaxed);
		atomic_store_explicit(&queues[i].x_skip, 0, memory_order_relaxed);
		atomic_store_explicit(&queues[i].x_skip_next, 0, memory_order_relaxed);
	}
	/* OPEN -> of_place.  Carries: all of the above. */
	atomic_store_explicit(&x_open, queues, memory_order_release);
	return WEFT_OK;
}

struct weft_tqueue *weft_task_tqueue_of_place(int place)
{
	/* OPEN. */
	struct weft_tqueue *all = atomic_load_explicit(&x_open, memory_order_acquire);
	return weft_likely(all != NULL) ? &all[place] : NULL;
}

struct weft_tqueue *weft_task_tqueue_here(void)
{
	return &queues[weft_topo_leaf_here()];
}

/* Tasks that need no mask to run and wait for their turn behind no other. */
static bool task_fits_slot(const struct weft_task *t)
{
	return !(t->options & (WEFT_TASK_REPEAT | WEFT_TASK_URGENT | WEFT_TASK_STRICT)) &&
	       t->priority == 0;
}

/* A thread keeps to one, so its submissions stay in order. */
static unsigned shard_of_thread(void)
{
	static _Atomic unsigned x_threads;
	static _Thread_local unsigned mine;
	if (weft_unlikely(!mine))
		/* Relaxed: any number will do. */
		mine = 1 + atomic_fetch_add_explicit(&x_threads, 1, memory_order_relaxed) % 64;
	return mine;
}

static void end_late(struct weft_tqueue *q);

void weft_task_tqueue_push(struct weft_tqueue *q, struct weft_task *t)
{
	weft_assert(q->shards && !(q->shards & (q->shards - 1)));
	if (t->options & WEFT_TASK_REPEAT)
		weft_task_repeat_queued(&weft_task_engine.repeat);
	/* Relaxed and acquire: hints, they keep the order of one thread's submissions. */
	bool in_slot = task_fits_slot(t) &&
		       !atomic_load_explicit(&q->x_slot, memory_order_relaxed) &&
		       !atomic_load_explicit(&q->x_main, memory_order_relaxed) &&
		       weft_task_tqueue_sub_empty(q) && weft_task_tqueue_slot_put(q, t);
	/* shards is a power of two. */
	if (!in_slot)
		weft_mpsc_push(&q->sub[shard_of_thread() & (q->shards - 1)],
			       &weft_task_core(t)->sub);
	weft_task_tqueue_pushed(q, &x_open, end_late);
}

void weft_task_tqueue_requeue(struct weft_tqueue *q, struct weft_task *t)
{
	weft_task_tqueue_push(q, t);
	/* The caller may poll once and go away.  The watcher does not. */
	if (weft_task_engine_self.runner != WEFT_RUNNER_WATCHER)
		weft_task_engine_kick(&weft_task_engine,
				      weft_task_baton_submit_target(&weft_task_engine.baton));
}

bool weft_task_tqueue_slot_take_this(struct weft_tqueue *q, struct weft_task *t)
{
	/* Alone there: another task may have a higher priority. */
	return atomic_load_explicit(&q->x_slot, memory_order_relaxed) == t &&
	       !atomic_load_explicit(&q->x_main, memory_order_relaxed) &&
	       weft_task_tqueue_sub_empty(q) && (!q->parent || q == weft_task_tqueue_here()) &&
	       /* GET <- PUT. */
	       atomic_compare_exchange_strong_explicit(&q->x_slot, &t, NULL, memory_order_acq_rel,
						       memory_order_relaxed);
}

/* ---- under the mask ----------------------------------------------------------------------------
 */

static void count_under_mask(_Atomic uint32_t *x, int by)
{
	/* Relaxed, single writer: the holder of the mask. */
	uint32_t n = atomic_load_explicit(x, memory_order_relaxed);
	atomic_store_explicit(x, n + (uint32_t)by, memory_order_relaxed);
}

static void main_count(struct weft_tqueue *q, const struct weft_task *t, int by)
{
	count_under_mask(&q->x_main, by);
	if (!(t->options & (WEFT_TASK_REPEAT | WEFT_TASK_STRICT)))
		count_under_mask(&q->x_once, by);
}

static int rank_of_task(const struct weft_task *t)
{
	return t->options & WEFT_TASK_URGENT ? INT_MAX : t->priority;
}

static struct weft_task **last_of_rank(struct weft_tqueue *q, const struct weft_task *t)
{
	return &q->last[(unsigned)rank_of_task(t) % WEFT_TQUEUE_LASTS];
}

/* What t goes behind: the last of the same or a higher priority. */
static struct weft_link *place_for(struct weft_tqueue *q, const struct weft_task *t)
{
	struct weft_task *last = *last_of_rank(q, t);
	if (last && rank_of_task(last) == rank_of_task(t))
		return &weft_task_cold(last)->link;
	struct weft_link *at = q->main.head.prev;
	while (at != &q->main.head && /* ends at the head or at one that goes first */
	       rank_of_task(weft_task_of_link(at)) < rank_of_task(t))
		at = at->prev;
	return at;
}

/* Behind all of the same or a higher priority. */
static void main_insert(struct weft_tqueue *q, struct weft_task *t)
{
	weft_assert_held(weft_mask, &q->mask);
	weft_list_insert_before(place_for(q, t)->next, &weft_task_cold(t)->link);
	*last_of_rank(q, t) = t;
	main_count(q, t, 1);
}

static void main_remove(struct weft_tqueue *q, struct weft_task *t)
{
	weft_assert_held(weft_mask, &q->mask);
	weft_list_remove(&weft_task_cold(t)->link);
	if (*last_of_rank(q, t) == t)
		*last_of_rank(q, t) = NULL;
	main_count(q, t, -1);
}

static void collect_locked(struct weft_tqueue *q)
{
	weft_assert_held(weft_mask, &q->mask);
	struct weft_task *t;
	weft_task_tqueue_moving_locked(q, true);
	while ((t = weft_task_tqueue_pop_locked(
			q))) /* ends: producers must submit to lengthen it */
		main_insert(q, t);
	weft_task_tqueue_moving_locked(q, false);
}

/* The next task that this thread may run, unlinked. */
static struct weft_task *take_locked(struct weft_tqueue *q)
{
	weft_assert_held(weft_mask, &q->mask);
	struct weft_link *l, *after;
	weft_list_for_each(&q->main, l, after)
	{
		struct weft_task *t = weft_task_of_link(l);
		if (weft_likely(!(t->options & WEFT_TASK_STRICT)) || weft_task_allowed(t)) {
			main_remove(q, t);
			return t;
		}
	}
	return NULL;
}

/* Lets the mask go; what came meanwhile is at least in the main queue, and a thread is kicked to look. */
static void release_mask(struct weft_tqueue *q)
{
	bool turned_away = false;
	while (!weft_task_tqueue_release(q, &x_open,
					 end_late)) { /* ends: no thread was turned away */
		collect_locked(q);
		turned_away = true;
	}
	if (weft_unlikely(turned_away)) /* it may have gone to sleep relying on us */
		weft_task_engine_kick(&weft_task_engine,
				      weft_task_baton_submit_target(&weft_task_engine.baton));
}

/* ---- visiting ----------------------------------------------------------------------------------
 */

/* Runs each task that is there once.  False: the mask is no longer ours, and nothing is left to us.
 */
static bool run_batch(struct weft_tqueue *q, int *ran_p)
{
	uint32_t budget = atomic_load_explicit(&q->x_main, memory_order_relaxed);
	while (budget--) { /* ends: budget */
		struct weft_task *t = take_locked(q);
		if (!t)
			break;
		if (t->options & WEFT_TASK_REPEAT) {
			/* One that comes back has found nothing: not worth another round. */
			if (weft_task_run(t, q, true)) {
				main_insert(q, t);
				continue;
			}
			weft_task_repeat_left(&weft_task_engine.repeat);
			++*ran_p;
			continue;
		}
		++*ran_p;
		release_mask(q); /* other threads take the rest meanwhile */
		if (weft_task_run(t, q, false))
			weft_task_tqueue_requeue(q, t);
		if (weft_task_tqueue_idle(q) || !weft_mask_try(&q->mask))
			return false; /* its holder goes on, and will look again */
		collect_locked(q);
	}
	return true;
}

enum visit_kind {
	VISIT_QUIET, /* taken: go on, leave no trace */
	VISIT_SKIP,  /* taken: its holder will look again */
	VISIT_WAIT,  /* taken: wait for it, for threads that alone may run what is there */
};

static bool take_mask(struct weft_tqueue *q, enum visit_kind kind)
{
	if (kind == VISIT_WAIT) {
		unsigned turns = 0;
		while (!weft_mask_try_quiet(&q->mask)) /* ends: no handler holds it above 20 us */
			weft_backoff(&turns);
		return true;
	}
	if (kind == VISIT_QUIET ? weft_mask_try_quiet(&q->mask) : weft_mask_try(&q->mask))
		return true;
	weft_count(WEFT_CNT_MASK_SKIPS, 1);
	return false;
}

/* What lies in the slot and nowhere else runs without the mask; -1: look under the mask. */
static int visit_slot(struct weft_tqueue *q)
{
	/* Relaxed: hints; under the mask everything is in order. */
	if (atomic_load_explicit(&q->x_main, memory_order_relaxed) ||
	    !weft_task_tqueue_sub_empty(q))
		return -1;
	struct weft_task *t = weft_task_tqueue_slot_take(q);
	if (!t)
		return 0; /* another was quicker */
	if (weft_task_run(t, q, false))
		weft_task_tqueue_requeue(q, t);
	return 1;
}

static int visit_queue(struct weft_tqueue *q, enum visit_kind kind)
{
	int ran = visit_slot(q), turns = 0;
	if (ran >= 0)
		return ran;
	if (!take_mask(q, kind))
		return 0;
	ran = 0;
	bool left;
	do { /* ends: no thread was turned away during the last turn */
		collect_locked(q);
		if (!run_batch(q, &ran))
			return ran;
		/* Relaxed: ours while we hold the mask. */
		left = atomic_load_explicit(&q->x_once, memory_order_relaxed) != 0;
	} while ((left && ++turns < TURNS_MAX) || !weft_task_tqueue_release(q, &x_open, end_late));
	/* More keeps coming: a thread must come back for it.  LEFT -> LEAVER (weft_task_tqueues_left).
	 * seq_cst, a read-modify-write: of us and a holder of the baton that leaves or falls asleep,
	 * it sees the task, or we see that it has left.  Without it both could rely on the other. */
	if (left && atomic_fetch_add_explicit(&q->x_once, 0, memory_order_seq_cst))
		weft_task_engine_kick(&weft_task_engine,
				      weft_task_baton_submit_target(&weft_task_engine.baton));
	return ran;
}

static void count_visit(struct weft_tqueue *q)
{
	/* Relaxed, and two may count as one: see weft_task_tqueue_parent_due(). */
	uint32_t n = atomic_load_explicit(&q->x_visits, memory_order_relaxed);
	atomic_store_explicit(&q->x_visits, n + 1, memory_order_relaxed);
}

int weft_task_tqueues_round(struct weft_tqueue *leaf, bool quiet)
{
	int ran = 0;
	/* Its core alone looks here all the time: what comes comes with the right to take it. */
	weft_prefetch_write(&leaf->x_slot);
	struct weft_tqueue *q = leaf, *up;
	for (;; q = up) { /* ends at the root at the latest */
		up = q->parent && weft_task_tqueue_parent_due(q) ? q->parent : NULL;
		count_visit(q);
		if (weft_unlikely(!weft_task_tqueue_idle(q)))
			ran += visit_queue(q, quiet ? VISIT_QUIET : VISIT_SKIP);
		if (!up)
			return ran;
	}
}

int weft_task_tqueues_branch(struct weft_tqueue *leaf, bool *half_p)
{
	int ran = 0;
	*half_p = false;
	for (struct weft_tqueue *q = leaf; q; q = q->parent) { /* ends at the root */
		count_visit(q);
		if (weft_task_tqueue_idle(q))
			continue;
		ran += visit_queue(q, VISIT_WAIT);
		*half_p |= weft_task_tqueue_submitted(q);
	}
	return ran;
}

int weft_task_tqueues_visit_all(void)
{
	int ran = 0;
	for (int i = 0; i < queue_count; i++) {
		if (weft_task_tqueue_idle(&queues[i]))
			continue;
		count_visit(&queues[i]);
		ran += visit_queue(&queues[i], VISIT_SKIP);
	}
	return ran;
}

bool weft_task_tqueues_submitted(void)
{
	for (int i = 0; i < queue_count; i++)
		if (weft_task_tqueue_submitted(&queues[i]))
			return true;
	return false;
}

bool weft_task_tqueues_left(void)
{
	for (int i = 0; i < queue_count; i++)
		/* LEAVER <- LEFT (visit). */
		if (weft_task_tqueue_submitted(&queues[i]) ||
		    atomic_load_explicit(&queues[i].x_once, memory_order_seq_cst))
			return true;
	return false;
}

void weft_task_tqueue_purge(struct weft_tqueue *q)
{
	struct weft_link *l, *after;
	if (!weft_mask_try(&q->mask))
		return; /* its holder meets the cancelled task in this round or the next */
	collect_locked(q);
	weft_list_for_each(&q->main, l, after)
	{
		struct weft_task *t = weft_task_of_link(l);
		/* Acquire not needed: only we can unlink it; weft_task_drop orders the rest. */
		if (!(atomic_load_explicit(&weft_task_core(t)->x_state, memory_order_relaxed) &
		      WEFT_LIFE_CANCELLED))
			continue;
		bool repeat = t->options & WEFT_TASK_REPEAT;
		main_remove(q, t);
		if (!weft_task_drop(t))
			main_insert(q, t);
		else if (repeat)
			weft_task_repeat_left(&weft_task_engine.repeat);
	}
	release_mask(q);
}

/* ---- checking ----------------------------------------------------------------------------------
 */

static void check_locked(struct weft_tqueue *q)
{
	struct weft_link *l, *after;
	uint32_t n = 0, once = 0;
	int rank = INT_MAX;
	weft_assert_held(weft_mask, &q->mask);
	weft_list_for_each(&q->main, l, after)
	{
		struct weft_task *t = weft_task_of_link(l);
		weft_assert(rank_of_task(t) <= rank);
		weft_assert(l->next->prev == l && l->prev->next == l);
		rank = rank_of_task(t);
		n++;
		once += !(t->options & (WEFT_TASK_REPEAT | WEFT_TASK_STRICT));
	}
	/* Relaxed: the mask's. */
	weft_assert(atomic_load_explicit(&q->x_main, memory_order_relaxed) == n);
	weft_assert(atomic_load_explicit(&q->x_once, memory_order_relaxed) == once);
	weft_assert(q->shards && q->shards <= WEFT_TQUEUE_SHARDS && !(q->shards & (q->shards - 1)));
	for (int k = 0; k < WEFT_TQUEUE_LASTS; k++)
		weft_assert(!q->last[k] || last_of_rank(q, q->last[k]) == &q->last[k]);
	(void)n;
	(void)once;
}

void weft_task_tqueues_check(void)
{
	for (int i = 0; i < queue_count; i++) {
		(void)take_mask(&queues[i], VISIT_WAIT);
		check_locked(&queues[i]);
		release_mask(&queues[i]);
	}
}

/* ---- ending and seeing --------------------------------------------------------------------------
 */

#define REPORT_MAX 10 /* tasks by name; the rest as a number */

static _Thread_local unsigned ended; /* by this thread, since it began to */

static void end_main(struct weft_tqueue *q)
{
	struct weft_link *l;
	collect_locked(q);
	while ((l = q->main.head.next) != &q->main.head) { /* ends: submits are refused by now */
		struct weft_task *t = weft_task_of_link(l);
		if (ended++ < REPORT_MAX)
			weft_warn("task %s was still queued at %s: it will not run",
				  t->name ? t->name : "?", weft_topo_node(q->place)->name);
		if (t->options & WEFT_TASK_REPEAT)
			weft_task_repeat_left(&weft_task_engine.repeat);
		main_remove(q, t);
		weft_task_end(t);
	}
}

/* What came, or came back, at the moment of closing. */
static void end_late(struct weft_tqueue *q)
{
	ended = 0;
	end_main(q);
}

static void end_queue(struct weft_tqueue *q)
{
	(void)take_mask(q, VISIT_WAIT); /* a poller may be on its way out of a round */
	while (!weft_task_tqueue_release(q, &x_open,
					 end_main)) /* ends: pushes are refused by now */
		;
}

void weft_task_tqueues_close(void)
{
	weft_task_tqueue_close(&x_open); /* an action that submits is refused */
	ended = 0;
	for (int i = 0; i < queue_count; i++)
		end_queue(&queues[i]);
	if (ended > REPORT_MAX)
		weft_warn("and %u more tasks", ended - REPORT_MAX);
}

/* In the tree's order; a leaf says which core of the system it is. */
static void describe_below(FILE *out, int place)
{
	const struct weft_tqueue *q = &queues[place];
	const struct weft_topo_node *t = weft_topo_node(place);
	fprintf(out, "  %*squeue of %s", 2 * t->depth, "", t->name);
	if (t->cpu >= 0)
		fprintf(out, ", cpu %d", t->cpu);
	fprintf(out, ": %u tasks, %u visits%s\n",
		atomic_load_explicit(&q->x_main, memory_order_relaxed),
		atomic_load_explicit(&q->x_visits, memory_order_relaxed),
		weft_task_tqueue_submitted(q) ? ", submissions waiting" : "");
	for (int k = 0; k < t->childn; k++)
		describe_below(out, t->first_child + k);
}

void weft_task_tqueues_describe(FILE *out)
{
	if (queue_count)
		describe_below(out, 0);
}
