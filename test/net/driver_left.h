/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * driver_left.h - for driver_suite.c: the levels of arming below ALL, and urge(), for drivers that
 * know them: what rings, what lies, and which check finds that.
 *
 * Rank 1 sleeps, rank 0 sends; between two meetings no rank polls, so what rings is no matter of
 * time.
 */
#ifndef WEFT_TEST_NET_DRIVER_LEFT_H
#define WEFT_TEST_NET_DRIVER_LEFT_H

#include "driver_node.h"

static bool left_rung(struct node *n)
{
	return wait_readable(n, 0) > 0;
}

/* Rank 1 lies in wait with nothing there; then both go on. */
static void left_lie(struct node *n, enum weft_arm_level level)
{
	if (n->rank == 1) {
		while (n->driver->arm(n->net, level) != WEFT_OK) /* ends: rank 0 does not send */
			n->driver->poll(n->net);
		CHECK_EQ(n->driver->poll(n->net), 0); /* and what rang before is forgotten */
		CHECK(!left_rung(n));
	}
	meet(n);
}

/* Rank 0 has sent one packet. */
static void left_sent(struct node *n, bool urgent)
{
	if (n->rank == 0) {
		CHECK_EQ(try_send(n, 1, 8), WEFT_POST_DONE);
		if (urgent)
			(void)n->driver->urge(n->net, 1, false);
	}
	meet(n);
}

/* Disarmed by now: it is there. */
static void left_found(struct node *n, uint64_t all)
{
	while (n->got_n[0] < all) /* ends: it has been sent */
		n->driver->poll(n->net);
	CHECK_EQ(n->got_n[0], all);
}

/* A packet that needs no answer does not ring; the check before it finds nothing, the next does. */
static void left_quiet(struct node *n)
{
	left_lie(n, WEFT_ARM_REPLIES_UNCHECKED);
	if (n->rank == 1)
		CHECK_EQ(n->driver->arm(n->net, WEFT_ARM_REPLIES), WEFT_OK);
	meet(n);
	left_sent(n, false);
	if (n->rank == 1) {
		uint64_t before = n->got_n[0];
		CHECK(!left_rung(n));
		CHECK_EQ(n->driver->arm(n->net, WEFT_ARM_REPLIES), WEFT_AGAIN);
		left_found(n, before + 1);
	}
}

/* Rank 1 was rung, and finds what came. */
static void left_woken(struct node *n)
{
	if (n->rank != 1)
		return;
	CHECK(left_rung(n));
	(void)n->driver->arm(n->net, WEFT_ARM_OFF);
	left_found(n, n->got_n[0] + 1);
}

/* Armed anew for more, as a waiter does: what lies there already is found, what comes rings. */
static void left_then(struct node *n, enum weft_arm_level level)
{
	left_lie(n, WEFT_ARM_REPLIES_UNCHECKED);
	left_sent(n, false);
	if (n->rank == 1) {
		CHECK_EQ(n->driver->arm(n->net, level), WEFT_AGAIN);
		left_found(n, n->got_n[0] + 1);
	}
	left_lie(n, WEFT_ARM_REPLIES_UNCHECKED);
	if (n->rank == 1)
		CHECK_EQ(n->driver->arm(n->net, level), WEFT_OK);
	meet(n);
	left_sent(n, false);
	left_woken(n);
}

/* Each of these rings. */
static void left_rings(struct node *n, enum weft_arm_level level, bool urgent)
{
	left_lie(n, level);
	left_sent(n, urgent);
	left_woken(n);
}

/* Armed SOON.  If the sender polls, it rings in the end; if it computes, the check finds the packet
 * and arms as if quiet. */
static void left_soon(struct node *n)
{
	left_lie(n, WEFT_ARM_SOON);
	left_sent(n, true);
	if (n->rank == 0)
		while (n->driver->computes(n->net, 1)) /* ends: it rings, which takes the level */
			n->driver->poll(n->net);
	meet(n);
	left_woken(n);
	left_lie(n, WEFT_ARM_SOON);
	left_sent(n, true);
	if (n->rank == 1) {
		CHECK(!left_rung(n));
		CHECK_EQ(n->driver->arm(n->net, WEFT_ARM_REPLIES), WEFT_AGAIN);
		left_found(n, n->got_n[0] + 1);
	}
	left_lie(n, WEFT_ARM_SOON);
	if (n->rank == 1)
		CHECK_EQ(n->driver->arm(n->net, WEFT_ARM_REPLIES), WEFT_OK);
	meet(n);
	left_sent(n, true);
	left_woken(n);
}

/* A late ring: the sender's polls make it, or it says that no poll will follow; a sleeper in a wait is rung
 * at once. */
static void left_late(struct node *n)
{
	for (int polls = 0; polls < 2; polls++) {
		left_lie(n, WEFT_ARM_REPLIES);
		if (n->rank == 0) {
			CHECK_EQ(try_send(n, 1, 8), WEFT_POST_DONE);
			CHECK(n->driver->urge(n->net, 1, true));
			CHECK(n->driver->computes(n->net, 1));
			if (!polls)
				CHECK(!n->driver->urge(n->net, 1, false));
			while (n->driver->computes(n->net, 1)) /* ends: a ring takes the level */
				n->driver->poll(n->net);
		}
		meet(n);
		left_woken(n);
	}
	left_lie(n, WEFT_ARM_ALL_UNCHECKED);
	if (n->rank == 0) {
		CHECK_EQ(try_send(n, 1, 8), WEFT_POST_DONE);
		CHECK(!n->driver->urge(n->net, 1, true));
	}
	meet(n);
	left_woken(n);
}

/* A ring owed to a peer that has been back since is not rung; nor does an arming forget a ring. */
static void left_back(struct node *n)
{
	left_lie(n, WEFT_ARM_SOON);
	left_sent(n, true);
	if (n->rank == 1) {
		(void)n->driver->arm(n->net, WEFT_ARM_OFF);
		left_found(n, n->got_n[0] + 1);
	}
	left_lie(n, WEFT_ARM_SOON);
	if (n->rank == 0) {
		CHECK_EQ(n->driver->arm(n->net, WEFT_ARM_ALL), WEFT_OK);
		(void)n->driver->arm(n->net, WEFT_ARM_OFF);
	}
	meet(n);
	if (n->rank == 1)
		CHECK(!left_rung(n));
	left_sent(n, true);
	if (n->rank == 0) {
		CHECK_EQ(n->driver->arm(n->net, WEFT_ARM_ALL), WEFT_OK);
		(void)n->driver->arm(n->net, WEFT_ARM_OFF);
	}
	meet(n);
	left_woken(n);
}

/* Armed SOON, and the sender is armed itself: for a wait, it rings at once, since it will not poll
 * to do it later; for less, its next polls ring. */
static void left_soon_armed(struct node *n)
{
	for (int waits = 0; waits < 2; waits++) {
		left_lie(n, WEFT_ARM_SOON);
		if (n->rank == 0)
			CHECK_EQ(n->driver->arm(n->net,
						waits ? WEFT_ARM_ALL : WEFT_ARM_REPLIES_UNCHECKED),
				 WEFT_OK);
		left_sent(n, true);
		if (n->rank == 1 && !waits)
			CHECK(!left_rung(n));
		meet(n);
		if (n->rank == 0) {
			while (!waits && n->driver->computes(n->net, 1)) /* ends: it rings */
				n->driver->poll(n->net);
			(void)n->driver->arm(n->net, WEFT_ARM_OFF);
		}
		meet(n);
		if (n->rank == 1) {
			CHECK(left_rung(n));
			(void)n->driver->arm(n->net, WEFT_ARM_OFF);
			left_found(n, n->got_n[0] + 1);
		}
	}
}

/* Armed quietly since long, and now back soon: it is as said last. */
static void left_soon_after_all(struct node *n)
{
	left_lie(n, WEFT_ARM_REPLIES_UNCHECKED);
	if (n->rank == 1)
		CHECK_EQ(n->driver->arm(n->net, WEFT_ARM_SOON), WEFT_OK);
	meet(n);
	left_sent(n, true);
	if (n->rank == 1) {
		CHECK(!left_rung(n));
		CHECK_EQ(n->driver->arm(n->net, WEFT_ARM_REPLIES), WEFT_AGAIN);
		left_found(n, n->got_n[0] + 1);
	}
}

/* A poll in between, which finds it all, leaves it armed as it was. */
static void left_polled(struct node *n)
{
	left_lie(n, WEFT_ARM_REPLIES_UNCHECKED);
	left_sent(n, true);
	if (n->rank == 1) {
		CHECK_EQ(n->driver->poll(n->net), 1);
		CHECK_EQ(n->driver->poll(n->net), 0);
		CHECK(!left_rung(n));
	}
	meet(n);
	left_sent(n, false);
	if (n->rank == 1)
		CHECK(!left_rung(n));
	meet(n);
	left_sent(n, true);
	if (n->rank == 1) {
		CHECK(left_rung(n));
		(void)n->driver->arm(n->net, WEFT_ARM_OFF);
		left_found(n, n->got_n[0] + 2);
	}
}

/* What fills the ring rings, though nothing in it needs an answer. */
static void left_full(struct node *n)
{
	left_lie(n, WEFT_ARM_REPLIES_UNCHECKED);
	int before = n->ready[1];
	if (n->rank == 0) {
		while (try_send(n, 1, 1000) == WEFT_POST_DONE) /* ends: rank 1 does not poll */
			;
		atomic_store(&n->board->x_word[0], n->sent_n[1]);
	}
	meet(n);
	if (n->rank == 1) {
		CHECK(left_rung(n));
		(void)n->driver->arm(n->net, WEFT_ARM_OFF);
		left_found(n, atomic_load(&n->board->x_word[0]));
	}
	while (n->rank == 0 && n->ready[1] == before) /* ends: it is read */
		poll_once(n);
	meet_polling(n);
}

static void case_left(struct node *n)
{
	send_packet(n, 1 - n->rank, 8); /* each is there */
	while (n->got_n[1 - n->rank] < 1)
		poll_once(n);
	meet_polling(n);
	if (!n->driver->arms_levels) {
		fprintf(stderr, "%s: arms for everything\n", n->driver->name);
		return;
	}
	for (int i = 0; i < 3; i++) {
		left_quiet(n);
		left_rings(n, WEFT_ARM_REPLIES_UNCHECKED, true);
		left_rings(n, WEFT_ARM_ALL_UNCHECKED, false);
		left_rings(n, WEFT_ARM_ALL, false);
		left_then(n, WEFT_ARM_ALL_UNCHECKED);
		left_then(n, WEFT_ARM_ALL);
		left_soon(n);
		left_late(n);
		left_back(n);
		left_soon_armed(n);
		left_soon_after_all(n);
		left_polled(n);
		left_full(n);
	}
}

#endif
