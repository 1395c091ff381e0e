/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core.h - one process's end of all its conversations: the drivers, one gate per peer, the
 * contexts, the matching table, the ids.
 *
 * A program has one core for its job and one for each set of processes that it has met since
 * (comm.c); tests make several in one process over a driver of their own.
 *
 * Callers   create, rail_add, gate_set, destroy: the starting thread.  poll, idle, drain: any.
 * Letters   as in request.h.
 */
#ifndef WEFT_COMM_CORE_H
#define WEFT_COMM_CORE_H

#include "comm/large/share_copy.h"
#include "comm/match/ctx.h"
#include "comm/match/ids.h"
#include "comm/match/table.h"
#include "comm/rail.h"
#include "comm/recv/packet_pool.h"
#include "comm/send/answer.h"
#include "comm/send/gate.h"
#include "comm/send/urge.h"

#define WEFT_POOL_CLASSES 3

struct weft_core {
	int rank, size;            /* I */
	struct weft_gate *gate;    /* I: one per peer */
	struct weft_comm_end *end; /* I: its place in the process, comm.c; NULL in tests */
	struct weft_match match;
	alignas(WEFT_CACHELINE) _Atomic uint64_t x_arrived; /* unexpected messages so far */
	struct weft_ids ids;
	struct weft_comm_packet_pool pool[WEFT_POOL_CLASSES];
	_Atomic(struct weft_msg *)
		x_msg_reserve; /* of the largest class, for when there is no memory */
	struct weft_answers answers;
	struct weft_spin ctx_lock;
	struct weft_ctx *ctx_all; /* L ctx_lock */
	_Atomic(struct weft_ctx_mid *) x_ctx_top[WEFT_CTX_TOP];
	const struct weft_out_ops *out_ops[WEFT_OUT_TYPES]; /* I */
	struct weft_rail rail[WEFT_RAILS_MAX];              /* I */
	int nrails;                                         /* I */
	_Atomic int x_gone, x_died; /* peers that left, and those of them that died */
	_Atomic uint32_t x_owed;    /* packets that wait in gates and pulls that run */
	/* I: ends all that depends on peer; for the thread that finds it gone, or that it breaks
	 * the protocol. */
	void (*peer_down)(struct weft_core *core, int peer, weft_err err, const char *why);
	/* Set before rails are opened. */
	void (*down_hook)(struct weft_core *core, int peer, weft_err err, const char *why);
	/* Set likewise; or NULL: does a layer above wait for something of peer? */
	bool (*awaits_hook)(struct weft_core *core, int peer);
	int (*poll)(void *arg);                             /* one round of progress */
	void (*wait)(void *arg, struct weft_completion *c); /* until c is done */
	void *hook_arg;
	struct weft_comm_urge urge;
	bool (*later)(void); /* or NULL: let a thread look in some ms, whatever happens */
	bool (*hold)(void);  /* or NULL: will a thread poll soon, and not at once? */
	bool (*spare)(void); /* or NULL: is a core idle and awake? */
	void (*wish)(void);  /* with spare, or NULL: an idle core would have been of use */
	const struct weft_strategy *strategy; /* I: for each gate; NULL: fifo */
	uint64_t credit;           /* I: what each peer may have under way to this process */
	size_t share_min;          /* I: from how many bytes on both sides copy, 0: never */
	_Atomic uint64_t x_shares; /* bits: slots in use */
	struct weft_share share[WEFT_NET_WORDS];
	bool rtr;        /* I: receives posted early tell their sender, set before gates are */
	size_t rtr_min;  /* I: receives longer than this may have to */
	bool offer;      /* I: offer buffers instead of fetching; for tests */
	bool background; /* I: large copies are tasks of the engine; else they run at once */
};

weft_err weft_comm_core_create(int rank, int size, struct weft_core **core_p) weft_must_use;
/* Opens one driver; rails are asked in the order they were added. */
weft_err weft_comm_core_rail_add(struct weft_core *core, const struct weft_driver *driver,
				 const struct weft_net_job *job) weft_must_use;
/* peer is reached over rail i. */
void weft_comm_core_gate_set(struct weft_core *core, int peer, int rail);
/* A trace, or a tool, begins or ends to listen: from now on messages go the ways that tell of them,
 * or the short ones again.  One thread at a time. */
void weft_comm_core_trace(struct weft_core *core);
int weft_comm_core_poll(struct weft_core *core);
/* In which order this gate's packets go; before it is used. */
void weft_comm_gate_strategy(struct weft_gate *g, struct weft_rail *rail,
			     const struct weft_strategy *s);
/* Nothing is owed to peers any more. */
bool weft_comm_core_idle(struct weft_core *core);
/* Takes one step of leaving; true: done.  Call with polling in between. */
bool weft_comm_core_drain(struct weft_core *core);
void weft_comm_core_destroy(struct weft_core *core);

#endif
