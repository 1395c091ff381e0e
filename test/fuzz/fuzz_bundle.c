/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_bundle.c - a peer over two rails that has proven itself and lies: numbers, places, lengths,
 * confirmations, as packets and as streams, while rails break and come back and we send ourselves.
 * Each packet and each post ends once; when the peer is given up, nothing more is said of it.
 */
#include "fuzz.h"
#include "net/fake_rail.h"
#include "sim/virtual.h"

#define MS 1000000ull

static uint64_t now_ns;

uint64_t sim_clock_ns(void)
{
	return now_ns;
}

bool sim_hub_due(void)
{
	return true;
}

static struct weft_bundle *bundle;
static unsigned accepted;

/* A head, half honest: a number near those awaited, a confirmation of what was sent. */
static struct weft_bundle_head head(struct fuzz_input *in, int rail)
{
	struct weft_bundle_peer *p = &bundle->peer[FAKE_PEER];
	struct weft_bundle_head h;
	uint8_t near;
	unsigned mend = fuzz_byte(in);
	fuzz_take(in, &near, 1);
	fuzz_take(in, &h, sizeof h);
	if (mend & 1)
		h.kind = (uint8_t)(1 + h.kind % 5);
	if (mend & 2)
		h.number = p->window.next + near % 16 - (near & 16 ? 2 : 0);
	if (mend & 4)
		h.got = fake_rail[rail].units - (h.got % 2 && fake_rail[rail].units);
	if (mend & 8)
		h.next = p->number;
	if (mend & 16)
		h.begin = p->placing ? p->placing_begin : h.number - (1 + (near >> 5) % 4);
	if (mend & 32)
		h.offset = p->placing_len ? h.offset % (uint32_t)p->placing_len : 0;
	return h;
}

/* Payloads of all lengths, made of a few bytes of the input. */
static size_t payload(struct fuzz_input *in, uint8_t *to, size_t most)
{
	uint32_t len;
	unsigned what = fuzz_byte(in);
	fuzz_take(in, &len, 3);
	len = what & 1 ? len & 63 : len;
	len = len < most ? len : (uint32_t)most;
	if (what & 2)
		len = sizeof(struct weft_bundle_begin);
	memset(to, (int)what, len);
	fuzz_take(in, to, len < 40 ? len : 40);
	if (what & 4 && len == sizeof(struct weft_bundle_begin)) /* a length that makes sense */
		memset(to + offsetof(struct weft_bundle_begin, len) + 2, 0, 6);
	return len;
}

static void say(struct fuzz_input *in, int rail, bool stream)
{
	static uint8_t bytes[FAKE_ROOM];
	struct fake_rail *r = &fake_rail[rail];
	struct weft_bundle_head h = head(in, rail);
	size_t len = payload(in, bytes, stream ? FAKE_ROOM : 65536);
	if (r->gone)
		return;
	if (!stream || !len) {
		fake_say(rail, &h, bytes, len);
		return;
	}
	size_t room = fake_stream(rail, &h, len);
	CHECK(room <= len);
}

static void send_one(struct fuzz_input *in)
{
	static uint8_t out[300000];
	uint8_t h[WEFT_NET_HEAD] = {0};
	size_t len = (size_t)fuzz_byte(in) * (fuzz_byte(in) & 1 ? 1 : 1000);
	struct iovec iov[2] = {{out, len / 2}, {out + len / 2, len - len / 2}};
	accepted += weft_net_driver_bundle.post(&bundle->net, FAKE_PEER, h, iov, 2, len, out) ==
		    WEFT_POST_ACCEPTED;
}

static void step(struct fuzz_input *in)
{
	unsigned what = fuzz_byte(in), rail = what & 1;
	struct fake_rail *r = &fake_rail[rail];
	/* In the midst of a payload a rail says nothing else. */
	if (r->streams && what % 32 / 2 < 8) {
		if (what & 32)
			fake_break(r, WEFT_ERR_PEER);
		else
			fake_stream_end((int)rail, (uint8_t)what);
		return;
	}
	switch (what % 32 / 2) {
	case 0:
		if (!r->gone)
			fake_hello((int)rail);
		break;
	case 1:
	case 2:
	case 3:
		say(in, (int)rail, false);
		break;
	case 4:
	case 5:
		say(in, (int)rail, true);
		break;
	case 6:
	case 7:
		r->refuses = what & 64;
		if (what & 32)
			fake_break(r, what & 128 ? WEFT_OK : WEFT_ERR_PEER);
		break;
	case 8:
	case 9:
	case 10:
		send_one(in);
		break;
	case 11:
		r->keeps = !r->keeps;
		if (!r->keeps)
			fake_sent(r, WEFT_OK);
		break;
	case 12:
		r->full = !r->full;
		if (!r->full && !r->gone)
			r->up.ready(r->up.arg, FAKE_PEER);
		break;
	default:
		now_ns += (uint64_t)(what >> 5) * 100 * MS;
		(void)weft_net_driver_bundle.poll(&bundle->net);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	now_ns = 1000 * MS;
	accepted = 0;
	bundle = (struct weft_bundle *)fake_begin();
	if (fuzz_byte(&in) & 1)
		for (int r = 0; r < FAKE_RAILS; r++)
			fake_hello(r);
	/* Ends with the input. */
	while (in.left) {
		step(&in);
		if (!fake_up.downs)
			continue;
		/* What was said before is all. */
		CHECK(fake_up.downs == 1);
		CHECK_EQ(fake_up.placed + fake_up.placed_bad, fake_up.places);
		CHECK_EQ(fake_up.sent, accepted);
		unsigned packets = fake_up.packets, places = fake_up.places;
		for (int i = 0; in.left && i < 20; i++)
			step(&in);
		CHECK(fake_up.packets == packets && fake_up.places == places);
		CHECK(fake_up.downs == 1);
		break;
	}
	CHECK(fake_up.placed + fake_up.placed_bad <= fake_up.places &&
	      fake_up.places - fake_up.placed - fake_up.placed_bad <= 1);
	CHECK(fake_up.sent <= accepted);
	for (int r = 0; r < FAKE_RAILS; r++)
		fake_sent(&fake_rail[r], WEFT_OK); /* as a drain would */
	weft_net_driver_bundle.close(&bundle->net);
	return 0;
}
