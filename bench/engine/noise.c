/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * noise.c - what does the engine's polling cost those who compute?  (2015, figs. 2 to 4)
 *
 * Unit      percent by which a loop on each core takes longer, compute-bound and memory-bound.
 * Bound     0; the goals are 0.5 and 1.
 * Method    noise default|idle US|timer MS: with idle workers that look every US us (0: as often as
 *           they can), or a watcher that polls every MS ms, an event is pending all the time.  The
 * loop with and without the engine in turn; medians.
 */
#include "bench.h"
#include <pthread.h>
#include <stdatomic.h>
#include <weft/source.h>

#define THREADS_MAX 64
#define WORDS (4u << 20)

static long turns;
static int threads;
static double took[THREADS_MAX];
static pthread_barrier_t begin;

struct work {
	int id, memory;
	double *a;
};

static void *work(void *arg)
{
	struct work *w = arg;
	bench_pin(w->id);
	pthread_barrier_wait(&begin);
	double t = bench_now_us(), sum = 0;
	if (w->memory)
		for (int r = 0; r < 6; r++)
			for (unsigned i = 0; i < WORDS; i++)
				w->a[i] = sum = w->a[i] * 0.5 + r;
	else
		sum = bench_compute(turns);
	BENCH_KEEP(sum);
	took[w->id] = bench_now_us() - t;
	return NULL;
}

static double *memory[THREADS_MAX];

/* The mean over the cores of one run. */
static double run(int memory_bound)
{
	pthread_t t[THREADS_MAX];
	struct work w[THREADS_MAX];
	double sum = 0;
	pthread_barrier_init(&begin, NULL, (unsigned)threads);
	for (int i = 0; i < threads; i++) {
		w[i] = (struct work){i, memory_bound, memory[i]};
		if (pthread_create(&t[i], NULL, work, &w[i]))
			exit(1);
	}
	for (int i = 0; i < threads; i++) {
		pthread_join(t[i], NULL);
		sum += took[i];
	}
	pthread_barrier_destroy(&begin);
	return sum / threads;
}

static double run_with_engine(int memory_bound)
{
	struct weft_events *es;
	struct weft_event ev;
	if (weft_engine_start() || weft_events_open_timers(&es))
		exit(1);
	weft_event_init(&ev, NULL, NULL);
	weft_event_post_after(es, &ev, 3600000000000u);
	double us = run(memory_bound);
	weft_events_close(es);
	weft_engine_stop();
	return us;
}

int main(int argc, char **argv)
{
	int quick = argc > 1 && strcmp(argv[argc - 1], "--quick") == 0;
	char name[64] = "default";
	argc -= quick;
	if (argc == 3 && strcmp(argv[1], "idle") == 0) {
		setenv("WEFT_IDLE_PERIOD_US", argv[2], 1);
		setenv("WEFT_IDLE_WORKERS", "1", 1);
		snprintf(name, sizeof name, "idle period %s us", argv[2]);
	} else if (argc == 3 && strcmp(argv[1], "timer") == 0) {
		setenv("WEFT_TIMER_POLL_MS", argv[2], 1);
		snprintf(name, sizeof name, "timer period %s ms", argv[2]);
	} else if (argc != 1 && !(argc == 2 && strcmp(argv[1], "default") == 0)) {
		bench_usage(argv[0], argv[1], "[default|idle US|timer MS] [--quick]");
	}
	cpu_set_t may;
	threads = sched_getaffinity(0, sizeof may, &may) ? 1 : CPU_COUNT(&may);
	threads = threads > THREADS_MAX ? THREADS_MAX : threads;
	for (int i = 0; i < threads; i++)
		memory[i] = (double *)bench_alloc(WORDS * sizeof(double));
	turns = bench_turns(quick ? 20e3 : 100e3);
	for (int m = 0; m < 2; m++) {
		enum { MOST = 11 };
		double without[MOST], with[MOST];
		int n = quick ? 3 : MOST;
		for (int i = 0; i < n; i++) {
			without[i] = run(m);
			with[i] = run_with_engine(m);
		}
		double a = bench_median(without, n), b = bench_median(with, n);
		bench_row(name, m ? "memory" : "compute", "% slower", 100 * (b - a) / a);
	}
	return 0;
}
