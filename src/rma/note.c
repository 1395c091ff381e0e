/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * note.c - notifications: counts of a member, which origins raise behind their puts.
 *
 *   target on this host, memory that the origin reaches     the origin's puts are over: it counts itself, and wakes
 *                                                           the member if that sleeps (told.h)
 *   else, or while accesses that the target serves are      NOTE, a message behind them; the target counts
 *   under way
 *
 * A member's counts lie in the host's page where there is one, so both ways change the same words.
 */
#include "rma/win_int.h"

static bool note_by_store(const struct weft_rma_target *t)
{
	/* Relaxed: the caller's own accesses, or those of threads that the program orders. */
	return t->x_notes && t->path != WEFT_RMA_OWED &&
	       !atomic_load_explicit(&t->x_asked, memory_order_relaxed) &&
	       !atomic_load_explicit(&t->x_pending, memory_order_relaxed);
}

weft_err weft_rma_note(struct weft_rma_win *win, int rank, unsigned note)
{
	struct weft_rma_target *t = &win->target[rank];
	weft_assert(note < WEFT_RMA_NOTES);
	if (weft_unlikely(atomic_load_explicit(&t->x_lost, memory_order_acquire))) /* LOST */
		return WEFT_ERR_PEER;
	if (!note_by_store(t)) {
		/* A flush that follows asks the target, and so ends behind it. */
		atomic_store_explicit(&t->x_asked, true, memory_order_relaxed);
		return weft_rma_tell(win, rank, WEFT_RMA_NOTE, note, WEFT_OK);
	}
	weft_rma_note_count(&t->x_notes[note]);
	return weft_rma_wake(win, rank);
}

void weft_rma_note_came(struct weft_rma_win *win, unsigned note)
{
	weft_rma_note_count(&win->target[win->rank].x_notes[note]);
	weft_rma_notify(win);
}

bool weft_rma_note_test(struct weft_rma_win *win, unsigned note, uint64_t n)
{
	return weft_rma_note_take(&win->target[win->rank].x_notes[note], n);
}

struct wanted {
	unsigned note;
	uint64_t n;
	int rank;
	bool taken;
};

static bool any_lost(const struct weft_rma_win *win, int rank)
{
	int first = rank >= 0 ? rank : 0, end = rank >= 0 ? rank + 1 : win->size;
	for (int r = first; r < end; r++)
		if (atomic_load_explicit(&win->target[r].x_lost, memory_order_acquire)) /* LOST */
			return true;
	return false;
}

/* Takes once, however often it is asked. */
static bool taken_or_lost(struct weft_rma_win *win, void *arg)
{
	struct wanted *w = arg;
	w->taken = w->taken || weft_rma_note_test(win, w->note, w->n);
	return w->taken || any_lost(win, w->rank);
}

weft_err weft_rma_note_wait(struct weft_rma_win *win, unsigned note, uint64_t n, int rank)
{
	struct wanted w = {.note = note, .n = n, .rank = rank};
	weft_rma_wait_until_told(win, taken_or_lost, &w);
	return w.taken ? WEFT_OK : WEFT_ERR_PEER;
}
