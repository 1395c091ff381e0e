/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * external.h - the representation "external32": big-endian, fixed sizes, no padding.
 *
 * Callers   any thread.  May allocate a bounded amount (a few KiB on the stack only).
 */
#ifndef WEFT_DATA_EXTERNAL_H
#define WEFT_DATA_EXTERNAL_H

#include "data/type.h"

/* Bytes that count elements of t take in external32. */
weft_err weft_data_external_size(const struct weft_type *t, size_t count,
				 size_t *size_p) weft_must_use;

/* Writes all data of buf, which is `count` of `t`, to out / reads it from in. */
void weft_data_external_pack(const struct weft_buf *buf, const struct weft_type *t, size_t count,
			     void *out);
void weft_data_external_unpack(const struct weft_buf *buf, const struct weft_type *t, size_t count,
			       const void *in);

#endif
