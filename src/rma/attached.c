/* SPDX-License-Identifier: BSD-3-Clause */
/* attached.c - memory that is attached to a dynamic window: the member's own list, and what it shows. */
#include "rma/attached.h"

#include <stdlib.h>
#include "rma/win_int.h"

/* Writes the table anew; the first ranges of the list are shown. */
static void show_locked(struct weft_rma_win *win)
{
	weft_assert_held(weft_comm_spin, &win->lock);
	struct weft_rma_attached *a = win->target[win->rank].attached;
	uint32_t n = 0;
	if (!a)
		return;
	/* Relaxed: this member alone writes, under its lock. */
	uint32_t seq = atomic_load_explicit(&a->x_seq, memory_order_relaxed);
	/* ODD -> AGAIN (find).  seq_cst: before the fields. */
	atomic_store_explicit(&a->x_seq, seq + 1, memory_order_seq_cst);
	for (struct weft_rma_range *r = win->range; r && n < WEFT_RMA_ATTACHED_MOST; r = r->next) {
		/* Release, here and below: behind ODD. */
		atomic_store_explicit(&a->range[n].x_base, r->base, memory_order_release);
		atomic_store_explicit(&a->range[n++].x_len, r->len, memory_order_release);
	}
	atomic_store_explicit(&a->x_n, n, memory_order_release);
	/* EVEN -> AGAIN.  Carries: the table. */
	atomic_store_explicit(&a->x_seq, seq + 2, memory_order_release);
}

/* How many of the `len` bytes from `at` on one range of the table holds. */
static uint64_t bytes_covered(const struct weft_rma_attached *a, uint64_t at, uint64_t len)
{
	/* Acquire, here and below: before AGAIN. */
	uint32_t n = atomic_load_explicit(&a->x_n, memory_order_acquire);
	for (uint32_t i = 0; i < n && i < WEFT_RMA_ATTACHED_MOST; i++) {
		uint64_t base = atomic_load_explicit(&a->range[i].x_base, memory_order_acquire);
		uint64_t there = atomic_load_explicit(&a->range[i].x_len, memory_order_acquire);
		if (at >= base && at - base < there)
			return there - (at - base) < len ? there - (at - base) : len;
	}
	return 0;
}

bool weft_rma_attached_find(const struct weft_rma_attached *a, uint64_t at, uint64_t len)
{
	/* AGAIN <- EVEN, ODD.  Carries: the table. */
	uint32_t seq = atomic_load_explicit(&a->x_seq, memory_order_acquire);
	/* Ranges that follow each other are one.  Ends: each turn covers a byte, or finds none. */
	for (uint64_t some = 1; len && some; at += some, len -= some)
		some = bytes_covered(a, at, len);
	return !len && !(seq & 1) && atomic_load_explicit(&a->x_seq, memory_order_acquire) == seq;
}

weft_err weft_rma_attach(struct weft_rma_win *win, void *base, uint64_t len)
{
	struct weft_rma_range *r = malloc(sizeof *r);
	uint64_t at = (uintptr_t)base;
	weft_err err = r ? WEFT_OK : WEFT_ERR_NOMEM;
	weft_comm_spin_lock(&win->lock);
	for (struct weft_rma_range *q = win->range; q && !err; q = q->next)
		if (at < q->base + q->len && q->base < at + len)
			err = WEFT_ERR_ARG;
	if (!err) {
		*r = (struct weft_rma_range){.next = win->range, .base = at, .len = len};
		win->range = r;
		show_locked(win);
	}
	weft_comm_spin_unlock(&win->lock);
	if (err)
		free(r);
	return err;
}

weft_err weft_rma_detach(struct weft_rma_win *win, const void *base)
{
	weft_comm_spin_lock(&win->lock);
	struct weft_rma_range **at = &win->range;
	while (*at && (*at)->base != (uintptr_t)base)
		at = &(*at)->next;
	struct weft_rma_range *r = *at;
	if (r) {
		*at = r->next;
		show_locked(win);
	}
	weft_comm_spin_unlock(&win->lock);
	free(r);
	return r ? WEFT_OK : WEFT_ERR_ARG;
}

bool weft_rma_reachable(struct weft_rma_win *win, uint64_t at, uint64_t len)
{
	const struct weft_rma_target *me = &win->target[win->rank];
	if (win->flavor != WEFT_RMA_DYNAMIC)
		return at <= me->len && len <= me->len - at;
	bool found = true;
	weft_comm_spin_lock(&win->lock);
	/* Ranges that follow each other are one.  Ends: each turn covers a byte, or finds none. */
	while (len && found) {
		struct weft_rma_range *r = win->range;
		while (r && !(at >= r->base && at - r->base < r->len))
			r = r->next;
		found = r != NULL;
		uint64_t covered = r ? r->len - (at - r->base) : 0;
		covered = covered < len ? covered : len;
		at += covered;
		len -= covered;
	}
	weft_comm_spin_unlock(&win->lock);
	return found;
}
