/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * deadlock.c - finds out that every thread waits and none is left to wake another.
 *
 * It is looked for when a worker, or a plain thread in weft_ult_join and the like, has slept for a
 * second, two, four and so on.  Without an engine only: with one, messages may come.
 *
 * Why it is never a false alarm.  A user-level thread could be woken by a plain thread, a
 * user-level thread, or a clock.
 * 1. The kernel's threads of this process are counted.  All are carriers, or plain threads that
 *    wait in here and whose parkers say that no thread has woken them.  So from now on only a
 *    user-level thread can set one of them going; any other kernel thread, a blocking call
 *    included, ends the search.
 * 2. Then each worker must be asleep with nothing ready, nothing signalled and no clock set.
 * 3. Both once more: a worker that was busy with a thread that had just left, or ended, may have
 *    made a thread ready whose worker had been looked at before.  It slept when it was looked at
 *    itself, so the second look shows that thread.
 * 4. Of what was seen at different times, nothing may have changed between: a thread that ran
 *    after 1 either still runs when its worker is looked at, or has left it, and each leaving is
 *    counted, as is each plain thread's coming and going.  The counts must be those of before 1.
 *    Then a thread must be alive: all that have ended are counted before their worker sleeps.
 * A membarrier before 1 makes visible what ended before.
 */
#include "base/assert.h"
#include "ult/ult_int.h"

#include <dirent.h>
#include <pthread.h>
#include "base/log.h"
#include "ult/watch.h"

uint64_t weft_ult_look_ns = 1000000000;
_Atomic uint64_t weft_ult_x_deadlocks;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct weft_ult_plain *plains; /* under lock: plain threads that wait */
static uint64_t moves;                /* under lock: their comings and goings */
static uint64_t reported;             /* under lock: at which counts it was said last */

static uint64_t counts_locked(int n)
{
	weft_assert_held(weft_mutex, &lock);
	uint64_t sum = moves + 1;
	for (int i = 0; i < n; i++)
		sum += atomic_load_explicit(&weft_ult_all.worker[i]->x_switches,
					    memory_order_acquire);
	return sum;
}

/* The kernel's threads of this process; -1: unknown. */
static int kernel_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	int n = 0;
	if (!d)
		return -1;
	for (struct dirent *e; (e = readdir(d));) /* ends: the directory does */
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

/* 1.  me: the caller's entry, when it is a plain thread. */
static bool plains_wait_locked(const struct weft_ult_plain *me)
{
	weft_assert_held(weft_mutex, &lock);
	/* CARRIERS <- GONE, and its counterpart in carrier_main (carrier.c).  Carries: the ends of threads
	 * before. */
	int n = atomic_load_explicit(&weft_ult_all.x_carriers, memory_order_acquire);
	for (struct weft_ult_plain *p = plains; p; p = p->next)
		n++;
	if (kernel_threads() != n)
		return false;
	for (struct weft_ult_plain *p = plains; p; p = p->next)
		/* Acquire: what its waker did before. */
		if (p != me && p->parker &&
		    atomic_load_explicit(&p->parker->x_word, memory_order_acquire) !=
			    WEFT_PARKER_PARKED)
			return false;
	return true;
}

/* 2.  me: the caller, when it is a worker, which sleeps as far as this is concerned. */
static bool workers_sleep(const struct weft_ult_worker *me, int n)
{
	/* DEAD <- IDLE (say_idle), FIRST (make_ready_there).  seq_cst, all: a worker that was seen
	 * asleep has nothing that was called before; without it, a call and the sleep before could
	 * be seen the other way round, and a live program be reported. */
	for (int i = 0; i < n; i++) {
		struct weft_ult_worker *w = weft_ult_all.worker[i];
		if ((w != me && atomic_load_explicit(&w->x_idle, memory_order_seq_cst) !=
					WEFT_ULT_IDLE_SLEEPS) ||
		    weft_ult_load(w) || weft_ult_ready_signalled(&w->ready) ||
		    atomic_load_explicit(&w->x_first, memory_order_seq_cst) ||
		    atomic_load_explicit(&w->x_next_timer, memory_order_seq_cst) != WEFT_NEVER)
			return false;
	}
	return true;
}

void weft_ult_deadlock_look(const struct weft_ult_worker *w, const struct weft_ult_plain *me)
{
	int n = weft_ult_count();
	uint64_t alive = 0;
	if (!n || weft_ult_hooked())
		return;
	pthread_mutex_lock(&lock);
	if (!weft_ult_all.worker[0]->fence)
		weft_membarrier_private();
	uint64_t before = counts_locked(n);
	bool dead = before != reported && plains_wait_locked(me) && workers_sleep(w, n) &&
		    workers_sleep(w, n) && plains_wait_locked(me) &&
		    (alive = weft_ult_alive()) > 0 && counts_locked(n) == before;
	if (dead)
		reported = before;
	pthread_mutex_unlock(&lock);
	if (!dead)
		return;
	atomic_fetch_add_explicit(&weft_ult_x_deadlocks, 1, memory_order_relaxed);
	weft_error("deadlock: %llu user-level threads wait, and no thread is left to wake one:",
		   (unsigned long long)alive);
	weft_ult_report(stderr);
}

void weft_ult_plain_begin(struct weft_ult_plain *p, struct weft_parker *parker)
{
	p->parker = parker;
	pthread_mutex_lock(&lock);
	moves++;
	p->next = plains;
	plains = p;
	pthread_mutex_unlock(&lock);
}

void weft_ult_plain_end(struct weft_ult_plain *p)
{
	struct weft_ult_plain **at = &plains;
	pthread_mutex_lock(&lock);
	moves++;
	while (*at != p) /* ends: p is in the list */
		at = &(*at)->next;
	*at = p->next;
	pthread_mutex_unlock(&lock);
}

void weft_ult_plain_park(struct weft_parker *me)
{
	struct weft_ult_plain p;
	if (weft_wait_parker_is_light(me)) { /* another runtime's: its kernel thread runs others */
		(void)weft_wait_park(me, WEFT_NEVER);
		return;
	}
	weft_ult_plain_begin(&p, me);
	for (uint64_t ns = weft_ult_look_ns;; ns *= 2) { /* ends: when woken */
		if (weft_wait_park(me, weft_ult_hooked() ? WEFT_NEVER : weft_clock_ns() + ns))
			break;
		weft_ult_deadlock_look(NULL, &p);
	}
	weft_ult_plain_end(&p);
}
