/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * driver_suite.c - the contract of net/driver.h, run against every driver; included by test_self.c,
 * test_shm.c and test_tcp.c.  Each case forks its own processes (driver_node.h).
 */
#include "driver_left.h"
#include "driver_node.h"
#include "driver_region.h"

/* ---- the cases ------------------------------------------------------------------------------- */

/* Every length around the borders arrives, in order, round the ring of processes. */
static void case_lengths(struct node *n)
{
	static const size_t base[] = {0, 1, 8, 31, 32, 33, 63, 64, 65, 4095, 4096, 4097, 65536};
	size_t max = max_len(n, next_of(n));
	uint64_t expect = 0;
	for (size_t i = 0; i < weft_countof(base); i++) {
		send_packet(n, next_of(n), base[i] < max ? base[i] : max);
		expect++;
		while (n->got_n[prev_of(n)] < expect)
			poll_once(n);
	}
	send_packet(n, next_of(n), max);
	while (n->got_n[prev_of(n)] <= expect)
		poll_once(n);
}

/* Many packets of random lengths without waiting: order and content hold, FULL ends in ready(). */
static void case_flood(struct node *n)
{
	uint64_t seed = 7 + (uint64_t)n->rank;
	size_t max = max_len(n, next_of(n));
	const uint64_t count = 20000 / suite_fewer;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t r = weft_rand_next(&seed);
		size_t len = r % 64 ? (r >> 8) % 100 : (r >> 8) % (max + 1);
		send_packet(n, next_of(n), len);
	}
	while (n->got_n[prev_of(n)] < count)
		poll_once(n);
}

/* Largest packets only. */
static void case_large(struct node *n)
{
	size_t max = max_len(n, next_of(n));
	const uint64_t count = 200 / suite_fewer;
	for (uint64_t i = 0; i < count; i++)
		send_packet(n, next_of(n), max - (size_t)(i % 3));
	while (n->got_n[prev_of(n)] < count)
		poll_once(n);
}

/* All to all, each rank connecting to all ranks at the same time. */
static void case_all_to_all(struct node *n)
{
	uint64_t seed = 99 + (uint64_t)n->rank;
	meet(n);
	for (int i = 0; i < 300; i++)
		for (int p = 0; p < n->size; p++)
			if (p != n->rank)
				send_packet(n, p, weft_rand_next(&seed) % 3000);
	for (int p = 0; p < n->size; p++)
		while (p != n->rank && n->got_n[p] < 300)
			poll_once(n);
}

/* The same, staying armed over the polls that follow, as an engine does that waits for edges. */
static void sleep_armed(struct node *n, bool *armed)
{
	if (!*armed)
		*armed = n->driver->arm(n->net, WEFT_ARM_ALL) == WEFT_OK;
	if (*armed && !n->driver->poll(n->net)) {
		CHECK(wait_readable(n, LOST_MS) != 0);
	}
	n->driver->poll(n->net);
}

static void case_stay_armed(struct node *n)
{
	const uint64_t rounds = 2000 / suite_fewer;
	bool armed = false;
	for (uint64_t i = 0; i < rounds; i++) {
		if (n->rank == 0)
			send_packet(n, next_of(n), 8);
		while (n->got_n[prev_of(n)] <= i)
			sleep_armed(n, &armed);
		if (n->rank != 0)
			send_packet(n, next_of(n), 8);
	}
	(void)n->driver->arm(n->net, WEFT_ARM_OFF);
}

/*
 * The same for a rank that has much to send to a receiver that comes late: whenever a poll says
 * that there was nothing, what is left to do must ring.
 */
static void case_stay_armed_full(struct node *n)
{
	const uint64_t count = 300 / suite_fewer;
	size_t max = max_len(n, next_of(n));
	bool armed = false;
	uint64_t seed = 11;
	if (n->rank != 0) {
		/* Not for correctness: the sender fills what there is, and sleeps. */
		usleep(20000);
		while (n->got_n[0] < count) {
			poll_once(n);
			for (uint64_t spin = weft_rand_next(&seed) % 20000; spin; spin--)
				weft_cpu_relax();
		}
		return;
	}
	while (n->sent_n[1] < count || n->outstanding) {
		while (n->sent_n[1] < count && try_send(n, 1, max) != WEFT_POST_FULL)
			;
		if (!armed)
			armed = n->driver->arm(n->net, WEFT_ARM_ALL) == WEFT_OK;
		bool waits = n->sent_n[1] < count || n->outstanding;
		if (!n->driver->poll(n->net) && armed && waits) {
			CHECK(wait_readable(n, LOST_MS) != 0);
		}
	}
	(void)n->driver->arm(n->net, WEFT_ARM_OFF);
}

/* Ping-pong in which the waiter sleeps: no wake-up may be lost. */
static void case_sleep(struct node *n)
{
	const uint64_t rounds = (n->size > 4 ? 300 : 3000) / suite_fewer;
	uint64_t seed = 5 + (uint64_t)n->rank;
	for (uint64_t i = 0; i < rounds; i++) {
		if (n->rank == 0)
			send_packet(n, next_of(n), 8);
		/* Sometimes come late, so that all orders of arm and publish happen. */
		for (uint64_t spin = weft_rand_next(&seed) % 400; spin; spin--)
			weft_cpu_relax();
		while (n->got_n[prev_of(n)] <= i)
			sleep_once(n);
		if (n->rank != 0)
			send_packet(n, next_of(n), 8);
	}
}

/* The sender of many sleeps while it has no room; the receiver comes late. */
static void case_sleep_full(struct node *n)
{
	const uint64_t count = 5000;
	if (n->rank == 0) {
		for (uint64_t i = 0; i < count; i++) {
			int before = n->ready[1];
			enum weft_post p;
			while ((p = try_send(n, 1, 1000)) == WEFT_POST_FULL) {
				while (n->ready[1] == before)
					sleep_once(n);
				before = n->ready[1];
			}
		}
	} else {
		usleep(20000); /* not for correctness: lets the sender fill the ring and sleep */
		uint64_t seed = 3;
		while (n->got_n[0] < count) {
			poll_once(n);
			for (uint64_t spin = weft_rand_next(&seed) % 2000; spin; spin--)
				weft_cpu_relax();
		}
	}
}

struct poster {
	struct node *node;
	int peer;
	uint64_t count;
};

static void *poster_main(void *arg)
{
	struct poster *p = arg;
	struct node *n = p->node;
	uint64_t seed = (uint64_t)(n->rank * 16 + p->peer);
	size_t max = max_len(n, p->peer);
	for (uint64_t i = 0; i < p->count; i++) {
		uint64_t r = weft_rand_next(&seed);
		size_t len = r % 128 ? (r >> 8) % 200 : (r >> 8) % (max + 1);
		for (;;) {
			int before = n->ready[p->peer];
			enum weft_post answer = try_send(n, p->peer, len);
			if (answer == WEFT_POST_DONE || answer == WEFT_POST_ACCEPTED)
				break;
			CHECK_EQ(answer, WEFT_POST_FULL);
			while (n->ready[p->peer] == before)
				sched_yield();
		}
	}
	return NULL;
}

/* A thread per peer posts while another one polls, and sometimes sleeps. */
static void case_threads(struct node *n)
{
	struct poster posters[SUITE_MAX];
	pthread_t thread[SUITE_MAX];
	const uint64_t count = 3000;
	int first = n->size == 1 ? 0 : -1;
	for (int p = 0; p < n->size; p++) {
		posters[p] = (struct poster){.node = n, .peer = p, .count = count};
		if (p != n->rank || p == first)
			CHECK_EQ(pthread_create(&thread[p], NULL, poster_main, &posters[p]), 0);
	}
	for (int p = 0; p < n->size; p++) {
		if (p == n->rank && p != first)
			continue;
		while (n->got_n[p] < count) {
			for (int i = 0; i < 20; i++)
				poll_once(n);
			if (n->got_n[p] < count)
				sleep_once(n);
		}
	}
	/* The others may still be waiting for room that comes with the next poll. */
	meet_polling(n);
	for (int p = 0; p < n->size; p++)
		if (p != n->rank || p == first)
			CHECK_EQ(pthread_join(thread[p], NULL), 0);
}

/* A burst without a poll leaves with the next poll or arm at the latest. */
static void case_burst(struct node *n)
{
	uint64_t expect = 0;
	send_packet(n, next_of(n), 8);
	expect++;
	while (n->got_n[prev_of(n)] < expect)
		poll_once(n);
	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < 60; i++)
			send_packet(n, next_of(n), (size_t)(i % 40));
		expect += 60;
		while (n->got_n[prev_of(n)] < expect) {
			if (round % 2)
				sleep_once(n);
			else
				poll_once(n);
		}
	}
}

/* Packets whose heads step by one arrive as they were sent, together or not, whatever breaks their
 * row: another length, another head, a poll. */
static void case_runs(struct node *n)
{
	static const size_t lens[] = {8, 0, 1, 4, 9, 64, 100, 1000, 1024, 1025};
	uint64_t expect = 0;
	n->steps = true;
	for (size_t i = 0; i < weft_countof(lens); i++) {
		for (unsigned k = 0; k < 300; k++) {
			send_packet(n, next_of(n), k % 101 ? lens[i] : 8);
			if (k % 149 == 148)
				poll_once(n);
		}
		expect += 300;
		while (n->got_n[prev_of(n)] < expect)
			poll_once(n);
	}
}

/* Any memory of a peer is read and written, in pieces, where the network copies. */
static void case_copy(struct node *n)
{
	enum { BYTES = 3000000 };
	unsigned char *mine = malloc(BYTES), *copy = malloc(BYTES);
	CHECK(mine && copy);
	int peer = next_of(n);
	payload_fill(mine, BYTES, (uint64_t)n->rank);
	atomic_store(&n->board->x_word[n->rank], (uint64_t)(uintptr_t)mine);
	meet_neighbours(n);
	if (!n->driver->card(n->net, peer)->copies) {
		fprintf(stderr, "%s: no copies here\n", n->driver->name);
		meet_polling(n);
	} else {
		const struct weft_net_ticket there = {atomic_load(&n->board->x_word[peer]), BYTES,
						      WEFT_NET_KEY_ANY};
		const struct weft_net_span span = {0, BYTES};
		const struct iovec iov[3] = {
			{copy, 5}, {copy + 5, 1234567}, {copy + 1234572, BYTES - 1234572}};
		struct weft_net_transfer t = {
			.there = &there, .span = &span, .n_spans = 1, .piece = iov, .n_pieces = 3};
		CHECK_EQ(n->driver->transfer(n->net, peer, &t), WEFT_POST_DONE);
		unsigned char *want = malloc(BYTES);
		CHECK(want);
		payload_fill(want, BYTES, (uint64_t)peer);
		CHECK(memcmp(want, copy, BYTES) == 0);
		meet_polling(n);
		/* All have read; now each writes to the next. */
		payload_fill(copy, BYTES, 1000 + (uint64_t)n->rank);
		t.write = true;
		CHECK_EQ(n->driver->transfer(n->net, peer, &t), WEFT_POST_DONE);
		meet_polling(n);
		payload_fill(want, BYTES, 1000 + (uint64_t)prev_of(n));
		CHECK(memcmp(want, mine, BYTES) == 0);
		free(want);
	}
	finish(n);
	free(mine);
	free(copy);
	exit(0);
}

/* One leaves in order, late packets included; the other hears of it, once, and without an error. */
static void case_leave(struct node *n)
{
	if (n->rank == 0) {
		for (int i = 0; i < 50; i++)
			send_packet(n, 1, 500);
		while (n->outstanding)
			poll_once(n);
		while (n->driver->drain(n->net) == WEFT_AGAIN)
			poll_once(n);
		n->driver->close(n->net);
		exit(0);
	}
	while (!n->down[0])
		poll_once(n);
	CHECK_EQ(n->got_n[0], 50);
	CHECK_EQ(n->down_err[0], WEFT_OK);
	CHECK_EQ(try_send(n, 0, 8), WEFT_POST_DOWN);
	n->driver->close(n->net);
	exit(0);
}

/* One is killed; the other hears of it, once, with an error, asleep or polling, and lives on. */
static void killed(struct node *n, bool asleep)
{
	atomic_store(&n->board->x_pid[n->rank], getpid());
	send_packet(n, next_of(n), 8);
	while (n->got_n[prev_of(n)] < 1)
		poll_once(n);
	meet_polling(n);
	if (n->rank == 0) {
		for (;;)
			pause();
	}
	CHECK(kill(atomic_load(&n->board->x_pid[0]), SIGKILL) == 0);
	while (!n->down[0]) {
		if (asleep)
			sleep_once(n);
		else
			poll_once(n);
	}
	CHECK(n->down_err[0] != WEFT_OK);
	CHECK(strchr(n->down_why[0], '0'));
	CHECK_EQ(try_send(n, 0, 8), WEFT_POST_DOWN);
	n->driver->close(n->net);
	exit(0);
}

static void case_killed_polling(struct node *n)
{
	killed(n, false);
}

static void case_killed_asleep(struct node *n)
{
	killed(n, true);
}

/* The peer dies with a full ring or socket in front of it: accepted posts end, nothing hangs. */
static void case_killed_full(struct node *n)
{
	atomic_store(&n->board->x_pid[n->rank], getpid());
	send_packet(n, next_of(n), 8);
	while (n->got_n[prev_of(n)] < 1)
		poll_once(n);
	meet_polling(n);
	if (n->rank == 0) {
		for (;;)
			pause();
	}
	size_t len = max_len(n, 0);
	/* Ends: the peer does not read. */
	while (try_send(n, 0, len) != WEFT_POST_FULL)
		n->driver->poll(n->net);
	CHECK(kill(atomic_load(&n->board->x_pid[0]), SIGKILL) == 0);
	while (!n->down[0])
		sleep_once(n);
	CHECK_EQ(n->outstanding, 0);
	CHECK_EQ(try_send(n, 0, 8), WEFT_POST_DOWN);
	n->driver->close(n->net);
	exit(0);
}

/* A peer that no rank talks to and that ends costs nothing. */
static void case_strangers(struct node *n)
{
	for (int i = 0; i < 200; i++)
		n->driver->poll(n->net);
}

/* ---- all of them ------------------------------------------------------------------------------
 */

/* The cases for one process that talks to itself. */
static void __attribute__((unused)) run_suite_alone(const struct weft_driver *d)
{
	run_case(d, "lengths", 1, case_lengths);
	run_case(d, "flood", 1, case_flood);
	run_case(d, "large", 1, case_large);
	run_case(d, "sleep", 1, case_sleep);
	run_case(d, "stay armed", 1, case_stay_armed);
	run_case(d, "threads", 1, case_threads);
	run_case(d, "burst", 1, case_burst);
	run_case(d, "runs", 1, case_runs);
	run_case(d, "copy", 1, case_copy);
	run_case(d, "regions", 1, case_regions);
	run_case(d, "flush", 1, case_flush);
	run_case(d, "bounds", 1, case_bounds);
	run_case(d, "region closed", 1, case_region_closed);
	run_case(d, "regions full", 1, case_regions_full);
	run_case(d, "atomics", 1, case_atomics);
}

/* The launcher says that rank 1 has ended before there was a connection: it is down, once. */
static void case_died(struct node *n)
{
	if (n->rank)
		return;
	n->driver->died(n->net, 1);
	n->driver->died(n->net, 1);
	while (!n->down[1])
		poll_once(n);
	CHECK_EQ(n->down_err[1], WEFT_ERR_PEER);
	CHECK(strstr(n->down_why[1], "launcher") != NULL);
	CHECK_EQ(n->down[2], 0);
}

static void __attribute__((unused)) run_suite_together(const struct weft_driver *d)
{
	run_case(d, "lengths", 2, case_lengths);
	run_case(d, "flood", 2, case_flood);
	run_case(d, "flood of 3", 3, case_flood);
	run_case(d, "large", 2, case_large);
	for (int i = 0; i < 5; i++)
		run_case(d, "all to all", 4, case_all_to_all);
	run_case(d, "sleep", 2, case_sleep);
	run_case(d, "sleep of 4", 4, case_sleep);
	run_case(d, "stay armed", 2, case_stay_armed);
	run_case(d, "stay armed, 3", 3, case_stay_armed);
	run_case(d, "stay armed, full", 2, case_stay_armed_full);
	run_case(d, "left", 2, case_left);
	if (d->died)
		run_case(d, "died", 3, case_died);
	run_case(d, "sleep full", 2, case_sleep_full);
	run_case(d, "threads", 2, case_threads);
	run_case(d, "threads of 3", 3, case_threads);
	run_case(d, "burst", 2, case_burst);
	run_case(d, "runs", 2, case_runs);
	run_case(d, "copy", 2, case_copy);
	run_case(d, "regions", 2, case_regions);
	run_case(d, "regions of 3", 3, case_regions);
	run_case(d, "flush", 2, case_flush);
	run_case(d, "bounds", 2, case_bounds);
	run_case(d, "region closed", 2, case_region_closed);
	run_case(d, "regions full", 2, case_regions_full);
	run_case(d, "atomics of 4", 4, case_atomics);
	run_case(d, "killed owner", 2, case_killed_owner);
	run_case(d, "leave", 2, case_leave);
	run_case(d, "killed, polling", 2, case_killed_polling);
	run_case(d, "killed, asleep", 2, case_killed_asleep);
	run_case(d, "killed, full", 2, case_killed_full);
	run_case(d, "strangers", 3, case_strangers);
}
