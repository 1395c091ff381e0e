/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The single waiter in every order: a thread that enlists beside it for the first time is woken, and
 * sees the result; the membarrier is what makes it so.  That DONE comes before "not inside" is not
 * shown here: the explorer's stores never pass each other.
 */
#include "model/explore.h"
#define WEFT_OWNER_SELF (mx.now == owner_thread ? OWNER : (uint32_t)(mx.now + 2) * 4 + 1)
static int owner_thread;
#define OWNER 5u
/* The production sources, compiled against the explorer's atomics. */
#include "wait/completion.c"
#include "wait/owner_lock.c"
#include "wait/park.c"
#include "wait/single_waiter.c"

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

/* The signalling thread, the last of `threads`, is the single waiter. */
static void setup(int threads)
{
	for (int i = 0; i < 2; i++) {
		weft_wait_completion_init(&done[i]);
		weft_wait_parker_init(&parker[i], &model_ops, NULL);
		woken[i] = false;
	}
	owner_thread = threads - 1;
	weft_wait_owner_init(&weft_wait_single, OWNER);
	result = 0;
	model_deaf = false;
}

static void setup_two(void)
{
	setup(2);
}

static void setup_three(void)
{
	setup(3);
}

static void setup_deaf(void)
{
	setup(2);
	model_deaf = true;
}

static void signal_single(struct weft_completion *c)
{
	if (!weft_wait_single_signal(c))
		weft_wait_completion_signal(c);
}

static void signals(void)
{
	model_write(&result, 7);
	signal_single(&done[0]);
}

static void signals_both(void)
{
	signals();
	signal_single(&done[1]);
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

/* Looks without ever sleeping. */
static void polls(void)
{
	while (!weft_wait_completion_done(&done[0]))
		model_relax();
	MODEL_CHECK(model_read(&result) == 7);
}

/* Says that there is no single waiter, without a look whether it is inside. */
static void waits_badly(void)
{
	atomic_store_explicit(&weft_wait_single.x_owner, 0, memory_order_relaxed);
	model_membarrier();
	wait_for(&done[0], 0);
}

/* Enlists while another thread still interrupts the single waiter. */
static void waits_early(void)
{
	uint32_t owner = atomic_load_explicit(&weft_wait_single.x_owner, memory_order_acquire);
	if (owner & WEFT_OWNER_INTERRUPTED)
		atomic_store_explicit(&weft_wait_single.x_owner, 0, memory_order_relaxed);
	wait_for(&done[0], 1);
}

int main(void)
{
	static const struct model models[] = {
		{
			"one more waits",
			setup_two,
			{waits, signals},
			NULL,
			5,
		},
		{"one polls",
		 setup_two,
		 {polls, signals},
		 NULL,
		 5,
		 .must = {"weft_wait_single_signal s"}},
		{"two more wait", setup_three, {waits, waits_too, signals}, NULL, 2},
		{"each for one of two",
		 setup_three,
		 {waits, waits_for_second, signals_both},
		 NULL,
		 2},
		{"no membarrier", setup_deaf, {waits, signals}, NULL, 5, .broken = true},
		{"no wait until it is outside",
		 setup_two,
		 {waits_badly, signals},
		 NULL,
		 5,
		 .broken = true},
		{"enlists during the interruption",
		 setup_three,
		 {waits, waits_early, signals},
		 NULL,
		 3,
		 .broken = true},
	};
	return explore_all(models, weft_countof(models));
}
