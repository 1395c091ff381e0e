/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ofi_large.c - large packets at their sender: it registers the pieces and sends LARGE, the upper
 * head and where the pieces are.  The post is ACCEPTED until the receiver (ofi_rma.c) says DONE,
 * which names the last packet it has read.
 *
 * Locks     x_large_lock guards a peer's list of LARGEs under way: posters add, the poller removes.
 */
#include "net/ofi/ofi_int.h"

#if __has_include(<rdma/fabric.h>)

#include <rdma/fi_rma.h>
#include <stdlib.h>
#include <string.h>
#include "base/backoff.h"
#include "net/shm/ring_tx.h"

#define LARGES 16u /* of one peer under way */

struct weft_ofi_large {
	struct weft_ofi_large *next;
	uint32_t sequence;
	void *cookie, *gathered;
	struct fid_mr *mr[WEFT_OFI_PIECES];
};

static void large_lock(struct weft_ofi_peer *p)
{
	unsigned turns = 0;
	/* LOCK <- UNLOCK.  Carries: the list.  Ends: held for a few instructions. */
	while (atomic_exchange_explicit(&p->x_large_lock, true, memory_order_acquire))
		weft_backoff(&turns);
}

static void large_unlock(struct weft_ofi_peer *p)
{
	/* UNLOCK -> LOCK. */
	atomic_store_explicit(&p->x_large_lock, false, memory_order_release);
}

static void large_free(struct weft_ofi_large *l)
{
	for (unsigned i = 0; i < WEFT_OFI_PIECES; i++)
		if (l->mr[i])
			fi_close(&l->mr[i]->fid);
	free(l->gathered);
	free(l);
}

bool weft_net_ofi_behind(struct weft_ofi_peer *p, bool large)
{
	bool full = false;
	/* Relaxed: our own posts, and the poller's view that may be late: then ready() follows. */
	unsigned n = atomic_load_explicit(&p->x_larges, memory_order_relaxed);
	if (weft_likely(!n))
		return false;
	large_lock(p);
	if (p->large)
		full = p->out_sequence - p->large->sequence >= WEFT_OFI_BEHIND ||
		       (large && n >= LARGES);
	p->large_full |= full;
	large_unlock(p);
	return full;
}

bool weft_net_ofi_large_full(struct weft_ofi_peer *p)
{
	if (!atomic_load_explicit(&p->x_larges, memory_order_relaxed))
		return false;
	large_lock(p);
	bool full = p->large_full;
	large_unlock(p);
	return full;
}

static bool add_piece(struct weft_ofi *o, struct weft_ofi_large *l, struct weft_ofi_announce *a,
		      void *base, size_t len)
{
	weft_assert(len > 0 && a->n < WEFT_OFI_PIECES);
	/* Relaxed: a number that no other piece has. */
	uint64_t key = atomic_fetch_add_explicit(&o->x_key, 1, memory_order_relaxed);
	struct fid_mr **mr = &l->mr[a->n];
	if (fi_mr_reg(o->domain, base, len, FI_REMOTE_READ, 0, key, 0, mr, NULL))
		return false;
	bool by_address = o->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
	a->piece[a->n++] =
		(struct weft_ofi_piece){.addr = by_address ? (uint64_t)(uintptr_t)base : 0,
					.key = fi_mr_key(*mr),
					.len = len};
	return true;
}

static bool add_pieces(struct weft_ofi *o, struct weft_ofi_large *l, struct weft_ofi_announce *a,
		       const struct iovec *iov, unsigned n, size_t len)
{
	if (n <= WEFT_OFI_PIECES) {
		for (unsigned i = 0; i < n; i++)
			if (iov[i].iov_len && !add_piece(o, l, a, iov[i].iov_base, iov[i].iov_len))
				return false;
		return true;
	}
	l->gathered = malloc(len);
	if (!l->gathered)
		return false;
	weft_net_ring_gather(l->gathered, iov, n, len);
	return add_piece(o, l, a, l->gathered, len);
}

/* Takes l out of the list; false: the poller has, and it is over. */
static bool take_back(struct weft_ofi_peer *p, struct weft_ofi_large *l)
{
	large_lock(p);
	struct weft_ofi_large **at = &p->large;
	while (*at && *at != l)
		at = &(*at)->next;
	bool found = *at;
	if (found) {
		*at = l->next;
		atomic_fetch_sub_explicit(&p->x_larges, 1, memory_order_relaxed);
	}
	large_unlock(p);
	return found;
}

enum weft_post weft_net_ofi_large_post(struct weft_ofi *o, int peer, const void *head,
				       const struct iovec *iov, unsigned n, size_t len,
				       void *cookie)
{
	struct weft_ofi_peer *p = &o->peer[peer];
	struct weft_ofi_announce a = {.len = len};
	struct weft_ofi_large *l = calloc(1, sizeof *l);
	if (!l || !add_pieces(o, l, &a, iov, n, len)) {
		if (l)
			large_free(l);
		return WEFT_POST_FULL;
	}
	l->cookie = cookie;
	l->sequence = p->out_sequence;
	large_lock(p);
	struct weft_ofi_large **at = &p->large;
	while (*at) /* ends: LARGES */
		at = &(*at)->next;
	*at = l;
	atomic_fetch_add_explicit(&p->x_larges, 1, memory_order_relaxed);
	large_unlock(p);
	struct iovec say = {&a,
			    offsetof(struct weft_ofi_announce, piece) + a.n * sizeof a.piece[0]};
	/* seq_cst: the poller's DOWN is seen here, or it sees l in the list. */
	if (atomic_load_explicit(&p->x_state, memory_order_seq_cst) == WEFT_OFI_REACHED &&
	    weft_net_ofi_send(o, peer, WEFT_OFI_LARGE, head, &say, 1, say.iov_len))
		return WEFT_POST_ACCEPTED;
	if (!take_back(p, l))
		return WEFT_POST_ACCEPTED; /* its sent() was told */
	large_free(l);
	return WEFT_POST_FULL;
}

/* The oldest one, if its number is `sequence` or before. */
static struct weft_ofi_large *oldest_large(struct weft_ofi_peer *p, bool all, uint32_t sequence)
{
	large_lock(p);
	struct weft_ofi_large *l = p->large;
	if (l && (all || (int32_t)(l->sequence - sequence) <= 0)) {
		p->large = l->next;
		p->large_full = false;
		atomic_fetch_sub_explicit(&p->x_larges, 1, memory_order_relaxed);
	} else {
		l = NULL;
	}
	large_unlock(p);
	return l;
}

/* Those up to number `sequence`, or all, are over.  The upcalls made. */
int weft_net_ofi_large_over(struct weft_ofi *o, int peer, bool all, uint32_t sequence, weft_err err)
{
	struct weft_ofi_large *l;
	int n = 0;
	while ((l = oldest_large(&o->peer[peer], all, sequence))) {
		void *cookie = l->cookie;
		large_free(l);
		o->events.sent(o->events.arg, peer, cookie, err);
		n++;
	}
	return n;
}

int weft_net_ofi_on_done(struct weft_ofi *o, int peer, const struct weft_ofi_frame *f)
{
	uint32_t sequence;
	memcpy(&sequence, f->head, sizeof sequence);
	return weft_net_ofi_large_over(o, peer, false, sequence, WEFT_OK);
}

/* At the end: without an upcall. */
void weft_net_ofi_large_drop(struct weft_ofi_peer *p)
{
	for (struct weft_ofi_large *l; (l = oldest_large(p, true, 0));)
		large_free(l);
}

#endif
