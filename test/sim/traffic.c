/* SPDX-License-Identifier: BSD-3-Clause */
/* traffic.c - what the ranks do: calls of the application, drawn from the seed, and the last round
 * that receives what is left.  oracle.c judges. */
#include <stdlib.h>
#include "traffic.h"

struct traffic traffic;

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
	CHECK(!weft_data_type_hvector((int64_t)(bytes / BLOCK), BLOCK, STRIDE,
				      &weft_data_type_elem[WEFT_B_BYTE], &t));
	return t;
}

/* Requests whose memory goes at the moment they are over: a later touch is caught. */
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
	weft_comm_req_init(&op->req, then, op);
	return &op->req;
}

/* ---- what is over ------------------------------------------------------------------------- */

static void then(struct weft_req *req, void *arg)
{
	struct op *op = arg;
	if (sim.ending) { /* a core is taken down: a dead rank's, the others have nothing left */
		CHECK(sim.rank[op->m ? op->m->from : op->r->rank].dead);
		return;
	}
	if (op->m) {
		struct message *m = op->m;
		sim_oracle_sent(m, req);
		m->req = NULL;
		if (m->type)
			weft_data_type_unref(m->type);
		/* It is not read any more. */
		free(m->buf);
		m->buf = NULL;
	} else {
		sim_oracle_received(op->r, req);
		op->r->req = NULL;
	}
	int rank = op->m ? op->m->from : op->r->rank;
	int gone = op->m && req->status.err == WEFT_ERR_PEER ? op->m->to : -1;
	memset(op, 0x5a, sizeof *op);
	free(op);
	/* A `then` may start operations at once. */
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
	return traffic.open_ctx[rank][c] ? c : 0;
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
		weft_data_type_unref(m->type);
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
	weft_data_unpack(&b, 0, flat, m->bytes);
	free(flat);
	if (m->type)
		sim_cover(SIM_TYPED_SEND);
	if (m->to == rank)
		sim_cover(SIM_SELF);
	struct weft_ctx *c = sim.rank[rank].ctx[m->ctx];
	SIM_SAY("%d sends %u to %d: ctx %d tag %d bytes %zu%s", rank, m->number, m->to, m->ctx,
		m->tag, m->bytes, m->type ? " typed" : "");
	if (sim_chance(25)) {
		weft_err err = weft_comm_send_now(c, m->to, m->tag, &b);
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
				weft_data_type_unref(m->type);
			return;
		}
		CHECK_EQ(err, WEFT_AGAIN);
	}
	uint64_t asked = weft_counter_sum(WEFT_CNT_CREDIT_ASKED);
	struct weft_req *req = m->req = request(m, NULL);
	enum weft_send_mode mode = sim_chance(25) ? WEFT_SEND_SYNC : WEFT_SEND_STANDARD;
	weft_err err = weft_comm_core_isend(req, c, m->to, m->tag, &b, mode);
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
	if (traffic.n_messages == MESSAGES)
		return;
	struct message *m = &traffic.message[traffic.n_messages];
	*m = (struct message){
		.from = rank, .to = to, .number = traffic.n_messages++, .began = traffic.ticks++};
	send_message(m);
	m->ended = traffic.ticks++;
}

static struct receive *receive_make(int rank, int ctx)
{
	if (traffic.n_receives == 2 * MESSAGES)
		return NULL;
	struct receive *r = &traffic.receive[traffic.n_receives];
	*r = (struct receive){
		.rank = rank, .ctx = ctx, .number = traffic.n_receives++, .began = traffic.ticks++};
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
		weft_data_type_unref(r->type);
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
	unsigned before = arriving ? sim_oracle_lying(c) : 0;
	weft_err err = weft_comm_core_irecv(req, c, peer, tag, &b);
	r->ended = traffic.ticks++;
	if (!err && arriving && !r->done && sim_oracle_lying(c) < before)
		sim_cover(SIM_CLAIMED_ARRIVING);
	if (err) {
		CHECK_EQ(err, WEFT_ERR_PEER);
		CHECK(peer == WEFT_ANY_PEER ? sim_oracle_anybody_broken(rank)
					    : sim_broken(rank, peer));
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

	if (!weft_comm_core_iprobe(ctx, peer, tag, &st) || st.err)
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
	CHECK(weft_comm_core_improbe(ctx, peer, tag, &msg, &taken));
	CHECK(taken.peer == st.peer && taken.tag == st.tag && taken.bytes == st.bytes);
	r->peer = taken.peer;
	r->tag = taken.tag;
	SIM_SAY("%d takes what %u gets, from %d tag %d", rank, r->number, r->peer, r->tag);
	struct weft_buf b = buffer(r->buf, r->room, r->type);
	r->req = request(NULL, r);
	bool arriving = is_arriving(taken.peer, rank);
	CHECK(!weft_comm_core_imrecv(r->req, msg, &b));
	r->ended = traffic.ticks++; /* a peer that dies while we are inside is found when we are
				       through */
	if (arriving && !r->done && taken.bytes <= sim.plan.eager_max)
		sim_cover(SIM_TAKEN_ARRIVING);
}

static bool cancel(struct receive *r)
{
	r->cancelled = true; /* its completion comes from within */
	if (weft_comm_recv_cancel(r->req)) {
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
	struct receive *r =
		traffic.n_receives ? &traffic.receive[sim_pick(traffic.n_receives)] : NULL;
	if (r && r->rank == rank && r->req)
		(void)cancel(r);
}

static void open_late(int rank)
{
	int c = SIM_CTXS - 2;
	if (traffic.open_ctx[rank][c])
		return;
	CHECK(!weft_comm_core_ctx_open(sim.rank[rank].core, (uint32_t)c + 1,
				       &sim.rank[rank].ctx[c]));
	traffic.open_ctx[rank][c] = true;
	weft_comm_ctx_priority(sim.rank[rank].ctx[c], c);
	if (sim_oracle_lying(sim.rank[rank].ctx[c]))
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

unsigned sim_traffic_now(void)
{
	return traffic.ticks++;
}

/* ---- the last round ---------------------------------------------------------------------- */

static void receive_rest(int rank, int ctx, bool *moved_p)
{
	struct weft_status st;
	if (!weft_comm_core_iprobe(sim.rank[rank].ctx[ctx], WEFT_ANY_PEER, WEFT_ANY_TAG, &st))
		return;
	post_receive(rank, ctx, sim_chance(50) ? st.peer : WEFT_ANY_PEER,
		     sim_chance(50) ? st.tag : WEFT_ANY_TAG);
	*moved_p = true;
}

static void close_last(int rank)
{
	int c = SIM_CTXS - 1;
	bool rest = false;
	for (unsigned i = 0; i < traffic.n_messages; i++) {
		struct message *m = &traffic.message[i];
		if (m->to == rank && m->ctx == c && !m->to_recv)
			m->over = rest = true;
	}
	traffic.open_ctx[rank][c] = false;
	weft_comm_ctx_close(sim.rank[rank].ctx[c]);
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
		if (sim.plan.close_last && traffic.open_ctx[r][SIM_CTXS - 1]) {
			close_last(r);
			moved = true;
		}
		for (int c = 0; c < SIM_CTXS; c++)
			if (traffic.open_ctx[r][c])
				receive_rest(r, c, &moved);
	}
	if (moved)
		return true;
	/* What waits now waits for nothing. */
	for (unsigned i = 0; i < traffic.n_receives; i++)
		if (traffic.receive[i].req && !sim.rank[traffic.receive[i].rank].dead)
			moved = cancel(&traffic.receive[i]) || moved;
	return moved;
}

void sim_traffic_begin(void)
{
	traffic.n_messages = traffic.n_receives = traffic.ticks = 0;
	for (int r = 0; r < sim.plan.ranks; r++) {
		for (int c = 0; c < SIM_CTXS; c++) {
			traffic.open_ctx[r][c] = c != SIM_CTXS - 2;
			if (traffic.open_ctx[r][c])
				CHECK(!weft_comm_core_ctx_open(sim.rank[r].core, (uint32_t)c + 1,
							       &sim.rank[r].ctx[c]));
			if (traffic.open_ctx[r][c])
				weft_comm_ctx_priority(sim.rank[r].ctx[c], c);
		}
	}
}

/* Of an operation of a dead rank, which never ended. */
static void drop(char *buf, const struct weft_type *type, struct weft_req *req)
{
	if (buf && type)
		weft_data_type_unref(type);
	free(buf);
	free(req);
}

void sim_traffic_free(void)
{
	for (unsigned i = 0; i < traffic.n_messages; i++)
		drop(traffic.message[i].buf, traffic.message[i].type, traffic.message[i].req);
	for (unsigned i = 0; i < traffic.n_receives; i++)
		drop(traffic.receive[i].buf, traffic.receive[i].type, traffic.receive[i].req);
}
