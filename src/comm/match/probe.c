/* SPDX-License-Identifier: BSD-3-Clause */
/* probe.c - looking for messages that no receive has matched, and taking them out. */
#include "comm/core.h"
#include "comm/match/match_probe.h"

static struct weft_msg *look(struct weft_ctx *ctx, int peer, int tag, bool take,
			     struct weft_status *st)
{
	return weft_comm_match_probe(ctx, peer, tag, take, st, NULL);
}

static struct weft_msg *look_twice(struct weft_ctx *ctx, int peer, int tag, bool take,
				   struct weft_status *st)
{
	struct weft_core *core = ctx->core;
	struct weft_msg *m = look(ctx, peer, tag, take, st);
	if (!m && core->poll) {
		(void)core->poll(core->hook_arg);
		m = look(ctx, peer, tag, take, st);
	}
	return m;
}

bool weft_comm_core_iprobe(struct weft_ctx *ctx, int peer, int tag, struct weft_status *st)
{
	return look_twice(ctx, peer, tag, false, st) != NULL;
}

bool weft_comm_core_improbe(struct weft_ctx *ctx, int peer, int tag, struct weft_msg **msg_p,
			    struct weft_status *st)
{
	struct weft_msg *m = look_twice(ctx, peer, tag, true, st);
	if (!m)
		return false;
	*msg_p = m;
	return true;
}

/* Could no message from peer come any more? */
static bool hopeless(struct weft_ctx *ctx, int peer)
{
	return peer != WEFT_ANY_PEER && weft_comm_gate_down(&ctx->core->gate[peer]);
}

/* Ends with a message, or with st->err WEFT_ERR_PEER and NULL when peer is gone. */
static struct weft_msg *await(struct weft_ctx *ctx, int peer, int tag, bool take,
			      struct weft_status *st)
{
	/* Each round ends with an arrival that fits, or the peer's end; somebody else may have
	 * taken the message before we look again. */
	for (;;) {
		struct weft_probe_waiter w = {.failed = false};
		weft_wait_completion_init(&w.arrived);
		bool last = hopeless(ctx, peer);
		struct weft_msg *m =
			weft_comm_match_probe(ctx, peer, tag, take, st, last ? NULL : &w);
		if (m)
			return m;
		if (last) {
			*st = (struct weft_status){.peer = peer, .tag = tag, .err = WEFT_ERR_PEER};
			return NULL;
		}
		/* The peer may have gone before we were listed. */
		if (hopeless(ctx, peer))
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
	(void)await(ctx, peer, tag, false, st);
}

void weft_comm_core_mprobe(struct weft_ctx *ctx, int peer, int tag, struct weft_msg **msg_p,
			   struct weft_status *st)
{
	*msg_p = await(ctx, peer, tag, true, st);
}
