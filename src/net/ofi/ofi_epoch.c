/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ofi_epoch.c - a link that broke and is used again: see Epochs in ofi_int.h.
 *
 * What comes of an epoch that is not ours yet waits in early until we take the link up, too.
 */
#include "net/ofi/ofi_int.h"

#if __has_include(<rdma/fabric.h>)

#define GONE_NS 100000000u
#define END_NS 30000000000u /* as long the network may have no room for an END, or lose it */

static void try_end_again(struct weft_ofi *o)
{
	o->owes = true;
	if (o->armed)
		weft_net_hub_ring(&o->hub); /* so that a thread does */
}

/* The peer shall hear that the link, as it is, has ended. */
void weft_net_ofi_owe_end(struct weft_ofi *o, int peer)
{
	struct weft_ofi_peer *p = &o->peer[peer];
	p->end_until_ns = weft_clock_ns() + END_NS;
	p->owes_end = !weft_net_ofi_send(o, peer, WEFT_OFI_END, NULL, NULL, 0, 0);
	if (p->owes_end)
		try_end_again(o);
}

/* An END did not get through: what broke the link may have taken it along. */
void weft_net_ofi_end_lost(struct weft_ofi *o, int peer)
{
	struct weft_ofi_peer *p = &o->peer[peer];
	if (p->end_got || p->dead_already || weft_clock_ns() >= p->end_until_ns)
		return;
	p->owes_end = true;
	try_end_again(o);
}

/* A message that does not belong to the link as it is: of another epoch, or the link is down. */
int weft_net_ofi_on_other_epoch(struct weft_ofi *o, struct weft_ofi_buf *b, bool whole)
{
	const struct weft_ofi_frame *f = &b->frame;
	int peer = (int)f->rank, n = 0;
	struct weft_ofi_peer *p = &o->peer[peer];
	uint32_t epoch = weft_net_ofi_epoch(f);
	bool fresh = epoch > p->epoch;
	if (fresh && atomic_load_explicit(&p->x_state, memory_order_relaxed) == WEFT_OFI_REACHED) {
		weft_net_ofi_peer_down(o, peer, WEFT_ERR_PEER, "it took the link up anew");
		n = 1;
	}
	/* One END at a time: the peer may say much before it hears. */
	if (epoch == p->epoch && !p->bye_got && !p->end_got && !p->dead_already &&
	    !atomic_load_explicit(&p->x_under, memory_order_relaxed) &&
	    (weft_net_ofi_kind(f) == WEFT_OFI_PACKET || weft_net_ofi_kind(f) == WEFT_OFI_LARGE ||
	     weft_net_ofi_kind(f) == WEFT_OFI_PING))
		weft_net_ofi_owe_end(o, peer); /* it has not heard yet */
	if (weft_net_ofi_kind(f) == WEFT_OFI_BYE) {
		p->owes_heard = o->owes = true; /* it leaves, and nothing of it will be delivered */
		p->owes_epoch = epoch;
	}
	if (fresh && epoch > p->epoch_next) {
		weft_net_ofi_drop_early(o, p);
		p->epoch_next = epoch;
	}
	/* Until the link is taken up. */
	if (!fresh || epoch != p->epoch_next || !whole || f->sequence >= WEFT_OFI_SHARE ||
	    !weft_net_ofi_keep_early(p, b))
		weft_net_ofi_rx_give(o, b);
	return n;
}

/* The links that were taken up again. */
int weft_net_ofi_deliver_revived(struct weft_ofi *o)
{
	int n = 0;
	o->revived = false;
	for (int i = 0; i < o->job.size; i++)
		if (atomic_load_explicit(&o->peer[i].x_state, memory_order_relaxed) ==
		    WEFT_OFI_REACHED)
			n += weft_net_ofi_deliver_early(o, i);
	return n;
}

/* BYEs that belong to no link of ours: the peer waits for the answer all the same.  Ends that it
 * does not know of. */
void weft_net_ofi_answer_strays(struct weft_ofi *o)
{
	o->owes = false;
	for (int i = 0; i < o->job.size; i++) {
		struct weft_ofi_peer *p = &o->peer[i];
		if (p->owes_heard)
			p->owes_heard = !weft_net_ofi_send_in_epoch(
				o, i, WEFT_OFI_HEARD, p->owes_epoch, NULL, NULL, 0, 0);
		if (p->owes_end)
			p->owes_end = !weft_net_ofi_send(o, i, WEFT_OFI_END, NULL, NULL, 0, 0) &&
				      weft_clock_ns() < p->end_until_ns;
		o->owes |= p->owes_heard | p->owes_end;
		weft_net_ofi_rma_again(o, i);
		weft_net_ofi_region_again(o, i);
		weft_net_ofi_flush_answer(o, i);
	}
}

/* A process that has ended listens no more. */
bool weft_net_ofi_ended(struct weft_net *net, int peer)
{
	return ((struct weft_ofi *)net)->peer[peer].dead_already;
}

void weft_net_ofi_drop(struct weft_net *net, int peer, const char *why)
{
	struct weft_ofi *o = (struct weft_ofi *)net;
	struct weft_ofi_peer *p = &o->peer[peer];
	if (atomic_load_explicit(&p->x_state, memory_order_relaxed) == WEFT_OFI_REACHED)
		weft_net_ofi_peer_down(o, peer, WEFT_ERR_PEER, why);
}

/* The peer learns of it by the first frame of the new epoch.  A process that has ended is tried for
 * a while, as a network would. */
void weft_net_ofi_revive(struct weft_net *net, int peer)
{
	struct weft_ofi *o = (struct weft_ofi *)net;
	struct weft_ofi_peer *p = &o->peer[peer];
	if (atomic_load_explicit(&p->x_state, memory_order_relaxed) != WEFT_OFI_DOWN)
		return;
	p->epoch = p->epoch_next > p->epoch ? p->epoch_next : p->epoch + 1;
	p->epoch_next = p->epoch;
	p->in_sequence = p->out_sequence = 0;
	p->out_over = 0;
	atomic_store_explicit(&p->x_out_base, 0, memory_order_relaxed); /* no thread posts */
	weft_assert(!p->early || p->early->frame.sequence < WEFT_OFI_SHARE);
	p->owes_done = p->owes_flushed = false;
	p->heard = p->bye_got = p->bye_answered = p->bye_heard = false;
	p->owes_end = p->end_got = p->broke = false; /* the new epoch says it */
	atomic_store_explicit(&p->x_bye_sent, false, memory_order_relaxed);
	p->refused_ns = 0;
	p->gone = p->dead_already;
	p->gone_ns = weft_clock_ns() + GONE_NS;
	o->n_gone += p->gone;
	o->n_remote += p->remote;
	if (p->pid_fd >= 0 && !p->gone && !p->remote &&
	    weft_net_hub_add(&o->hub, p->pid_fd, EPOLLIN,
			     weft_net_hub_data(WEFT_OFI_EV_PID, (uint64_t)peer))) {
		p->remote = true; /* then pings tell */
		o->n_remote++;
	}
	o->revived = true;
	/* REACHED -> USE (posters).  Carries: the epoch. */
	atomic_store_explicit(&p->x_state, WEFT_OFI_REACHED, memory_order_release);
}

#endif
