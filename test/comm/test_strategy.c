/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_strategy.c - what a strategy puts first goes first, counted in packets; whatever the
 * strategy, every message arrives whole and in order; one's own strategy is used.
 */
#include "comm/fake_net.h"

enum { LARGE = 8 << 20, MIDDLE = 3 << 20, SMALL = 100 };

static struct weft_core *core[2];
static struct weft_ctx *ctx[2];

static void begin(uint64_t seed, const char *strategy)
{
	fake_init(seed);
	fake.can_get = false;
	fake_cores(core, 2);
	for (int r = 0; r < 2; r++) {
		const struct weft_strategy *s = weft_strategy_find(strategy);
		CHECK(s);
		core[r]->gate[1 - r].strategy = s;
		CHECK(!weft_core_ctx_open(core[r], 1, &ctx[r]));
	}
}

static void end(void)
{
	for (int r = 0; r < 2; r++)
		weft_core_destroy(core[r]);
	fake_fini();
}

static void poll_both(void)
{
	for (int r = 0; r < 2; r++)
		(void)weft_core_poll(core[r]);
}

static void start(struct weft_req *s, struct weft_req *r, int tag, char *out, char *in, size_t len)
{
	struct weft_buf from = weft_buf_flat(out, len), to = weft_buf_flat(in, len);
	memset(out, 'a' + tag, len);
	memset(in, 0, len);
	weft_req_init(s, NULL, NULL);
	weft_req_init(r, NULL, NULL);
	CHECK(!weft_irecv(r, ctx[1], 0, tag, &to));
	CHECK(!weft_isend(s, ctx[0], 1, tag, &from, WEFT_SEND_STANDARD));
}

static void finish(struct weft_req *s, struct weft_req *r, int tag, const char *in, size_t len)
{
	while (!weft_req_done(s) || !weft_req_done(r))
		poll_both();
	CHECK(!s->status.err && !r->status.err);
	for (size_t i = 0; i < len; i++)
		CHECK(in[i] == 'a' + tag);
}

/* Does the peer want its data by now, and does some of it wait? */
static bool data_waits(struct weft_req *s)
{
	struct weft_core_req_send *q = weft_req_send(s);
	return q->out.type == WEFT_OUT_DATA && q->off > 0 && q->off < q->want;
}

static char out_l[LARGE], in_l[LARGE], out_m[MIDDLE], in_m[MIDDLE], out_s[SMALL], in_s[SMALL];

/* A small message behind the data of a large one. */
static void small_behind_large(uint64_t seed, const char *strategy, bool first)
{
	struct weft_req sl, rl, ss, rs;
	begin(seed, strategy);
	start(&sl, &rl, 0, out_l, in_l, LARGE);
	while (!data_waits(&sl))
		poll_both();
	start(&ss, &rs, 1, out_s, in_s, SMALL);
	while (!weft_req_done(&rs) && !weft_req_done(&rl))
		poll_both();
	CHECK(!weft_req_done(first ? &rl : &rs) || (!first && weft_req_done(&rl)));
	finish(&sl, &rl, 0, in_l, LARGE);
	finish(&ss, &rs, 1, in_s, SMALL);
	end();
}

/* Pieces of the large message that go out while the data of a shorter one waits. */
static size_t pieces_meanwhile(uint64_t seed, const char *strategy)
{
	struct weft_req sl, rl, sm, rm;
	begin(seed, strategy);
	start(&sl, &rl, 0, out_l, in_l, LARGE);
	while (!data_waits(&sl))
		poll_both();
	start(&sm, &rm, 1, out_m, in_m, MIDDLE);
	while (!data_waits(&sm))
		poll_both();
	uint64_t before = weft_req_send(&sl)->off;
	while (data_waits(&sm))
		(void)weft_core_poll(core[0]), (void)weft_core_poll(core[1]);
	size_t n = (size_t)(weft_req_send(&sl)->off - before) / FAKE_PAYLOAD;
	finish(&sl, &rl, 0, in_l, LARGE);
	finish(&sm, &rm, 1, in_m, MIDDLE);
	end();
	return n;
}

/* Messages of all lengths, both kinds of layout of time: all there, in order. */
static void traffic(uint64_t seed, const char *strategy)
{
	enum { N = 60 };
	static struct weft_req s[N], r[N];
	static char *out[N], *in[N];
	static size_t len[N];
	uint64_t x = seed;
	begin(seed, strategy);
	for (int i = 0; i < N; i++) {
		uint64_t k = weft_rand_next(&x);
		len[i] = k % 3 ? (k >> 8) % 500 : (k >> 8) % 300000;
		out[i] = malloc(len[i] + 1);
		in[i] = malloc(len[i] + 1);
		CHECK(out[i] && in[i]);
		/* One tag: they match in the order in which they were sent. */
		struct weft_buf from = weft_buf_flat(out[i], len[i]);
		struct weft_buf to = weft_buf_flat(in[i], len[i]);
		memset(out[i], i, len[i]);
		weft_req_init(&s[i], NULL, NULL);
		weft_req_init(&r[i], NULL, NULL);
		CHECK(!weft_irecv(&r[i], ctx[1], 0, 7, &to));
		CHECK(!weft_isend(&s[i], ctx[0], 1, 7, &from, WEFT_SEND_STANDARD));
		if (k & 128)
			poll_both();
	}
	for (int i = 0; i < N; i++) {
		while (!weft_req_done(&s[i]) || !weft_req_done(&r[i]))
			poll_both();
		CHECK(!r[i].status.err);
		CHECK_EQ(r[i].status.bytes, len[i]);
		for (size_t k = 0; k < len[i]; k++)
			CHECK(in[i][k] == (char)i);
		free(out[i]);
		free(in[i]);
	}
	CHECK(weft_core_idle(core[0]));
	end();
}

/* One's own, as an example: the message that has the most left goes first. */
static int asked;

static struct weft_out *longest_locked(struct weft_gate *g)
{
	struct weft_out **best = &g->data_head;
	asked++;
	for (struct weft_out **at = &g->data_head; *at; at = &(*at)->next) {
		struct weft_core_req_send *a = weft_req_send(weft_req_of_send_out(*at));
		struct weft_core_req_send *b = weft_req_send(weft_req_of_send_out(*best));
		if (a->want - a->off > b->want - b->off)
			best = at;
	}
	struct weft_out *o = *best;
	*best = o->next;
	if (g->data_tail == &o->next)
		g->data_tail = best;
	return o;
}

static const struct weft_strategy longest = {
	.name = "longest", .apart = true, .ahead = 2, .next_locked = longest_locked};

int main(void)
{
	static const char *const all[] = {"fifo", "reorder", "shortest", "longest"};
	CHECK_EQ(weft_strategy_register(&longest), WEFT_OK);
	CHECK_EQ(weft_strategy_register(&longest), WEFT_ERR_ARG);
	CHECK(!weft_strategy_find("no such"));
	for (uint64_t seed = 1; seed <= 5; seed++) {
		for (unsigned i = 0; i < weft_countof(all); i++) {
			small_behind_large(seed, all[i], i > 0);
			traffic(seed, all[i]);
		}
		/* 48 pieces; those that go when it is posted in full, in the same round, count too.
		 */
		CHECK(pieces_meanwhile(seed, "shortest") <= 20);
		CHECK(pieces_meanwhile(seed, "reorder") > 30);
		CHECK(pieces_meanwhile(seed, "longest") > 30);
	}
	CHECK(asked > 0);
	return 0;
}
