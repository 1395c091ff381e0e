/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * traffic.c - what the ranks do, and the oracle.
 *
 * The oracle does not follow the protocols; it looks at what came out:
 *
 *   whole     a receive gets the bytes of exactly one message that fits it
 *   once      no message is received twice
 *   order     if a receive gets a message, every earlier message of the same sender and context
 *             that fits it too went to an earlier receive (or to nobody who may be blamed: a peer
 *             that is gone, a context that was closed)
 *   no loss   between ranks that live and see each other, every message is received
 *   an end    every operation ends; with WEFT_ERR_PEER only if a link that it may need is broken
 *   memory    eager payload that lies unreceived stays within the credit; at the end none of it,
 *             no id, no packet, no wildcard is left
 */
#include <stdlib.h>
#include "comm/match_int.h"
#include "data/type.h"
#include "sim.h"

#define MESSAGES 512

struct message {
	int from, to, ctx, tag;
	size_t bytes;
	unsigned number; /* order of sending: over all, so also within a sender */
	struct weft_req *req;
	char *buf; /* what the send call was given */
	const struct weft_type *type;
	unsigned began, ended;    /* the call; see check_order */
	bool done, refused, over; /* over: nobody will receive it, and that is right */
	struct receive *to_recv;
};

struct receive {
	int rank, ctx, peer, tag;
	size_t room;
	unsigned number; /* order of posting, or of being taken by a probe */
	struct weft_req *req;
	char *buf;
	const struct weft_type *type;
	unsigned began, ended;
	bool done, cancelled, refused;
	struct message *got;
};

static struct message messages[MESSAGES];
static struct receive receives[2 * MESSAGES];
static unsigned n_messages, n_receives, ticks;
static bool open_ctx[SIM_RANKS][SIM_CTXS];

/* Data bytes and the bytes that they are spread over. */
#define BLOCK 48
#define STRIDE 64

static size_t span(size_t bytes)
{
	return bytes / BLOCK * STRIDE + STRIDE;
}

static char byte_of(unsigned number, size_t i)
{
	return (char)(number * 31 + i * 7 + (i >> 8));
}

/* The first bytes name the message. */
static void fill(char *p, unsigned number, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		p[i] = byte_of(number, i);
	if (bytes >= sizeof number)
		memcpy(p, &number, sizeof number);
}

static size_t pick_bytes(void)
{
	size_t e = sim.plan.eager_max < 4 ? 4 : sim.plan.eager_max;
	if (sim.plan.large && sim_pick(12) == 0)
		return 300000;
	switch (sim_pick(8)) {
	case 0:
		return 0;
	case 1:
		return e;
	case 2:
		return e + 1;
	case 3:
		return 4 + sim_pick(6000);
	default:
		return 4 + sim_pick((unsigned)e + 1);
	}
}

static const struct weft_type *pick_type(size_t bytes)
{
	const struct weft_type *t = NULL;
	if (bytes < BLOCK || bytes % BLOCK || sim_chance(30))
		return NULL;
	CHECK(!weft_type_hvector((int64_t)(bytes / BLOCK), BLOCK, STRIDE,
				 &weft_type_elem[WEFT_B_BYTE], &t));
	return t;
}

static struct weft_buf buffer(char *p, size_t bytes, const struct weft_type *t)
{
	return t ? weft_buf_typed(p, 1, t) : weft_buf_flat(p, bytes);
}

/* Requests whose memory goes at the moment they are over: who touches them later is caught. */
struct op {
	struct weft_req req;
	struct message *m;
	struct receive *r;
};

static void then(struct weft_req *req, void *arg);
static void call_send(int rank, int to);

static struct weft_req *request(struct message *m, struct receive *r)
{
	struct op *op = calloc(1, sizeof *op);
	CHECK(op);
	op->m = m;
	op->r = r;
	weft_req_init(&op->req, then, op);
	return &op->req;
}

/* ---- what is over ------------------------------------------------------------------------- */

static void check_send(struct message *m, const struct weft_req *req)
{
	CHECK(!m->done && !m->refused);
	m->done = true;
	SIM_SAY("send %u is over: %d", m->number, req->status.err);
	if (req->status.err == WEFT_ERR_PEER) {
		CHECK(sim_broken(m->from, m->to));
		sim_cover(SIM_FAILED_SEND);
	} else if (req->status.err == WEFT_ERR_CANCELLED) {
		CHECK(m->from == m->to && !open_ctx[m->to][m->ctx]);
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
	CHECK(number < n_messages);
	CHECK(fits(r, &messages[number]));
	return &messages[number];
}

static void check_payload(struct receive *r, const struct weft_req *req)
{
	size_t n = req->status.bytes;
	char *data = malloc(n + 1);
	CHECK(data && n <= r->room);
	struct weft_buf b = buffer(r->buf, r->room, r->type);
	weft_pack(&b, 0, data, n);
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

static bool anybody_broken(int rank)
{
	for (int p = 0; p < sim.plan.ranks; p++)
		if (p != rank && sim_broken(rank, p))
			return true;
	return false;
}

static void check_recv(struct receive *r, const struct weft_req *req)
{
	CHECK(!r->done && !r->refused);
	r->done = true;
	if (req->status.cancelled) {
		CHECK(r->cancelled || !open_ctx[r->rank][r->ctx]);
		r->cancelled = true;
	} else if (req->status.err == WEFT_ERR_PEER) {
		SIM_SAY("receive %u has failed", r->number);
		CHECK(r->peer == WEFT_ANY_PEER ? anybody_broken(r->rank)
					       : sim_broken(r->rank, r->peer));
		sim_cover(r->peer == WEFT_ANY_PEER ? SIM_FAILED_WILD : SIM_FAILED_RECV);
	} else {
		check_payload(r, req);
	}
	free(r->buf);
	r->buf = NULL;
	if (r->type)
		weft_type_unref(r->type);
}

static void then(struct weft_req *req, void *arg)
{
	struct op *op = arg;
	if (sim.ending) { /* a core is taken down: a dead rank's, the others have nothing left */
		CHECK(sim.rank[op->m ? op->m->from : op->r->rank].dead);
		return;
	}
	if (op->m) {
		struct message *m = op->m;
		check_send(m, req);
		m->req = NULL;
		if (m->type)
			weft_type_unref(m->type);
		/* Nobody reads it any more. */
		free(m->buf);
		m->buf = NULL;
	} else {
		check_recv(op->r, req);
		op->r->req = NULL;
	}
	int rank = op->m ? op->m->from : op->r->rank;
	int gone = op->m && req->status.err == WEFT_ERR_PEER ? op->m->to : -1;
	memset(op, 0x5a, sizeof *op);
	free(op);
	/* Who is told that something is over may go on at once. */
	if (sim.rank[rank].dead)
		return;
	if (gone >= 0) {
		call_send(rank, gone);
	} else if (sim.calls < sim.plan.ops && sim_chance(10)) {
		sim_cover(SIM_CALL_IN_THEN);
		sim_traffic_call(rank);
	}
}

/* ---- calls -------------------------------------------------------------------------------- */

static int pick_ctx(int rank)
{
	int c = (int)sim_pick(SIM_CTXS);
	return open_ctx[rank][c] ? c : 0;
}

static void refuse_send(struct message *m)
{
	CHECK(sim_broken(m->from, m->to));
	SIM_SAY("send %u is refused", m->number);
	sim_cover(SIM_REFUSED);
	m->refused = true;
	free(m->buf);
	m->buf = NULL;
	if (m->type)
		weft_type_unref(m->type);
}

static void send_message(struct message *m)
{
	int rank = m->from;
	m->ctx = pick_ctx(rank);
	m->bytes = pick_bytes();
	m->tag = m->bytes ? (int)sim_pick(SIM_TAGS) : SIM_TAGS + (int)m->number;
	if (sim_chance(30))
		m->bytes = m->bytes / BLOCK * BLOCK;
	if (!m->bytes) {
		m->tag = SIM_TAGS + (int)m->number;
		sim_cover(SIM_EMPTY);
	}
	m->type = pick_type(m->bytes);
	m->buf = malloc(span(m->bytes));
	CHECK(m->buf);
	struct weft_buf b = buffer(m->buf, m->bytes, m->type);
	char *flat = malloc(m->bytes + 1);
	CHECK(flat);
	fill(flat, m->number, m->bytes);
	weft_unpack(&b, 0, flat, m->bytes);
	free(flat);
	if (m->type)
		sim_cover(SIM_TYPED_SEND);
	if (m->to == rank)
		sim_cover(SIM_SELF);
	struct weft_ctx *c = sim.rank[rank].ctx[m->ctx];
	SIM_SAY("%d sends %u to %d: ctx %d tag %d bytes %zu%s", rank, m->number, m->to, m->ctx,
		m->tag, m->bytes, m->type ? " typed" : "");
	if (sim_chance(25)) {
		weft_err err = weft_send_now(c, m->to, m->tag, &b);
		if (err == WEFT_ERR_PEER) {
			refuse_send(m);
			return;
		}
		if (!err) {
			sim_cover(SIM_SEND_NOW);
			m->done = true;
			memset(m->buf, 0x55, span(m->bytes));
			free(m->buf);
			m->buf = NULL;
			if (m->type)
				weft_type_unref(m->type);
			return;
		}
		CHECK_EQ(err, WEFT_AGAIN);
	}
	uint64_t asked = weft_counter_sum(WEFT_CNT_CREDIT_ASKED);
	struct weft_req *req = m->req = request(m, NULL);
	enum weft_send_mode mode = sim_chance(25) ? WEFT_SEND_SYNC : WEFT_SEND_STANDARD;
	weft_err err = weft_isend(req, c, m->to, m->tag, &b, mode);
	if (weft_counter_sum(WEFT_CNT_CREDIT_ASKED) != asked)
		sim_cover(SIM_NO_CREDIT);
	if (err) {
		CHECK_EQ(err, WEFT_ERR_PEER);
		m->req = NULL;
		free(req);
		refuse_send(m);
	}
}

static void call_send(int rank, int to)
{
	if (n_messages == MESSAGES)
		return;
	struct message *m = &messages[n_messages];
	*m = (struct message){.from = rank, .to = to, .number = n_messages++, .began = ticks++};
	send_message(m);
	m->ended = ticks++;
}

static struct receive *receive_make(int rank, int ctx)
{
	if (n_receives == 2 * MESSAGES)
		return NULL;
	struct receive *r = &receives[n_receives];
	*r = (struct receive){.rank = rank, .ctx = ctx, .number = n_receives++, .began = ticks++};
	r->room = sim_chance(70) ? 6000 : pick_bytes();
	if (sim.plan.large)
		r->room = sim_chance(80) ? 300000 : r->room;
	if (r->room < 16)
		r->room = 16;
	if (sim_chance(30))
		r->room = (r->room + BLOCK - 1) / BLOCK * BLOCK;
	r->type = pick_type(r->room);
	r->buf = malloc(span(r->room));
	CHECK(r->buf);
	memset(r->buf, 'x', span(r->room));
	return r;
}

static void receive_drop(struct receive *r)
{
	r->refused = true;
	free(r->buf);
	r->buf = NULL;
	if (r->type)
		weft_type_unref(r->type);
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

/* Messages that lie in a context, in lists or not. */
static unsigned lying(struct weft_ctx *ctx)
{
	struct lying l = {.ctx = ctx};
	weft_match_scan(&ctx->core->match, NULL, add_lying, &l);
	return l.n;
}

/* Is a payload half there? */
static bool is_arriving(int from, int rank)
{
	return !sim.plan.bundle && sim_lane_of(from, rank, sim_rail_of(from, rank))->placing;
}

static void post_receive(int rank, int ctx, int peer, int tag)
{
	struct receive *r = receive_make(rank, ctx);
	if (!r)
		return;
	r->peer = peer;
	r->tag = tag;
	if (peer == WEFT_ANY_PEER)
		sim_cover(SIM_WILD_PEER);
	if (tag == WEFT_ANY_TAG)
		sim_cover(SIM_WILD_TAG);
	SIM_SAY("%d receives %u from %d: ctx %d tag %d room %zu", rank, r->number, peer, ctx, tag,
		r->room);
	bool arriving = false;
	for (int p = 0; p < sim.plan.ranks; p++)
		arriving = arriving || is_arriving(p, rank);
	struct weft_buf b = buffer(r->buf, r->room, r->type);
	struct weft_req *req = r->req = request(NULL, r);
	struct weft_ctx *c = sim.rank[rank].ctx[ctx];
	unsigned before = arriving ? lying(c) : 0;
	weft_err err = weft_irecv(req, c, peer, tag, &b);
	r->ended = ticks++;
	if (!err && arriving && !r->done && lying(c) < before)
		sim_cover(SIM_CLAIMED_ARRIVING);
	if (err) {
		CHECK_EQ(err, WEFT_ERR_PEER);
		CHECK(peer == WEFT_ANY_PEER ? anybody_broken(rank) : sim_broken(rank, peer));
		sim_cover(SIM_REFUSED);
		r->req = NULL;
		free(req);
		receive_drop(r);
	}
}

static void call_receive(int rank)
{
	post_receive(rank, pick_ctx(rank),
		     sim_pick(3) ? (int)sim_pick((unsigned)sim.plan.ranks) : WEFT_ANY_PEER,
		     sim_pick(3) ? (int)sim_pick(SIM_TAGS) : WEFT_ANY_TAG);
}

static void call_probe(int rank)
{
	int c = pick_ctx(rank);
	int peer = sim_pick(3) ? (int)sim_pick((unsigned)sim.plan.ranks) : WEFT_ANY_PEER;
	int tag = sim_pick(3) ? (int)sim_pick(SIM_TAGS) : WEFT_ANY_TAG;
	struct weft_ctx *ctx = sim.rank[rank].ctx[c];
	struct weft_status st;

	if (!weft_iprobe(ctx, peer, tag, &st))
		return;
	sim_cover(SIM_PROBED);
	if (sim_chance(50))
		return;
	struct receive *r = receive_make(rank, c);
	if (!r)
		return;
	struct weft_msg *msg;
	struct weft_status taken;
	/* Nothing has moved in between. */
	CHECK(weft_improbe(ctx, peer, tag, &msg, &taken));
	CHECK(taken.peer == st.peer && taken.tag == st.tag && taken.bytes == st.bytes);
	r->peer = taken.peer;
	r->tag = taken.tag;
	SIM_SAY("%d takes what %u gets, from %d tag %d", rank, r->number, r->peer, r->tag);
	struct weft_buf b = buffer(r->buf, r->room, r->type);
	r->req = request(NULL, r);
	bool arriving = is_arriving(taken.peer, rank);
	CHECK(!weft_imrecv(r->req, msg, &b));
	r->ended = ticks++; /* a peer that dies while we are inside is found when we are through */
	if (arriving && !r->done && taken.bytes <= sim.plan.eager_max)
		sim_cover(SIM_TAKEN_ARRIVING);
}

static bool cancel(struct receive *r)
{
	r->cancelled = true; /* its completion comes from within */
	if (weft_recv_cancel(r->req)) {
		SIM_SAY("receive %u is cancelled", r->number);
		sim_cover(SIM_CANCELLED);
		return true;
	}
	r->cancelled = false;
	sim_cover(SIM_CANCEL_LATE);
	return false;
}

static void call_cancel(int rank)
{
	struct receive *r = n_receives ? &receives[sim_pick(n_receives)] : NULL;
	if (r && r->rank == rank && r->req)
		(void)cancel(r);
}

static void open_late(int rank)
{
	int c = SIM_CTXS - 2;
	if (open_ctx[rank][c])
		return;
	CHECK(!weft_core_ctx_open(sim.rank[rank].core, (uint32_t)c + 1, &sim.rank[rank].ctx[c]));
	open_ctx[rank][c] = true;
	weft_ctx_priority(sim.rank[rank].ctx[c], c);
	if (lying(sim.rank[rank].ctx[c]))
		sim_cover(SIM_LATE_CTX);
}

void sim_traffic_call(int rank)
{
	unsigned what = sim_pick(100);
	if (what < 42)
		call_send(rank, (int)sim_pick((unsigned)sim.plan.ranks));
	else if (what < 82)
		call_receive(rank);
	else if (what < 90)
		call_probe(rank);
	else if (what < 95)
		call_cancel(rank);
	else
		open_late(rank);
}

/* ---- the oracle --------------------------------------------------------------------------- */

static void add_held(struct weft_bucket *b, struct weft_keyed *n, void *arg)
{
	uint64_t *bytes = arg;
	(void)b;
	for (; n && n->kind == WEFT_KEYED_MSG; n = n->next)
		if (weft_msg_of(n)->msg_kind == WEFT_MSG_EAGER)
			bytes[n->peer] += weft_msg_of(n)->length;
}

/* Eager payload of each sender that lies unreceived with a rank. */
void sim_traffic_look(void)
{
	sim_rails_look();
	sim_strategy_look();
	for (int r = 0; r < sim.plan.ranks; r++) {
		uint64_t held[SIM_RANKS] = {0};
		weft_match_scan(&sim.rank[r].core->match, NULL, add_held, held);
		for (int p = 0; p < sim.plan.ranks; p++)
			CHECK(r == p || held[p] <= sim.plan.credit);
	}
}

unsigned sim_traffic_now(void)
{
	return ticks++;
}

/* Whatever needs the peer is over, and so is whatever it might have been the one for. */
void sim_traffic_down(int rank, int peer, unsigned since)
{
	if (sim.plan.tasks || sim.ending)
		return; /* a copy under way holds its request until the engine comes to it */
	for (unsigned i = 0; i < n_messages; i++) {
		const struct message *m = &messages[i];
		if (m->from == rank && m->to == peer && m->ended && m->ended < since)
			CHECK(m->done || m->refused);
	}
	for (unsigned i = 0; i < n_receives; i++) {
		const struct receive *r = &receives[i];
		if (r->rank != rank || !r->req || !r->ended || r->ended > since)
			continue;
		if (r->peer == peer)
			CHECK(r->done);
		else if (r->peer == WEFT_ANY_PEER)
			CHECK(!atomic_load_explicit(&weft_req_recv(r->req)->entry.node.x_listed,
						    memory_order_relaxed));
	}
}

/* Between ranks that live and see each other. */
static bool sound(int a, int b)
{
	return a == b ? !sim.rank[a].dead : !sim_broken(a, b);
}

static void receive_rest(int rank, int ctx, bool *moved_p)
{
	struct weft_status st;
	if (!weft_iprobe(sim.rank[rank].ctx[ctx], WEFT_ANY_PEER, WEFT_ANY_TAG, &st))
		return;
	post_receive(rank, ctx, sim_chance(50) ? st.peer : WEFT_ANY_PEER,
		     sim_chance(50) ? st.tag : WEFT_ANY_TAG);
	*moved_p = true;
}

static void close_last(int rank)
{
	int c = SIM_CTXS - 1;
	bool rest = false;
	for (unsigned i = 0; i < n_messages; i++) {
		struct message *m = &messages[i];
		if (m->to == rank && m->ctx == c && !m->to_recv)
			m->over = rest = true;
	}
	open_ctx[rank][c] = false;
	weft_ctx_close(sim.rank[rank].ctx[c]);
	if (rest)
		sim_cover(SIM_CLOSED_CTX);
}

bool sim_traffic_finish(void)
{
	bool moved = false;
	for (int r = 0; r < sim.plan.ranks; r++) {
		if (sim.rank[r].dead)
			continue;
		open_late(r);
		if (sim.plan.close_last && open_ctx[r][SIM_CTXS - 1]) {
			close_last(r);
			moved = true;
		}
		for (int c = 0; c < SIM_CTXS; c++)
			if (open_ctx[r][c])
				receive_rest(r, c, &moved);
	}
	if (moved)
		return true;
	/* What waits now waits for nothing. */
	for (unsigned i = 0; i < n_receives; i++)
		if (receives[i].req && !sim.rank[receives[i].rank].dead)
			moved = cancel(&receives[i]) || moved;
	return moved;
}

/* Calls have an order if one had returned before the other began; two "threads" have none. */
static void check_order(const struct receive *r)
{
	const struct message *got = r->got;
	for (unsigned i = 0; i < got->number; i++) {
		const struct message *m = &messages[i];
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
	CHECK(weft_core_idle(core));
	/* Relaxed: one thread. */
	CHECK_EQ(atomic_load_explicit(&core->ids.x_live, memory_order_relaxed), 0);
	for (struct weft_ctx *c = core->ctx_all; c; c = c->next_all) {
		CHECK(!c->all_head && !c->wild_head && !c->probes && !lying(c));
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
	for (unsigned i = 0; i < n_messages; i++) {
		struct message *m = &messages[i];
		if (!sim.rank[m->from].dead)
			CHECK(m->done || m->refused);
		if (sound(m->from, m->to) && !m->over)
			CHECK(m->to_recv && m->done);
	}
	for (unsigned i = 0; i < n_receives; i++) {
		struct receive *r = &receives[i];
		if (!sim.rank[r->rank].dead)
			CHECK(r->done || r->refused);
		if (r->got)
			check_order(r);
	}
	for (int r = 0; r < sim.plan.ranks; r++)
		if (!sim.rank[r].dead)
			check_core(r);
}

void sim_traffic_begin(void)
{
	n_messages = n_receives = ticks = 0;
	for (int r = 0; r < sim.plan.ranks; r++) {
		for (int c = 0; c < SIM_CTXS; c++) {
			open_ctx[r][c] = c != SIM_CTXS - 2;
			if (open_ctx[r][c])
				CHECK(!weft_core_ctx_open(sim.rank[r].core, (uint32_t)c + 1,
							  &sim.rank[r].ctx[c]));
			if (open_ctx[r][c])
				weft_ctx_priority(sim.rank[r].ctx[c], c);
		}
	}
}

/* Of an operation of a dead rank, which never ended. */
static void drop(char *buf, const struct weft_type *type, struct weft_req *req)
{
	if (buf && type)
		weft_type_unref(type);
	free(buf);
	free(req);
}

void sim_traffic_free(void)
{
	for (unsigned i = 0; i < n_messages; i++)
		drop(messages[i].buf, messages[i].type, messages[i].req);
	for (unsigned i = 0; i < n_receives; i++)
		drop(receives[i].buf, receives[i].type, receives[i].req);
}
