/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_eager_threshold.c - the switch point of a host follows made costs, in both directions and within its
 * bounds, and is not moved by messages that waited or by small errors; a gate that learns asks for what
 * lies beyond the moved point; peers of a host share it.
 */
#include <string.h>
#include "base/counters.h"
#include "comm/core.h"
#include "comm/fake_net.h"

enum { START = 65536, HIGHEST = 1 << 30 };

static void asked(struct weft_comm_eager_threshold *l, uint64_t ns)
{
	for (int i = 0; i < WEFT_EAGER_THRESHOLD_ASKED; i++)
		weft_comm_eager_threshold_asked(
			l, i == 7 ? ns : ns * (uint64_t)(2 + i)); /* the others waited */
}

static void copied(struct weft_comm_eager_threshold *l, size_t bytes, uint64_t ns)
{
	for (int i = 0; i < 100; i++)
		weft_comm_eager_threshold_copied(l, bytes, ns);
}

static size_t near(size_t a, size_t b)
{
	return a > b ? a - b : b - a;
}

static void follows(void)
{
	struct weft_comm_eager_threshold l;
	weft_comm_eager_threshold_init(&l, START, HIGHEST);
	CHECK_EQ(weft_comm_eager_threshold_point(&l), START);
	/* One of two costs alone says nothing. */
	asked(&l, 10000);
	CHECK_EQ(weft_comm_eager_threshold_point(&l), START);
	/* 10 us to ask, 0.1 ns per byte: 100 KB. */
	copied(&l, 1000000, 100000);
	CHECK(near(weft_comm_eager_threshold_point(&l), 100000) < 2000);
	CHECK_EQ(weft_comm_eager_threshold_read(&l).moves, 1);
	/* A fifth more or less: nothing. */
	asked(&l, 12000);
	asked(&l, 8200);
	CHECK_EQ(weft_comm_eager_threshold_read(&l).moves, 1);
	/* A slow network: to the bound; a quick one: to the other. */
	asked(&l, 1000000);
	CHECK_EQ(weft_comm_eager_threshold_point(&l), 4 * START);
	asked(&l, 100);
	CHECK_EQ(weft_comm_eager_threshold_point(&l), START / 4);
	asked(&l, 5000);
	CHECK(near(weft_comm_eager_threshold_point(&l), 50000) < 1000);
	unsigned moves = weft_comm_eager_threshold_read(&l).moves;
	CHECK_EQ(moves, 4);
	/* Copies that cost twice as much: to what is right, or a quarter beside it. */
	copied(&l, 1000000, 200000);
	CHECK(weft_comm_eager_threshold_read(&l).moves > moves);
	CHECK(weft_comm_eager_threshold_point(&l) >= 25000 &&
	      weft_comm_eager_threshold_point(&l) <= 34000);
}

/* What no clock should say, and what a frozen machine does. */
static void extremes(void)
{
	struct weft_comm_eager_threshold l;
	weft_comm_eager_threshold_init(&l, START, START * 2);
	asked(&l, 0);
	weft_comm_eager_threshold_copied(&l, 1 << 20, 0);
	CHECK(weft_comm_eager_threshold_point(&l) >= START / 4);
	asked(&l, UINT64_MAX / 32);
	CHECK_EQ(weft_comm_eager_threshold_point(&l), START * 2); /* the network takes no more */
	copied(&l, 1, UINT64_MAX / 4000);
	CHECK(weft_comm_eager_threshold_point(&l) <= START / 2);
	weft_comm_eager_threshold_init(&l, 0, 100);
	asked(&l, 1000);
	copied(&l, 16384, 1000);
	CHECK_EQ(weft_comm_eager_threshold_point(&l), 0);
}

/* Two gates of one host. */
static void at_gates(uint64_t seed)
{
	static char out[8 * FAKE_EAGER], in[8 * FAKE_EAGER];
	static struct weft_core *core[3];
	struct weft_ctx *ctx[3];
	fake_init(seed);
	fake.can_get = false;
	fake_cores(core, 3);
	for (int r = 0; r < 3; r++)
		CHECK(!weft_comm_core_ctx_open(core[r], 1, &ctx[r]));
	weft_comm_gate_learn(&core[0]->gate[1], NULL);
	weft_comm_gate_learn(&core[0]->gate[2], &core[0]->gate[1]);
	struct weft_comm_eager_threshold *l = core[0]->gate[1].eager_threshold;
	CHECK(l && l == core[0]->gate[2].eager_threshold);
	for (int round = 0; round < 3; round++) {
		size_t point = weft_comm_eager_threshold_point(l);
		CHECK_EQ(point, round == 0   ? (size_t)FAKE_EAGER
				: round == 1 ? (size_t)4 * FAKE_EAGER
					     : (size_t)FAKE_EAGER / 4);
		for (int k = 0; k < 2; k++) {
			struct weft_req s, r;
			struct weft_buf from = weft_data_buf_flat(out, point + (size_t)k);
			struct weft_buf to = weft_data_buf_flat(in, sizeof in);
			uint64_t sent = weft_counter_sum(WEFT_CNT_RNDV_SENT);
			int peer = 1 + k;
			weft_comm_req_init(&s, NULL, NULL);
			weft_comm_req_init(&r, NULL, NULL);
			memset(out, 'a' + round, sizeof out);
			CHECK(!weft_comm_core_irecv(&r, ctx[peer], 0, 1, &to));
			CHECK(!weft_comm_core_isend(&s, ctx[0], peer, 1, &from,
						    WEFT_SEND_STANDARD));
			CHECK_EQ(weft_counter_sum(WEFT_CNT_RNDV_SENT) - sent, k);
			while (!weft_comm_req_done(&s) || !weft_comm_req_done(&r))
				for (int q = 0; q < 3; q++)
					(void)weft_comm_core_poll(core[q]);
			CHECK_EQ(r.status.bytes, point + (size_t)k);
			CHECK(in[0] == 'a' + round && in[point - 1] == 'a' + round);
		}
		/* What was measured just now is of this machine: made costs take its place. */
		CHECK_EQ(l->asked, round + 1);
		l->asked = 0;
		l->round_ns = UINT64_MAX;
		copied(l, 1 << 20, 100000);
		asked(l, round ? 1 : 1000000);
		l->asked = (unsigned)round + 1;
	}
	fake_end(core, 3);
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 20261122;
	printf("seed %llu\n", (unsigned long long)seed);
	follows();
	extremes();
	at_gates(seed);
	return 0;
}
