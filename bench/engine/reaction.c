/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reaction.c - how soon is an event noticed while N threads per core compute?  (RenPar 2008,
 * fig. 2)
 *
 * Unit      us from the write into an eventfd to the event's function; p50 and p99.
 * Bound     the row `limit`: a bare thread that reads the eventfd, with a slice of 100 us.
 * Method    reaction scan|block|auto|limit.  scan: a thread that polls and yields.  block: a thread
 *           in a blocking call.  auto (printed as weft): a descriptor, armed since no thread polls.
 */
#include "bench.h"
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <weft/source.h>

#define SAMPLES_MAX 4000

static int bell, quick;
static _Atomic int stop, noted;
static _Atomic double rung;
static double sample[SAMPLES_MAX];
static struct weft_events *es;

static void *compute(void *arg)
{
	while (!stop)
		bench_compute(10000);
	return NULL;
}

static void *scan(void *arg)
{
	while (!stop) {
		weft_engine_poll();
		sched_yield();
	}
	return NULL;
}

static bool drain(void)
{
	uint64_t n;
	return read(bell, &n, sizeof n) == sizeof n;
}

static bool look(void *arg, struct weft_event *ev, int64_t *result_p)
{
	return drain();
}

static bool sleep_in_call(void *arg, struct weft_event *ev, int64_t *result_p)
{
	struct pollfd p = {.fd = bell, .events = POLLIN};
	return poll(&p, 1, 100) == 1 && drain();
}

static bool there(struct weft_event *ev)
{
	int n = noted;
	if (n < SAMPLES_MAX)
		sample[n] = bench_now_us() - rung;
	noted = n + 1;
	return false;
}

/* As the engine's own thread sleeps, without an engine. */
static void *bare(void *arg)
{
	struct pollfd p = {.fd = bell, .events = POLLIN};
	bench_ask_short_slice();
	while (!stop)
		if (poll(&p, 1, 100) == 1 && drain())
			(void)there(NULL);
	return NULL;
}

/* Rings once; returns when it has been noticed. */
static void ring(int with_engine, int turn)
{
	struct weft_event ev;
	struct timespec nap = {0, 500000 + 137000 * (turn % 7)};
	int before = noted;
	if (with_engine) {
		weft_event_init(&ev, there, NULL);
		weft_event_post(es, &ev);
	}
	nanosleep(&nap, NULL);
	uint64_t one = 1;
	rung = bench_now_us();
	if (write(bell, &one, sizeof one) != sizeof one)
		exit(1);
	/* Asleep, not waiting: no thread of this process polls. */
	nap.tv_nsec = 200000;
	while (noted == before || (with_engine && !weft_event_done(&ev)))
		nanosleep(&nap, NULL);
}

static void measure(const char *method, int per_core)
{
	cpu_set_t may;
	pthread_t t[8 * CPU_SETSIZE / 8];
	int cores = sched_getaffinity(0, sizeof may, &may) ? 1 : CPU_COUNT(&may), n = 0, i = 0;
	int limit = strcmp(method, "limit") == 0;
	const char *impl = strcmp(method, "auto") == 0 ? "weft" : method;
	stop = 0;
	while (n < per_core * cores && n < (int)(sizeof t / sizeof *t) - 1)
		if (pthread_create(&t[n++], NULL, compute, NULL))
			exit(1);
	if (strcmp(method, "scan") == 0 && pthread_create(&t[n++], NULL, scan, NULL))
		exit(1);
	if (limit && pthread_create(&t[n++], NULL, bare, NULL))
		exit(1);
	double end = bench_now_us() + (quick ? 200e3 : 1500e3);
	noted = 0;
	while (bench_now_us() < end && noted < SAMPLES_MAX)
		ring(!limit, i++);
	stop = 1;
	while (n)
		pthread_join(t[--n], NULL);
	int got = noted < SAMPLES_MAX ? noted : SAMPLES_MAX;
	qsort(sample, (size_t)got, sizeof *sample, bench_compare);
	printf("%s,%d per core,median,us,%.6g\n", impl, per_core, sample[got / 2]);
	printf("%s,%d per core,p99,us,%.6g\n", impl, per_core, sample[(int)(got * 0.99)]);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const char *method = "auto";
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--quick") == 0)
			quick = 1;
		else if (strcmp(argv[i], "scan") == 0 || strcmp(argv[i], "block") == 0 ||
			 strcmp(argv[i], "auto") == 0 || strcmp(argv[i], "limit") == 0)
			method = argv[i];
		else
			bench_usage(argv[0], argv[i], "[scan|block|auto|limit] [--quick]");
	if (strcmp(method, "scan") == 0)
		setenv("WEFT_FLAVOUR", "explicit", 1);
	bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	struct weft_events_ops ops = {.name = "bell", .poll = look, .fd = bell};
	ops.has_fd = strcmp(method, "auto") == 0;
	if (strcmp(method, "block") == 0) {
		ops.block = sleep_in_call;
		ops.method = WEFT_EVENTS_BLOCK;
	}
	if (weft_engine_start() || weft_events_open(&ops, NULL, &es)) {
		fprintf(stderr, "reaction: the engine does not start\n");
		return 1;
	}
	static const int all[] = {0, 1, 2, 4, 8};
	for (int i = 0; i < 5; i += quick ? 2 : 1)
		measure(method, all[i]);
	weft_events_close(es);
	weft_engine_stop();
	return 0;
}
