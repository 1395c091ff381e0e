/* SPDX-License-Identifier: BSD-3-Clause */
/* limits.h - the machine's bounds: a word exchanged twice; two lines there and back. */
#ifndef WEFT_BENCH_LIMITS_H
#define WEFT_BENCH_LIMITS_H

static void two_exchanges(const char *name)
{
	alignas(64) static struct item t;
	alignas(64) static _Atomic(struct item *) x_slot;
	double v[BLOCKS];
	int n = tasks;
	for (int b = 0; b < BLOCKS; b++) {
		double begun = bench_now_us();
		for (int i = 0; i < n; i++) {
			t = (struct item){.fn = nothing_either};
			atomic_exchange(&x_slot, &t);
			run_item(atomic_exchange(&x_slot, NULL));
			while (!atomic_load_explicit(&t.x_done,
						     memory_order_acquire)) /* ends: done */
				;
		}
		v[b] = (bench_now_us() - begun) * 1e3 / n;
	}
	row("limit", name, "time", "ns", bench_median(v, BLOCKS));
}

static struct {
	alignas(64) _Atomic int x_there;
	alignas(64) _Atomic int x_back;
} lines;

static void *echo(void *arg)
{
	unsigned turns = 0;
	pin_to(cores[*(int *)arg]);
	for (int last = 0;;) {
		int v = atomic_load_explicit(&lines.x_there, memory_order_acquire);
		if (v < 0)
			return NULL;
		if (v == last) {
			spin_or_yield(&turns);
			continue;
		}
		atomic_store_explicit(&lines.x_back, last = v, memory_order_release);
		turns = 0;
	}
}

static void lines_once(const struct trip *trip, int n)
{
	(void)trip;
	int have = atomic_load_explicit(&lines.x_back, memory_order_relaxed);
	for (int want = have + 1; want <= have + n; want++) {
		unsigned turns = 0;
		atomic_store_explicit(&lines.x_there, want, memory_order_release);
		while (atomic_load_explicit(&lines.x_back, memory_order_acquire) != want)
			spin_or_yield(&turns);
	}
}

static void two_lines(const char *name, int nth)
{
	pthread_t p;
	lines.x_there = lines.x_back = 0;
	if (pthread_create(&p, NULL, echo, &nth) != 0)
		exit(1);
	double ns = blocks(lines_once, (struct trip){0}, false);
	atomic_store(&lines.x_there, -1);
	pthread_join(p, NULL);
	row("limit", name, "time", "ns", ns);
}

#endif
