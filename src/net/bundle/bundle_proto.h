/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bundle_proto.h - what makes several unreliable rails one reliable way: numbers, no I/O.
 *
 * A unit is what one rail carries at a time.  Two counts go with it:
 *
 *   number   of the unit, over all rails, given once; a unit that is sent again keeps it
 *   place    of the unit on its rail: how many units went over this link before it
 *
 * Sender    keeps a unit until the peer has said, over the same link, that it got that many units
 *           on it (`got`).  A rail delivers in order and nothing twice, so the count names them.
 *           When a rail ends, the units that it has not confirmed go to other rails.
 * Receiver  takes a number once; a second arrival only counts as got.  Numbers lie in a window of
 *           WEFT_BUNDLE_WINDOW from the first that is not yet taken in order; the sender is told
 *           where that begins (`next`) and never goes beyond.
 * Why none is lost     confirmed means that the receiver has it; not confirmed is kept.
 * Why none is doubled  the window remembers every number that can still come again: a number
 *           below `next` was confirmed or is recognised as old.
 */
#ifndef WEFT_BUNDLE_PROTO_H
#define WEFT_BUNDLE_PROTO_H

#include <string.h>
#include "base/assert.h"
#include "base/base.h"

#define WEFT_BUNDLE_WINDOW 4096u
#define WEFT_BUNDLE_LONG 1024u /* of it, for units that take much memory out of their turn */

/* The receiver's window over numbers. */
struct weft_bundle_window {
	uint32_t next; /* all below were taken in order */
	uint64_t bits[WEFT_BUNDLE_WINDOW / 64];
};

enum weft_bundle_seen {
	WEFT_BUNDLE_FRESH,
	WEFT_BUNDLE_AGAIN, /* it is here already */
	WEFT_BUNDLE_WILD,  /* beyond the window: no sender of ours does that */
};

static inline bool weft_net_bundle_has(const struct weft_bundle_window *w, uint32_t number)
{
	uint32_t i = number % WEFT_BUNDLE_WINDOW;
	return w->bits[i / 64] >> (i % 64) & 1;
}

static inline enum weft_bundle_seen weft_net_bundle_look(const struct weft_bundle_window *w,
							 uint32_t number)
{
	uint32_t ahead = number - w->next;
	if (ahead < WEFT_BUNDLE_WINDOW)
		return weft_net_bundle_has(w, number) ? WEFT_BUNDLE_AGAIN : WEFT_BUNDLE_FRESH;
	return ahead >= UINT32_MAX / 2 ? WEFT_BUNDLE_AGAIN : WEFT_BUNDLE_WILD;
}

static inline void weft_net_bundle_mark(struct weft_bundle_window *w, uint32_t number)
{
	uint32_t i = number % WEFT_BUNDLE_WINDOW;
	w->bits[i / 64] |= (uint64_t)1 << (i % 64);
}

/* `next` was taken in order. */
static inline void weft_net_bundle_advance(struct weft_bundle_window *w)
{
	weft_assert(weft_net_bundle_has(w, w->next));
	uint32_t i = w->next % WEFT_BUNDLE_WINDOW;
	w->bits[i / 64] &= ~((uint64_t)1 << (i % 64));
	w->next++;
}

/* One unit under way: what both lists below link. */
struct weft_bundle_link {
	struct weft_bundle_link *next;
};

struct weft_bundle_fifo {
	struct weft_bundle_link *first, **last;
};

static inline void weft_net_bundle_fifo_init(struct weft_bundle_fifo *f)
{
	f->first = NULL;
	f->last = &f->first;
}

static inline void weft_net_bundle_fifo_put(struct weft_bundle_fifo *f, struct weft_bundle_link *l)
{
	weft_assert(f->last && !*f->last);
	l->next = NULL;
	*f->last = l;
	f->last = &l->next;
}

static inline struct weft_bundle_link *weft_net_bundle_fifo_take(struct weft_bundle_fifo *f)
{
	struct weft_bundle_link *l = f->first;
	if (l && !(f->first = l->next))
		f->last = &f->first;
	return l;
}

/* All of `from`, in front of what waits in `f`: it is older. */
static inline void weft_net_bundle_fifo_prepend(struct weft_bundle_fifo *f,
						struct weft_bundle_fifo *from)
{
	if (!from->first)
		return;
	*from->last = f->first;
	if (!f->first)
		f->last = from->last;
	f->first = from->first;
	weft_net_bundle_fifo_init(from);
}

/* The sender's side of one link of one rail. */
struct weft_bundle_lane {
	uint32_t sent, confirmed;      /* units, since this link began */
	struct weft_bundle_fifo under; /* sent and not confirmed, in the order of their places */
};

static inline void weft_net_bundle_lane_init(struct weft_bundle_lane *l)
{
	l->sent = l->confirmed = 0;
	weft_net_bundle_fifo_init(&l->under);
}

static inline void weft_net_bundle_lane_sent(struct weft_bundle_lane *l,
					     struct weft_bundle_link *unit)
{
	l->sent++;
	weft_net_bundle_fifo_put(&l->under, unit);
}

/* Does the peer's count make sense? */
static inline bool weft_net_bundle_lane_sane(const struct weft_bundle_lane *l, uint32_t got)
{
	return got - l->confirmed <= l->sent - l->confirmed;
}

/* The next unit that the peer's count confirms, or NULL. */
static inline struct weft_bundle_link *weft_net_bundle_lane_confirm(struct weft_bundle_lane *l,
								    uint32_t got)
{
	weft_assert(weft_net_bundle_lane_sane(l, got));
	if (l->confirmed == got)
		return NULL;
	l->confirmed++;
	weft_assert(l->under.first); /* what is not confirmed is kept */
	return weft_net_bundle_fifo_take(&l->under);
}

/* The link has ended: what it did not confirm goes again, before what waits. */
static inline void weft_net_bundle_lane_lost(struct weft_bundle_lane *l,
					     struct weft_bundle_fifo *again)
{
	weft_net_bundle_fifo_prepend(again, &l->under);
	weft_net_bundle_lane_init(l);
}

/* May a unit with the next number go out, keeping `reserve` numbers back? */
static inline bool weft_net_bundle_room(uint32_t number, uint32_t peer_next, uint32_t reserve)
{
	weft_assert(number - peer_next <= WEFT_BUNDLE_WINDOW && reserve < WEFT_BUNDLE_WINDOW);
	return number - peer_next < WEFT_BUNDLE_WINDOW - reserve;
}

/* The same for a long one. */
static inline bool weft_net_bundle_room_long(uint32_t number, uint32_t peer_next, uint32_t reserve)
{
	return number - peer_next < WEFT_BUNDLE_LONG - reserve;
}

#endif
