/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ctx.c - the table of contexts: three levels by id, read without a lock, records never freed.
 *
 * A record comes into being with the first message for it or with its opening, whichever is
 * first, and stays: an arrival that has looked it up needs no protection against its closing, and
 * an id may be opened again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "comm/core.h"
#include "comm/match/bucket.h"
#include "comm/match/withdraw.h"
#include "comm/recv/deliver.h"
#include "comm/recv/msg_pool.h"
#include "comm/send/gate.h"

static _Atomic(struct weft_ctx *) *ctx_cell(struct weft_core *core, uint32_t id, bool make)
{
	_Atomic(struct weft_ctx_mid *) *top = &core->x_ctx_top[id / (WEFT_CTX_LEAF * WEFT_CTX_MID)];
	/* SEE <- PUB.  Carries: the level's zeros. */
	struct weft_ctx_mid *mid = atomic_load_explicit(top, memory_order_acquire);
	if (!mid) {
		if (!make || !(mid = calloc(1, sizeof *mid)))
			return NULL;
		/* PUB -> SEE.  Carries: the level's zeros; makers hold ctx_lock. */
		atomic_store_explicit(top, mid, memory_order_release);
	}
	_Atomic(struct weft_ctx_leaf *) *cell = &mid->x_leaf[id / WEFT_CTX_LEAF % WEFT_CTX_MID];
	/* SEE <- PUB, and PUB -> SEE below: as on the level above. */
	struct weft_ctx_leaf *leaf = atomic_load_explicit(cell, memory_order_acquire);
	if (!leaf) {
		if (!make || !(leaf = calloc(1, sizeof *leaf)))
			return NULL;
		atomic_store_explicit(cell, leaf, memory_order_release);
	}
	return &leaf->x_ctx[id % WEFT_CTX_LEAF];
}

static struct weft_ctx *ctx_make_locked(struct weft_core *core, uint32_t id)
{
	weft_assert_held(weft_comm_spin, &core->ctx_lock);
	_Atomic(struct weft_ctx *) *cell = ctx_cell(core, id, true);
	if (!cell)
		return NULL;
	/* SEE <- PUB (below).  Carries: the record; makers hold ctx_lock. */
	struct weft_ctx *ctx = atomic_load_explicit(cell, memory_order_acquire);
	if (ctx)
		return ctx;
	ctx = aligned_alloc(WEFT_CACHELINE, sizeof *ctx);
	if (!ctx)
		return NULL;
	memset(ctx, 0, sizeof *ctx);
	ctx->core = core;
	ctx->id = id;
	uint64_t seed = id;
	ctx->base = (uint32_t)weft_rand_next(&seed);
	ctx->scatter = id & WEFT_CTX_COUNTED ? WEFT_BUCKET_FOLD : WEFT_BUCKET_SCATTER;
	ctx->next_all = core->ctx_all;
	core->ctx_all = ctx;
	/* PUB -> SEE (weft_comm_ctx_find).  Carries: the record. */
	atomic_store_explicit(cell, ctx, memory_order_release);
	return ctx;
}

struct weft_ctx *weft_comm_ctx_find(struct weft_core *core, uint32_t id)
{
	_Atomic(struct weft_ctx *) *cell = ctx_cell(core, id, false);
	/* SEE <- PUB (ctx_make_locked).  Carries: the record. */
	struct weft_ctx *ctx = cell ? atomic_load_explicit(cell, memory_order_acquire) : NULL;
	if (weft_likely(ctx))
		return ctx;
	weft_comm_spin_lock(&core->ctx_lock);
	ctx = ctx_make_locked(core, id);
	weft_comm_spin_unlock(&core->ctx_lock);
	return ctx;
}

weft_err weft_comm_core_ctx_open(struct weft_core *core, uint32_t id, struct weft_ctx **ctx_p)
{
	struct weft_ctx *ctx = weft_comm_ctx_find(core, id);
	if (!ctx)
		return WEFT_ERR_NOMEM;
	/* Relaxed: a check against double opening, not a synchronisation. */
	if (atomic_exchange_explicit(&ctx->x_open, true, memory_order_relaxed))
		return WEFT_ERR_STATE;
	weft_comm_ctx_hint(ctx, false, false, false);
	weft_comm_ctx_priority(ctx, 0);
	weft_comm_spin_lock(&ctx->lock);
	/* Relaxed: written under the lock. */
	if (!atomic_load_explicit(&ctx->x_unexpected, memory_order_relaxed) && !ctx->wild_head)
		weft_comm_phase_reset(&ctx->phase);
	weft_comm_spin_unlock(&ctx->lock);
	*ctx_p = ctx;
	return WEFT_OK;
}

void weft_comm_ctx_hint(struct weft_ctx *ctx, bool no_any_peer, bool no_any_tag, bool overtaking)
{
	/* Relaxed: promises; what was linked before says itself how. */
	atomic_store_explicit(&ctx->x_hints,
			      (uint8_t)((no_any_peer ? WEFT_HINT_NO_ANY_PEER : 0) |
					(no_any_tag ? WEFT_HINT_NO_ANY_TAG : 0) |
					(overtaking ? WEFT_HINT_OVERTAKING : 0)),
			      memory_order_relaxed);
}

void weft_comm_ctx_priority(struct weft_ctx *ctx, int priority)
{
	/* Relaxed: a wish. */
	atomic_store_explicit(&ctx->x_priority, (int16_t)priority, memory_order_relaxed);
}

void weft_comm_ctx_set_name(struct weft_ctx *ctx, const char *name)
{
	weft_comm_spin_lock(&ctx->lock);
	ctx->name = name;
	weft_comm_spin_unlock(&ctx->lock);
}

bool weft_comm_ctx_peer_down(const struct weft_ctx *ctx, int peer)
{
	return weft_comm_gate_down(&ctx->core->gate[peer]);
}

struct weft_comm_ear *weft_comm_ctx_ear(const struct weft_ctx *ctx)
{
	/* EAR <- EAR (below).  Carries: *ear. */
	return atomic_load_explicit(&ctx->x_ear, memory_order_acquire);
}

struct weft_comm_ear *weft_comm_ctx_set_ear(struct weft_ctx *ctx, struct weft_comm_ear *ear)
{
	struct weft_comm_ear *was = NULL;
	/* EAR -> EAR (above).  Carries: *ear.  Acquire on failure: the other thread's. */
	if (atomic_compare_exchange_strong_explicit(&ctx->x_ear, &was, ear, memory_order_acq_rel,
						    memory_order_acquire))
		return ear;
	free(ear);
	return was;
}

uint32_t weft_comm_ctx_id(const struct weft_ctx *ctx)
{
	return ctx->id;
}

void weft_comm_ctx_name(struct weft_ctx *ctx, char *text, size_t size)
{
	weft_assert(size);
	weft_comm_spin_lock(&ctx->lock);
	snprintf(text, size, "%s", ctx->name ? ctx->name : "");
	weft_comm_spin_unlock(&ctx->lock);
}

void weft_comm_msg_drop(struct weft_msg *m)
{
	struct weft_core *core = m->core;

	if (m->msg_kind == WEFT_MSG_LOCAL) {
		struct weft_req *send = m->send;
		send->status.err = WEFT_ERR_CANCELLED;
		weft_comm_req_complete(send);
	} else if (m->id) {
		weft_comm_gate_fin(&core->gate[m->node.peer], m->id);
	}
	uintptr_t state = WEFT_MSG_ARRIVING;
	/* CLAIM -> LAST (msg_complete): the poller still writes into it, and frees it. */
	if (!atomic_compare_exchange_strong_explicit(&m->x_state, &state, WEFT_MSG_DROPPED,
						     memory_order_acq_rel, memory_order_acquire))
		weft_comm_msg_free(m);
}

static void msgs_drop(struct weft_msg *m)
{
	while (m) {
		struct weft_msg *next = m->all_next;
		weft_comm_msg_drop(m);
		m = next;
	}
}

void weft_comm_ctx_end(struct weft_ctx *ctx, const struct weft_comm_tags *tags)
{
	struct weft_keyed *e = weft_comm_match_withdraw_ctx(ctx, tags);
	while (e) {
		struct weft_keyed *next = e->next;
		struct weft_req *r = weft_comm_req_of_entry(weft_comm_entry_of(e));
		r->status = (struct weft_status){.peer = e->peer, .tag = e->tag, .cancelled = true};
		weft_comm_recv_finish(r, WEFT_ERR_CANCELLED);
		e = next;
	}
	msgs_drop(weft_comm_match_withdraw_msgs(ctx, tags));
}

void weft_comm_ctx_close(struct weft_ctx *ctx)
{
	weft_comm_ctx_end(ctx, NULL);
	weft_comm_ctx_set_name(ctx, NULL);
	/* Relaxed: as in open. */
	atomic_store_explicit(&ctx->x_open, false, memory_order_relaxed);
}

void weft_comm_ctx_fini_all(struct weft_core *core)
{
	while (core->ctx_all) {
		struct weft_ctx *ctx = core->ctx_all;
		core->ctx_all = ctx->next_all;
		msgs_drop(weft_comm_match_withdraw_msgs(ctx, NULL));
		/* Relaxed: no other thread uses the core any more. */
		free(atomic_load_explicit(&ctx->x_ear, memory_order_relaxed));
		free(ctx);
	}
	for (uint32_t t = 0; t < WEFT_CTX_TOP; t++) {
		/* Relaxed: no other thread uses the core any more. */
		struct weft_ctx_mid *mid =
			atomic_load_explicit(&core->x_ctx_top[t], memory_order_relaxed);
		for (uint32_t i = 0; mid && i < WEFT_CTX_MID; i++)
			free(atomic_load_explicit(&mid->x_leaf[i], memory_order_relaxed));
		free(mid);
	}
}
