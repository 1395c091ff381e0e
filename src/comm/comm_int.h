/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comm_int.h - what the files of this folder share: the core, its gates, contexts and messages.
 *
 * A core is one process's end of all its conversations.  A program has one (comm.c); tests make
 * several in one process over a driver of their own.
 *
 *   core     the drivers, one gate per peer, the table of contexts, the matching table, the ids
 *   gate     the way to one peer (gate.h)
 *   ctx      a context: its posted wildcards and, once one was used, the order of arrival
 *   node     what hangs in the matching table; entry: a posted receive, in the request (keyed.h)
 *   msg      an unexpected message (msg.h)
 *
 * Letters at fields: I at init; M holder of the gate's mask; P the poller of that connection;
 * L the lock named beside it; R whoever owns the request at that moment.
 */
#ifndef WEFT_COMM_INT_H
#define WEFT_COMM_INT_H

#include <string.h>
#include "base/trace.h"
#include "base/copy.h"
#include "base/counters.h"
#include "base/log.h"
#include "comm/send/gate.h"
#include "comm/match/ids.h"
#include "comm/recv/msg.h"
#include "comm/match/phase.h"
#include "queue/mpsc.h"
#include "task/task.h"
#include "wait/sole.h"

/* ---- packets that wait -------------------------------------------------------------------- */

enum weft_out_type {
	WEFT_OUT_EAGER,
	WEFT_OUT_RTS,
	WEFT_OUT_DATA,
	WEFT_OUT_CTS,
	WEFT_OUT_CTRL, /* from the core's own memory, not part of a request */
};

struct weft_out {
	struct weft_out *next;
	struct weft_wire head;
	struct weft_wire_rts rts;
	uint8_t type;
	int16_t priority; /* DATA: its context's, when the send began */
};

/* ---- requests ----------------------------------------------------------------------------- */

struct weft_core_req_send {
	struct weft_out out; /* M once queued */
	struct weft_gate *gate;
	/* References: the post itself, each piece a driver kept, the peer's answer.  The last one
	 * that is dropped completes the request. */
	_Atomic uint32_t x_refs;
	_Atomic int x_err; /* the first failure */
	void *packed;      /* M: a typed eager message in one piece */
	uint64_t off;      /* M: data bytes posted so far; of an RTS, with learn: when it went */
	uint64_t want;     /* data bytes that the receiver wants */
	uint8_t sync;
	bool explicit_only; /* its large steps are for polls of the application */
	bool push;          /* left: to be written into the receiver's buffer */
	bool quiet;         /* as with receives: when it is written */
	bool rest;          /* a part has been sent that was claimed (share.c) */
	bool window; /* the receiver's: rts.addr and, once RTS is out, head.length: its ticket */
	struct weft_task_app_work left;
} __attribute__((may_alias));

struct weft_core_req_recv {
	bool explicit_only; /* as with sends */
	uint8_t share;      /* R: 1 + the slot in the core, 0: not shared */
	bool told;          /* the sender has heard of it; see rtr.h */
	bool open;          /* M: the sender may write into our buffer */
	bool quiet;         /* R: nobody but who waits needs our last answer */
	bool late;          /* R: the message was there before */
	struct weft_entry entry;
	struct weft_out out; /* M once queued: CTS */
	uint64_t want;       /* R bytes that will be delivered */
	uint64_t got;        /* P or the puller */
	struct weft_gate *gate;
	struct weft_comm_path_cost_trip trip; /* R */
	union {
		struct weft_task_app_work left;
		struct weft_net_window *window; /* open, from the CTS on */
	};
} __attribute__((may_alias));

#define WEFT_REQ_ROOM sizeof(((struct weft_req *)0)->core_private)
static_assert(sizeof(struct weft_core_req_send) <= WEFT_REQ_ROOM, "grow core_private");
static_assert(sizeof(struct weft_core_req_recv) <= WEFT_REQ_ROOM, "grow core_private");

static inline struct weft_core_req_send *weft_comm_req_send(struct weft_req *r)
{
	return (struct weft_core_req_send *)(void *)r->core_private;
}

static inline struct weft_core_req_recv *weft_comm_req_recv(struct weft_req *r)
{
	return (struct weft_core_req_recv *)(void *)r->core_private;
}

static inline struct weft_entry *weft_comm_entry_of(struct weft_keyed *n)
{
	return weft_container_of(n, struct weft_entry, node);
}

static inline struct weft_req *weft_comm_req_of_entry(struct weft_entry *e)
{
	return (struct weft_req *)((char *)e - offsetof(struct weft_req, core_private) -
				   offsetof(struct weft_core_req_recv, entry));
}

static inline struct weft_req *weft_comm_req_of_send_out(struct weft_out *o)
{
	return (struct weft_req *)((char *)o - offsetof(struct weft_req, core_private) -
				   offsetof(struct weft_core_req_send, out));
}

static inline struct weft_req *weft_comm_req_of_recv_out(struct weft_out *o)
{
	return (struct weft_req *)((char *)o - offsetof(struct weft_req, core_private) -
				   offsetof(struct weft_core_req_recv, out));
}

/* The end of one with `then`, which was counted when it began. */
static inline void weft_comm_req_then(struct weft_req *r)
{
	weft_task_engine_want(-1);
	r->then(r, r->then_arg);
}

/* The request is over; its memory is the caller's again.  No lock or mask may be held. */
static inline void weft_comm_req_complete(struct weft_req *r)
{
	if (r->then)
		weft_comm_req_then(r);
	else if (!weft_wait_completion_signal_own(&r->done) &&
		 !weft_wait_sole_signal(&r->done, weft_wait_solo_self))
		weft_wait_completion_signal(&r->done);
}

/* The same, from within the call that starts it: nobody can be waiting yet. */
static inline void weft_comm_req_complete_early(struct weft_req *r)
{
	if (r->then)
		weft_comm_req_then(r);
	else
		weft_wait_completion_init_done(&r->done);
}

/* ---- answers ------------------------------------------------------------------------------- */

#define WEFT_POOL_CLASSES 3

/* Answers that belong to no request and could not go at once; some are kept ready, so that a gate
 * that is full needs no memory for the next few. */
#define WEFT_ANSWERS_KEPT 64

struct weft_answers {
	alignas(WEFT_CACHELINE) struct weft_spin lock;
	struct weft_out *free; /* L */
	unsigned kept;         /* L */
	bool no_more;          /* I: malloc has nothing; for tests */
};

/* ---- contexts ----------------------------------------------------------------------------- */

struct weft_probe_waiter {
	struct weft_probe_waiter *next; /* L context */
	int peer, tag;
	bool failed; /* before the signal: a peer it might have waited for died */
	struct weft_completion arrived;
};

enum weft_hint {
	WEFT_HINT_NO_ANY_PEER = 1,
	WEFT_HINT_NO_ANY_TAG = 2,
	WEFT_HINT_OVERTAKING = 4,
};

struct weft_ctx {
	/* Read on every message, written when wildcards come and go. */
	struct weft_core *core;   /* I */
	uint32_t id;              /* I */
	uint32_t base;            /* I: where its keys begin in the table */
	_Atomic uint32_t x_wild;  /* wildcards and probes that wait; raised before the walk */
	_Atomic uint64_t x_epoch; /* L: wildcards ever posted; read without */
	struct weft_phase phase;  /* are unexpected messages in lists? see phase.h */
	_Atomic bool x_open;
	_Atomic uint8_t x_hints;    /* enum weft_hint */
	_Atomic int16_t x_priority; /* of its data, for strategies that ask */
	struct weft_ctx *next_all;  /* I: every record, newest first */
	_Atomic uint64_t x_rows;    /* with x_columns: the pages it may be in, */
	_Atomic uint64_t x_columns; /* see weft_comm_bucket_mark() */

	alignas(WEFT_CACHELINE) struct weft_spin lock;
	_Atomic uint32_t x_unexpected;            /* L: messages in lists; a probe's hint */
	uint32_t not_by_peer, not_by_tag;         /* L: of them, without that index */
	uint32_t wild_posted[3];                  /* L: by enum wild, match.c */
	struct weft_entry *wild_head, *wild_tail; /* L: posted wildcards */
	struct weft_msg *all_head, *all_tail;     /* L: messages in lists */
	struct weft_probe_waiter *probes;         /* L */
};

#define WEFT_CTX_TOP 2048u
#define WEFT_CTX_MID 2048u
#define WEFT_CTX_LEAF 1024u

struct weft_ctx_leaf {
	_Atomic(struct weft_ctx *) x_ctx[WEFT_CTX_LEAF];
};
struct weft_ctx_mid {
	_Atomic(struct weft_ctx_leaf *) x_leaf[WEFT_CTX_MID];
};

/* ---- the core ----------------------------------------------------------------------------- */

#define WEFT_RAILS_MAX 4

struct weft_rail {
	struct weft_core *core;           /* I */
	const struct weft_driver *driver; /* I */
	struct weft_net *net;             /* I */
	int peers;                        /* I: how many use it */
	struct weft_net_events events;    /* I: the driver keeps the address */
	bool drained;
	bool packs;               /* I: a gate of it has a pack; see pack.h */
	_Atomic bool x_armed;     /* packs: the poller sleeps, or is about to */
	_Atomic uint64_t x_round; /* packs: polls so far */
	struct weft_mpsc held;    /* packs that were held back */
};

struct weft_core {
	int rank, size;         /* I */
	struct weft_gate *gate; /* I: one per peer */
	struct weft_match match;
	alignas(WEFT_CACHELINE) _Atomic uint64_t x_arrived; /* unexpected messages so far */
	struct weft_ids ids;
	struct weft_comm_packet_pool pool[WEFT_POOL_CLASSES];
	struct weft_answers answers;
	struct weft_spin ctx_lock;
	struct weft_ctx *ctx_all; /* L ctx_lock */
	_Atomic(struct weft_ctx_mid *) x_ctx_top[WEFT_CTX_TOP];
	struct weft_comm_eager_threshold *learn_all; /* I */
	struct weft_rail rail[WEFT_RAILS_MAX];       /* I */
	int nrails;                                  /* I */
	_Atomic int x_gone, x_died; /* peers that left, and those of them that died */
	_Atomic uint32_t x_owed;    /* packets that wait in gates and pulls that run */
	/* Set before rails are opened. */
	void (*down_hook)(int peer, weft_err err, const char *why);
	int (*poll)(void *arg);                             /* one round of progress */
	void (*wait)(void *arg, struct weft_completion *c); /* until c is done */
	void *hook_arg;
	bool (*hold)(void);  /* or NULL: will somebody poll soon, and not at once? */
	bool (*spare)(void); /* or NULL: is a core idle and awake? */
	void (*wish)(void);  /* with spare, or NULL: one would have been of use */
	const struct weft_strategy *strategy; /* I: for each gate; NULL: fifo */
	uint64_t credit;                      /* I: what each peer may have under way to us */
	size_t share_min;          /* I: from how many bytes on both sides copy, 0: never */
	_Atomic uint64_t x_shares; /* bits: slots in use */
	struct weft_share share[WEFT_NET_WORDS];
	bool rtr;         /* I: receives posted early tell their sender, set before gates are */
	size_t early_min; /* I: receives longer than this may have to */
	bool offer;       /* I: offer buffers instead of fetching; for tests */
	bool background;  /* I: large copies are tasks of the engine; else they run at once */
};

/* core.c */
weft_err weft_comm_core_create(int rank, int size, struct weft_core **core_p) weft_must_use;
/* Opens one driver; rails are asked in the order they were added. */
weft_err weft_comm_core_rail_add(struct weft_core *core, const struct weft_driver *driver,
				 const struct weft_net_job *job) weft_must_use;
/* peer is reached over rail i. */
void weft_comm_core_gate_set(struct weft_core *core, int peer, int rail);
int weft_comm_core_poll(struct weft_core *core);
/* One look at one of them, and what is held back for it goes. */
int weft_comm_rail_poll(struct weft_rail *rail);
/* Its switch point from eager to rendezvous is measured from now on, together with that of `like`
 * if that is given and has one; where it is fixed by the network, nothing happens. */
void weft_comm_gate_learn(struct weft_gate *g, const struct weft_gate *like);
/* Up to how many bytes messages go there without asking, at the start. */
void weft_comm_gate_eager_set(struct weft_gate *g, size_t bytes);
/* In which order this gate's packets go; before it is used. */
void weft_comm_gate_strategy(struct weft_gate *g, struct weft_rail *rail,
			     const struct weft_strategy *s);
/* Nothing is owed to peers any more. */
bool weft_comm_core_idle(struct weft_core *core);
/* Takes one step of leaving; true: done.  Call with polling in between. */
bool weft_comm_core_drain(struct weft_core *core);
void weft_comm_core_destroy(struct weft_core *core);

/* describe.c */
/* What its drivers are and did, a line each, cut off at size. */
void weft_comm_core_describe(const struct weft_core *core, char *buf, size_t size);

/* ctx.c */
weft_err weft_comm_core_ctx_open(struct weft_core *core, uint32_t id, struct weft_ctx **ctx_p);
/* The record for id, made on demand; NULL: no memory. */
struct weft_ctx *weft_comm_ctx_find(struct weft_core *core, uint32_t id);
void weft_comm_ctx_fini_all(struct weft_core *core);

/* msg_pool.c */
struct weft_msg *weft_comm_msg_alloc(struct weft_core *core, size_t payload);
void weft_comm_msg_free(struct weft_msg *m);
weft_err weft_comm_msg_pool_init(struct weft_core *core) weft_must_use;
void weft_comm_msg_pool_fini(struct weft_core *core);
struct weft_out *weft_comm_answer_alloc(struct weft_core *core);
void weft_comm_answer_free(struct weft_core *core, struct weft_out *o);

/* match.c */
weft_err weft_comm_match_init(struct weft_match *m);
void weft_comm_match_fini(struct weft_match *m);
/* Posts e unless a message is there already: that one is taken out and returned in *msg_p.
 * WEFT_ERR_PEER: the peer is gone and left no message. */
weft_err weft_comm_match_post(struct weft_entry *e, struct weft_msg **msg_p);
/* The receive that a message from peer with tag belongs to, taken out; NULL: none so far. */
struct weft_entry *weft_comm_match_arrive(struct weft_ctx *ctx, int peer, int tag);
/* The same, and if there is none, m goes in. */
struct weft_entry *weft_comm_match_arrive_unexpected(struct weft_ctx *ctx, struct weft_msg *m);
/* Takes a posted receive back; false: it was matched. */
bool weft_comm_match_cancel(struct weft_entry *e);
/* The oldest unexpected message that fits, or NULL; with take it is taken out.  If w is given and
 * nothing fits, w is told of the next arrival that does. */
struct weft_msg *weft_comm_match_probe(struct weft_ctx *ctx, int peer, int tag, bool take,
				       struct weft_status *st, struct weft_probe_waiter *w);
void weft_comm_match_wake_probes(struct weft_ctx *ctx, int peer, bool failed);

/* withdraw.c */
/* Takes out every posted receive that depends on peer (any context), or that is in ctx (peer
 * ignored); returns them linked by node.next. */
struct weft_keyed *weft_comm_match_withdraw_peer(struct weft_core *core, int peer, bool any_too);
struct weft_keyed *weft_comm_match_withdraw_ctx(struct weft_ctx *ctx);
struct weft_msg *weft_comm_match_withdraw_msgs(struct weft_ctx *ctx);

/* send.c */
void weft_comm_send_drop(struct weft_req *r, weft_err err);
void weft_comm_send_choose_locked(struct weft_gate *g, struct weft_out *o);
enum weft_post weft_comm_send_post_locked(struct weft_gate *g, struct weft_out *o);

/* recv.c */
void weft_comm_recv_deliver_rare(struct weft_req *r, int peer, int tag, const void *data,
				 size_t len);
void weft_comm_recv_message(struct weft_req *r, struct weft_msg *m);
void weft_comm_recv_finish(struct weft_req *r, weft_err err);
void weft_comm_buf_copy(const struct weft_buf *to, const struct weft_buf *from, size_t len);

/* trace.c: out of line, only where a trace is written */
__attribute__((cold)) void weft_comm_trace_envelope(enum weft_trace_kind kind,
						    const struct weft_gate *g,
						    const struct weft_wire *h, bool packed);
/* A message of this rank to itself. */
__attribute__((cold)) void weft_comm_trace_self(struct weft_core *core, int tag, uint64_t bytes);
__attribute__((cold)) void weft_comm_trace_end(enum weft_trace_kind kind, int peer, int tag,
					       uint64_t bytes);
void weft_comm_trace_events(struct weft_net_events *e);

/* rndv.c */
/* r has matched a message whose data the peer keeps; late: the message was there before r. */
void weft_comm_rndv_start(struct weft_req *r, struct weft_gate *g, int tag, uint64_t length,
			  uint32_t id, uint64_t addr, bool quiet, bool late);
void weft_comm_rndv_go_on(struct weft_req *r); /* after it was left to the application */
void weft_comm_rndv_cts_go_on(struct weft_req *r, bool push);
/* Copies one piece; true: the request is over (do not touch it any more). */
bool weft_comm_pull_step(struct weft_req *r);
/* Fetches at most `most` bytes from data byte `off` on; stores how many. */
weft_err weft_comm_pull_piece(struct weft_req *r, uint64_t off, size_t most, size_t *len_p);
/* Do so many pieces of so many bytes in all go through a packed buffer when the kernel copies? */
bool weft_comm_pieces_small(size_t held, unsigned n);
/* The same for a send whose receiver has offered its buffer. */
bool weft_comm_push_step(struct weft_req *r);
/* Instead of fetching: asks the sender to write into our buffer.  False: not possible. */
bool weft_comm_rndv_offer(struct weft_req *r);
bool weft_comm_rndv_cookie_is_data(void *cookie);
void *weft_comm_rndv_cookie_open(void *cookie); /* the request of a driver's sent() */
enum weft_post weft_comm_rndv_post_locked(struct weft_gate *g, struct weft_out *o);
void weft_comm_rndv_cts(struct weft_gate *g, const struct weft_wire *h, const void *payload,
			size_t len);
void weft_comm_rndv_fin(struct weft_gate *g, const struct weft_wire *h);
void weft_comm_rndv_data(struct weft_gate *g, const struct weft_wire *h, const void *data,
			 size_t len);

/* share.c: a large message copied by both sides */
/* Offers to share r's copy, if that is possible and worth it.  True: the sender sends it all. */
bool weft_comm_share_begin(struct weft_req *r);
/* Is the sender still busy with what it sends before r?  Then r need not be fetched yet. */
bool weft_comm_share_waits(struct weft_req *r);
/* Between two pieces of a fetch that is not shared: does it pay by now?  Then it is from now on. */
void weft_comm_share_late(struct weft_req *r);
bool weft_comm_share_pull_step(struct weft_req *r); /* as weft_comm_pull_step */
void weft_comm_share_report(struct weft_gate *g, const struct weft_wire *h);
/* DATA of a shared message: does it belong there?  Its bytes are there. */
bool weft_comm_share_expects(struct weft_req *r, uint64_t off, size_t len);
void weft_comm_share_came(struct weft_req *r, uint64_t off, size_t len);
/* The peer is gone, and r's id with it.  True: r is shared, and ends by itself. */
bool weft_comm_share_abandon(struct weft_req *r);
void weft_comm_share_help(struct weft_gate *g, const struct weft_wire *h, const void *payload,
			  size_t len);

/* inbound.c; rx_stream.c: the two of rx */
struct weft_net_events weft_comm_rail_events(struct weft_rail *rail);
void weft_comm_rx_abandon(struct weft_gate *g);
void weft_comm_rx_free(struct weft_gate *g);
void weft_comm_gate_protocol_error(struct weft_gate *g, const char *what);

/* rdma_write.c.  wanted: should this receive open its buffer?  open: for a CTS with that flag, which is
 * taken off it when that fails; bytes: what a CTS carries, the front of a ticket.  write: the next
 * piece, *len_p: its length; placed: what goes behind the last one. */
bool weft_comm_rdma_write_wanted(struct weft_req *r);
void weft_comm_rdma_write_open(struct weft_req *r, struct weft_wire *cts,
			       struct weft_net_ticket *where_p);
void weft_comm_rdma_write_close(struct weft_req *r);
size_t weft_comm_rdma_write_bytes(const struct weft_wire *cts);
enum weft_post weft_comm_rdma_write_write_locked(struct weft_gate *g, struct weft_req *r,
						 size_t *len_p);
enum weft_post weft_comm_rdma_write_placed_locked(struct weft_gate *g, struct weft_req *r);
/* A receive that had asked is over; closes its window. */
void weft_comm_rndv_recv_over(struct weft_req *r, weft_err err);

/* copy.c */
/* Has the copying done for r by pull or push steps: small ones on the spot. */
void weft_comm_copy_start(struct weft_core *core, struct weft_req *r, bool push, bool small);
/* Was r's step left to the application's own polls?  Called before the step that a CTS (push: an
 * offer) or a matched RTS asks for. */
bool weft_comm_copy_leave_send(struct weft_req *r, bool push);
bool weft_comm_copy_leave_recv(struct weft_req *r);

/* dead.c */
void weft_comm_core_peer_down(struct weft_core *core, int peer, weft_err err, const char *why);

/* Whom an id belongs to: the peer, and the side of the message that it names. */
static inline int weft_comm_id_send(int peer)
{
	return peer * 2;
}
static inline int weft_comm_id_recv(int peer)
{
	return peer * 2 + 1;
}

/* ---- delivering ----------------------------------------------------------------------------- */

/* The data of r has come, all of it; r is over. */
static inline __attribute__((always_inline)) void
weft_comm_recv_deliver(struct weft_req *r, int peer, int tag, const void *data, size_t len)
{
	if (weft_unlikely(r->buf.type != NULL || len > r->buf.bytes)) {
		weft_comm_recv_deliver_rare(r, peer, tag, data, len);
		return;
	}
	/* err and cancelled are what irecv has set. */
	r->status.peer = peer;
	r->status.tag = tag;
	r->status.bytes = len;
	weft_copy_bytes(r->buf.base, data, len);
	weft_comm_req_complete(r);
}

#endif
