/* SPDX-License-Identifier: BSD-3-Clause */
/* probe.c - MPI's probes: unexpected messages are found, and taken out. */
#include "comm/core.h"
#include "comm/match/match_probe.h"

static struct weft_msg *find_now(struct weft_ctx *ctx, int peer, int tag, bool take,
				 struct weft_status *st)
{
	return weft_comm_match_probe(ctx, peer, tag, take, st, NULL);
}

static struct weft_msg *find_or_poll(struct weft_ctx *ctx, int peer, int tag, bool take,
				     struct weft_status *st)
{
	struct weft_core *core = ctx->core;
	struct weft_msg *m = find_now(ctx, peer, tag, take, st);
	if (!m && core->poll) {
		(void)core->poll(core->hook_arg);
		m = find_now(ctx, peer, tag, take, st);
	}
	return m;
}

bool weft_comm_core_iprobe(struct weft_ctx *ctx, int peer, int tag, struct weft_status *st)
{
	return find_or_poll(ctx, peer, tag, false, st) != NULL;
}

bool weft_comm_core_improbe(struct weft_ctx *ctx, int peer, int tag, struct weft_msg **msg_p,
			    struct weft_status *st)
{
	struct weft_msg *m = find_or_poll(ctx, peer, tag, true, st);
	if (!m)
		return false;
	*msg_p = m;
	return true;
}

/* Could no message from peer come any more? */
static bool peer_is_gone(struct weft_ctx *ctx, int peer)
{
	return peer != WEFT_ANY_PEER && weft_comm_gate_down(&ctx->core->gate[peer]);
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
			*st = (struct weft_status){.peer = peer, .tag = tag, .err = WEFT_ERR_PEER};
			return NULL;
		}
		/* The peer may have gone before w was listed. */
		if (peer_is_gone(ctx, peer))
			weft_comm_match_wake_probes(ctx, peer, false);
		ctx->core->wait(ctx->core->hook_arg, &w.arrived);
		if (w.failed) {
			*st = (struct weft_status){.peer = peer, .tag = tag, .err = WEFT_ERR_PEER};
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
