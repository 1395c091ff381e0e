/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * match.c - brings posted receives and arriving messages together, in MPI's order.
 *
 * Exact receives and unexpected messages share one hash table keyed by (context, peer, tag).
 * Whoever comes second completes the match, under the bucket's lock.  A bucket is one cache line;
 * its chain holds entries of several keys, each key's in the order they came.
 *
 * Wildcards.  Posted wildcard receives hang in their context, oldest first; unexpected messages
 * are also linked in their context (all, and per peer) by arrival.  Both lists belong to the
 * context's lock, which is taken before a bucket's lock, never after (only tried).
 *
 *   post exact       bucket; a message is there: context too (try, else in order) and take it.
 *                    Else append, stamped with the context's epoch.
 *   post wildcard    raise x_wild; context; walk the messages; none: stamp with ++epoch, append.
 *   arrival          bucket; x_wild is 0: an exact receive is the only candidate.  Otherwise, or
 *                    when the message stays unexpected: context, bucket, and decide by age.
 *
 * Why an arrival that reads x_wild = 0 under the bucket's lock is right: it only ever takes an
 * exact receive E.  If a wildcard W is older than E (posted before it by the same thread, or by
 * one that E's thread has heard from), x_wild was raised before E was put in under this very lock,
 * so the arrival would have seen it.  A message becomes unexpected only under the context's lock,
 * with the wildcards looked at: W either sees the message in its walk or is seen.
 *
 * Ages.  Only wildcards count: W's stamp is ++epoch, E's is the epoch it read.  E is older than W
 * exactly if E's stamp is smaller; E's thread, having posted W, reads at least W's stamp.
 *
 * Not guaranteed: an order between receives posted by threads that have not synchronised (MPI
 * does not ask for one).
 */
#include <stdlib.h>
#include <sys/mman.h>
#include "comm/comm_int.h"

weft_err weft_match_init(struct weft_match *m)
{
	size_t bytes = sizeof(struct weft_bucket) * WEFT_BUCKETS;
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return WEFT_ERR_NOMEM;
	m->bucket = p;
	return WEFT_OK;
}

void weft_match_fini(struct weft_match *m)
{
	if (m->bucket)
		munmap(m->bucket, sizeof(struct weft_bucket) * WEFT_BUCKETS);
	m->bucket = NULL;
}

/* ---- buckets ------------------------------------------------------------------------------ */

/* Neighbouring tags share pages and never a bucket; what is 4096 or more apart is scattered. */
static inline uint32_t bucket_index(const struct weft_ctx *ctx, int peer, int tag)
{
	uint32_t h = ctx->base + (uint32_t)peer * 0x9e3779b1u;
	h ^= h >> 15;
	h += (uint32_t)tag + (((uint32_t)tag >> 12) * 0x85ebca6bu >> 14);
	return h & (WEFT_BUCKETS - 1);
}

static inline struct weft_bucket *bucket_of(struct weft_ctx *ctx, int peer, int tag)
{
	return &ctx->core->match.bucket[bucket_index(ctx, peer, tag)];
}

/* Remembers that b's page holds receives. */
static inline void bucket_note_used(struct weft_match *m, const struct weft_bucket *b)
{
	size_t page = (size_t)(b - m->bucket) / WEFT_BUCKET_GROUP;
	_Atomic uint64_t *word = &m->x_used[page / 64];
	uint64_t bit = (uint64_t)1 << (page % 64);
	/* seq_cst: MARK -> SCAN (withdraw_peer): before we look whether the peer is down.  If the
	 * scan missed the bit, we see x_down. */
	if (weft_unlikely(!(atomic_load_explicit(word, memory_order_seq_cst) & bit)))
		atomic_fetch_or_explicit(word, bit, memory_order_seq_cst);
}

static inline void bucket_append_locked(struct weft_bucket *b, struct weft_entry *e)
{
	e->next = NULL;
	e->prev = b->tail;
	if (b->tail)
		b->tail->next = e;
	else
		/* Relaxed: under the lock; the scan's peek is a hint. */
		atomic_store_explicit(&b->x_head, e, memory_order_relaxed);
	b->tail = e;
	atomic_store_explicit(&e->x_listed, true, memory_order_relaxed);
}

static inline void bucket_unlink_locked(struct weft_bucket *b, struct weft_entry *e)
{
	if (e->prev)
		e->prev->next = e->next;
	else
		/* Relaxed: as in append. */
		atomic_store_explicit(&b->x_head, e->next, memory_order_relaxed);
	if (e->next)
		e->next->prev = e->prev;
	else
		b->tail = e->prev;
	atomic_store_explicit(&e->x_listed, false, memory_order_relaxed);
}

/* The oldest entry of that key and kind.  Bound: the chain, a few keys unless hashing fails. */
static inline struct weft_entry *bucket_find_locked(struct weft_bucket *b, struct weft_ctx *ctx,
						    int peer, int tag, enum weft_entry_kind kind)
{
	/* Relaxed: under the lock. */
	struct weft_entry *e = atomic_load_explicit(&b->x_head, memory_order_relaxed);
	for (; e; e = e->next)
		if (e->tag == tag && e->peer == peer && e->ctx == ctx)
			return e->kind == kind ? e : NULL; /* a key's entries are all of one kind */
	return NULL;
}

/* ---- unexpected messages, context locked --------------------------------------------------- */

static inline struct weft_msg *msg_of(struct weft_entry *e)
{
	return weft_container_of(e, struct weft_msg, entry);
}

static struct weft_src_list *src_list_locked(struct weft_ctx *ctx, int peer)
{
	return ctx->by_src ? &ctx->by_src[peer] : NULL;
}

static void msg_link_locked(struct weft_ctx *ctx, struct weft_msg *m)
{
	m->all_next = NULL;
	m->all_prev = ctx->all_tail;
	if (ctx->all_tail)
		ctx->all_tail->all_next = m;
	else
		ctx->all_head = m;
	ctx->all_tail = m;

	/* The lists per peer begin with the first message; without memory for them wildcards walk
	 * the list of all.  Only an empty context may begin, so that the lists are complete. */
	if (!ctx->by_src && !m->all_prev)
		ctx->by_src = calloc((size_t)ctx->core->size, sizeof *ctx->by_src);
	struct weft_src_list *s = src_list_locked(ctx, m->entry.peer);
	if (s) {
		m->src_next = NULL;
		m->src_prev = s->tail;
		if (s->tail)
			s->tail->src_next = m;
		else
			s->head = m;
		s->tail = m;
	}
	/* Relaxed: a hint for probes. */
	atomic_store_explicit(&ctx->x_unexpected,
			      atomic_load_explicit(&ctx->x_unexpected, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

static void msg_unlink_locked(struct weft_ctx *ctx, struct weft_msg *m)
{
	if (m->all_prev)
		m->all_prev->all_next = m->all_next;
	else
		ctx->all_head = m->all_next;
	if (m->all_next)
		m->all_next->all_prev = m->all_prev;
	else
		ctx->all_tail = m->all_prev;

	struct weft_src_list *s = src_list_locked(ctx, m->entry.peer);
	if (s) {
		if (m->src_prev)
			m->src_prev->src_next = m->src_next;
		else
			s->head = m->src_next;
		if (m->src_next)
			m->src_next->src_prev = m->src_prev;
		else
			s->tail = m->src_prev;
	}
	/* Relaxed: a hint for probes. */
	atomic_store_explicit(&ctx->x_unexpected,
			      atomic_load_explicit(&ctx->x_unexpected, memory_order_relaxed) - 1,
			      memory_order_relaxed);
}

static inline bool fits(const struct weft_entry *m, int peer, int tag)
{
	return (peer == WEFT_ANY_PEER || m->peer == peer) && (tag == WEFT_ANY_TAG || m->tag == tag);
}

/* The oldest message that fits.  Bound: the messages in the context (of the peer). */
static struct weft_msg *msg_find_locked(struct weft_ctx *ctx, int peer, int tag)
{
	if (peer != WEFT_ANY_PEER && ctx->by_src) {
		struct weft_msg *m = ctx->by_src[peer].head;
		while (m && !fits(&m->entry, peer, tag))
			m = m->src_next;
		return m;
	}
	struct weft_msg *m = ctx->all_head;
	while (m && !fits(&m->entry, peer, tag))
		m = m->all_next;
	return m;
}

/* Takes m out of its bucket and its context's lists; context locked, bucket not. */
static void msg_take_locked(struct weft_ctx *ctx, struct weft_msg *m)
{
	struct weft_bucket *b = bucket_of(ctx, m->entry.peer, m->entry.tag);
	weft_spin_lock(&b->lock);
	bucket_unlink_locked(b, &m->entry);
	weft_spin_unlock(&b->lock);
	msg_unlink_locked(ctx, m);
}

/* ---- posting ------------------------------------------------------------------------------ */

static weft_err post_exact(struct weft_entry *e, struct weft_msg **msg_p)
{
	struct weft_ctx *ctx = e->ctx;
	struct weft_core *core = ctx->core;
	struct weft_bucket *b = bucket_of(ctx, e->peer, e->tag);

	weft_spin_lock(&b->lock);
	struct weft_entry *m = bucket_find_locked(b, ctx, e->peer, e->tag, WEFT_ENTRY_MSG);
	if (m) {
		bool got = weft_spin_try(&ctx->lock);
		if (!got) {
			/* In order: context, then bucket; and look again. */
			weft_spin_unlock(&b->lock);
			weft_spin_lock(&ctx->lock);
			weft_spin_lock(&b->lock);
			m = bucket_find_locked(b, ctx, e->peer, e->tag, WEFT_ENTRY_MSG);
		}
		if (m) {
			bucket_unlink_locked(b, m);
			weft_spin_unlock(&b->lock);
			msg_unlink_locked(ctx, msg_of(m));
			weft_spin_unlock(&ctx->lock);
			*msg_p = msg_of(m);
			return WEFT_OK;
		}
		weft_spin_unlock(&ctx->lock);
	}
	bucket_note_used(&core->match, b);
	if (weft_unlikely(weft_gate_down(&core->gate[e->peer]))) {
		weft_spin_unlock(&b->lock);
		return WEFT_ERR_PEER;
	}
	/* Relaxed: our own earlier wildcards are visible to us anyway. */
	e->stamp = atomic_load_explicit(&ctx->x_epoch, memory_order_relaxed);
	bucket_append_locked(b, e);
	weft_spin_unlock(&b->lock);
	*msg_p = NULL;
	return WEFT_OK;
}

static void wild_append_locked(struct weft_ctx *ctx, struct weft_entry *e)
{
	/* Relaxed: written under the context's lock only; readers see order through their own
	 * program order, see the top of the file. */
	e->stamp = atomic_load_explicit(&ctx->x_epoch, memory_order_relaxed) + 1;
	atomic_store_explicit(&ctx->x_epoch, e->stamp, memory_order_relaxed);
	e->next = NULL;
	e->prev = ctx->wild_tail;
	if (ctx->wild_tail)
		ctx->wild_tail->next = e;
	else
		ctx->wild_head = e;
	ctx->wild_tail = e;
	atomic_store_explicit(&e->x_listed, true, memory_order_relaxed);
}

static void wild_unlink_locked(struct weft_ctx *ctx, struct weft_entry *e)
{
	if (e->prev)
		e->prev->next = e->next;
	else
		ctx->wild_head = e->next;
	if (e->next)
		e->next->prev = e->prev;
	else
		ctx->wild_tail = e->prev;
	/* Relaxed: under the context's lock. */
	atomic_store_explicit(&e->x_listed, false, memory_order_relaxed);
	/* LOWER: an arrival that still reads the old count only takes the longer way. */
	atomic_fetch_sub_explicit(&ctx->x_wild, 1, memory_order_relaxed);
}

/* Can nobody send what e waits for any more?  For any peer: all others are gone, and not in order.
 */
static bool wild_is_orphan(struct weft_ctx *ctx, const struct weft_entry *e)
{
	struct weft_core *core = ctx->core;
	if (e->peer != WEFT_ANY_PEER)
		return weft_gate_down(&core->gate[e->peer]);
	/* DOWN (peer_down): counted before the posted ones are withdrawn, which needs the context's
	 * lock that we hold. */
	return atomic_load_explicit(&core->x_died, memory_order_seq_cst) &&
	       atomic_load_explicit(&core->x_gone, memory_order_seq_cst) == core->size - 1;
}

static weft_err post_wild(struct weft_entry *e, struct weft_msg **msg_p)
{
	struct weft_ctx *ctx = e->ctx;
	weft_err err = WEFT_OK;

	e->kind = WEFT_ENTRY_WILD;
	/* RAISE -> READ (arrive), through the bucket's lock when our thread posts there later.
	 * Carries: nothing but itself. */
	atomic_fetch_add_explicit(&ctx->x_wild, 1, memory_order_seq_cst);
	weft_spin_lock(&ctx->lock);
	struct weft_msg *m = msg_find_locked(ctx, e->peer, e->tag);
	if (m)
		msg_take_locked(ctx, m);
	else if (wild_is_orphan(ctx, e))
		err = WEFT_ERR_PEER;
	else
		wild_append_locked(ctx, e);
	if (m || err)
		atomic_fetch_sub_explicit(&ctx->x_wild, 1, memory_order_relaxed);
	weft_spin_unlock(&ctx->lock);
	*msg_p = m;
	return err;
}

weft_err weft_match_post(struct weft_entry *e, struct weft_msg **msg_p)
{
	/* Relaxed: ours alone until it is listed. */
	atomic_store_explicit(&e->x_listed, false, memory_order_relaxed);
	e->kind = WEFT_ENTRY_RECV;
	if (e->peer == WEFT_ANY_PEER || e->tag == WEFT_ANY_TAG)
		return post_wild(e, msg_p);
	return post_exact(e, msg_p);
}

/* ---- arriving ----------------------------------------------------------------------------- */

/* Signals the completions of those that were waiting for such a message; returns them. */
static struct weft_probe_waiter *probes_pick_locked(struct weft_ctx *ctx, int peer, int tag)
{
	struct weft_probe_waiter *picked = NULL;
	struct weft_probe_waiter **link = &ctx->probes;
	while (*link) {
		struct weft_probe_waiter *w = *link;
		if ((w->peer == WEFT_ANY_PEER || w->peer == peer) &&
		    (w->tag == WEFT_ANY_TAG || w->tag == tag || tag == WEFT_ANY_TAG)) {
			*link = w->next;
			w->listed = false;
			w->next = picked;
			picked = w;
		} else {
			link = &w->next;
		}
	}
	return picked;
}

static void probes_signal(struct weft_probe_waiter *w)
{
	while (w) {
		struct weft_probe_waiter *next = w->next; /* w may vanish with the signal */
		weft_completion_signal(&w->arrived);
		w = next;
	}
}

/* The decision with everything locked: exact or wildcard, whichever is older; else m goes in. */
static struct weft_entry *arrive_locked(struct weft_ctx *ctx, int peer, int tag, struct weft_msg *m)
{
	struct weft_bucket *b = bucket_of(ctx, peer, tag);
	struct weft_probe_waiter *woken = NULL;

	weft_spin_lock(&ctx->lock);
	struct weft_entry *w = ctx->wild_head;
	while (w && !((w->peer == WEFT_ANY_PEER || w->peer == peer) &&
		      (w->tag == WEFT_ANY_TAG || w->tag == tag)))
		w = w->next;
	weft_spin_lock(&b->lock);
	struct weft_entry *e = bucket_find_locked(b, ctx, peer, tag, WEFT_ENTRY_RECV);
	if (e && w && w->stamp <= e->stamp)
		e = NULL;
	if (e) {
		bucket_unlink_locked(b, e);
	} else if (w) {
		wild_unlink_locked(ctx, w);
		e = w;
	} else if (m) {
		bucket_append_locked(b, &m->entry);
		msg_link_locked(ctx, m);
		if (ctx->probes)
			woken = probes_pick_locked(ctx, peer, tag);
	}
	weft_spin_unlock(&b->lock);
	weft_spin_unlock(&ctx->lock);
	probes_signal(woken);
	return e;
}

struct weft_entry *weft_match_arrive(struct weft_ctx *ctx, int peer, int tag)
{
	struct weft_bucket *b = bucket_of(ctx, peer, tag);

	weft_spin_lock(&b->lock);
	/* READ <- RAISE (post_wild), see the top of the file. */
	if (weft_likely(!atomic_load_explicit(&ctx->x_wild, memory_order_seq_cst))) {
		struct weft_entry *e = bucket_find_locked(b, ctx, peer, tag, WEFT_ENTRY_RECV);
		if (e)
			bucket_unlink_locked(b, e);
		weft_spin_unlock(&b->lock);
		return e;
	}
	weft_spin_unlock(&b->lock);
	return arrive_locked(ctx, peer, tag, NULL);
}

struct weft_entry *weft_match_arrive_unexpected(struct weft_ctx *ctx, struct weft_msg *m)
{
	m->entry.kind = WEFT_ENTRY_MSG;
	m->entry.ctx = ctx;
	return arrive_locked(ctx, m->entry.peer, m->entry.tag, m);
}

/* ---- taking back -------------------------------------------------------------------------- */

bool weft_match_cancel(struct weft_entry *e)
{
	struct weft_ctx *ctx = e->ctx;
	struct weft_bucket *b = NULL;
	struct weft_spin *lock = &ctx->lock;

	if (e->kind == WEFT_ENTRY_RECV) {
		b = bucket_of(ctx, e->peer, e->tag);
		lock = &b->lock;
	}
	weft_spin_lock(lock);
	/* Relaxed: under the lock that writers hold. */
	bool listed = atomic_load_explicit(&e->x_listed, memory_order_relaxed);
	if (listed && b)
		bucket_unlink_locked(b, e);
	else if (listed)
		wild_unlink_locked(ctx, e);
	weft_spin_unlock(lock);
	return listed;
}

struct weft_msg *weft_match_probe(struct weft_ctx *ctx, int peer, int tag, bool take,
				  struct weft_status *st, struct weft_probe_waiter *w)
{
	weft_spin_lock(&ctx->lock);
	struct weft_msg *m;
	if (peer != WEFT_ANY_PEER && tag != WEFT_ANY_TAG) {
		struct weft_bucket *b = bucket_of(ctx, peer, tag);
		weft_spin_lock(&b->lock);
		struct weft_entry *e = bucket_find_locked(b, ctx, peer, tag, WEFT_ENTRY_MSG);
		weft_spin_unlock(&b->lock);
		m = e ? msg_of(e) : NULL; /* stays: taking needs the context's lock */
	} else {
		m = msg_find_locked(ctx, peer, tag);
	}
	if (m) {
		*st = (struct weft_status){.peer = m->entry.peer,
					   .tag = m->entry.tag,
					   .err = WEFT_OK,
					   .bytes = m->length};
		if (take)
			msg_take_locked(ctx, m);
	} else if (w) {
		w->peer = peer;
		w->tag = tag;
		w->listed = true;
		w->next = ctx->probes;
		ctx->probes = w;
	}
	weft_spin_unlock(&ctx->lock);
	return m;
}

/* Adds the receives of ctx (or, ctx NULL, of peer) in b to *list. */
static void bucket_withdraw(struct weft_bucket *b, struct weft_ctx *ctx, int peer,
			    struct weft_entry **list)
{
	weft_spin_lock(&b->lock);
	/* Relaxed: under the lock. */
	struct weft_entry *e = atomic_load_explicit(&b->x_head, memory_order_relaxed);
	while (e) {
		struct weft_entry *next = e->next;
		if (e->kind == WEFT_ENTRY_RECV && (ctx ? e->ctx == ctx : e->peer == peer)) {
			bucket_unlink_locked(b, e);
			e->next = *list;
			*list = e;
		}
		e = next;
	}
	weft_spin_unlock(&b->lock);
}

/* The same for every bucket that ever held a receive.  With a ctx, nobody posts to it any more. */
static void table_withdraw(struct weft_match *m, struct weft_ctx *ctx, int peer,
			   struct weft_entry **list)
{
	for (size_t word = 0; word < weft_countof(m->x_used); word++) {
		/* SCAN <- MARK (bucket_note_used), after x_down was set. */
		uint64_t bits = atomic_load_explicit(&m->x_used[word], memory_order_seq_cst);
		while (bits) {
			size_t page = word * 64 + (size_t)__builtin_ctzll(bits);
			bits &= bits - 1;
			struct weft_bucket *b = &m->bucket[page * WEFT_BUCKET_GROUP];
			for (int i = 0; i < WEFT_BUCKET_GROUP; i++) {
				/* Relaxed: a receive of ctx was put in before by somebody the
				 * caller has heard from.  For a peer, posts race with us: lock. */
				if (!ctx ||
				    atomic_load_explicit(&b[i].x_head, memory_order_relaxed))
					bucket_withdraw(&b[i], ctx, peer, list);
			}
		}
	}
}

static void wild_withdraw(struct weft_ctx *ctx, int peer, bool exact_too, bool any_too,
			  struct weft_entry **list)
{
	weft_spin_lock(&ctx->lock);
	struct weft_entry *e = ctx->wild_head;
	while (e) {
		struct weft_entry *next = e->next;
		if ((e->peer == WEFT_ANY_PEER && any_too) || (e->peer == peer && exact_too)) {
			wild_unlink_locked(ctx, e);
			e->next = *list;
			*list = e;
		}
		e = next;
	}
	weft_spin_unlock(&ctx->lock);
}

struct weft_entry *weft_match_withdraw_peer(struct weft_core *core, int peer, bool any_too)
{
	struct weft_entry *list = NULL;
	table_withdraw(&core->match, NULL, peer, &list);
	weft_spin_lock(&core->ctx_lock);
	struct weft_ctx *all = core->ctx_all;
	weft_spin_unlock(&core->ctx_lock);
	for (struct weft_ctx *c = all; c; c = c->next_all)
		wild_withdraw(c, peer, true, any_too, &list);
	return list;
}

struct weft_entry *weft_match_withdraw_ctx(struct weft_ctx *ctx)
{
	struct weft_entry *list = NULL;
	table_withdraw(&ctx->core->match, ctx, 0, &list);
	for (int peer = 0; peer < ctx->core->size; peer++)
		wild_withdraw(ctx, peer, true, true, &list);
	return list;
}

struct weft_msg *weft_match_withdraw_msgs(struct weft_ctx *ctx)
{
	struct weft_msg *list = NULL, **tail = &list;
	weft_spin_lock(&ctx->lock);
	while (ctx->all_head) {
		struct weft_msg *m = ctx->all_head;
		msg_take_locked(ctx, m);
		m->all_next = NULL;
		*tail = m;
		tail = &m->all_next;
	}
	weft_spin_unlock(&ctx->lock);
	return list;
}

void weft_match_wake_probes(struct weft_ctx *ctx, int peer, bool failed)
{
	weft_spin_lock(&ctx->lock);
	struct weft_probe_waiter *picked = probes_pick_locked(ctx, peer, WEFT_ANY_TAG);
	weft_spin_unlock(&ctx->lock);
	for (struct weft_probe_waiter *w = picked; w; w = w->next)
		w->failed = failed;
	probes_signal(picked);
}
