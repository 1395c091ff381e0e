/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flow.c - how much the bundle driver sends before it hears, how often it speaks, and which rails
 * it looks at: counted over rails that do exactly what each case says.
 */
#include <poll.h>
#include "script.h"

/* The peer has all that was posted. */
static void confirm_all(void)
{
	uint32_t units = fake_rail[0].units + fake_rail[1].units;
	for (int r = 0; r < FAKE_RAILS; r++) {
		struct weft_bundle_head h = fake_head(r, WEFT_BUNDLE_ACK, 0);
		h.got = fake_rail[r].got = fake_rail[r].units;
		h.next = units;
		fake_say(r, &h, NULL, 0);
	}
}

/* What is copied is confirmed once in many packets while it comes, and all of it a little after it
 * has ended: 3,000 of them cost no more than 3,000 / 512 words and that one. */
static void case_few_words(void)
{
	begin();
	for (uint32_t i = 0; i < 3000; i++) {
		fake_whole(0, i, 1);
		(void)weft_net_driver_bundle.poll(net);
	}
	CHECK(fake_rail[0].acks > 0);
	CHECK(fake_rail[0].acks <= 3000 / WEFT_BUNDLE_BEHIND);
	poll_for(S / 5);
	CHECK(fake_rail[0].acks <= 3000 / WEFT_BUNDLE_BEHIND + 1);
	CHECK(fake_rail[0].last.got == 3000 && fake_rail[0].last.next == 3000);
	end();
}

/* The sender asks before what is not confirmed nears its bound, and seldom: once in ASK_BYTES.  At
 * the bound it is told that there is no room, and when the peer has all of it, that there is. */
static void case_bound(void)
{
	const size_t len = 8000, unit = len + WEFT_NET_HEAD;
	unsigned posted = 0, asked = 0, silent = 0, most = 0;
	begin();
	struct weft_bundle_peer *p = &((struct weft_bundle *)net)->peer[FAKE_PEER];
	while (post_len(len) == WEFT_POST_DONE) { /* bound: checked within */
		bool asks = fake_rail[fake_rail[1].units > 0].last.ask == WEFT_BUNDLE_NOW;
		posted++;
		asked += asks;
		silent = asks || fake_rail[1].units == 1 ? 0 : silent + 1;
		most = silent > most ? silent : most;
		CHECK(posted <= FAKE_RAILS * WEFT_BUNDLE_AHEAD / unit + 1);
	}
	CHECK(posted >= FAKE_RAILS * WEFT_BUNDLE_AHEAD / unit);
	CHECK(fake_rail[0].units * unit >= WEFT_BUNDLE_AHEAD && fake_rail[1].units > 0);
	CHECK(asked >= 4 && most <= WEFT_BUNDLE_ASK_BYTES / unit);
	CHECK(asked <= posted * unit / WEFT_BUNDLE_ASK_BYTES);
	CHECK_EQ(p->kept_bytes, posted * unit);
	CHECK_EQ(post_len(1), WEFT_POST_FULL);
	(void)weft_net_driver_bundle.poll(net);
	CHECK_EQ(fake_up.readies, 0);
	confirm_all();
	(void)weft_net_driver_bundle.poll(net);
	CHECK(p->kept_bytes == 0 && fake_up.readies == 1);
	CHECK_EQ(post_len(len), WEFT_POST_DONE);
	end();
	CHECK_EQ(fake_up.downs, 0);
}

/* A lone packet asks for nothing; what is read from the upper layer's memory asks for a word when
 * nothing more comes, and a sender near its bound for one at once. */
static void case_asks(void)
{
	static uint8_t out[100000];
	uint8_t head[WEFT_NET_HEAD] = {0};
	struct iovec iov = {out, sizeof out};
	struct weft_bundle *b;
	begin();
	b = (struct weft_bundle *)net;
	CHECK(post_len(1) == WEFT_POST_DONE && fake_rail[0].last.ask == WEFT_BUNDLE_LATER);
	CHECK_EQ(weft_net_driver_bundle.post(net, FAKE_PEER, head, &iov, 1, sizeof out, out),
		 WEFT_POST_ACCEPTED);
	CHECK_EQ(fake_rail[1].last.ask, WEFT_BUNDLE_SOON);
	confirm_all();
	CHECK_EQ(fake_up.sent, 1);

	fake_whole(0, 0, 1);
	(void)weft_net_bundle_tell(b, WEFT_BUNDLE_SAY_ASKED);
	CHECK_EQ(fake_rail[0].acks, 0);
	fake_large(0, 1, 100);
	struct weft_bundle_head h = fake_piece(0, 2, 1, 0);
	h.ask = WEFT_BUNDLE_SOON;
	fake_say(0, &h, out, 100);
	(void)weft_net_bundle_tell(b, WEFT_BUNDLE_SAY_URGENT);
	CHECK_EQ(fake_rail[0].acks, 0);
	(void)weft_net_bundle_tell(b, WEFT_BUNDLE_SAY_ASKED);
	CHECK(fake_rail[0].acks == 1 && fake_rail[0].last.got == 3);
	h = fake_head(0, WEFT_BUNDLE_WHOLE, 3);
	h.ask = WEFT_BUNDLE_NOW;
	fake_say(0, &h, out, WEFT_NET_HEAD);
	(void)weft_net_bundle_tell(b, WEFT_BUNDLE_SAY_URGENT);
	CHECK(fake_rail[0].acks == 2 && fake_rail[0].last.got == 4);
	end();
	CHECK_EQ(fake_up.downs, 0);
}

/* Armed, only the rail whose descriptor says so is polled, until a poll of it finds nothing. */
static void case_armed(void)
{
	begin();
	while (weft_net_driver_bundle.arm(net, WEFT_ARM_ALL) !=
	       WEFT_OK) /* ends: no rank says anything */
		(void)weft_net_driver_bundle.poll(net);
	unsigned before[] = {fake_rail[0].polls, fake_rail[1].polls};
	CHECK_EQ(eventfd_write(fake_rail[1].fd, 1), 0);
	fake_rail[1].finds = 2;
	CHECK_EQ(weft_net_driver_bundle.poll(net), 1);
	eventfd_t count;
	CHECK_EQ(eventfd_read(fake_rail[1].fd, &count), 0);
	CHECK_EQ(weft_net_driver_bundle.poll(net), 1);
	CHECK_EQ(weft_net_driver_bundle.poll(net), 0);
	CHECK_EQ(weft_net_driver_bundle.poll(net), 0);
	CHECK(fake_rail[0].polls == before[0] && fake_rail[1].polls == before[1] + 3);
	/* Armed again: one rail has something, so neither is. */
	fake_rail[1].finds = 1;
	CHECK_EQ(weft_net_driver_bundle.arm(net, WEFT_ARM_ALL), WEFT_AGAIN);
	CHECK_EQ(weft_net_driver_bundle.poll(net), 1);
	CHECK(fake_rail[0].polls == before[0] + 1 && fake_rail[1].polls == before[1] + 4);
	end();
}

/* What is posted while an armed bundle looks at what is not confirmed is watched as well: here to
 * one peer, when the upper layer hears that another, looked at later, has left. */
static void post_one(void)
{
	CHECK_EQ(post_len(1), WEFT_POST_DONE);
}

static void case_posted_meanwhile(void)
{
	struct weft_bundle_head h = {.kind = WEFT_BUNDLE_HELLO};
	begin();
	struct weft_bundle *b = (struct weft_bundle *)net;
	CHECK_EQ(weft_net_driver_bundle.reach(net, FAKE_OTHER, "bundle2|fake|fake"), WEFT_OK);
	fake_rail[0].up.packet(fake_rail[0].up.arg, FAKE_OTHER, &h, NULL, 0);
	CHECK_EQ(post_len(1), WEFT_POST_DONE);
	for (int i = 0; i < 9 && weft_net_driver_bundle.arm(net, WEFT_ARM_ALL) != WEFT_OK; i++)
		(void)weft_net_driver_bundle.poll(net);
	CHECK(b->armed && b->hub.tick_ms);
	confirm_all();
	fake_rail[0].up.down(fake_rail[0].up.arg, FAKE_OTHER, WEFT_OK, "it left");
	fake_up.then = post_one;
	(void)weft_net_driver_bundle.poll(net);
	CHECK(fake_up.downs == 1 && !fake_up.then);
	int fd[WEFT_NET_FDS];
	struct pollfd p[WEFT_NET_FDS];
	unsigned n_fds = weft_net_driver_bundle.fds(net, fd);
	for (unsigned i = 0; i < n_fds; i++)
		p[i] = (struct pollfd){.fd = fd[i], .events = POLLIN};
	while (!b->hub.tick_ms && poll(p, n_fds, 0) > 0) /* ends: the timer, or nothing rings */
		(void)weft_net_driver_bundle.poll(net);
	CHECK(b->hub.tick_ms);
	end();
}

/* A packet that goes whole comes as a stream: once, in its turn, and not at all when it is here. */
static void case_whole_stream(void)
{
	begin();
	struct weft_bundle_head h = fake_head(0, WEFT_BUNDLE_WHOLE, 1);
	CHECK_EQ(fake_stream(0, &h, 20000), 20000);
	fake_stream_end(0, 5);
	CHECK_EQ(fake_up.packets, 0);
	CHECK_EQ(fake_stream(1, &h, 20000), 0);
	fake_stream_end(1, 6);
	h.number = 0;
	CHECK_EQ(fake_stream(1, &h, 20000), 20000);
	fake_stream_end(1, 4);
	CHECK(fake_up.packets == 2 && fake_up.last == 5);
	h.number = 2;
	CHECK_EQ(fake_stream(0, &h, 20000), 20000);
	fake_break(&fake_rail[0], WEFT_ERR_PEER);
	CHECK_EQ(fake_up.packets, 2);
	fake_whole(1, 2, 7);
	CHECK(fake_up.packets == 3 && fake_up.last == 7);
	CHECK_EQ(fake_up.downs, 0);
	end();
}

/* Packets of up to 4 KiB may go a window beyond what was taken in order, longer ones a quarter of
 * it: a sender that goes further lies. */
static void case_far(void)
{
	begin();
	for (uint32_t i = 1; i < WEFT_BUNDLE_WINDOW; i++)
		fake_whole(0, i, 1);
	CHECK(fake_up.packets == 0 && !fake_up.downs);
	fake_whole(1, 0, 1);
	CHECK_EQ(fake_up.packets, WEFT_BUNDLE_WINDOW);
	struct weft_bundle_head h =
		fake_head(0, WEFT_BUNDLE_WHOLE, WEFT_BUNDLE_WINDOW + WEFT_BUNDLE_LONG - 1);
	CHECK_EQ(fake_stream(0, &h, 20000), 20000);
	fake_stream_end(0, 1);
	(void)weft_net_driver_bundle.poll(net);
	CHECK_EQ(fake_up.downs, 0);
	h.number++;
	CHECK_EQ(fake_stream(0, &h, 20000), 0);
	(void)weft_net_driver_bundle.poll(net);
	CHECK(fake_up.downs == 1 && fake_up.down_err == WEFT_ERR_PROTO);
	end();
}

/* A sender of small packets goes on for most of the window, then waits for a confirmation. */
static void case_numbers(void)
{
	unsigned posted = 0;
	begin();
	while (post_len(1) == WEFT_POST_DONE) /* bound: checked within */
		CHECK(++posted < WEFT_BUNDLE_WINDOW);
	CHECK_EQ(posted, WEFT_BUNDLE_WINDOW - WEFT_BUNDLE_RESERVE);
	confirm_all();
	(void)weft_net_driver_bundle.poll(net);
	CHECK_EQ(fake_up.readies, 1);
	CHECK_EQ(post_len(1), WEFT_POST_DONE);
	end();
}

/* Behind many small ones that the peer may not have, nothing long goes further than it allows. */
static void case_long_ones(void)
{
	static uint8_t out[100000];
	uint8_t head[WEFT_NET_HEAD] = {0};
	struct iovec iov = {out, sizeof out};
	begin();
	for (unsigned i = 0; i < WEFT_BUNDLE_LONG; i++)
		CHECK_EQ(post_len(1), WEFT_POST_DONE);
	CHECK_EQ(post_len(WEFT_BUNDLE_INLINE + 1), WEFT_POST_FULL);
	CHECK_EQ(weft_net_driver_bundle.post(net, FAKE_PEER, head, &iov, 1, sizeof out, out),
		 WEFT_POST_ACCEPTED);
	CHECK_EQ(fake_rail[0].units + fake_rail[1].units, WEFT_BUNDLE_LONG + 1); /* it begins */
	confirm_all();
	CHECK(fake_rail[0].units + fake_rail[1].units > WEFT_BUNDLE_LONG + 1);
	CHECK_EQ(fake_up.sent, 0);
	confirm_all();
	CHECK_EQ(fake_up.sent, 1);
	CHECK_EQ(post_len(WEFT_BUNDLE_INLINE + 1), WEFT_POST_DONE);
	end();
}

int main(void)
{
	weft_log_level = -1; /* peers are given up */
	case_few_words();
	case_bound();
	case_asks();
	case_whole_stream();
	case_armed();
	case_posted_meanwhile();
	case_far();
	case_numbers();
	case_long_ones();
	return 0;
}
