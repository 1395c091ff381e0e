/* SPDX-License-Identifier: BSD-3-Clause */
/* probe.c - MPI's probes: unexpected messages are found, and taken out. */
#include "comm/core.h"
#include "comm/match/match_probe.h"

static struct weft_msg *find_now(struct weft_ctx *ctx, int peer, int tag, bool take,
				 struct weft_status *st)
{
	return weft_comm_match_probe(ctx, peer, tag, take, st, NULL);
}

/* Could no message from peer come any more? */
static bool peer_is_gone(struct weft_ctx *ctx, int peer)
{
	if (peer == WEFT_ANY_PEER)
		return false;
	weft_comm_gate_expect(&ctx->core->gate[peer]);
	return weft_comm_gate_down(&ctx->core->gate[peer]);
}

static void say_gone(struct weft_status *st, int peer, int tag)
{
	*st = (struct weft_status){.peer = peer, .tag = tag, .err = WEFT_ERR_PEER};
}

/* NULL with st->err set: none can come any more. */
static struct weft_msg *find_or_poll(struct weft_ctx *ctx, int peer, int tag, bool take,
				     struct weft_status *st)
{
	struct weft_core *core = ctx->core;
	struct weft_msg *m = find_now(ctx, peer, tag, take, st);
	st->err = WEFT_OK;
	if (m || !core->poll)
		return m;
	(void)core->poll(core->hook_arg);
	/* Before the last look: what it sent while it lived is there by then. */
	bool last = peer_is_gone(ctx, peer);
	m = find_now(ctx, peer, tag, take, st);
	st->err = WEFT_OK;
	if (!m && last)
		say_gone(st, peer, tag);
	return m;
}

bool weft_comm_core_iprobe(struct weft_ctx *ctx, int peer, int tag, struct weft_status *st)
{
	return find_or_poll(ctx, peer, tag, false, st) != NULL || st->err;
}

bool weft_comm_core_improbe(struct weft_ctx *ctx, int peer, int tag, struct weft_msg **msg_p,
			    struct weft_status *st)
{
	*msg_p = find_or_poll(ctx, peer, tag, true, st);
	return *msg_p || st->err;
}

/* Ends with a message, or with st->err WEFT_ERR_PEER and NULL when peer is gone. */
static struct weft_msg *probe_until(struct weft_ctx *ctx, int peer, int tag, bool take,
				    struct weft_status *st)
{
	/* Each round ends with an arrival that fits, or the peer's end; another thread may take
	 * the message before the next search. */
	for (;;) {
		struct weft_probe_waiter w = {.failed = false};
		weft_wait_completion_init(&w.arrived);
		bool last = peer_is_gone(ctx, peer);
		struct weft_msg *m =
			weft_comm_match_probe(ctx, peer, tag, take, st, last ? NULL : &w);
		if (m)
			return m;
		if (last) {
			say_gone(st, peer, tag);
			return NULL;
		}
		/* The peer may have gone before w was listed. */
		if (peer_is_gone(ctx, peer))
			weft_comm_match_wake_probes(ctx, peer, false);
		ctx->core->wait(ctx->core->hook_arg, &w.arrived);
		if (w.failed) {
			say_gone(st, peer, tag);
			return NULL;
		}
	}
}

void weft_comm_core_probe(struct weft_ctx *ctx, int peer, int tag, struct weft_status *st)
{
	(void)probe_until(ctx, peer, tag, false, st);
}

void weft_comm_core_mprobe(struct weft_ctx *ctx, int peer, int tag, struct weft_msg **msg_p,
			   struct weft_status *st)
{
	*msg_p = probe_until(ctx, peer, tag, true, st);
}
