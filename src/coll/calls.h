/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * calls.h - which collectives a member has called last on a communicator, by number, so that a member that waits
 * long can ask the others: calls that do not match are named, and end, instead of waiting for each other for ever.
 *
 * Ask       a member that has waited for 150 ms sends the others its last calls, in both groups of an
 *           intercommunicator.  One whose calls were others under the same numbers names both, ends its own of those
 *           numbers and before, and answers with its calls, so that the asker does the same.
 * Loss      one that finds a member dead ends its calls as well, and says so in its answers: others may have left the
 *           collective with an error, and would be waited for in vain.
 * Close     one that will make no further call says so to a member that asks from a later one, which then ends its own.
 * End       receives of those collectives that are posted end as cancelled, unexpected messages of them are
 *           dropped (which releases their senders), and the rest of their receives is not posted.
 * Callers   called, close: the thread that begins the collective.  ask: any thread that may send.  The rest: any.
 * Cost      two stores per collective; nothing else until a member has waited long.
 */
#ifndef WEFT_COLL_CALLS_H
#define WEFT_COLL_CALLS_H

#include "coll/coll.h"

#define WEFT_COLL_CALLS 64 /* numbers that a member remembers */

struct weft_coll_calls {
	struct weft_comm_ear ear; /* how it is asked */
	_Atomic uint32_t x_last;  /* number of the last call */
	_Atomic uint32_t x_ended; /* with ENDED: of the last one that was ended; else 0 */
	_Atomic uint32_t x_told;  /* number + 1 of the last mismatch that was reported */
	_Atomic bool x_lost;      /* they were ended because a member is dead */
	_Atomic bool x_closed;    /* no call follows the last one */
	_Atomic uint32_t x_note[WEFT_COLL_CALLS]; /* by number: it << 8 | kind + 1 */
};

/* Of a context of a communicator that is new.  NULL: no memory, or not for such a group. */
struct weft_coll_calls *weft_coll_calls_open(struct weft_ctx *ctx);

/* A member begins that collective. */
static inline void weft_coll_called(struct weft_coll_calls *calls, uint32_t number,
				    enum weft_coll_kind kind)
{
	if (weft_unlikely(!calls))
		return;
	/* Relaxed, both: compared by number. */
	atomic_store_explicit(&calls->x_note[number % WEFT_COLL_CALLS],
			      number << 8 | ((uint32_t)kind + 1), memory_order_relaxed);
	atomic_store_explicit(&calls->x_last, number, memory_order_relaxed);
}

/* The call of that tag, which was noted before, turns out to be of that kind. */
void weft_coll_call_is(const struct weft_ctx *ctx, int tag, enum weft_coll_kind kind);

/* This member makes no further call: a member that waits in a later one waits in vain.  May be NULL. */
void weft_coll_calls_close(struct weft_coll_calls *calls);

/* For the thread that waits in a collective of g, or polls for its end: asks the other members, of both groups of an
 * intercommunicator.  `round` counts the times that it has: in large groups each time others are asked. */
void weft_coll_ask(const struct weft_coll_group *g, unsigned round);

/* What an error of a collective of ctx comes from: WEFT_ERR_PEER where its receives were ended for a death. */
weft_err weft_coll_cause(const struct weft_ctx *ctx, weft_err err) __attribute__((cold));

/* Has the collective of that tag been ended? */
bool weft_coll_ended(const struct weft_ctx *ctx, int tag) __attribute__((cold));
/* The collective of that tag, or (all) each that was called so far, has failed for a mismatch that was found by other means:
 * members that wait in it are told when they ask. */
void weft_coll_calls_failed(const struct weft_ctx *ctx, int tag, bool all) __attribute__((cold));

#endif
