/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uring.h - the few things of io_uring that files need, straight on the kernel's interface.
 *
 * Callers   one at a time (the source's mask).
 * Owner     entries belong to the kernel from submit until they come back as completions.
 * Order     the kernel's release of a tail carries what it wrote; our release of a head or tail
 * gives the place, or the entry, to it.
 */
#ifndef WEFT_URING_H
#define WEFT_URING_H

#include <linux/io_uring.h>
#include "base/base.h"

struct weft_uring {
	int fd, event_fd;
	unsigned sq_entries, sq_mask, cq_mask; /* I */
	unsigned prepared;                     /* entries that the kernel has not been told of */
	unsigned tail;                         /* of the submission ring: ours alone */
	_Atomic unsigned *x_sq_head, *x_sq_tail, *x_cq_head, *x_cq_tail, *x_cq_flags;
	unsigned *sq_array;
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
	void *ring;
	size_t ring_bytes, sqe_bytes;
};

/* WEFT_ERR_UNSUPPORTED: this system has none, or does not let us. */
weft_err weft_task_uring_open(struct weft_uring *u, unsigned entries) weft_must_use;
void weft_task_uring_close(struct weft_uring *u);
/* A cleared entry to fill in, or NULL: full, submit first. */
struct io_uring_sqe *weft_task_uring_entry(struct weft_uring *u);
/* Tells the kernel of all prepared entries.  False: not all, try again later. */
bool weft_task_uring_submit(struct weft_uring *u);
/* The oldest completion, or NULL; then seen. */
const struct io_uring_cqe *weft_task_uring_peek(struct weft_uring *u);
void weft_task_uring_seen(struct weft_uring *u);
/* From now on each completion is an edge on event_fd; or not. */
void weft_task_uring_bell(struct weft_uring *u, bool on);

#endif
