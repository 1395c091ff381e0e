/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread of low priority is put off its busy core while it holds a queue's mask.  Threads that
 * are turned away meanwhile sleep; nothing that they submitted is lost, none of it runs twice, and
 * masking and cancelling what the holder runs wait for it.  As an ordinary user.
 */
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>
#include <weft/progress.h>
#include <weft/task.h>
#include "base/counters.h"
#include "check.h"
#include "wait/park.h"

#define TASKS 12

static _Atomic int x_stop, x_holds, x_ran;
static _Atomic bool x_inside;

static void pin_to(int cpu)
{
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
}

static int last_cpu(void)
{
	cpu_set_t all;
	int last = 0;
	CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all))
			last = cpu;
	return last;
}

static void *computes(void *arg)
{
	pin_to(*(int *)arg);
	while (!atomic_load_explicit(&x_stop, memory_order_relaxed)) /* ends: told to */
		weft_cpu_relax();
	return NULL;
}

/* Under the mask, and its core is wanted by others: it goes for as long as they like. */
static enum weft_task_verdict loses_the_core(struct weft_task *t, void *arg)
{
	CHECK(!atomic_exchange(&x_inside, true));
	sched_yield();
	atomic_fetch_add(&x_holds, 1);
	atomic_store(&x_inside, false);
	return WEFT_TASK_AGAIN;
}

static enum weft_task_verdict counts(struct weft_task *t, void *arg)
{
	atomic_fetch_add(&x_ran, 1);
	return WEFT_TASK_DONE;
}

static void *holds(void *arg)
{
	pin_to(*(int *)arg);
	CHECK_EQ(setpriority(PRIO_PROCESS, (id_t)gettid(), 10), 0);
	while (!atomic_load_explicit(&x_stop, memory_order_relaxed))
		weft_engine_poll();
	return NULL;
}

static void wait_until_held(void)
{
	int n = atomic_load(&x_holds);
	while (!atomic_load(&x_inside) && atomic_load(&x_holds) == n) /* ends: it polls */
		sched_yield();
}

int main(void)
{
	struct weft_task holder, t;
	pthread_t busy, low;
	int cpu = last_cpu();
	setenv("WEFT_SLOW_TASK_MS", "0", 1);
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	weft_task_init(&holder, "holder", loses_the_core, NULL, WEFT_TASK_REPEAT);
	weft_task_submit(&holder);
	CHECK_EQ(pthread_create(&busy, NULL, computes, &cpu), 0);
	CHECK_EQ(pthread_create(&low, NULL, holds, &cpu), 0);
	for (int i = 0; i < TASKS; i++) {
		/* With a watcher beside us, and without: then it is the holder, or we. */
		weft_progress_set(i % 4 < 2);
		wait_until_held();
		/* Some need the mask, some go past it. */
		static const unsigned kind[] = {WEFT_TASK_REPEAT, WEFT_TASK_ONCE, 0};
		weft_task_init(&t, "other", counts, NULL, kind[i % 3]);
		t.priority = i % 2;
		CHECK(weft_task_submit(&t));
		CHECK_EQ(weft_task_wait(&t), WEFT_OK);
		CHECK_EQ(atomic_load(&x_ran), i + 1);
	}
	wait_until_held();
	CHECK_EQ(weft_task_mask_wait(&holder), WEFT_OK);
	CHECK(!atomic_load(&x_inside));
	weft_task_unmask(&holder);
	wait_until_held();
	CHECK_EQ(weft_task_cancel_wait(&holder), WEFT_OK);
	CHECK(!atomic_load(&x_inside));
	printf("held %d times, %llu turned away, %d tasks run\n", atomic_load(&x_holds),
	       (unsigned long long)weft_counter_sum(WEFT_CNT_MASK_SKIPS), atomic_load(&x_ran));
	atomic_store(&x_stop, 1);
	pthread_join(busy, NULL);
	pthread_join(low, NULL);
	weft_engine_stop();
	return 0;
}
