/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * driver_node.h - for driver_suite.c: a process that holds one end of a driver, what it does and
 * checks with packets, and a case run by several such, which meet on a shared board.
 *
 * Every packet carries its number and length in the head and bytes derived from them, so order,
 * loss, doubling and corruption all show.
 */
#ifndef WEFT_TEST_NET_DRIVER_NODE_H
#define WEFT_TEST_NET_DRIVER_NODE_H

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
#define SUITE_PHASES 256
#define SUITE_SECONDS 300 /* then it hangs */
#define LOST_MS 120000    /* a wake-up that has not come by then is lost */

/* Divides the number of rounds. */
static uint64_t suite_fewer = 1;

struct board {
	_Atomic int x_arrived[SUITE_PHASES];
	char address[SUITE_MAX][2048];
	_Atomic uint64_t x_word[SUITE_MAX];
	struct weft_net_ticket ticket[SUITE_MAX]; /* between two meetings */
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
	bool lone;  /* hold() says that no burst begins */
	bool echo;  /* answer each packet with one of the same length */
	bool steps; /* heads differ in little: they may travel as runs */
	uint64_t runs;
	unsigned looks;
};

struct kept {
	struct head head;
	int peer;
	size_t len;
	struct iovec iov[3];
	unsigned char data[];
};

/* The number-th packet's head. */
static struct head head_of(const struct node *n, uint64_t number, size_t len, int sender)
{
	struct head h = {.number = number, .len = (uint32_t)len, .sender = (uint32_t)sender};
	h.check = number ^ 0x5a5a5a5a5a5a5a5aull ^ len;
	if (n->steps) {
		h.number = number * WEFT_NET_RUN_STEP + 9;
		h.check = len;
	}
	return h;
}

static void check_packet(struct node *n, int peer, const struct head *h, const unsigned char *p,
			 size_t len)
{
	CHECK(peer >= 0 && peer < n->size);
	struct head want = head_of(n, n->got_n[peer], len, peer);
	CHECK_EQ(h->number, want.number);
	CHECK_EQ(h->len, want.len);
	CHECK_EQ(h->sender, want.sender);
	CHECK_EQ(h->check, want.check);
	size_t wrong = payload_wrong(p, len, n->got_n[peer]);
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

static void on_run(void *arg, int peer, const void *head, const void *payload, size_t len,
		   unsigned n)
{
	struct head h;
	memcpy(&h, head, sizeof h);
	CHECK(n <= WEFT_NET_RUN_MAX);
	((struct node *)arg)->runs++;
	for (unsigned i = 0; i < n; i++, h.number += WEFT_NET_RUN_STEP)
		check_packet(arg, peer, &h,
			     (const unsigned char *)payload + i * weft_net_run_apart(len), len);
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

/* No rank goes on before all are here; meanwhile the driver is not polled. */
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
	k->head = head_of(n, n->sent_n[peer], len, n->rank);
	payload_fill(k->data, len, n->sent_n[peer]);
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

/* Waits until a descriptor of the driver is readable; 0: none was within `ms`. */
static int wait_readable(struct node *n, int ms)
{
	int fd[WEFT_NET_FDS];
	struct pollfd p[WEFT_NET_FDS];
	unsigned n_fds = n->driver->fds(n->net, fd);
	CHECK(n_fds && n_fds <= WEFT_NET_FDS);
	for (unsigned i = 0; i < n_fds; i++)
		p[i] = (struct pollfd){.fd = fd[i], .events = POLLIN};
	return poll(p, n_fds, ms);
}

/* Sleeps until something comes, as the watcher does. */
static void sleep_once(struct node *n)
{
	weft_err err = n->driver->arm(n->net, WEFT_ARM_ALL);
	CHECK(err == WEFT_OK || err == WEFT_AGAIN);
	if (err == WEFT_OK) {
		int got = wait_readable(n, LOST_MS);
		CHECK(got != 0); /* a lost wake-up */
		(void)n->driver->arm(n->net, WEFT_ARM_OFF);
	}
	n->driver->poll(n->net);
}

static int next_of(const struct node *n)
{
	return (n->rank + 1) % n->size;
}

static int prev_of(const struct node *n)
{
	return (n->rank + n->size - 1) % n->size;
}

/* Each has heard of the rank before it. */
static void meet_neighbours(struct node *n)
{
	send_packet(n, next_of(n), 8);
	while (n->got_n[prev_of(n)] < 1)
		poll_once(n);
	meet_polling(n);
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

/* ---- running --------------------------------------------------------------------------------- */

static uint8_t suite_secret[32] = {1, 2, 3, 4, 5, 6, 7, 8, 9};

/* Drivers are told addresses when they dial, not before. */
static bool suite_late;
static int suite_asked; /* how often this node was asked */

static weft_err suite_find(void *arg, int peer, char *buf, size_t size)
{
	struct board *board = arg;
	/* Each second time the launcher has the answer. */
	if (suite_asked++ % 2 == 0)
		return WEFT_AGAIN;
	snprintf(buf, size, "%s", board->address[peer]);
	return WEFT_OK;
}

static void run_node(const struct weft_driver *driver, struct board *board, int rank, int size,
		     void (*body)(struct node *))
{
	struct node n = {.driver = driver, .board = board, .rank = rank, .size = size};
	struct weft_net_job job = {.rank = rank,
				   .size = size,
				   .jobid = "suite",
				   .secret = suite_secret,
				   .find = suite_late ? suite_find : NULL,
				   .find_arg = board};
	struct weft_net_events events = {
		.arg = &n,
		.packet = on_packet,
		.run = rank % 2 ? on_run : NULL,
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
			CHECK_EQ(driver->reach(n.net, p,
					       suite_late ? WEFT_NET_LATER : board->address[p]),
				 WEFT_OK);
	body(&n);
	finish(&n);
	exit(0);
}

static void run_case(const struct weft_driver *driver, const char *name, int size,
		     void (*body)(struct node *))
{
	const char *only = getenv("SUITE_CASE"); /* to look for a fault in it */
	if (only && strcmp(only, name) != 0)
		return;
	/* ThreadSanitizer sees no race between processes: it gets the cases in which a process has
	 * several threads, and some of the rest. */
	static unsigned cases;
	if (TEST_ALONE > 1 && !only && !strstr(name, "threads") && cases++ % 4)
		return;
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

#endif
