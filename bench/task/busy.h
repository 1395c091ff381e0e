/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * busy.h - what it costs to submit to a queue where another core runs polls all the time, which is
 * where the 2015 paper's two rejected schemes lose: ns per submission, and from there to done.
 */
#ifndef WEFT_BENCH_BUSY_H
#define WEFT_BENCH_BUSY_H

#define POLLS_THERE 8
#define BURST 32 /* submitted one after the other, then waited for */

/* As long as a look at a network that has nothing. */
static void look_there(void *arg)
{
	(void)arg;
	bench_compute(20);
}

static enum weft_task_verdict poll_there(struct weft_task *t, void *arg)
{
	(void)t;
	look_there(arg);
	return WEFT_TASK_AGAIN;
}

static double weft_burst(const cpu_set_t *cpus)
{
	alignas(64) static struct weft_task t[BURST];
	for (int i = 0; i < BURST; i++) {
		weft_task_init(&t[i], "burst", nothing, NULL, WEFT_TASK_ONCE);
		t[i].cpus = cpus;
	}
	double begun = bench_now_us();
	for (int i = 0; i < BURST; i++)
		weft_task_submit(&t[i]);
	double us = bench_now_us() - begun;
	for (int i = 0; i < BURST; i++)
		while (!weft_task_done(&t[i])) /* ends: the other core polls */
			spin_pause();
	return us * 1e3 / BURST;
}

static double scheme_burst(const struct scheme *s, int queue)
{
	static struct item t[BURST];
	for (int i = 0; i < BURST; i++) {
		t[i].fn = nothing_either;
		atomic_store_explicit(&t[i].x_done, 0, memory_order_relaxed);
	}
	double begun = bench_now_us();
	for (int i = 0; i < BURST; i++)
		s->put(queue, &t[i]);
	double us = bench_now_us() - begun;
	for (int i = 0; i < BURST; i++)
		while (!atomic_load_explicit(&t[i].x_done,
					     memory_order_acquire)) /* ends: as above */
			spin_pause();
	return us * 1e3 / BURST;
}

static int bursts(void)
{
	return tasks < 500 ? 5 : quick ? 500 : 4000;
}

static void weft_busy(const char *name, int at, const cpu_set_t *set)
{
	static struct weft_task p[POLLS_THERE];
	static double v[4000];
	int n = 0;
	start_helpers(at, NULL);
	for (int i = 0; i < POLLS_THERE; i++) {
		weft_task_init(&p[i], "poll", poll_there, NULL, WEFT_TASK_REPEAT);
		p[i].cpus = set;
		weft_task_submit(&p[i]);
	}
	row_begins();
	while (n < bursts() && (!n || !row_late()))
		v[n++] = weft_burst(set);
	row("weft", name, "submit", "ns", bench_median(v, n));
	weft_case(name, set, LOOKS);
	for (int i = 0; i < POLLS_THERE; i++)
		weft_task_cancel_wait(&p[i]);
	stop_helpers(at);
}

static void scheme_busy(const struct scheme *s, const char *name, int at)
{
	static struct item p[POLLS_THERE];
	static double v[4000];
	int n = 0;
	atomic_store(&x_polls_over, 0);
	start_helpers(at, s);
	for (int i = 0; i < POLLS_THERE; i++) {
		p[i].fn = look_there;
		p[i].again = true;
		atomic_store(&p[i].x_done, 0);
		s->put(at, &p[i]);
	}
	row_begins();
	while (n < bursts() && (!n || !row_late()))
		v[n++] = scheme_burst(s, at);
	row(s->name, name, "submit", "ns", bench_median(v, n));
	scheme_case(s, name, at, LOOKS);
	atomic_store(&x_polls_over, 1);
	for (int i = 0; i < POLLS_THERE; i++)
		while (!atomic_load(&p[i].x_done)) /* ends: the helper runs each once more */
			spin_pause();
	stop_helpers(at);
}

static void busy(int nth)
{
	char name[64];
	cpu_set_t set;
	set_of(leaf_of[nth], &set);
	snprintf(name, sizeof name, "remote core %d with %d polls", cores[nth], POLLS_THERE);
	weft_busy(name, leaf_of[nth], &set);
	for (int i = 0; i < SCHEMES && leaf_of[nth] < QUEUES_MAX; i++)
		scheme_busy(&schemes[i], name, leaf_of[nth]);
}

#endif
