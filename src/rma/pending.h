/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pending.h - parts of accesses that wait for an answer or for a message.
 *
 * Callers   any thread, handlers included.
 * Owner     a part is freed by what ends it: its answer, its message, or the death of its peer.
 */
#ifndef WEFT_RMA_PENDING_H
#define WEFT_RMA_PENDING_H

#include "rma/win_int.h"

struct weft_rma_pending {
	struct weft_rma_win *win;
	int rank; /* of the target */
	struct weft_rma_op *op;
	struct weft_buf
		to; /* where the answer's data goes, from data byte `at` on; holds its layout */
	size_t at, len;
	_Atomic int *x_over; /* or NULL: set to 1, or to an error, at the end */
	struct weft_req req; /* of a large access */
};

/* Counted at its target and in op.  NULL: no memory. */
struct weft_rma_pending *weft_rma_pending_new(struct weft_rma_win *win, int rank,
					      struct weft_rma_op *op, const struct weft_buf *buf);
/* A number for its answer; 0: too many. */
uint32_t weft_rma_pending_name(struct weft_rma_pending *p);
/* Ends it; frees it. */
void weft_rma_pending_over(struct weft_rma_pending *p, weft_err err);
/* What would be answered has not been sent; id as named, or 0. */
void weft_rma_pending_unsent(struct weft_rma_pending *p, uint32_t id, weft_err err);
/* The member is gone: what waits for its answers ends. */
void weft_rma_pending_end(struct weft_rma_win *win, int rank);
/* Gives the window's members their numbers. */
void weft_rma_pending_numbers(struct weft_rma_win *win);

/* A part of op is over. */
void weft_rma_op_part(struct weft_rma_op *op, weft_err err);

#endif
