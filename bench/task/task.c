/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What does a task cost, by where its queue hangs?  Create + submit + run + notice, of an empty
 * task, from the first core: to its own queue (local), to each other core's (remote core N), to
 * queues of caches and packages, to the machine's; ns.  Beside it three simpler schemes.  Also the
 * share of the machine's tasks that each core ran, how fast two cores submit to one queue at once,
 * and how soon a task starts in the background while the caller computes.
 *
 * Bounds: local, one exchange per step that cores agree on, 5.6 ns each; remote, two cache lines
 * there and back (printed as "two lines"); background, a bare futex wake-up (printed as "limit").
 */
#include "bench.h"

#include <pthread.h>
#include <stdatomic.h>
#include <weft/progress.h>
#include <weft/task.h>
#include "schemes.h"

#define CORES_MAX 64
#define BLOCKS 9

static int cores[CORES_MAX], core_count;
static int quick;

static void row(const char *impl, const char *name, const char *metric, const char *unit, double v)
{
	printf("%s,%s,%s,%s,%.6g\n", impl, name, metric, unit, v);
	fflush(stdout);
}

static void pin_to(int core)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(core, &set);
	sched_setaffinity(0, sizeof set, &set);
}

static void find_cores(void)
{
	cpu_set_t may;
	sched_getaffinity(0, sizeof may, &may);
	for (int cpu = 0; cpu < CPU_SETSIZE && core_count < CORES_MAX; cpu++)
		if (CPU_ISSET(cpu, &may))
			cores[core_count++] = cpu;
}

#include "wake.h"

/* ---- helpers on the other cores -------------------------------------------------------------- */

struct helper {
	pthread_t thread;
	int nth;
	const struct scheme *scheme; /* NULL: weft */
	int queue, also;             /* whose queues it polls; -1: none */
};

static struct helper helpers[CORES_MAX];
static _Atomic int x_stop, x_ready;

static void run_item(struct item *t)
{
	t->fn(t->arg);
	atomic_store_explicit(&t->x_done, 1, memory_order_release);
}

static int scheme_poll(const struct scheme *s, int queue)
{
	struct item *t = s->get(queue);
	if (t)
		run_item(t);
	return t != NULL;
}

static void *help(void *arg)
{
	struct helper *h = arg;
	pin_to(cores[h->nth]);
	atomic_fetch_add(&x_ready, 1);
	while (!atomic_load_explicit(&x_stop, memory_order_relaxed)) {
		if (!h->scheme) {
			weft_engine_poll();
			continue;
		}
		if (!scheme_poll(h->scheme, h->queue) && h->also >= 0)
			scheme_poll(h->scheme, h->also);
	}
	return NULL;
}

/* Cores first..last poll; the caller is on the first core of all. */
static void start_helpers(int first, int last, const struct scheme *s, int machine)
{
	atomic_store(&x_stop, 0);
	atomic_store(&x_ready, 0);
	for (int i = first; i <= last; i++) {
		helpers[i] = (struct helper){
			.nth = i, .scheme = s, .queue = i, .also = machine ? core_count : -1};
		if (pthread_create(&helpers[i].thread, NULL, help, &helpers[i]) != 0)
			exit(1);
	}
	while (atomic_load(&x_ready) < last - first + 1)
		sched_yield();
}

static void stop_helpers(int first, int last)
{
	atomic_store(&x_stop, 1);
	for (int i = first; i <= last; i++)
		pthread_join(helpers[i].thread, NULL);
}

/* ---- one task at a time ------------------------------------------------------------------------
 */

static enum weft_task_verdict nothing(struct weft_task *t, void *arg)
{
	(void)t, (void)arg;
	return WEFT_TASK_DONE;
}

static void nothing_either(void *arg)
{
	(void)arg;
}

/* The caller waits, and so runs it if it comes first; or only looks. */
enum part { RUNS, LOOKS };

static double weft_once(const cpu_set_t *cpus, enum part part, int n)
{
	alignas(64) static struct weft_task t;
	double begun = bench_now_us();
	for (int i = 0; i < n; i++) {
		if (cpus) {
			weft_task_init(&t, "empty", nothing, NULL, WEFT_TASK_ONCE);
			t.cpus = cpus;
			weft_task_submit(&t);
		} else {
			weft_task_launch(&t, "empty", nothing, NULL);
		}
		if (part == RUNS)
			weft_task_wait(&t);
		else
			while (!weft_task_done(&t)) /* ends: a helper polls there */
				spin_pause();
	}
	return (bench_now_us() - begun) * 1e3 / n;
}

static double scheme_once(const struct scheme *s, int queue, enum part part, int n)
{
	static struct item t;
	double begun = bench_now_us();
	for (int i = 0; i < n; i++) {
		t.fn = nothing_either;
		t.arg = NULL;
		atomic_store_explicit(&t.x_done, 0, memory_order_relaxed);
		s->put(queue, &t);
		while (!atomic_load_explicit(&t.x_done, memory_order_acquire))
			if (part == RUNS)
				scheme_poll(s, queue);
			else
				spin_pause();
	}
	return (bench_now_us() - begun) * 1e3 / n;
}

/* Median of blocks: what the host takes away hits few of them. */
static void weft_case(const char *name, const cpu_set_t *cpus, enum part part)
{
	double v[BLOCKS];
	int n = quick ? 20000 : 100000;
	weft_once(cpus, part, n);
	for (int b = 0; b < BLOCKS; b++)
		v[b] = weft_once(cpus, part, n);
	row("weft", name, "time", "ns", bench_median(v, BLOCKS));
}

static void scheme_case(const struct scheme *s, const char *name, int queue, enum part part)
{
	double v[BLOCKS];
	int n = quick ? 20000 : 100000;
	scheme_once(s, queue, part, n);
	for (int b = 0; b < BLOCKS; b++)
		v[b] = scheme_once(s, queue, part, n);
	row(s->name, name, "time", "ns", bench_median(v, BLOCKS));
}

/* ---- the machine's bound: two lines there and back --------------------------------------------
 */

static struct {
	alignas(64) _Atomic int x_there;
	alignas(64) _Atomic int x_back;
} lines;

static void *echo(void *arg)
{
	pin_to(cores[*(int *)arg]);
	for (int last = 0;;) {
		int v = atomic_load_explicit(&lines.x_there, memory_order_acquire);
		if (v < 0)
			return NULL;
		if (v != last)
			atomic_store_explicit(&lines.x_back, last = v, memory_order_release);
	}
}

static void two_lines(const char *name, int nth)
{
	pthread_t p;
	double v[BLOCKS];
	int n = quick ? 20000 : 100000;
	lines.x_there = lines.x_back = 0;
	if (pthread_create(&p, NULL, echo, &nth) != 0)
		exit(1);
	for (int b = 0; b < BLOCKS; b++) {
		double begun = bench_now_us();
		for (int i = 1; i <= n; i++) {
			int want = b * n + i;
			atomic_store_explicit(&lines.x_there, want, memory_order_release);
			while (atomic_load_explicit(&lines.x_back, memory_order_acquire) != want)
				;
		}
		v[b] = (bench_now_us() - begun) * 1e3 / n;
	}
	atomic_store(&lines.x_there, -1);
	pthread_join(p, NULL);
	row("two lines", name, "time", "ns", bench_median(v, BLOCKS));
}

static void one_core(int nth)
{
	char name[32];
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cores[nth], &set);
	snprintf(name, sizeof name, nth ? "remote core %d" : "local core %d", cores[nth]);
	if (nth)
		start_helpers(nth, nth, NULL, 0);
	weft_case(name, &set, nth ? LOOKS : RUNS);
	if (nth)
		stop_helpers(nth, nth);
	for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
		if (nth)
			start_helpers(nth, nth, &schemes[i], 0);
		scheme_case(&schemes[i], name, nth, nth ? LOOKS : RUNS);
		if (nth)
			stop_helpers(nth, nth);
	}
	if (nth)
		two_lines(name, nth);
}

/* ---- queues of several cores -------------------------------------------------------------------
 */

static _Atomic long x_ran[CPU_SETSIZE];

static enum weft_task_verdict notes_core(struct weft_task *t, void *arg)
{
	(void)t, (void)arg;
	atomic_fetch_add_explicit(&x_ran[sched_getcpu()], 1, memory_order_relaxed);
	return WEFT_TASK_DONE;
}

static void shares(const char *name)
{
	alignas(64) static struct weft_task t;
	int n = quick ? 20000 : 100000;
	for (int i = 0; i < n; i++) {
		weft_task_launch(&t, "share", notes_core, NULL);
		while (!weft_task_done(&t)) /* ends: we or a helper run it */
			weft_engine_poll();
	}
	for (int i = 0; i < core_count; i++) {
		char text[64];
		snprintf(text, sizeof text, "%s run by core %d", name, cores[i]);
		row("weft", text, "share", "percent", 100.0 * (double)x_ran[cores[i]] / n);
	}
}

static void machine(void)
{
	start_helpers(1, core_count - 1, NULL, 0);
	weft_case("machine", NULL, LOOKS);
	shares("machine");
	stop_helpers(1, core_count - 1);
	for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
		start_helpers(1, core_count - 1, &schemes[i], 1);
		scheme_case(&schemes[i], "machine", core_count, LOOKS);
		stop_helpers(1, core_count - 1);
	}
}

/* The cores named in a list of the system, "0-3,8"; how many of ours are in it. */
static int read_list(const char *path, cpu_set_t *set_p)
{
	FILE *f = fopen(path, "r");
	int from, to, n = 0;
	char c = 0;
	CPU_ZERO(set_p);
	if (!f)
		return 0;
	while (fscanf(f, "%d", &from) == 1) {
		to = from;
		if (fscanf(f, "%c", &c) == 1 && c == '-' && fscanf(f, "%d%c", &to, &c) < 1)
			break;
		for (int i = 0; i < core_count; i++)
			if (cores[i] >= from && cores[i] <= to) {
				CPU_SET(cores[i], set_p);
				n++;
			}
	}
	fclose(f);
	return n;
}

/* Places between our core and the machine, where the system knows some. */
static void places_between(void)
{
	static const struct {
		const char *name, *path;
	} level[] = {
		{"l2 cache", "/sys/devices/system/cpu/cpu%d/cache/index2/shared_cpu_list"},
		{"l3 cache", "/sys/devices/system/cpu/cpu%d/cache/index3/shared_cpu_list"},
		{"package", "/sys/devices/system/cpu/cpu%d/topology/package_cpus_list"},
	};
	int before = 1;
	for (size_t i = 0; i < sizeof level / sizeof *level; i++) {
		char path[128];
		static cpu_set_t set;
		snprintf(path, sizeof path, level[i].path, cores[0]);
		int n = read_list(path, &set);
		if (n <= before || n == core_count)
			continue;
		before = n;
		start_helpers(1, core_count - 1, NULL, 0);
		weft_case(level[i].name, &set, LOOKS);
		stop_helpers(1, core_count - 1);
	}
}

/* ---- many at once, and in the background --------------------------------------------------------
 */

struct submitter {
	pthread_t thread;
	int nth, n;
	struct weft_task *t;
	double us;
};

static void *submit_many(void *arg)
{
	struct submitter *s = arg;
	pin_to(cores[s->nth % core_count]);
	atomic_fetch_add(&x_ready, 1);
	while (atomic_load(&x_ready) < 2)
		;
	double begun = bench_now_us();
	for (int i = 0; i < s->n; i++)
		weft_task_submit(&s->t[i]);
	s->us = bench_now_us() - begun;
	return NULL;
}

/* Submission only; nobody runs them meanwhile. */
static void two_submit(void)
{
	struct submitter s[2];
	double v[BLOCKS];
	int n = quick ? 20000 : 100000;
	for (int k = 0; k < 2; k++)
		s[k] = (struct submitter){
			.nth = k, .n = n, .t = (void *)bench_alloc((size_t)n * sizeof *s[k].t)};
	for (int b = -1; b < BLOCKS; b++) {
		atomic_store(&x_ready, 0);
		for (int k = 0; k < 2; k++) {
			for (int i = 0; i < n; i++)
				weft_task_init(&s[k].t[i], "many", nothing, NULL, WEFT_TASK_ONCE);
			if (pthread_create(&s[k].thread, NULL, submit_many, &s[k]) != 0)
				exit(1);
		}
		for (int k = 0; k < 2; k++)
			pthread_join(s[k].thread, NULL);
		if (b >= 0)
			v[b] = 2.0 * n / (s[0].us > s[1].us ? s[0].us : s[1].us);
		for (int k = 0; k < 2; k++)
			for (int i = 0; i < n; i++)
				weft_task_wait(&s[k].t[i]);
	}
	row("weft", "machine two submit at once", "rate", "M/s", bench_median(v, BLOCKS));
	for (int k = 0; k < 2; k++)
		free(s[k].t);
}

static enum weft_task_verdict notes_time(struct weft_task *t, void *arg)
{
	(void)t;
	*(double *)arg = bench_now_us();
	return WEFT_TASK_DONE;
}

/* The caller computes and makes no call: how long until the function runs? */
static void background(const char *name, unsigned options, int own_core)
{
	enum { N = 2000 };
	static double v[N];
	static struct weft_task t;
	int n = quick ? 200 : N;
	long turns = bench_turns(20);
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cores[0], &set);
	for (int i = 0; i < n; i++) {
		double started;
		bench_compute(turns * (1 + i % 5));
		weft_task_init(&t, "background", notes_time, &started, options);
		t.cpus = own_core ? &set : NULL;
		double begun = bench_now_us();
		weft_task_submit(&t);
		while (!weft_task_done(&t)) /* ends: the watcher, or a worker, runs it */
			bench_compute(20);
		v[i] = started - begun;
	}
	row("weft", name, "start", "us", bench_median(v, n));
	row("weft", name, "p99", "us", v[n * 99 / 100]);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--quick") == 0)
			quick = 1;
		else
			bench_usage(argv[0], argv[i], "[--quick]");
	find_cores();
	free_init();
	/* Threads of the engine stay off this thread's core only if they are not bound to it. */
	if (weft_engine_start() != WEFT_OK)
		return 1;
	pin_to(cores[0]);
	for (int i = 0; i < core_count && i < 16; i++)
		one_core(i);
	weft_case("local machine", NULL, RUNS);
	if (core_count > 1) {
		places_between();
		machine();
		bare_wake("background", cores[1], 0);
		bare_wake("background core kept awake", cores[1], 1);
		background("background", 0, 0);
		background("background urgent on the caller's core", WEFT_TASK_URGENT, 1);
	}
	weft_engine_stop();
	/* Only the submitters, and nobody who takes tasks away. */
	if (core_count > 1) {
		weft_progress_set(false);
		if (weft_engine_start() != WEFT_OK)
			return 1;
		two_submit();
		weft_engine_stop();
	}
	return 0;
}
