/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * explore.h - runs a small concurrent program in every order, under a memory model weaker than the
 * machine's, on the production headers as they stand.
 *
 * A model program includes this first: from then on the C11 atomics are calls into the explorer.
 * Its threads are coroutines.  Before each atomic operation the explorer chooses who runs; at each
 * load it chooses which of the values that the thread may still see it gets.  It goes through all
 * choices, depth first, with a bound on preemptions.
 *
 * Memory    every location keeps all its values in order.  A thread has a view: how far it has
 *           seen each location.  A release store attaches the view, an acquire load joins it; a
 *           relaxed one does not.  Read-modify-write takes the newest value and carries on what its
 *           predecessor released.  seq_cst accesses to one location see each other in order.  So a
 *           store may linger unseen (store buffers), loads may be stale (no invalidation), in any
 *           order that the labels allow; loads do not see stores that have not been made.
 * Plain     model_write and model_read are unordered data: a race is a failure.
 * Sleeping  model_block() until somebody else makes its condition true; when all sleep: a failure.
 * Freed     model_free() ends the life of memory: an atomic access after it is a failure.
 * Mutants   each operation in a production header is a site.  Those that a model names in `must`
 * are weakened to relaxed, one at a time, and the checks have to notice.
 *
 * A program is a table of struct model, and explore_all() over it.
 */
#ifndef WEFT_MODEL_EXPLORE_H
#define WEFT_MODEL_EXPLORE_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include "base/backoff.h"
#include "base/base.h"
#include "base/log.h"

enum {
	M_THREADS = 4,
	M_MUST = 8,
	M_LOCS = 40,
	M_VALUES = 48,
	M_CHOICES = 4000,
	M_SITES = 96,
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

/* ---- scheduling --------------------------------------------------------------------------------
 */

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
 * Nobody can go on: those who spin get one more turn after the last store, which has reached them
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

/* Before an operation: perhaps somebody else goes first. */
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
			model_fail("everybody sleeps: a wake-up was lost");
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

/* Sleeps while still(arg); somebody else's operation must end it. */
static inline void model_block(bool (*still)(void *), void *arg)
{
	struct m_thread *t = &mx.t[mx.now];
	t->blocked = still;
	t->blocked_arg = arg;
	while (still(arg))
		m_switch(true);
	t->blocked = NULL;
}

/* A turn of a spin loop: not scheduled again before somebody stores, and then sees it. */
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

/* ---- memory ------------------------------------------------------------------------------------
 */

static void m_join(struct m_view *a, const struct m_view *b)
{
	for (int i = 0; i < mx.locs; i++)
		if (b->seen[i] > a->seen[i])
			a->seen[i] = b->seen[i];
	for (int i = 0; i <= M_THREADS; i++)
		if (b->epoch[i] > a->epoch[i])
			a->epoch[i] = b->epoch[i];
}

static uint64_t m_raw(const void *p, unsigned size)
{
	uint64_t v = 0;
	memcpy(&v, p, size);
	return v;
}

static int m_loc_of(void *p, unsigned size)
{
	for (int i = 0; i < mx.locs; i++)
		if (mx.loc[i].addr == p) {
			if (mx.loc[i].freed)
				model_fail("memory was used after its end");
			return i;
		}
	if (mx.locs == M_LOCS) {
		model_fail("too many locations");
		return 0;
	}
	struct m_loc *l = &mx.loc[mx.locs];
	memset(l, 0, sizeof *l);
	l->addr = p;
	l->size = size;
	l->n = 1;
	l->written_by = M_THREADS;
	l->value[0].v = m_raw(p, size);
	l->value[0].by = M_THREADS;
	for (int i = 0; i < mx.threads; i++)
		mx.t[i].view.seen[mx.locs] = 0;
	return mx.locs++;
}

static bool m_acquires(memory_order mo)
{
	return mo == memory_order_acquire || mo == memory_order_acq_rel ||
	       mo == memory_order_seq_cst || mo == memory_order_consume;
}

static bool m_releases(memory_order mo)
{
	return mo == memory_order_release || mo == memory_order_acq_rel ||
	       mo == memory_order_seq_cst;
}

static memory_order m_site(const char *func, int line, int op, memory_order mo)
{
	if (mo == memory_order_relaxed)
		return mo;
	int i = 0;
	while (i < mx.sites && (mx.site[i].line != line || mx.site[i].op != op ||
				strcmp(mx.site[i].func, func) != 0))
		i++;
	if (i == mx.sites) {
		if (mx.sites == M_SITES) {
			model_fail("too many sites");
			return mo;
		}
		mx.site[mx.sites++] =
			(struct m_site){.func = func, .line = line, .op = op, .mo = mo};
	}
	return i == mx.mutant ? memory_order_relaxed : mo;
}

static void m_push_value(int i, uint64_t v, memory_order mo, const struct m_view *before)
{
	struct m_loc *l = &mx.loc[i];
	struct m_thread *t = &mx.t[mx.now];
	if (l->n == M_VALUES) {
		model_fail("too many values of one location: an endless loop?");
		return;
	}
	struct m_value *nv = &l->value[l->n];
	memset(nv, 0, sizeof *nv);
	t->view.seen[i] = (uint8_t)l->n;
	t->view.epoch[mx.now]++;
	if (before)
		nv->view = *before; /* a read-modify-write continues what it read */
	if (m_releases(mo))
		m_join(&nv->view, &t->view);
	nv->v = v;
	nv->by = mx.now;
	if (mo == memory_order_seq_cst)
		l->sc = (uint8_t)l->n;
	l->n++;
	memcpy(l->addr, &v, l->size); /* for code that looks without us */
	mx.stores++;
}

static inline uint64_t m_load(void *p, unsigned size, memory_order mo, const char *func, int line)
{
	if (mx.now < 0)
		return m_raw(p, size);
	mo = m_site(func, line, 'l', mo);
	m_switch(false);
	int i = m_loc_of(p, size);
	struct m_loc *l = &mx.loc[i];
	struct m_thread *t = &mx.t[mx.now];
	unsigned low = t->view.seen[i];
	if (mo == memory_order_seq_cst && l->sc > low)
		low = l->sc;
	unsigned k = l->n - 1 - (unsigned)m_choose((int)(l->n - low));
	t->view.seen[i] = (uint8_t)k;
	t->last_loaded = i;
	if (m_acquires(mo))
		m_join(&t->view, &l->value[k].view);
	/* One's own store may still be in the store buffer when one reads it back. */
	if (mo == memory_order_seq_cst && k > l->sc && l->value[k].by != mx.now)
		l->sc = (uint8_t)k;
	m_tell(func, line, 'l', p, l->value[k].v);
	return l->value[k].v;
}

static inline void m_store(void *p, unsigned size, uint64_t v, memory_order mo, const char *func,
			   int line)
{
	if (mx.now < 0) {
		memcpy(p, &v, size);
		return;
	}
	mo = m_site(func, line, 's', mo);
	m_switch(false);
	m_tell(func, line, 's', p, v);
	m_push_value(m_loc_of(p, size), v, mo, NULL);
}

enum { M_XCHG, M_ADD, M_SUB, M_OR, M_XOR, M_AND };

static inline uint64_t m_rmw(void *p, unsigned size, int kind, uint64_t v, memory_order mo,
			     const char *func, int line)
{
	uint64_t mask = size == 8 ? UINT64_MAX : (1ull << 8 * size) - 1;
	if (mx.now >= 0) {
		mo = m_site(func, line, 'x', mo);
		m_switch(false);
	}
	int i = mx.now >= 0 ? m_loc_of(p, size) : -1;
	uint64_t old = i >= 0 ? mx.loc[i].value[mx.loc[i].n - 1].v : m_raw(p, size);
	uint64_t neu = kind == M_XCHG  ? v
		       : kind == M_ADD ? old + v
		       : kind == M_SUB ? old - v
		       : kind == M_OR  ? old | v
		       : kind == M_XOR ? old ^ v
				       : old & v;
	neu &= mask;
	if (i < 0) {
		memcpy(p, &neu, size);
		return old;
	}
	struct m_view before = mx.loc[i].value[mx.loc[i].n - 1].view;
	m_tell(func, line, 'x', p, neu);
	if (m_acquires(mo))
		m_join(&mx.t[mx.now].view, &before);
	m_push_value(i, neu, mo, &before);
	return old;
}

static inline bool m_cas(void *p, unsigned size, void *expected, uint64_t desired, memory_order mo,
			 memory_order fail, const char *func, int line)
{
	uint64_t want = m_raw(expected, size);
	if (mx.now >= 0) {
		mo = m_site(func, line, 'c', mo);
		fail = m_site(func, line, 'f', fail);
		m_switch(false);
	}
	int i = mx.now >= 0 ? m_loc_of(p, size) : -1;
	uint64_t old = i >= 0 ? mx.loc[i].value[mx.loc[i].n - 1].v : m_raw(p, size);
	if (old != want) {
		/* Failure reads the newest here; a stale failure is a load before, seen elsewhere.
		 */
		if (i >= 0) {
			mx.t[mx.now].view.seen[i] = (uint8_t)(mx.loc[i].n - 1);
			mx.t[mx.now].last_loaded = i;
			if (m_acquires(fail))
				m_join(&mx.t[mx.now].view, &mx.loc[i].value[mx.loc[i].n - 1].view);
		}
		memcpy(expected, &old, size);
		return false;
	}
	if (i < 0) {
		memcpy(p, &desired, size);
		return true;
	}
	struct m_view before = mx.loc[i].value[mx.loc[i].n - 1].view;
	m_tell(func, line, 'c', p, desired);
	if (m_acquires(mo))
		m_join(&mx.t[mx.now].view, &before);
	m_push_value(i, desired, mo, &before);
	return true;
}

/* A system call looked at *p: later loads are no older. */
static inline void model_fresh(void *p, unsigned size)
{
	int i = m_loc_of(p, size);
	mx.t[mx.now].view.seen[i] = (uint8_t)(mx.loc[i].n - 1);
}

/* A full fence on every thread, at one moment: membarrier. */
static inline void model_membarrier(void)
{
	m_switch(false);
	for (int i = 0; i < mx.threads; i++)
		m_join(&mx.membarrier, &mx.t[i].view);
	for (int i = 0; i < mx.threads; i++)
		m_join(&mx.t[i].view, &mx.membarrier);
}

/* A seq_cst fence of one thread: what it loads after is no older than any seq_cst access before. */
static inline void model_fence(void)
{
	struct m_view *mine = &mx.t[mx.now].view;
	m_switch(false);
	for (int i = 0; i < mx.locs; i++)
		if (mx.loc[i].sc > mine->seen[i])
			mine->seen[i] = mx.loc[i].sc;
	m_join(mine, &mx.membarrier);
	m_join(&mx.membarrier, mine);
}

/* Data without atomics; a race is a failure. */
static inline void model_write(int *p, int v)
{
	int i = m_loc_of(p, sizeof *p);
	struct m_loc *l = &mx.loc[i];
	struct m_thread *t = &mx.t[mx.now];
	for (int k = 0; k < mx.threads; k++)
		if (k != mx.now && l->read_at[k] > t->view.epoch[k])
			model_fail("a write races with an earlier read");
	if (l->written_by < M_THREADS && l->written_by != mx.now &&
	    l->written_at > t->view.epoch[l->written_by])
		model_fail("two writes race");
	t->view.epoch[mx.now]++;
	l->written_by = mx.now;
	l->written_at = t->view.epoch[mx.now];
	*p = v;
}

static inline int model_read(int *p)
{
	int i = m_loc_of(p, sizeof *p);
	struct m_loc *l = &mx.loc[i];
	struct m_thread *t = &mx.t[mx.now];
	if (l->written_by < M_THREADS && l->written_by != mx.now &&
	    l->written_at > t->view.epoch[l->written_by])
		model_fail("a read races with an earlier write");
	t->view.epoch[mx.now]++;
	l->read_at[mx.now] = t->view.epoch[mx.now];
	return *p;
}

static inline void model_free(void *p, size_t n)
{
	for (int i = 0; i < mx.locs; i++)
		if (mx.loc[i].addr >= (char *)p && mx.loc[i].addr < (char *)p + n)
			mx.loc[i].freed = true;
}

/* ---- running it all
 * ------------------------------------------------------------------------------ */

struct model {
	const char *name;
	void (*setup)(void);
	void (*thread[M_THREADS])(void);
	void (*check)(void); /* after all have ended; may be NULL */
	int preemptions;
	/* Sites whose weakening has to be noticed, as "function op", op one of l s x c f. */
	const char *must[M_MUST];
	bool broken; /* some run has to go wrong: the check can see what it claims to see */
};

static void m_run_once(const struct model *mod)
{
	mx.at = 0;
	mx.locs = 0;
	mx.stores = 0;
	mx.preemptions = 0;
	mx.failure = NULL;
	mx.now = -1;
	memset(&mx.membarrier, 0, sizeof mx.membarrier);
	mod->setup();
	for (mx.threads = 0; mx.threads < M_THREADS && mod->thread[mx.threads]; mx.threads++) {
		struct m_thread *t = &mx.t[mx.threads];
		char *stack = t->stack ? t->stack : malloc(M_STACK);
		if (!stack)
			abort();
		ucontext_t ctx = t->ctx;
		memset(t, 0, sizeof *t);
		t->ctx = ctx;
		t->stack = stack;
		t->fn = mod->thread[mx.threads];
		t->last_loaded = -1;
		getcontext(&t->ctx);
		t->ctx.uc_stack.ss_sp = stack;
		t->ctx.uc_stack.ss_size = M_STACK;
		t->ctx.uc_link = &mx.home;
		makecontext(&t->ctx, m_entry, 0);
	}
	mx.now = m_choose(mx.threads);
	swapcontext(&mx.home, &mx.t[mx.now].ctx);
	mx.now = -1;
	if (!mx.failure && mod->check)
		mod->check();
	mx.runs++;
}

/* The next set of choices; false: all were tried. */
static bool m_advance(void)
{
	mx.depth = mx.at;
	while (mx.depth && mx.trail[mx.depth - 1].taken + 1 == mx.trail[mx.depth - 1].of)
		mx.depth--;
	if (!mx.depth)
		return false;
	mx.trail[mx.depth - 1].taken++;
	return true;
}

/* NULL: every run was right. */
static const char *m_explore(const struct model *mod, int preemptions, unsigned long runs_max)
{
	mx.depth = 0;
	mx.runs = 0;
	mx.preemptions_max = preemptions;
	do {
		m_run_once(mod);
		if (mx.failure)
			return mx.failure;
	} while (m_advance() && mx.runs < runs_max);
	return NULL;
}

/* Runs the model in every order within its bound; the program ends with 1 when one goes wrong. */
static inline void explore(const struct model *mod)
{
	mx.mutant = -1;
	mx.sites = 0;
	uint64_t t0 = weft_clock_ns();
	const char *why = m_explore(mod, mod->preemptions, 40000000);
	printf("%s: %lu runs, %llu ms: %s\n", mod->name, mx.runs,
	       (unsigned long long)((weft_clock_ns() - t0) / 1000000), why ? why : "right");
	if (why) {
		mx.tell = true;
		m_run_once(mod); /* the same choices again, told */
		exit(1);
	}
}

static inline void explore_broken(const struct model *mod)
{
	mx.mutant = -1;
	const char *why = m_explore(mod, mod->preemptions, 40000000);
	printf("%s: %lu runs: %s\n", mod->name, mx.runs, why ? why : "NOT noticed");
	if (!why)
		exit(1);
}

static inline bool m_named(const struct m_site *s, const char *name)
{
	char own[80];
	snprintf(own, sizeof own, "%s %c", s->func, s->op);
	return strcmp(own, name) == 0;
}

static bool m_must(const struct model *mod, const struct m_site *s)
{
	for (int k = 0; k < M_MUST && mod->must[k]; k++)
		if (m_named(s, mod->must[k]))
			return true;
	return false;
}

/*
 * After explore(): weakens orders to relaxed, one at a time; the program ends with 1 when one that
 * `must` names is not noticed.  With MODEL_ALL in the environment all the others are tried too, to
 * see what the model does not notice: orders that another one covers here, and orders that carry
 * data which the model does not watch.
 */
static inline void explore_mutants(const struct model *mod)
{
	int n = mx.sites, missed = 0;
	for (int i = 0; i < n; i++) {
		if (!m_must(mod, &mx.site[i]) && !getenv("MODEL_ALL"))
			continue;
		mx.mutant = i;
		const char *why = m_explore(mod, mod->preemptions, 2000000);
		mx.site[i].caught = why != NULL;
		printf("  %s:%d %c relaxed: %s\n", mx.site[i].func, mx.site[i].line, mx.site[i].op,
		       why ? why : "not noticed");
	}
	mx.mutant = -1;
	for (int k = 0; k < M_MUST && mod->must[k]; k++) {
		bool caught = false;
		for (int i = 0; i < n; i++)
			caught =
				caught || (m_named(&mx.site[i], mod->must[k]) && mx.site[i].caught);
		if (!caught) {
			printf("%s: weakening %s is not noticed\n", mod->name, mod->must[k]);
			missed++;
		}
	}
	if (missed)
		exit(1);
}

/* What main() returns; an error ends the program before. */
static inline int explore_all(const struct model *mod, size_t n)
{
	for (; n; n--, mod++) {
		if (mod->broken) {
			explore_broken(mod);
			continue;
		}
		explore(mod);
		if (mod->must[0])
			explore_mutants(mod);
	}
	return 0;
}

/* ---- from here on the atomics are ours
 * ----------------------------------------------------------- */

/* Results that production code leaves unused are casts here; a model names only what it has. */
#pragma GCC diagnostic ignored "-Wunused-value"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_exchange_explicit
#undef atomic_compare_exchange_strong_explicit
#undef atomic_compare_exchange_weak_explicit
#undef atomic_fetch_add_explicit
#undef atomic_fetch_sub_explicit
#undef atomic_fetch_or_explicit
#undef atomic_fetch_xor_explicit
#undef atomic_fetch_and_explicit
#undef atomic_signal_fence
#undef atomic_thread_fence

#define M_T(p) __typeof__((void)0, *(p))
#define M_P(p) ((void *)(uintptr_t)(p))
#define atomic_load_explicit(p, mo) ((M_T(p))m_load(M_P(p), sizeof *(p), (mo), __func__, __LINE__))
#define atomic_store_explicit(p, v, mo)                                                            \
	m_store(M_P(p), sizeof *(p), (uint64_t)(uintptr_t)(v), (mo), __func__, __LINE__)
#define M_RMW(kind, p, v, mo)                                                                      \
	((M_T(p))m_rmw(M_P(p), sizeof *(p), kind, (uint64_t)(uintptr_t)(v), (mo), __func__,        \
		       __LINE__))
#define atomic_exchange_explicit(p, v, mo) M_RMW(M_XCHG, p, v, mo)
#define atomic_fetch_add_explicit(p, v, mo) M_RMW(M_ADD, p, v, mo)
#define atomic_fetch_sub_explicit(p, v, mo) M_RMW(M_SUB, p, v, mo)
#define atomic_fetch_or_explicit(p, v, mo) M_RMW(M_OR, p, v, mo)
#define atomic_fetch_xor_explicit(p, v, mo) M_RMW(M_XOR, p, v, mo)
#define atomic_fetch_and_explicit(p, v, mo) M_RMW(M_AND, p, v, mo)
#define atomic_compare_exchange_strong_explicit(p, e, d, mo, fail)                                 \
	m_cas(M_P(p), sizeof *(p), (e), (uint64_t)(uintptr_t)(d), (mo), (fail), __func__, __LINE__)
#define atomic_compare_exchange_weak_explicit atomic_compare_exchange_strong_explicit
#define atomic_signal_fence(mo) ((void)0)
#define atomic_thread_fence(mo) model_fence()
#define weft_cpu_relax model_relax
#define sched_yield m_yield
#define weft_backoff(turns_p) ((void)(turns_p), model_relax())

#endif
