/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_flood.c - a process that does not receive holds no more payload than the credit, and gets
 * everything afterwards; a hundred thousand tags, received in reverse, are found at once; more
 * answers than there is memory for end the connection, not the process.
 */
#include <string.h>
#include "base/counters.h"
#include "comm/lost_peer.h"
#include "comm/fake_net.h"
#include "comm/match/match_probe.h"
#include "comm/recv/msg.h"

static struct weft_core *core[2];
static struct weft_ctx *ctx[2];

static void begin(uint64_t seed, uint64_t credit)
{
	fake_init(seed);
	fake.credit = credit;
	fake_cores(core, 2);
	for (int r = 0; r < 2; r++)
		CHECK(!weft_comm_core_ctx_open(core[r], 2, &ctx[r]));
}

static void finish(struct weft_req *r)
{
	while (!weft_comm_req_done(r))
		fake_poll_all(core, 2, 1);
	CHECK(!r->status.err);
}

/* Payload that lies with the receiver. */
static size_t held(struct weft_ctx *c)
{
	struct weft_status st;
	size_t n = 0;
	/* A wildcard: from now on the context has its messages in a list. */
	(void)weft_comm_match_probe(c, WEFT_ANY_PEER, WEFT_ANY_TAG, false, &st, NULL);
	for (struct weft_msg *m = c->all_head; m; m = m->all_next)
		n += m->msg_kind == WEFT_MSG_EAGER ? m->length : 0;
	return n;
}

static void bounded(uint64_t seed)
{
	enum { N = 3000, CREDIT = 50000 };
	static struct weft_req s[N], r;
	static char out[1000], in[1000];
	struct weft_buf b = weft_data_buf_flat(out, sizeof out);

	begin(seed, CREDIT);
	memset(out, 'm', sizeof out);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < N; i++) {
			weft_comm_req_init(&s[i], NULL, NULL);
			CHECK(!weft_comm_core_isend(&s[i], ctx[0], 1, i, &b,
						    i % 5 ? WEFT_SEND_STANDARD : WEFT_SEND_SYNC));
			fake_poll_all(core, 2, 1);
			CHECK(held(ctx[1]) <= CREDIT);
		}
		fake_poll_all(core, 2, 2000);
		CHECK(held(ctx[1]) <= CREDIT && held(ctx[1]) > CREDIT / 4);
		for (int i = N - 1; i >= 0; i--) {
			struct weft_buf to = weft_data_buf_flat(in, sizeof in);
			weft_comm_req_init(&r, NULL, NULL);
			memset(in, 0, sizeof in);
			CHECK(!weft_comm_core_irecv(&r, ctx[1], 0, i, &to));
			finish(&r);
			CHECK(!memcmp(in, out, sizeof in));
		}
		for (int i = 0; i < N; i++)
			finish(&s[i]);
	}
	fake_end(core, 2);
}

static void many_tags(uint64_t seed)
{
	enum { N = 100000 / TEST_ALONE };
	char out[8] = "payload", in[8];
	struct weft_buf b = weft_data_buf_flat(out, sizeof out),
			to = weft_data_buf_flat(in, sizeof in);
	struct weft_req s, r;

	fake.chance_full = 0;
	begin(seed, 0);
	/* Strides as communicator-sized tags have them, too. */
	for (int stride = 1; stride <= 4096; stride *= 64) {
		for (int i = 0; i < N; i++) {
			weft_comm_req_init(&s, NULL, NULL);
			CHECK(!weft_comm_core_isend(&s, ctx[0], 1, i * stride, &b,
						    WEFT_SEND_STANDARD));
			finish(&s);
			fake_poll_all(core, 2, 1);
		}
		/* What the fabric still has. */
		fake_poll_all(core, 2, 1000);
		uint64_t before = weft_counter_sum(WEFT_CNT_MATCH_STEPS);
		for (int i = N - 1; i >= 0; i--) {
			weft_comm_req_init(&r, NULL, NULL);
			CHECK(!weft_comm_core_irecv(&r, ctx[1], 0, i * stride, &to));
			CHECK(weft_comm_req_done(&r) && !r.status.err && !strcmp(in, out));
		}
		/* A list would need N / 2 each. */
		CHECK(weft_counter_sum(WEFT_CNT_MATCH_STEPS) - before < 2 * N);
	}
	fake_end(core, 2);
}

/* Rank 1 owes many answers, its way out is full and malloc has nothing. */
static void answers(uint64_t seed, int n, bool fits)
{
	static struct weft_req s[1000];
	char byte = 'a', in[1];
	struct weft_buf b = weft_data_buf_flat(&byte, 1), to = weft_data_buf_flat(in, 1);

	fake.chance_full = 0;
	begin(seed, 0);
	for (int i = 0; i < n; i++) {
		weft_comm_req_init(&s[i], NULL, NULL);
		CHECK(!weft_comm_core_isend(&s[i], ctx[0], 1, 7, &b, WEFT_SEND_SYNC));
		fake_poll_all(core, 2, 4);
	}
	fake_poll_all(core, 2, 1000);
	core[1]->answers.no_more = true;
	fake.chance_full = 100;
	for (int i = 0; i < n; i++) {
		struct weft_req r;
		weft_comm_req_init(&r, NULL, NULL);
		CHECK(!weft_comm_core_irecv(&r, ctx[1], 0, 7, &to));
		CHECK(weft_comm_req_done(&r) && !r.status.err);
	}
	fake.chance_full = 0;
	fake_poll_all(core, 2, 2000);
	CHECK(weft_comm_gate_down(&core[1]->gate[0]) == !fits);
	if (fits) {
		for (int i = 0; i < n; i++)
			finish(&s[i]);
		CHECK_EQ(core[1]->answers.kept, WEFT_ANSWERS_KEPT);
	} else {
		/* What the real network tells the other side. */
		weft_comm_core_peer_down(core[0], 1, WEFT_ERR_PEER, "left");
		for (int i = 0; i < n; i++)
			CHECK(weft_comm_req_done(&s[i]));
	}
	fake_end(core, 2);
}

/* The same, while half of a payload is in its place: nothing is written there once the receive is over.
 */
static void answers_amid_payload(uint64_t seed)
{
	enum { N = 500, LEN = 1000 };
	static struct weft_req s[N], s2, r2;
	static char out[LEN], in2[LEN];
	char byte = 'a', in[1];
	struct weft_buf b = weft_data_buf_flat(&byte, 1), to = weft_data_buf_flat(in, 1);
	struct weft_buf b2 = weft_data_buf_flat(out, LEN), to2 = weft_data_buf_flat(in2, LEN);
	const struct fake_lane *lane = &fake.lane[0][1];

	memset(out, 'x', LEN);
	fake.chance_full = 0;
	begin(seed, 0);
	for (int i = 0; i < N; i++) {
		weft_comm_req_init(&s[i], NULL, NULL);
		CHECK(!weft_comm_core_isend(&s[i], ctx[0], 1, 7, &b, WEFT_SEND_SYNC));
		fake_poll_all(core, 2, 4);
	}
	fake_poll_all(core, 2, 1000);
	fake.chance_place = 100;
	fake.chance_late = 50;
	/* Ends: half of the payloads that begin are not there with the same poll. */
	while (!lane->placing) {
		weft_comm_req_init(&r2, NULL, NULL);
		weft_comm_req_init(&s2, NULL, NULL);
		CHECK(!weft_comm_core_irecv(&r2, ctx[1], 0, 8, &to2));
		CHECK(!weft_comm_core_isend(&s2, ctx[0], 1, 8, &b2, WEFT_SEND_STANDARD));
		while (!lane->placing && !weft_comm_req_done(&r2))
			fake_poll_all(core, 2, 1);
	}
	core[1]->answers.no_more = true;
	fake.chance_full = fake.chance_late = 100;
	for (int i = 0; i < N; i++) {
		struct weft_req r;
		weft_comm_req_init(&r, NULL, NULL);
		CHECK(!weft_comm_core_irecv(&r, ctx[1], 0, 7, &to));
		CHECK(weft_comm_req_done(&r) && !r.status.err);
	}
	fake.chance_full = 0;
	fake_poll_all(core, 2, 1000);
	bool over = weft_comm_req_done(&r2);
	memset(in2, 0, LEN);
	fake.chance_late = 30;
	fake_poll_all(core, 2, 2000);
	CHECK(weft_comm_req_done(&r2) && weft_comm_gate_down(&core[1]->gate[0]));
	for (int i = 0; over && i < LEN; i++)
		CHECK(!in2[i]);
	weft_comm_core_peer_down(core[0], 1, WEFT_ERR_PEER, "left");
	while (!weft_comm_req_done(&s2))
		fake_poll_all(core, 2, 1);
	fake_end(core, 2);
	fake.chance_place = 30;
}

int main(int argc, char **argv)
{
	unsigned long long seed = test_seed(argc, argv);
	bounded(seed);
	many_tags(seed);
	answers(seed, WEFT_ANSWERS_KEPT, true);
	answers(seed, 500, false);
	answers_amid_payload(seed);
	return 0;
}
