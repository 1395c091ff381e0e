/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * script.c - the bundle driver, as it is, over rails that do exactly what each case says, in
 * virtual time: what schedules of the simulator meet too rarely, or cannot tell from what is right.
 */
#include "script.h"

static enum weft_post post(void)
{
	return post_len(1);
}

/* Peer and rails come up, packets go both ways: the frame itself. */
static void case_plain(void)
{
	begin();
	CHECK_EQ(post(), WEFT_POST_DONE);
	CHECK_EQ(fake_rail[0].units, 1);
	fake_whole(0, 0, 7);
	CHECK(fake_up.packets == 1 && fake_up.last == 7);
	end();
	CHECK_EQ(fake_up.downs, 0);
}

/* A packet counts once, whichever rails it comes over, and its number is not taken for the one that
 * follows a window later. */
static void case_whole_twice(void)
{
	begin();
	for (uint32_t i = 0; i < WEFT_BUNDLE_WINDOW; i++) {
		fake_whole(i % 2, i, 1);
		fake_whole(!(i % 2), i, 1);
	}
	CHECK_EQ(fake_up.packets, WEFT_BUNDLE_WINDOW);
	end();
}

/* A piece that comes twice counts once, and what the first wrote stays. */
static void case_piece_twice(void)
{
	uint8_t first[100], second[100];
	memset(first, 1, sizeof first);
	memset(second, 2, sizeof second);
	begin();
	fake_large(0, 0, 200);
	struct weft_bundle_head h = fake_piece(0, 1, 0, 0);
	fake_say(0, &h, first, sizeof first);
	h = fake_piece(1, 1, 0, 0);
	fake_say(1, &h, second, sizeof second);
	CHECK_EQ(fake_up.room[0], 1);
	CHECK_EQ(fake_up.placed, 0);
	h = fake_piece(1, 2, 0, 100);
	fake_say(1, &h, second, sizeof second);
	CHECK(fake_up.placed == 1 && fake_up.room[99] == 1 && fake_up.room[100] == 2);
	end();
}

/* The same as a stream: not wanted, so the packet may end while it still flows. */
static void case_stream_twice(void)
{
	begin();
	fake_large(0, 0, 200);
	struct weft_bundle_head h = fake_piece(0, 1, 0, 0);
	CHECK_EQ(fake_stream(0, &h, 100), 100);
	fake_stream_end(0, 1);
	h = fake_piece(1, 1, 0, 0);
	CHECK_EQ(fake_stream(1, &h, 100), 0);
	h = fake_piece(0, 2, 0, 100);
	CHECK_EQ(fake_stream(0, &h, 100), 100);
	fake_stream_end(0, 1);
	poll_for(S / 10);
	CHECK_EQ(fake_up.placed, 1);
	CHECK_EQ(fake_rail[1].drops, 0);
	fake_stream_end(1, 2);
	CHECK(fake_up.placed == 1 && fake_up.room[0] == 1);
	end();
}

/* A rail that the peer has given up still writes into a packet that is complete by another: the
 * packet ends when that rail has. */
static void case_writer(void)
{
	uint8_t data[100];
	memset(data, 1, sizeof data);
	begin();
	fake_large(0, 0, 100);
	struct weft_bundle_head h = fake_piece(1, 1, 0, 0);
	CHECK_EQ(fake_stream(1, &h, 100), 100);
	h = fake_piece(0, 1, 0, 0);
	fake_say(0, &h, data, sizeof data);
	CHECK_EQ(fake_up.placed, 0);
	poll_for(S / 10);
	CHECK_EQ(fake_rail[1].drops, 1);
	CHECK_EQ(fake_up.placed, 1);
	CHECK_EQ(fake_up.downs, 0);
	end();
}

/* Neither side speaks on a rail before both have greeted. */
static void case_before_hello(void)
{
	net = fake_begin();
	fake_rail[0].full = true;
	fake_hello(0); /* heard, and not answered yet */
	fake_whole(0, 0, 1);
	CHECK_EQ(fake_up.packets, 0);
	poll_for(S / 20);
	CHECK(fake_up.downs == 1 && fake_up.down_err == WEFT_ERR_PROTO);
	end();
}

/* A unit that one rail does not confirm, while the peer speaks on the other: that rail ends, and
 * the unit goes over the other. */
static void case_silent(void)
{
	begin();
	CHECK_EQ(post(), WEFT_POST_DONE);
	CHECK_EQ(fake_rail[0].units, 1);
	for (uint32_t i = 0; i < 8; i++) {
		poll_for(S / 2);
		fake_whole(1, i, 1);
	}
	CHECK(fake_rail[0].drops == 1 && fake_rail[1].drops == 0);
	CHECK_EQ(fake_rail[1].units, 1);
	end();
}

/* The same, but we did not look for ten seconds: nothing is known of what the rail says. */
static void case_nobody_looked(void)
{
	begin();
	CHECK_EQ(post(), WEFT_POST_DONE);
	now_ns += 10 * S;
	fake_whole(1, 0, 1);
	poll_for(S / 10);
	CHECK_EQ(fake_rail[0].drops, 0);
	fake_rail[0].got = 1;
	fake_whole(0, 1, 1);
	poll_for(10 * S);
	CHECK_EQ(fake_rail[0].drops, 0);
	end();
}

/* A peer that lies is given up while a rail reads what we posted and another writes what it sends:
 * both end first. */
static void case_lies(void)
{
	static uint8_t out[100000];
	uint8_t head[WEFT_NET_HEAD] = {0};
	struct iovec iov = {out, sizeof out};
	begin();
	fake_rail[0].keeps = true;
	CHECK_EQ(weft_net_driver_bundle.post(net, FAKE_PEER, head, &iov, 1, sizeof out, out),
		 WEFT_POST_ACCEPTED);
	CHECK(fake_rail[0].n_kept > 0);
	fake_large(1, 0, 200);
	struct weft_bundle_head h = fake_piece(1, 1, 0, 0);
	CHECK_EQ(fake_stream(1, &h, 100), 100);
	fake_hello(0); /* once more */
	CHECK(!fake_up.downs && !fake_up.sent && !fake_up.placed_bad);
	(void)weft_net_driver_bundle.poll(net);
	CHECK(fake_rail[0].drops == 1 && fake_rail[1].drops == 1);
	CHECK(fake_up.sent == 1 && fake_up.placed_bad == 1);
	CHECK(fake_up.downs == 1 && fake_up.down_err == WEFT_ERR_PROTO);
	end();
}

/* A rail that broke, and may be made again, ends with the peer: else the peer would link it to
 * no rank. */
static void case_given_up_while_lost(void)
{
	begin();
	fake_break(&fake_rail[0], WEFT_ERR_PEER);
	(void)weft_net_driver_bundle.poll(net);
	CHECK(fake_rail[0].revives == 1 && fake_rail[0].drops == 0);
	fake_hello(1); /* once more: a lie */
	(void)weft_net_driver_bundle.poll(net);
	CHECK(fake_up.downs == 1);
	CHECK(fake_rail[0].drops == 1 && fake_rail[0].gone);
	end();
}

/* The bundle is closed at once while a rail reads what the peer has confirmed: all of it is given
 * back (a leak checker sees it), and the upper layer hears no more. */
static void case_closed_at_once(void)
{
	static uint8_t out[100000];
	uint8_t head[WEFT_NET_HEAD] = {0};
	struct iovec iov = {out, sizeof out};
	begin();
	fake_rail[0].keeps = fake_rail[1].keeps = true;
	CHECK_EQ(weft_net_driver_bundle.post(net, FAKE_PEER, head, &iov, 1, sizeof out, out),
		 WEFT_POST_ACCEPTED);
	CHECK(fake_rail[0].n_kept + fake_rail[1].n_kept > 0);
	for (int r = 0; r < FAKE_RAILS; r++) {
		fake_rail[r].got = fake_rail[r].units;
		fake_whole(r, (uint32_t)r, 1);
	}
	CHECK_EQ(fake_up.packets, 2);
	struct weft_bundle_peer *p = &((struct weft_bundle *)net)->peer[FAKE_PEER];
	CHECK(!p->queue.first && !p->way[0].lane.under.first);
	end();
	CHECK_EQ(fake_up.sent, 0);
}

/* Without a rail the peer is given up after the patience, and not when no poll came meanwhile. */
static void case_patience(void)
{
	begin();
	for (int r = 0; r < FAKE_RAILS; r++)
		fake_break(&fake_rail[r], WEFT_ERR_PEER);
	poll_for(S);
	CHECK_EQ(fake_up.downs, 0);
	now_ns += 100 * S;
	poll_for(S);
	CHECK_EQ(fake_up.downs, 0);
	poll_for(((struct weft_bundle *)net)->patience_ns + S);
	CHECK(fake_up.downs == 1 && fake_up.down_err == WEFT_ERR_PEER);
	end();
}

/* The same, but the kernel of one rail says that the process is there: its time counts for nothing,
 * and what had passed before still does. */
static void case_lives(void)
{
	begin();
	uint64_t patience = ((struct weft_bundle *)net)->patience_ns;
	for (int r = 0; r < FAKE_RAILS; r++)
		fake_break(&fake_rail[r], WEFT_ERR_PEER);
	poll_for(patience / 2);
	fake_rail[1].lives = true;
	poll_for(100 * S);
	CHECK_EQ(fake_up.downs, 0);
	fake_rail[1].lives = false;
	poll_for(patience / 4);
	CHECK_EQ(fake_up.downs, 0);
	poll_for(patience / 2);
	CHECK(fake_up.downs == 1 && fake_up.down_err == WEFT_ERR_PEER);
	end();
}

/* What has moved on is told over a rail that is up, though the rail that moved it is gone and owes
 * no word: else the peer's window stays shut. */
static void case_behind(void)
{
	begin();
	for (uint32_t i = 1; i < 600; i++)
		fake_whole(1, i, 1);
	poll_for(S / 10);
	CHECK_EQ(fake_rail[1].last.next, 0);
	fake_whole(0, 0, 1);
	fake_break(&fake_rail[0], WEFT_ERR_PEER);
	CHECK_EQ(fake_up.packets, 600);
	(void)weft_net_driver_bundle.poll(net);
	CHECK(fake_rail[1].last.kind == WEFT_BUNDLE_ACK && fake_rail[1].last.next == 600);
	end();
}

/* No rank listens on rail 0; when rail 1, which was up, breaks, that alone is no word of death: each
 * has to be refused from there on. */
static void case_refused(void)
{
	begin();
	fake_break(&fake_rail[0], WEFT_ERR_PEER);
	fake_rail[0].refuses = true;
	poll_for(S / 20); /* revived, tried again, refused */
	fake_break(&fake_rail[0], WEFT_ERR_PEER);
	poll_for(S / 20);
	CHECK_EQ(fake_up.downs, 0);
	fake_break(&fake_rail[1], WEFT_ERR_PEER);
	fake_rail[1].refuses = true;
	poll_for(S / 20);
	fake_break(&fake_rail[1], WEFT_ERR_PEER);
	poll_for(S / 20);
	CHECK_EQ(fake_up.downs, 0);
	fake_break(&fake_rail[0], WEFT_ERR_PEER);
	poll_for(S / 20);
	CHECK(fake_up.downs == 1 && fake_up.down_err == WEFT_ERR_PEER);
	end();
}

int main(void)
{
	weft_log_level = -1; /* peers are given up all the time */
	case_plain();
	case_whole_twice();
	case_piece_twice();
	case_stream_twice();
	case_writer();
	case_before_hello();
	case_silent();
	case_nobody_looked();
	case_lies();
	case_given_up_while_lost();
	case_closed_at_once();
	case_patience();
	case_lives();
	case_behind();
	case_refused();
	return 0;
}
