/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gap_predict.h - predicts, per place in the code that waits, whether the thread will wait again
 * before a wake-up could pay.
 *
 * To wake a thread takes some 50 us of both sides' cores.  Where the computation that follows a wait
 * is shorter than that, or not much longer, no thread need be woken for what comes meanwhile.  So the
 * gap after each wait is learned.  A long one counts if an operation had been left behind, which
 * would have gone on meanwhile; then the place has to prove itself anew.
 *
 * Callers   with the baton in hand.
 * Progress  some loads and stores.
 */
#ifndef WEFT_TASK_GAP_PREDICT_H
#define WEFT_TASK_GAP_PREDICT_H

#include "base/assert.h"
#include "base/base.h"
#include "base/mechanism.h"

#define WEFT_GAP_BITS 5           /* of the places that are told apart */
#define WEFT_GAP_SHORT_NS 100000u /* two wake-ups: of twice that, half is hidden all the same */
#define WEFT_GAP_SURE 4           /* short ones in a row, to count on it */

struct weft_task_gap {
	uint64_t since; /* cycles: when the thread left; 0: no gap, or it is not known */
	unsigned at;    /* from which place */
	uint8_t shorts[1u << WEFT_GAP_BITS]; /* in a row, for each place */
};

/* The thread leaves from there.  True: it will be back soon. */
static inline bool weft_task_gap_leave(struct weft_task_gap *a, const void *site, uint64_t now)
{
	a->since = now;
	a->at = (unsigned)(((uintptr_t)site * UINT64_C(0x9e3779b97f4a7c15)) >>
			   (64 - WEFT_GAP_BITS));
	return a->shorts[a->at] >= WEFT_GAP_SURE && weft_mechanism_on(WEFT_MECH_GAP_PREDICT);
}

/* It is back.  behind: it had left an operation behind; short_cycles: less is short. */
static inline void weft_task_gap_back(struct weft_task_gap *a, uint64_t now, bool behind,
				      uint64_t short_cycles)
{
	uint8_t *shorts = &a->shorts[a->at];
	weft_assert(a->since && a->at < 1u << WEFT_GAP_BITS && *shorts <= WEFT_GAP_SURE);
	if (now - a->since < short_cycles)
		*shorts = (uint8_t)(*shorts < WEFT_GAP_SURE ? *shorts + 1 : WEFT_GAP_SURE);
	else if (behind)
		*shorts = 0;
	a->since = 0;
}

#endif
