/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What does a task cost, by where its queue hangs?  Create + submit + run + notice, of an empty
 * task, from the first core: a row per queue of the engine's tree (local core, remote core N,
 * caches and packages, machine), ns, and its distance in levels.  A place of several cores is
 * polled by all of them; which of them ran how much is its share.  Beside it simpler schemes
 * (schemes.h).  Also what submitting costs while another core polls there (busy.h), how fast two
 * cores submit to one queue at once, and how soon a task starts in the background while the caller
 * computes.
 *
 * Bounds, printed as "limit": local, a word that is exchanged twice, for the task and for nothing;
 * remote, two cache lines there and back; background, a bare futex wake-up.
 *
 * A repeat task in the machine's queue, for which the caller waits: what a round of 1,000 takes; with
 * HWLOC_SYNTHETIC on trees of any depth.
 *
 * task [--quick]; --brief: for tests; --repeat: only the row of the repeat task; --tree: only each
 * queue's distance, also of those where no core of ours is.
 */
#include "bench.h"

#include <pthread.h>
#include <stdatomic.h>
#include <weft/progress.h>
#include <weft/task.h>
#include "schemes.h"

#define CORES_MAX 64
#define BLOCKS 9
#define SPINS 20000 /* looks at what another core writes: then another thread may need this one */

static int cores[CORES_MAX], core_count;
static int quick;
static int tasks = 100000;  /* in a block */
static double row_until_us; /* where more threads want cores than there are, a row ends by time */

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

static void row_begins(void)
{
	row_until_us = bench_now_us() + (quick ? 0.5e6 : 10e6);
}

static bool row_late(void)
{
	return bench_now_us() > row_until_us;
}

/* Between two looks at what another core writes. */
static inline void spin_or_yield(unsigned *turns)
{
	if (++*turns % SPINS == 0)
		sched_yield();
}

static void find_cores(void)
{
	cpu_set_t may;
	sched_getaffinity(0, sizeof may, &may);
	for (int cpu = 0; cpu < CPU_SETSIZE && core_count < CORES_MAX; cpu++)
		if (CPU_ISSET(cpu, &may))
			cores[core_count++] = cpu;
}

#include "tree.h"
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

/* A look at the queue of core nth, and at that of a place above. */
static void look(const struct scheme *s, int queue, int also)
{
	if (!s)
		weft_engine_poll();
	else if (!scheme_poll(s, queue) && also >= 0)
		scheme_poll(s, also);
}

static void *help(void *arg)
{
	struct helper *h = arg;
	pin_to(cores[h->nth]);
	atomic_fetch_add(&x_ready, 1);
	while (!atomic_load_explicit(&x_stop, memory_order_relaxed))
		look(h->scheme, h->queue, h->also);
	return NULL;
}

/* Is cores[nth] below, and not the caller's? */
static bool helps(int nth, int at)
{
	return nth > 0 && leaf_of[nth] >= 0 && is_above(at, leaf_of[nth]);
}

/* The cores below `at` poll; the caller is on the first core of all. */
static void start_helpers(int at, const struct scheme *s)
{
	int n = 0;
	atomic_store(&x_stop, 0);
	atomic_store(&x_ready, 0);
	for (int i = 1; i < core_count; i++) {
		if (!helps(i, at))
			continue;
		helpers[i] = (struct helper){.nth = i,
					     .scheme = s,
					     .queue = leaf_of[i],
					     .also = leaf_of[i] == at ? -1 : at};
		if (pthread_create(&helpers[i].thread, NULL, help, &helpers[i]) != 0)
			exit(1);
		n++;
	}
	while (atomic_load(&x_ready) < n)
		sched_yield();
}

static void stop_helpers(int at)
{
	atomic_store(&x_stop, 1);
	for (int i = 1; i < core_count; i++)
		if (helps(i, at))
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

/* The caller waits, and so runs it if it comes first; polls as the others do; or only looks. */
enum part { WAITS, POLLS, LOOKS };

/* What a row repeats. */
struct trip {
	const cpu_set_t *cpus;
	const struct scheme *s;
	int queue;
	enum part part;
};

/* n times, in pieces that grow, fewer if that takes too long: ns of each. */
static double block(void (*once)(const struct trip *, int), const struct trip *trip)
{
	int done = 0, n = tasks;
	double us = 0;
	for (int piece = 1; done < n && (!done || !row_late()); piece *= 2) {
		piece = piece < n - done ? piece : n - done;
		double begun = bench_now_us();
		once(trip, piece);
		us += bench_now_us() - begun;
		done += piece;
	}
	return us * 1e3 / done;
}

/* Median of blocks: what the host takes away hits few of them. */
static double blocks(void (*once)(const struct trip *, int), struct trip trip, bool warm)
{
	double v[BLOCKS];
	int n = 0;
	row_begins();
	if (warm)
		(void)block(once, &trip);
	while (n < BLOCKS && (!n || !row_late()))
		v[n++] = block(once, &trip);
	return bench_median(v, n);
}

static void weft_once(const struct trip *trip, int n)
{
	alignas(64) static struct weft_task t;
	const cpu_set_t *cpus = trip->cpus;
	enum part part = trip->part;
	for (int i = 0; i < n; i++) {
		if (cpus) {
			weft_task_init(&t, "empty", nothing, NULL, WEFT_TASK_ONCE);
			t.cpus = cpus;
			weft_task_submit(&t);
		} else {
			weft_task_launch(&t, "empty", nothing, NULL);
		}
		if (part == WAITS)
			weft_task_wait(&t);
		else
			while (!weft_task_done(&t)) /* ends: a thread polls there */
				if (part == POLLS)
					weft_engine_poll();
				else
					spin_pause();
	}
}

static void scheme_once(const struct trip *trip, int n)
{
	static struct item t;
	const struct scheme *s = trip->s;
	for (int i = 0; i < n; i++) {
		t.fn = nothing_either;
		t.arg = NULL;
		atomic_store_explicit(&t.x_done, 0, memory_order_relaxed);
		s->put(trip->queue, &t);
		while (!atomic_load_explicit(&t.x_done, memory_order_acquire))
			if (trip->part == LOOKS)
				spin_pause();
			else
				look(s, trip->queue, -1);
	}
}

static void weft_case(const char *name, const cpu_set_t *cpus, enum part part)
{
	struct trip trip = {.cpus = cpus, .part = part};
	row("weft", name, "time", "ns", blocks(weft_once, trip, true));
}

static void scheme_case(const struct scheme *s, const char *name, int queue, enum part part)
{
	struct trip trip = {.s = s, .queue = queue, .part = part};
	row(s->name, name, "time", "ns", blocks(scheme_once, trip, true));
}

#include "limits.h"

/* ---- a row per queue ---------------------------------------------------------------------------
 */

static _Atomic long x_ran[CPU_SETSIZE];

static enum weft_task_verdict notes_core(struct weft_task *t, void *arg)
{
	(void)t, (void)arg;
	atomic_fetch_add_explicit(&x_ran[sched_getcpu()], 1, memory_order_relaxed);
	return WEFT_TASK_DONE;
}

/* Which pollers ran the tasks of a place that several poll. */
static void shares(int at, const cpu_set_t *cpus, enum part part)
{
	alignas(64) static struct weft_task t;
	int n = 0;
	memset((void *)x_ran, 0, sizeof x_ran);
	for (row_begins(); n < tasks && (!n || n % 64 || !row_late()); n++) {
		weft_task_init(&t, "share", notes_core, NULL, WEFT_TASK_ONCE);
		t.cpus = cpus;
		weft_task_submit(&t);
		while (!weft_task_done(&t)) /* ends: we or a helper run it */
			if (part == POLLS)
				weft_engine_poll();
			else
				spin_pause();
	}
	for (int i = 0; i < core_count; i++) {
		char text[96];
		if (leaf_of[i] < 0 || !is_above(at, leaf_of[i]))
			continue;
		snprintf(text, sizeof text, "%s run by core %d", place[at].name, cores[i]);
		row("weft", text, "share", "percent", 100.0 * (double)x_ran[cores[i]] / n);
	}
}

static void one_place(int at)
{
	const char *name = place[at].name;
	bool leaf = place[at].cpu >= 0, mine = leaf_of[0] >= 0 && is_above(at, leaf_of[0]);
	enum part part = !mine ? LOOKS : leaf ? WAITS : POLLS;
	cpu_set_t set;
	set_of(at, &set);
	row("weft", name, "distance", "levels", distance(at));
	start_helpers(at, NULL);
	weft_case(name, at ? &set : NULL, part);
	if (!leaf)
		shares(at, at ? &set : NULL, part);
	stop_helpers(at);
	for (int i = 0; i < SCHEMES && at < QUEUES_MAX; i++) {
		start_helpers(at, &schemes[i]);
		scheme_case(&schemes[i], name, at, part);
		stop_helpers(at);
	}
	for (int i = 1; leaf && i < core_count; i++)
		if (leaf_of[i] == at)
			two_lines(name, i);
}

/* From the leaves up, as a round goes: the first core, the others, then what they share. */
static void all_places(void)
{
	int deepest = 0, leaves = 0;
	for (int i = 0; i < places; i++)
		deepest = place[i].depth > deepest ? place[i].depth : deepest;
	for (int i = 0; i < places; i++)
		if (place[i].cpu >= 0 && place[i].ours && leaves++ < 64)
			one_place(i);
	for (int depth = deepest; depth >= 0; depth--)
		for (int i = 0; i < places; i++)
			if (place[i].cpu < 0 && place[i].ours > 1 && place[i].depth == depth)
				one_place(i);
}

static void print_tree(void)
{
	for (int i = 0; i < places; i++)
		row("weft", place[i].name, "distance", "levels", distance(i));
}

#include "busy.h"

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
	unsigned turns = 0;
	atomic_fetch_add(&x_ready, 1);
	while (atomic_load(&x_ready) < 2)
		spin_or_yield(&turns);
	double begun = bench_now_us();
	for (int i = 0; i < s->n; i++)
		weft_task_submit(&s->t[i]);
	s->us = bench_now_us() - begun;
	return NULL;
}

/* Submission only; the tasks do not run meanwhile. */
static void two_submit(void)
{
	struct submitter s[2];
	double v[BLOCKS];
	int n = tasks;
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
	int n = 0, most = tasks < N ? tasks : quick ? 200 : N;
	long turns = bench_turns(20);
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cores[0], &set);
	for (row_begins(); n < most && (!n || !row_late()); n++) {
		double started;
		bench_compute(turns * (1 + n % 5));
		weft_task_init(&t, "background", notes_time, &started, options);
		t.cpus = own_core ? &set : NULL;
		double begun = bench_now_us();
		weft_task_submit(&t);
		while (!weft_task_done(&t)) /* ends: the watcher, or a worker, runs it */
			bench_compute(20);
		v[n] = started - begun;
	}
	row("weft", name, "start", "us", bench_median(v, n));
	row("weft", name, "p99", "us", v[n * 99 / 100]);
}

/* The submitters alone: no thread takes tasks away. */
static int submission_alone(void)
{
	weft_progress_set(false);
	if (weft_engine_start() != WEFT_OK)
		return 1;
	two_submit();
	weft_engine_stop();
	return 0;
}

/* ---- a repeat task -------------------------------------------------------------------------- */

#define ROUNDS 1000

static enum weft_task_verdict run_again(struct weft_task *t, void *arg)
{
	(void)t;
	int *left = arg;
	return --*left > 0 ? WEFT_TASK_AGAIN : WEFT_TASK_DONE;
}

static void repeat_task(void)
{
	double v[BLOCKS];
	for (int i = 0; i < BLOCKS; i++) {
		struct weft_task t;
		int left = ROUNDS;
		weft_task_init(&t, "repeat", run_again, &left, WEFT_TASK_REPEAT);
		double begun = bench_now_us();
		weft_task_submit(&t);
		weft_task_wait(&t);
		v[i] = (bench_now_us() - begun) * 1e3 / ROUNDS;
	}
	row("weft", "machine repeat task", "round", "ns", bench_median(v, BLOCKS));
}

int main(int argc, char **argv)
{
	bool tree = false, repeat = false;
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--quick") == 0)
			quick = 1;
		else if (strcmp(argv[i], "--brief") == 0)
			quick = 1, tasks = 20;
		else if (strcmp(argv[i], "--tree") == 0)
			tree = true;
		else if (strcmp(argv[i], "--repeat") == 0)
			repeat = true;
		else
			bench_usage(argv[0], argv[i], "[--quick | --brief | --repeat | --tree]");
	if (quick && tasks > 20000)
		tasks = 20000;
	find_cores();
	free_init();
	/* Threads of the engine stay off this thread's core only if they are not bound to it. */
	if (weft_engine_start() != WEFT_OK)
		return 1;
	read_tree();
	if (tree) {
		print_tree();
		weft_engine_stop();
		return 0;
	}
	pin_to(cores[0]);
	if (repeat) {
		repeat_task();
		weft_engine_stop();
		return 0;
	}
	weft_case("local machine", NULL, WAITS);
	two_exchanges("local machine");
	repeat_task();
	all_places();
	if (core_count > 1) {
		if (leaf_of[1] > 0)
			busy(1);
		bare_wake("background", cores[1], 0);
		bare_wake("background core kept awake", cores[1], 1);
		background("background", 0, 0);
		background("background urgent on the caller's core", WEFT_TASK_URGENT, 1);
	}
	weft_engine_stop();
	return core_count > 1 ? submission_alone() : 0;
}
