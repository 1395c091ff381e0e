/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sole waiter in every order: whoever enlists beside it for the first time is woken, and sees
 * the result; the membarrier is what makes it so.  That DONE comes before "not inside" is not shown
 * here: the explorer's stores never pass each other.
 */
#include "model/explore.h"
#include <sys/syscall.h>
#include <unistd.h>
/* The production sources, compiled against the explorer's atomics. */
#include "wait/completion.c"
#include "wait/park.c"

static bool deaf; /* a membarrier that is none */

#define syscall(...) ((void)(deaf ? (void)0 : model_membarrier()), 0L)
#include "wait/sole.c"
#include "wait/solo.c"

#define SOLE 1u

static struct weft_completion done[2];
static struct weft_parker parker[2];
static int result;
static bool woken[2];

static bool asleep(void *arg)
{
	return !woken[(struct weft_parker *)arg - parker];
}

static void model_sleep(struct weft_parker *p, uint64_t deadline_ns)
{
	uint32_t newest;
	memcpy(&newest, (void *)&p->x_word, sizeof newest);
	woken[p - parker] = newest != WEFT_PARKER_PARKED;
	model_block(asleep, p);
	model_fresh((void *)&p->x_word, sizeof newest);
}

static void model_wake(struct weft_parker *p)
{
	woken[p - parker] = true;
}

static const struct weft_parker_ops model_ops = {"model", model_sleep, model_wake, NULL, NULL};

/* A sole thread has begun; the threads of the model have no id but that one. */
static void setup(void)
{
	for (int i = 0; i < 2; i++) {
		weft_wait_completion_init(&done[i]);
		weft_wait_parker_init(&parker[i], &model_ops, NULL);
		woken[i] = false;
	}
	atomic_store_explicit(&weft_wait_sole.x_owner, SOLE, memory_order_relaxed);
	atomic_store_explicit(&weft_wait_sole.x_inside, 0, memory_order_relaxed);
	result = 0;
	deaf = false;
}

static void setup_deaf(void)
{
	setup();
	deaf = true;
}

static void signal_sole(struct weft_completion *c)
{
	if (!weft_wait_sole_signal(c, SOLE))
		weft_wait_completion_signal(c);
}

static void signals(void)
{
	model_write(&result, 7);
	signal_sole(&done[0]);
}

static void signals_both(void)
{
	signals();
	signal_sole(&done[1]);
}

/* As task/ waits: enlist, park while not done, delist, read. */
static void wait_for(struct weft_completion *c, int me)
{
	struct weft_waiter w = {.parker = &parker[me]};
	struct weft_wait_node node;
	atomic_store_explicit(&w.x_need, 1, memory_order_relaxed);
	weft_wait_node_init(&node, &w);
	bool in = weft_wait_completion_enlist(c, &node);
	while (!weft_wait_completion_done(c))
		weft_wait_park(&parker[me], WEFT_NEVER);
	if (in && !weft_wait_completion_delist(c, &node))
		while (!atomic_load_explicit(&node.x_left, memory_order_acquire))
			model_relax();
	MODEL_CHECK(model_read(&result) == 7);
	model_free(&node, sizeof node);
	model_free(&w, sizeof w);
}

static void waits(void)
{
	wait_for(&done[0], 0);
}

static void waits_too(void)
{
	wait_for(&done[0], 1);
}

static void waits_for_second(void)
{
	wait_for(&done[1], 1);
}

/* Somebody looks without ever sleeping. */
static void polls(void)
{
	while (!weft_wait_completion_done(&done[0]))
		model_relax();
	MODEL_CHECK(model_read(&result) == 7);
}

/* Says that there is no sole thread, without asking whether it is inside. */
static void waits_badly(void)
{
	atomic_store_explicit(&weft_wait_sole.x_owner, WEFT_SOLE_NONE, memory_order_relaxed);
	model_membarrier();
	wait_for(&done[0], 0);
}

int main(void)
{
	static const struct model models[] = {
		{
			"one more waits",
			setup,
			{waits, signals},
			NULL,
			5,
		},
		{"one polls",
		 setup,
		 {polls, signals},
		 NULL,
		 5,
		 .must = {"weft_wait_sole_signal s"}},
		{"two more wait", setup, {waits, waits_too, signals}, NULL, 2},
		{"each for one of two", setup, {waits, waits_for_second, signals_both}, NULL, 2},
		{"no membarrier", setup_deaf, {waits, signals}, NULL, 5, .broken = true},
		{"no wait for who is inside",
		 setup,
		 {waits_badly, signals},
		 NULL,
		 5,
		 .broken = true},
	};
	return explore_all(models, weft_countof(models));
}
