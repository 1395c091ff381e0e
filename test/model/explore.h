/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * explore.h - runs a small concurrent program in every order, under a memory model weaker than the
 * machine's, on the production headers as they stand.
 *
 * A model program includes this first: from then on the C11 atomics are calls into the explorer.
 * Its threads are coroutines.  Before each atomic operation the explorer chooses the thread that runs; at each
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
 * Sleeping  model_block() until another thread makes its condition true; when all sleep: a failure.
 * Freed     model_free() ends the life of memory: an atomic access after it is a failure.
 * Mutants   each operation in a production header is a site.  Those that a model names in `must`
 * are weakened to relaxed, one at a time, and the checks have to notice.
 *
 * A program is a table of struct model, and explore_all() over it.  Here is what runs it all; the
 * coroutines are in threads.h, the memory in memory.h.
 */
#ifndef WEFT_MODEL_EXPLORE_H
#define WEFT_MODEL_EXPLORE_H

#include "model/memory.h"

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

/* ---- from here on the atomics are ours ---------------------------------------------------- */

/* Results that production code leaves unused are casts here; a model names only what it has. */
#pragma GCC diagnostic ignored "-Wunused-value"
#pragma GCC diagnostic ignored "-Wunused-variable"
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

static bool model_deaf; /* a broken model: membarriers do nothing */
#define weft_membarrier_private() (model_deaf ? (void)0 : model_membarrier())
#define weft_membarrier_global weft_membarrier_private

/* The production code's asserts look at the newest values and are no step of their thread. */
#undef weft_assert
#define weft_assert(cond)                                                                          \
	do {                                                                                       \
		int m_thread_ = mx.now;                                                            \
		mx.asserts = m_thread_ < 0 ? 0 : m_thread_;                                        \
		mx.now = -1;                                                                       \
		bool m_right_ = (cond);                                                            \
		mx.now = m_thread_;                                                                \
		if (!m_right_)                                                                     \
			model_fail("assertion failed: " #cond);                                    \
	} while (0)

#endif
