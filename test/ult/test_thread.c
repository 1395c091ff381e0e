/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads: create, join, detach, yield, park, unpark, exit; from threads and from outside. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <weft/ult.h>
#include "check.h"
#include "ult/stack/san.h"

#define MANY (WEFT_ULT_SANITIZED ? 60 : 300) /* a fiber costs ThreadSanitizer 0.8 MB of zeros */

static void *twice(void *arg)
{
	return (void *)(2 * (long)arg);
}

static void join_returns_the_result(void)
{
	weft_ult *t[MANY];
	for (long i = 0; i < MANY; i++)
		CHECK_EQ(weft_ult_create(&t[i], NULL, twice, (void *)i), WEFT_OK);
	for (long i = 0; i < MANY; i++) {
		void *result;
		CHECK_EQ(weft_ult_join(t[i], &result), WEFT_OK);
		CHECK_EQ((long)result, 2 * i);
	}
}

static void *creates(void *arg)
{
	long depth = (long)arg, sum = 1;
	weft_ult *t[3];
	if (depth == 0)
		weft_ult_exit((void *)1);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(weft_ult_create(&t[i], NULL, creates, (void *)(depth - 1)), WEFT_OK);
	for (int i = 0; i < 3; i++) {
		void *result;
		CHECK_EQ(weft_ult_join(t[i], &result), WEFT_OK);
		sum += (long)result;
	}
	return (void *)sum;
}

static void threads_create_threads(void)
{
	weft_ult *t;
	void *result;
	CHECK_EQ(weft_ult_create(&t, NULL, creates, (void *)5), WEFT_OK);
	CHECK_EQ(weft_ult_join(t, &result), WEFT_OK);
	CHECK_EQ((long)result, (3 * 3 * 3 * 3 * 3 * 3 - 1) / 2);
}

static _Atomic int x_over;

static void *adds(void *arg)
{
	weft_ult_yield();
	atomic_fetch_add(&x_over, 1);
	return NULL;
}

/* They are not joined; their stacks are used again. */
static void *detached(void *arg)
{
	weft_ult *t;
	for (int i = 0; i < MANY; i++) {
		CHECK_EQ(weft_ult_create(&t, NULL, adds, NULL), WEFT_OK);
		CHECK_EQ(weft_ult_detach(t), WEFT_OK);
		CHECK_EQ(weft_ult_create(NULL, NULL, adds, NULL), WEFT_OK);
	}
	while (atomic_load(&x_over) < 2 * MANY)
		weft_ult_yield();
	return NULL;
}

/* One worker, pinned: threads take turns in order, and none is left out. */
static int order[64], orders;

static void *notes(void *arg)
{
	for (int i = 0; i < 4; i++) {
		order[orders++] = (int)(long)arg;
		weft_ult_yield();
	}
	return NULL;
}

static void *turns(void *arg)
{
	struct weft_ult_attr a = WEFT_ULT_ATTR_INIT;
	weft_ult *t[8];
	/* A thief that looks may begin a round before all of them are there. */
	weft_ult_steal_set(false);
	a.worker = weft_ult_worker();
	for (long i = 0; i < 8; i++)
		CHECK_EQ(weft_ult_create(&t[i], &a, notes, (void *)i), WEFT_OK);
	for (int i = 0; i < 8; i++)
		CHECK_EQ(weft_ult_join(t[i], NULL), WEFT_OK);
	CHECK_EQ(orders, 32);
	for (int round = 0; round < 4; round++) {
		int seen = 0;
		for (int i = 0; i < 8; i++)
			seen |= 1 << order[8 * round + i];
		CHECK_EQ(seen, 255); /* each once before any a second time */
	}
	weft_ult_steal_set(true);
	return NULL;
}

static weft_ult *partner[2];
static _Atomic int x_ball;

static void *plays(void *arg)
{
	int me = (int)(long)arg;
	for (int i = 0; i < 1000; i++) {
		while (atomic_load(&x_ball) != me)
			weft_ult_park();
		atomic_store(&x_ball, !me);
		weft_ult_unpark(partner[!me]);
	}
	return NULL;
}

static void park_and_unpark(int w0, int w1)
{
	struct weft_ult_attr a = WEFT_ULT_ATTR_INIT;
	atomic_store(&x_ball, -1);
	a.worker = w0;
	CHECK_EQ(weft_ult_create(&partner[0], &a, plays, (void *)0), WEFT_OK);
	a.worker = w1;
	CHECK_EQ(weft_ult_create(&partner[1], &a, plays, (void *)1), WEFT_OK);
	atomic_store(&x_ball, 0);
	weft_ult_unpark(partner[0]);
	CHECK_EQ(weft_ult_join(partner[0], NULL), WEFT_OK);
	CHECK_EQ(weft_ult_join(partner[1], NULL), WEFT_OK);
}

/* A notification that comes first makes the next park return; several are one. */
static void *parks(void *arg)
{
	weft_ult_unpark(weft_ult_self());
	weft_ult_unpark(weft_ult_self());
	weft_ult_park();
	CHECK(!weft_ult_park_for(1000000));
	weft_ult_unpark(weft_ult_self());
	CHECK(weft_ult_park_for(60000000000ull));
	/* Neither a sleep nor another wait uses it up. */
	weft_ult_unpark(weft_ult_self());
	weft_ult_sleep_ns(100000);
	CHECK(weft_ult_park_for(60000000000ull));
	return NULL;
}

static void *mistakes(void *arg)
{
	weft_ult *t;
	CHECK_EQ(weft_ult_join(weft_ult_self(), NULL), WEFT_ERR_DEADLOCK);
	CHECK_EQ(weft_ult_join(NULL, NULL), WEFT_ERR_ARG);
	CHECK_EQ(weft_ult_detach(NULL), WEFT_ERR_ARG);
	CHECK_EQ(weft_ult_name(NULL)[0], 0);
	weft_ult_unpark(NULL);
	CHECK_EQ(weft_ult_create(&t, NULL, twice, NULL), WEFT_OK);
	CHECK_EQ(weft_ult_detach(t), WEFT_OK);
	struct weft_ult_attr a = WEFT_ULT_ATTR_INIT;
	a.stack_size = 9u << 20;
	CHECK_EQ(weft_ult_create(&t, &a, twice, NULL), WEFT_ERR_ARG);
	a.stack_size = 0;
	a.worker = 1000;
	CHECK_EQ(weft_ult_create(&t, &a, twice, NULL), WEFT_ERR_ARG);
	CHECK_EQ(weft_ult_create(&t, NULL, NULL, NULL), WEFT_ERR_ARG);
	CHECK_EQ(weft_ult_stop(), WEFT_ERR_STATE);
	return NULL;
}

/* A compiler may keep the address of errno within a function, and the thread change its worker. */
static __attribute__((noinline)) void set_errno(int to)
{
	errno = to;
}

static __attribute__((noinline)) int get_errno(void)
{
	return errno;
}

static void *keeps_errno(void *arg)
{
	for (int i = 0; i < 20; i++) {
		set_errno((int)(long)arg);
		weft_ult_yield();
		CHECK_EQ(get_errno(), (long)arg);
	}
	return NULL;
}

static void errno_is_the_threads_own(void)
{
	weft_ult *t[4];
	for (long i = 0; i < 4; i++)
		CHECK_EQ(weft_ult_create(&t[i], NULL, keeps_errno, (void *)(i + 1)), WEFT_OK);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(weft_ult_join(t[i], NULL), WEFT_OK);
}

/* A high priority goes before all that are ready, but not for ever. */
static int first_done, normal_done;

static void *urgent(void *arg)
{
	/* A round is all the threads that outsiders may have there as well, each after 8 of ours.
	 */
	for (int i = 0; i < 20000 && !normal_done; i++)
		weft_ult_yield();
	first_done++;
	return NULL;
}

static void *normal(void *arg)
{
	normal_done = 1;
	return NULL;
}

static void *priorities(void *arg)
{
	struct weft_ult_attr a = WEFT_ULT_ATTR_INIT;
	weft_ult *t[2];
	a.worker = weft_ult_worker();
	CHECK_EQ(weft_ult_create(&t[0], &a, normal, NULL), WEFT_OK);
	a.priority = 1;
	CHECK_EQ(weft_ult_create(&t[1], &a, urgent, NULL), WEFT_OK);
	CHECK_EQ(weft_ult_join(t[1], NULL), WEFT_OK);
	CHECK_EQ(normal_done, 1); /* within a round */
	CHECK_EQ(weft_ult_join(t[0], NULL), WEFT_OK);
	return NULL;
}

static void run(void *(*fn)(void *))
{
	weft_ult *t;
	struct weft_ult_attr a = WEFT_ULT_ATTR_INIT;
	a.stack_size = 65536;
	a.name = "test";
	CHECK_EQ(weft_ult_create(&t, &a, fn, NULL), WEFT_OK);
	CHECK(strcmp(weft_ult_name(t), "test") == 0);
	CHECK_EQ(weft_ult_join(t, NULL), WEFT_OK);
}

static void *from_outside(void *arg)
{
	for (int i = 0; i < 20; i++)
		join_returns_the_result();
	return NULL;
}

int main(void)
{
	for (int workers = 1; workers <= 3; workers++) {
		pthread_t p;
		CHECK_EQ(weft_ult_start(workers), WEFT_OK);
		CHECK_EQ(weft_ult_start(workers), WEFT_ERR_STATE);
		CHECK_EQ(weft_ult_workers(), workers);
		CHECK_EQ(weft_ult_worker(), -1);
		CHECK(weft_ult_self() == NULL);
		CHECK_EQ(pthread_create(&p, NULL, from_outside, NULL), 0);
		join_returns_the_result();
		threads_create_threads();
		atomic_store(&x_over, 0);
		run(detached);
		orders = 0;
		run(turns);
		park_and_unpark(0, 0);
		park_and_unpark(0, workers - 1);
		run(parks);
		run(mistakes);
		errno_is_the_threads_own();
		normal_done = 0;
		run(priorities);
		CHECK_EQ(pthread_join(p, NULL), 0);
		CHECK_EQ(weft_ult_stop(), WEFT_OK);
	}
	return 0;
}
