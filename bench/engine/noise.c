/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * noise.c - what does the engine's polling cost those who compute?  (2015, figs. 2 to 4)
 *
 * Unit      percent by which a loop on each core takes longer, compute-bound and memory-bound;
 *           us of half of there and back, 8 bytes over shm: best, median, mean.
 * Bound     0; the goals are 0.5 and 1.  Latency: that of the longest period, where hardly
 *           anybody looks.
 * Method    noise nothing|default|idle US|timer MS: without any engine (what is then not 0 is the
 *           machine's own noise), as it is, with idle workers that look every US us (0: as often
 *           as they can), or with a watcher that polls every MS ms.  First one process alone, an
 *           event pending all the time: the loop with and without the engine in turn, the median
 *           of the pairs.  Then two ranks exchange messages.
 */
#include "bench_mpi.h"
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
		for (int r = 0; r < 2; r++)
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

/* What starting takes is over, and its threads have gone to sleep. */
static void settle(void)
{
	struct timespec ts = {0, 3000000};
	nanosleep(&ts, NULL);
}

static double run_with_engine(int memory_bound)
{
	struct weft_events *es;
	struct weft_event ev;
	if (weft_engine_start() || weft_events_open_timers(&es))
		exit(1);
	weft_event_init(&ev, NULL, NULL);
	weft_event_post_after(es, &ev, 3600000000000u);
	settle();
	double us = run(memory_bound);
	weft_events_close(es);
	weft_engine_stop();
	return us;
}

/* ---- messages ---------------------------------------------------------------------------------
 */

/* As a row of its own curve. */
static void curve(const char *which, const char *name, double us)
{
	printf("%s,%s,latency,us,%.6g\n", which, name, us);
	fflush(stdout);
}

static void latency(const char *name, int n)
{
	char byte[8] = {0};
	double *v = (double *)bench_alloc((size_t)n * sizeof *v), sum = 0;
	for (int i = -n / 10; i < n; i++) { /* some to warm up */
		double t0 = bench_now_us();
		if (bench_rank == 0)
			MPI_Send(byte, 8, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
		MPI_Recv(byte, 8, MPI_CHAR, 1 - bench_rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (bench_rank == 1)
			MPI_Send(byte, 8, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
		if (i >= 0)
			sum += v[i] = (bench_now_us() - t0) / 2;
	}
	qsort(v, (size_t)n, sizeof *v, bench_compare);
	if (bench_rank == 0) {
		curve("best", name, v[0]);
		curve("median", name, v[n / 2]);
		curve("mean", name, sum / n);
	}
	free(v);
}

/* ---- loops ------------------------------------------------------------------------------------
 */

static double measured(int memory_bound, int engine)
{
	if (engine)
		return run_with_engine(memory_bound);
	settle();
	return run(memory_bound);
}

static void slow_down(const char *name, int engine, int quick)
{
	cpu_set_t may;
	threads = sched_getaffinity(0, sizeof may, &may) ? 1 : CPU_COUNT(&may);
	threads = threads > THREADS_MAX ? THREADS_MAX : threads;
	for (int i = 0; i < threads; i++)
		memory[i] = (double *)bench_alloc(WORDS * sizeof(double));
	turns = bench_turns(quick ? 5e3 : 20e3);
	for (int m = 0; m < 2; m++) {
		enum { MOST = 61 };
		double slower[MOST];
		int n = quick ? 5 : MOST;
		run(m);
		for (int i = 0; i < n; i++) {
			/* Each pair in the other order: what the host does to both cancels out. */
			double first = measured(m, i % 2 ? 0 : engine);
			double second = measured(m, i % 2 ? engine : 0);
			double with = i % 2 ? second : first, without = i % 2 ? first : second;
			slower[i] = 100 * (with - without) / without;
		}
		bench_row(name, m ? "memory" : "compute", "% slower", bench_median(slower, n));
	}
	for (int i = 0; i < threads; i++)
		free(memory[i]);
}

int main(int argc, char **argv)
{
	int quick = argc > 1 && strcmp(argv[argc - 1], "--quick") == 0, words = argc - quick;
	int nothing = words == 2 && strcmp(argv[1], "nothing") == 0;
	char name[64] = "default";
	if (words == 3 && strcmp(argv[1], "idle") == 0) {
		setenv("WEFT_IDLE_PERIOD_US", argv[2], 1);
		setenv("WEFT_IDLE_WORKERS", "1", 1);
		snprintf(name, sizeof name, "idle period %s us", argv[2]);
	} else if (words == 3 && strcmp(argv[1], "timer") == 0) {
		setenv("WEFT_TIMER_POLL_MS", argv[2], 1);
		snprintf(name, sizeof name, "timer period %s ms", argv[2]);
	} else if (nothing) {
		setenv("WEFT_PROGRESS", "off", 1);
		snprintf(name, sizeof name, "nothing");
	} else if (words != 1 && !(words == 2 && strcmp(argv[1], "default") == 0)) {
		bench_usage(argv[0], argv[1], "[nothing|default|idle US|timer MS] [--quick]");
	}
	/* The other rank waits for us in MPI_Init, asleep. */
	if (bench_early_rank() <= 0)
		slow_down(name, !nothing, quick);
	bench_start(&argc, &argv, MPI_THREAD_SINGLE);
	if (bench_ranks == 2)
		latency(name, quick ? 5000 : 200000);
	MPI_Finalize();
	return 0;
}
