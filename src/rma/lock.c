/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lock.c - the locks of a window: a word per member, and a byte per member and holder; fair where it is
 * contended.
 *
 * A free lock is taken where its word is mapped (page.h), whatever its member does:
 *
 *   exclusive: the word from 0 to the holder's rank; then no byte may be set, else it is given back
 *   shared:    the own byte; then the word may have no owner and not be ASKED, else it is taken back
 *
 * Each writes before it looks at what the other writes, in the order of seq_cst: so two that exclude each
 * other do not both see the lock free.  A lock that is not free is looked at for as long as a waiter polls, so
 * that one that is held for a moment costs no message; then it is asked for:
 *
 *   asker: LOCK ->                     member: queues it; sets ASKED; grants what can be granted
 *   holder: takes its part off; was ASKED set?  then FREED -> member: grants again
 *
 * ASKED is set before the member looks whether the lock is free, and the holder looks at it after it has
 * taken its part off: so either the member sees the lock free, or the holder tells it.  A member that tried
 * in vain has withdrawn, and if a request waits it tells the member as a holder does.  While ASKED is set, no
 * lock is taken in passing.  Those that look take it for a quantum each (quantum.h).
 *
 * Word and byte name their holder, at every step: what a dead member holds is taken off exactly.
 */
#include <stdlib.h>
#include "base/log.h"
#include "rma/pending.h"
#include "rma/win_int.h"
#include "task/look.h"

struct weft_rma_lock_request {
	struct weft_rma_lock_request *next;
	int rank;
	bool exclusive;
	uint32_t id;
};

#define LOOKS 8 /* of a waiter's patience each, while the lock changes hands */

#define ONE_OWNER(rank) ((uint64_t)((uint32_t)(rank) + 1) << 32)

static bool none_shared(const struct weft_rma_win *win, const struct weft_rma_target *t)
{
	for (int i = 0; i < win->places; i++)
		if (atomic_load_explicit(&t->x_shared[i], memory_order_seq_cst)) /* as above */
			return false;
	return true;
}

/* Takes a part of the word off.  True: a request waits, and may be granted now. */
static bool word_release(struct weft_rma_slot *s, uint64_t part)
{
	/* FREE -> TAKE.  Carries: the memory that the lock protects.  seq_cst: see grant_locked. */
	uint64_t was = atomic_fetch_sub_explicit(&s->x_lock, part, memory_order_seq_cst);
	weft_assert(part == 1 ? WEFT_RMA_LOCK_FAR(was) > 0 : (was & ~0xffffffffull) == part);
	return was & WEFT_RMA_LOCK_ASKED;
}

/* Clears the byte of the holder with that number.  True: as word_release. */
static bool byte_release(struct weft_rma_target *t, int place)
{
	/* FREE -> TAKE (none_shared).  seq_cst: before the look; see grant_locked. */
	atomic_store_explicit(&t->x_shared[place], 0, memory_order_seq_cst);
	return atomic_load_explicit(&t->slot->x_lock, memory_order_seq_cst) & WEFT_RMA_LOCK_ASKED;
}

static void tell_member(struct weft_rma_win *win, int rank);

/* Takes the lock if it is free and no request waits.  False: *withdrawn_p says whether a request that came
 * meanwhile may have met what was taken for a moment: its member is to look again. */
static bool take_in_passing(struct weft_rma_win *win, struct weft_rma_target *t, bool exclusive,
			    bool *withdrawn_p)
{
	struct weft_rma_slot *s = t->slot;
	int place = win->target[win->rank].place;
	uint64_t free_word = 0;
	*withdrawn_p = false;
	if (!exclusive) {
		/* seq_cst, all of these: see the top.  TAKE <- FREE: the memory that the lock protects. */
		atomic_store_explicit(&t->x_shared[place], 1, memory_order_seq_cst);
		uint64_t was = atomic_load_explicit(&s->x_lock, memory_order_seq_cst);
		if (weft_likely(!WEFT_RMA_LOCK_OWNER(was) && !(was & WEFT_RMA_LOCK_ASKED)))
			return true;
		*withdrawn_p = byte_release(t, place);
		return false;
	}
	/* Relaxed: what is taken spoils no other's cache line. */
	if (atomic_load_explicit(&s->x_lock, memory_order_relaxed) ||
	    !atomic_compare_exchange_strong_explicit(&s->x_lock, &free_word, ONE_OWNER(win->rank),
						     memory_order_seq_cst, memory_order_relaxed))
		return false;
	if (none_shared(win, t))
		return true;
	*withdrawn_p = word_release(s, ONE_OWNER(win->rank));
	return false;
}

struct look {
	struct weft_rma_win *win;
	int rank;
	bool exclusive;
};

/* Takes a lock that looks free, if the caller is within a quantum or may begin one. */
static bool take_within_quantum(const struct look *l)
{
	struct weft_rma_target *t = &l->win->target[l->rank];
	bool withdrawn;
	if (weft_unlikely(!weft_rma_quantum_mine(&t->queue)))
		return false;
	if (weft_likely(take_in_passing(l->win, t, l->exclusive, &withdrawn))) {
		weft_rma_quantum_used(&t->queue);
		return true;
	}
	if (withdrawn)
		tell_member(l->win, l->rank);
	return false;
}

static bool lock_taken(const void *arg)
{
	const struct look *l = arg;
	struct weft_rma_target *t = &l->win->target[l->rank];
	if (t->queue.quanta)
		weft_rma_quantum_want(&t->queue);
	/* Relaxed: a hint, so that a look alone changes nothing. */
	if (atomic_load_explicit(&t->slot->x_lock, memory_order_relaxed) ||
	    (l->exclusive && !none_shared(l->win, t)))
		return false;
	return take_within_quantum(l);
}

/* At once, or after a look for as long as a waiter polls. */
static bool take_at_once(struct weft_rma_win *win, int rank, bool exclusive)
{
	struct look l = {win, rank, exclusive};
	struct weft_rma_queue *q = &win->target[rank].queue;
	if (weft_likely(take_within_quantum(&l)))
		return true;
	if (!q->quanta)
		return weft_task_look_for_a_while(lock_taken, &l);
	weft_rma_quantum_join(q);
	bool got = false;
	/* Ends: LOOKS.  A lock that changes hands comes to this member soon. */
	for (uint32_t was = 0, now = 1, i = 0; !got && i < LOOKS && was != now; i++) {
		was = weft_rma_quantum_sum(q);
		got = weft_task_look_for_a_while(lock_taken, &l);
		now = weft_rma_quantum_sum(q);
	}
	if (!got && !weft_rma_quantum_mine(q)) {
		weft_rma_quantum_skip(q);
		got = lock_taken(&l);
	}
	weft_rma_quantum_unwant(q);
	return got;
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
	/* Acquire: LOST. */
	if (weft_unlikely(atomic_load_explicit(&t->x_lost, memory_order_acquire)))
		return WEFT_ERR_PEER;
	if (t->slot && take_at_once(win, rank, exclusive))
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

const _Atomic uint64_t *weft_rma_lock_word(const struct weft_rma_win *win, int rank)
{
	const struct weft_rma_slot *s = win->target[rank].slot;
	return s ? &s->x_lock : NULL;
}

/* ---- at the member ------------------------------------------------------------------------ */

/* Takes the lock on behalf of q.  ASKED is set: nothing is taken in passing, and what has been is seen. */
static bool take_for_locked(struct weft_rma_win *win, const struct weft_rma_lock_request *q)
{
	weft_assert_held(weft_comm_spin, &win->lock);
	struct weft_rma_target *me = &win->target[win->rank], *t = &win->target[q->rank];
	/* seq_cst: behind ASKED. */
	uint64_t was = atomic_load_explicit(&me->slot->x_lock, memory_order_seq_cst);
	if (WEFT_RMA_LOCK_OWNER(was))
		return false;
	/* Its UNLOCK is still to be served: other messages come before that, and a request has no turn among them. */
	if (t->place < 0 && t->far_lock != WEFT_RMA_FAR_NONE)
		return false;
	if (q->exclusive && (WEFT_RMA_LOCK_FAR(was) || !none_shared(win, me)))
		return false;
	/* TAKE <- FREE, on behalf of the asker. */
	if (!q->exclusive && t->place >= 0)
		atomic_store_explicit(&me->x_shared[t->place], 1, memory_order_seq_cst);
	else
		atomic_fetch_add_explicit(&me->slot->x_lock, q->exclusive ? ONE_OWNER(q->rank) : 1,
					  memory_order_seq_cst);
	if (t->place < 0)
		t->far_lock = q->exclusive ? WEFT_RMA_FAR_EXCLUSIVE : WEFT_RMA_FAR_SHARED;
	return true;
}

/* Grants the first request, if it can be.  The request, off the queue, or NULL. */
static struct weft_rma_lock_request *grant_locked(struct weft_rma_win *win)
{
	weft_assert_held(weft_comm_spin, &win->lock);
	struct weft_rma_slot *s = win->target[win->rank].slot;
	struct weft_rma_lock_request *q = win->locks;
	if (q) {
		/* seq_cst: ASKED before the look. */
		atomic_fetch_or_explicit(&s->x_lock, WEFT_RMA_LOCK_ASKED, memory_order_seq_cst);
		if (!take_for_locked(win, q))
			return NULL;
		win->locks = q->next;
	}
	if (!win->locks) {
		win->locks_last = &win->locks;
		/* Relaxed: no request waits; the bit alone changes. */
		atomic_fetch_and_explicit(&s->x_lock, ~WEFT_RMA_LOCK_ASKED, memory_order_relaxed);
	}
	return q;
}

static void send_granted(struct weft_rma_win *win, const struct weft_rma_lock_request *q)
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
		send_granted(win, q);
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
		bool waits = exclusive ? word_release(t->slot, ONE_OWNER(win->rank))
				       : byte_release(t, win->target[win->rank].place);
		if (weft_unlikely(waits))
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

/* Takes off what a member that does not map the page holds: nothing, or exactly that.  True: it held it. */
static bool far_release(struct weft_rma_win *win, int rank, enum weft_rma_far what)
{
	struct weft_rma_target *t = &win->target[rank];
	weft_comm_spin_lock(&win->lock);
	bool held = what != WEFT_RMA_FAR_NONE && t->far_lock == what;
	if (held) {
		t->far_lock = WEFT_RMA_FAR_NONE;
		(void)word_release(win->target[win->rank].slot,
				   what == WEFT_RMA_FAR_EXCLUSIVE ? ONE_OWNER(rank) : 1);
	}
	weft_comm_spin_unlock(&win->lock);
	return held;
}

/* A member of another host has given up its lock of ours. */
void weft_rma_lock_left(struct weft_rma_win *win, int rank, bool exclusive)
{
	if (far_release(win, rank, exclusive ? WEFT_RMA_FAR_EXCLUSIVE : WEFT_RMA_FAR_SHARED))
		weft_rma_lock_freed(win);
	else
		weft_warn("window: rank %d gives up a lock that it does not hold", rank);
}

/* Takes off what the dead member holds of our lock.  What it held, in words, or NULL. */
static const char *dead_release(struct weft_rma_win *win, int rank)
{
	struct weft_rma_target *me = &win->target[win->rank], *t = &win->target[rank];
	if (t->place < 0)
		return far_release(win, rank, WEFT_RMA_FAR_EXCLUSIVE) ? "the exclusive"
		       : far_release(win, rank, WEFT_RMA_FAR_SHARED)  ? "a shared"
								      : NULL;
	/* Relaxed: a dead holder changes it no more. */
	uint64_t word = atomic_load_explicit(&me->slot->x_lock, memory_order_relaxed);
	if (WEFT_RMA_LOCK_OWNER(word) == (uint32_t)rank + 1) {
		(void)word_release(me->slot, ONE_OWNER(rank));
		return "the exclusive";
	}
	if (!atomic_load_explicit(&me->x_shared[t->place], memory_order_relaxed)) /* the same */
		return NULL;
	(void)byte_release(me, t->place);
	return "a shared";
}

void weft_rma_lock_recover(struct weft_rma_win *win, int rank)
{
	if (!win->target || !win->target[win->rank].slot)
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
	const char *held = dead_release(win, rank);
	/* With a shared one it may have been reading, as most do. */
	if (held && held[0] == 'a')
		weft_info("window: rank %d died with %s lock of rank %d", rank, held, win->rank);
	else if (held)
		weft_warn("window: rank %d died with %s lock of rank %d; the memory may be half "
			  "written",
			  rank, held, win->rank);
	weft_rma_lock_freed(win);
}

void weft_rma_lock_end(struct weft_rma_win *win)
{
	while (win->locks) { /* ends: each turn frees one */
		struct weft_rma_lock_request *q = win->locks;
		win->locks = q->next;
		free(q);
	}
	win->locks_last = &win->locks;
}
