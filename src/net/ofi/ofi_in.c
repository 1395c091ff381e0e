/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ofi_in.c - the way in: completions, which peers may send here, and packets in the
 * order of the sender.
 */
#include "net/ofi/ofi_int.h"

#if __has_include(<rdma/fabric.h>)

#include <sodium.h>
#include <string.h>
#include "base/counters.h"

#define TAKES_PER_POLL 64

void weft_net_ofi_drop_early(struct weft_ofi *o, struct weft_ofi_peer *p)
{
	while (p->early) {
		struct weft_ofi_buf *b = p->early;
		p->early = b->next;
		weft_net_ofi_rx_give(o, b);
	}
}

/* Messages are matched in order, but a long one may be complete after a short one behind it. False:
 * that number is kept already, so the peer lies. */
bool weft_net_ofi_keep_early(struct weft_ofi_peer *p, struct weft_ofi_buf *b)
{
	struct weft_ofi_buf **at = &p->early;
	while (*at && (int32_t)((*at)->frame.sequence - b->frame.sequence) < 0)
		at = &(*at)->next;
	if (*at && (*at)->frame.sequence == b->frame.sequence)
		return false;
	b->next = *at;
	*at = b;
	return true;
}

static int deliver_frame(struct weft_ofi *o, struct weft_ofi_buf *b)
{
	int peer = (int)b->frame.rank;
	if (weft_unlikely(weft_net_ofi_kind(&b->frame) == WEFT_OFI_LARGE))
		return weft_net_ofi_on_large(o, b);
	weft_assert(b->frame.sequence == o->peer[peer].in_sequence); /* in order */
	o->events.packet(o->events.arg, peer, b->frame.head, b->payload, b->frame.len);
	o->peer[peer].in_sequence++;
	weft_net_ofi_rx_give(o, b);
	return 1;
}

/* What was early and is in turn now. */
int weft_net_ofi_deliver_early(struct weft_ofi *o, int peer)
{
	struct weft_ofi_peer *p = &o->peer[peer];
	int n = 0;
	while (p->early && !weft_net_ofi_reads(p) && p->early->frame.sequence == p->in_sequence) {
		struct weft_ofi_buf *b = p->early;
		p->early = b->next;
		n += deliver_frame(o, b);
	}
	return n;
}

/* A message that is complete; returns the upcalls made. */
static int on_message(struct weft_ofi *o, struct weft_ofi_buf *b, size_t bytes)
{
	const struct weft_ofi_frame *f = &b->frame;
	int peer = (int)f->rank, n = 0;
	if (bytes < sizeof *f || f->rank >= (uint32_t)o->job.size ||
	    sodium_memcmp(&f->token, &o->peer[peer].token_in, sizeof f->token) != 0) {
		weft_count(WEFT_CNT_AUTH_REFUSED, 1);
		weft_net_ofi_rx_give(o, b);
		return 0;
	}
	struct weft_ofi_peer *p = &o->peer[peer];
	uint32_t ahead = f->sequence - p->in_sequence;
	bool packet =
		weft_net_ofi_kind(f) == WEFT_OFI_PACKET || weft_net_ofi_kind(f) == WEFT_OFI_LARGE;
	bool whole = packet && f->len == bytes - sizeof *f;
	/* Relaxed: only the poller, we, writes it. */
	if (weft_unlikely(atomic_load_explicit(&p->x_state, memory_order_relaxed) !=
				  WEFT_OFI_REACHED ||
			  weft_net_ofi_epoch(f) != p->epoch))
		return weft_net_ofi_on_other_epoch(o, b, whole);
	p->heard = true;
	if (whole && ahead < WEFT_OFI_SHARE) {
		if (!ahead && weft_likely(!weft_net_ofi_reads(p))) {
			n = deliver_frame(o, b);
			return n + weft_net_ofi_deliver_early(o, peer);
		}
		if (weft_net_ofi_keep_early(p, b))
			return 0;
	}
	if (weft_net_ofi_kind(f) == WEFT_OFI_BYE) {
		p->bye_got = true;
		p->bye_sequence = f->sequence;
	} else if (weft_net_ofi_kind(f) == WEFT_OFI_HEARD) {
		p->bye_heard = true;
	} else if (weft_net_ofi_kind(f) == WEFT_OFI_DONE) {
		n = weft_net_ofi_on_done(o, peer, f);
	} else if (weft_net_ofi_kind(f) == WEFT_OFI_FLUSH) {
		weft_net_ofi_on_flush(o, peer, f);
	} else if (weft_net_ofi_kind(f) == WEFT_OFI_FLUSHED) {
		n = weft_net_ofi_on_flushed(o, peer, f);
	} else if (weft_net_ofi_kind(f) == WEFT_OFI_END) {
		p->end_got = true;
		weft_net_ofi_peer_down(o, peer, WEFT_ERR_PEER, "it has given the connection up");
		n = 1;
	} else if (weft_net_ofi_kind(f) != WEFT_OFI_PING) {
		weft_net_ofi_peer_down(o, peer, WEFT_ERR_PROTO,
				       "a packet of impossible length or order");
		n = 1;
	}
	weft_net_ofi_rx_give(o, b);
	return n;
}

/* Takes a failed operation out of the queue. */
static int take_error(struct weft_ofi *o)
{
	struct fi_cq_err_entry e;
	memset(&e, 0, sizeof e);
	if (fi_cq_readerr(o->cq, &e, 0) <= 0 || !e.op_context)
		return 0;
	struct weft_ofi_buf *b = e.op_context;
	if (b->is_read)
		return weft_net_ofi_read_over(o, b, e.err ? e.err : FI_EIO);
	if (b->is_part)
		return weft_net_ofi_part_over(o, b, e.err ? e.err : FI_EIO);
	if (!b->is_rx)
		return weft_net_ofi_send_over(o, b, e.err ? e.err : FI_EIO);
	weft_net_ofi_rx_give(o, b);
	return 0;
}

/* Takes completions; *found_p: were there any? */
int weft_net_ofi_take(struct weft_ofi *o, bool *found_p)
{
	int n = 0;
	for (int round = 0; round < TAKES_PER_POLL / 16; round++) {
		struct fi_cq_msg_entry e[16];
		ssize_t got = fi_cq_read(o->cq, e, weft_countof(e));
		if (got == -FI_EAVAIL) {
			*found_p = true;
			n += take_error(o);
			continue;
		}
		if (got <= 0)
			break;
		*found_p = true;
		for (ssize_t i = 0; i < got; i++) {
			struct weft_ofi_buf *b = e[i].op_context;
			if (weft_unlikely(b->is_read)) {
				n += weft_net_ofi_read_over(o, b, 0);
				continue;
			}
			if (weft_unlikely(b->is_part)) {
				n += weft_net_ofi_part_over(o, b, 0);
				continue;
			}
			if (!b->is_rx) {
				n += weft_net_ofi_send_over(o, b, 0);
				continue;
			}
			n += on_message(o, b, e[i].len);
		}
		if (got < (ssize_t)weft_countof(e))
			break;
	}
	if (o->rx_idle)
		weft_net_ofi_rx_post(o);
	return n;
}

#endif
