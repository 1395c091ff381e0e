/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_matching.c - random sends, receives, wildcards, probes and cancels on a random network match
 * exactly as a model that keeps two lists per rank.
 */
#include <string.h>
#include "comm/core.h"
#include "comm/fake_net.h"
#include "payload.h"

#define RANKS 3
#define CTXS 2
#define TAGS 3
#define SLOTS 4096

struct message {
	int from, to, ctx, tag;
	size_t bytes;
	unsigned number;
	struct message *next; /* lane order, then arrival order */
};

struct receive {
	struct weft_req req;
	int rank, ctx, peer, tag;
	size_t room;
	char *buf;
	struct message *want; /* what the model says it gets */
	bool cancelled, live;
	struct receive *next; /* posting order */
};

struct sending {
	struct weft_req req;
	char *buf;
	bool live;
};

static struct weft_core *core[RANKS];
static struct weft_ctx *ctx[RANKS][CTXS];
static struct message *lane[RANKS][RANKS], **lane_end[RANKS][RANKS];
static struct message *unexpected[RANKS];
static struct receive *posted[RANKS];
static struct receive receives[SLOTS];
static struct sending sends[SLOTS];
static unsigned numbers, matched;
static uint64_t seed;

static unsigned pick(unsigned n)
{
	return (unsigned)(weft_rand_next(&seed) % n);
}

static size_t pick_bytes(void)
{
	static const size_t sizes[] = {0, 1, 8, 100, 300, 1000, 1024, 1025, 5000, 70000};
	return pick(50) == 0 ? 600000 : sizes[pick(weft_countof(sizes))];
}

/* ---- the model ---------------------------------------------------------------------------- */

static bool model_fits(const struct receive *r, const struct message *m)
{
	return r->ctx == m->ctx && (r->peer == WEFT_ANY_PEER || r->peer == m->from) &&
	       (r->tag == WEFT_ANY_TAG || r->tag == m->tag);
}

static void model_arrive(int from, int to)
{
	struct message *m = lane[from][to];
	CHECK(m);
	lane[from][to] = m->next;
	if (!m->next)
		lane_end[from][to] = &lane[from][to];
	m->next = NULL;
	for (struct receive **p = &posted[to]; *p; p = &(*p)->next) {
		if (model_fits(*p, m)) {
			(*p)->want = m;
			*p = (*p)->next;
			return;
		}
	}
	struct message **p = &unexpected[to];
	while (*p)
		p = &(*p)->next;
	*p = m;
}

static void model_arrive_wire(int from, int to, const struct weft_wire *h)
{
	CHECK(lane[from][to] && lane[from][to]->tag == h->tag);
	model_arrive(from, to);
}

static struct message *model_probe(const struct receive *r, bool take)
{
	for (struct message **p = &unexpected[r->rank]; *p; p = &(*p)->next) {
		if (model_fits(r, *p)) {
			struct message *m = *p;
			if (take)
				*p = m->next;
			return m;
		}
	}
	return NULL;
}

static void model_post(struct receive *r)
{
	r->want = model_probe(r, true);
	if (r->want)
		return;
	struct receive **p = &posted[r->rank];
	while (*p)
		p = &(*p)->next;
	r->next = NULL;
	*p = r;
}

static bool model_cancel(struct receive *r)
{
	for (struct receive **p = &posted[r->rank]; *p; p = &(*p)->next) {
		if (*p == r) {
			*p = r->next;
			return true;
		}
	}
	return false;
}

/* ---- steps -------------------------------------------------------------------------------- */

static void step_send(void)
{
	struct sending *s = sends;
	while (s < sends + SLOTS && s->live)
		s++;
	if (s == sends + SLOTS)
		return;
	struct message *m = calloc(1, sizeof *m);
	m->from = (int)pick(RANKS);
	m->to = (int)pick(RANKS);
	m->ctx = (int)pick(CTXS);
	m->tag = (int)pick(TAGS);
	m->bytes = pick_bytes();
	m->number = numbers++;
	s->buf = malloc(m->bytes + 1);
	payload_fill(s->buf, m->bytes, m->number);
	*lane_end[m->from][m->to] = m;
	lane_end[m->from][m->to] = &m->next;
	if (m->from == m->to)
		model_arrive(m->from, m->to);
	struct weft_buf b = weft_data_buf_flat(s->buf, m->bytes);
	int tag = m->tag, to = m->to;
	struct weft_ctx *c = ctx[m->from][m->ctx];
	if (pick(4) == 0 &&
	    (pick(2) ? weft_comm_send_now(c, to, tag, &b)
		     : weft_comm_send_plain(c, to, tag, s->buf, m->bytes)) == WEFT_OK) {
		memset(s->buf, 0x55, m->bytes);
		free(s->buf);
		return;
	}
	s->live = true;
	weft_comm_req_init(&s->req, NULL, NULL);
	CHECK(!weft_comm_core_isend(&s->req, c, to, tag, &b,
				    pick(4) ? WEFT_SEND_STANDARD : WEFT_SEND_SYNC));
}

static struct receive *receive_slot(void)
{
	for (struct receive *r = receives; r < receives + SLOTS; r++) {
		if (r->live)
			continue;
		memset(r, 0, sizeof *r);
		r->rank = (int)pick(RANKS);
		r->ctx = (int)pick(CTXS);
		r->peer = pick(3) ? (int)pick(RANKS) : WEFT_ANY_PEER;
		r->tag = pick(3) ? (int)pick(TAGS) : WEFT_ANY_TAG;
		r->room = pick_bytes();
		return r;
	}
	return NULL;
}

static void step_receive(void)
{
	struct receive *r = receive_slot();
	if (!r)
		return;
	r->buf = malloc(r->room + 1);
	r->buf[r->room] = 'x';
	r->live = true;
	weft_comm_req_init(&r->req, NULL, NULL);
	struct weft_buf b = weft_data_buf_flat(r->buf, r->room);
	model_post(r);
	CHECK(!weft_comm_core_irecv(&r->req, ctx[r->rank][r->ctx], r->peer, r->tag, &b));
}

static void step_probe(void)
{
	struct receive *r = receive_slot();
	struct weft_status st;
	if (!r)
		return;
	struct message *m = model_probe(r, false);
	bool found = weft_comm_core_iprobe(ctx[r->rank][r->ctx], r->peer, r->tag, &st);
	CHECK(found == (m != NULL));
	if (found)
		CHECK(st.peer == m->from && st.tag == m->tag && st.bytes == m->bytes);
	if (!found || pick(2))
		return;
	struct weft_msg *taken;
	CHECK(weft_comm_core_improbe(ctx[r->rank][r->ctx], r->peer, r->tag, &taken, &st));
	r->want = model_probe(r, true);
	CHECK(r->want == m && st.peer == m->from && st.tag == m->tag);
	r->buf = malloc(r->room + 1);
	r->buf[r->room] = 'x';
	r->live = true;
	weft_comm_req_init(&r->req, NULL, NULL);
	struct weft_buf b = weft_data_buf_flat(r->buf, r->room);
	CHECK(!weft_comm_core_imrecv(&r->req, taken, &b));
}

static void step_cancel(void)
{
	struct receive *r = &receives[pick(64)];
	if (!r->live || r->cancelled)
		return;
	bool want = model_cancel(r);
	if (weft_comm_req_done(&r->req))
		CHECK(!want);
	CHECK(weft_comm_recv_cancel(&r->req) == want);
	r->cancelled = want;
}

static void check_receive(struct receive *r)
{
	if (!r->live || !weft_comm_req_done(&r->req))
		return;
	CHECK(r->buf[r->room] == 'x');
	CHECK(r->req.status.cancelled == r->cancelled);
	if (!r->cancelled) {
		struct message *m = r->want;
		CHECK(m);
		CHECK_EQ(r->req.status.peer, m->from);
		CHECK_EQ(r->req.status.tag, m->tag);
		size_t n = m->bytes < r->room ? m->bytes : r->room;
		CHECK_EQ(r->req.status.bytes, n);
		CHECK_EQ(r->req.status.err, n < m->bytes ? WEFT_ERR_TRUNC : WEFT_OK);
		CHECK_EQ(payload_wrong(r->buf, n, m->number), n);
		free(m);
		matched++;
	}
	free(r->buf);
	r->live = false;
}

static void check_all(void)
{
	for (int i = 0; i < SLOTS; i++) {
		check_receive(&receives[i]);
		struct sending *s = &sends[i];
		if (s->live && weft_comm_req_done(&s->req)) {
			CHECK(s->req.status.err == WEFT_OK);
			memset(s->buf, 0x55, 1);
			free(s->buf);
			s->live = false;
		}
	}
}

/* Receives whatever is left, until nothing is. */
static void finish(void)
{
	for (int rank = 0; rank < RANKS; rank++) {
		while (posted[rank]) {
			struct receive *r = posted[rank];
			CHECK(model_cancel(r));
			CHECK(weft_comm_recv_cancel(&r->req));
			r->cancelled = true;
		}
	}
	for (;;) {
		bool live = false;
		for (int rank = 0; rank < RANKS; rank++)
			(void)weft_comm_core_poll(core[rank]);
		check_all();
		for (int rank = 0; rank < RANKS; rank++) {
			for (int p = 0; p < RANKS; p++)
				live = live || lane[rank][p];
			if (!unexpected[rank])
				continue;
			live = true;
			struct receive *r = receive_slot();
			r->rank = rank;
			r->ctx = unexpected[rank]->ctx;
			r->peer = WEFT_ANY_PEER;
			r->tag = WEFT_ANY_TAG;
			r->buf = malloc(r->room + 1);
			r->buf[r->room] = 'x';
			r->live = true;
			weft_comm_req_init(&r->req, NULL, NULL);
			struct weft_buf b = weft_data_buf_flat(r->buf, r->room);
			model_post(r);
			CHECK(!weft_comm_core_irecv(&r->req, ctx[rank][r->ctx], r->peer, r->tag,
						    &b));
		}
		for (int i = 0; i < SLOTS; i++)
			live = live || receives[i].live || sends[i].live;
		if (!live)
			return;
	}
}

static void run(uint64_t s, unsigned steps)
{
	seed = s;
	fake_init(s ^ 0xfeed);
	fake.can_get = s & 1;
	fake.get_fails = (s & 6) == 6;
	fake.offer = s & 32;
	fake.rdma = s % 3 == 0;
	fake.credit = s & 64 ? 3000 : 0;
	fake.put_fails = (s & 6) == 4;
	fake.chance_full = (s & 8) ? 40 : 5;
	fake.chance_place = (s & 16) ? 90 : 10;
	fake.arrives = model_arrive_wire;
	fake_cores(core, RANKS);
	for (int r = 0; r < RANKS; r++) {
		for (int p = 0; p < RANKS; p++) {
			lane[r][p] = NULL;
			lane_end[r][p] = &lane[r][p];
		}
		for (int c = 0; c < CTXS; c++)
			CHECK(!weft_comm_core_ctx_open(core[r], (uint32_t)c * 5000, &ctx[r][c]));
	}
	for (unsigned i = 0; i < steps; i++) {
		unsigned what = pick(100);
		if (what < 30)
			step_send();
		else if (what < 58)
			step_receive();
		else if (what < 66)
			step_probe();
		else if (what < 70)
			step_cancel();
		else
			(void)weft_comm_core_poll(core[pick(RANKS)]);
		if (what >= 95)
			check_all();
	}
	finish();
	for (int r = 0; r < RANKS; r++) {
		CHECK(weft_comm_core_idle(core[r]));
		weft_comm_core_destroy(core[r]);
	}
	fake_fini();
}

int main(int argc, char **argv)
{
	unsigned long long first = test_seed(argc, argv);
	unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : (TEST_ALONE > 1 ? 3 : 20);
	for (unsigned i = 0; i < rounds; i++)
		run(first + i * 3, 3000);
	printf("%u messages matched in %u rounds\n", matched, rounds);
	return 0;
}
