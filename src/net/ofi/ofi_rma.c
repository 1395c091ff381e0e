/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ofi_rma.c - large packets at their receiver: it reads the payload out of the sender's memory
 * (ofi_large.c) into where it belongs; nothing is copied on the way.
 *
 * Receiver  asks place() when LARGE's turn has come, and reads one piece after the other.  What
 *           comes behind waits in early: in return the sender posts at most WEFT_OFI_BEHIND packets
 *           behind the oldest LARGE that is not over.
 * Ends      a peer that goes down during a read is reported when the network has let go of the
 *           memory that it reads into.
 *
 * Not used by rails: a link that is dropped and taken up again would have to wait for its reads.
 */
#include "net/ofi/ofi_int.h"

#if __has_include(<rdma/fabric.h>)

#include <rdma/fi_rma.h>
#include <stdlib.h>
#include <string.h>
#include "base/counters.h"
#include "base/log.h"

#define SINK_PIECES 4u /* more, and small ones, are read aside */
#define SINK_PIECE_MIN 65536u

/* What a peer's packet is being read into; the poller's. */
struct weft_ofi_reading {
	struct weft_ofi_reading *next; /* among those that were given up */
	struct weft_ofi_buf *op;       /* the context of the read under way; op->peer */
	struct weft_ofi_buf *large;
	struct weft_ofi_announce from;
	struct weft_net_sink sink;
	struct fid_mr *mr; /* of the piece that is read into, where the network asks for that */
	void *aside;
	uint64_t at, want; /* of the payload */
	size_t under;      /* bytes of the read under way; 0: it could not be begun */
	bool ending;       /* the peer is down */
	uint64_t ending_ns;
	weft_err err;
	char why[200];
};

static bool announce_is_sane(const struct weft_ofi_frame *f, const void *payload,
			     struct weft_ofi_announce *a)
{
	uint64_t sum = 0;
	memset(a, 0, sizeof *a);
	if (f->len < offsetof(struct weft_ofi_announce, piece) || f->len > sizeof *a)
		return false;
	memcpy(a, payload, f->len);
	if (a->n > WEFT_OFI_PIECES || f->len != offsetof(struct weft_ofi_announce, piece) +
							a->n * sizeof(struct weft_ofi_piece))
		return false;
	for (unsigned i = 0; i < a->n; i++) {
		if (a->piece[i].len > a->len - sum)
			return false;
		sum += a->piece[i].len;
	}
	return sum == a->len && a->len <= WEFT_OFI_MAX_LARGE;
}

/* Where byte `at` of the payload goes, and how many behind it go there, too. */
static void *sink_at(struct weft_ofi_reading *r, uint64_t at, size_t *len_p)
{
	if (r->aside) {
		*len_p = (size_t)(r->want - at);
		return (char *)r->aside + at;
	}
	unsigned i = 0;
	for (; at >= r->sink.iov[i].iov_len; i++) /* ends: at < room */
		at -= r->sink.iov[i].iov_len;
	*len_p = r->sink.iov[i].iov_len - at;
	return (char *)r->sink.iov[i].iov_base + at;
}

static bool local_register(struct weft_ofi *o, struct weft_ofi_reading *r, void *base, size_t len)
{
	if (!(o->info->domain_attr->mr_mode & FI_MR_LOCAL))
		return true;
	uint64_t key = atomic_fetch_add_explicit(&o->x_key, 1, memory_order_relaxed);
	return fi_mr_reg(o->domain, base, len, FI_READ, 0, key, 0, &r->mr, NULL) == 0;
}

static void local_release(struct weft_ofi_reading *r)
{
	if (r->mr)
		fi_close(&r->mr->fid);
	r->mr = NULL;
}

/* Begins the next read.  Tried again with the next poll when the network has no room. */
static weft_err read_next(struct weft_ofi *o, struct weft_ofi_reading *r)
{
	struct weft_ofi_peer *p = &o->peer[r->op->peer];
	const struct weft_ofi_piece *from = r->from.piece;
	uint64_t off = r->at;
	size_t len;
	void *to = sink_at(r, r->at, &len);
	for (; off >= from->len; from++) /* ends: at < the sum */
		off -= from->len;
	if (len > from->len - off)
		len = (size_t)(from->len - off);
	if (len > r->want - r->at)
		len = (size_t)(r->want - r->at);
	if (len > o->info->ep_attr->max_msg_size)
		len = o->info->ep_attr->max_msg_size;
	weft_assert(len > 0 && r->at + len <= r->want);
	r->under = 0;
	if (!local_register(o, r, to, len))
		return WEFT_ERR_NOMEM;
	ssize_t code = fi_read(o->ep, to, len, r->mr ? fi_mr_desc(r->mr) : NULL, p->addr,
			       from->addr + off, from->key, r->op);
	if (code == 0) {
		r->under = len;
		weft_count(WEFT_CNT_OFI_READS, 1);
		return WEFT_OK;
	}
	local_release(r);
	o->owes = true;
	return code == -FI_EAGAIN ? WEFT_OK : WEFT_ERR_PEER;
}

static void tell_done(struct weft_ofi *o, int peer)
{
	struct weft_ofi_peer *p = &o->peer[peer];
	uint8_t head[WEFT_NET_HEAD] = {0};
	memcpy(head, &p->done_sequence, sizeof p->done_sequence);
	p->owes_done = !weft_net_ofi_send(o, peer, WEFT_OFI_DONE, head, NULL, 0, 0);
	o->owes |= p->owes_done;
}

/* The payload is there, or will not come. */
static int finish_reading(struct weft_ofi *o, struct weft_ofi_reading *r, weft_err err)
{
	weft_assert(r->large && (err || r->at == r->want));
	int peer = r->op->peer;
	struct weft_ofi_peer *p = &o->peer[peer];
	if (r->aside && !err) {
		const char *at = r->aside;
		uint64_t left = r->want;
		for (unsigned i = 0; i < r->sink.n && left; i++) {
			size_t len = r->sink.iov[i].iov_len < left ? r->sink.iov[i].iov_len
								   : (size_t)left;
			memcpy(r->sink.iov[i].iov_base, at, len);
			at += len;
			left -= len;
		}
	}
	free(r->aside);
	r->aside = NULL;
	weft_net_ofi_rx_give(o, r->large);
	r->large = NULL;
	if (!err) {
		p->done_sequence = p->in_sequence++;
		tell_done(o, peer);
	}
	o->events.placed(o->events.arg, peer, r->sink.cookie, err);
	return 1;
}

bool weft_net_ofi_reads(const struct weft_ofi_peer *p)
{
	return p->reading && p->reading->large;
}

static bool reading_make(struct weft_ofi_peer *p)
{
	if (p->reading)
		return true;
	struct weft_ofi_reading *r = calloc(1, sizeof *r);
	if (r && !(r->op = calloc(1, sizeof *r->op))) {
		free(r);
		r = NULL;
	}
	p->reading = r;
	return r != NULL;
}

/* A LARGE whose turn it is; takes b.  The upcalls made. */
int weft_net_ofi_on_large(struct weft_ofi *o, struct weft_ofi_buf *b)
{
	int peer = (int)b->frame.rank;
	struct weft_ofi_peer *p = &o->peer[peer];
	struct weft_ofi_announce a;
	if (!o->rma || !announce_is_sane(&b->frame, b->payload, &a)) {
		weft_net_ofi_rx_give(o, b);
		weft_net_ofi_peer_down(o, peer, WEFT_ERR_PROTO,
				       "a large packet that makes no sense");
		return 1;
	}
	if (!reading_make(p)) {
		weft_net_ofi_rx_give(o, b);
		weft_net_ofi_peer_down(o, peer, WEFT_ERR_NOMEM, "no memory to receive");
		return 1;
	}
	weft_assert(!weft_net_ofi_reads(p) && b->frame.sequence == p->in_sequence);
	struct weft_ofi_reading *r = p->reading;
	*r = (struct weft_ofi_reading){.op = r->op, .large = b, .from = a};
	r->op->peer = peer;
	r->op->is_read = true;
	o->events.place(o->events.arg, peer, b->frame.head, a.len, &r->sink);
	r->want = r->sink.n && r->sink.room < a.len ? r->sink.room : a.len;
	if (!r->sink.n)
		r->want = 0;
	if (r->sink.n > SINK_PIECES && r->want / r->sink.n < SINK_PIECE_MIN)
		r->aside = malloc(r->want); /* no memory: piece by piece */
	if (!r->want)
		return 1 + finish_reading(o, r, WEFT_OK);
	weft_err err = read_next(o, r);
	if (err)
		weft_net_ofi_peer_down(o, peer, err, "its memory cannot be read");
	return 1;
}

static int end_reading(struct weft_ofi *o, struct weft_ofi_reading *r)
{
	int peer = r->op->peer;
	int n = finish_reading(o, r, WEFT_ERR_PEER);
	if (weft_net_ofi_region_ends(&o->peer[peer]))
		return n; /* told later */
	o->events.down(o->events.arg, peer, r->err, r->why);
	return n + 1;
}

/* A read is over.  The upcalls made. */
int weft_net_ofi_read_over(struct weft_ofi *o, struct weft_ofi_buf *b, int code)
{
	struct weft_ofi_reading *r = o->peer[b->peer].reading;
	if (!r || r->op != b)
		return 0; /* it was given up */
	local_release(r);
	if (r->ending)
		return end_reading(o, r);
	weft_err err = code ? WEFT_ERR_PEER : WEFT_OK;
	if (!err && (r->at += r->under) == r->want)
		return finish_reading(o, r, WEFT_OK) + weft_net_ofi_deliver_early(o, r->op->peer);
	if (!err)
		err = read_next(o, r);
	r->under = err ? 0 : r->under;
	if (err)
		weft_net_ofi_peer_down(o, r->op->peer, err,
				       code ? weft_net_ofi_lib_error(code)
					    : "its memory cannot be read");
	return 1;
}

/* What could not go at once. */
void weft_net_ofi_rma_again(struct weft_ofi *o, int peer)
{
	struct weft_ofi_peer *p = &o->peer[peer];
	struct weft_ofi_reading *r = p->reading;
	if (p->owes_done &&
	    atomic_load_explicit(&p->x_state, memory_order_relaxed) == WEFT_OFI_REACHED)
		tell_done(o, peer);
	if (!weft_net_ofi_reads(p))
		return;
	if (r->ending) {
		if (weft_clock_ns() < r->ending_ns) {
			o->owes = true;
			return;
		}
		weft_warn("ofi: the network still holds memory that rank %d's data went to", peer);
		void *aside = r->aside;
		r->aside = NULL; /* the network's, and so is r, until it is closed */
		end_reading(o, r);
		r->aside = aside;
		r->next = o->lost;
		o->lost = r;
		p->reading = NULL;
	} else if (!r->under) {
		weft_err err = read_next(o, r);
		if (err)
			weft_net_ofi_peer_down(o, peer, err, "its memory cannot be read");
	}
}

/* The peer is down: its packets are over.  True: its down() is told later, by us. */
bool weft_net_ofi_rma_down(struct weft_ofi *o, int peer, weft_err err, const char *text)
{
	struct weft_ofi_peer *p = &o->peer[peer];
	struct weft_ofi_reading *r = p->reading;
	(void)weft_net_ofi_large_over(o, peer, true, 0, WEFT_ERR_PEER);
	p->owes_done = false;
	if (!weft_net_ofi_reads(p))
		return false;
	if (!r->under) {
		(void)finish_reading(o, r, WEFT_ERR_PEER);
		return false;
	}
	r->ending = true;
	r->ending_ns =
		weft_clock_ns() + (p->dead_already ? WEFT_OFI_LET_GO_ENDED_NS : WEFT_OFI_LET_GO_NS);
	r->err = err;
	snprintf(r->why, sizeof r->why, "%s", text);
	o->owes = true;
	if (o->armed)
		weft_net_hub_ring(&o->hub); /* so that a thread looks at the time */
	return true;
}

/* Before the network is closed, and behind it. */
void weft_net_ofi_rma_end(struct weft_ofi *o)
{
	for (int i = 0; o->peer && i < o->job.size; i++) {
		struct weft_ofi_peer *p = &o->peer[i];
		weft_net_ofi_large_drop(p);
		if (p->reading)
			local_release(p->reading);
	}
	for (struct weft_ofi_reading *r = o->lost; r; r = r->next)
		local_release(r);
}

static void reading_free(struct weft_ofi_reading *r)
{
	if (!r)
		return;
	free(r->aside);
	free(r->op);
	free(r);
}

void weft_net_ofi_rma_close(struct weft_ofi *o)
{
	for (int i = 0; o->peer && i < o->job.size; i++)
		reading_free(o->peer[i].reading);
	for (struct weft_ofi_reading *r; (r = o->lost);) {
		o->lost = r->next;
		reading_free(r);
	}
}

#endif
