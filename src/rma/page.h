/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page.h - the memory that the members of a window on one host share: their locks, and in windows
 * that we allocate their memory.
 *
 * The first member of the host makes a memfd; the others open it through /proc, which the kernel
 * allows to the same user alone.  It has no name: when the last member is gone, it is gone.
 *
 * Callers   make, map, unmap: the thread that makes or frees the window.
 * Errors    WEFT_ERR_UNSUPPORTED, WEFT_ERR_NOMEM: said in a debug line; the window does without.
 */
#ifndef WEFT_RMA_PAGE_H
#define WEFT_RMA_PAGE_H

#include "base/base.h"

/*
 * Locks of one member.
 *
 * x_lock   high half: rank + 1 of the exclusive holder.  Low half: WEFT_RMA_LOCK_ASKED, requests wait at the
 *          member, so that nothing is taken in passing; and how many members that do not map the page hold
 *          it together.  The others say so in bytes of their own (lock.c): what a dead one holds is known.
 * x_acc    the process that changes memory under it (lock mode, acc.c): number on the host + 1; 0: none.
 */
struct weft_rma_slot {
	alignas(WEFT_CACHELINE) _Atomic uint64_t x_lock;
	_Atomic uint32_t x_marked; /* members may be looking for it to be free (turn.h) */
	alignas(WEFT_CACHELINE) _Atomic int32_t x_acc;
	alignas(WEFT_CACHELINE) _Atomic uint32_t
		x_sleeps; /* the member waits for a word, and wants a message (told.h) */
	int32_t pid;      /* I: of the member */
	uint64_t
		start; /* I: when its process started, so that a pid that is used again is noticed */
};

#define WEFT_RMA_LOCK_ASKED ((uint64_t)1 << 31)
#define WEFT_RMA_LOCK_FAR(word) ((uint32_t)(word)&0x7fffffffu)
#define WEFT_RMA_LOCK_OWNER(word) ((uint32_t)((word) >> 32))

struct weft_rma_page {
	void *map; /* NULL: there is none */
	size_t bytes;
	int fd; /* the maker's, until all have mapped; else -1 */
};

/* Zeroed memory; fd is open. */
weft_err weft_rma_page_make(struct weft_rma_page *p, size_t bytes) weft_must_use;
weft_err weft_rma_page_map(struct weft_rma_page *p, int pid, int fd, size_t bytes) weft_must_use;
void weft_rma_page_close_fd(struct weft_rma_page *p);
void weft_rma_page_unmap(struct weft_rma_page *p);

/* When the process started, in ticks since boot; 0: there is none, or it has ended. */
uint64_t weft_rma_process_start(int pid);

#endif
