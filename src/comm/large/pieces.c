/* SPDX-License-Identifier: BSD-3-Clause */
/* pieces.c - copies a piece of a large message between the memories of two processes. */
#include <stdlib.h>
#include "comm/core.h"
#include "comm/large/large_int.h"
#include "comm/large/pieces.h"
#include "data/data.h"

/* To the kernel each piece of a layout costs as much as some KiB. */
#define SMALL_COPY ((size_t)2048)

bool weft_comm_pieces_small(size_t held, unsigned n)
{
	return held < n * SMALL_COPY;
}

unsigned weft_comm_pieces_cut(struct iovec *iov, unsigned n, size_t len, size_t *len_p)
{
	size_t have = 0;
	unsigned i = 0;
	for (; i < n && have < len; i++) {
		if (iov[i].iov_len > len - have)
			iov[i].iov_len = len - have;
		have += iov[i].iov_len;
	}
	*len_p = have;
	return i;
}

weft_err weft_comm_pieces_fetch(struct weft_req *r, uint64_t off, size_t most, size_t *len_p)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	struct weft_gate *g = v->gate;
	uint64_t from = v->from.addr + off;
	size_t len = v->want - off < most ? v->want - off : most;
	struct iovec iov[WEFT_IOV_MAX];
	unsigned n = 1;

	weft_assert(v->state == WEFT_LARGE_COPYING && v->from.addr && off < v->want);
	*len_p = len;
	if (!r->buf.type) {
		iov[0] = (struct iovec){(char *)r->buf.base + off, len};
		return weft_comm_gate_copy(g, false, from, iov, n, len);
	}
	n = WEFT_IOV_MAX;
	size_t held = weft_data_iov(&r->buf, off, iov, &n);
	if (held >= len || !weft_comm_pieces_small(held, n)) {
		n = weft_comm_pieces_cut(iov, n, len, len_p);
		return weft_comm_gate_copy(g, false, from, iov, n, *len_p);
	}
	void *aside = malloc(len);
	if (!aside)
		return WEFT_ERR_NOMEM;
	iov[0] = (struct iovec){aside, len};
	weft_err err = weft_comm_gate_copy(g, false, from, iov, 1, len);
	if (!err)
		weft_data_unpack(&r->buf, off, aside, len);
	free(aside);
	return err;
}

weft_err weft_comm_pieces_push(struct weft_req *r, size_t *len_p)
{
	struct weft_core_req_send *s = weft_comm_req_send(r);
	struct weft_gate *g = s->gate;
	size_t len = s->want - s->off < WEFT_LARGE_PIECE ? s->want - s->off : WEFT_LARGE_PIECE;
	struct iovec iov[WEFT_IOV_MAX];
	unsigned n = 1;

	weft_assert(s->state == WEFT_LARGE_COPYING && s->route == WEFT_ROUTE_PUSH);
	*len_p = len;
	if (!r->buf.type) {
		iov[0] = (struct iovec){(char *)r->buf.base + s->off, len};
	} else {
		n = WEFT_IOV_MAX;
		size_t held = weft_data_iov(&r->buf, s->off, iov, &n);
		if (held < len && weft_comm_pieces_small(held, n))
			return WEFT_ERR_UNSUPPORTED; /* packets are sooner there */
		n = weft_comm_pieces_cut(iov, n, len, len_p);
	}
	return weft_comm_gate_copy(g, true, s->to.addr + s->off, iov, n, *len_p);
}
