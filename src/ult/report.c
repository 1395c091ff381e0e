/* SPDX-License-Identifier: BSD-3-Clause */
/* report.c - what is there: threads, their states, what they wait for. */
#include "base/log.h"
#include "ult/sync/mutex.h"
#include "ult/ult_int.h"

#include <string.h>

#define LINES_MAX 64 /* threads that are listed one by one */

void weft_ult_waits_for(const char *what, const void *which)
{
	struct weft_ult *t = weft_ult_self();
	if (t)
		weft_ult_waits(t, what, which);
}

const char *weft_ult_who(const struct weft_parker *p, char out[WEFT_ULT_WHO])
{
	if (!p || p->ops != &weft_ult_parker_ops)
		return "a plain thread";
	const struct weft_ult *t = weft_container_of(p, const struct weft_ult, parker);
	(void)snprintf(out, WEFT_ULT_WHO, "user-level thread %d.%u%s%s", t->home->id, t->slot,
		       t->name[0] ? " " : "", t->name);
	return out;
}

/* Is it alive?  A guess while it runs elsewhere, like all of this. */
static bool is_alive(struct weft_ult *t)
{
	/* NAMED <- prepare.  Carries: the name. */
	return atomic_load_explicit(&t->x_flags, memory_order_acquire) & WEFT_ULT_ALIVE;
}

/* The thread that another waits for, where that can be told: its mutex's owner, the one it joins.
 * */
static void report_other(FILE *out, const char *what, const void *on)
{
	const struct weft_ult *t = NULL;
	if (strcmp(what, "mutex") == 0) {
		/* Relaxed: a guess; the mutex is there as long as a thread waits for it. */
		uintptr_t owner =
			atomic_load_explicit((_Atomic uintptr_t *)on, memory_order_relaxed);
		const struct weft_parker *p = weft_ult_mutex_owner(owner);
		if (p && p->ops == &weft_ult_parker_ops)
			t = weft_container_of(p, const struct weft_ult, parker);
		else if (p)
			fputs(", held by a plain thread", out);
	} else if (on && strcmp(what, "the end of thread") == 0) {
		t = on;
	}
	if (t)
		fprintf(out, ", %s %d.%u%s%s", t == on ? "which is" : "held by", t->home->id,
			t->slot, t->name[0] ? " " : "", t->name);
}

/* WEFT_ULT_PARKED, WEFT_ULT_WAITS_TOKEN, or 0. */
static uint32_t wait_state(struct weft_ult *t)
{
	return atomic_load_explicit(&t->parker.x_word, memory_order_relaxed) &
	       (WEFT_ULT_PARKED | WEFT_ULT_WAITS_TOKEN);
}

static void report_thread(FILE *out, struct weft_ult *t)
{
	uint32_t parked = wait_state(t);
	const char *what = atomic_load_explicit(&t->x_waits_for, memory_order_relaxed);
	const void *on = atomic_load_explicit(&t->x_waits_on, memory_order_relaxed);
	fprintf(out, "  thread %d.%u%s%s: %s", t->home->id, t->slot, t->name[0] ? " " : "", t->name,
		parked ? "waits" : "runs or is ready");
	if (parked && !what) /* the layers above wait by the parker, and name nothing */
		fputs(parked & WEFT_ULT_WAITS_TOKEN ? " for weft_ult_unpark"
						    : " for a message, a task or another event",
		      out);
	else if (parked)
		fprintf(out, on ? " for %s %p" : " for %s", what, on);
	if (parked && what && on)
		report_other(out, what, on);
	fputc('\n', out);
}

void weft_ult_report(FILE *out)
{
	uint64_t seen = 0, waiting = 0;
	for (int i = 0; i < WEFT_ULT_WORKERS_MAX && weft_ult_all.worker[i]; i++) {
		struct weft_ult_worker *w = weft_ult_all.worker[i];
		pthread_mutex_lock(&w->pool_lock);
		for (uint32_t slot = 0; slot < w->slots; slot++) {
			struct weft_ult *t = weft_ult_of(w, slot);
			if (!is_alive(t))
				continue;
			seen++;
			waiting += wait_state(t) != 0;
			if (seen <= LINES_MAX)
				report_thread(out, t);
		}
		pthread_mutex_unlock(&w->pool_lock);
	}
	if (seen > LINES_MAX)
		fprintf(out, "  and %llu more\n", (unsigned long long)(seen - LINES_MAX));
	fprintf(out, "  %llu threads, %llu of them wait\n", (unsigned long long)seen,
		(unsigned long long)waiting);
}

#define STAYS_MAX 10 /* threads that are named */

void weft_ult_engine_stopped(void)
{
	char who[WEFT_ULT_WHO];
	unsigned long n = 0;
	for (int i = 0; i < WEFT_ULT_WORKERS_MAX && weft_ult_all.worker[i]; i++) {
		struct weft_ult_worker *w = weft_ult_all.worker[i];
		pthread_mutex_lock(&w->pool_lock);
		for (uint32_t slot = 0; slot < w->slots; slot++) {
			struct weft_ult *t = weft_ult_of(w, slot);
			if (!is_alive(t) || wait_state(t) != WEFT_ULT_PARKED ||
			    atomic_load_explicit(&t->x_waits_for, memory_order_relaxed))
				continue;
			if (n++ < STAYS_MAX)
				weft_warn("the progress engine has stopped: %s stays in its wait "
					  "for a message or an event",
					  weft_ult_who(&t->parker, who));
		}
		pthread_mutex_unlock(&w->pool_lock);
	}
	if (n > STAYS_MAX)
		weft_warn("and %lu more", n - STAYS_MAX);
}

void weft_ult_describe(FILE *out)
{
	int n = weft_ult_count();
	if (!n) {
		fprintf(out, "user-level threads: not started\n");
		return;
	}
	fprintf(out, "user-level threads: %d workers, stealing %s\n", n,
		atomic_load_explicit(&weft_ult_all.x_steal, memory_order_relaxed) ? "on" : "off");
	for (int i = 0; i < n; i++) {
		struct weft_ult_worker *w = weft_ult_all.worker[i];
		fprintf(out, "  worker %d: cpu %d, %llu switches, %llu threads taken from others\n",
			i, w->cpu,
			(unsigned long long)atomic_load_explicit(&w->x_switches,
								 memory_order_relaxed),
			(unsigned long long)atomic_load_explicit(&w->x_stolen,
								 memory_order_relaxed));
	}
	weft_ult_stack_describe(out);
}
