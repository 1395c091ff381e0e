/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tiny.h - a small foreign runtime, for tests of weft/plugin.h: threads on ucontext, all run by the
 * kernel thread that calls tiny_run().
 */
#ifndef WEFT_TEST_TINY_H
#define WEFT_TEST_TINY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <ucontext.h>
#include <weft/plugin.h>

#include "check.h"

#if defined(__SANITIZE_THREAD__)
#define TINY_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TINY_TSAN 1
#endif
#endif
#ifdef TINY_TSAN
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
#define TINY_FIBER(call) call
#else
#define TINY_FIBER(call) ((void)0)
#endif

enum { TINY_STACK = 256 << 10 };

struct tiny {
	ucontext_t uc;
	struct tiny *next; /* lock: in the queue */
	bool parked, told; /* lock */
	bool over;         /* the runner's */
	void (*fn)(long arg);
	long arg;
	char *stack;
	void *fiber;
};

static pthread_mutex_t tiny_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t tiny_work = PTHREAD_COND_INITIALIZER;
static struct tiny *tiny_first, *tiny_last;        /* tiny_lock: ready ones */
static long tiny_parks, tiny_unparks, tiny_yields; /* tiny_lock: calls */
static int (*tiny_idle)(void);                     /* called once before the runner sleeps */
static long tiny_alive;                            /* the runner's */
static _Thread_local struct tiny *tiny_now;
static ucontext_t tiny_home;
#ifdef TINY_TSAN
static void *tiny_home_fiber;
#endif

static void tiny_push_locked(struct tiny *t)
{
	t->next = NULL;
	if (tiny_first)
		tiny_last->next = t;
	else
		tiny_first = t;
	tiny_last = t;
	pthread_cond_signal(&tiny_work);
}

static void tiny_leave(struct tiny *t)
{
	TINY_FIBER(__tsan_switch_to_fiber(tiny_home_fiber, 0));
	swapcontext(&t->uc, &tiny_home);
}

/* ---- the four functions ---------------------------------------------------------------------- */

static void *tiny_self(void)
{
	return tiny_now;
}

static void tiny_park(void *self)
{
	struct tiny *t = self;
	CHECK(t == tiny_now);
	pthread_mutex_lock(&tiny_lock);
	tiny_parks++;
	bool told = t->told;
	t->told = false;
	t->parked = !told;
	pthread_mutex_unlock(&tiny_lock);
	/* Called meanwhile, it lies in the queue; this kernel thread runs it, later. */
	if (!told)
		tiny_leave(t);
}

static void tiny_unpark(void *thread)
{
	struct tiny *t = thread;
	pthread_mutex_lock(&tiny_lock);
	tiny_unparks++;
	CHECK(!t->over && !t->told);
	t->told = !t->parked;
	if (t->parked)
		tiny_push_locked(t);
	t->parked = false;
	pthread_mutex_unlock(&tiny_lock);
}

static void tiny_yield(void)
{
	struct tiny *t = tiny_now;
	pthread_mutex_lock(&tiny_lock);
	tiny_yields++;
	tiny_push_locked(t);
	pthread_mutex_unlock(&tiny_lock);
	tiny_leave(t);
}

static const struct weft_plugin tiny_plugin = {tiny_self, tiny_park, tiny_unpark, tiny_yield};

/* ---- threads --------------------------------------------------------------------------------- */

static void tiny_main(void)
{
	struct tiny *t = tiny_now;
	t->fn(t->arg);
	t->over = true;
	tiny_leave(t);
}

static void tiny_start(void (*fn)(long arg), long arg)
{
	struct tiny *t = calloc(1, sizeof(*t));
	CHECK(t && (t->stack = malloc(TINY_STACK)));
	t->fn = fn;
	t->arg = arg;
	getcontext(&t->uc);
	t->uc.uc_stack.ss_sp = t->stack;
	t->uc.uc_stack.ss_size = TINY_STACK;
	makecontext(&t->uc, tiny_main, 0);
	TINY_FIBER(t->fiber = __tsan_create_fiber(0));
	tiny_alive++;
	pthread_mutex_lock(&tiny_lock);
	tiny_push_locked(t);
	pthread_mutex_unlock(&tiny_lock);
}

static struct tiny *tiny_pop(void)
{
	struct tiny *t;
	pthread_mutex_lock(&tiny_lock);
	if (!tiny_first && tiny_idle) {
		pthread_mutex_unlock(&tiny_lock);
		(void)tiny_idle();
		pthread_mutex_lock(&tiny_lock);
	}
	while (!tiny_first)
		pthread_cond_wait(&tiny_work, &tiny_lock);
	t = tiny_first;
	tiny_first = t->next;
	pthread_mutex_unlock(&tiny_lock);
	return t;
}

/* Runs them until all have ended; their memory is freed at once. */
static void tiny_run(void)
{
	TINY_FIBER(tiny_home_fiber = __tsan_get_current_fiber());
	while (tiny_alive > 0) {
		struct tiny *t = tiny_pop();
		tiny_now = t;
		TINY_FIBER(__tsan_switch_to_fiber(t->fiber, 0));
		swapcontext(&tiny_home, &t->uc);
		tiny_now = NULL;
		if (!t->over)
			continue;
		TINY_FIBER(__tsan_destroy_fiber(t->fiber));
		free(t->stack);
		free(t);
		tiny_alive--;
	}
}

#endif
