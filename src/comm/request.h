/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request.h - what the core keeps in a request (weft_req, core_private): of a send, of a receive.
 *
 * Letters at fields: I at init; M holder of the gate's mask; P the poller of that connection; L the
 * lock named beside it; R the request's owner at that moment.
 */
#ifndef WEFT_COMM_REQUEST_H
#define WEFT_COMM_REQUEST_H

#include "comm/comm.h"
#include "comm/large/copy.h"
#include "comm/large/path_cost.h"
#include "comm/large/route.h"
#include "comm/match/keyed.h"
#include "comm/send/out.h"
#include "task/task.h"
#include "wait/single_waiter.h"

struct weft_core_req_send {
	struct weft_out out; /* M once queued */
	struct weft_gate *gate;
	/* References: the post itself, each piece that a driver kept, the peer's answer.  The last
	 * reference that is dropped completes the request. */
	_Atomic uint32_t x_refs;
	_Atomic int x_err; /* the first failure */
	uint32_t id;       /* M: as posted, of an RTS or with sync; 0: not posted */
	void *packed;      /* M: a typed eager message in one piece */
	uint64_t off;      /* M: data bytes posted so far */
	uint64_t want;     /* data bytes that the receiver wants */
	bool sync;
	bool cancel;        /* M: not posted yet, and not wanted any more */
	bool explicit_only; /* its large steps are for polls of the application */
	bool quiet;         /* PUSH: its end matters to threads that wait at the receiver only */
	uint8_t state;      /* enum weft_comm_large_state, from the RTS or the eager id on */
	uint8_t route;      /* enum weft_comm_route, the same */
	uint32_t sign;      /* see sign.h */
	struct weft_comm_large_to to;
	struct weft_comm_copy_left left;
} __attribute__((may_alias));

struct weft_core_req_recv {
	bool explicit_only;                   /* as with sends */
	bool rtr_sent;                        /* see rtr.h */
	uint8_t state;                        /* R: enum weft_comm_large_state, from the RTS on */
	uint8_t route;                        /* R: enum weft_comm_route, the same */
	struct weft_comm_path_cost_trip trip; /* R */
	struct weft_entry entry;
	struct weft_out out;              /* M once queued: CTS */
	struct weft_comm_large_from from; /* R */
	union {
		uint64_t want; /* R: bytes that will be delivered, once it is matched */
		uint64_t sign; /* R: before; see sign.h */
	};
	uint64_t got;                     /* R: those that have come in order */
	struct weft_gate *gate;
	union {
		struct weft_comm_copy_left left;
		struct weft_net_region *region; /* RDMA, ASKED: open, or NULL */
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

/* The end of a request with `then`, which was counted when it began. */
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
	else if (!weft_wait_completion_signal_own(&r->done) && !weft_wait_single_signal(&r->done))
		weft_wait_completion_signal(&r->done);
}

/* The same, from within the call that starts it: no thread can be waiting yet. */
static inline void weft_comm_req_complete_early(struct weft_req *r)
{
	if (r->then)
		weft_comm_req_then(r);
	else
		weft_wait_completion_init_done(&r->done);
}

/* The owner of an id on the wire: the peer, and the side of the message that it names. */
static inline int weft_comm_id_send(int peer)
{
	return peer * 2;
}

static inline int weft_comm_id_recv(int peer)
{
	return peer * 2 + 1;
}

#endif
