/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live.h - the memory in which a process keeps its counters: processes of the same user may read.
 *
 * A memfd of that name stays open, so that /proc/PID/fd leads to it; the kernel lets only the same
 * user in.  Head, names, then blocks; a reader needs no lock and takes no part.
 */
#ifndef WEFT_LIVE_H
#define WEFT_LIVE_H

#include "base/base.h"

#define WEFT_LIVE_NAME "weft-counters"
#define WEFT_LIVE_MAGIC 0x7765667463303032u
#define WEFT_LIVE_BLOCKS_AT 16384u
#define WEFT_LIVE_BYTES (16u << 20) /* address space; memory only for blocks in use */

/* Where a layer above has what `weft info --live` may read out of the process's own memory. */
struct weft_live_part {
	char name[8];
	uint64_t layout;       /* the reader goes on only if its own is equal */
	_Atomic uint64_t x_at; /* 0: not there */
};

struct weft_live_head {
	uint64_t magic;
	uint32_t counters;         /* values in a block */
	uint32_t block_bytes;      /* from one block to the next */
	uint32_t values_at;        /* of the values, within a block */
	_Atomic uint32_t x_blocks; /* so many are in use */
	struct weft_live_part part[2];
	/* `counters` names follow, each ended by a NUL */
};

/* name's part lies at `at` from now on; one caller at a time for each name. */
void weft_live_tell(const char *name, uint64_t layout, const void *at);

#endif
