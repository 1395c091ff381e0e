/* SPDX-License-Identifier: BSD-3-Clause */
/* pieces.h - copies a piece of a large message between the memories of two processes. */
#ifndef WEFT_COMM_PIECES_H
#define WEFT_COMM_PIECES_H

#include "comm/request.h"

/* Do n pieces of `held` bytes in all go through a packed buffer when the kernel copies? */
bool weft_comm_pieces_small(size_t held, unsigned n);
/* Cuts the n pieces to `len` bytes; returns how many are left, *len_p: their bytes. */
unsigned weft_comm_pieces_cut(struct iovec *iov, unsigned n, size_t len, size_t *len_p);
/* Fetches at most `most` bytes from data byte `off` on; stores how many. */
weft_err weft_comm_pieces_fetch(struct weft_req *r, uint64_t off, size_t most, size_t *len_p);
/* Writes the next piece into the receiver's buffer; stores its length. */
weft_err weft_comm_pieces_push(struct weft_req *r, size_t *len_p);

#endif
