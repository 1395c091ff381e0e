/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ofi_transfer.c - reads, writes and atomics of peers' regions, by the network.
 *
 *   transfer   in its peer's list until its last part is over; then sent() is told
 *   part       one operation of libfabric: bytes that are in one piece on both sides
 *
 * Parts     the call gives the network what it takes.  What is left is given by the poller
 *           (x_partial of the peer); until then posts and transfers to that peer answer FULL, so
 *           that none overtakes it.
 * Order     packets that are posted behind a write come behind its bytes: the provider promises
 *           FI_ORDER_SAW, or no region can be written.  So a flush is a frame that the peer's
 *           poller answers.
 * Given up  a peer's transfers that the network has not ended in time.  They are told, and their
 *           memory stays the network's until it is closed.
 */
#include "net/ofi/ofi_int.h"

#if __has_include(<rdma/fabric.h>)

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <stdlib.h>
#include <string.h>
#include "base/cancel.h"
#include "base/counters.h"
#include "base/log.h"
#include "net/shm/ring_tx.h"

enum kind { MOVE, ATOMIC, FLUSH };

struct weft_ofi_transfer {
	struct weft_ofi_transfer *next;         /* L x_region_lock */
	struct weft_ofi_transfer *next_partial; /* the same */
	int peer;
	enum kind kind;
	void *cookie;
	struct weft_ofi_buf *part; /* L x_region_lock: under way */
	_Atomic unsigned x_left;   /* how many, and one while parts are still to be given */
	weft_err err;              /* poller */
	bool given_up;             /* poller */
	uint32_t number;           /* FLUSH */
	uint32_t writes;           /* FLUSH: that it is about */
	unsigned bytes;            /* ATOMIC */
	void *result;              /* ATOMIC */
	/* MOVE: what is left, by the call, then by the poller. */
	struct weft_net_transfer what;
	struct weft_net_ticket there;
	struct weft_net_walk at;
	struct iovec piece[];
};

/* What a part's buffer has in front of its payload. */
struct part {
	struct weft_ofi_transfer *transfer; /* NULL: a copy, whose transfer is done */
	struct fid_mr *mr;                  /* of the bytes here, where the network asks for that */
	bool slab;                          /* the buffer is the slab's */
	uint64_t operand, compare, before;  /* of an atomic */
};
static_assert(offsetof(struct weft_ofi_buf, payload) % alignof(struct part) == 0, "aligned");

#define COPY_MAX (WEFT_OFI_SMALL - sizeof(struct part)) /* short writes are copied */

static struct part *part_of(struct weft_ofi_buf *b)
{
	return (struct part *)(void *)b->payload;
}

bool weft_net_ofi_is_reached(const struct weft_ofi_peer *p)
{
	/* USE <- REACHED. */
	return atomic_load_explicit(&p->x_state, memory_order_acquire) == WEFT_OFI_REACHED;
}

bool weft_net_ofi_is_partial(const struct weft_ofi_peer *p)
{
	/* Relaxed: a poster's own transfer, or another thread's, whose order against it is open. */
	return atomic_load_explicit(&p->x_partials, memory_order_relaxed);
}

/* ---- the list -------------------------------------------------------------------------------- */

static void list_add(struct weft_ofi *o, struct weft_ofi_transfer *t)
{
	struct weft_ofi_peer *p = &o->peer[t->peer];
	weft_net_ofi_region_lock(o);
	t->next = p->transfer;
	p->transfer = t;
	weft_net_ofi_region_unlock(o);
}

/* False: it was given up, and told. */
static bool list_take(struct weft_ofi *o, struct weft_ofi_transfer *t)
{
	weft_net_ofi_region_lock(o);
	struct weft_ofi_transfer **at = &o->peer[t->peer].transfer;
	while (*at && *at != t) /* ends with the list */
		at = &(*at)->next;
	bool found = *at;
	if (found)
		*at = t->next;
	weft_net_ofi_region_unlock(o);
	return found;
}

/* ---- parts ----------------------------------------------------------------------------------- */

static void part_list(struct weft_ofi *o, struct weft_ofi_buf *b)
{
	struct weft_ofi_transfer *t = part_of(b)->transfer;
	weft_net_ofi_region_lock(o);
	b->next = t->part;
	t->part = b;
	weft_net_ofi_region_unlock(o);
}

static void part_unlist(struct weft_ofi *o, struct weft_ofi_buf *b)
{
	weft_net_ofi_region_lock(o);
	struct weft_ofi_buf **at = &part_of(b)->transfer->part;
	while (*at != b) /* ends: it is in the list */
		at = &(*at)->next;
	*at = b->next;
	weft_net_ofi_region_unlock(o);
}

static void part_free(struct weft_ofi *o, struct weft_ofi_buf *b)
{
	if (part_of(b)->transfer)
		part_unlist(o, b);
	if (part_of(b)->mr)
		fi_close(&part_of(b)->mr->fid);
	b->is_part = false;
	if (part_of(b)->slab)
		weft_net_ofi_buf_give(o, b);
	else
		free(b);
}

/* slab: with room for `len` bytes behind struct part. */
static struct weft_ofi_buf *part_make(struct weft_ofi *o, int peer, struct weft_ofi_transfer *t,
				      bool slab, size_t len)
{
	struct weft_ofi_buf *b = slab ? weft_net_ofi_buf_take(o, sizeof(struct part) + len)
				      : calloc(1, sizeof *b + sizeof(struct part));
	if (!b)
		return NULL;
	b->peer = peer;
	b->is_part = true;
	*part_of(b) = (struct part){.transfer = t, .slab = slab};
	if (t)
		part_list(o, b);
	return b;
}

static bool part_register(struct weft_ofi *o, struct weft_ofi_buf *b, void *data, size_t len,
			  uint64_t access)
{
	if (!(o->info->domain_attr->mr_mode & FI_MR_LOCAL))
		return true;
	/* Relaxed: a number that no other memory has. */
	uint64_t key = atomic_fetch_add_explicit(&o->x_key, 1, memory_order_relaxed);
	return fi_mr_reg(o->domain, data, len, access, 0, key, 0, &part_of(b)->mr, NULL) == 0;
}

/* Counted before the network has it: it may be over before the call returns. */
static void part_count(struct weft_ofi_peer *p, struct weft_ofi_transfer *t)
{
	/* Relaxed: counts; the poller takes them back after the network has ordered it. */
	atomic_fetch_add_explicit(&p->x_under, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&p->x_parts, 1, memory_order_relaxed);
	if (t)
		atomic_fetch_add_explicit(&t->x_left, 1, memory_order_relaxed);
}

static void part_uncount(struct weft_ofi_peer *p, struct weft_ofi_transfer *t)
{
	atomic_fetch_sub_explicit(&p->x_parts, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&p->x_under, 1, memory_order_relaxed);
	if (t)
		atomic_fetch_sub_explicit(&t->x_left, 1, memory_order_relaxed);
}

static void count_write(struct weft_ofi_peer *p)
{
	/* Relaxed: a flush looks at what its own thread has written, or heard of. */
	atomic_fetch_add_explicit(&p->x_writes, 1, memory_order_relaxed);
}

static bool part_begin(struct weft_ofi *o, struct weft_ofi_transfer *t, uint64_t at, void *data,
		       size_t len)
{
	struct weft_ofi_peer *p = &o->peer[t->peer];
	bool write = t->what.write;
	struct weft_ofi_buf *b = part_make(o, t->peer, t, false, 0);
	if (!b)
		return false;
	part_count(p, t);
	/* seq_cst: the poller's DOWN is seen here, or it sees t in the list. */
	if (atomic_load_explicit(&p->x_state, memory_order_seq_cst) == WEFT_OFI_REACHED &&
	    part_register(o, b, data, len, write ? FI_WRITE : FI_READ)) {
		void *desc = part_of(b)->mr ? fi_mr_desc(part_of(b)->mr) : NULL;
		uint64_t addr = t->there.addr + at, key = t->there.key;
		ssize_t code = write ? fi_write(o->ep, data, len, desc, p->addr, addr, key, b)
				     : fi_read(o->ep, data, len, desc, p->addr, addr, key, b);
		if (code == 0) {
			weft_count(write ? WEFT_CNT_OFI_WRITES : WEFT_CNT_OFI_READS, 1);
			return true;
		}
	}
	part_uncount(p, t);
	part_free(o, b);
	return false;
}

/* True: all of it is the network's now. */
static bool give_parts(struct weft_ofi *o, struct weft_ofi_transfer *t)
{
	struct weft_ofi_peer *p = &o->peer[t->peer];
	for (;;) { /* ends: with the pieces, or the room */
		struct weft_net_walk before = t->at;
		uint64_t at;
		char *data;
		size_t len;
		if (!weft_net_walk_next(&t->at, &t->what, o->info->ep_attr->max_msg_size, &at,
					&data, &len))
			return true;
		/* Relaxed: one too many does no harm. */
		if (atomic_load_explicit(&p->x_parts, memory_order_relaxed) >= WEFT_OFI_PARTS ||
		    !part_begin(o, t, at, data, len)) {
			t->at = before;
			return false;
		}
	}
}

/* ---- its end --------------------------------------------------------------------------------- */

/* The last part is over, the poller's; the upcalls made. */
static int finish_transfer(struct weft_ofi *o, struct weft_ofi_transfer *t)
{
	if (!list_take(o, t))
		return 0; /* o->lost_transfer has it */
	o->events.sent(o->events.arg, t->peer, t->cookie, t->err);
	free(t);
	return 1;
}

/* Acquire and release: the last part's end sees what the others have left. */
static bool left_drop(struct weft_ofi_transfer *t)
{
	return atomic_fetch_sub_explicit(&t->x_left, 1, memory_order_acq_rel) == 1;
}

/* A part is over.  The upcalls made. */
int weft_net_ofi_part_over(struct weft_ofi *o, struct weft_ofi_buf *b, int code)
{
	int peer = b->peer, n = 0;
	struct weft_ofi_peer *p = &o->peer[peer];
	struct weft_ofi_transfer *t = part_of(b)->transfer;
	part_uncount(p, NULL);
	if (t && t->kind == ATOMIC && !code && !t->given_up)
		memcpy(t->result, &part_of(b)->before, t->bytes);
	part_free(o, b);
	if (t && code)
		t->err = WEFT_ERR_PEER;
	if (t && left_drop(t))
		n = finish_transfer(o, t);
	if (code && atomic_load_explicit(&p->x_state, memory_order_relaxed) == WEFT_OFI_REACHED) {
		weft_net_ofi_peer_down(o, peer, WEFT_ERR_PEER, weft_net_ofi_lib_error(code));
		n++;
	}
	return n;
}

/* The oldest that waits for room, or NULL. */
static struct weft_ofi_transfer *partial_take(struct weft_ofi *o, struct weft_ofi_peer *p)
{
	weft_net_ofi_region_lock(o);
	struct weft_ofi_transfer *t = p->partial;
	if (t)
		p->partial = t->next_partial;
	weft_net_ofi_region_unlock(o);
	return t;
}

static void partial_leave(struct weft_ofi *o, struct weft_ofi_transfer *t, bool first)
{
	weft_net_ofi_region_lock(o);
	struct weft_ofi_transfer **at = &o->peer[t->peer].partial;
	while (*at && !first) /* ends with the list */
		at = &(*at)->next_partial;
	t->next_partial = *at;
	*at = t;
	weft_net_ofi_region_unlock(o);
}

/* Goes on with the transfers of one peer that the network had no room for.  The upcalls made. */
static int go_on(struct weft_ofi *o, struct weft_ofi_peer *p)
{
	struct weft_ofi_transfer *t;
	int n = 0;
	while ((t = partial_take(o, p))) { /* ends: with the list, or the room */
		/* Relaxed: only the poller, we, writes it. */
		if (atomic_load_explicit(&p->x_state, memory_order_relaxed) != WEFT_OFI_REACHED) {
			t->err = WEFT_ERR_PEER;
		} else if (!give_parts(o, t)) {
			partial_leave(o, t, true);
			break;
		}
		/* Relaxed: a poster that is late gets FULL, and then ready(). */
		atomic_fetch_sub_explicit(&p->x_partials, 1, memory_order_relaxed);
		atomic_fetch_sub_explicit(&o->x_partials, 1, memory_order_relaxed);
		if (left_drop(t))
			n += finish_transfer(o, t);
	}
	return n;
}

int weft_net_ofi_transfers_go_on(struct weft_ofi *o)
{
	int n = 0;
	for (int i = 0; i < o->job.size; i++)
		/* Relaxed: what is missed now is seen at the next poll; arm() orders. */
		if (atomic_load_explicit(&o->peer[i].x_partials, memory_order_relaxed))
			n += go_on(o, &o->peer[i]);
	return n;
}

/* ---- transfer -------------------------------------------------------------------------------- */

static struct weft_ofi_transfer *transfer_make(int peer, enum kind kind, void *cookie, size_t more)
{
	struct weft_ofi_transfer *t = calloc(1, sizeof *t + more);
	if (!t)
		return NULL;
	t->peer = peer;
	t->kind = kind;
	t->cookie = cookie;
	atomic_store_explicit(&t->x_left, 1, memory_order_relaxed); /* the call's */
	return t;
}

static struct weft_ofi_transfer *move_make(int peer, const struct weft_net_transfer *what)
{
	size_t pieces = what->n_pieces * sizeof *what->piece;
	size_t spans = what->n_spans * sizeof *what->span;
	struct weft_ofi_transfer *t = transfer_make(peer, MOVE, what->cookie, pieces + spans);
	if (!t)
		return NULL;
	struct weft_net_span *span = (struct weft_net_span *)(void *)(t->piece + what->n_pieces);
	memcpy(t->piece, what->piece, pieces);
	memcpy(span, what->span, spans);
	t->there = *what->there;
	t->what = *what;
	t->what.piece = t->piece;
	t->what.span = span;
	t->what.there = &t->there;
	return t;
}

/* Nothing of t is the network's. */
static enum weft_post take_back(struct weft_ofi *o, struct weft_ofi_transfer *t)
{
	int peer = t->peer;
	if (!list_take(o, t))
		return WEFT_POST_ACCEPTED; /* it was given up: its sent() was told */
	free(t);
	return weft_net_ofi_full(o, peer);
}

static enum weft_post give_or_leave(struct weft_ofi *o, struct weft_ofi_transfer *t)
{
	struct weft_ofi_peer *p = &o->peer[t->peer];
	list_add(o, t);
	if (t->what.write)
		count_write(p);
	if (give_parts(o, t)) {
		if (!left_drop(t))
			return WEFT_POST_ACCEPTED;
		weft_err err = t->err;
		if (!list_take(o, t))
			return WEFT_POST_ACCEPTED;
		free(t);
		return err ? WEFT_POST_DOWN : WEFT_POST_DONE;
	}
	if (!weft_net_walk_begun(&t->at))
		return take_back(o, t);
	partial_leave(o, t, false);
	atomic_fetch_add_explicit(&p->x_partials, 1, memory_order_relaxed);
	/* seq_cst: before the look at x_armed. */
	atomic_fetch_add_explicit(&o->x_partials, 1, memory_order_seq_cst);
	weft_net_ofi_nudge(o);
	return WEFT_POST_ACCEPTED;
}

/* A short write goes from a copy: its memory is free at once. */
static bool write_copied(struct weft_ofi *o, int peer, const struct weft_net_transfer *t,
			 size_t bytes)
{
	struct weft_ofi_peer *p = &o->peer[peer];
	struct weft_ofi_buf *b = part_make(o, peer, NULL, true, bytes);
	if (!b)
		return false;
	uint8_t *data = (uint8_t *)(part_of(b) + 1);
	weft_net_ring_gather(data, t->piece, t->n_pieces, bytes);
	part_count(p, NULL);
	count_write(p);
	if (fi_write(o->ep, data, bytes, o->desc, p->addr, t->there->addr + t->span->at,
		     t->there->key, b) == 0) {
		weft_count(WEFT_CNT_OFI_WRITES, 1);
		return true;
	}
	part_uncount(p, NULL);
	part_free(o, b);
	return false;
}

/* May another operation begin? */
static bool has_room(struct weft_ofi_peer *p)
{
	/* Relaxed: our own counts, and the poller's that may be late. */
	return atomic_load_explicit(&p->x_parts, memory_order_relaxed) < WEFT_OFI_PARTS &&
	       !weft_net_ofi_is_partial(p) && !p->gone;
}

enum weft_post weft_net_ofi_transfer(struct weft_net *net, int peer,
				     const struct weft_net_transfer *t)
{
	struct weft_ofi *o = (struct weft_ofi *)net;
	struct weft_ofi_peer *p = &o->peer[peer];
	enum weft_post answer;
	size_t bytes;
	if (!(o->card.access & (t->write ? WEFT_NET_WRITE : WEFT_NET_READ)) ||
	    !weft_net_transfer_fits(t, &bytes))
		return WEFT_POST_REFUSED;
	if (!weft_net_ofi_is_reached(p))
		return WEFT_POST_DOWN;
	if (!bytes)
		return WEFT_POST_DONE;
	if (!has_room(p))
		return weft_net_ofi_full(o, peer);
	int was = weft_cancel_off(); /* what a provider calls is its own affair */
	if (t->write && t->n_spans == 1 && bytes <= COPY_MAX) {
		answer = write_copied(o, peer, t, bytes) ? WEFT_POST_DONE
							 : weft_net_ofi_full(o, peer);
	} else {
		struct weft_ofi_transfer *mine = move_make(peer, t);
		answer = mine ? give_or_leave(o, mine) : weft_net_ofi_full(o, peer);
	}
	weft_cancel_back(was);
	return answer;
}

/* ---- atomics --------------------------------------------------------------------------------- */

static enum fi_datatype type_of(unsigned bytes)
{
	return bytes == 1 ? FI_UINT8 : bytes == 2 ? FI_UINT16 : bytes == 4 ? FI_UINT32 : FI_UINT64;
}

/* The sizes of which the provider has all three. */
unsigned weft_net_ofi_atomic_sizes(struct weft_ofi *o)
{
	unsigned sizes = 0;
	for (unsigned bytes = 1; bytes <= 8; bytes *= 2) {
		enum fi_datatype type = type_of(bytes);
		size_t most = 0;
		if (!fi_fetch_atomicvalid(o->ep, type, FI_SUM, &most) && most &&
		    !fi_fetch_atomicvalid(o->ep, type, FI_ATOMIC_WRITE, &most) && most &&
		    !fi_compare_atomicvalid(o->ep, type, FI_CSWAP, &most) && most)
			sizes |= bytes;
	}
	return sizes;
}

static bool atomic_begin(struct weft_ofi *o, struct weft_ofi_transfer *t,
			 const struct weft_net_atomic *a)
{
	struct weft_ofi_peer *p = &o->peer[t->peer];
	struct weft_ofi_buf *b = part_make(o, t->peer, t, true, 0);
	if (!b)
		return false;
	struct part *x = part_of(b);
	uint64_t addr = a->there->addr + a->at, key = a->there->key;
	enum fi_datatype type = type_of(a->bytes);
	x->operand = a->operand; /* little-endian: its first bytes are the value */
	x->compare = a->compare;
	part_count(p, t);
	/* seq_cst: as in part_begin. */
	if (atomic_load_explicit(&p->x_state, memory_order_seq_cst) == WEFT_OFI_REACHED) {
		ssize_t code =
			a->op == WEFT_NET_COMPARE_SWAP
				? fi_compare_atomic(o->ep, &x->operand, 1, o->desc, &x->compare,
						    o->desc, &x->before, o->desc, p->addr, addr,
						    key, type, FI_CSWAP, b)
				: fi_fetch_atomic(o->ep, &x->operand, 1, o->desc, &x->before,
						  o->desc, p->addr, addr, key, type,
						  a->op == WEFT_NET_SWAP ? FI_ATOMIC_WRITE : FI_SUM,
						  b);
		if (code == 0) {
			weft_count(WEFT_CNT_OFI_ATOMICS, 1);
			return true;
		}
	}
	part_uncount(p, t);
	part_free(o, b);
	return false;
}

enum weft_post weft_net_ofi_atomic(struct weft_net *net, int peer, const struct weft_net_atomic *a)
{
	struct weft_ofi *o = (struct weft_ofi *)net;
	struct weft_ofi_peer *p = &o->peer[peer];
	if (!(o->card.atomic_sizes & a->bytes) || !weft_net_atomic_fits(a))
		return WEFT_POST_REFUSED;
	if (!weft_net_ofi_is_reached(p))
		return WEFT_POST_DOWN;
	struct weft_ofi_transfer *t =
		has_room(p) ? transfer_make(peer, ATOMIC, a->cookie, 0) : NULL;
	if (!t)
		return weft_net_ofi_full(o, peer);
	t->bytes = a->bytes;
	t->result = a->result;
	list_add(o, t);
	int was = weft_cancel_off();
	enum weft_post answer = WEFT_POST_ACCEPTED;
	if (!atomic_begin(o, t, a))
		answer = take_back(o, t);
	else if (left_drop(t) && list_take(o, t)) {
		answer = t->err ? WEFT_POST_DOWN : WEFT_POST_DONE;
		free(t);
	}
	weft_cancel_back(was);
	return answer;
}

/* ---- flush ----------------------------------------------------------------------------------- */

static bool flush_begin(struct weft_ofi *o, struct weft_ofi_transfer *t)
{
	struct weft_ofi_peer *p = &o->peer[t->peer];
	uint8_t head[WEFT_NET_HEAD] = {0};
	memcpy(head, &t->number, sizeof t->number);
	/* seq_cst: as in part_begin. */
	return atomic_load_explicit(&p->x_state, memory_order_seq_cst) == WEFT_OFI_REACHED &&
	       weft_net_ofi_send(o, t->peer, WEFT_OFI_FLUSH, head, NULL, 0, 0);
}

enum weft_post weft_net_ofi_flush(struct weft_net *net, int peer, void *cookie)
{
	struct weft_ofi *o = (struct weft_ofi *)net;
	struct weft_ofi_peer *p = &o->peer[peer];
	if (!weft_net_ofi_is_reached(p))
		return WEFT_POST_DOWN;
	/* Relaxed: what this thread has written, or heard of, is counted. */
	uint32_t writes = atomic_load_explicit(&p->x_writes, memory_order_relaxed);
	/* SEE <- FLUSHED (weft_net_ofi_on_flushed).  Carries: the bytes are there. */
	if (writes == atomic_load_explicit(&p->x_flushed, memory_order_acquire))
		return WEFT_POST_DONE;
	struct weft_ofi_transfer *t = has_room(p) ? transfer_make(peer, FLUSH, cookie, 0) : NULL;
	if (!t)
		return weft_net_ofi_full(o, peer);
	t->writes = writes;
	/* Acquire and release: writes before a number was taken are before any later one's frame.
	 */
	t->number = atomic_fetch_add_explicit(&p->x_flush_number, 1, memory_order_acq_rel);
	list_add(o, t);
	int was = weft_cancel_off();
	enum weft_post answer = flush_begin(o, t) ? WEFT_POST_ACCEPTED : take_back(o, t);
	weft_cancel_back(was);
	return answer;
}

/* The peer has written, before this frame, all that it wants to be told of. */
void weft_net_ofi_on_flush(struct weft_ofi *o, int peer, const struct weft_ofi_frame *f)
{
	struct weft_ofi_peer *p = &o->peer[peer];
	memcpy(p->flush_head, f->head, sizeof p->flush_head);
	p->owes_flushed = true;
	weft_net_ofi_flush_answer(o, peer);
}

void weft_net_ofi_flush_answer(struct weft_ofi *o, int peer)
{
	struct weft_ofi_peer *p = &o->peer[peer];
	if (!p->owes_flushed)
		return;
	p->owes_flushed = !weft_net_ofi_send(o, peer, WEFT_OFI_FLUSHED, p->flush_head, NULL, 0, 0);
	o->owes |= p->owes_flushed;
}

/* The peer has answered: what was written before that number was taken has arrived. */
int weft_net_ofi_on_flushed(struct weft_ofi *o, int peer, const struct weft_ofi_frame *f)
{
	struct weft_ofi_peer *p = &o->peer[peer];
	uint32_t number;
	int n = 0;
	memcpy(&number, f->head, sizeof number);
	for (;;) { /* ends: each round takes one */
		weft_net_ofi_region_lock(o);
		struct weft_ofi_transfer **at = &p->transfer;
		while (*at && ((*at)->kind != FLUSH || (int32_t)((*at)->number - number) > 0))
			at = &(*at)->next;
		struct weft_ofi_transfer *t = *at;
		if (t)
			*at = t->next;
		weft_net_ofi_region_unlock(o);
		if (!t)
			return n;
		/* Relaxed: the poller, we, is the only writer. */
		if ((int32_t)(t->writes -
			      atomic_load_explicit(&p->x_flushed, memory_order_relaxed)) > 0)
			/* FLUSHED -> SEE (weft_net_ofi_flush).  Carries: the answer. */
			atomic_store_explicit(&p->x_flushed, t->writes, memory_order_release);
		o->events.sent(o->events.arg, peer, t->cookie, WEFT_OK);
		free(t);
		n++;
	}
}

/* ---- ends ------------------------------------------------------------------------------------ */

/* The first of the peer's transfers, or of its flushes, is the network's until it is closed. */
static struct weft_ofi_transfer *lose_first(struct weft_ofi *o, int peer, bool flushes)
{
	weft_net_ofi_region_lock(o);
	struct weft_ofi_transfer **at = &o->peer[peer].transfer;
	while (*at && flushes && (*at)->kind != FLUSH) /* ends with the list */
		at = &(*at)->next;
	struct weft_ofi_transfer *t = *at;
	if (t) {
		*at = t->next;
		t->given_up = true;
		t->next = o->lost_transfer;
		o->lost_transfer = t;
	}
	weft_net_ofi_region_unlock(o);
	return t;
}

/* The peer is down: flushes get no answer.  A call may be using one still, so it is not freed. */
void weft_net_ofi_flushes_fail(struct weft_ofi *o, int peer)
{
	struct weft_ofi_transfer *t;
	while ((t = lose_first(o, peer, true))) /* ends: each round takes one */
		o->events.sent(o->events.arg, peer, t->cookie, WEFT_ERR_PEER);
}

/* Transfers that are not over. */
void weft_net_ofi_transfers_give_up(struct weft_ofi *o, int peer)
{
	struct weft_ofi_transfer *t;
	while ((t = lose_first(o, peer, false))) { /* ends: each round takes one */
		weft_warn("ofi: the network still holds memory of a transfer with rank %d", peer);
		o->events.sent(o->events.arg, peer, t->cookie, WEFT_ERR_PEER);
	}
}

/* Before the network is closed; no upcall is made. */
void weft_net_ofi_transfers_end(struct weft_ofi *o)
{
	for (int i = 0; o->peer && i < o->job.size; i++)
		while (lose_first(o, i, false)) /* ends: each round takes one */
			;
	for (struct weft_ofi_transfer *t = o->lost_transfer; t; t = t->next)
		for (struct weft_ofi_buf *b = t->part; b; b = b->next) {
			if (part_of(b)->mr)
				fi_close(&part_of(b)->mr->fid);
			part_of(b)->mr = NULL;
		}
}

/* Behind it. */
void weft_net_ofi_transfers_close(struct weft_ofi *o)
{
	for (struct weft_ofi_transfer *t; (t = o->lost_transfer);) {
		o->lost_transfer = t->next;
		for (struct weft_ofi_buf *b; (b = t->part);) {
			t->part = b->next;
			if (!part_of(b)->slab)
				free(b);
		}
		free(t);
	}
}

#endif
