/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ofi_out.c - the way out: a frame is copied into a buffer and given to the network; what happens
 * when there is no room, and when it is out.
 */
#include "net/ofi/ofi_int.h"

#if __has_include(<rdma/fabric.h>)

#include <string.h>
#include "base/cancel.h"
#include "net/shm/ring_tx.h"

void weft_net_ofi_nudge(struct weft_ofi *o)
{
	/* RING <- ARM (ofi_arm, poll_armed): the caller's flag was stored seq_cst before. */
	if (atomic_load_explicit(&o->x_armed, memory_order_seq_cst) &&
	    atomic_exchange_explicit(&o->x_armed, false, memory_order_seq_cst))
		weft_net_hub_ring(&o->hub);
}

void weft_net_ofi_set_blocked(struct weft_ofi *o, struct weft_ofi_peer *p)
{
	/* BLOCK -> READY (tell_ready). */
	if (!atomic_exchange_explicit(&p->x_blocked, true, memory_order_seq_cst))
		atomic_fetch_add_explicit(&o->x_blocked, 1, memory_order_seq_cst);
}

static bool is_packet(enum weft_ofi_kind kind)
{
	return kind == WEFT_OFI_PACKET || kind == WEFT_OFI_LARGE;
}

/* Sends one frame; false: not now. */
bool weft_net_ofi_send_in_epoch(struct weft_ofi *o, int peer, enum weft_ofi_kind kind,
				uint32_t epoch, const void *head, const struct iovec *iov,
				unsigned n, size_t len)
{
	struct weft_ofi_peer *p = &o->peer[peer];
	weft_assert(peer != o->job.rank && len <= WEFT_OFI_MAX_PAYLOAD);
	struct weft_ofi_buf *b = weft_net_ofi_buf_take(o, len);
	if (!b)
		return false;
	b->peer = peer;
	bool numbered = is_packet(kind) || kind == WEFT_OFI_BYE; /* others: beside the poster */
	b->frame = (struct weft_ofi_frame){.token = p->token_out,
					   .rank = (uint32_t)o->job.rank,
					   .sequence = numbered ? p->out_sequence : 0,
					   .len = (uint32_t)len,
					   .kind = kind | epoch << WEFT_OFI_EPOCH_SHIFT};
	if (head)
		memcpy(b->frame.head, head, WEFT_NET_HEAD);
	if (len)
		weft_net_ring_gather(b->payload, iov, n, len);
	/* Relaxed: counts; the poller takes them back after the network has ordered it. */
	atomic_fetch_add_explicit(&p->x_under, 1, memory_order_relaxed);
	if (weft_likely(fi_send(o->ep, &b->frame, sizeof b->frame + len, o->desc, p->addr, b) ==
			0)) {
		if (is_packet(kind)) /* the poster's; others are sent beside it */
			p->out_sequence++;
		return true;
	}
	/* Queues are full, or the connection below is still being made; an error that stays shows
	 * with the next completion. */
	atomic_fetch_sub_explicit(&p->x_under, 1, memory_order_relaxed);
	weft_net_ofi_buf_give(o, b);
	return false;
}

bool weft_net_ofi_send(struct weft_ofi *o, int peer, enum weft_ofi_kind kind, const void *head,
		       const struct iovec *iov, unsigned n, size_t len)
{
	return weft_net_ofi_send_in_epoch(o, peer, kind, o->peer[peer].epoch, head, iov, n, len);
}

/*
 * From the oldest packet that is under way to the next.  The receiver keeps as many that come
 * before their turn, and calls it a lie when there are more.
 */
static uint32_t packets_under_way(const struct weft_ofi_peer *p)
{
	/* Relaxed: one that is too large means waiting for a ready(). */
	return p->out_sequence - atomic_load_explicit(&p->x_out_base, memory_order_relaxed);
}

static void packet_over(struct weft_ofi_peer *p, uint32_t sequence)
{
	static_assert(WEFT_OFI_SHARE <= 64, "bits of out_over");
	uint32_t base = atomic_load_explicit(&p->x_out_base, memory_order_relaxed);
	weft_assert(sequence - base < WEFT_OFI_SHARE);
	p->out_over |= 1ull << (sequence - base);
	for (; p->out_over & 1; p->out_over >>= 1)
		base++;
	atomic_store_explicit(&p->x_out_base, base, memory_order_relaxed);
}

/* Is there something under way that others have overtaken by far?  Then that has to be over first.
 */
static bool is_far(const struct weft_ofi_peer *p)
{
	return p->out_over >> (WEFT_OFI_SHARE / 2);
}

enum weft_post weft_net_ofi_full(struct weft_ofi *o, int peer)
{
	struct weft_ofi_peer *p = &o->peer[peer];
	weft_net_ofi_set_blocked(o, p);
	/* seq_cst: we see DOWN, or weft_net_ofi_peer_down sees x_blocked. */
	if (atomic_load_explicit(&p->x_state, memory_order_seq_cst) != WEFT_OFI_REACHED)
		return WEFT_POST_DOWN;
	weft_net_ofi_nudge(o);
	return WEFT_POST_FULL;
}

enum weft_post weft_net_ofi_post(struct weft_net *net, int peer, const void *head,
				 const struct iovec *iov, unsigned n, size_t len, void *cookie)
{
	struct weft_ofi *o = (struct weft_ofi *)net;
	struct weft_ofi_peer *p = &o->peer[peer];
	/* USE <- REACHED. */
	if (weft_unlikely(atomic_load_explicit(&p->x_state, memory_order_acquire) !=
			  WEFT_OFI_REACHED))
		return WEFT_POST_DOWN;
	/* Relaxed: our own count, and the poller's that may be late. */
	bool room = atomic_load_explicit(&p->x_under, memory_order_relaxed) < WEFT_OFI_SHARE &&
		    packets_under_way(p) < WEFT_OFI_SHARE && !p->gone &&
		    !weft_net_ofi_is_partial(p) &&
		    !weft_net_ofi_behind(p, len > WEFT_OFI_MAX_PAYLOAD);
	enum weft_post answer = WEFT_POST_FULL;
	int was = weft_cancel_off(); /* what a provider calls is its own affair */
	if (room && weft_unlikely(len > WEFT_OFI_MAX_PAYLOAD))
		answer = weft_net_ofi_large_post(o, peer, head, iov, n, len, cookie);
	else if (room && weft_net_ofi_send(o, peer, WEFT_OFI_PACKET, head, iov, n, len))
		answer = WEFT_POST_DONE;
	weft_cancel_back(was);
	return weft_likely(answer != WEFT_POST_FULL) ? answer : weft_net_ofi_full(o, peer);
}

int weft_net_ofi_send_over(struct weft_ofi *o, struct weft_ofi_buf *b, int code)
{
	int peer = b->peer, n = 0;
	struct weft_ofi_peer *p = &o->peer[peer];
	const struct weft_ofi_frame frame = b->frame;
	bool last_words = weft_net_ofi_kind(&frame) == WEFT_OFI_HEARD ||
			  weft_net_ofi_kind(&frame) == WEFT_OFI_BYE;
	bool old = weft_net_ofi_epoch(&frame) != p->epoch;
	weft_assert(atomic_load_explicit(&p->x_under, memory_order_relaxed) > 0);
	atomic_fetch_sub_explicit(&p->x_under, 1, memory_order_relaxed);
	if (!old && is_packet(weft_net_ofi_kind(&frame)))
		packet_over(p, frame.sequence);
	weft_net_ofi_buf_give(o, b);
	if (old)
		return 0; /* that link has ended already */
	if (code && weft_net_ofi_kind(&frame) == WEFT_OFI_END)
		weft_net_ofi_end_lost(o, peer);
	if (code && !p->bye_got && !last_words) {
		weft_net_ofi_peer_down(o, peer, WEFT_ERR_PEER, weft_net_ofi_lib_error(code));
		n++;
	} else if (code) {
		p->bye_heard = true; /* no process is left to answer */
	}
	return n;
}

/* Posters that found no room may try again. */
int weft_net_ofi_tell_ready(struct weft_ofi *o)
{
	int n = 0;
	for (int i = 0; i < o->job.size; i++) {
		struct weft_ofi_peer *p = &o->peer[i];
		/* READY <- BLOCK (set_blocked). */
		if (!atomic_load_explicit(&p->x_blocked, memory_order_seq_cst) ||
		    atomic_load_explicit(&p->x_under, memory_order_relaxed) > WEFT_OFI_SHARE / 2 ||
		    is_far(p) || weft_net_ofi_large_full(p) || weft_net_ofi_is_partial(p) ||
		    atomic_load_explicit(&p->x_parts, memory_order_relaxed) >= WEFT_OFI_PARTS ||
		    !atomic_exchange_explicit(&p->x_blocked, false, memory_order_seq_cst))
			continue;
		atomic_fetch_sub_explicit(&o->x_blocked, 1, memory_order_relaxed);
		o->events.ready(o->events.arg, i);
		n++;
	}
	return n;
}

#endif
