/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * share.c - a large message copied by both sides at once, the receiver's side.
 *
 * BOTH   receiver   CTS + SHARE: where the buffer is, the number, the size of a piece; fetches
 *                   pieces from the front
 *        sender     if an application thread waits there: writes pieces from the back; DATA +
 *                   PLACED + SHARE says how many bytes, once, if it has claimed any
 *        receiver   all pieces claimed, and the report is there if the sender claimed any: FIN
 * REST   the same with CTS + SHARE + REST; the sender takes all that is left, at the latest after
 *        the first piece, and posts it as DATA + REST: it copies out of its buffer while the
 *        receiver copies into its own.  That needs no call of the kernel, and goes into a layout of
 *        small pieces, too, where the sender cannot write.
 *
 * Claims    what the sender has claimed, it alone copies.  So where only calls make progress it
 *           claims something only in the wait for this very message.
 * Progress  nothing waits for the sender: one that computes does not read the offer in time, the
 *           receiver claims all pieces, and the number is stale when the sender does.
 * End       two halves: the receiver's pieces are fetched, and, if the sender has claimed any, its
 *           report is there.  The half that comes second ends it.  When the sender wrote less than
 *           it claimed, the receiver fetches all data itself.
 */
#include "base/counters.h"
#include "comm/core.h"
#include "comm/large/large_int.h"
#include "comm/large/pieces.h"
#include "comm/large/share.h"
#include "comm/large/share_copy.h"
#include "comm/send/credit.h"
#include "comm/send/pack.h"

#define TAKE_TURNS 96                   /* looks for a sender that takes the rest: 1.4 us */
#define WAIT_ROUNDS 4096                /* for a busy sender: a millisecond or so */
#define OPEN_PIECE ((size_t)128 * 1024) /* for a sender that may come to wait meanwhile */
#define MISSES 4                        /* offers in a row that no sender took up ... */
#define MISSES_SKIP 15                  /* ... after which so many messages go without */

enum { FETCHED = 1, REPORTED = 2 }; /* halves */

static int slot_take(struct weft_core *core)
{
	/* Relaxed: the slot's fields come and go with its bit, see slot_give. */
	uint64_t seen = atomic_load_explicit(&core->x_shares, memory_order_relaxed);
	while (~seen) { /* ends: all are taken, or one is ours */
		int slot = __builtin_ctzll(~seen);
		/* HAVE <- GAVE (slot_give).  Carries: the last user is through with the slot. */
		if (atomic_compare_exchange_weak_explicit(
			    &core->x_shares, &seen, seen | (uint64_t)1 << slot,
			    memory_order_acquire, memory_order_relaxed))
			return slot;
	}
	return -1;
}

static void slot_give(struct weft_core *core, int slot)
{
	/* GAVE -> HAVE (slot_take). */
	atomic_fetch_and_explicit(&core->x_shares, ~((uint64_t)1 << slot), memory_order_release);
}

static struct weft_share *share_of(struct weft_req *r)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	return &v->gate->core->share[v->from.slot];
}

bool weft_comm_share_sender_waits(struct weft_gate *g)
{
	if (!g->driver->awake || !g->driver->awake(g->net, g->peer))
		return false;
	/* Relaxed, both: learned, any mixture will do. */
	unsigned misses = atomic_load_explicit(&g->x_share_misses, memory_order_relaxed);
	if (weft_likely(misses < MISSES))
		return true;
	atomic_store_explicit(&g->x_share_misses,
			      misses < MISSES + MISSES_SKIP ? misses + 1 : MISSES - 1,
			      memory_order_relaxed);
	return false;
}

static void count_miss(struct weft_gate *g, bool helped)
{
	unsigned misses = atomic_load_explicit(&g->x_share_misses, memory_order_relaxed);
	if (helped ? misses : misses < MISSES)
		atomic_store_explicit(&g->x_share_misses, helped ? 0 : misses + 1,
				      memory_order_relaxed);
}

/* Posts the offer at once or not at all. */
static bool post_offer(struct weft_gate *g, struct weft_req *r, struct weft_share *s, int slot)
{
	struct weft_share_offer o = {(uint64_t)(uintptr_t)r->buf.base, s->number, s->piece};
	struct iovec iov = {&o, sizeof o};
	struct weft_wire head = {.kind = WEFT_WIRE_CTS,
				 .flags = WEFT_WIRE_SHARE | (s->rest ? WEFT_WIRE_REST : 0),
				 .context = weft_comm_req_recv(r)->from.id,
				 .sequence = s->id,
				 .tag = slot,
				 .length = weft_comm_req_recv(r)->want};
	if (!weft_comm_gate_try(g))
		return false;
	enum weft_post p = WEFT_POST_FULL;
	if (weft_comm_gate_clear_locked(g) && !weft_comm_gate_down(g))
		/* A sender that computes would not take it. */
		p = weft_comm_gate_post_as_locked(g, &head, &iov, 1, sizeof o, NULL, true);
	weft_comm_gate_leave(g);
	return p == WEFT_POST_DONE;
}

bool weft_comm_share_possible(struct weft_req *r, size_t least)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	struct weft_gate *g = v->gate;

	return g->core->share_min && v->want >= least && g->driver->word &&
	       weft_comm_gate_can_put(g) && !weft_task_engine_behind() &&
	       /* An offer fits what a driver never keeps. */
	       sizeof(struct weft_share_offer) <= g->inline_max &&
	       /* Relaxed: a hint; the first fetch from a peer is made alone. */
	       atomic_load_explicit(&g->x_get_works, memory_order_relaxed);
}

static size_t piece_of(uint64_t want, bool rest, bool open)
{
	size_t piece = want / (want <= WEFT_LARGE_ON_SPOT && !rest ? 2 : 4) + 1;
	size_t most = rest ? WEFT_SHARE_REST_PIECE : open ? OPEN_PIECE : WEFT_LARGE_PIECE;
	piece = weft_align_up(piece, want < 32768 ? 64 : 4096);
	if (piece > most)
		piece = most;
	if (want / piece >= WEFT_SHARE_PIECES)
		piece = weft_align_up(want / WEFT_SHARE_PIECES + 1, 4096);
	return piece;
}

bool weft_comm_share_offer(struct weft_req *r, enum weft_comm_route route, bool sender_waits)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	struct weft_gate *g = v->gate;
	struct weft_core *core = g->core;
	enum weft_comm_route before = (enum weft_comm_route)v->route;
	bool rest = route == WEFT_ROUTE_REST;
	size_t piece = piece_of(v->want, rest, !sender_waits);
	int slot = slot_take(core);

	weft_assert(!v->got && !weft_comm_large_shared(v));
	if (slot < 0)
		return false;
	struct weft_share *s = &core->share[slot];
	*s = (struct weft_share){.word = g->driver->word(g->net, core->rank, (unsigned)slot),
				 .number = (s->number + 1) & WEFT_SHARE_NUMBER_MASK,
				 .piece = piece,
				 .open = !sender_waits,
				 .rest = rest,
				 .n = (unsigned)((v->want + piece - 1) / piece)};
	s->id = s->word ? weft_comm_ids_give(&core->ids, r, weft_comm_id_recv(g->peer)) : 0;
	if (!s->id) {
		slot_give(core, slot);
		return false;
	}
	weft_comm_share_open(s->word, s->number, s->n);
	v->from.slot = (uint8_t)slot;
	weft_comm_large_recv_route(v, route);
	if (post_offer(g, r, s, slot))
		return true;
	if (!weft_comm_ids_take(&core->ids, s->id, weft_comm_id_recv(g->peer)))
		return true; /* the peer is gone, and weft_comm_share_abandon has been here */
	v->route = (uint8_t)before; /* it was never offered */
	slot_give(core, slot);
	return false;
}

bool weft_comm_share_taken(struct weft_req *r, unsigned looks)
{
	struct weft_share *s = share_of(r);
	for (unsigned i = 0; i < looks; i++, weft_cpu_relax())
		/* Relaxed: a hint; the receiver claims what it fetches. */
		if (weft_comm_share_back_of(atomic_load_explicit(s->word, memory_order_relaxed)) !=
		    s->n)
			return true;
	return false;
}

/* Its bytes keep the sender busy; it will come to this one, too. */
static bool sender_posts(struct weft_gate *g)
{
	/* Relaxed: a hint. */
	return atomic_load_explicit(&g->x_sent_under, memory_order_relaxed) &&
	       !weft_comm_gate_down(g);
}

bool weft_comm_share_pauses(struct weft_req *r)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	if (v->route != WEFT_ROUTE_REST)
		return false;
	struct weft_share *s = share_of(r);
	if (s->to || !sender_posts(v->gate) || weft_task_engine_behind() ||
	    weft_comm_share_taken(r, 1))
		return false;
	return s->waited++ < WAIT_ROUNDS;
}

unsigned weft_comm_share_looks(struct weft_req *r)
{
	return sender_posts(weft_comm_req_recv(r)->gate) ? 1 : TAKE_TURNS;
}

/* Both halves are there. */
static enum weft_comm_share_end end_share(struct weft_req *r)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	struct weft_gate *g = v->gate;
	struct weft_share *s = share_of(r);
	uint64_t front = (uint64_t)(s->n - s->helped) * s->piece;
	uint64_t back = front < v->want ? v->want - front : 0;
	bool failed = s->failed, whole = s->placed == back;

	if (s->rest && s->helped)
		atomic_fetch_sub_explicit(&g->x_sent_under, 1, memory_order_relaxed);
	slot_give(g->core, v->from.slot);
	if (weft_comm_gate_down(g))
		return WEFT_SHARE_DOWN;
	if (failed)
		return WEFT_SHARE_FAILED;
	if (!whole)
		return WEFT_SHARE_SHORT;
	weft_count(back ? WEFT_CNT_RNDV_SHARED : WEFT_CNT_RNDV_FETCHED, 1);
	return WEFT_SHARE_WHOLE;
}

static enum weft_comm_share_end end_half(struct weft_req *r, unsigned half)
{
	/* BOTH: the half that comes second sees what the first has left in the share. */
	unsigned before =
		atomic_fetch_or_explicit(&share_of(r)->x_halves, half, memory_order_acq_rel);
	weft_assert(!(before & half));
	return before ? end_share(r) : WEFT_SHARE_ELSEWHERE;
}

/* Nothing is left to fetch. */
static enum weft_comm_share_end end_fetching(struct weft_req *r, struct weft_share *s)
{
	struct weft_gate *g = weft_comm_req_recv(r)->gate;
	s->helped = weft_comm_share_close(s->word, s->number, s->n);
	if (s->rest && s->helped)
		/* Relaxed: a hint. */
		atomic_fetch_add_explicit(&g->x_sent_under, 1, memory_order_relaxed);
	if (s->helped || !s->open)
		count_miss(g, s->helped);
	if (!s->helped && weft_comm_ids_take(&g->core->ids, s->id, weft_comm_id_recv(g->peer)))
		return end_share(r);
	return end_half(r, FETCHED);
}

/* More to fetch?  While no sender helps, as much at a time as without help. */
static bool claim_front(struct weft_share *s, uint64_t want)
{
	unsigned first, most = s->at || s->open ? (unsigned)(WEFT_LARGE_PIECE / s->piece) : 1;
	/* Relaxed: a hint. */
	uint64_t w = atomic_load_explicit(s->word, memory_order_relaxed);
	if (!most || weft_comm_share_back_of(w) != s->n)
		most = 1;
	unsigned n = weft_comm_share_front(s->word, s->number, most, &first);
	/* Whatever the word says, it is ours to fetch what comes next, and no more than exists. */
	if (!n || first * s->piece != s->at)
		return false;
	s->to = s->at + n * s->piece < want ? s->at + n * s->piece : want;
	return true;
}

enum weft_comm_share_end weft_comm_share_step(struct weft_req *r)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	struct weft_share *s = share_of(r);
	bool down = weft_comm_gate_down(v->gate);

	weft_assert(weft_comm_large_shared(v) && v->state == WEFT_LARGE_COPYING);
	if (!down && (s->at < s->to || claim_front(s, v->want))) {
		size_t len = s->to - s->at < WEFT_LARGE_PIECE ? s->to - s->at : WEFT_LARGE_PIECE;
		if (!weft_comm_pieces_fetch(r, s->at, len, &len)) {
			s->at += len;
			return WEFT_SHARE_MORE;
		}
		s->failed = true;
	}
	return end_fetching(r, s);
}

enum weft_comm_share_end weft_comm_share_report(struct weft_req *r, uint64_t placed)
{
	share_of(r)->placed = placed;
	return end_half(r, REPORTED);
}

bool weft_comm_share_expects(struct weft_req *r, uint64_t off, size_t len)
{
	struct weft_share *s = share_of(r);
	return s->rest && len && (s->placed ? off == s->next : off % s->piece == 0);
}

enum weft_comm_share_end weft_comm_share_came(struct weft_req *r, uint64_t off, size_t len)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	struct weft_share *s = share_of(r);

	weft_assert(weft_comm_share_expects(r, off, len));
	s->placed += len;
	s->next = off + len;
	if (s->next == v->want &&
	    weft_comm_ids_take(&v->gate->core->ids, s->id, weft_comm_id_recv(v->gate->peer)))
		return end_half(r, REPORTED);
	return WEFT_SHARE_ELSEWHERE;
}

enum weft_comm_share_end weft_comm_share_abandon(struct weft_req *r)
{
	return end_half(r, REPORTED); /* the gate is down: the request will end with that */
}
