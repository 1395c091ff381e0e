/* SPDX-License-Identifier: BSD-3-Clause */
/* sync.c - flush; fence; post and start, complete and wait. */
#include <stdlib.h>
#include "base/log.h"
#include "rma/pending.h"
#include "rma/win_int.h"

/* ---- flush -------------------------------------------------------------------------------- */

static bool none_pending(struct weft_rma_win *win, void *arg)
{
	struct weft_rma_target *t = arg;
	(void)win;
	/* OVER <- weft_rma_pending_over.  Carries: the data. */
	return atomic_load_explicit(&t->x_pending, memory_order_acquire) == 0;
}

static weft_err take_error(struct weft_rma_target *t)
{
	/* Acquire: LOST.  What has been written to its memory is not to be had any more. */
	if (weft_unlikely(atomic_load_explicit(&t->x_lost, memory_order_acquire)))
		return WEFT_ERR_PEER;
	/* Relaxed: written before the end that was waited for. */
	if (weft_likely(!atomic_load_explicit(&t->x_err, memory_order_relaxed)))
		return WEFT_OK;
	return (weft_err)atomic_exchange_explicit(&t->x_err, WEFT_OK, memory_order_relaxed);
}

/*
 * A program that flushes after each message, time after time, will do so after the next one: that one asks in place
 * of the flush (ASKS), and the flush finds nothing to ask for.  If it does not come, an answer is for nothing,
 * and the next message does not ask.
 */
#define STREAK 3u /* flushes behind a single message each */

bool weft_rma_flush_expected(struct weft_rma_target *t)
{
	/* Relaxed, here and in note_flush: hints, and the caller's own. */
	return atomic_load_explicit(&t->x_flush_streak, memory_order_relaxed) >= STREAK &&
	       !atomic_load_explicit(&t->x_asked, memory_order_relaxed) &&
	       atomic_load_explicit(&t->x_seq, memory_order_relaxed) ==
		       atomic_load_explicit(&t->x_flush_seq, memory_order_relaxed);
}

/* Behind the flush's own message. */
static void note_flush(struct weft_rma_target *t, uint32_t before)
{
	uint32_t last = atomic_load_explicit(&t->x_flush_seq, memory_order_relaxed);
	uint32_t streak = atomic_load_explicit(&t->x_flush_streak, memory_order_relaxed);
	if (before == last)
		return;
	streak = before - last != 1 ? 0 : streak < STREAK ? streak + 1 : STREAK;
	atomic_store_explicit(&t->x_flush_streak, streak, memory_order_relaxed);
	atomic_store_explicit(&t->x_flush_seq,
			      atomic_load_explicit(&t->x_seq, memory_order_relaxed),
			      memory_order_relaxed);
}

/* Asks the target whether all that was sent has been done; its answer is pending. */
static weft_err ask_target(struct weft_rma_win *win, int rank)
{
	struct weft_rma_target *t = &win->target[rank];
	/* Relaxed: set by this thread, or by one that the program orders before us. */
	uint32_t before = atomic_load_explicit(&t->x_seq, memory_order_relaxed);
	if (!atomic_load_explicit(&t->x_asked, memory_order_relaxed)) {
		note_flush(t, before);
		return WEFT_OK;
	}
	atomic_store_explicit(&t->x_asked, false, memory_order_relaxed);
	struct weft_rma_pending *p = weft_rma_pending_new(win, rank, NULL, NULL);
	if (!p)
		return WEFT_ERR_NOMEM;
	uint32_t id = weft_rma_pending_name(p);
	weft_err err = id ? weft_rma_tell(win, rank, WEFT_RMA_FLUSH, id, WEFT_OK) : WEFT_ERR_LIMIT;
	if (err)
		weft_rma_pending_unsent(p, id, err);
	note_flush(t, before);
	return WEFT_OK; /* what failed is the target's error */
}

weft_err weft_rma_flush_local(struct weft_rma_win *win, int rank)
{
	struct weft_rma_target *t = &win->target[rank];
	if (!none_pending(win, t))
		weft_rma_wait_until(win, none_pending, t);
	return take_error(t);
}

weft_err weft_rma_flush(struct weft_rma_win *win, int rank)
{
	/* seq_cst: stores to mapped memory are there before what the caller does next. */
	atomic_thread_fence(memory_order_seq_cst);
	weft_err err = ask_target(win, rank);
	weft_err late = weft_rma_flush_local(win, rank);
	return err ? err : late;
}

weft_err weft_rma_flush_local_all(struct weft_rma_win *win)
{
	weft_err err = WEFT_OK;
	for (int r = 0; r < win->size; r++) {
		weft_err one = weft_rma_flush_local(win, r);
		err = err ? err : one;
	}
	return err;
}

weft_err weft_rma_flush_all(struct weft_rma_win *win)
{
	weft_err err = WEFT_OK;
	atomic_thread_fence(memory_order_seq_cst); /* as in flush */
	for (int r = 0; r < win->size && !err; r++)
		err = ask_target(win, r);
	weft_err late = weft_rma_flush_local_all(win);
	return err ? err : late;
}

/* ---- post and start, complete and wait ------------------------------------------------------ */

weft_err weft_rma_wake(struct weft_rma_win *win, int rank)
{
	if (rank == win->rank)
		weft_rma_notify(win);
	else if (weft_rma_sleeper_take(&win->target[rank].slot->x_sleeps)) {
		/* Relaxed: read at the end of the window. */
		atomic_store_explicit(&win->target[rank].x_woken, true, memory_order_relaxed);
		return weft_rma_tell(win, rank, WEFT_RMA_WAKE, 0, WEFT_OK);
	}
	return WEFT_OK;
}

weft_err weft_rma_win_settle(struct weft_rma_win *win)
{
	for (int r = 0; r < win->size; r++)
		/* Relaxed: as in weft_rma_wake; x_asked as in ask_target. */
		if (atomic_load_explicit(&win->target[r].x_woken, memory_order_relaxed))
			atomic_store_explicit(&win->target[r].x_asked, true, memory_order_relaxed);
	return weft_rma_flush_all(win);
}

struct members {
	const int *rank;
	int n;
};

static bool any_lost(const struct weft_rma_win *win, const struct members *m)
{
	for (int i = 0; i < m->n; i++)
		if (weft_comm_lost(win->core, weft_rma_process(win, m->rank[i])))
			return true;
	return false;
}

static bool all_posted(struct weft_rma_win *win, void *arg)
{
	const struct members *m = arg;
	int posted = 0;
	for (int i = 0; i < m->n; i++) {
		struct weft_rma_target *t = &win->target[m->rank[i]];
		posted += weft_rma_told_read(&t->told->x_posts) != t->posts;
	}
	return posted == m->n || any_lost(win, m);
}

weft_err weft_rma_post(struct weft_rma_win *win, int rank)
{
	struct weft_rma_target *t = &win->target[rank];
	/* seq_cst: own stores come before the origin's accesses. */
	atomic_thread_fence(memory_order_seq_cst);
	if (!t->tells)
		return weft_rma_tell(win, rank, WEFT_RMA_POST, 0, WEFT_OK);
	weft_rma_told_count(&t->tells->x_posts);
	return weft_rma_wake(win, rank);
}

weft_err weft_rma_post_wait(struct weft_rma_win *win, const int *rank, int n)
{
	struct members m = {rank, n};
	weft_rma_wait_until_told(win, all_posted, &m);
	for (int i = 0; i < n; i++) {
		struct weft_rma_target *t = &win->target[rank[i]];
		if (weft_rma_told_read(&t->told->x_posts) == t->posts)
			return WEFT_ERR_PEER;
		t->posts++;
	}
	return WEFT_OK;
}

weft_err weft_rma_complete(struct weft_rma_win *win, int rank)
{
	struct weft_rma_target *t = &win->target[rank];
	if (!t->tells)
		return weft_rma_tell(win, rank, WEFT_RMA_COMPLETE, 0, WEFT_OK);
	weft_rma_told_count(&t->tells->x_completes);
	return weft_rma_wake(win, rank);
}

static bool has_completed(struct weft_rma_win *win, const struct members *m)
{
	for (int i = 0; i < m->n; i++) {
		struct weft_rma_target *t = &win->target[m->rank[i]];
		if (weft_rma_told_read(&t->told->x_completes) == t->completes)
			return false;
	}
	return true;
}

static bool all_completed(struct weft_rma_win *win, void *arg)
{
	const struct members *m = arg;
	return has_completed(win, m) || any_lost(win, m);
}

weft_err weft_rma_complete_wait(struct weft_rma_win *win, const int *rank, int n)
{
	struct members m = {rank, n};
	weft_rma_wait_until_told(win, all_completed, &m);
	return weft_rma_complete_test(win, rank, n) ? WEFT_OK : WEFT_ERR_PEER;
}

bool weft_rma_complete_test(struct weft_rma_win *win, const int *rank, int n)
{
	struct members m = {rank, n};
	if (!has_completed(win, &m))
		return false;
	for (int i = 0; i < n; i++)
		win->target[rank[i]].completes++;
	return true;
}

/* ---- fence ---------------------------------------------------------------------------------- */

static bool all_came(struct weft_rma_win *win, void *arg)
{
	(void)arg;
	if (weft_rma_meet_over(win->meet, win->fences))
		return true;
	for (int r = 0; r < win->size; r++)
		/* Acquire: LOST. */
		if (atomic_load_explicit(&win->target[r].x_lost, memory_order_acquire))
			return true;
	return false;
}

bool weft_rma_fences(const struct weft_rma_win *win)
{
	return win->meet != NULL;
}

weft_err weft_rma_fence(struct weft_rma_win *win)
{
	/* A round that a member has given up is not over for it, nor any later one. */
	if (win->fences && !weft_rma_meet_over(win->meet, win->fences))
		return WEFT_ERR_PEER;
	win->fences++;
	if (!weft_rma_meet_arrive(win->meet, win->fences, (unsigned)win->size)) {
		weft_rma_wait_until_told(win, all_came, NULL);
		return weft_rma_meet_over(win->meet, win->fences) ? WEFT_OK : WEFT_ERR_PEER;
	}
	for (int r = 0; r < win->size; r++)
		if (r != win->rank && weft_rma_wake(win, r))
			weft_debug("window: rank %d does not hear of a fence", r);
	return WEFT_OK;
}
