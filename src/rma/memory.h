/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory.h - memory of a target that this process reaches by itself: mapped, or by the kernel's copy.
 *
 * Callers   any thread; the kernel's copy also in handlers, in pieces of at most 1 MiB a call.
 * Errors    WEFT_ERR_ARG: the kernel finds no memory there.
 */
#ifndef WEFT_RMA_MEMORY_H
#define WEFT_RMA_MEMORY_H

#include <sys/types.h>
#include "data/type.h"

/* Addresses count in the process pid; 0: in this one.  There it may be a list of pieces instead. */
struct weft_rma_memory {
	pid_t pid;
	unsigned n_pieces; /* 0: buf */
	struct weft_buf buf;
	const struct iovec *piece;
};

/* Copies data bytes [at, at + len) of m to or from memory here. */
weft_err weft_rma_memory_read(const struct weft_rma_memory *m, size_t at, void *to,
			      size_t len) weft_must_use;
weft_err weft_rma_memory_write(const struct weft_rma_memory *m, size_t at, const void *from,
			       size_t len) weft_must_use;
/* The whole, against a buffer here with as many bytes. */
weft_err weft_rma_memory_copy(const struct weft_rma_memory *m, bool write,
			      const struct weft_buf *here) weft_must_use;

/* May this process read and write pid's memory?  It shows `canary` at the address. */
bool weft_rma_memory_probe(pid_t pid, uint64_t canary_at, uint64_t canary);

#endif
