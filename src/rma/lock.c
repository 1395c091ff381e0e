/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lock.c - the locks of a window: one word per member, fair where it is contended.
 *
 * A free lock is taken by one exchange where its word is mapped (page.h), whatever its member does.
 * Else the request goes to the member, whose engine keeps requests in their order and grants:
 *
 *   asker: LOCK ->                     member: queues it; sets ASKED; grants what can be granted
 *   holder: takes its part off the word; was ASKED set?  then FREED -> member: grants again
 *
 * ASKED is set before the member looks whether the lock is free, and the holder's exchange returns
 * whether it was set: so either the member sees the lock free, or the holder tells it.  While ASKED is
 * set, no lock is taken in passing.
 */
#include <stdlib.h>
#include "base/log.h"
#include "rma/pending.h"
#include "rma/win_int.h"

struct weft_rma_lock_request {
	struct weft_rma_lock_request *next;
	int rank;
	bool exclusive;
	uint32_t id;
};

#define ONE_OWNER(rank) ((uint64_t)((uint32_t)(rank) + 1) << 32)

static uint64_t part_of(int rank, bool exclusive)
{
	return exclusive ? ONE_OWNER(rank) : 1;
}

static bool compatible(uint64_t word, bool exclusive)
{
	return !WEFT_RMA_LOCK_OWNER(word) && !(exclusive && WEFT_RMA_LOCK_SHARED(word));
}

/* Takes the lock if it is free and no request waits. */
static bool take_in_passing(struct weft_rma_slot *s, int rank, bool exclusive)
{
	/* Relaxed: the exchange decides. */
	uint64_t was = atomic_load_explicit(&s->x_lock, memory_order_relaxed);
	while (compatible(was, exclusive) && !(was & WEFT_RMA_LOCK_ASKED))
		/* TAKE <- FREE.  Carries: the memory that the lock protects. */
		if (atomic_compare_exchange_weak_explicit(
			    &s->x_lock, &was, was + part_of(rank, exclusive), memory_order_acq_rel,
			    memory_order_relaxed))
			return true;
	return false;
}

static bool is_over(struct weft_rma_win *win, void *arg)
{
	(void)win;
	/* OVER <- weft_rma_pending_over. */
	return atomic_load_explicit((_Atomic int *)arg, memory_order_acquire) != 0;
}

weft_err weft_rma_lock(struct weft_rma_win *win, int rank, bool exclusive)
{
	struct weft_rma_target *t = &win->target[rank];
	_Atomic int over = 0;
	if (t->slot && take_in_passing(t->slot, win->rank, exclusive))
		return WEFT_OK;
	if (weft_comm_lost(win->core, weft_rma_process(win, rank)))
		return WEFT_ERR_PEER;
	struct weft_rma_pending *p = weft_rma_pending_new(win, rank, NULL, NULL);
	if (!p)
		return WEFT_ERR_NOMEM;
	p->x_over = &over;
	uint32_t id = weft_rma_pending_name(p);
	weft_err err = id ? WEFT_OK : WEFT_ERR_LIMIT;
	if (!err && rank == win->rank) {
		weft_rma_lock_asked(win, rank, exclusive, id);
	} else if (!err) {
		struct weft_rma_head *h = weft_rma_message(WEFT_RMA_LOCK, 0, 0);
		if (h) {
			h->id = id;
			h->flags = exclusive ? WEFT_RMA_EXCLUSIVE : 0;
		}
		err = weft_rma_send(win, rank, h);
	}
	if (err)
		weft_rma_pending_unsent(p, id, err);
	weft_rma_wait_until(win, is_over, &over);
	int code = atomic_load_explicit(&over, memory_order_acquire); /* OVER, as above */
	return code == 1 ? WEFT_OK : (weft_err)code;
}

/* ---- at the member ------------------------------------------------------------------------ */

/* Grants the first request, if it can be.  The request, off the queue, or NULL. */
static struct weft_rma_lock_request *grant_locked(struct weft_rma_win *win)
{
	weft_assert_held(weft_comm_spin, &win->lock);
	struct weft_rma_slot *s = win->target[win->rank].slot;
	struct weft_rma_lock_request *q = win->locks;
	if (!q) {
		/* Relaxed: no request waits; the bit alone changes. */
		atomic_fetch_and_explicit(&s->x_lock, ~WEFT_RMA_LOCK_ASKED, memory_order_relaxed);
		return NULL;
	}
	/* seq_cst: ASKED before the look. */
	uint64_t was =
		atomic_fetch_or_explicit(&s->x_lock, WEFT_RMA_LOCK_ASKED, memory_order_seq_cst) |
		WEFT_RMA_LOCK_ASKED;
	while (compatible(was, q->exclusive)) {
		uint64_t next = was + part_of(q->rank, q->exclusive);
		if (!q->next)
			next &= ~WEFT_RMA_LOCK_ASKED;
		/* TAKE <- FREE, on behalf of the asker. */
		if (!atomic_compare_exchange_weak_explicit(
			    &s->x_lock, &was, next, memory_order_acq_rel, memory_order_relaxed))
			continue;
		win->locks = q->next;
		if (!win->locks)
			win->locks_last = &win->locks;
		return q;
	}
	return NULL;
}

static void granted(struct weft_rma_win *win, const struct weft_rma_lock_request *q)
{
	struct weft_rma_head h = {.kind = WEFT_RMA_GRANTED, .id = q->id};
	weft_err err = WEFT_OK;
	if (q->rank == win->rank)
		weft_rma_answered(win, q->rank, &h, sizeof h);
	else
		err = weft_rma_tell(win, q->rank, WEFT_RMA_GRANTED, q->id, WEFT_OK);
	if (err)
		weft_debug("window: rank %d does not hear of its lock: %s", q->rank,
			   weft_strerror(err));
}

void weft_rma_lock_freed(struct weft_rma_win *win)
{
	/* Ends: each turn takes a request off the queue. */
	for (;;) {
		weft_comm_spin_lock(&win->lock);
		struct weft_rma_lock_request *q = grant_locked(win);
		weft_comm_spin_unlock(&win->lock);
		if (!q)
			return;
		granted(win, q);
		free(q);
	}
}

void weft_rma_lock_asked(struct weft_rma_win *win, int rank, bool exclusive, uint32_t id)
{
	struct weft_rma_lock_request *q = malloc(sizeof *q);
	if (!q) {
		(void)weft_rma_tell(win, rank, WEFT_RMA_GRANTED, id, WEFT_ERR_NOMEM);
		return;
	}
	*q = (struct weft_rma_lock_request){.rank = rank, .exclusive = exclusive, .id = id};
	weft_comm_spin_lock(&win->lock);
	*win->locks_last = q;
	win->locks_last = &q->next;
	weft_comm_spin_unlock(&win->lock);
	weft_rma_lock_freed(win);
}

/* Takes off the holder's part.  True: a request waits, and may be granted now. */
static bool release_part(struct weft_rma_slot *s, int rank, bool exclusive)
{
	/* FREE -> TAKE.  Carries: the memory that the lock protects.  seq_cst: see grant_locked. */
	uint64_t was = atomic_fetch_sub_explicit(&s->x_lock, part_of(rank, exclusive),
						 memory_order_seq_cst);
	weft_assert(exclusive ? WEFT_RMA_LOCK_OWNER(was) == (uint32_t)rank + 1
			      : WEFT_RMA_LOCK_SHARED(was) > 0);
	return was & WEFT_RMA_LOCK_ASKED;
}

static void tell_member(struct weft_rma_win *win, int rank)
{
	if (rank == win->rank)
		weft_rma_lock_freed(win);
	else if (weft_rma_tell(win, rank, WEFT_RMA_FREED, 0, WEFT_OK))
		weft_debug("window: rank %d does not hear that its lock is free", rank);
	/* So that the window is not freed before it has come.  Relaxed: as in access.c. */
	atomic_store_explicit(&win->target[rank].x_asked, rank != win->rank, memory_order_relaxed);
}

void weft_rma_unlock(struct weft_rma_win *win, int rank, bool exclusive)
{
	struct weft_rma_target *t = &win->target[rank];
	if (t->slot) {
		if (release_part(t->slot, win->rank, exclusive))
			tell_member(win, rank);
		return;
	}
	struct weft_rma_head *h = weft_rma_message(WEFT_RMA_UNLOCK, 0, 0);
	if (h)
		h->flags = exclusive ? WEFT_RMA_EXCLUSIVE : 0;
	if (weft_rma_send(win, rank, h))
		weft_debug("window: rank %d does not hear that its lock is free", rank);
	atomic_store_explicit(&t->x_asked, true, memory_order_relaxed); /* as in tell_member */
}

/* A member of another host has given up its lock of ours. */
void weft_rma_lock_left(struct weft_rma_win *win, int rank, bool exclusive)
{
	struct weft_rma_slot *s = win->target[win->rank].slot;
	/* Relaxed: only its holder takes the part off. */
	uint64_t word = atomic_load_explicit(&s->x_lock, memory_order_relaxed);
	if (exclusive ? WEFT_RMA_LOCK_OWNER(word) != (uint32_t)rank + 1
		      : !WEFT_RMA_LOCK_SHARED(word)) {
		weft_warn("window: rank %d gives up a lock that it does not hold", rank);
		return;
	}
	if (release_part(s, rank, exclusive))
		weft_rma_lock_freed(win);
}

void weft_rma_lock_recover(struct weft_rma_win *win, int rank)
{
	struct weft_rma_slot *s = win->target ? win->target[win->rank].slot : NULL;
	if (!s)
		return;
	weft_comm_spin_lock(&win->lock);
	struct weft_rma_lock_request **at = &win->locks;
	while (*at) {
		struct weft_rma_lock_request *q = *at;
		if (q->rank == rank) {
			*at = q->next;
			free(q);
		} else {
			at = &q->next;
		}
	}
	win->locks_last = at;
	weft_comm_spin_unlock(&win->lock);
	/* Relaxed: a dead holder changes it no more. */
	uint64_t word = atomic_load_explicit(&s->x_lock, memory_order_relaxed);
	if (WEFT_RMA_LOCK_OWNER(word) == (uint32_t)rank + 1) {
		weft_warn("window: rank %d died with the exclusive lock of rank %d; the memory "
			  "may be half written",
			  rank, win->rank);
		(void)release_part(s, rank, true);
	}
	weft_rma_lock_freed(win);
}
