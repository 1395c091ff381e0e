/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * driver_suite.c - the contract of net/driver.h, run against every driver; included by test_self.c,
 * test_shm.c and test_tcp.c.  Each case forks its own processes, which meet on a shared board.
 *
 * Every packet carries its number and length in the head and bytes derived from them, so order,
 * loss, doubling and corruption all show.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/base.h"
#include "base/log.h"
#include "base/settings.h"
#include "check.h"
#include "net/driver.h"
#include "payload.h"

#define SUITE_MAX 16
#define SUITE_SECONDS 300 /* then it hangs */
#define LOST_MS 120000    /* a wake-up that has not come by then is lost */

/* Divides the number of rounds. */
static uint64_t suite_fewer = 1;

struct board {
	_Atomic int x_arrived[16];
	char address[SUITE_MAX][2048];
	_Atomic uint64_t x_word[SUITE_MAX];
	_Atomic int x_pid[SUITE_MAX];
};

struct head {
	uint64_t number;
	uint32_t len;
	uint32_t sender;
	uint64_t check;
};
_Static_assert(sizeof(struct head) == WEFT_NET_HEAD, "the test's head is a packet's head");

struct node {
	const struct weft_driver *driver;
	struct weft_net *net;
	struct board *board;
	int rank, size;
	uint64_t sent_n[SUITE_MAX], got_n[SUITE_MAX], got_bytes;
	_Atomic int ready[SUITE_MAX]; /* counted by the poller, watched by posters */
	int down[SUITE_MAX];
	weft_err down_err[SUITE_MAX];
	char down_why[SUITE_MAX][256];
	_Atomic int outstanding; /* accepted posts */
	_Atomic int held;
	int failed_sends;
	int phase;
	bool lone; /* hold() says that no burst begins */
	bool echo; /* answer each packet with one of the same length */
	unsigned looks;
};

struct kept {
	struct head head;
	int peer;
	size_t len;
	struct iovec iov[3];
	unsigned char data[];
};

static void check_packet(struct node *n, int peer, const struct head *h, const unsigned char *p,
			 size_t len)
{
	CHECK(peer >= 0 && peer < n->size);
	CHECK_EQ(h->number, n->got_n[peer]);
	CHECK_EQ(h->len, len);
	CHECK_EQ(h->sender, peer);
	CHECK_EQ(h->check, h->number ^ 0x5a5a5a5a5a5a5a5aull ^ len);
	size_t wrong = payload_wrong(p, len, h->number);
	if (wrong != len) {
		fprintf(stderr, "rank %d: packet %llu of %d, %zu bytes: byte %zu wrong\n", n->rank,
			(unsigned long long)h->number, peer, len, wrong);
		exit(1);
	}
	n->got_n[peer]++;
	n->got_bytes += len;
}

static void on_packet(void *arg, int peer, const void *head, const void *payload, size_t len)
{
	struct head h;
	memcpy(&h, head, sizeof h);
	check_packet(arg, peer, &h, payload, len);
}

static void on_place(void *arg, int peer, const void *head, size_t len, struct weft_net_sink *sink)
{
	struct kept *k = malloc(sizeof *k + len);
	CHECK(k);
	memcpy(&k->head, head, sizeof k->head);
	k->peer = peer;
	k->len = len;
	/* Three pieces, to make the driver step over their borders. */
	size_t a = len / 3, b = len / 2;
	k->iov[0] = (struct iovec){k->data, a};
	k->iov[1] = (struct iovec){k->data + a, b - a};
	k->iov[2] = (struct iovec){k->data + b, len - b};
	*sink = (struct weft_net_sink){.iov = k->iov, .n = 3, .room = len, .cookie = k};
}

static void on_placed(void *arg, int peer, void *cookie, weft_err err)
{
	struct kept *k = cookie;
	CHECK_EQ(k->peer, peer);
	if (err == WEFT_OK)
		check_packet(arg, peer, &k->head, k->data, k->len);
	free(k);
}

static void on_sent(void *arg, int peer, void *cookie, weft_err err)
{
	struct node *n = arg;
	n->outstanding--;
	n->failed_sends += err != WEFT_OK;
	free(cookie);
}

static void on_ready(void *arg, int peer)
{
	((struct node *)arg)->ready[peer]++;
}

static void on_down(void *arg, int peer, weft_err err, const char *why)
{
	struct node *n = arg;
	CHECK_EQ(n->down[peer], 0);
	n->down[peer]++;
	n->down_err[peer] = err;
	snprintf(n->down_why[peer], sizeof n->down_why[peer], "%s", why);
}

static bool on_hold(void *arg, int peer, bool first)
{
	struct node *n = arg;
	n->held++;
	return !(first && n->lone);
}

/* Nobody goes on before all are here; meanwhile the driver is not polled. */
static void meet(struct node *n)
{
	_Atomic int *x = &n->board->x_arrived[n->phase++];
	atomic_fetch_add(x, 1);
	while (atomic_load(x) < n->size)
		sched_yield();
}

/* The same, polling. */
static void meet_polling(struct node *n)
{
	_Atomic int *x = &n->board->x_arrived[n->phase++];
	atomic_fetch_add(x, 1);
	while (atomic_load(x) < n->size)
		if (!n->driver->poll(n->net))
			sched_yield();
}

/* By poll and, where there is one, by spin in turn. */
static void poll_once(struct node *n)
{
	bool spin = n->driver->spin && ++n->looks % 2;
	if (!(spin ? n->driver->spin(n->net, n->looks / 2 % 4) : n->driver->poll(n->net)))
		sched_yield();
}

/* One attempt to send a packet of len bytes in three pieces. */
static enum weft_post try_send(struct node *n, int peer, size_t len)
{
	struct kept *k = malloc(sizeof *k + len);
	CHECK(k);
	k->head = (struct head){
		.number = n->sent_n[peer], .len = (uint32_t)len, .sender = (uint32_t)n->rank};
	k->head.check = k->head.number ^ 0x5a5a5a5a5a5a5a5aull ^ len;
	payload_fill(k->data, len, k->head.number);
	size_t a = len / 4, b = len / 2;
	k->iov[0] = (struct iovec){k->data, a};
	k->iov[1] = (struct iovec){k->data + a, b - a};
	k->iov[2] = (struct iovec){k->data + b, len - b};
	/* Before the post: with threads, sent() may come while it returns. */
	n->outstanding++;
	enum weft_post p = n->driver->post(n->net, peer, &k->head, k->iov, 3, len, k);
	if (p == WEFT_POST_DONE || p == WEFT_POST_ACCEPTED)
		n->sent_n[peer]++;
	if (p != WEFT_POST_ACCEPTED) {
		n->outstanding--;
		free(k);
	}
	if (len <= n->driver->card(n->net, peer)->inline_max)
		CHECK(p != WEFT_POST_ACCEPTED);
	return p;
}

/* Sends, and polls until ready() came when there is no room. */
static void send_packet(struct node *n, int peer, size_t len)
{
	for (;;) {
		int before = n->ready[peer];
		enum weft_post p = try_send(n, peer, len);
		if (p == WEFT_POST_DONE || p == WEFT_POST_ACCEPTED)
			return;
		CHECK_EQ(p, WEFT_POST_FULL);
		while (n->ready[peer] == before)
			poll_once(n);
	}
}

/* Sleeps until something comes, as the watcher does. */
static void sleep_once(struct node *n)
{
	weft_err err = n->driver->arm(n->net);
	CHECK(err == WEFT_OK || err == WEFT_AGAIN);
	if (err == WEFT_OK) {
		struct pollfd p = {.fd = n->driver->fd(n->net), .events = POLLIN};
		int got = poll(&p, 1, LOST_MS);
		CHECK(got != 0); /* a lost wake-up */
		n->driver->disarm(n->net);
	}
	n->driver->poll(n->net);
}

static size_t max_len(struct node *n, int peer)
{
	size_t max = n->driver->card(n->net, peer)->max_payload;
	return max < 300000 ? max : 300000;
}

static void finish(struct node *n)
{
	while (n->outstanding)
		poll_once(n);
	meet_polling(n);
	while (n->driver->drain(n->net) == WEFT_AGAIN)
		poll_once(n);
	n->driver->close(n->net);
}

/* ---- the cases ------------------------------------------------------------------------------- */

static int next_of(const struct node *n)
{
	return (n->rank + 1) % n->size;
}

static int prev_of(const struct node *n)
{
	return (n->rank + n->size - 1) % n->size;
}

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

/* All to all, everybody connecting to everybody at the same time. */
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
		*armed = n->driver->arm(n->net) == WEFT_OK;
	if (*armed && !n->driver->poll(n->net)) {
		struct pollfd p = {.fd = n->driver->fd(n->net), .events = POLLIN};
		CHECK(poll(&p, 1, LOST_MS) != 0);
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
	n->driver->disarm(n->net);
}

/* Ping-pong in which the one who waits sleeps: no wake-up may be lost. */
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

/* get() and put() move bytes between address spaces, in pieces. */
static void case_get_put(struct node *n)
{
	enum { BYTES = 3000000 };
	unsigned char *mine = malloc(BYTES), *copy = malloc(BYTES);
	CHECK(mine && copy);
	int peer = next_of(n);
	payload_fill(mine, BYTES, (uint64_t)n->rank);
	atomic_store(&n->board->x_word[n->rank], (uint64_t)(uintptr_t)mine);
	send_packet(n, peer, 8);
	while (n->got_n[prev_of(n)] < 1)
		poll_once(n);
	meet_polling(n);
	if (!n->driver->card(n->net, peer)->can_get) {
		fprintf(stderr, "%s: no get here\n", n->driver->name);
		meet_polling(n);
	} else {
		uint64_t remote = atomic_load(&n->board->x_word[peer]);
		struct iovec iov[3] = {{copy, 5}, {copy + 5, 1234567}, {copy + 1234572, BYTES}};
		CHECK_EQ(n->driver->get(n->net, peer, remote, iov, 3, BYTES), WEFT_OK);
		unsigned char *want = malloc(BYTES);
		CHECK(want);
		payload_fill(want, BYTES, (uint64_t)peer);
		CHECK(memcmp(want, copy, BYTES) == 0);
		meet_polling(n);
		/* Everybody has read; now everybody writes to the next. */
		payload_fill(copy, BYTES, 1000 + (uint64_t)n->rank);
		CHECK_EQ(n->driver->put(n->net, peer, remote, iov, 3, BYTES), WEFT_OK);
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

/* A peer that nobody talks to and that ends costs nothing. */
static void case_strangers(struct node *n)
{
	for (int i = 0; i < 200; i++)
		n->driver->poll(n->net);
}

/* ---- running --------------------------------------------------------------------------------- */

static uint8_t suite_secret[32] = {1, 2, 3, 4, 5, 6, 7, 8, 9};

static void run_node(const struct weft_driver *driver, struct board *board, int rank, int size,
		     void (*body)(struct node *))
{
	struct node n = {.driver = driver, .board = board, .rank = rank, .size = size};
	struct weft_net_job job = {
		.rank = rank, .size = size, .jobid = "suite", .secret = suite_secret};
	struct weft_net_events events = {
		.arg = &n,
		.packet = on_packet,
		.place = on_place,
		.placed = on_placed,
		.sent = on_sent,
		.ready = on_ready,
		.down = on_down,
		.hold = on_hold,
	};
	alarm(SUITE_SECONDS);
	weft_log_set_rank(rank);
	weft_err err = driver->open(&job, &events, &n.net);
	if (err == WEFT_ERR_UNSUPPORTED)
		exit(77);
	CHECK_EQ(err, WEFT_OK);
	CHECK_EQ(driver->address(n.net, board->address[rank], sizeof board->address[rank]),
		 WEFT_OK);
	meet(&n);
	for (int p = 0; p < size; p++)
		if (p != rank || size == 1)
			CHECK_EQ(driver->reach(n.net, p, board->address[p]), WEFT_OK);
	body(&n);
	finish(&n);
	exit(0);
}

static void run_case(const struct weft_driver *driver, const char *name, int size,
		     void (*body)(struct node *))
{
	struct board *board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(board != MAP_FAILED);
	pid_t pid[SUITE_MAX];
	uint64_t t0 = weft_clock_ns();
	fflush(NULL);
	for (int r = 0; r < size; r++) {
		pid[r] = fork();
		CHECK(pid[r] >= 0);
		if (pid[r] == 0)
			run_node(driver, board, r, size, body);
	}
	int bad = 0, skipped = 0;
	for (int left = size; left; left--) {
		int status;
		pid_t p = wait(&status);
		CHECK(p > 0);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
			skipped = 1;
			continue;
		}
		if ((WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
		    (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL))
			continue;
		fprintf(stderr, "%s/%s: a process ended with status 0x%x\n", driver->name, name,
			status);
		bad = 1;
		for (int r = 0; r < size; r++)
			kill(pid[r], SIGKILL);
	}
	munmap(board, sizeof *board);
	if (skipped)
		SKIP("the driver does not work here");
	CHECK(!bad);
	printf("%s/%s: ok, %.0f ms\n", driver->name, name, (double)(weft_clock_ns() - t0) / 1e6);
}

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
	run_case(d, "get_put", 1, case_get_put);
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
	run_case(d, "sleep full", 2, case_sleep_full);
	run_case(d, "threads", 2, case_threads);
	run_case(d, "threads of 3", 3, case_threads);
	run_case(d, "burst", 2, case_burst);
	run_case(d, "get_put", 2, case_get_put);
	run_case(d, "leave", 2, case_leave);
	run_case(d, "killed, polling", 2, case_killed_polling);
	run_case(d, "killed, asleep", 2, case_killed_asleep);
	run_case(d, "killed, full", 2, case_killed_full);
	run_case(d, "strangers", 3, case_strangers);
}
