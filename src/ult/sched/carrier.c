/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * carrier.c - carriers, the kernel threads that run workers; start and stop; calls that block one.
 *
 * Normally carrier i runs worker i.  Between weft_ult_blocking_begin and _end a thread keeps its
 * carrier and gives up its worker, which another carrier runs on; at the end the thread becomes
 * ready at home like any other, and its carrier waits for the next such case.
 */
#include "base/assert.h"
#include "ult/ult_int.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "base/live.h"
#include "base/log.h"
#include "base/settings.h"
#include "ult/watch.h"
#include "wait/stack.h"

#define CARRIER_STACK (512u << 10)
#define COMPLAIN_MS 10000 /* after which stop says for which threads it waits */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* start, stop, spares */
static struct weft_ult_carrier *spares;                  /* under lock */
static struct weft_ult_carrier *carriers;                /* under lock: all, by next_all */
static int share_index, share_of;
static void *(*cxx_globals)(void); /* the C++ runtime's, when there is one */

void weft_ult_share_set(int index, int of)
{
	share_index = index;
	share_of = of;
}

/* ---- a carrier ------------------------------------------------------------------------------- */

void weft_ult_bind(struct weft_ult_worker *w)
{
	char name[16];
	snprintf(name, sizeof name, "weft-ult-%d", w->id);
	(void)prctl(PR_SET_NAME, name);
	if (w->cpu >= 0) {
		cpu_set_t set;
		CPU_ZERO(&set);
		CPU_SET(w->cpu, &set);
		if (sched_setaffinity(0, sizeof set, &set))
			weft_debug("worker %d could not be bound to cpu %d", w->id, w->cpu);
	}
}

static void note_stack(struct weft_ult_carrier *c)
{
	pthread_attr_t attr;
	void *low = NULL;
	if (pthread_getattr_np(pthread_self(), &attr) == 0) {
		(void)pthread_attr_getstack(&attr, &low, &c->stack_size);
		c->stack = low;
		pthread_attr_destroy(&attr);
	}
}

static void adopt_worker(struct weft_ult_carrier *c, struct weft_ult_worker *w)
{
	weft_assert(!w->current && !c->blocking);
	w->carrier = c;
	w->errno_p = c->errno_p;
	w->cxx_p = c->cxx_p;
	/* Release: the parker, to the waker. */
	atomic_store_explicit(&w->x_parker, c->parker, memory_order_release);
	weft_ult_worker_self = w;
	weft_ult_bind(w);
}

/* A thread has kept this carrier, and has come back without a worker. */
static void end_blocking(struct weft_ult_carrier *c)
{
	struct weft_ult *t = c->blocking;
	weft_assert(t && !weft_ult_worker_here());
	c->blocking = NULL;
	pthread_mutex_lock(&lock);
	atomic_store_explicit(&c->x_worker, NULL, memory_order_relaxed);
	c->next = spares;
	spares = c;
	pthread_mutex_unlock(&lock);
	weft_ult_trace(WEFT_TRACE_ULT_WAKE, t);
	weft_ult_make_ready(t); /* its context is stored: we are on our own stack */
	/* A thread that sees us counted sees that t is ready. */
	atomic_fetch_add_explicit(&weft_ult_all.x_carriers, 1, memory_order_acq_rel);
}

static void *carrier_main(void *arg)
{
	struct weft_ult_carrier *c = arg;
	weft_ult_carrier_self = c;
	c->parker = weft_wait_parker_self();
	c->errno_p = &errno;
	c->cxx_p = cxx_globals ? cxx_globals() : NULL;
	note_stack(c);
#ifdef WEFT_TSAN
	c->fiber = __tsan_get_current_fiber();
#endif
	weft_ult_fault_stack(true);
	/* HERE -> join_carriers.  seq_cst: before our look at x_stop; the stopper either sees
	 * the parker or is seen. */
	atomic_store_explicit(&c->x_parker, c->parker, memory_order_seq_cst);
	/* By itself, so that no count is higher than the kernel's: see deadlock.c. */
	atomic_fetch_add_explicit(&weft_ult_all.x_carriers, 1, memory_order_acq_rel);
	for (;;) { /* ends: stop */
		struct weft_ult_worker *w;
		/* CALL <- carrier_call, start.  Carries: the worker as its last carrier left it. */
		while (!(w = atomic_load_explicit(&c->x_worker, memory_order_acquire)) &&
		       !atomic_load_explicit(&weft_ult_all.x_stop, memory_order_seq_cst))
			(void)weft_wait_park(c->parker, WEFT_NEVER);
		if (!w)
			break;
		adopt_worker(c, w);
		weft_ult_work(w);
		if (!c->blocking)
			break;
		end_blocking(c);
	}
	/* GONE -> CARRIERS (deadlock.c).  Carries: that this thread waits for nothing any more.
	 * Without it, one that has left could be counted as one that sleeps. */
	atomic_fetch_sub_explicit(&weft_ult_all.x_carriers, 1, memory_order_acq_rel);
	weft_ult_worker_self = NULL;
	weft_ult_fault_stack(false);
	return NULL;
}

static weft_err carrier_new(struct weft_ult_worker *w)
{
	struct weft_ult_carrier *c = calloc(1, sizeof *c);
	pthread_attr_t attr;
	sigset_t most, old;
	if (!c)
		return WEFT_ERR_NOMEM;
	if (pthread_attr_init(&attr)) {
		free(c);
		return WEFT_ERR_NOMEM;
	}
	(void)pthread_attr_setstacksize(&attr, CARRIER_STACK);
	/* Signals of the application go to threads that expect them; what a thread itself does
	 * wrong must reach it. */
	sigfillset(&most);
	sigdelset(&most, SIGSEGV);
	sigdelset(&most, SIGBUS);
	sigdelset(&most, SIGFPE);
	sigdelset(&most, SIGILL);
	sigdelset(&most, SIGTRAP);
	sigdelset(&most, SIGABRT);
	pthread_sigmask(SIG_SETMASK, &most, &old);
	atomic_store_explicit(&c->x_worker, w, memory_order_relaxed);
	int failed = pthread_create(&c->thread, &attr, carrier_main, c);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (failed) {
		weft_error("no kernel thread for user-level threads: %s", strerror(failed));
		free(c);
		return WEFT_ERR_LIMIT;
	}
	c->next_all = carriers;
	carriers = c;
	return WEFT_OK;
}

weft_err weft_ult_carrier_call(struct weft_ult_worker *w)
{
	weft_err err = WEFT_OK;
	pthread_mutex_lock(&lock);
	struct weft_ult_carrier *c = spares;
	if (c) {
		spares = c->next;
		/* CALL -> carry. */
		atomic_store_explicit(&c->x_worker, w, memory_order_release);
		weft_wait_unpark(c->parker);
	} else {
		err = carrier_new(w);
	}
	pthread_mutex_unlock(&lock);
	return err;
}

/* ---- calls that block the kernel thread ------------------------------------------------------ */

__attribute__((noinline)) void weft_ult_blocking_begin(void)
{
	struct weft_ult_worker *w = weft_ult_worker_here();
	if (!w || !w->current || w->on_own_stack)
		return;
	struct weft_ult_carrier *c = w->carrier;
	weft_assert(c == weft_ult_carrier_self && !c->blocking);
	c->blocking = w->current;
	weft_ult_trace(WEFT_TRACE_ULT_KEEP, c->blocking);
	/* Relaxed: it leaves its worker, as at a switch; a count with one writer. */
	atomic_store_explicit(&w->x_switches,
			      atomic_load_explicit(&w->x_switches, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	/* Before its worker can be seen asleep: this thread is woken from outside. */
	atomic_fetch_sub_explicit(&weft_ult_all.x_carriers, 1, memory_order_acq_rel);
	c->sp = w->home_sp;
	w->current = NULL;
	w->prev = NULL;
	w->after = WEFT_ULT_AFTER_NONE;
	weft_ult_worker_self = NULL;
	if (weft_ult_carrier_call(w)) {
		/* No other carrier can run it: then the other threads wait. */
		weft_ult_worker_self = w;
		w->current = c->blocking;
		c->blocking = NULL;
		atomic_fetch_add_explicit(&weft_ult_all.x_carriers, 1, memory_order_acq_rel);
	}
}

__attribute__((noinline)) void weft_ult_blocking_end(void)
{
	struct weft_ult_carrier *c = weft_ult_carrier_self;
	struct weft_ult *me = c ? c->blocking : NULL;
	if (!me)
		return;
	me->err = errno;
	if (c->cxx_p)
		memcpy(me->cxx, c->cxx_p, sizeof me->cxx);
#ifdef WEFT_TSAN
	__tsan_switch_to_fiber(c->fiber, 0);
#endif
#ifdef WEFT_ASAN
	void *fake = NULL;
	__sanitizer_start_switch_fiber(&fake, c->stack, c->stack_size);
#endif
	struct weft_ult_worker *w = weft_ult_ctx_swap(&me->sp, c->sp, NULL);
#ifdef WEFT_ASAN
	__sanitizer_finish_switch_fiber(fake, NULL, NULL);
#endif
	weft_ult_arrive(w);
	*w->errno_p = me->err;
	if (w->cxx_p)
		memcpy(w->cxx_p, me->cxx, sizeof me->cxx);
}

/* ---- start and stop -------------------------------------------------------------------------- */

/* The cores that the workers share out: our part of the process's.  *alone_p: no other process uses
 * them. */
static int own_cpus(int *cpu, int most, bool *alone_p)
{
	cpu_set_t set;
	int n = 0, all = 0, part = 0;
	*alone_p = false;
	if (sched_getaffinity(0, sizeof set, &set))
		return 0;
	all = CPU_COUNT(&set);
	/* More processes than cores: one core each, which is not theirs alone. */
	*alone_p = share_of <= all;
	bool shared = share_of > 1 && *alone_p;
	for (int i = 0; i < CPU_SETSIZE && n < most; i++)
		if (CPU_ISSET(i, &set)) {
			if (!shared || (int64_t)part * share_of / all == share_index)
				cpu[n++] = i;
			part++;
		}
	return *alone_p || n < 1 ? n : 1;
}

static struct weft_ult_worker *worker_new(int id, int cpu, int count)
{
	struct weft_ult_worker *w = aligned_alloc(WEFT_CACHELINE, sizeof *w);
	if (!w)
		return NULL;
	memset(w, 0, sizeof *w);
	w->seen = calloc((size_t)count, sizeof *w->seen);
	w->near = calloc((size_t)count, sizeof *w->near);
	if (!w->seen || !w->near) {
		free(w->seen);
		free(w->near);
		free(w);
		return NULL;
	}
	w->id = id;
	w->cpu = cpu;
	weft_wait_owner_init(&w->lock, WEFT_OWNER_FIXED);
	w->fence = !weft_membarrier_private_register();
	atomic_store_explicit(&w->x_next_timer, WEFT_NEVER, memory_order_relaxed);
	pthread_mutex_init(&w->pool_lock, NULL);
	pthread_mutex_init(&w->timer_lock, NULL);
	return w;
}

static struct weft_parker *self_parker(void)
{
	struct weft_ult_worker *w = weft_ult_worker_self;
	return w && w->current && !w->on_own_stack ? &w->current->parker : NULL;
}

static int workers_wanted(int given, int cpus)
{
	if (given <= 0)
		given = (int)weft_setting_int(WEFT_SET_ULT_WORKERS);
	if (given <= 0)
		given = cpus > 0 ? cpus : 1;
	return given > WEFT_ULT_WORKERS_MAX ? WEFT_ULT_WORKERS_MAX : given;
}

static weft_err start_locked(int given)
{
	weft_assert_held(weft_mutex, &lock);
	weft_trace_start();
	bool alone;
	int cpu[WEFT_ULT_WORKERS_MAX], cpus = own_cpus(cpu, WEFT_ULT_WORKERS_MAX, &alone);
	int n = workers_wanted(given, cpus), i;
	bool bind = alone && n <= cpus && weft_setting_bool(WEFT_SET_ULT_BIND);
	cxx_globals = (void *(*)(void))dlsym(RTLD_DEFAULT, "__cxa_get_globals");
	weft_ult_fault_install();
	weft_wait_parker_set_self_hook(self_parker);
	/* STACKS -> HERE (wait/stack.h). */
	atomic_store_explicit(&weft_wait_x_stacks, &weft_ult_stacks, memory_order_release);
	atomic_store_explicit(&weft_ult_all.x_stop, false, memory_order_relaxed);
	atomic_store_explicit(&weft_ult_all.x_steal, weft_setting_bool(WEFT_SET_ULT_STEAL),
			      memory_order_relaxed);
	for (i = 0; i < n; i++) {
		/* Workers of an earlier start keep their slots: late unparks may touch them. */
		struct weft_ult_worker *w = weft_ult_all.worker[i];
		if (!w)
			w = weft_ult_all.worker[i] = worker_new(i, -1, WEFT_ULT_WORKERS_MAX);
		if (!w)
			return WEFT_ERR_NOMEM;
		w->cpu = bind ? cpu[i] : -1;
	}
	for (i = 0; !bind && i < n; i++)
		cpu[i] = -1;
	for (i = 0; i < n; i++)
		weft_ult_near(cpu, n, i, weft_ult_all.worker[i]->near);
	weft_live_tell(WEFT_ULT_LIVE, WEFT_ULT_LAYOUT, &weft_ult_all);
	/* COUNT -> KNOWN (weft_ult_count).  Carries: the workers. */
	atomic_store_explicit(&weft_ult_all.x_count, n, memory_order_release);
	for (i = 0; i < n; i++) {
		weft_err err = carrier_new(weft_ult_all.worker[i]);
		if (!err)
			continue;
		if (i == 0) {
			atomic_store_explicit(&weft_ult_all.x_count, 0, memory_order_release);
			return err;
		}
		weft_warn("%d workers for user-level threads instead of %d", i, n);
		/* Workers that have begun may look at all: those without a carrier have no
		 * threads. */
		atomic_store_explicit(&weft_ult_all.x_count, i, memory_order_release);
		break;
	}
	return WEFT_OK;
}

weft_err weft_ult_start(int workers)
{
	weft_err err = WEFT_ERR_STATE;
	pthread_mutex_lock(&lock);
	if (!atomic_load_explicit(&weft_ult_all.x_count, memory_order_relaxed))
		err = start_locked(workers);
	pthread_mutex_unlock(&lock);
	return err;
}

uint64_t weft_ult_alive(void)
{
	uint64_t n = 0;
	for (int i = 0; i < WEFT_ULT_WORKERS_MAX && weft_ult_all.worker[i]; i++) {
		struct weft_ult_worker *w = weft_ult_all.worker[i];
		n += atomic_load_explicit(&w->x_created, memory_order_relaxed) +
		     atomic_load_explicit(&w->x_created_out, memory_order_relaxed) -
		     atomic_load_explicit(&w->x_ended, memory_order_relaxed);
	}
	return n;
}

static void join_carriers(void)
{
	for (struct weft_ult_carrier *c = carriers; c; c = c->next_all) {
		/* A carrier that has not yet begun looks at x_stop before it sleeps. */
		struct weft_parker *p = atomic_load_explicit(&c->x_parker, memory_order_seq_cst);
		if (p)
			weft_wait_unpark(p);
	}
	while (carriers) { /* ends: each turn ends one */
		struct weft_ult_carrier *c = carriers;
		carriers = c->next_all;
		pthread_join(c->thread, NULL);
		free(c);
	}
	spares = NULL;
}

/* Waits for the last thread; reports the threads that are left when that takes long. */
static void wait_for_all(void)
{
	struct timespec ms = {.tv_nsec = 1000000};
	struct weft_ult_plain p;
	weft_ult_plain_begin(&p, NULL);
	for (unsigned turns = 1; weft_ult_alive(); turns++) { /* ends: with the last thread */
		nanosleep(&ms, NULL);
		if (turns == COMPLAIN_MS) {
			weft_warn("weft_ult_stop waits for %llu threads:",
				  (unsigned long long)weft_ult_alive());
			weft_ult_report(stderr);
		}
	}
	weft_ult_plain_end(&p);
}

weft_err weft_ult_stop(void)
{
	if (weft_ult_worker_here() || weft_ult_carrier_self) {
		weft_error("weft_ult_stop: called by a user-level thread");
		return WEFT_ERR_STATE;
	}
	if (!weft_ult_count())
		return WEFT_ERR_STATE;
	wait_for_all();
	pthread_mutex_lock(&lock);
	weft_err err = WEFT_ERR_STATE;
	if (atomic_load_explicit(&weft_ult_all.x_count, memory_order_relaxed)) {
		/* STOP -> END.  seq_cst: before the look of join_carriers at parkers, see carrier_main. */
		atomic_store_explicit(&weft_ult_all.x_stop, true, memory_order_seq_cst);
		join_carriers();
		weft_ult_check();
		atomic_store_explicit(&weft_ult_all.x_count, 0, memory_order_release);
		err = WEFT_OK;
	}
	pthread_mutex_unlock(&lock);
	return err;
}
