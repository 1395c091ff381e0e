/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * match.c - brings posted receives and arriving messages together, in MPI's order, in a number of
 * steps that does not depend on how many of either there are.
 *
 * Everything hangs in one hash table keyed by (context, peer, tag), in buckets of one cache line
 * (bucket.h).  The thread that comes second completes the match, under the bucket's lock.
 *
 * Wildcards are keys like any other: a posted receive from any peer with tag 7 hangs under (any,
 * 7), so an arrival has at most four keys to look at: its own, and three with wildcards.  Messages
 * that no receive has matched are linked by arrival under the same wildcards' keys (unexpected.c), but
 * only from a context's first wildcard on (phase.h).  Wildcards, posted or listed, change under the
 * context's lock, which is taken before a bucket's lock, never after (only tried).
 *
 *   post exact       bucket; a message is there: take it; is it in lists: context too (try, else in
 *                    order).  Else append, stamped with the context's epoch.
 *   post wildcard    raise x_wild; context; the oldest message under that key; none: stamp with
 *                    ++epoch, append.
 *   arrival          bucket; x_wild is 0: an exact receive is the only candidate; none, and the
 *                    context has no lists: the message stays in the bucket.  Otherwise: context,
 *                    then the four keys, and decide by age.
 *
 * Why an arrival that reads x_wild = 0 under the bucket's lock is right: it only ever takes an
 * exact receive E, or stays.  If a wildcard W is older than E (posted before it by the same thread,
 * or by a thread with which E's thread has synchronised), x_wild was raised before E was put in under
 * this very lock, so the arrival would have seen it.  If the message stays: W's poster searches the
 * messages after it has raised x_wild, and finds it; or the arrival comes after that search, under
 * the same lock.
 *
 * Ages.  Only wildcards count: W's stamp is ++epoch, E's is the epoch it read.  E is older than W
 * exactly if E's stamp is smaller; E's thread, having posted W, reads at least W's stamp.
 *
 * Where the application allows overtaking, an exact receive is as good as an older wildcard.
 *
 * Not guaranteed: an order between receives posted by threads that have not synchronised (MPI
 * requires none).
 */
#include "base/counters.h"
#include "comm/match/match.h"
#include "comm/match/match_fast.h"
#include "comm/match/probe_waiter.h"
#include "comm/match/unexpected.h"
#include "comm/match/wildcard.h"

/* ---- posting ------------------------------------------------------------------------------ */

/* m, the oldest of its key, is in lists.  The caller is inside the bucket, and outside on return.
 * NULL: another receive took m, and no other message is there. */
static struct weft_msg *take_listed(struct weft_ctx *ctx, struct weft_bucket *b,
				    enum weft_owner_how how, struct weft_keyed *m, int peer,
				    int tag)
{
	if (!weft_comm_spin_try(&ctx->lock)) {
		/* In order: context, then bucket; m may be gone by then. */
		weft_wait_owner_out(&b->lock, how);
		weft_comm_spin_lock(&ctx->lock);
		how = weft_wait_owner_in(&b->lock);
		m = weft_comm_bucket_find_locked(b, ctx, peer, tag, WEFT_KEYED_MSG);
	}
	if (m)
		weft_comm_bucket_unlink_locked(b, m);
	weft_wait_owner_out(&b->lock, how);
	/* A message that came meanwhile is in no list if the context was opened anew. */
	if (m && weft_comm_msg_of(m)->lists)
		weft_comm_unexpected_unlink_locked(ctx, weft_comm_msg_of(m));
	weft_comm_spin_unlock(&ctx->lock);
	return m ? weft_comm_msg_of(m) : NULL;
}

struct weft_msg *weft_comm_match_take_posted(struct weft_ctx *ctx, struct weft_bucket *b,
					     enum weft_owner_how how, struct weft_keyed *n)
{
	if (weft_comm_msg_of(n)->lists)
		return take_listed(ctx, b, how, n, n->peer, n->tag);
	weft_comm_bucket_unlink_locked(b, n);
	weft_wait_owner_out(&b->lock, how);
	return weft_comm_msg_of(n);
}

/* Can no peer send what e waits for any more?  From any peer: all are gone, and one of them died. */
static bool wild_is_orphan(struct weft_ctx *ctx, const struct weft_entry *e)
{
	struct weft_core *core = ctx->core;
	if (e->node.peer != WEFT_ANY_PEER)
		return weft_comm_gate_down(&core->gate[e->node.peer]);
	/* DOWN (peer_down): counted before posted receives are withdrawn, which takes the context's
	 * lock, held here. */
	return atomic_load_explicit(&core->x_died, memory_order_seq_cst) &&
	       atomic_load_explicit(&core->x_gone, memory_order_seq_cst) == core->size - 1;
}

static weft_err post_wild(struct weft_entry *e, struct weft_msg **msg_p)
{
	struct weft_ctx *ctx = e->node.ctx;
	int peer = e->node.peer; /* once listed, e may be over */
	weft_err err = WEFT_OK;

	e->node.kind = WEFT_KEYED_WILD;
	/* RAISE -> READ (arrive), through the bucket's lock when the same thread posts there later.
	 * Carries: nothing but itself. */
	atomic_fetch_add_explicit(&ctx->x_wild, 1, memory_order_seq_cst);
	weft_comm_spin_lock(&ctx->lock);
	weft_comm_unexpected_begin_locked(ctx);
	struct weft_msg *m = weft_comm_unexpected_find_locked(ctx, e->node.peer, e->node.tag);
	if (m)
		weft_comm_unexpected_take_locked(ctx, m);
	else if (wild_is_orphan(ctx, e))
		err = WEFT_ERR_PEER;
	else
		weft_comm_wild_append_locked(ctx, e);
	if (m || err)
		atomic_fetch_sub_explicit(&ctx->x_wild, 1, memory_order_relaxed);
	weft_comm_spin_unlock(&ctx->lock);
	if (!m && !err && peer != WEFT_ANY_PEER)
		weft_comm_gate_expect(&ctx->core->gate[peer]);
	*msg_p = m;
	return err;
}

weft_err weft_comm_match_post(struct weft_entry *e, struct weft_msg **msg_p)
{
	if (e->node.peer == WEFT_ANY_PEER || e->node.tag == WEFT_ANY_TAG) {
		/* Relaxed: the poster's alone until it is listed. */
		atomic_store_explicit(&e->node.x_listed, false, memory_order_relaxed);
		return post_wild(e, msg_p);
	}
	return weft_comm_match_post_exact(e, msg_p);
}

/* ---- arriving ----------------------------------------------------------------------------- */

/* Nothing matches: m stays, in lists if the context has them.  All locked. */
static void stay_locked(struct weft_ctx *ctx, struct weft_bucket *b, struct weft_msg *m)
{
	weft_assert_held(weft_comm_spin, &ctx->lock);
	weft_assert_held(weft_comm_bucket, b);
	weft_comm_bucket_mark(ctx, b);
	m->lists = weft_comm_phase_may_stay(&ctx->phase) ? 0 : weft_comm_unexpected_wanted(ctx);
	weft_comm_bucket_append_locked(b, &m->node);
}

/* The decision under both locks: exact or wildcard, the older of them; else m goes in. */
static struct weft_entry *arrive_among_wildcards(struct weft_ctx *ctx, int peer, int tag,
						 struct weft_msg *m)
{
	struct weft_bucket *b = weft_comm_bucket_of(ctx, peer, tag);
	struct weft_probe_waiter *woken = NULL;
	struct weft_entry *e = NULL;

	weft_comm_spin_lock(&ctx->lock);
	weft_count(WEFT_CNT_MATCH_COMMON, 1);
	struct weft_entry *w = weft_comm_wild_oldest_locked(ctx, peer, tag);
	weft_wait_owner_lock(&b->lock);
	struct weft_keyed *n = weft_comm_bucket_find_locked(b, ctx, peer, tag, WEFT_KEYED_RECV);
	if (n && (!w || w->stamp > weft_comm_entry_of(n)->stamp))
		e = weft_comm_entry_of(n);
	if (e)
		weft_comm_bucket_unlink_locked(b, n);
	else if (!w && m)
		stay_locked(ctx, b, m);
	weft_wait_owner_unlock(&b->lock);
	if (!e && w) {
		weft_comm_wild_unlink_locked(ctx, w);
		e = w;
	} else if (!e && m) {
		if (m->lists)
			weft_comm_unexpected_link_locked(ctx, m);
		if (ctx->probes)
			woken = weft_comm_probes_pick_locked(ctx, peer, tag);
	}
	weft_comm_spin_unlock(&ctx->lock);
	weft_comm_probes_signal(woken);
	return e;
}

/* Bucket locked: can an exact receive be taken without a look at wildcards? */
static inline bool exact_suffices(struct weft_ctx *ctx)
{
	/* READ <- RAISE (post_wild), see the top of the file. */
	if (weft_likely(!atomic_load_explicit(&ctx->x_wild, memory_order_seq_cst)))
		return true;
	/* Relaxed: the application's promise. */
	return atomic_load_explicit(&ctx->x_hints, memory_order_relaxed) & WEFT_HINT_OVERTAKING;
}

/* Bucket locked: the same for a key that has no slot. */
struct weft_keyed *weft_comm_match_take_more_locked(struct weft_bucket *b, struct weft_ctx *ctx,
						    int peer, int tag)
{
	weft_assert_held(weft_comm_bucket, b);
	struct weft_keyed *n = weft_comm_bucket_more_locked(b, ctx, peer, tag);
	if (!n || n->kind != WEFT_KEYED_RECV)
		return NULL;
	weft_comm_bucket_unlink_locked(b, n);
	return n;
}

struct weft_entry *weft_comm_match_arrive(struct weft_ctx *ctx, int peer, int tag)
{
	struct weft_bucket *b = weft_comm_bucket_of(ctx, peer, tag);
	struct weft_keyed *n = NULL;

	enum weft_owner_how how = weft_wait_owner_in(&b->lock);
	if (weft_likely(exact_suffices(ctx)))
		n = weft_comm_match_take_exact_locked(b, ctx, peer, tag,
						      weft_comm_bucket_key(ctx, peer, tag));
	/* Relaxed: a hint; without a match the caller comes again, with the message, and that
	 * look decides. */
	bool wild = !n && atomic_load_explicit(&ctx->x_wild, memory_order_relaxed);
	weft_wait_owner_out(&b->lock, how);
	if (weft_likely(n != NULL))
		return weft_comm_entry_of(n);
	return wild ? arrive_among_wildcards(ctx, peer, tag, NULL) : NULL;
}

struct weft_entry *weft_comm_match_arrive_unexpected(struct weft_ctx *ctx, struct weft_msg *m)
{
	int peer = m->node.peer, tag = m->node.tag;
	struct weft_bucket *b = weft_comm_bucket_of(ctx, peer, tag);
	struct weft_keyed *n = NULL;
	bool stays = false;

	m->node.kind = WEFT_KEYED_MSG;
	m->node.ctx = ctx;
	/* Relaxed: a number; each connection's poller numbers its messages in order. */
	m->number = atomic_fetch_add_explicit(&ctx->core->x_arrived, 1, memory_order_relaxed);
	enum weft_owner_how how = weft_wait_owner_in(&b->lock);
	/* READ <- RAISE (post_wild, probe). */
	if (!atomic_load_explicit(&ctx->x_wild, memory_order_seq_cst)) {
		n = weft_comm_bucket_find_locked(b, ctx, peer, tag, WEFT_KEYED_RECV);
		weft_comm_bucket_mark(ctx, b);
		if (n) {
			weft_comm_bucket_unlink_locked(b, n);
		} else if (weft_comm_phase_may_stay(&ctx->phase)) {
			m->lists = 0;
			weft_comm_bucket_append_locked(b, &m->node);
			stays = true;
		}
	}
	weft_wait_owner_out(&b->lock, how);
	if (n || stays)
		return n ? weft_comm_entry_of(n) : NULL;
	return arrive_among_wildcards(ctx, peer, tag, m);
}

/* ---- taking back -------------------------------------------------------------------------- */

bool weft_comm_match_cancel(struct weft_entry *e)
{
	struct weft_ctx *ctx = e->node.ctx;
	bool wild = e->node.kind == WEFT_KEYED_WILD;
	struct weft_bucket *b = weft_comm_bucket_of(ctx, e->node.peer, e->node.tag);
	enum weft_owner_how how = WEFT_OWNER_BUSY;

	if (wild)
		weft_comm_spin_lock(&ctx->lock);
	else
		how = weft_wait_owner_in(&b->lock);
	/* Relaxed: under the lock that writers hold. */
	bool listed = atomic_load_explicit(&e->node.x_listed, memory_order_relaxed);
	if (listed && wild)
		weft_comm_wild_unlink_locked(ctx, e);
	else if (listed)
		weft_comm_bucket_unlink_locked(b, &e->node);
	if (wild)
		weft_comm_spin_unlock(&ctx->lock);
	else
		weft_wait_owner_out(&b->lock, how);
	return listed;
}
