/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * region.h - memory that peers reach without a packet: what a driver's operations on it take.
 *
 *   owner    region_open: base[0..len), for one peer or for all; sends the ticket to them
 *   origin   transfer, atomic: ticket and offset name the bytes; flush: have they arrived?
 *   owner    region_close, when the origins have said that they are through, or are down
 *
 * Callers   all: any thread, several at once, also from an upcall.
 * Owner     the region's structure and its memory are the driver's until region_close.  The
 *           structure of an operation and its arrays are read during the call only; the memory
 *           that they name is the driver's until the answer DONE or sent().
 * Answers   as post().  DONE: over.  ACCEPTED: sent() tells, in any order, before down().  FULL:
 *           ready() tells when to try again.  DOWN: the peer is gone.  REFUSED: see Bounds.
 * Order     a packet posted behind a transfer that writes comes behind its bytes.  Reads, atomics
 *           and transfers among each other have no order.
 * End       of a read or an atomic: the bytes are here.  Of a write: the memory that it was
 *           written from is free; flush tells when the bytes are there.
 * Bounds    an origin reaches base[0..len) of an open region, in the ways it was opened for.  An
 *           access beyond answers REFUSED or fails by sent(), and may end the connection; no byte
 *           outside is touched.  An access to a region that is closed meanwhile: likewise.
 * Atomics   are atomic against atomics of the same driver from any peer, against the owner's CPU
 *           where the card says so.
 */
#ifndef WEFT_NET_REGION_H
#define WEFT_NET_REGION_H

#include <string.h>
#include <sys/uio.h>
#include "base/assert.h"
#include "base/base.h"

#define WEFT_NET_ANY_PEER (-1)

/* What a region is opened for; what a network can do. */
enum weft_net_access {
	WEFT_NET_READ = 1,
	WEFT_NET_WRITE = 2,
	WEFT_NET_ATOMIC = 4,
};

/* What an origin must know of a region; goes from process to process as it is. */
struct weft_net_ticket {
	uint64_t addr, len, key;
};
_Static_assert(sizeof(struct weft_net_ticket) == 24, "no holes on the wire");

/*
 * On a network that copies (its card): any memory of the peer, which no region_open named.  For
 * memory that a protocol keeps alive by itself; the peer's kernel would allow the access anyway.
 */
#define WEFT_NET_KEY_ANY 0u

struct weft_net_region {
	struct weft_net_ticket ticket;
	void *driver_private[3];
	void *rail; /* the bundle's: which of its networks has it open */
};

/* Bytes [at, at + len) of a region. */
struct weft_net_span {
	uint64_t at, len;
};

/* The bytes of the spans, in their order, and those of the pieces here, in theirs: as many. */
struct weft_net_transfer {
	bool write; /* else the region is read */
	unsigned n_spans, n_pieces;
	const struct weft_net_ticket *there;
	const struct weft_net_span *span;
	const struct iovec *piece;
	void *cookie;
};

enum weft_net_atomic_op {
	WEFT_NET_FETCH_ADD,
	WEFT_NET_SWAP,
	WEFT_NET_COMPARE_SWAP, /* operand is stored where compare was found */
};

struct weft_net_atomic {
	enum weft_net_atomic_op op;
	unsigned bytes; /* 1, 2, 4 or 8 */
	const struct weft_net_ticket *there;
	uint64_t at; /* with there->addr a multiple of bytes */
	uint64_t operand, compare;
	void *result; /* bytes long: what was there before */
	void *cookie;
};

/* ---- for drivers ----------------------------------------------------------------------------- */

static inline bool weft_net_span_fits(const struct weft_net_ticket *t, uint64_t at, uint64_t len)
{
	return at <= t->len && len <= t->len - at;
}

/* Do all spans lie in the region, and are there as many bytes on both sides? */
static inline bool weft_net_transfer_fits(const struct weft_net_transfer *t, size_t *bytes_p)
{
	uint64_t there = 0, here = 0;
	for (unsigned i = 0; i < t->n_spans; i++) {
		if (!weft_net_span_fits(t->there, t->span[i].at, t->span[i].len) ||
		    t->span[i].len > UINT64_MAX - there)
			return false;
		there += t->span[i].len;
	}
	for (unsigned i = 0; i < t->n_pieces; i++)
		here += t->piece[i].iov_len;
	*bytes_p = (size_t)here;
	return there == here;
}

static inline bool weft_net_atomic_fits(const struct weft_net_atomic *a)
{
	bool size = a->bytes == 1 || a->bytes == 2 || a->bytes == 4 || a->bytes == 8;
	return size && weft_net_span_fits(a->there, a->at, a->bytes) &&
	       (a->there->addr + a->at) % a->bytes == 0;
}

/* Walks spans and pieces together; zero is the start. */
struct weft_net_walk {
	unsigned span, piece;
	size_t in_span, in_piece; /* bytes of them that are behind us */
};

static inline bool weft_net_walk_begun(const struct weft_net_walk *w)
{
	return w->span || w->piece || w->in_span || w->in_piece;
}

/* The next bytes that are in one piece on both sides, `most` at most.  False: none are left. */
static inline bool weft_net_walk_next(struct weft_net_walk *w, const struct weft_net_transfer *t,
				      size_t most, uint64_t *at_p, char **data_p, size_t *len_p)
{
	while (w->span < t->n_spans && w->in_span == t->span[w->span].len) {
		w->span++;
		w->in_span = 0;
	}
	while (w->piece < t->n_pieces && w->in_piece == t->piece[w->piece].iov_len) {
		w->piece++;
		w->in_piece = 0;
	}
	if (w->span == t->n_spans || w->piece == t->n_pieces || !most)
		return false;
	size_t there = t->span[w->span].len - w->in_span;
	size_t here = t->piece[w->piece].iov_len - w->in_piece;
	weft_assert(there && here); /* what has none was stepped over */
	size_t len = there < here ? there : here;
	len = len < most ? len : most;
	*at_p = t->span[w->span].at + w->in_span;
	*data_p = (char *)t->piece[w->piece].iov_base + w->in_piece;
	*len_p = len;
	w->in_span += len;
	w->in_piece += len;
	return true;
}

/* The transfer by plain copies, for a region that is mapped at `base`. */
static inline void weft_net_transfer_mapped(const struct weft_net_transfer *t, char *base)
{
	struct weft_net_walk w = {0, 0, 0, 0};
	uint64_t at;
	char *data;
	size_t len;
	while (weft_net_walk_next(&w, t, SIZE_MAX, &at, &data, &len)) /* ends with the pieces */
		memcpy(t->write ? base + at : data, t->write ? data : base + at, len);
}

/* The same for an atomic: on the word at `word`. */
void weft_net_atomic_mapped(const struct weft_net_atomic *a, void *word);

#endif
