/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oracle.c - what must come of what the ranks did.
 *
 * It does not follow the protocols; it looks at what came out:
 *
 *   whole     a receive gets the bytes of exactly one message that fits it
 *   once      no message is received twice
 *   order     if a receive gets a message, every earlier message of the same sender and context
 *             that fits it too went to an earlier receive (or was lost without fault: a peer
 *             that is gone, a context that was closed)
 *   no loss   between ranks that live and see each other, every message is received
 *   an end    every operation ends; with WEFT_ERR_PEER only if a link that it may need is broken
 *   memory    eager payload that lies unreceived stays within the credit; at the end none of it,
 *             no id, no packet, no wildcard is left
 */
#include <stdlib.h>
#include "comm/match/bucket.h"
#include "comm/recv/msg.h"
#include "comm/request.h"
#include "traffic.h"

void sim_oracle_sent(struct message *m, const struct weft_req *req)
{
	CHECK(!m->done && !m->refused);
	m->done = true;
	SIM_SAY("send %u is over: %d", m->number, req->status.err);
	if (req->status.err == WEFT_ERR_PEER) {
		CHECK(sim_broken(m->from, m->to));
		sim_cover(SIM_FAILED_SEND);
	} else if (req->status.err == WEFT_ERR_CANCELLED) {
		CHECK(m->from == m->to && !traffic.open_ctx[m->to][m->ctx]);
	} else {
		CHECK_EQ(req->status.err, WEFT_OK);
	}
}

static bool fits(const struct receive *r, const struct message *m)
{
	return r->rank == m->to && r->ctx == m->ctx &&
	       (r->peer == WEFT_ANY_PEER || r->peer == m->from) &&
	       (r->tag == WEFT_ANY_TAG || r->tag == m->tag);
}

/* The message that r has got: named by its first bytes, or by its tag if it has none. */
static struct message *message_of(const struct receive *r, const struct weft_req *req,
				  const char *data)
{
	unsigned number;
	if (req->status.bytes >= sizeof number) {
		memcpy(&number, data, sizeof number);
	} else {
		/* Without bytes: the sender has given it a tag of its own. */
		CHECK(req->status.tag >= SIM_TAGS);
		number = (unsigned)(req->status.tag - SIM_TAGS);
	}
	CHECK(number < traffic.n_messages);
	CHECK(fits(r, &traffic.message[number]));
	return &traffic.message[number];
}

static void check_payload(struct receive *r, const struct weft_req *req)
{
	size_t n = req->status.bytes;
	char *data = malloc(n + 1);
	CHECK(data && n <= r->room);
	struct weft_buf b = buffer(r->buf, r->room, r->type);
	weft_data_pack(&b, 0, data, n);
	struct message *m = message_of(r, req, data);
	SIM_SAY("receive %u has got %u", r->number, m->number);
	CHECK_EQ(req->status.peer, m->from);
	CHECK_EQ(req->status.tag, m->tag);
	CHECK_EQ(n, m->bytes < r->room ? m->bytes : r->room);
	CHECK_EQ(req->status.err, n < m->bytes ? WEFT_ERR_TRUNC : WEFT_OK);
	char *want = malloc(n + 1);
	CHECK(want);
	fill(want, m->number, n);
	CHECK(!memcmp(want, data, n));
	/* Nothing beyond, nothing between. */
	size_t all = r->type ? span(r->room) : r->room + 1;
	for (size_t i = r->type ? BLOCK : n; i < all; i += r->type ? STRIDE : all)
		CHECK_EQ(r->buf[i], 'x');
	free(want);
	free(data);
	CHECK(!m->to_recv);
	m->to_recv = r;
	r->got = m;
	if (n < m->bytes)
		sim_cover(SIM_TRUNCATED);
	if (r->type)
		sim_cover(SIM_TYPED_RECV);
}

bool sim_oracle_anybody_broken(int rank)
{
	for (int p = 0; p < sim.plan.ranks; p++)
		if (p != rank && sim_broken(rank, p))
			return true;
	return false;
}

void sim_oracle_received(struct receive *r, const struct weft_req *req)
{
	CHECK(!r->done && !r->refused);
	r->done = true;
	if (req->status.cancelled) {
		CHECK(r->cancelled || !traffic.open_ctx[r->rank][r->ctx]);
		r->cancelled = true;
	} else if (req->status.err == WEFT_ERR_PEER) {
		SIM_SAY("receive %u has failed", r->number);
		CHECK(r->peer == WEFT_ANY_PEER ? sim_oracle_anybody_broken(r->rank)
					       : sim_broken(r->rank, r->peer));
		sim_cover(r->peer == WEFT_ANY_PEER ? SIM_FAILED_WILD : SIM_FAILED_RECV);
	} else {
		check_payload(r, req);
	}
	free(r->buf);
	r->buf = NULL;
	if (r->type)
		weft_data_type_unref(r->type);
}

struct lying {
	struct weft_ctx *ctx;
	unsigned n;
};

static void add_lying(struct weft_bucket *b, struct weft_keyed *n, void *arg)
{
	struct lying *l = arg;
	(void)b;
	for (; n && n->ctx == l->ctx && n->kind == WEFT_KEYED_MSG; n = n->next)
		l->n++;
}

unsigned sim_oracle_lying(struct weft_ctx *ctx)
{
	struct lying l = {.ctx = ctx};
	weft_comm_match_scan(&ctx->core->match, NULL, add_lying, &l);
	return l.n;
}

static void add_held(struct weft_bucket *b, struct weft_keyed *n, void *arg)
{
	uint64_t *bytes = arg;
	(void)b;
	for (; n && n->kind == WEFT_KEYED_MSG; n = n->next)
		if (weft_comm_msg_of(n)->msg_kind == WEFT_MSG_EAGER)
			bytes[n->peer] += weft_comm_msg_of(n)->length;
}

/* Eager payload of each sender that lies unreceived with a rank. */
void sim_traffic_look(void)
{
	sim_rails_look();
	sim_strategy_look();
	for (int r = 0; r < sim.plan.ranks; r++) {
		uint64_t held[SIM_RANKS] = {0};
		weft_comm_match_scan(&sim.rank[r].core->match, NULL, add_held, held);
		for (int p = 0; p < sim.plan.ranks; p++)
			CHECK(r == p || held[p] <= sim.plan.credit);
	}
}

/* Whatever needs the peer is over, and so is whatever it might have been the one for. */
void sim_traffic_down(int rank, int peer, unsigned since)
{
	if (sim.plan.tasks || sim.ending)
		return; /* a copy under way holds its request until the engine comes to it */
	for (unsigned i = 0; i < traffic.n_messages; i++) {
		const struct message *m = &traffic.message[i];
		if (m->from == rank && m->to == peer && m->ended && m->ended < since)
			CHECK(m->done || m->refused);
	}
	for (unsigned i = 0; i < traffic.n_receives; i++) {
		const struct receive *r = &traffic.receive[i];
		if (r->rank != rank || !r->req || !r->ended || r->ended > since)
			continue;
		if (r->peer == peer)
			CHECK(r->done);
		else if (r->peer == WEFT_ANY_PEER)
			CHECK(!atomic_load_explicit(
				&weft_comm_req_recv(r->req)->entry.node.x_listed,
				memory_order_relaxed));
	}
}

/* Between ranks that live and see each other. */
static bool sound(int a, int b)
{
	return a == b ? !sim.rank[a].dead : !sim_broken(a, b);
}

/* Calls have an order if one had returned before the other began; two "threads" have none. */
static void check_order(const struct receive *r)
{
	const struct message *got = r->got;
	for (unsigned i = 0; i < got->number; i++) {
		const struct message *m = &traffic.message[i];
		if (m->from != got->from || m->refused || !fits(r, m) || m->to_recv == r ||
		    m->ended > got->began)
			continue;
		if (m->to_recv) {
			CHECK(m->to_recv->began < r->ended);
		} else {
			CHECK(m->over || !sound(m->from, m->to));
		}
	}
}

static void check_core(int rank)
{
	struct weft_core *core = sim.rank[rank].core;
	CHECK(weft_comm_core_idle(core));
	/* Relaxed: one thread. */
	CHECK_EQ(atomic_load_explicit(&core->ids.x_live, memory_order_relaxed), 0);
	for (struct weft_ctx *c = core->ctx_all; c; c = c->next_all) {
		CHECK(!c->all_head && !c->wild_head && !c->probes && !sim_oracle_lying(c));
		CHECK_EQ(atomic_load_explicit(&c->x_unexpected, memory_order_relaxed), 0);
		CHECK_EQ(atomic_load_explicit(&c->x_wild, memory_order_relaxed), 0);
	}
	for (int p = 0; p < sim.plan.ranks; p++) {
		struct weft_gate *g = &core->gate[p], *back = &sim.rank[p].core->gate[rank];
		if (p == rank || sim_broken(rank, p))
			continue;
		CHECK_EQ(atomic_load_explicit(&g->x_credit_spent, memory_order_relaxed),
			 atomic_load_explicit(&back->x_used, memory_order_relaxed) +
				 atomic_load_explicit(&back->x_used_late, memory_order_relaxed));
		CHECK_EQ(atomic_load_explicit(&g->x_credit_got, memory_order_relaxed),
			 atomic_load_explicit(&back->x_returned, memory_order_relaxed));
	}
}

void sim_traffic_end(void)
{
	for (unsigned i = 0; i < traffic.n_messages; i++) {
		struct message *m = &traffic.message[i];
		if (!sim.rank[m->from].dead)
			CHECK(m->done || m->refused);
		if (sound(m->from, m->to) && !m->over)
			CHECK(m->to_recv && m->done);
	}
	for (unsigned i = 0; i < traffic.n_receives; i++) {
		struct receive *r = &traffic.receive[i];
		if (!sim.rank[r->rank].dead)
			CHECK(r->done || r->refused);
		if (r->got)
			check_order(r);
	}
	for (int r = 0; r < sim.plan.ranks; r++)
		if (!sim.rank[r].dead)
			check_core(r);
}
