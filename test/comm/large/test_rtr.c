/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_rtr.c - a receive posted early lets its message go without asking; where another message
 * took the receive, or the receive went away, every message still arrives whole and in order, and
 * what lies unreceived stays within the credit.
 */
#include <string.h>
#include "base/counters.h"
#include "comm/core.h"
#include "comm/fake_net.h"
#include "payload.h"

enum { LONG = 20000, SMALL = 100 };

static struct weft_core *core[2];
static struct weft_ctx *ctx[2];
static uint64_t told, used, stale;

static void count(void)
{
	told = weft_counter_sum(WEFT_CNT_EARLY_TOLD);
	used = weft_counter_sum(WEFT_CNT_EARLY_USED);
	stale = weft_counter_sum(WEFT_CNT_EARLY_STALE);
}

static unsigned requests; /* to send that came */

static void arrives(int from, int to, const struct weft_wire *h)
{
	(void)from;
	(void)to;
	requests += h->kind == WEFT_WIRE_RTS;
}

static void begin(uint64_t seed, uint64_t credit)
{
	fake_init(seed);
	fake.can_get = false;
	fake.rtr = true;
	fake.credit = credit;
	fake.arrives = arrives;
	fake_cores(core, 2);
	for (int r = 0; r < 2; r++)
		CHECK(!weft_comm_core_ctx_open(core[r], 1, &ctx[r]));
	count();
	requests = 0;
}

static void end(void)
{
	for (int r = 0; r < 2; r++)
		CHECK(weft_comm_core_idle(core[r]));
	fake_end(core, 2);
}

/* Until what is on its way has come: a poll finds one packet of each lane, some come later. */
static void calm(void)
{
	fake_poll_all(core, 2, 1000);
}

static void finish(struct weft_req *r)
{
	while (!weft_comm_req_done(r))
		fake_poll_all(core, 2, 1);
	CHECK(!r->status.err);
}

static void receive(struct weft_req *r, int peer, int tag, char *in, size_t room)
{
	struct weft_buf b = weft_data_buf_flat(in, room);
	memset(in, 0, room);
	weft_comm_req_init(r, NULL, NULL);
	CHECK(!weft_comm_core_irecv(r, ctx[1], peer, tag, &b));
}

static void send(struct weft_req *r, int tag, char *out, size_t len, char with,
		 enum weft_send_mode mode)
{
	struct weft_buf b = weft_data_buf_flat(out, len);
	memset(out, with, len);
	weft_comm_req_init(r, NULL, NULL);
	CHECK(!weft_comm_core_isend(r, ctx[0], 1, tag, &b, mode));
}

static void got(struct weft_req *r, const char *in, size_t len, char with)
{
	finish(r);
	CHECK_EQ(r->status.bytes, len);
	CHECK(payload_is(in, len, with));
}

static char in_a[LONG], in_b[LONG], out_a[LONG], out_b[LONG];

/* Posted before: no request to send, whatever the mode. */
static void goes_at_once(uint64_t seed, enum weft_send_mode mode)
{
	struct weft_req r, s;
	begin(seed, 0);
	for (int i = 0; i < 20; i++) {
		receive(&r, 0, 3, in_a, LONG);
		calm();
		send(&s, 3, out_a, LONG - (size_t)i, (char)('a' + i), mode);
		got(&r, in_a, LONG - (size_t)i, (char)('a' + i));
		finish(&s);
	}
	CHECK_EQ(requests, 0);
	CHECK_EQ(weft_counter_sum(WEFT_CNT_EARLY_TOLD) - told, 20);
	CHECK_EQ(weft_counter_sum(WEFT_CNT_EARLY_USED) - used, 20);
	end();
}

/* Each word is for one message; two receives of one key, one word each. */
static void once_each(uint64_t seed)
{
	struct weft_req r[2], s[3];
	char more[LONG];
	begin(seed, 0);
	receive(&r[0], 0, 3, in_a, LONG);
	receive(&r[1], 0, 3, in_b, LONG);
	calm();
	for (int i = 0; i < 3; i++)
		send(&s[i], 3,
		     i == 0   ? out_a
		     : i == 1 ? out_b
			      : more,
		     LONG, (char)('a' + i), WEFT_SEND_STANDARD);
	got(&r[0], in_a, LONG, 'a');
	got(&r[1], in_b, LONG, 'b');
	calm();
	CHECK_EQ(requests, 1);
	CHECK_EQ(weft_counter_sum(WEFT_CNT_EARLY_USED) - used, 2);
	receive(&r[0], 0, 3, in_a, LONG);
	got(&r[0], in_a, LONG, 'c');
	for (int i = 0; i < 3; i++)
		finish(&s[i]);
	end();
}

/* A small message with the receive's tag: before the word comes, or after it. */
static void taken_by_another(uint64_t seed, bool crossing)
{
	struct weft_req r[2], s[2];
	begin(seed, 0);
	receive(&r[0], 0, 3, in_a, LONG);
	if (!crossing)
		calm();
	send(&s[0], 3, out_b, SMALL, 's', WEFT_SEND_STANDARD);
	calm();
	got(&r[0], in_a, SMALL, 's');
	send(&s[1], 3, out_a, LONG, 'l', WEFT_SEND_STANDARD);
	calm();
	CHECK_EQ(requests, 1);
	CHECK_EQ(weft_counter_sum(WEFT_CNT_EARLY_STALE) - stale, crossing);
	receive(&r[1], 0, 3, in_b, LONG);
	got(&r[1], in_b, LONG, 'l');
	finish(&s[0]);
	finish(&s[1]);
	end();
}

/* Told of, then cancelled: the message is kept until another receive comes. */
static void cancelled(uint64_t seed)
{
	struct weft_req r, s;
	begin(seed, 0);
	receive(&r, 0, 3, in_a, LONG);
	calm();
	CHECK(weft_comm_recv_cancel(&r));
	send(&s, 3, out_a, LONG, 'x', WEFT_SEND_SYNC);
	calm();
	CHECK(!weft_comm_req_done(&s));
	receive(&r, 0, 3, in_b, LONG);
	got(&r, in_b, LONG, 'x');
	finish(&s);
	CHECK_EQ(weft_counter_sum(WEFT_CNT_EARLY_USED) - used, 1);
	end();
}

/* A wildcard is older: nothing is told; younger: it does not get the message. */
static void wildcards(uint64_t seed)
{
	struct weft_req w, r, s[2];
	begin(seed, 0);
	receive(&w, WEFT_ANY_PEER, 3, in_a, LONG);
	receive(&r, 0, 3, in_b, LONG);
	CHECK_EQ(weft_counter_sum(WEFT_CNT_EARLY_TOLD) - told, 0);
	send(&s[0], 3, out_a, LONG, '1', WEFT_SEND_STANDARD);
	send(&s[1], 3, out_b, LONG, '2', WEFT_SEND_STANDARD);
	got(&w, in_a, LONG, '1');
	got(&r, in_b, LONG, '2');
	finish(&s[0]);
	finish(&s[1]);
	receive(&r, 0, 3, in_b, LONG);
	receive(&w, WEFT_ANY_PEER, WEFT_ANY_TAG, in_a, LONG);
	calm();
	send(&s[0], 3, out_a, LONG, '3', WEFT_SEND_STANDARD);
	got(&r, in_b, LONG, '3');
	finish(&s[0]);
	send(&s[0], 9, out_a, LONG, '4', WEFT_SEND_STANDARD);
	got(&w, in_a, LONG, '4');
	finish(&s[0]);
	CHECK_EQ(weft_counter_sum(WEFT_CNT_EARLY_TOLD) - told, 1);
	end();
}

/* Longer than its receive has room for: it asks, and is cut as always. */
static void too_long(uint64_t seed)
{
	struct weft_req r, s;
	begin(seed, 0);
	receive(&r, 0, 3, in_a, LONG / 2);
	calm();
	send(&s, 3, out_a, LONG, 't', WEFT_SEND_STANDARD);
	while (!weft_comm_req_done(&r) || !weft_comm_req_done(&s))
		fake_poll_all(core, 2, 1);
	CHECK_EQ(r.status.err, WEFT_ERR_TRUNC);
	CHECK_EQ(r.status.bytes, LONG / 2);
	CHECK_EQ(requests, 1);
	end();
}

/* Messages that go at once use at most half of the credit. */
static void bounded(uint64_t seed)
{
	enum { N = 6 };
	static char in[N][LONG], out[N][LONG];
	struct weft_req r[N], s[N];
	begin(seed, 5 * LONG);
	for (int i = 0; i < N; i++)
		receive(&r[i], 0, i, in[i], LONG);
	calm();
	for (int i = 0; i < N; i++)
		CHECK(weft_comm_recv_cancel(&r[i]));
	for (int i = 0; i < N; i++)
		send(&s[i], i, out[i], LONG, (char)('a' + i), WEFT_SEND_STANDARD);
	calm();
	CHECK_EQ(weft_counter_sum(WEFT_CNT_EARLY_USED) - used, 2);
	CHECK_EQ(requests, N - 2);
	for (int i = N; i-- > 0;) {
		receive(&r[i], 0, i, in[i], LONG);
		got(&r[i], in[i], LONG, (char)('a' + i));
		finish(&s[i]);
	}
	end();
}

/* A sender that never gets its RTR in time is sent none any more, but for one time in sixteen. */
static void in_vain(uint64_t seed)
{
	struct weft_req r, s;
	begin(seed, 0);
	fake.chance_full = 0;
	for (int i = 0; i < 36; i++) {
		send(&s, 3, out_a, LONG, 'v', WEFT_SEND_STANDARD);
		receive(&r, 0, 3, in_a, LONG);
		got(&r, in_a, LONG, 'v');
		finish(&s);
		calm();
	}
	fake.chance_full = 10;
	CHECK_EQ(requests, 36);
	CHECK_EQ(weft_counter_sum(WEFT_CNT_EARLY_TOLD) - told, 6);
	end();
}

/* What a peer may write: words of contexts that there are not, more than there is room for. */
static void nonsense(uint64_t seed)
{
	struct weft_req r, s;
	begin(seed, 0);
	for (uint32_t i = 0; i < 200; i++)
		weft_comm_gate_control(&core[1]->gate[0],
				       &(struct weft_wire){.kind = WEFT_WIRE_RTR,
							   .sequence = i * 77777777u,
							   .context = i,
							   .tag = (int32_t)i - 5,
							   .length = UINT64_MAX - i});
	calm();
	for (int i = 0; i < 20; i++) {
		send(&s, i, out_a, LONG, 'n', WEFT_SEND_STANDARD);
		calm();
		receive(&r, 0, i, in_a, LONG);
		got(&r, in_a, LONG, 'n');
		finish(&s);
	}
	end();
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 20261122;
	printf("seed %llu\n", (unsigned long long)seed);
	for (int i = 0; i < 3; i++, seed++) {
		goes_at_once(seed, WEFT_SEND_STANDARD);
		goes_at_once(seed, WEFT_SEND_SYNC);
		once_each(seed);
		taken_by_another(seed, true);
		taken_by_another(seed, false);
		cancelled(seed);
		wildcards(seed);
		too_long(seed);
		bounded(seed);
		in_vain(seed);
		nonsense(seed);
	}
	return 0;
}
