/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reaction.c - how soon is an event noticed while N threads per core compute?  (RenPar 2008, fig.
 * 2)
 *
 * Unit      us from the write into an eventfd to the event's function; p50 and p99.
 * Bound     a thread's wake-up: 5 us.
 * Method    reaction scan|block|auto.  scan: a thread that polls and yields.  block: a thread in a
 *           blocking call.  auto: a descriptor, which the engine arms because nobody polls.
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

static void measure(const char *method, int per_core)
{
	cpu_set_t may;
	pthread_t t[8 * CPU_SETSIZE / 8];
	int cores = sched_getaffinity(0, sizeof may, &may) ? 1 : CPU_COUNT(&may), n = 0, i = 0;
	char name[64];
	stop = 0;
	while (n < per_core * cores && n < (int)(sizeof t / sizeof *t) - 1)
		if (pthread_create(&t[n++], NULL, compute, NULL))
			exit(1);
	bool scans = strcmp(method, "scan") == 0;
	if (scans && pthread_create(&t[n++], NULL, scan, NULL))
		exit(1);
	double end = bench_now_us() + (quick ? 200e3 : 1500e3);
	noted = 0;
	while (bench_now_us() < end && noted < SAMPLES_MAX) {
		struct weft_event ev;
		struct timespec nap = {0, 500000 + 137000 * (i++ % 7)};
		weft_event_init(&ev, there, NULL);
		weft_event_post(es, &ev);
		nanosleep(&nap, NULL);
		uint64_t one = 1;
		rung = bench_now_us();
		if (write(bell, &one, sizeof one) != sizeof one)
			exit(1);
		/* Asleep, not waiting: nobody of ours polls. */
		while (!weft_event_done(&ev)) {
			nap.tv_nsec = 200000;
			nanosleep(&nap, NULL);
		}
	}
	stop = 1;
	while (n)
		pthread_join(t[--n], NULL);
	int got = noted < SAMPLES_MAX ? noted : SAMPLES_MAX;
	qsort(sample, (size_t)got, sizeof *sample, bench_compare);
	snprintf(name, sizeof name, "%s %d per core", method, per_core);
	bench_row(name, "median", "us", sample[got / 2]);
	bench_row(name, "worst", "us", sample[(int)(got * 0.99)]);
}

int main(int argc, char **argv)
{
	const char *method = "auto";
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--quick") == 0)
			quick = 1;
		else if (strcmp(argv[i], "scan") == 0 || strcmp(argv[i], "block") == 0 ||
			 strcmp(argv[i], "auto") == 0)
			method = argv[i];
		else
			bench_usage(argv[0], argv[i], "[scan|block|auto] [--quick]");
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
