/* SPDX-License-Identifier: BSD-3-Clause */
/* A signal wakes one sleeping worker: the thread's own, or one other where that one computes. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <weft/ult.h>
#include "check.h"
#include "ult/ult_int.h"

#define WORKERS 4
#define SIGNALS (WEFT_ULT_SANITIZED ? 40 : 200)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static struct sleeper {
	struct weft_parker parker;
	unsigned calls, heard; /* under lock */
	unsigned left;         /* under lock: how often it got up */
	bool asleep;           /* under lock: and looks at nothing until it is called */
} sleeper[WORKERS];

static void is_woken(struct weft_parker *p)
{
	pthread_mutex_lock(&lock);
	weft_container_of(p, struct sleeper, parker)->calls++;
	pthread_cond_broadcast(&moved);
	pthread_mutex_unlock(&lock);
}

static const struct weft_parker_ops counting = {.name = "counting", .unpark = is_woken};

/* The idle hook: each wake-up of a worker is counted, and nothing else gets it up. */
static void sleeps(bool (*ready)(void *arg), void *arg, uint64_t deadline_ns)
{
	struct weft_ult_worker *w = arg;
	struct sleeper *s = &sleeper[w->id];
	if (deadline_ns != WEFT_NEVER) { /* a nap */
		sched_yield();
		return;
	}
	atomic_store_explicit(&w->x_parker, &s->parker, memory_order_seq_cst);
	while (!ready(arg)) { /* ends: when called */
		pthread_mutex_lock(&lock);
		s->asleep = true;
		pthread_cond_broadcast(&moved);
		while (s->calls == s->heard)
			pthread_cond_wait(&moved, &lock);
		s->asleep = false;
		s->heard = s->calls;
		pthread_mutex_unlock(&lock);
	}
	atomic_store_explicit(&w->x_parker, w->carrier->parker, memory_order_seq_cst);
	pthread_mutex_lock(&lock);
	s->left++;
	pthread_mutex_unlock(&lock);
}

static void looks(void)
{
}

static const struct weft_ult_hooks hooks = {.idle = sleeps, .tick = looks};

/* All workers but one (-1: all) sleep; the sums of wake-ups of each go to calls[]. */
static void all_sleep(int but, unsigned *calls)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < WORKERS; i++) {
		while (i != but && !(sleeper[i].asleep && sleeper[i].calls == sleeper[i].heard)) {
			pthread_cond_wait(&moved, &lock);
			i = 0; /* a worker seen before may be up again */
		}
		calls[i] = sleeper[i].calls;
	}
	pthread_mutex_unlock(&lock);
}

static _Atomic bool x_over;
static _Atomic int x_computing;
static _Atomic unsigned x_runs;

static void *is_signalled(void *arg)
{
	while (!atomic_load(&x_over)) {
		weft_ult_park();
		atomic_fetch_add(&x_runs, 1);
	}
	return arg;
}

static void *computes(void *arg)
{
	atomic_store(&x_computing, 1);
	while (!atomic_load(&x_over))
		sched_yield(); /* the kernel's: its worker is not let go */
	return arg;
}

static unsigned difference(const unsigned *a, const unsigned *b)
{
	unsigned sum = 0;
	for (int i = 0; i < WORKERS; i++)
		sum += b[i] - a[i];
	return sum;
}

/* Signals t and waits until it has run and all sleep again. */
static void signal_once(weft_ult *t, int but, unsigned *before, unsigned *after)
{
	unsigned runs = atomic_load(&x_runs);
	all_sleep(but, before);
	weft_ult_unpark(t);
	while (atomic_load(&x_runs) == runs) /* ends: it runs */
		sched_yield();
	all_sleep(but, after);
}

static void threads_begin(weft_ult **t, int but, bool pinned)
{
	struct weft_ult_attr a = WEFT_ULT_ATTR_INIT;
	weft_ult_hooks_set(&hooks);
	for (int i = 0; i < WORKERS; i++) {
		if (i == but)
			continue;
		a.worker = pinned ? i : WEFT_ULT_ANY_WORKER;
		CHECK_EQ(weft_ult_create(&t[i], &a, is_signalled, NULL), WEFT_OK);
	}
}

static void threads_end(weft_ult **t, int n)
{
	atomic_store(&x_over, true);
	for (int i = 0; i < n; i++)
		weft_ult_unpark(t[i]);
	for (int i = 0; i < n; i++)
		CHECK_EQ(weft_ult_join(t[i], NULL), WEFT_OK);
	weft_ult_hooks_set(NULL);
	CHECK_EQ(weft_ult_stop(), WEFT_OK);
	atomic_store(&x_over, false);
	atomic_store(&x_runs, 0);
}

/* Of four that sleep the thread's own is woken, once, pinned or not. */
static void wakes_home(bool pinned)
{
	weft_ult *t[WORKERS];
	unsigned before[WORKERS], after[WORKERS];
	CHECK_EQ(weft_ult_start(WORKERS), WEFT_OK);
	if (weft_ult_all.worker[0]->fence)
		weft_ult_steal_set(false); /* no membarrier: an idle worker only naps */
	threads_begin(t, -1, pinned);
	for (int i = 0; i < SIGNALS; i++) {
		int k = i * 7 % WORKERS, home = t[k]->home->id;
		signal_once(t[k], -1, before, after);
		CHECK_EQ(difference(before, after), 1);
		CHECK_EQ(after[home] - before[home], 1);
	}
	threads_end(t, WORKERS);
}

/* Its own computes: one of the three others is woken, and takes it. */
static void wakes_a_thief(void)
{
	struct weft_ult_attr a = WEFT_ULT_ATTR_INIT;
	weft_ult *t[2], *first;
	unsigned before[WORKERS] = {0}, after[WORKERS] = {0};
	CHECK_EQ(weft_ult_start(WORKERS), WEFT_OK);
	if (weft_ult_all.worker[0]->fence) {
		CHECK_EQ(weft_ult_stop(), WEFT_OK);
		return;
	}
	weft_ult_hooks_set(&hooks);
	CHECK_EQ(weft_ult_create(&t[0], NULL, is_signalled, NULL), WEFT_OK);
	first = t[0];
	int home = first->home->id;
	a.worker = home;
	CHECK_EQ(weft_ult_create(&t[1], &a, computes, NULL), WEFT_OK);
	while (!atomic_load(&x_computing)) /* ends: it runs */
		sched_yield();
	for (int i = 0; i < SIGNALS; i++) {
		signal_once(first, home, before, after);
		CHECK_EQ(difference(before, after), 1);
		CHECK_EQ(after[home], before[home]);
	}
	threads_end(t, 2);
}

int main(void)
{
	for (int i = 0; i < WORKERS; i++)
		weft_wait_parker_init(&sleeper[i].parker, &counting, NULL);
	wakes_home(true);
	wakes_home(false);
	wakes_a_thief();
	return 0;
}
