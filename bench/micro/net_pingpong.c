/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_pingpong.c - how long is the way through post and poll of a driver, with nothing on top?
 *
 * Unit      microseconds, half of there and back; median, 10th and 90th percentile of 40 batches.
 * Bound     shm 8 B: a cache line handed over each way, 0.14 us where this was written; tcp: a
 *           send and a polling recv, 2.7 us.
 * Use       net_pingpong [shm|tcp] [bytes] [rounds] [window]; with a window, so many packets go
 *           there for each one back, and the unit is million packets per second.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "net/driver.h"

#define BATCHES 40

struct side {
	const struct weft_driver *driver;
	struct weft_net *net;
	unsigned long got;
	bool down;
	char *buf;
	size_t len;
	struct iovec iov;
};

struct board {
	_Atomic int x_here[2];
	char address[2][2048];
};

static void on_packet(void *arg, int peer, const void *head, const void *payload, size_t len)
{
	struct side *s = arg;
	memcpy(s->buf, payload, len);
	s->got++;
}

static void on_place(void *arg, int peer, const void *head, size_t len, struct weft_net_sink *sink)
{
	struct side *s = arg;
	s->iov = (struct iovec){s->buf, len};
	*sink = (struct weft_net_sink){.iov = &s->iov, .n = 1, .room = len};
}

static void on_placed(void *arg, int peer, void *cookie, weft_err err)
{
	((struct side *)arg)->got++;
}

static void on_sent(void *arg, int peer, void *cookie, weft_err err)
{
}

static void on_ready(void *arg, int peer)
{
}

static void on_down(void *arg, int peer, weft_err err, const char *why)
{
	((struct side *)arg)->down = true;
}

static void pin(int rank)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(rank % (int)sysconf(_SC_NPROCESSORS_ONLN), &set);
	(void)sched_setaffinity(0, sizeof set, &set);
}

static void send_one(struct side *s, int peer)
{
	char head[WEFT_NET_HEAD] = {0};
	struct iovec iov = {s->buf, s->len};
	while (s->driver->post(s->net, peer, head, &iov, 1, s->len, s) == WEFT_POST_FULL)
		s->driver->poll(s->net);
}

static void batch(struct side *s, int rank, long rounds, long window)
{
	for (long i = 0; i < rounds; i++) {
		unsigned long until = s->got + (unsigned long)(rank == 0 ? 1 : window);
		for (long k = 0; rank == 0 && k < window; k++)
			send_one(s, 1);
		while (s->got < until)
			s->driver->poll(s->net);
		if (rank == 1)
			send_one(s, 0);
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static void run(struct side *s, int rank, long rounds, long window)
{
	double us[BATCHES];
	batch(s, rank, rounds / 10 + 10, window); /* warm-up */
	for (int i = 0; i < BATCHES; i++) {
		uint64_t t0 = weft_clock_ns();
		batch(s, rank, rounds, window);
		us[i] = (double)(weft_clock_ns() - t0) / 1e3 / 2 / (double)rounds;
	}
	qsort(us, BATCHES, sizeof us[0], compare);
	if (rank == 0 && window > 1)
		printf("%s %zu B, window %ld: median %.2f M/s\n", s->driver->name, s->len, window,
		       (double)window / us[BATCHES / 2] / 2);
	else if (rank == 0)
		printf("%s %zu B: median %.3f us, p10 %.3f, p90 %.3f (half round trip)\n",
		       s->driver->name, s->len, us[BATCHES / 2], us[BATCHES / 10],
		       us[BATCHES * 9 / 10]);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "shm";
	size_t len = argc > 2 ? strtoul(argv[2], NULL, 0) : 8;
	long rounds = argc > 3 ? strtol(argv[3], NULL, 0) : 5000;
	long window = argc > 4 ? strtol(argv[4], NULL, 0) : 1;
	static const uint8_t secret[32] = {1};
	struct board *b =
		mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (b == MAP_FAILED || rounds < 1 || window < 1 || len > 1u << 20) {
		fprintf(stderr,
			"use: net_pingpong [shm|tcp] [bytes up to 1 MiB] [rounds] [window]\n");
		return 1;
	}
	int rank = fork() == 0;
	pin(rank);
	struct side s = {
		.driver = strcmp(name, "tcp") == 0 ? &weft_net_driver_tcp : &weft_net_driver_shm,
		.buf = calloc(1, len + 1),
		.len = len,
	};
	struct weft_net_job job = {.rank = rank, .size = 2, .jobid = "bench", .secret = secret};
	struct weft_net_events events = {.arg = &s,
					 .packet = on_packet,
					 .place = on_place,
					 .placed = on_placed,
					 .sent = on_sent,
					 .ready = on_ready,
					 .down = on_down};
	if (!s.buf || s.driver->open(&job, &events, &s.net) ||
	    s.driver->address(s.net, b->address[rank], sizeof b->address[rank]))
		return 1;
	atomic_store(&b->x_here[rank], 1);
	while (!atomic_load(&b->x_here[!rank]))
		sched_yield();
	if (s.driver->reach(s.net, !rank, b->address[!rank]))
		return 1;
	run(&s, rank, rounds, window);
	while (s.driver->drain(s.net) == WEFT_AGAIN)
		s.driver->poll(s.net);
	s.driver->close(s.net);
	free(s.buf);
	if (rank == 0)
		wait(NULL);
	return 0;
}
