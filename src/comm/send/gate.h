/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gate.h - the way to one peer: a mask, packets that wait, credit, and what comes from there.
 *
 * Callers   _locked: holder of the mask.  Any thread takes it by try(), or leaves it a packet.
 * Order     what was done under the mask is visible to its next holder; see test_model_gate.
 * Letters   as in request.h.
 */
#ifndef WEFT_COMM_GATE_H
#define WEFT_COMM_GATE_H

#include "base/assert.h"
#include "comm/comm.h"
#include "comm/send/strategy.h"
#include "net/driver.h"
#include "wait/owner_lock.h"

struct weft_bucket;
struct weft_core;
struct weft_ctx;
struct weft_msg;
struct weft_out;
struct weft_pack;
struct weft_rx;
struct weft_comm_path_cost;
struct weft_wire;
struct weft_comm_rtr;
struct weft_comm_offload;

#define WEFT_GATE_FREE 0u
#define WEFT_GATE_HELD 1u
#define WEFT_GATE_SKIPPED 2u

#define WEFT_IOV_MAX 32

typedef enum weft_post weft_post_plain(struct weft_net *net, int peer, uint64_t w0, uint64_t w1,
				       const void *data, size_t len);

struct weft_gate {
	alignas(WEFT_CACHELINE) _Atomic uint32_t x_mask;
	uint32_t send_seq; /* M */
	/* The mask's owner, a thread that sends alone; see weft_comm_send_plain. */
	struct weft_owner_lock owner;
	_Atomic bool x_alone; /* M: the sender blocks in this send, so another may not follow */
	struct weft_out *out_head;            /* M: waiting, in order */
	struct weft_out **out_tail;           /* M */
	const struct weft_strategy *strategy; /* I */
	struct weft_out *data_head;           /* M: data kept apart by the strategy */
	struct weft_out **data_tail;          /* M */
	bool yielded;                         /* M: the post that answered FULL means: not now */
	_Atomic int x_data_under;             /* packets of data that the driver holds */
	struct weft_pack *pack;               /* I: where small messages come together, or NULL */
	struct weft_comm_rtr *rtr;            /* I: receives that are posted early, or NULL */
	_Atomic(struct weft_out *) x_in;      /* any thread pushes, newest first; M takes all */
	const struct weft_driver *driver;     /* I: NULL: self, or unreachable */
	struct weft_net *net;                 /* I */
	_Atomic bool x_down;                  /* P writes */
	_Atomic bool x_expected; /* a receive has waited for the peer since it rested last */
	size_t eager_max, inline_max, max_payload; /* I */
	size_t now_end; /* I: shorter messages are over with their post; 0: no driver */
	/* The driver's, or NULL: it has none, small messages come together first, or each is traced:
	 * changes when a tool begins or ends to listen.  Relaxed: either is right at any time. */
	_Atomic(weft_post_plain *) x_post_plain;
	struct weft_comm_offload *offload; /* I: an idle core may post its sends, or NULL */
	uint64_t spend_limit;              /* M: up to here x_credit_spent needs no closer look */
	/* Credit, in bytes of eager payload; see credit.h. */
	uint64_t credit;                 /* I: bytes that may be under way to the peer */
	_Atomic uint64_t x_credit_spent; /* M writes: all that was sent */
	_Atomic uint64_t x_returned;     /* M writes: all that was given back to the peer */

	alignas(WEFT_CACHELINE) struct weft_core *core; /* I */
	int peer;                                       /* I */
	_Atomic bool x_mute; /* an answer is lost for want of memory: the next ready() ends it */
	_Atomic bool x_get_failed;       /* get() does not work with this peer after all */
	_Atomic bool x_get_works;        /* it has, once */
	_Atomic unsigned x_share_misses; /* offers to share a copy that the peer did not take up */
	_Atomic unsigned x_sent_under;   /* large messages of the peer that are not whole here */
	_Atomic uint64_t
		x_large_came; /* cycles: when the last large message of the peer was matched */
	_Atomic(struct weft_comm_path_cost *)
		x_path_cost;           /* what it costs to get large messages from there */
	_Atomic uint64_t x_credit_got; /* P writes: what the peer ever gave back */
	_Atomic uint64_t x_used_late;  /* payload of unexpected messages that are gone */
	_Atomic bool x_credit_asked;   /* a packet that gives credit back is on its way */
	uint64_t credit_given;         /* I: how much of the peer's may be under way */
	struct weft_rx *rx;            /* P: made at the first place() */

	/* What each small message that comes needs, in a single cache line. */
	alignas(WEFT_CACHELINE) uint64_t recv_eager; /* P: eager payload that ever came */
	uint64_t recv_limit;           /* P: up to here it needs no closer look; see credit.h */
	_Atomic uint64_t x_used;       /* P writes: payload delivered as it came */
	uint64_t used_limit;           /* P: as recv_limit */
	struct weft_ctx *rx_ctx;       /* P: of the last message, */
	uint64_t rx_where;             /* P: its context and tag as they stand in the head, */
	uint64_t rx_key;               /* P: and where in the table they are */
	struct weft_bucket *rx_bucket; /* P: NULL: none so far */
	_Atomic uint32_t x_recv_seq;   /* P writes: envelopes that came */

	_Atomic(weft_post_plain *) x_join_plain; /* the driver's, or NULL, as x_post_plain */
};

/* ---- gate.c -------------------------------------------------------------------------------- */

extern const struct weft_out_ops weft_comm_gate_control_ops; /* packets that belong to no request */

void weft_comm_gate_init(struct weft_gate *g, struct weft_core *core, int peer);
/* Posts for threads that found the mask held; after the exchange of leave. */
void weft_comm_gate_leave_skipped(struct weft_gate *g);
/* Queues o; the caller provides for a kick of the gate. */
void weft_comm_gate_push(struct weft_gate *g, struct weft_out *o);
/* Queues o and provides for its post: now, by the mask's holder, or when the network is ready. */
void weft_comm_gate_submit(struct weft_gate *g, struct weft_out *o);
/* Posts what waits. */
void weft_comm_gate_kick(struct weft_gate *g);
/* Fails what waits; the gate is down. */
void weft_comm_gate_purge(struct weft_gate *g);
bool weft_comm_gate_empty(struct weft_gate *g);
/* Up to how many bytes messages go there without asking, at the start. */
void weft_comm_gate_eager_set(struct weft_gate *g, size_t bytes);
/* The peer breaks the protocol: closes the connection with it. */
void weft_comm_gate_protocol_error(struct weft_gate *g, const char *what);
/* A packet without payload that belongs to no request. */
void weft_comm_gate_control(struct weft_gate *g, const struct weft_wire *head);
void weft_comm_gate_fin(struct weft_gate *g, uint32_t id);
/* The same as weft_comm_gate_control; quiet: a peer that computes, where no thread waits, need not wake for it. */
void weft_comm_gate_control_as(struct weft_gate *g, const struct weft_wire *head, bool quiet);
void weft_comm_gate_fin_as(struct weft_gate *g, uint32_t id, bool quiet);

/* Can large messages be fetched from this peer's memory, as far as the driver knows by now? */
static inline bool weft_comm_gate_can_get(struct weft_gate *g)
{
	const struct weft_net_card *card = g->driver->card(g->net, g->peer);
	return card->copies && card->access & WEFT_NET_READ;
}

/* The same for writing into it. */
static inline bool weft_comm_gate_can_put(struct weft_gate *g)
{
	const struct weft_net_card *card = g->driver->card(g->net, g->peer);
	return card->copies && card->access & WEFT_NET_WRITE;
}

/* Does the network write into regions by itself? */
static inline bool weft_comm_gate_has_rdma(const struct weft_gate *g)
{
	const struct weft_net_card *card = g->driver->card(g->net, g->peer);
	return !card->copies && card->access & WEFT_NET_WRITE;
}

/* Copies between the pieces and the peer's memory from `there` on; only where can_get or can_put.
 * Any thread. */
weft_err weft_comm_gate_copy(struct weft_gate *g, bool write, uint64_t there,
			     const struct iovec *iov, unsigned n, size_t len) weft_must_use;

/* See weft_comm_gate_expect. */
void weft_comm_gate_expect_first(struct weft_gate *g);

/* A receive or a probe waits for the peer: it is noticed if the peer dies, though neither side has talked to the other. */
static inline void weft_comm_gate_expect(struct weft_gate *g)
{
	/* Relaxed: the driver counts it once. */
	if (weft_unlikely(!atomic_load_explicit(&g->x_expected, memory_order_relaxed)))
		weft_comm_gate_expect_first(g);
}

/* The longest message that goes to this peer without asking. */
static inline size_t weft_comm_gate_eager_max(const struct weft_gate *g)
{
	return g->eager_max;
}

static inline bool weft_comm_gate_down(struct weft_gate *g)
{
	/* SEE <- DOWN (peer_down).  seq_cst pairs with the scan for leftovers: either the scan sees
	 * what the caller posts, or the caller sees that the peer is gone. */
	return atomic_load_explicit(&g->x_down, memory_order_seq_cst);
}

/* Asserts what the gate promises, while no thread is in the core. */
void weft_comm_gate_check(struct weft_gate *g);

/* ---- a gate's mask ------------------------------------------------------------------------- */

/* For weft_assert_held: a thread is inside, as the mask's holder or as its owner. */
static inline bool weft_comm_gate_held(const struct weft_gate *g)
{
	/* Relaxed, both: asked by the thread that is inside. */
	return (atomic_load_explicit(&g->x_mask, memory_order_relaxed) & WEFT_GATE_HELD) ||
	       atomic_load_explicit(&g->owner.x_inside, memory_order_relaxed);
}

static inline bool weft_comm_gate_try(struct weft_gate *g)
{
	uint32_t want = WEFT_GATE_FREE;
	/* TAKE <- GIVE (leave).  Carries: the queue and the sequence number. */
	if (!atomic_compare_exchange_strong_explicit(&g->x_mask, &want, WEFT_GATE_HELD,
						     memory_order_acquire, memory_order_relaxed))
		return false;
	weft_wait_owner_taken(&g->owner);
	return true;
}

static inline void weft_comm_gate_leave(struct weft_gate *g)
{
	/* GIVE -> TAKE (try, kick).  Carries: the queue and the sequence number.
	 * Acquire: SEE <- SKIP (kick), what the skipper pushed. */
	uint32_t old = atomic_exchange_explicit(&g->x_mask, WEFT_GATE_FREE, memory_order_acq_rel);
	if (weft_unlikely(old & WEFT_GATE_SKIPPED))
		weft_comm_gate_leave_skipped(g);
}

/* Notes whether the sender waits in this send: a driver that expects a burst holds a message back
 * for the next only if the sender does not. */
static inline void weft_comm_gate_say_alone_locked(struct weft_gate *g, enum weft_send_mode mode)
{
	weft_assert_held(weft_comm_gate, g);
	/* Relaxed: a hint; see on_hold() in inbound.c. */
	atomic_store_explicit(&g->x_alone, mode != WEFT_SEND_AWAY, memory_order_relaxed);
}

#endif
