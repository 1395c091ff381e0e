/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * attached.h - the ranges of memory that a member of a dynamic window has attached, in memory that its
 * host shares: so an origin there reaches them by the kernel's copy, and the member need not answer.
 *
 * Callers   find: any member.  The table is written by its member alone (weft_rma_attach, weft_rma_detach).
 * Order     what was attached before a message to the finder is found.
 * Progress  find: never waits; false may also mean "being written", or "more ranges than are shown": ask the
 *           member.
 */
#ifndef WEFT_RMA_ATTACHED_H
#define WEFT_RMA_ATTACHED_H

#include "base/base.h"

#define WEFT_RMA_ATTACHED_MOST 63

struct weft_rma_attached {
	alignas(WEFT_CACHELINE) _Atomic uint32_t x_seq; /* odd while it is written */
	_Atomic uint32_t x_n;
	uint64_t hole;
	struct {
		_Atomic uint64_t x_base, x_len;
	} range[WEFT_RMA_ATTACHED_MOST];
};

/* Is [at, at + len) attached? */
bool weft_rma_attached_find(const struct weft_rma_attached *a, uint64_t at, uint64_t len);

#endif
