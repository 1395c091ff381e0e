/* SPDX-License-Identifier: BSD-3-Clause */
/* sleep.c - threads that sleep until a condition holds: sleep.h has the recipe. */
#include "port/sleep.h"
#include <pthread.h>
#include "task/task.h"

struct sleeper {
	struct sleeper *next;
	struct weft_completion done;
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sleeper *list;
static _Atomic uint32_t x_sleepers;

/* False: a changer has taken s off the list, and will signal it. */
static bool leave_list(struct sleeper *s)
{
	pthread_mutex_lock(&list_lock);
	struct sleeper **at = &list;
	while (*at && *at != s)
		at = &(*at)->next;
	bool there = *at != NULL;
	if (there)
		*at = s->next;
	pthread_mutex_unlock(&list_lock);
	return there;
}

void weft_port_sleep_until(bool (*ready)(void *arg), void *arg)
{
	/* Ends when the condition holds: each turn but the last has slept until a change. */
	while (!ready(arg)) {
		struct sleeper s = {0};
		weft_wait_completion_init(&s.done);
		pthread_mutex_lock(&list_lock);
		s.next = list;
		list = &s;
		pthread_mutex_unlock(&list_lock);
		/* seq_cst: before the look. */
		atomic_fetch_add_explicit(&x_sleepers, 1, memory_order_seq_cst);
		bool over = ready(arg);
		if (!over || !leave_list(&s))
			weft_task_engine_wait(&s.done);
		/* Relaxed: a hint that is too high costs a lock. */
		atomic_fetch_sub_explicit(&x_sleepers, 1, memory_order_relaxed);
		if (over)
			return;
	}
}

void weft_port_changed(void)
{
	/* seq_cst: the change comes before the look. */
	atomic_thread_fence(memory_order_seq_cst);
	if (weft_likely(!atomic_load_explicit(&x_sleepers, memory_order_relaxed)))
		return;
	pthread_mutex_lock(&list_lock);
	struct sleeper *s = list;
	list = NULL;
	pthread_mutex_unlock(&list_lock);
	while (s) { /* ends: the list is this call's */
		struct sleeper *next = s->next;
		weft_wait_completion_signal(&s->done);
		s = next;
	}
}
