/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gate.c - the way to one peer: a mask, and a queue of packets that could not go at once.
 *
 * The holder of the mask posts.  A thread that finds it taken pushes its packet onto x_in and leaves
 * the bit SKIPPED; the holder, leaving, exchanges the mask with FREE and, if it finds the bit, takes
 * the mask again and posts what was pushed.  So no packet is lost, and no thread waits for the mask.
 *
 * Completions are made after the mask is free: they may start operations on the same gate.
 */
#include <stdlib.h>
#include <string.h>
#include "base/backoff.h"
#include "comm/send/gate.h"
#include "comm/send/pack.h"
#include "task/task.h"

/* What a round of posting leaves to be done without the mask. */
struct finished {
	struct weft_out *over;   /* posted, their pieces are free */
	struct weft_out *failed; /* will never be posted */
};

void weft_comm_gate_init(struct weft_gate *g, struct weft_core *core, int peer)
{
	memset(g, 0, sizeof *g);
	g->core = core;
	g->peer = peer;
	weft_wait_owner_init(&g->owner, 0);
	g->out_tail = &g->out_head;
	g->data_tail = &g->data_head;
	g->strategy = &weft_comm_strategy_fifo;
}

/* Behind what waits of its kind. */
static void append_locked(struct weft_gate *g, struct weft_out *o)
{
	weft_assert_held(weft_comm_gate, g);
	bool apart = o->type == WEFT_OUT_DATA && g->strategy->apart;
	struct weft_out ***tail = apart ? &g->data_tail : &g->out_tail;
	o->next = NULL;
	**tail = o;
	*tail = &o->next;
}

/* Moves what was pushed behind what waits, oldest first. */
static void gather_locked(struct weft_gate *g)
{
	weft_assert_held(weft_comm_gate, g);
	/* Relaxed: empty is common; the exchange below orders. */
	if (!atomic_load_explicit(&g->x_in, memory_order_relaxed))
		return;
	/* SEE <- PUB (submit).  Carries: the packets' fields. */
	struct weft_out *in = atomic_exchange_explicit(&g->x_in, NULL, memory_order_acquire);
	struct weft_out *first = NULL, *last = in;
	while (in) {
		struct weft_out *next = in->next;
		in->next = first;
		first = in;
		in = next;
	}
	if (!first)
		return;
	if (weft_unlikely(g->strategy->apart)) {
		while (first) {
			struct weft_out *next = first->next;
			append_locked(g, first);
			first = next;
		}
		return;
	}
	*g->out_tail = first;
	last->next = NULL;
	g->out_tail = &last->next;
}

static struct weft_out *pop_locked(struct weft_gate *g)
{
	weft_assert_held(weft_comm_gate, g);
	struct weft_out *o = g->out_head;
	g->out_head = o->next;
	if (!g->out_head)
		g->out_tail = &g->out_head;
	return o;
}

static void push_front_locked(struct weft_gate *g, struct weft_out *o)
{
	weft_assert_held(weft_comm_gate, g);
	o->next = g->out_head;
	if (!g->out_head)
		g->out_tail = &o->next;
	g->out_head = o;
}

/* The next that may go, taken out of what waits; NULL: none. */
static struct weft_out *next_locked(struct weft_gate *g)
{
	weft_assert_held(weft_comm_gate, g);
	if (g->out_head)
		return pop_locked(g);
	if (weft_likely(!g->data_head))
		return NULL;
	/* Relaxed: the thread that lowers it kicks the gate afterwards. */
	int under = atomic_load_explicit(&g->x_data_under, memory_order_relaxed);
	if (under >= (int)g->strategy->ahead && !weft_comm_gate_down(g))
		return NULL;
	return g->strategy->next_locked(g);
}

/* It could not go, or only a part of it. */
static void put_back_locked(struct weft_gate *g, struct weft_out *o)
{
	weft_assert_held(weft_comm_gate, g);
	if (o->type != WEFT_OUT_DATA || !g->strategy->apart) {
		push_front_locked(g, o);
	} else if (g->yielded) {
		append_locked(g, o); /* the turn of the other messages */
	} else {
		o->next = g->data_head;
		if (!g->data_head)
			g->data_tail = &o->next;
		g->data_head = o;
	}
}

static enum weft_post post_control_locked(struct weft_gate *g, struct weft_out *o)
{
	weft_assert_held(weft_comm_gate, g);
	return weft_comm_gate_post_locked(g, &o->head, NULL, 0, 0, NULL);
}

static void control_over(struct weft_gate *g, struct weft_out *o)
{
	weft_comm_answer_free(&g->core->answers, o);
}

const struct weft_out_ops weft_comm_gate_control_ops = {
	.post_locked = post_control_locked, .posted = control_over, .failed = control_over};

static const struct weft_out_ops *ops_of(const struct weft_gate *g, const struct weft_out *o)
{
	return g->core->out_ops[o->type];
}

static enum weft_post post_locked(struct weft_gate *g, struct weft_out *o)
{
	weft_assert_held(weft_comm_gate, g);
	return ops_of(g, o)->post_locked(g, o);
}

/* Into the pack if it may travel in one, else behind what is packed. */
static enum weft_post pack_or_post_locked(struct weft_gate *g, struct weft_out *o)
{
	weft_assert_held(weft_comm_gate, g);
	bool fits = weft_comm_pack_fits(g, o);
	if (fits && weft_comm_pack_add_locked(g, o))
		return WEFT_POST_DONE;
	enum weft_post p = weft_comm_pack_send_locked(g);
	if (p != WEFT_POST_DONE)
		return p;
	return fits && weft_comm_pack_add_locked(g, o) ? p : post_locked(g, o);
}

static enum weft_post try_locked(struct weft_gate *g, struct weft_out *o)
{
	weft_assert_held(weft_comm_gate, g);
	if (weft_comm_gate_down(g))
		return WEFT_POST_DOWN;
	return weft_unlikely(g->pack) ? pack_or_post_locked(g, o) : post_locked(g, o);
}

/* Posts until the queue is empty or the network full.  A packet is out of the queue before it is
 * posted: once it is, the peer's answer may already end its request. */
static void drain_locked(struct weft_gate *g, struct finished *a)
{
	weft_assert_held(weft_comm_gate, g);
	gather_locked(g);
	/* Bound: each round shortens the queue, or ends. */
	for (struct weft_out *o; (o = next_locked(g));) {
		const struct weft_out_ops *ops = ops_of(g, o);
		if (ops->choose_locked)
			ops->choose_locked(g, o);
		bool matters = ops_of(g, o)->posted;
		enum weft_post r = try_locked(g, o);
		if (r == WEFT_POST_FULL) {
			bool yielded = g->yielded;
			put_back_locked(g, o);
			g->yielded = false;
			if (!yielded)
				break;
		}
		if (r == WEFT_POST_DOWN) {
			o->next = a->failed;
			a->failed = o;
		} else if (r == WEFT_POST_DONE && matters) {
			o->next = a->over;
			a->over = o;
		}
		if (!g->out_head)
			gather_locked(g);
	}
	/* Nothing else is there to go with it.  Full: ready() comes back here. */
	if (weft_comm_pack_waits(g))
		(void)weft_comm_pack_send_locked(g);
}

weft_err weft_comm_gate_copy(struct weft_gate *g, bool write, uint64_t there,
			     const struct iovec *iov, unsigned n, size_t len)
{
	const struct weft_net_ticket ticket = {there, len, WEFT_NET_KEY_ANY};
	const struct weft_net_span all = {0, len};
	const struct weft_net_transfer t = {.write = write,
					    .there = &ticket,
					    .span = &all,
					    .n_spans = 1,
					    .piece = iov,
					    .n_pieces = n};
	enum weft_post p = g->driver->transfer(g->net, g->peer, &t);
	if (weft_likely(p == WEFT_POST_DONE))
		return WEFT_OK;
	return p == WEFT_POST_DOWN ? WEFT_ERR_PEER : WEFT_ERR_SYS;
}

/* What was left to do once the mask is free.  In the order of posting. */
static void finish_outs(struct weft_gate *g, struct finished *a)
{
	struct weft_out *in_order = NULL;
	while (a->over) {
		struct weft_out *o = a->over;
		a->over = o->next;
		o->next = in_order;
		in_order = o;
	}
	while (in_order) {
		struct weft_out *o = in_order;
		in_order = o->next;
		ops_of(g, o)->posted(g, o);
	}
	while (a->failed) {
		struct weft_out *o = a->failed;
		a->failed = o->next;
		ops_of(g, o)->failed(g, o);
	}
}

/* A thread left SKIPPED while the mask was held, which is free now: takes it again and posts, as
 * long as that happens. */
void weft_comm_gate_leave_skipped(struct weft_gate *g)
{
	for (;;) {
		struct finished a = {NULL, NULL};
		/* A new holder came after this thread's exchange, so it sees what the skipper
		 * pushed.  Ends: one round per burst of skippers. */
		if (atomic_fetch_or_explicit(&g->x_mask, WEFT_GATE_HELD | WEFT_GATE_SKIPPED,
					     memory_order_acq_rel) &
		    WEFT_GATE_HELD)
			return;
		/* Acquire, as for the exchange above; only the holder clears the bit, and reads the
		 * queue next. */
		atomic_fetch_and_explicit(&g->x_mask, ~WEFT_GATE_SKIPPED, memory_order_acquire);
		weft_wait_owner_taken(&g->owner);
		drain_locked(g, &a);
		/* GIVE -> TAKE, SEE <- SKIP: as in weft_comm_gate_leave. */
		uint32_t old =
			atomic_exchange_explicit(&g->x_mask, WEFT_GATE_FREE, memory_order_acq_rel);
		finish_outs(g, &a);
		if (!(old & WEFT_GATE_SKIPPED))
			return;
	}
}

/* Frees the mask, and sees to what a round left to be done. */
static void leave_and_finish(struct weft_gate *g, struct finished *a)
{
	/* GIVE -> TAKE, SEE <- SKIP: as in weft_comm_gate_leave. */
	uint32_t old = atomic_exchange_explicit(&g->x_mask, WEFT_GATE_FREE, memory_order_acq_rel);
	finish_outs(g, a);
	if (weft_unlikely(old & WEFT_GATE_SKIPPED))
		weft_comm_gate_leave_skipped(g);
}

void weft_comm_gate_kick(struct weft_gate *g)
{
	/* SKIP -> SEE (leave).  Carries: what the caller pushed.  Acquire, in case it becomes the
	 * holder: TAKE <- GIVE. */
	if (atomic_fetch_or_explicit(&g->x_mask, WEFT_GATE_HELD | WEFT_GATE_SKIPPED,
				     memory_order_acq_rel) &
	    WEFT_GATE_HELD) {
		return;
	}
	/* Held; the bit is for threads that come from now on. */
	atomic_fetch_and_explicit(&g->x_mask, ~WEFT_GATE_SKIPPED, memory_order_acquire);
	weft_wait_owner_taken(&g->owner);
	struct finished a = {NULL, NULL};
	drain_locked(g, &a);
	leave_and_finish(g, &a);
}

void weft_comm_gate_push(struct weft_gate *g, struct weft_out *o)
{
	/* Relaxed: the push below orders. */
	struct weft_out *head = atomic_load_explicit(&g->x_in, memory_order_relaxed);
	do {
		o->next = head;
		/* PUB -> SEE (gather).  Carries: the packet's fields.
		 * Without it, the holder could post a head that is not written yet. */
	} while (!atomic_compare_exchange_weak_explicit(&g->x_in, &head, o, memory_order_release,
							memory_order_relaxed));
}

void weft_comm_gate_submit(struct weft_gate *g, struct weft_out *o)
{
	weft_comm_gate_push(g, o);
	weft_comm_gate_kick(g);
}

void weft_comm_gate_purge(struct weft_gate *g)
{
	/* Ends when the holder leaves; a post is short. */
	unsigned turns = 0;
	while (!weft_comm_gate_try(g))
		weft_backoff(&turns);
	struct finished a = {NULL, NULL};
	drain_locked(g, &a);
	leave_and_finish(g, &a);
}

__attribute__((noinline, cold)) void weft_comm_gate_expect_first(struct weft_gate *g)
{
	/* Relaxed: see weft_comm_gate_expect. */
	atomic_store_explicit(&g->x_expected, true, memory_order_relaxed);
	if (g->driver && g->driver->expect)
		g->driver->expect(g->net, g->peer);
}

bool weft_comm_gate_empty(struct weft_gate *g)
{
	if (!weft_comm_gate_try(g))
		return false;
	bool empty = weft_comm_gate_clear_locked(g) && !g->data_head;
	weft_comm_gate_leave(g);
	return empty;
}

void weft_comm_gate_fin(struct weft_gate *g, uint32_t id)
{
	weft_comm_gate_control(g, &(struct weft_wire){.kind = WEFT_WIRE_FIN, .context = id});
}

void weft_comm_gate_fin_as(struct weft_gate *g, uint32_t id, bool quiet)
{
	weft_comm_gate_control_as(g, &(struct weft_wire){.kind = WEFT_WIRE_FIN, .context = id},
				  quiet);
}

/*
 * No memory to keep an answer in.  Either the network takes it now; or it is full, and then the
 * connection ends at its next ready(): the peer must not wait for ever.
 */
static void control_or_end(struct weft_gate *g, struct weft_wire *h)
{
	unsigned turns = 0;
	/* Ends when the holder leaves and no thread pushes in that very moment. */
	for (;; weft_backoff(&turns)) {
		if (!weft_comm_gate_try(g))
			continue;
		struct finished a = {NULL, NULL};
		/* MUTE -> READY (on_ready).  seq_cst: said before the post that answers FULL. */
		atomic_store_explicit(&g->x_mute, true, memory_order_seq_cst);
		drain_locked(g, &a);
		bool full = g->out_head || weft_comm_pack_waits(g),
		     clear = weft_comm_gate_clear_locked(g);
		if (clear)
			full = weft_comm_gate_post_locked(g, h, NULL, 0, 0, NULL) == WEFT_POST_FULL;
		if (!full)
			/* Relaxed: taken back before any thread needed it. */
			atomic_store_explicit(&g->x_mute, false, memory_order_relaxed);
		leave_and_finish(g, &a);
		if (full || clear)
			return;
	}
}

void weft_comm_gate_control_as(struct weft_gate *g, const struct weft_wire *head, bool quiet)
{
	struct weft_wire h = *head;
	if (weft_comm_gate_down(g))
		return;
	if (weft_comm_gate_try(g)) {
		enum weft_post r = WEFT_POST_FULL;
		if (weft_comm_gate_clear_locked(g))
			r = weft_comm_gate_post_as_locked(g, &h, NULL, 0, 0, NULL, quiet);
		weft_comm_gate_leave(g);
		if (r != WEFT_POST_FULL)
			return;
	}
	struct weft_out *o = weft_comm_answer_alloc(&g->core->answers);
	if (weft_unlikely(!o)) {
		if (h.kind == WEFT_WIRE_CREDIT)
			/* Relaxed: credit goes with another packet, or is tried again. */
			atomic_store_explicit(&g->x_credit_asked, false, memory_order_relaxed);
		else
			control_or_end(g, &h);
		return;
	}
	o->head = *head;
	o->type = WEFT_OUT_CTRL;
	weft_comm_gate_submit(g, o);
}

void weft_comm_gate_control(struct weft_gate *g, const struct weft_wire *head)
{
	weft_comm_gate_control_as(g, head, false);
}

/* ---- credit given back -------------------------------------------------------------------- */

void weft_comm_credit_return(struct weft_gate *g)
{
	if (weft_likely(weft_comm_credit_due(g) < g->credit_given / 2) || weft_comm_gate_down(g))
		return;
	/* Relaxed: keeps duplicates away, no more. */
	if (!atomic_exchange_explicit(&g->x_credit_asked, true, memory_order_relaxed))
		weft_comm_gate_control(g, &(struct weft_wire){.kind = WEFT_WIRE_CREDIT});
}

void weft_comm_credit_look(struct weft_gate *g)
{
	weft_comm_credit_return(g);
	/* Half less what is due, but a quarter at most: unexpected messages that leave meanwhile
	 * look for themselves, and may just miss what the poller adds. */
	uint64_t due = weft_comm_credit_due(g), half = g->credit_given / 2;
	uint64_t rest = due < half ? half - due : 0;
	/* Relaxed: the poller's own count. */
	g->used_limit = atomic_load_explicit(&g->x_used, memory_order_relaxed) +
			(rest < half / 2 ? rest : half / 2);
}

void weft_comm_gate_protocol_error(struct weft_gate *g, const char *what)
{
	g->core->peer_down(g->core, g->peer, WEFT_ERR_PROTO, what);
}

void weft_comm_gate_eager_set(struct weft_gate *g, size_t bytes)
{
	g->eager_max = bytes < g->max_payload ? bytes : g->max_payload;
	g->now_end = (g->inline_max < g->eager_max ? g->inline_max : g->eager_max) + 1;
	if (g->rtr && g->eager_max < g->core->rtr_min)
		g->core->rtr_min = g->eager_max;
}

/* ---- its promises --------------------------------------------------------------------------- */

/* A queue of packets: its tail points to the end of its last one. */
static void queue_check(struct weft_out *const *head, struct weft_out *const *tail, bool data,
			bool other)
{
	for (; *head; head = &(*head)->next)
		weft_assert((*head)->type == WEFT_OUT_DATA ? data : other);
	weft_assert(head == tail);
}

void weft_comm_gate_check(struct weft_gate *g)
{
	bool apart = g->strategy->apart;

	weft_assert(!weft_comm_gate_held(g));
	/* Relaxed, all: no thread is in the core. */
	weft_assert(!(atomic_load_explicit(&g->x_mask, memory_order_relaxed) & WEFT_GATE_SKIPPED));
	queue_check(&g->out_head, g->out_tail, !apart, true);
	queue_check(&g->data_head, g->data_tail, true, false);
	/* What was pushed has been taken in, but for sends that were left to an idle core. */
	weft_assert(!atomic_load_explicit(&g->x_in, memory_order_relaxed) || g->offload);
	weft_assert(!g->yielded);
	if (!g->driver)
		return;
	weft_assert(g->eager_max <= g->max_payload);
	weft_assert(g->now_end <= g->eager_max + 1 && g->now_end <= g->inline_max + 1);
	weft_assert(atomic_load_explicit(&g->x_data_under, memory_order_relaxed) >= 0);
	if (weft_comm_gate_down(g))
		weft_assert(!g->out_head && !g->data_head);
	if (g->pack)
		weft_comm_pack_check(g->pack);
}

void weft_comm_credit_check(const struct weft_gate *g)
{
	/* Relaxed, all: no thread is in the core. */
	uint64_t spent = atomic_load_explicit(&g->x_credit_spent, memory_order_relaxed);
	uint64_t got = atomic_load_explicit(&g->x_credit_got, memory_order_relaxed);
	uint64_t used = atomic_load_explicit(&g->x_used, memory_order_relaxed) +
			atomic_load_explicit(&g->x_used_late, memory_order_relaxed);

	weft_assert(got <= spent && spent - got <= g->credit);
	weft_assert(g->spend_limit <= got + g->credit);
	weft_assert(atomic_load_explicit(&g->x_returned, memory_order_relaxed) <= used);
	weft_assert(used <= g->recv_eager);
	/* A peer that sent more was closed. */
	if (!atomic_load_explicit(&g->x_down, memory_order_relaxed))
		weft_assert(g->recv_eager <=
			    atomic_load_explicit(&g->x_returned, memory_order_relaxed) +
				    g->credit_given);
}
