/* SPDX-License-Identifier: BSD-3-Clause */
/* tqueue.c - the queues and the walk over them. */
#include "task/tqueue.h"

#include <limits.h>
#include <stdlib.h>
#include "base/counters.h"
#include "base/log.h"
#include "task/engine_int.h"
#include "topo/topo.h"

static struct weft_tqueue *queues;
static int queue_count;

weft_err weft_tqueues_create(void)
{
	int n = weft_topo_count();
	queues = aligned_alloc(WEFT_CACHELINE, (size_t)n * sizeof *queues);
	if (!queues)
		return WEFT_ERR_NOMEM;
	for (int i = 0; i < n; i++) {
		const struct weft_topo_node *t = weft_topo_node(i);
		struct weft_tqueue *q = &queues[i];
		weft_mask_init(&q->mask);
		weft_mpsc_init(&q->sub);
		weft_list_init(&q->main);
		atomic_store_explicit(&q->x_main, 0, memory_order_relaxed);
		/* Siblings go up at different visits. */
		atomic_store_explicit(&q->x_visits, 0, memory_order_relaxed);
		q->parent = t->parent < 0 ? NULL : &queues[t->parent];
		q->siblings = t->parent < 0 ? 1 : (uint32_t)weft_topo_node(t->parent)->childn;
		q->rank = (uint32_t)t->rank;
		q->place = i;
	}
	queue_count = n;
	return WEFT_OK;
}

struct weft_tqueue *weft_tqueue_of_place(int place)
{
	return &queues[place];
}

struct weft_tqueue *weft_tqueue_here(void)
{
	return &queues[weft_topo_leaf_here()];
}

void weft_tqueue_push(struct weft_tqueue *q, struct weft_task *t)
{
	weft_mpsc_push(&q->sub, &t->sub);
}

/* ---- under the mask ----------------------------------------------------------------------------
 */

static void main_count(struct weft_tqueue *q, int by)
{
	/* Relaxed, single writer: the holder of the mask. */
	uint32_t n = atomic_load_explicit(&q->x_main, memory_order_relaxed);
	atomic_store_explicit(&q->x_main, n + (uint32_t)by, memory_order_relaxed);
}

static int rank_of(const struct weft_task *t)
{
	return t->options & WEFT_TASK_URGENT ? INT_MAX : t->priority;
}

/* Behind all of the same or a higher priority. */
static void main_insert(struct weft_tqueue *q, struct weft_task *t)
{
	struct weft_link *at = &q->main.head;
	while (at->prev != &q->main.head && /* ends at the head or at one that goes first */
	       rank_of(weft_container_of(at->prev, struct weft_task, link)) < rank_of(t))
		at = at->prev;
	weft_list_insert_before(at, &t->link);
	main_count(q, 1);
	if (t->options & WEFT_TASK_REPEAT)
		/* Relaxed: a hint how long one may sleep; submit kicks besides. */
		atomic_fetch_add_explicit(&weft_engine.x_repeat, 1, memory_order_relaxed);
}

static void main_remove(struct weft_tqueue *q, struct weft_task *t)
{
	weft_list_remove(&t->link);
	main_count(q, -1);
	if (t->options & WEFT_TASK_REPEAT)
		atomic_fetch_sub_explicit(&weft_engine.x_repeat, 1, memory_order_relaxed);
}

static void collect_locked(struct weft_tqueue *q)
{
	struct weft_mpsc_node *n;
	while ((n = weft_mpsc_pop(&q->sub))) /* ends: producers must submit to lengthen it */
		main_insert(q, weft_container_of(n, struct weft_task, sub));
}

/* The next task that this thread may run, unlinked. */
static struct weft_task *take_locked(struct weft_tqueue *q)
{
	struct weft_link *l, *after;
	weft_list_for_each(&q->main, l, after)
	{
		struct weft_task *t = weft_container_of(l, struct weft_task, link);
		if (weft_likely(!(t->options & WEFT_TASK_STRICT)) || weft_task_allowed(t)) {
			main_remove(q, t);
			return t;
		}
	}
	return NULL;
}

/* Lets the mask go for good; what came meanwhile is at least in the main queue. */
static void let_go(struct weft_tqueue *q)
{
	while (!weft_mask_done(&q->mask)) /* ends when nobody was turned away */
		collect_locked(q);
}

/* ---- visiting ----------------------------------------------------------------------------------
 */

/*
 * Runs what was there when the visit began, each task once; tasks that come back are for the next
 * round.  Once-tasks run with the mask given away, so that others take the rest meanwhile.
 */
static int visit(struct weft_tqueue *q, bool quiet)
{
	if (!(quiet ? weft_mask_try_quiet(&q->mask) : weft_mask_try(&q->mask))) {
		weft_count(WEFT_CNT_MASK_SKIPS, 1);
		return 0;
	}
	int ran = 0;
	collect_locked(q);
	uint32_t budget = atomic_load_explicit(&q->x_main, memory_order_relaxed);
	while (budget--) { /* ends: budget */
		struct weft_task *t = take_locked(q);
		if (!t)
			break;
		if (t->options & WEFT_TASK_REPEAT) {
			/* One that comes back has found nothing: not worth another round. */
			if (weft_task_run(t, q, true))
				main_insert(q, t);
			else
				ran++;
			continue;
		}
		ran++;
		let_go(q);
		weft_task_run(t, q, false);
		if (weft_tqueue_idle(q))
			return ran;
		if (!weft_mask_try(&q->mask))
			return ran; /* its holder goes on, and will look again */
		collect_locked(q);
	}
	while (!weft_mask_done(&q->mask)) { /* ends: as in let_go */
		collect_locked(q);
	}
	return ran;
}

static uint32_t visited(struct weft_tqueue *q)
{
	/* Relaxed, and two may count as one: it only spreads the visits to the parent. */
	uint32_t n = atomic_load_explicit(&q->x_visits, memory_order_relaxed) + 1;
	atomic_store_explicit(&q->x_visits, n, memory_order_relaxed);
	return n;
}

int weft_tqueues_round(struct weft_tqueue *leaf, bool quiet)
{
	int ran = 0;
	for (struct weft_tqueue *q = leaf;;) { /* ends at the root at the latest */
		uint32_t n = visited(q);
		if (weft_unlikely(!weft_tqueue_idle(q)))
			ran += visit(q, quiet);
		/* Siblings go up at different visits: together they look as often as one would. */
		if (!q->parent || (n + q->rank) % q->siblings)
			return ran;
		q = q->parent;
	}
}

int weft_tqueues_branch(struct weft_tqueue *leaf)
{
	int ran = 0;
	for (struct weft_tqueue *q = leaf; q; q = q->parent) { /* ends at the root */
		visited(q);
		if (!weft_tqueue_idle(q))
			ran += visit(q, false);
	}
	return ran;
}

int weft_tqueues_visit_all(void)
{
	int ran = 0;
	for (int i = 0; i < queue_count; i++) {
		if (weft_tqueue_idle(&queues[i]))
			continue;
		visited(&queues[i]);
		ran += visit(&queues[i], false);
	}
	return ran;
}

bool weft_tqueues_submitted(void)
{
	for (int i = 0; i < queue_count; i++)
		if (!weft_mpsc_empty(&queues[i].sub))
			return true;
	return false;
}

void weft_tqueue_purge(struct weft_tqueue *q)
{
	struct weft_link *l, *after;
	if (!weft_mask_try(&q->mask))
		return; /* its holder meets the cancelled task in this round or the next */
	collect_locked(q);
	weft_list_for_each(&q->main, l, after)
	{
		struct weft_task *t = weft_container_of(l, struct weft_task, link);
		/* Acquire not needed: only we can unlink it; drop_cancelled orders the rest. */
		if (!(atomic_load_explicit(&t->x_state, memory_order_relaxed) &
		      WEFT_TASK_CANCELLED))
			continue;
		main_remove(q, t);
		if (!weft_task_drop_cancelled(t))
			main_insert(q, t);
	}
	let_go(q);
}

/* ---- ending and seeing --------------------------------------------------------------------------
 */

void weft_tqueues_destroy(void)
{
	for (int i = 0; i < queue_count; i++) {
		struct weft_tqueue *q = &queues[i];
		struct weft_link *l, *after;
		collect_locked(q);
		weft_list_for_each(&q->main, l, after)
		{
			struct weft_task *t = weft_container_of(l, struct weft_task, link);
			weft_warn("task %s was still queued at %s", t->name ? t->name : "?",
				  weft_topo_node(i)->name);
			main_remove(q, t);
		}
	}
	free(queues);
	queues = NULL;
	queue_count = 0;
}

void weft_tqueues_describe(FILE *out)
{
	for (int i = 0; i < queue_count; i++) {
		const struct weft_tqueue *q = &queues[i];
		const struct weft_topo_node *t = weft_topo_node(i);
		fprintf(out, "  %*squeue of %s: %u tasks, %u visits%s\n", 2 * t->depth, "", t->name,
			atomic_load_explicit(&q->x_main, memory_order_relaxed),
			atomic_load_explicit(&q->x_visits, memory_order_relaxed),
			weft_mpsc_empty(&q->sub) ? "" : ", submissions waiting");
	}
}
