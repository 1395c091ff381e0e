/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * noise.c - what does the engine's polling cost threads that compute?  (2015, figs. 2 to 4)
 *
 * Unit      percent by which a loop on each core takes longer, compute-bound and memory-bound,
 *           and the bounds it lies between (95 %); processor time of the engine's own threads,
 *           percent of a core; us of half of there and back, 8 bytes over shm.
 * Bound     0; the goals are 0.5 and 1.  Latency: that of the longest period, where polls are
 *           rare.
 * Method    noise nothing|default|idle US|timer MS [--pairs N] [--only compute|memory]: without any
 *           engine (what is then not 0 is the machine's own noise), as it is, with idle workers
 * that look every US us (0: as often as they can), or with a watcher that polls every MS ms. First
 * one process alone, an event pending all the time: 20 ms of the loop beside the engine and 20 ms
 * after it has stopped, every other pair the other way round.  Printed are the median of N pairs
 * (61) and the pairs between which the true one lies 19 times in 20: the machine's own noise
 * shrinks with the root of N.  Then two ranks exchange messages.
 */
#include "bench_mpi.h"
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <weft/source.h>
#include <weft/stats.h>

#define THREADS_MAX 64
#define WORDS (4u << 20) /* 32 MiB each: beyond every cache of the core's own */
#define PAIRS_MAX 5000

struct worker {
	pthread_t thread;
	double *memory, took;
};

static struct worker worker[THREADS_MAX];
static int threads;
static long turns;
static int memory_bound;
static bool over;
static pthread_barrier_t begin, end;

static double loop(struct worker *w)
{
	double t = bench_now_us(), sum = 0;
	if (memory_bound)
		for (int r = 0; r < 2; r++)
			for (unsigned i = 0; i < WORDS; i++)
				w->memory[i] = sum = w->memory[i] * 0.5 + r;
	else
		sum = bench_compute(turns);
	BENCH_KEEP(sum);
	return bench_now_us() - t;
}

/* Bound to its core, asleep between runs: starting a thread is noise of its own. */
static void *work(void *arg)
{
	struct worker *w = arg;
	bench_pin((int)(w - worker));
	for (;;) {
		pthread_barrier_wait(&begin);
		if (over)
			return NULL;
		w->took = loop(w);
		pthread_barrier_wait(&end);
	}
}

static void start_workers(void)
{
	cpu_set_t may;
	threads = sched_getaffinity(0, sizeof may, &may) ? 1 : CPU_COUNT(&may);
	threads = threads > THREADS_MAX ? THREADS_MAX : threads;
	pthread_barrier_init(&begin, NULL, (unsigned)threads + 1);
	pthread_barrier_init(&end, NULL, (unsigned)threads + 1);
	for (int i = 0; i < threads; i++) {
		worker[i].memory = (double *)bench_alloc(WORDS * sizeof(double));
		if (pthread_create(&worker[i].thread, NULL, work, &worker[i]))
			exit(1);
	}
}

static void stop_workers(void)
{
	over = true;
	pthread_barrier_wait(&begin);
	for (int i = 0; i < threads; i++) {
		pthread_join(worker[i].thread, NULL);
		free(worker[i].memory);
	}
}

/* The mean over the cores of one run. */
static double run(void)
{
	double sum = 0;
	pthread_barrier_wait(&begin);
	pthread_barrier_wait(&end);
	for (int i = 0; i < threads; i++)
		sum += worker[i].took;
	return sum / threads;
}

/* What starting takes is over, and its threads have gone to sleep. */
static void settle(void)
{
	struct timespec ts = {0, 3000000};
	nanosleep(&ts, NULL);
}

static double used_ns, ran_us; /* by the engine's threads; meanwhile */

static double run_with_engine(void)
{
	struct weft_events *es;
	struct weft_event ev;
	if (weft_engine_start() || weft_events_open_timers(&es))
		exit(1);
	weft_event_init(&ev, NULL, NULL);
	weft_event_post_after(es, &ev, 3600000000000u);
	settle();
	double before = (double)weft_task_stat("background_ns");
	double us = run();
	used_ns += (double)weft_task_stat("background_ns") - before;
	ran_us += us;
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

static double measured(int engine)
{
	if (engine)
		return run_with_engine();
	/* What starting leaves behind in caches and clocks is not what is asked for. */
	if (weft_engine_start())
		exit(1);
	weft_engine_stop();
	settle();
	return run();
}

/* The median, and the pairs on both sides of it that hold the true one 19 times in 20. */
static void print(const char *name, const char *what, double *slower, int n)
{
	char metric[32];
	double median = bench_median(slower, n); /* sorts */
	int apart = (int)ceil(0.98 * sqrt(n)), low = n / 2 - apart, high = n / 2 + apart;
	bench_row(name, what, "% slower", median);
	snprintf(metric, sizeof metric, "%s at least", what);
	bench_row(name, metric, "% slower", slower[low < 0 ? 0 : low]);
	snprintf(metric, sizeof metric, "%s at most", what);
	bench_row(name, metric, "% slower", slower[high >= n ? n - 1 : high]);
}

/* only: the loop that is asked for, or NULL. */
static void slow_down(const char *name, int engine, int quick, int pairs, const char *only)
{
	static const char *const what[] = {"compute", "memory"};
	static double slower[PAIRS_MAX];
	turns = bench_turns(quick ? 5e3 : 20e3);
	start_workers();
	for (memory_bound = 0; memory_bound < 2; memory_bound++) {
		if (only && strcmp(only, what[memory_bound]))
			continue;
		run();
		for (int i = 0; i < pairs; i++) {
			/* Each pair in the other order: what the host does to both cancels out. */
			double first = measured(i % 2 ? 0 : engine);
			double second = measured(i % 2 ? engine : 0);
			double with = i % 2 ? second : first, without = i % 2 ? first : second;
			slower[i] = 100 * (with - without) / without;
		}
		print(name, what[memory_bound], slower, pairs);
	}
	stop_workers();
	if (engine)
		bench_row(name, "background", "% of a core", used_ns / ran_us / 10);
}

/* Takes the last words away that are options. */
static int options(int argc, char **argv, int *quick_p, int *pairs_p, const char **only_p)
{
	if (argc > 1 && strcmp(argv[argc - 1], "--quick") == 0) {
		*quick_p = 1;
		*pairs_p = 5;
		argc--;
	}
	if (argc > 2 && strcmp(argv[argc - 2], "--only") == 0) {
		*only_p = argv[argc - 1];
		if (strcmp(*only_p, "compute") && strcmp(*only_p, "memory"))
			bench_usage(argv[0], *only_p, "--only compute|memory");
		argc -= 2;
	}
	if (argc > 2 && strcmp(argv[argc - 2], "--pairs") == 0) {
		*pairs_p = atoi(argv[argc - 1]);
		argc -= 2;
	}
	if (*pairs_p < 1 || *pairs_p > PAIRS_MAX)
		bench_usage(argv[0], "--pairs", "--pairs 1 to 5000");
	return argc;
}

int main(int argc, char **argv)
{
	const char *only = NULL;
	int quick = 0, pairs = 61, words = options(argc, argv, &quick, &pairs, &only);
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
		bench_usage(
			argv[0], argv[1],
			"[nothing|default|idle US|timer MS] [--pairs N] [--only LOOP] [--quick]");
	}
	/* The other rank waits for us in MPI_Init, asleep. */
	if (bench_early_rank() <= 0)
		slow_down(name, !nothing, quick, pairs, only);
	bench_start(&argc, &argv, MPI_THREAD_SINGLE);
	if (bench_ranks == 2)
		latency(name, quick ? 5000 : 200000);
	MPI_Finalize();
	return 0;
}
