/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * share.c - a large message copied by both sides at once: the receiver fetches from the front, the
 * sender, while it does nothing but wait, writes from the back.
 *
 *   receiver   CTS + SHARE: where the buffer is, the number, the size of a piece; fetches pieces
 *   sender     if a thread of the application waits there: writes pieces; DATA + PLACED +
 *              SHARE says how many bytes, once, if it has claimed any
 *   receiver   all pieces claimed, and the report is there if the sender claimed any: FIN
 *
 * A sender that begins to wait while we fetch is offered what is left then.
 *
 * Or the sender takes all that is left, at the latest after the first piece, and sends it (CTS +
 * SHARE + REST; DATA + REST), so that it copies out of its buffer while the receiver copies into
 * its own.  That needs no call of the kernel, and goes into a layout of small pieces, too, where
 * the sender cannot write.  Which of both: path_cost.h.
 *
 * What the sender has taken, nobody else copies.  So where only calls make progress it takes
 * something only in the wait for this very message: it could go away in the midst of it.
 *
 * Nobody waits for the sender: one that computes never reads the offer in time, the receiver claims
 * all pieces, and the number is stale when it does.  Two are through when the fetching has ended
 * and, if the sender helped, its report is there; whoever comes second ends the request.  When the
 * sender wrote less than it claimed, the receiver fetches everything itself.
 */
#include "base/counters.h"
#include "comm/large/copy.h"
#include "comm/large/rdma_write.h"
#include "comm/large/rndv.h"
#include "comm/large/share.h"
#include "comm/recv/deliver.h"
#include "comm/send/pack.h"
#include "task/queue/weft_task.h"
#include "task/task.h"

#define SENT_LEAST ((size_t)4096)       /* shorter ones are fetched, whatever the layout */
#define TAKE_TURNS 96                   /* looks for a sender that takes it all: 1.4 us */
#define WAIT_ROUNDS 4096                /* for a busy sender: a millisecond or so */
#define LATE_PIECE ((size_t)128 * 1024) /* of what is left when the sender comes to wait */
#define MISSES 4                        /* offers in a row that nobody took up ... */
#define MISSES_SKIP 15                  /* ... after which so many messages go without */

enum { PULLED = 1, REPORTED = 2 };

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
	return &v->gate->core->share[v->share - 1];
}

/* Does the sender most likely wait? */
static bool worth_it(struct weft_gate *g)
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

static void learn(struct weft_gate *g, bool helped)
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
				 .context = weft_comm_req_recv(r)->out.rts.id,
				 .sequence = s->id,
				 .tag = slot,
				 .length = weft_comm_req_recv(r)->want};
	if (!weft_comm_gate_try(g))
		return false;
	enum weft_post p = WEFT_POST_FULL;
	if (weft_comm_gate_clear_locked(g) && !weft_comm_gate_down(g))
		/* Who computes would not take it. */
		p = weft_comm_gate_post_as_locked(g, &head, &iov, 1, sizeof o, NULL, true);
	weft_comm_gate_leave(g);
	return p == WEFT_POST_DONE;
}

static bool scattered(struct weft_req *r)
{
	struct iovec iov[WEFT_IOV_MAX];
	unsigned n = WEFT_IOV_MAX;
	size_t held = weft_data_iov(&r->buf, weft_comm_req_recv(r)->got, iov, &n);
	return weft_comm_pieces_small(held, n);
}

static unsigned kind_of(struct weft_req *r)
{
	unsigned kind = weft_comm_req_recv(r)->late ? WEFT_WAYS_LATE : 0;
	if (!r->buf.type)
		return kind + WEFT_WAYS_FLAT;
	return kind + (scattered(r) ? WEFT_WAYS_FINE : WEFT_WAYS_COARSE);
}

/* Can this message be shared at all, and may we? */
static bool possible(struct weft_req *r, size_t least)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	struct weft_gate *g = v->gate;

	return g->core->share_min && v->want - v->got >= least && g->driver->word &&
	       weft_comm_gate_can_put(g) && !weft_task_engine_behind() &&
	       /* An offer fits what a driver never keeps. */
	       sizeof(struct weft_share_offer) <= g->inline_max &&
	       /* Relaxed: a hint; the first fetch from a peer is made alone. */
	       atomic_load_explicit(&g->x_get_works, memory_order_relaxed);
}

/* Of a message that nobody has begun to fetch. */
static size_t piece_of(uint64_t want, bool rest)
{
	size_t piece = want / (want <= WEFT_SHARE_SMALL && !rest ? 2 : 4) + 1;
	size_t most = rest ? WEFT_SHARE_REST_PIECE : WEFT_SHARE_PIECE_MAX;
	piece = weft_align_up(piece, want < 32768 ? 64 : 4096);
	if (piece > most)
		piece = most;
	if (want / piece >= WEFT_SHARE_PIECES)
		piece = weft_align_up(want / WEFT_SHARE_PIECES + 1, 4096);
	return piece;
}

/* Offers what is left from v->got on, whole pieces before it. */
static bool offer_rest(struct weft_req *r, size_t piece, bool rest)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	struct weft_gate *g = v->gate;
	struct weft_core *core = g->core;
	int slot = slot_take(core);

	if (slot < 0)
		return false;
	struct weft_share *s = &core->share[slot];
	*s = (struct weft_share){.word = g->driver->word(g->net, core->rank, (unsigned)slot),
				 .number = (s->number + 1) & WEFT_SHARE_NUMBER_MASK,
				 .piece = piece,
				 .at = v->got,
				 .to = v->got,
				 .late = v->got > 0,
				 .rest = rest,
				 .n = (unsigned)((v->want + piece - 1) / piece)};
	s->id = s->word ? weft_comm_ids_give(&core->ids, r, weft_comm_id_recv(g->peer)) : 0;
	if (!s->id) {
		slot_give(core, slot);
		return false;
	}
	weft_comm_share_open(s->word, s->number, (unsigned)(v->got / piece), s->n);
	v->share = (uint8_t)(slot + 1);
	if (post_offer(g, r, s, slot))
		return true;
	if (!weft_comm_ids_take(&core->ids, s->id, weft_comm_id_recv(g->peer)))
		return true; /* the peer is gone, and weft_comm_share_abandon has been here */
	v->share = 0;
	slot_give(core, slot);
	return false;
}

/* A sender that waits takes it before we have fetched anything. */
static bool taken(struct weft_req *r, int turns)
{
	struct weft_share *s = share_of(r);
	for (int i = 0; i < turns; i++, weft_cpu_relax())
		/* Relaxed: a hint; who fetches claims. */
		if (weft_comm_share_back_of(atomic_load_explicit(s->word, memory_order_relaxed)) !=
		    s->n)
			return true;
	return false;
}

/* Its bytes keep the sender busy; it will come to this one, too. */
static bool sending(struct weft_gate *g)
{
	/* Relaxed: a hint. */
	return atomic_load_explicit(&g->x_sent_under, memory_order_relaxed) &&
	       !weft_comm_gate_down(g);
}

bool weft_comm_share_waits(struct weft_req *r)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	struct weft_share *s = v->share ? share_of(r) : NULL;
	if (!s || !s->rest || s->to || !sending(v->gate) || weft_task_engine_behind() ||
	    taken(r, 1))
		return false;
	return s->waited++ < WAIT_ROUNDS;
}

bool weft_comm_share_begin(struct weft_req *r)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	struct weft_gate *g = v->gate;
	size_t both = g->core->share_min;

	/* Once more, after the fetch was left for a while: what has been offered may be taken. */
	if (v->share)
		return false;
	weft_comm_path_cost_end(&g->x_ways, &v->trip, 0);
	if (!possible(r, both < SENT_LEAST ? both : SENT_LEAST) || !worth_it(g))
		return false;
	bool rest = weft_comm_path_cost_begin(&g->x_ways, kind_of(r), v->want, &v->trip) ==
		    WEFT_WAYS_SENT;
	if (!rest && (r->buf.type || v->want < both))
		return false;
	if (offer_rest(r, piece_of(v->want, rest), rest))
		return rest && taken(r, sending(g) ? 1 : TAKE_TURNS);
	weft_comm_path_cost_end(&g->x_ways, &v->trip, 0);
	return false;
}

void weft_comm_share_late(struct weft_req *r)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	struct weft_gate *g = v->gate;

	/* Offers that came to nothing do not count here: beside what is left one costs little. */
	if (!r->buf.type && v->got % LATE_PIECE == 0 && v->want - v->got > LATE_PIECE &&
	    v->want / LATE_PIECE < WEFT_SHARE_PIECES && possible(r, g->core->share_min) &&
	    g->driver->awake && g->driver->awake(g->net, g->peer))
		(void)offer_rest(r, LATE_PIECE, false);
}

/* Fetched, and reported if need be. */
static void share_end(struct weft_req *r)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	struct weft_gate *g = v->gate;
	struct weft_share *s = share_of(r);
	struct weft_core *core = g->core;
	uint64_t front = (uint64_t)(s->n - s->helped) * s->piece;
	uint64_t back = front < v->want ? v->want - front : 0;
	bool failed = s->failed, whole = s->placed == back;

	if (s->rest && s->helped)
		atomic_fetch_sub_explicit(&g->x_sent_under, 1, memory_order_relaxed);
	slot_give(core, v->share - 1);
	v->share = 0;
	if (weft_comm_gate_down(g)) {
		r->status.bytes = 0;
		weft_comm_recv_finish(r, WEFT_ERR_PEER);
	} else if (failed) {
		weft_comm_path_cost_end(&g->x_ways, &v->trip, 0);
		/* Relaxed: a hint for the next message. */
		atomic_store_explicit(&g->x_get_failed, true, memory_order_relaxed);
		weft_comm_rndv_go_on(r);
	} else if (!whole) {
		v->got = 0;
		weft_comm_path_cost_end(&g->x_ways, &v->trip, 0);
		weft_comm_copy_start(core, r, false, true);
	} else {
		weft_comm_path_cost_end(&g->x_ways, &v->trip, v->want);
		weft_count(back ? WEFT_CNT_RNDV_SHARED : WEFT_CNT_RNDV_FETCHED, 1);
		weft_comm_gate_fin_as(g, v->out.rts.id, v->quiet);
		weft_comm_recv_finish(r, WEFT_OK);
	}
}

static void through(struct weft_req *r, unsigned who)
{
	/* BOTH: whoever comes second sees what the other has left in the share, and goes on. */
	if (atomic_fetch_or_explicit(&share_of(r)->x_through, who, memory_order_acq_rel))
		share_end(r);
}

/* Nothing is left to fetch. */
static void pulled(struct weft_req *r, struct weft_share *s)
{
	struct weft_gate *g = weft_comm_req_recv(r)->gate;
	s->helped = weft_comm_share_close(s->word, s->number, s->n);
	if (s->rest && s->helped)
		/* Relaxed: a hint. */
		atomic_fetch_add_explicit(&g->x_sent_under, 1, memory_order_relaxed);
	if (s->helped || !s->late)
		learn(g, s->helped);
	if (!s->helped && weft_comm_ids_take(&g->core->ids, s->id, weft_comm_id_recv(g->peer)))
		share_end(r);
	else
		through(r, PULLED);
}

/* More to fetch?  While nobody helps, as much at a time as without help. */
static bool claim(struct weft_share *s, uint64_t want)
{
	unsigned first, most = s->at ? (unsigned)(WEFT_SHARE_PIECE_MAX / s->piece) : 1;
	/* Relaxed: a hint. */
	uint64_t w = atomic_load_explicit(s->word, memory_order_relaxed);
	if (!most || weft_comm_share_back_of(w) != s->n)
		most = 1;
	unsigned n = weft_comm_share_front(s->word, s->number, most, &first);
	/* Whatever the word says, it is ours to fetch what comes next, and no more than there is.
	 */
	if (!n || first * s->piece != s->at)
		return false;
	s->to = s->at + n * s->piece < want ? s->at + n * s->piece : want;
	return true;
}

bool weft_comm_share_pull_step(struct weft_req *r)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	struct weft_gate *g = v->gate;
	struct weft_core *core = g->core;
	struct weft_share *s = share_of(r);
	bool down = weft_comm_gate_down(g);

	if (!down && (s->at < s->to || claim(s, v->want))) {
		size_t len =
			s->to - s->at < WEFT_SHARE_PIECE_MAX ? s->to - s->at : WEFT_SHARE_PIECE_MAX;
		if (!weft_comm_pull_piece(r, s->at, len, &len)) {
			s->at += len;
			return false;
		}
		s->failed = true;
	}
	pulled(r, s);
	/* LAST -> SEE (weft_comm_core_idle).  Carries: the answers that its steps have posted. */
	atomic_fetch_sub_explicit(&core->x_owed, 1, memory_order_acq_rel);
	return true;
}

void weft_comm_share_report(struct weft_gate *g, const struct weft_wire *h)
{
	struct weft_req *r =
		weft_comm_ids_take(&g->core->ids, h->context, weft_comm_id_recv(g->peer));
	if (!r || !weft_comm_req_recv(r)->share) {
		weft_comm_gate_protocol_error(g, "a report that nobody asked for");
		if (r)
			weft_comm_rndv_recv_over(r, WEFT_ERR_PEER); /* a window may be open */
		return;
	}
	share_of(r)->placed = h->length;
	through(r, REPORTED);
}

bool weft_comm_share_expects(struct weft_req *r, uint64_t off, size_t len)
{
	struct weft_share *s = share_of(r);
	return s->rest && len && (s->placed ? off == s->next : off % s->piece == 0);
}

void weft_comm_share_came(struct weft_req *r, uint64_t off, size_t len)
{
	struct weft_core_req_recv *v = weft_comm_req_recv(r);
	struct weft_share *s = share_of(r);

	s->placed += len;
	s->next = off + len;
	if (s->next == v->want &&
	    weft_comm_ids_take(&v->gate->core->ids, s->id, weft_comm_id_recv(v->gate->peer)))
		through(r, REPORTED);
}

bool weft_comm_share_abandon(struct weft_req *r)
{
	if (!weft_comm_req_recv(r)->share)
		return false;
	through(r, REPORTED); /* the gate is down: that is what the request will end with */
	return true;
}
