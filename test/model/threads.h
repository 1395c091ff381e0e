/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * threads.h - the explorer's state, and its threads: coroutines, of which a choice says before each
 * operation which thread runs.  Included by memory.h; see explore.h.
 */
#ifndef WEFT_MODEL_THREADS_H
#define WEFT_MODEL_THREADS_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include "base/assert.h"
#include "base/backoff.h"
#include "base/base.h"
#include "base/log.h"
#include "base/membarrier.h"

enum {
	M_THREADS = 4,
	M_MUST = 8,
	M_LOCS = 48,
	M_VALUES = 48,
	M_CHOICES = 4000,
	M_SITES = 192,
	M_STACK = 64 * 1024,
};

struct m_view {
	uint8_t seen[M_LOCS];          /* newest value known of each location */
	uint16_t epoch[M_THREADS + 1]; /* what was done by each thread before */
};

struct m_value {
	uint64_t v;
	struct m_view view; /* what it releases */
	int by;             /* M_THREADS: there at the start */
};

struct m_loc {
	char *addr;
	unsigned size, n;
	struct m_value value[M_VALUES];
	uint8_t sc; /* newest seq_cst access */
	bool freed;
	uint16_t read_at[M_THREADS + 1], written_at;
	int written_by;
};

struct m_thread {
	ucontext_t ctx;
	char *stack;
	void (*fn)(void);
	bool ended, spinning;
	bool (*blocked)(void *arg); /* still blocked? */
	void *blocked_arg;
	struct m_view view;
	int last_loaded;
	unsigned stores_at_spin, last_turn; /* 0: none; else the stores then, plus 1 */
};

struct m_choice {
	uint16_t taken, of;
};

struct m_site {
	const char *func;
	int line, op; /* op: 'l' load 's' store 'x' exchange 'c' compare-exchange */
	memory_order mo;
	bool caught;
};

static struct {
	struct m_thread t[M_THREADS];
	int threads, now;
	int asserts; /* the thread whose assert is looked at, while now is -1 */
	struct m_loc loc[M_LOCS];
	int locs;
	struct m_view membarrier; /* what seq_cst fences have made common */
	struct m_choice trail[M_CHOICES];
	int at, depth;
	int preemptions, preemptions_max;
	unsigned stores;
	ucontext_t home;
	const char *failure;
	char failure_text[200];
	struct m_site site[M_SITES];
	bool tell;         /* print each step of the run that failed */
	int sites, mutant; /* index of the weakened site, or -1 */
	unsigned long runs;
} mx;

static void model_fail(const char *what)
{
	if (!mx.failure) {
		snprintf(mx.failure_text, sizeof mx.failure_text, "%s (thread %d)", what, mx.now);
		mx.failure = mx.failure_text;
	}
	if (mx.now >= 0 && mx.now < mx.threads)
		swapcontext(&mx.t[mx.now].ctx, &mx.home); /* never comes back in this run */
}

#define MODEL_CHECK(cond) ((cond) ? (void)0 : model_fail(#cond))

/* One of n; all are tried in the end. */
static int m_choose(int n)
{
	if (n <= 1)
		return 0;
	if (mx.at >= M_CHOICES) {
		model_fail("a run is too long: an endless loop?");
		return 0;
	}
	if (mx.at == mx.depth) {
		mx.trail[mx.at] = (struct m_choice){.taken = 0, .of = (uint16_t)n};
		mx.depth++;
	}
	return mx.trail[mx.at++].taken;
}

static void m_tell(const char *func, int line, int op, const void *p, uint64_t v)
{
	if (mx.tell)
		printf("    thread %d %s:%d %c %p = %#llx\n", mx.now, func, line, op, p,
		       (unsigned long long)v);
}

/* ---- scheduling --------------------------------------------------------------------------- */

static bool m_enabled(int i)
{
	struct m_thread *t = &mx.t[i];
	if (t->ended)
		return false;
	if (t->blocked)
		return !t->blocked(t->blocked_arg);
	return !t->spinning || t->stores_at_spin != mx.stores;
}

/*
 * No thread can go on: those that spin get one more turn after the last store, which has reached them
 * by then.  -1: they have had it.
 */
static int m_late(void)
{
	for (int i = 0; i < mx.threads; i++) {
		struct m_thread *t = &mx.t[i];
		if (t->ended || t->blocked || !t->spinning || t->last_turn == mx.stores + 1)
			continue;
		t->last_turn = mx.stores + 1;
		t->spinning = false;
		for (int k = 0; k < mx.locs; k++)
			t->view.seen[k] = (uint8_t)(mx.loc[k].n - 1);
		return i;
	}
	return -1;
}

/* Before an operation: perhaps another thread goes first. */
static void m_switch(bool must)
{
	int list[M_THREADS], n = 0, me = mx.now;
	bool can_stay = m_enabled(me) && !must;
	if (m_enabled(me) && can_stay)
		list[n++] = me;
	if (!can_stay || mx.preemptions < mx.preemptions_max)
		for (int i = 0; i < mx.threads; i++)
			if (i != me && m_enabled(i))
				list[n++] = i;
	if (!n && m_enabled(me))
		list[n++] = me;
	int late = n ? -1 : m_late();
	if (late >= 0)
		list[n++] = late;
	if (!n) {
		mx.now = me;
		bool all_ended = true;
		for (int i = 0; i < mx.threads; i++)
			all_ended = all_ended && mx.t[i].ended;
		if (!all_ended)
			model_fail("all threads sleep: a wake-up was lost");
		swapcontext(&mx.t[me].ctx, &mx.home);
		return;
	}
	int next = list[m_choose(n)];
	if (next == me) {
		mx.t[me].spinning = false;
		return;
	}
	if (can_stay)
		mx.preemptions++;
	mx.t[next].spinning = false;
	mx.now = next;
	swapcontext(&mx.t[me].ctx, &mx.t[next].ctx);
}

static void m_entry(void)
{
	mx.t[mx.now].fn();
	mx.t[mx.now].ended = true;
	m_switch(true);
}

/* Sleeps while still(arg); another thread's operation must end it. */
static inline void model_block(bool (*still)(void *), void *arg)
{
	struct m_thread *t = &mx.t[mx.now];
	t->blocked = still;
	t->blocked_arg = arg;
	while (still(arg))
		m_switch(true);
	t->blocked = NULL;
}

/* A turn of a spin loop: not scheduled again before another thread stores, and then sees it. */
static inline void model_relax(void)
{
	struct m_thread *t = &mx.t[mx.now];
	if (t->last_loaded >= 0) {
		uint8_t newest = (uint8_t)(mx.loc[t->last_loaded].n - 1);
		bool stale = t->view.seen[t->last_loaded] != newest;
		t->view.seen[t->last_loaded] = newest;
		if (stale)
			return; /* what it waits for may be there already */
	}
	t->spinning = true;
	t->stores_at_spin = mx.stores;
	m_switch(true);
}

static inline int m_yield(void)
{
	model_relax();
	return 0;
}

#endif
