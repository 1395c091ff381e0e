/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * view_wire.h - a view as bytes, for another process of the same program.
 *
 * Callers   any thread.
 * Errors    decode checks what it reads: WEFT_ERR_PROTO for bytes that are no view.
 */
#ifndef WEFT_FILE_VIEW_WIRE_H
#define WEFT_FILE_VIEW_WIRE_H

#include "file/view.h"

/* Writes v to out, if that is not NULL; returns how many bytes it takes. */
size_t weft_file_view_encode(const struct weft_file_view *v, char *out);

/* A peer's view: its layout is its own. */
struct weft_file_view_copy {
	struct weft_file_view view;
	struct weft_type type; /* view.type points here, or is NULL */
};

weft_err weft_file_view_decode(const char *in, size_t bytes,
			       struct weft_file_view_copy *v) weft_must_use;
void weft_file_view_copy_drop(struct weft_file_view_copy *v);

#endif
