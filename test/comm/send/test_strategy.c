/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_strategy.c - what a strategy puts first goes first, what it gathers shares packets, counted
 * in packets; whatever the strategy, every message arrives whole and in order; one's own strategy
 * is used.
 */
#include <string.h>
#include <weft/strategy.h>
#include "base/counters.h"
#include "comm/core.h"
#include "comm/fake_net.h"
#include "comm/request.h"
#include "comm/send/pack.h"
#include "payload.h"

enum { LARGE = 8 << 20, MIDDLE = 3 << 20, SMALL = 100 };

static struct weft_core *core[2];
static struct weft_ctx *ctx[2];

static void begin(uint64_t seed, const char *strategy)
{
	fake_init(seed);
	fake.can_get = false;
	fake_cores(core, 2);
	for (int r = 0; r < 2; r++) {
		const struct weft_strategy *s = weft_comm_strategy_find(strategy);
		CHECK(s);
		weft_comm_gate_strategy(&core[r]->gate[1 - r], &core[r]->rail[0], s);
		CHECK(!weft_comm_core_ctx_open(core[r], 1, &ctx[r]));
	}
}

static void start(struct weft_req *s, struct weft_req *r, int tag, char *out, char *in, size_t len)
{
	struct weft_buf from = weft_data_buf_flat(out, len), to = weft_data_buf_flat(in, len);
	memset(out, 'a' + tag, len);
	memset(in, 0, len);
	weft_comm_req_init(s, NULL, NULL);
	weft_comm_req_init(r, NULL, NULL);
	CHECK(!weft_comm_core_irecv(r, ctx[1], 0, tag, &to));
	CHECK(!weft_comm_core_isend(s, ctx[0], 1, tag, &from, WEFT_SEND_STANDARD));
}

static void finish(struct weft_req *s, struct weft_req *r, int tag, const char *in, size_t len)
{
	while (!weft_comm_req_done(s) || !weft_comm_req_done(r))
		fake_poll_all(core, 2, 1);
	CHECK(!s->status.err && !r->status.err);
	CHECK(payload_is(in, len, (char)('a' + tag)));
}

/* Does the peer want its data by now, and does some of it wait? */
static bool data_waits(struct weft_req *s)
{
	struct weft_core_req_send *q = weft_comm_req_send(s);
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
		fake_poll_all(core, 2, 1);
	start(&ss, &rs, 1, out_s, in_s, SMALL);
	while (!weft_comm_req_done(&rs) && !weft_comm_req_done(&rl))
		fake_poll_all(core, 2, 1);
	CHECK(!weft_comm_req_done(first ? &rl : &rs) || (!first && weft_comm_req_done(&rl)));
	finish(&sl, &rl, 0, in_l, LARGE);
	finish(&ss, &rs, 1, in_s, SMALL);
	fake_end(core, 2);
}

/* Pieces of the large message that go out while the data of a shorter one waits. */
static size_t pieces_meanwhile(uint64_t seed, const char *strategy)
{
	struct weft_req sl, rl, sm, rm;
	begin(seed, strategy);
	start(&sl, &rl, 0, out_l, in_l, LARGE);
	while (!data_waits(&sl))
		fake_poll_all(core, 2, 1);
	start(&sm, &rm, 1, out_m, in_m, MIDDLE);
	while (!data_waits(&sm))
		fake_poll_all(core, 2, 1);
	uint64_t before = weft_comm_req_send(&sl)->off;
	while (data_waits(&sm))
		(void)weft_comm_core_poll(core[0]), (void)weft_comm_core_poll(core[1]);
	size_t n = (size_t)(weft_comm_req_send(&sl)->off - before) / FAKE_PAYLOAD;
	finish(&sl, &rl, 0, in_l, LARGE);
	finish(&sm, &rm, 1, in_m, MIDDLE);
	fake_end(core, 2);
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
		struct weft_buf from = weft_data_buf_flat(out[i], len[i]);
		struct weft_buf to = weft_data_buf_flat(in[i], len[i]);
		memset(out[i], i, len[i]);
		weft_comm_req_init(&s[i], NULL, NULL);
		weft_comm_req_init(&r[i], NULL, NULL);
		CHECK(!weft_comm_core_irecv(&r[i], ctx[1], 0, 7, &to));
		CHECK(!weft_comm_core_isend(&s[i], ctx[0], 1, 7, &from, WEFT_SEND_STANDARD));
		if (k & 128)
			fake_poll_all(core, 2, 1);
	}
	for (int i = 0; i < N; i++) {
		while (!weft_comm_req_done(&s[i]) || !weft_comm_req_done(&r[i]))
			fake_poll_all(core, 2, 1);
		CHECK(!r[i].status.err);
		CHECK_EQ(r[i].status.bytes, len[i]);
		CHECK(payload_is(in[i], len[i], (char)i));
		free(out[i]);
		free(in[i]);
	}
	CHECK(weft_comm_core_idle(core[0]));
	fake_end(core, 2);
}

/* One's own: the message that has the most left goes first. */
static int asked;

static unsigned longest(void *arg, const weft_strategy_item *items, unsigned n)
{
	unsigned best = 0;
	CHECK(arg == &asked && n >= 1 && n <= WEFT_STRATEGY_ITEMS);
	asked++;
	for (unsigned i = 1; i < n; i++)
		if (items[i].left > items[best].left)
			best = i;
	CHECK(items[best].left && items[best].left <= items[best].bytes && items[best].peer == 1);
	return best;
}

/* The highest priority among three messages, whatever their order. */
static void by_priority(uint64_t seed)
{
	enum { N = 3, LEN = 1 << 20 };
	static const int wish[N] = {-1, 5, 2};
	static char out[N][LEN], in[N][LEN];
	struct weft_req s[N], r[N];
	struct weft_ctx *more[2][N];
	begin(seed, "priority");
	for (int i = 0; i < N; i++) {
		struct weft_buf from = weft_data_buf_flat(out[i], LEN),
				to = weft_data_buf_flat(in[i], LEN);
		for (int k = 0; k < 2; k++) {
			CHECK(!weft_comm_core_ctx_open(core[k], (uint32_t)(10 + i), &more[k][i]));
			weft_comm_ctx_priority(more[k][i], wish[i]);
		}
		weft_comm_req_init(&s[i], NULL, NULL);
		weft_comm_req_init(&r[i], NULL, NULL);
		CHECK(!weft_comm_core_irecv(&r[i], more[1][i], 0, 1, &to));
		CHECK(!weft_comm_core_isend(&s[i], more[0][i], 1, 1, &from, WEFT_SEND_STANDARD));
	}
	/* All three asked for: which is first from here on? */
	bool all = false;
	while (!all) {
		fake_poll_all(core, 2, 1);
		all = true;
		for (int i = 0; i < N; i++)
			all = all && (weft_comm_req_send(&s[i])->out.type == WEFT_OUT_DATA ||
				      weft_comm_req_done(&s[i]));
	}
	uint64_t low = weft_comm_req_send(&s[0])->off, middle = weft_comm_req_send(&s[2])->off;
	bool over = weft_comm_req_done(&s[1]);
	while (!over && weft_comm_req_send(&s[1])->off < LEN) {
		CHECK(weft_comm_req_send(&s[0])->off == low &&
		      weft_comm_req_send(&s[2])->off == middle);
		fake_poll_all(core, 2, 1);
		/* Those after it may begin in the very round that ends it. */
		over = weft_comm_req_done(&s[1]) || weft_comm_req_send(&s[1])->off == LEN;
	}
	for (int i = 0; i < N; i++)
		while (!weft_comm_req_done(&s[i]) || !weft_comm_req_done(&r[i]))
			fake_poll_all(core, 2, 1);
	fake_end(core, 2);
}

/* ---- several messages in a packet ----------------------------------------------------------- */

static bool yes(void)
{
	return true;
}

static uint64_t counted(enum weft_counter_id id)
{
	return weft_counter_sum(id);
}

enum { MANY = 64 };
static struct weft_req many_s[MANY], many_r[MANY];
static char many_out[MANY][SMALL], many_in[MANY][SMALL];

static void send_many(int n)
{
	for (int i = 0; i < n; i++) {
		struct weft_buf from = weft_data_buf_flat(many_out[i], SMALL - i);
		struct weft_buf to = weft_data_buf_flat(many_in[i], SMALL);
		memset(many_out[i], '0' + i, SMALL);
		weft_comm_req_init(&many_s[i], NULL, NULL);
		weft_comm_req_init(&many_r[i], NULL, NULL);
		CHECK(!weft_comm_core_irecv(&many_r[i], ctx[1], 0, 3, &to));
		CHECK(!weft_comm_core_isend(&many_s[i], ctx[0], 1, 3, &from, WEFT_SEND_STANDARD));
	}
}

static void receive_many(int n)
{
	for (int i = 0; i < n; i++) {
		while (!weft_comm_req_done(&many_s[i]) || !weft_comm_req_done(&many_r[i]))
			fake_poll_all(core, 2, 1);
		CHECK_EQ(many_r[i].status.bytes, (size_t)(SMALL - i));
		CHECK(many_in[i][0] == '0' + i && many_in[i][SMALL - i - 1] == '0' + i);
	}
}

static unsigned in_lane(void)
{
	return fake.lane[0][1].queued;
}

/* Messages one after the other, without a poll between: the first goes at once, the others wait
 * for the poll and travel together; the first after the poll goes at once again. */
static void window(uint64_t seed)
{
	unsigned full = fake.chance_full;
	fake.chance_full = 0;
	fake.inline_max = 4096;
	begin(seed, "aggregate");
	core[0]->hold = yes;
	uint64_t packs = counted(WEFT_CNT_PACKS), together = counted(WEFT_CNT_AGGREGATED);
	send_many(2);
	CHECK_EQ(in_lane(), 1u);
	CHECK(weft_comm_req_done(&many_s[1])); /* its buffer is free */
	CHECK(!weft_comm_core_idle(core[0]));
	receive_many(2);
	CHECK_EQ(counted(WEFT_CNT_PACKS), packs); /* one alone is no pack */
	for (int round = 0; round < 3; round++) {
		(void)weft_comm_core_poll(core[0]);
		unsigned before = in_lane();
		send_many(8);
		CHECK_EQ(in_lane(), before + 1);
		receive_many(8);
	}
	CHECK_EQ(counted(WEFT_CNT_PACKS), packs + 3);
	CHECK_EQ(counted(WEFT_CNT_AGGREGATED), together + 3 * 7);
	/* No thread is about to poll: nothing waits. */
	CHECK(weft_comm_rail_packs_arm(&core[0]->rail[0]));
	send_many(4);
	CHECK_EQ(in_lane(), 4u);
	weft_comm_rail_packs_disarm(&core[0]->rail[0]);
	receive_many(4);
	/* A poller that is about to sleep finds what is held. */
	(void)weft_comm_core_poll(core[0]);
	send_many(3);
	CHECK(!weft_comm_rail_packs_arm(&core[0]->rail[0]));
	receive_many(3);
	fake_end(core, 2);
	fake.chance_full = full;
	fake.inline_max = FAKE_INLINE;
}

/* One message in each of the ways; may a driver that expects a burst keep it back? */
static bool may_wait(int way)
{
	struct weft_buf from = weft_data_buf_flat(out_s, SMALL),
			to = weft_data_buf_flat(in_s, SMALL);
	struct weft_req s, r;
	unsigned asked_before = fake.asked, may = fake.may;
	weft_comm_req_init(&s, NULL, NULL);
	weft_comm_req_init(&r, NULL, NULL);
	CHECK(!weft_comm_core_irecv(&r, ctx[1], 0, 4, &to));
	if (way == 0)
		CHECK(!weft_comm_send_now(ctx[0], 1, 4, &from));
	else if (way == 1)
		CHECK(!weft_comm_start_now(ctx[0], 1, 4, &from));
	else
		CHECK(!weft_comm_core_isend(&s, ctx[0], 1, 4, &from,
					    way == 2 ? WEFT_SEND_STANDARD : WEFT_SEND_AWAY));
	while (!weft_comm_req_done(&r) || (way > 1 && !weft_comm_req_done(&s)))
		fake_poll_all(core, 2, 1);
	CHECK_EQ(fake.asked, asked_before + 1);
	return fake.may > may;
}

/* A sender that blocks may compute next: its lone message goes at once.  A sender that does not may go on
 * to start others. */
static void lone(uint64_t seed)
{
	unsigned full = fake.chance_full;
	fake.chance_full = 0;
	fake.inline_max = 4096;
	begin(seed, "fifo");
	core[0]->hold = yes;
	fake.asks = true;
	for (int round = 0; round < 2; round++) {
		CHECK(!may_wait(0));
		CHECK(may_wait(1));
		CHECK(!may_wait(2));
		CHECK(may_wait(3));
	}
	fake.asks = false;
	fake_end(core, 2);
	fake.chance_full = full;
	fake.inline_max = FAKE_INLINE;
}

/* A network that is full: what waits goes together. */
static void fan_in(uint64_t seed)
{
	fake.inline_max = 1024;
	begin(seed, "aggregate");
	uint64_t packs = counted(WEFT_CNT_PACKS), together = counted(WEFT_CNT_AGGREGATED);
	send_many(MANY);
	receive_many(MANY);
	packs = counted(WEFT_CNT_PACKS) - packs;
	together = counted(WEFT_CNT_AGGREGATED) - together;
	/* 16 packets fill the lane. */
	CHECK(packs > 0 && together >= MANY - 16 - packs && together >= 2 * packs);
	fake_end(core, 2);
	fake.inline_max = FAKE_INLINE;
}

/* The network is full: the next packet is put together meanwhile, its senders are through, and it
 * is one packet when there is room. */
static void prepared_meanwhile(uint64_t seed)
{
	unsigned full = fake.chance_full;
	fake.inline_max = 4096;
	fake.chance_full = 100;
	begin(seed, "aggregate");
	uint64_t packs = counted(WEFT_CNT_PACKS);
	send_many(10);
	for (int i = 0; i < 10; i++)
		CHECK(weft_comm_req_done(&many_s[i]));
	CHECK_EQ(core[0]->gate[1].pack->n, 10u);
	CHECK_EQ(in_lane(), 0u);
	CHECK_EQ(counted(WEFT_CNT_PACKS), packs);
	fake.chance_full = 0;
	(void)weft_comm_core_poll(core[0]);
	CHECK_EQ(in_lane(), 1u);
	CHECK_EQ(counted(WEFT_CNT_PACKS), packs + 1);
	receive_many(10);
	fake_end(core, 2);
	fake.chance_full = full;
	fake.inline_max = FAKE_INLINE;
}

/* While the driver is polled, another thread posts to it: back to the very peer whose message is
 * just being delivered, and it is through before the poll is. */
static unsigned answered;

static void *answer(void *arg)
{
	static char byte = 'b';
	struct weft_buf b = weft_data_buf_flat(&byte, 1);
	(void)arg;
	CHECK(!weft_comm_send_now(ctx[1], 0, 5, &b));
	return NULL;
}

static void arrives(int from, int to, const struct weft_wire *head)
{
	pthread_t t;
	if (from != 0 || head->tag != 4)
		return;
	CHECK_EQ(fake.lane[to][from].queued, answered);
	CHECK(!pthread_create(&t, NULL, answer, NULL));
	CHECK(!pthread_join(t, NULL));
	CHECK_EQ(fake.lane[to][from].queued, ++answered);
}

static void posted_while_polled(uint64_t seed)
{
	enum { N = 5 };
	struct weft_req s[N], r[N], back[N];
	char in[N] = {0}, in_back[N];
	unsigned full = fake.chance_full;
	fake.chance_full = 0;
	answered = 0;
	begin(seed, "fifo");
	fake.arrives = arrives;
	for (int i = 0; i < N; i++) {
		struct weft_buf to = weft_data_buf_flat(&in[i], 1),
				home = weft_data_buf_flat(&in_back[i], 1);
		weft_comm_req_init(&s[i], NULL, NULL);
		weft_comm_req_init(&r[i], NULL, NULL);
		weft_comm_req_init(&back[i], NULL, NULL);
		CHECK(!weft_comm_core_irecv(&r[i], ctx[1], 0, 4, &to));
		CHECK(!weft_comm_core_irecv(&back[i], ctx[0], 1, 5, &home));
		CHECK(!weft_comm_core_isend(&s[i], ctx[0], 1, 4, &to, WEFT_SEND_STANDARD));
	}
	while (answered < N) /* ends: all are under way */
		(void)weft_comm_core_poll(core[1]);
	fake.arrives = NULL;
	for (int i = 0; i < N; i++) {
		while (!weft_comm_req_done(&back[i]))
			(void)weft_comm_core_poll(core[0]);
		CHECK(weft_comm_req_done(&r[i]) && weft_comm_req_done(&s[i]));
	}
	fake_end(core, 2);
	fake.chance_full = full;
}

/* A pack that makes no sense ends the connection. */
static void bad_pack(const void *bytes, size_t len)
{
	begin(1, "aggregate");
	unsigned full = fake.chance_full;
	fake.chance_full = 0;
	struct weft_wire head = {.kind = WEFT_WIRE_PACK, .sequence = 1, .length = len};
	struct iovec iov = {(void *)(uintptr_t)bytes, len};
	struct weft_gate *g = &core[0]->gate[1];
	while (g->driver->post(g->net, 1, &head, &iov, 1, len, NULL) == WEFT_POST_ACCEPTED)
		; /* the next one is copied at once, and as bad */
	while (!weft_comm_gate_down(&core[1]->gate[0]))
		fake_poll_all(core, 2, 1);
	fake_end(core, 2);
	fake.chance_full = full;
}

static void bad_packs(void)
{
	struct {
		struct weft_wire head;
		char data[8];
	} one = {.head = {.kind = WEFT_WIRE_EAGER, .context = 1, .length = 8}};
	bad_pack(&one, sizeof one - 8); /* cut */
	bad_pack(&one, 5);
	one.head.length = UINT64_MAX - 3;
	bad_pack(&one, sizeof one);
	one.head.length = 8;
	one.head.flags = WEFT_WIRE_SYNC;
	bad_pack(&one, sizeof one);
	one.head.flags = 0;
	one.head.kind = WEFT_WIRE_PACK;
	bad_pack(&one, sizeof one);
	one.head.kind = WEFT_WIRE_FIN;
	one.head.context = 77;
	bad_pack(&one, sizeof one);
}

int main(void)
{
	static const char *const all[] = {"fifo",     "aggregate", "reorder", "shortest",
					  "priority", "auto",      "longest"};
	weft_strategy_plan plan = {.name = "longest", .next = longest, .arg = &asked, .ahead = 2};
	CHECK_EQ(weft_strategy_register(&plan), WEFT_OK);
	CHECK_EQ(weft_strategy_register(&plan), WEFT_ERR_ARG);
	CHECK_EQ(weft_strategy_register(NULL), WEFT_ERR_ARG);
	CHECK(!weft_comm_strategy_find("no such"));
	struct weft_net_card card = {.latency_us = 5};
	const struct weft_strategy *automatic = weft_comm_strategy_find("auto");
	CHECK(automatic->choose(&card)->pack && automatic->choose(&card)->apart);
	card.gathers = true;
	CHECK(automatic->choose(&card) == &weft_comm_strategy_fifo);
	for (uint64_t seed = 1; seed <= (TEST_ALONE > 1 ? 1 : 3); seed++) {
		for (unsigned i = 0; i < weft_countof(all); i++) {
			fake.latency_us = i % 2 ? 5 : 0.1; /* what auto looks at */
			small_behind_large(seed, all[i], i > 1);
			traffic(seed, all[i]);
		}
		/* 48 pieces; those that go when it is posted in full, in the same round, count too.
		 */
		CHECK(pieces_meanwhile(seed, "shortest") <= 20);
		CHECK(pieces_meanwhile(seed, "reorder") > 30);
		CHECK(pieces_meanwhile(seed, "longest") > 30);
		by_priority(seed);
		window(seed);
		lone(seed);
		fan_in(seed);
		prepared_meanwhile(seed);
		posted_while_polled(seed);
	}
	bad_packs();
	CHECK(asked > 0);
	for (int i = 0; i < 7; i++) {
		char name[8];
		snprintf(name, sizeof name, "own%d", i);
		plan.name = strdup(name);
		CHECK_EQ(weft_strategy_register(&plan), WEFT_OK);
	}
	plan.name = "one more";
	CHECK_EQ(weft_strategy_register(&plan), WEFT_ERR_LIMIT);
	return 0;
}
