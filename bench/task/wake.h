/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wake.h - the bound of a task in the background: a bare futex wake-up of a thread on another core,
 * which sleeps, or which a SCHED_IDLE thread keeps awake.
 */
#ifndef WEFT_BENCH_WAKE_H
#define WEFT_BENCH_WAKE_H

#include <linux/futex.h>
#include <sys/syscall.h>

static struct {
	_Atomic unsigned x_word;
	_Atomic int x_got, x_over;
	double woke;
	int core;
} wake;

static void *wake_sleeper(void *arg)
{
	unsigned seen = 0;
	pin_to(wake.core);
	while (!atomic_load(&wake.x_over)) {
		while (atomic_load(&wake.x_word) == seen)
			syscall(SYS_futex, &wake.x_word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
		wake.woke = bench_now_us();
		seen = atomic_load(&wake.x_word);
		atomic_fetch_add(&wake.x_got, 1);
	}
	return arg;
}

static void *wake_keeper(void *arg)
{
	struct sched_param p = {0};
	pin_to(wake.core);
	sched_setscheduler(0, SCHED_IDLE, &p);
	while (!atomic_load(&wake.x_over))
		spin_pause();
	return arg;
}

static void bare_wake(const char *name, int core, int awake)
{
	enum { N = 2000 };
	static double v[N];
	pthread_t sleeper, keeper;
	int n = 0, most = tasks < N ? tasks : quick ? 200 : N;
	long turns = bench_turns(20);
	wake.core = core;
	atomic_store(&wake.x_over, 0);
	atomic_store(&wake.x_word, 0);
	atomic_store(&wake.x_got, 0);
	if (pthread_create(&sleeper, NULL, wake_sleeper, NULL) ||
	    (awake && pthread_create(&keeper, NULL, wake_keeper, NULL)))
		exit(1);
	row_begins();
	for (bool over = false; !over; n += !over) {
		bench_compute(turns * (1 + n % 5));
		over = n == most || (n && row_late());
		if (over)
			atomic_store(&wake.x_over, 1);
		double begun = bench_now_us();
		atomic_fetch_add(&wake.x_word, 1);
		syscall(SYS_futex, &wake.x_word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
		while (atomic_load(&wake.x_got) <= n) /* ends: it has been woken */
			bench_compute(20);
		if (!over)
			v[n] = wake.woke - begun;
	}
	pthread_join(sleeper, NULL);
	if (awake) {
		/* Beside threads that compute an idle one may wait for seconds; refused: so be it.
		 */
		(void)pthread_setschedparam(keeper, SCHED_OTHER, &(struct sched_param){0});
		pthread_join(keeper, NULL);
	}
	row("limit", name, "start", "us", bench_median(v, n));
	row("limit", name, "p99", "us", v[n * 99 / 100]);
}

#endif
