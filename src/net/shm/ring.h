/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring.h - packets from one sender to one receiver through memory that both can write.
 *
 * Slots of one cache line, each with its own sequence number, head and up to 32 payload bytes; and
 * beside them two rings of data lines for longer payloads, each payload contiguous.  A small packet
 * is one line written and one line read.  Payload never lies where a sequence number is looked for,
 * so stale bytes can never look like a packet.  Both sides derive a payload's place from the
 * lengths so far, so the memory holds no index that a peer could forge; a length is read once and
 * checked.
 *
 * Packets of at most 8 bytes that follow each other with the same head but for its number lie up to
 * four in a slot: the sender adds to the slot that it published last, and counts them in its word.
 * Nothing is held back for that.  The receiver stays with a slot that may grow until the next one
 * is there; then it has grown for the last time.
 *
 * Few lines that are written again and again go from core to core much quicker than many in turn.
 * So a sender that knows that the receiver has everything begins again at the first slot and the
 * first data line, and says so in the word.  It knows from the packets of the ring the other way,
 * each of which says how far its sender was with receiving; traffic in both directions stays on a
 * few lines, a stream goes round.  The receiver looks at the next slot and at the first one.
 *
 * For the same reason there are two rings of data lines: a narrow one, which fits into the first
 * cache of either core, and a wide one for what the narrow one has no room for; the word says
 * which.  A stream whose receiver keeps up stays on the narrow one.
 *
 * Callers   tx functions: one thread at a time.  rx functions: one thread at a time.  Both beside
 *           each other, in one or two processes.
 * Owner     a received payload stays in the ring until weft_net_ring_consume().
 * Order     what the sender wrote before publish() is visible to the receiver that sees the packet.
 * Full      room() says no.  News is there when weft_net_ring_word() has changed; a sender that goes to
 *           sleep says so with wait(), looks once more, and is told (see consume).
 * Progress  wait-free on both sides.
 * Checked   test/net/test_model_ring.c, each order that carries with a mutant;
 *           test_ring.c, two threads.
 *
 * The receiver tells how far it is once per quarter of either ring, in one word.  A sender
 * that found no room had more than half of the slots or of the wide ring outstanding (a packet
 * needs at most a quarter, and wastes less than another one at the end of the ring), so the
 * receiver tells at least once more before it has emptied that: no sender waits for news that never
 * comes.
 */
#ifndef WEFT_RING_H
#define WEFT_RING_H

#include <string.h>
#include <sys/uio.h>
#include "base/assert.h"
#include "base/base.h"
#include "net/driver.h"
#include "net/shm/ring_word.h"

#define WEFT_RING_INLINE 32
/* Packets that share a slot: the bytes of each at most, their number, from head to head. */
#define WEFT_RING_CELL WEFT_NET_RUN_BYTES
#define WEFT_RING_CELLS 4 /* at most WEFT_NET_RUN_MAX */
#define WEFT_RING_STEP WEFT_NET_RUN_STEP

/* Once in so many slots a sender goes round without beginning again, see weft_net_ring_begin. */
#define WEFT_RING_SWEEP (1u << 18)
#define WEFT_RING_SLOTS_MAX 1024u
#define WEFT_RING_DATA_MAX (1u << 24) /* so that make_seen() tells it apart from twice as much */

struct weft_ring_slot {
	/* sender: slot number + 1, how far it has received, payload bytes or BYE, begun again,
	 * packets beyond the first; see ring_word.h */
	_Atomic uint64_t x_word;
	uint8_t head[WEFT_NET_HEAD];
	uint8_t data[WEFT_RING_INLINE];
};
_Static_assert(sizeof(struct weft_ring_slot) == WEFT_CACHELINE, "a slot is a cache line");

struct weft_ring_control {
	alignas(WEFT_CACHELINE) _Atomic uint64_t x_seen; /* receiver: weft_net_ring_make_seen() */
	alignas(WEFT_CACHELINE) _Atomic uint32_t x_waiting; /* sender sets, receiver clears */
};

/* The sizes, powers of two; narrow may be 0. */
struct weft_ring_shape {
	uint32_t slots;
	uint32_t data, narrow; /* bytes of the wide ring and of the narrow one */
};

enum { WEFT_RING_NARROW, WEFT_RING_WIDE, WEFT_RING_LANES };

/* A ring of data lines; positions in bytes, which run freely. */
struct weft_ring_lane_tx {
	uint8_t *data;
	uint32_t size;
	uint32_t put;  /* where the next payload goes */
	uint32_t base; /* the same when we last began again */
	uint32_t seen; /* the receiver's, as we know it */
};

struct weft_ring_lane_rx {
	uint8_t *data;
	uint32_t size, quarter;
	uint32_t take;
	uint32_t base; /* where the sender last began again */
	uint32_t told; /* as last published */
};

/* How far a receiver is, for the sender of the ring the other way. */
struct weft_ring_back {
	_Atomic uint64_t x_at;   /* CELLS for each slot left, and packets taken of this one */
	_Atomic uint64_t x_word; /* of the last packet */
};

struct weft_ring_tx {
	struct weft_ring_control *control;
	const struct weft_ring_back *back;
	struct weft_ring_slot *slot;
	uint32_t slot_mask;
	uint32_t put;         /* next slot; runs freely */
	uint32_t base;        /* the same when we last began again */
	uint32_t seen;        /* the receiver's, as we know it */
	uint32_t all;         /* the receiver's x_at, when it has everything */
	uint32_t stale;       /* words of the other ring up to this number are too old */
	uint64_t known;       /* the receiver's word, as last read */
	uint64_t next_w0, w1; /* what may be added to the last slot */
	uint32_t each;        /* its length, or NONE: the slot does not grow */
	uint32_t more;        /* packets added */
	uint64_t again;       /* AGAIN, if that slot began again */
	struct weft_ring_lane_tx lane[WEFT_RING_LANES];
};

#define WEFT_RING_NONE UINT32_MAX

struct weft_ring_rx {
	struct weft_ring_control *control;
	struct weft_ring_slot *slot;
	uint32_t slot_mask, max_payload;
	uint32_t base; /* where the sender last began again */
	uint32_t told; /* as last published */
	uint32_t quarter;
	struct weft_ring_back back;
	struct weft_ring_lane_rx lane[WEFT_RING_LANES];
};

static inline uint64_t weft_net_ring_at(const struct weft_ring_rx *rx)
{
	/* Relaxed: we are the only writer. */
	return atomic_load_explicit(&rx->back.x_at, memory_order_relaxed);
}

/* The slot that we are at. */
static inline uint32_t weft_net_ring_taking(uint64_t at)
{
	return (uint32_t)(at / WEFT_RING_CELLS);
}

/* Packets of it that we have; not 0: it may grow. */
static inline uint32_t weft_net_ring_part(uint64_t at)
{
	return (uint32_t)(at % WEFT_RING_CELLS);
}

static inline void weft_net_ring_go(struct weft_ring_rx *rx, uint64_t at)
{
	/* HAVE -> CARRY (weft_net_ring_carried).  Carries: our reads of the packets are over. */
	atomic_store_explicit(&rx->back.x_at, at, memory_order_release);
}

static inline bool weft_net_ring_shape_ok(struct weft_ring_shape s, size_t max_payload)
{
	return max_payload < WEFT_RING_BYE && s.slots >= 16 && s.slots <= WEFT_RING_SLOTS_MAX &&
	       !(s.slots & (s.slots - 1)) && s.data >= 4 * max_payload &&
	       s.data <= WEFT_RING_DATA_MAX && !(s.data & (s.data - 1)) && s.narrow <= s.data &&
	       !(s.narrow & (s.narrow - 1)) && s.narrow % WEFT_CACHELINE == 0;
}

static inline size_t weft_net_ring_bytes(struct weft_ring_shape s)
{
	return sizeof(struct weft_ring_control) + s.slots * sizeof(struct weft_ring_slot) + s.data +
	       s.narrow;
}

/* The memory must be zero when the receiver attaches; max_payload bounds what it accepts.  back: of
 * the ring that comes from there, or NULL. */
void weft_net_ring_tx_attach(struct weft_ring_tx *tx, void *memory, struct weft_ring_shape shape,
			     const struct weft_ring_back *back);
void weft_net_ring_rx_attach(struct weft_ring_rx *rx, void *memory, struct weft_ring_shape shape,
			     uint32_t max_payload);

/* Bytes of a ring of data lines that a payload takes at position pos, its unused end included. */
static inline uint32_t weft_net_ring_take_size(uint32_t size, uint32_t pos, uint32_t len,
					       uint32_t *skip_p)
{
	uint32_t need = (uint32_t)weft_align_up(len, WEFT_CACHELINE);
	uint32_t left = size - (pos & (size - 1));
	*skip_p = need > left ? left : 0;
	return need + *skip_p;
}

#endif
