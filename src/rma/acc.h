/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * acc.h - accumulates on memory that this process reaches: element by element, whole against each
 * other.
 *
 * Callers   any thread, handlers included.
 * Atomicity a window uses one of two ways, fixed when it is made, since a way that is whole only against
 *           itself would lose updates:
 *             CPU   atomics of the processor, on aligned elements of 1, 2, 4 or 8 bytes, or many of
 *                   them in bulk, which excludes the atomics (direct.h).  Others go under the lock: those
 *                   are never the same elements.
 *             lock  everything is changed under the target's x_acc.
 * Progress  the lock is held for a block of at most ACC_BLOCK bytes.  A holder that died is found, and
 *           said: the memory may be half written.
 */
#ifndef WEFT_RMA_ACC_H
#define WEFT_RMA_ACC_H

#include "rma/memory.h"
#include "rma/win_int.h"

struct weft_rma_acc {
	struct weft_rma_win *win;
	int rank; /* of the target */
	struct weft_rma_memory there;
	struct weft_rma_reduction red;
	/* Operands, from data byte `from_at` on; NULL for NO_OP. */
	const struct weft_buf *from;
	size_t from_at;
	/* NULL: nothing is fetched. */
	const struct weft_buf *result;
	size_t result_at;
	size_t bytes;
};

/* Data bytes of an element, without its holes. */
size_t weft_rma_elem_bytes(unsigned elem);

weft_err weft_rma_acc(const struct weft_rma_acc *a) weft_must_use;
/* One element: stores value where compare is; *result is what was there. */
weft_err weft_rma_acc_swap(struct weft_rma_win *win, int rank, const struct weft_rma_memory *there,
			   unsigned elem, const void *compare, const void *value,
			   void *result) weft_must_use;

#endif
