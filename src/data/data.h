/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * data.h - what bytes a message consists of: a layout (struct weft_type), and a buffer of it.
 *
 * A layout is immutable once made and counted by references: any thread may use it.
 * MPI datatypes (mpi/) own one each; comm/ and coll/ see only this header.
 *
 * Callers   any thread, task handlers included.  Nothing here blocks.
 */
#ifndef WEFT_DATA_H
#define WEFT_DATA_H

#include <sys/uio.h>
#include "base/base.h"

struct weft_type; /* a layout; see type.h for how they are made */

/* `count` elements of `type` at `base`.  type NULL: `bytes` contiguous bytes. */
struct weft_buf {
	void *base;
	size_t bytes;                 /* size of the data, holes left out */
	const struct weft_type *type; /* NULL or a layout with holes or reordering */
	size_t count;
};

static inline struct weft_buf weft_data_buf_flat(const void *base, size_t bytes)
{
	return (struct weft_buf){.base = (void *)(uintptr_t)base, .bytes = bytes};
}

/* Copies data bytes [offset, offset+len) of buf, in the order of its type map, to out. */
void weft_data_pack(const struct weft_buf *buf, size_t offset, void *out, size_t len);

/* The reverse: writes in[0..len) to data bytes [offset, offset+len) of buf. */
void weft_data_unpack(const struct weft_buf *buf, size_t offset, const void *in, size_t len);

/*
 * Describes data bytes from offset on as at most *n_p pieces; stores how many it used in *n_p.
 * Returns how many data bytes these pieces hold (0: offset is at the end).
 */
size_t weft_data_iov(const struct weft_buf *buf, size_t offset, struct iovec *iov, unsigned *n_p);

#endif
