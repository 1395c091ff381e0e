/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comm.h - messages between processes: contexts, send, receive, probe, cancel.
 *
 * A core is one process's end of its conversations with a set of processes: those of its job (the
 * home core), or those of several jobs that have met.  Peers are that set, 0..size-1, numbered alike
 * in all of them.  A context is a communication space of its own (a
 * communicator has two); a message matches by (context, peer, tag) in the order it was sent.
 *
 * Callers   any thread; also task handlers, except where it says "may block".
 * Owner     the caller owns the request's memory and the buffer again once the request's completion
 *           is done; the core's last access is that completion.
 */
#ifndef WEFT_COMM_H
#define WEFT_COMM_H

#include <weft/comm.h> /* weft_comm_rank, weft_comm_size */
#include <sched.h>
#include "base/base.h"
#include "data/data.h"
#include "wait/completion.h"
#include "net/board.h"

#define WEFT_ANY_PEER (-1)
#define WEFT_ANY_TAG (-2147483647 - 1)

struct weft_core; /* see above */
struct weft_ctx;  /* a context, of one core */
struct weft_msg;  /* a message taken out of matching by improbe */

struct weft_status {
	int peer;
	int tag;
	weft_err err; /* WEFT_OK, _TRUNC, _PEER, _CANCELLED, ... */
	bool cancelled;
	size_t bytes; /* received, or sent */
};

struct weft_req {
	struct weft_completion done;
	struct weft_status status; /* valid once done */
	/*
	 * If set: called once when the operation is complete, in place of the completion's signal,
	 * by the thread that completes it (a progress thread, a waiter's poll, or the starting
	 * call itself).  It must be short, must not wait, may start operations and submit tasks, and may
	 * free the request.
	 */
	void (*then)(struct weft_req *req, void *arg);
	void *then_arg;
	/* The core's; see request.h. */
	struct weft_buf buf;
	void *core_private[23];
};

/* Prepares a request before each start.  then may be NULL. */
static inline void weft_comm_req_init(struct weft_req *req, void (*then)(struct weft_req *, void *),
				      void *arg)
{
	weft_wait_completion_init(&req->done);
	req->then = then;
	req->then_arg = arg;
}

enum weft_send_mode {
	WEFT_SEND_STANDARD,
	WEFT_SEND_SYNC,  /* completes only after it was matched */
	WEFT_SEND_READY, /* the receive is posted: the caller's word */
	WEFT_SEND_AWAY,  /* standard, and the caller has other things to do: see offload.h */
};

/* ---- life; called by rt/ ------------------------------------------------------------------ */
struct weft_boot_info;
/* Opens the drivers, publishes addresses, fences, learns the peers' addresses, adds sources. */
weft_err weft_comm_start(const struct weft_boot_info *boot) weft_must_use;
/* Completes what protocols owe to peers, leaves in order, closes.  May block. */
void weft_comm_stop(void);

/*
 * How the members of a core find each other: a space of texts.  put: under a key of this member;
 * fence: what was put before it on any member is there after it on all; get: WEFT_ERR_NOENT: none.
 */
struct weft_comm_meeting {
	int rank, size;
	const char *jobid;     /* a name that no other core of a member has */
	const uint8_t *secret; /* WEFT_SECRET_BYTES, the members' alone */
	bool stays; /* jobid and secret outlive the core, and need not be there before the first fence */
	bool spread; /* a hint: some members are on another host */
	void *arg;
	weft_err (*put)(void *arg, const char *key, const char *text);
	weft_err (*fence)(void *arg);
	weft_err (*get)(void *arg, int rank, const char *key, char *buf, size_t size);
	/* May be NULL.  Else fence waits for no member, and get waits for the text; try_get, for any thread,
	 * never waits and says WEFT_AGAIN until it has come; locals: which members the launcher has
	 * started on this node, ascending, 0: unknown. */
	weft_err (*try_get)(void *arg, int rank, const char *key, char *buf, size_t size);
	int (*locals)(void *arg, const int **ranks_p);
};
/*
 * A further core, for processes that have met: collective over them.  May block.  An error is this
 * member's alone: the caller tells the others.  jobid and secret are copied.
 */
weft_err weft_comm_join(const struct weft_comm_meeting *meeting,
			struct weft_core **core_p) weft_must_use;
/* As stop, for that core: no context of it is open any more.  May block. */
void weft_comm_leave(struct weft_core *core);

/* The core of this process's job; NULL before start and after stop. */
struct weft_core *weft_comm_home(void);
/* This process among core's peers, and how many these are. */
int weft_comm_core_rank(const struct weft_core *core);
int weft_comm_core_size(const struct weft_core *core);
/* The secret that core's members share; WEFT_SECRET_BYTES. */
const uint8_t *weft_comm_secret(const struct weft_core *core);

/* Is peer on this process's host (same boot id and same network, pid and user namespace)? */
bool weft_comm_same_host(const struct weft_core *core, int peer);
/* The name of the host that peer is on; empty: it has none that can stand in a file. */
const char *weft_comm_host(const struct weft_core *core, int peer);
/* The cores that peer may use, if it is on this host; else empty. */
void weft_comm_peer_cpus(const struct weft_core *core, int peer, cpu_set_t *set_p);
/* How many ranks of the job are on this host, this process included. */
int weft_comm_local_ranks(void);
/* Has some host more ranks than cores for them?  The same answer on every rank. */
bool weft_comm_crowded(const struct weft_core *core);

/* Is there a pair of ranks that shared memory does not connect?  The same answer on all ranks. */
bool weft_comm_apart(const struct weft_core *core);
/*
 * WEFT_COMM_BOARD_BYTES of memory that `peer` (perhaps this process) shows to each rank that is
 * connected to it on its host; zero at first, all may write.  NULL: there is none.  Stays until stop.
 */
void *weft_comm_board(struct weft_core *core, int peer);
#define WEFT_COMM_BOARD_BYTES WEFT_NET_BOARD_BYTES
/* May this process read the memory of peer, another process, as far as is known? */
bool weft_comm_can_read(struct weft_core *core, int peer);
/* Copies len bytes from `from` in peer's memory, in the calling thread. */
weft_err weft_comm_read(struct weft_core *core, int peer, uint64_t from, void *to,
			size_t len) weft_must_use;
/* Is peer known to be gone? */
bool weft_comm_lost(struct weft_core *core, int peer);
/* weft_trace_on() has changed: all cores follow. */
void weft_comm_trace_changed(void);
/* Called once per lost peer, from progress; set by mpi/ before start. */
void weft_comm_set_down_hook(void (*hook)(struct weft_core *core, int peer, weft_err err,
					  const char *why));
/* Likewise; asked from progress: does the layer wait for something of peer that is not in comm/? */
void weft_comm_set_awaits_hook(bool (*hook)(struct weft_core *core, int peer));

/* ---- contexts ----------------------------------------------------------------------------- */
/* Messages for an id that is not open yet wait for it.  id: agreed among the members; with the bit
 * WEFT_CTX_COUNTED its tags are numbers that count up (collectives, operations): the matching table
 * keeps them close together. */
#define WEFT_CTX_COUNTED 1u
weft_err weft_comm_ctx_open(struct weft_core *core, uint32_t id,
			    struct weft_ctx **ctx_p) weft_must_use;
/* The core that ctx belongs to. */
struct weft_core *weft_comm_ctx_core(const struct weft_ctx *ctx);
/* Hints: no wildcards will be used; order among equal tags does not matter. */
void weft_comm_ctx_hint(struct weft_ctx *ctx, bool no_any_peer, bool no_any_tag, bool overtaking);
/* For strategies that ask: data of a higher priority goes first; 0 at first. */
void weft_comm_ctx_priority(struct weft_ctx *ctx, int priority);
/* What ctx is called in lines to the user; `name` stays good until ctx is closed. */
void weft_comm_ctx_set_name(struct weft_ctx *ctx, const char *name);
/* Its number, the same on all members. */
uint32_t weft_comm_ctx_id(const struct weft_ctx *ctx);
/* That name, cut to size; "" without one.  Any thread, also while ctx is closed. */
#define WEFT_COMM_NAME 136 /* size of such a text: a name of MPI's, and some */
void weft_comm_ctx_name(struct weft_ctx *ctx, char *text, size_t size);
/*
 * Messages of ctx with that tag are heard instead of kept when no receive waits for them: by the poller, in
 * whose call `hear` runs (it may start operations, and may not wait).  Set once, of memory from malloc that is
 * ctx's from then on, also after it is closed; what is returned is ctx's, the caller's or an earlier one.
 */
struct weft_comm_ear {
	int tag;
	void (*hear)(struct weft_comm_ear *ear, struct weft_ctx *ctx, int peer, const void *data,
		     size_t len);
};
struct weft_comm_ear *weft_comm_ctx_set_ear(struct weft_ctx *ctx, struct weft_comm_ear *ear);
/* NULL: there is none. */
struct weft_comm_ear *weft_comm_ctx_ear(const struct weft_ctx *ctx);
/* Is that peer of ctx's core gone? */
bool weft_comm_ctx_peer_down(const struct weft_ctx *ctx, int peer);
/* Some tags. */
struct weft_comm_tags {
	bool (*has)(const struct weft_comm_tags *tags, int tag);
};
/* Receives with such tags that are posted in ctx end as cancelled, unexpected messages are dropped; NULL: all. */
void weft_comm_ctx_end(struct weft_ctx *ctx, const struct weft_comm_tags *tags);
/* Frees ctx, after such an end of all. */
void weft_comm_ctx_close(struct weft_ctx *ctx);

/* ---- messages ----------------------------------------------------------------------------- */
/*
 * Starts a send.  On WEFT_OK req will complete (perhaps it has already).  Any other result: req is
 * not used.  Never blocks.
 */
weft_err weft_comm_core_isend(struct weft_req *req, struct weft_ctx *ctx, int peer, int tag,
			      const struct weft_buf *buf, enum weft_send_mode mode) weft_must_use;
weft_err weft_comm_core_irecv(struct weft_req *req, struct weft_ctx *ctx, int peer, int tag,
			      const struct weft_buf *buf) weft_must_use;

/* The same for an exact peer and tag and a buffer without layout; prepares req itself. */
weft_err weft_comm_core_irecv_plain(struct weft_req *req, struct weft_ctx *ctx, int peer, int tag,
				    void *base, size_t bytes) weft_must_use;

/*
 * Sends now if that needs no request: WEFT_OK means the message is gone and buf is free again.
 * WEFT_AGAIN: use weft_comm_core_isend.  The fast path of blocking sends.
 */
weft_err weft_comm_send_now(struct weft_ctx *ctx, int peer, int tag,
			    const struct weft_buf *buf) weft_must_use;

/* The same for a peer of the job, an exact tag and a buffer without layout; may also say
 * WEFT_AGAIN when weft_comm_send_now would send. */
weft_err weft_comm_send_plain(struct weft_ctx *ctx, int peer, int tag, const void *base,
			      size_t bytes) weft_must_use;

/* Both for a caller that does not wait: WEFT_AGAIN also where WEFT_SEND_AWAY saves it the post. */
weft_err weft_comm_start_now(struct weft_ctx *ctx, int peer, int tag,
			     const struct weft_buf *buf) weft_must_use;
weft_err weft_comm_start_plain(struct weft_ctx *ctx, int peer, int tag, const void *base,
			       size_t bytes) weft_must_use;

/*
 * Takes back a send that has begun and is not over, to that peer with that tag in ctx.  It ends soon
 * whatever the peer's program does: as cancelled, or, if a receive has it already, as it would have.
 */
void weft_comm_send_cancel(struct weft_req *req, struct weft_ctx *ctx, int peer, int tag);
/* Cancels a receive that is not matched yet.  True: it completes as cancelled. */
bool weft_comm_recv_cancel(struct weft_req *req);

/* Looks, does not take.  Polls once when nothing is there.  True: *st holds peer, tag, bytes; or an error, as no message
 * of peer is there, and none can come any more. */
bool weft_comm_core_iprobe(struct weft_ctx *ctx, int peer, int tag, struct weft_status *st);
/* Takes the message out of matching; NULL with an error. */
bool weft_comm_core_improbe(struct weft_ctx *ctx, int peer, int tag, struct weft_msg **msg_p,
			    struct weft_status *st);
weft_err weft_comm_core_imrecv(struct weft_req *req, struct weft_msg *msg,
			       const struct weft_buf *buf) weft_must_use;
/* May block until a message that fits is there. */
void weft_comm_core_probe(struct weft_ctx *ctx, int peer, int tag, struct weft_status *st);
void weft_comm_core_mprobe(struct weft_ctx *ctx, int peer, int tag, struct weft_msg **msg_p,
			   struct weft_status *st);

static inline bool weft_comm_req_done(struct weft_req *req)
{
	return weft_wait_completion_done(&req->done);
}

/* Text for weft info: drivers, peers per driver. */
void weft_comm_describe(char *buf, size_t size);

#endif
