/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion and parking in every order: the waiter is woken, sees the result, and may free the
 * completion and its own node at once; a waiter that gives up leaves no trace.
 */
#include "model/explore.h"
/* The production sources, compiled against the explorer's atomics. */
#include "wait/park.c"
#include "wait/completion.c"

static struct weft_completion done[2];
static struct weft_parker parker[2];
static int result, entered[2];

/* A futex: sleeps while the newest value is PARKED, until a thread calls wake. */
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

static void setup(void)
{
	for (int i = 0; i < 2; i++) {
		weft_wait_completion_init(&done[i]);
		weft_wait_parker_init(&parker[i], &model_ops, NULL);
		entered[i] = 0;
		woken[i] = false;
	}
	result = 0;
}

/* As task/ waits: enlist, park while not done, delist, read. */
static void wait_for(struct weft_completion *c, int me, bool alone)
{
	struct weft_waiter w = {.parker = &parker[me]};
	struct weft_wait_node node;
	atomic_store_explicit(&w.x_need, 1, memory_order_relaxed);
	weft_wait_node_init(&node, &w);
	model_write(&entered[me], 1);
	bool in = weft_wait_completion_enlist(c, &node);
	while (!weft_wait_completion_done(c))
		weft_wait_park(&parker[me], WEFT_NEVER);
	if (in && !weft_wait_completion_delist(c, &node))
		while (!atomic_load_explicit(&node.x_left, memory_order_acquire))
			model_relax();
	MODEL_CHECK(model_read(&result) == 7);
	/* Our stack frame ends here, and alone we own the completion. */
	model_free(&node, sizeof node);
	model_free(&w, sizeof w);
	if (alone)
		model_free(c, sizeof *c);
}

static void waits_alone(void)
{
	wait_for(&done[0], 0, true);
}

static void waits(void)
{
	wait_for(&done[0], 0, false);
}

/* Polls instead of sleeping: the word alone must carry the result. */
static void polls(void)
{
	while (!weft_wait_completion_done(&done[0]))
		model_relax();
	MODEL_CHECK(model_read(&result) == 7);
	model_free(&done[0], sizeof done[0]);
}

static void gives_up(void)
{
	struct weft_waiter w = {.parker = &parker[1]};
	struct weft_wait_node node;
	atomic_store_explicit(&w.x_need, 1, memory_order_relaxed);
	weft_wait_node_init(&node, &w);
	if (weft_wait_completion_enlist(&done[0], &node) &&
	    !weft_wait_completion_delist(&done[0], &node))
		while (!atomic_load_explicit(&node.x_left, memory_order_acquire))
			model_relax();
	model_free(&node, sizeof node);
	model_free(&w, sizeof w);
}

static void waits_too(void)
{
	wait_for(&done[0], 1, false);
}

static void signals(void)
{
	model_write(&result, 7);
	weft_wait_completion_signal(&done[0]);
}

/* Waits for both of two; one wake-up when the last has come. */
static void waits_for_both(void)
{
	struct weft_waiter w = {.parker = &parker[0]};
	struct weft_wait_node node[2];
	bool in[2];
	atomic_store_explicit(&w.x_need, 2, memory_order_relaxed);
	for (int i = 0; i < 2; i++) {
		weft_wait_node_init(&node[i], &w);
		in[i] = weft_wait_completion_enlist(&done[i], &node[i]);
		if (!in[i])
			atomic_fetch_sub_explicit(&w.x_need, 1, memory_order_acq_rel);
	}
	while (!weft_wait_completion_done(&done[0]) || !weft_wait_completion_done(&done[1]))
		weft_wait_park(&parker[0], WEFT_NEVER);
	for (int i = 0; i < 2; i++)
		if (in[i] && !weft_wait_completion_delist(&done[i], &node[i]))
			while (!atomic_load_explicit(&node[i].x_left, memory_order_acquire))
				model_relax();
	MODEL_CHECK(model_read(&result) == 7);
	model_free(node, sizeof node);
	model_free(&w, sizeof w);
}

static void signals_other(void)
{
	weft_wait_completion_signal(&done[1]);
}

/* Says done by a plain store: forgets the sleepers. */
static void signals_badly(void)
{
	model_write(&result, 7);
	if (atomic_load_explicit(&done[0].x_state, memory_order_relaxed) == WEFT_COMPLETION_PENDING)
		atomic_store_explicit(&done[0].x_state, WEFT_COMPLETION_DONE, memory_order_release);
	else
		weft_wait_completion_signal(&done[0]);
}

/* Looks, then sleeps without having said so. */
static void waits_badly(void)
{
	if (!weft_wait_completion_done(&done[0]))
		weft_wait_park(&parker[0], WEFT_NEVER);
}

int main(void)
{
	static const struct model models[] = {
		{"one waits, one gives up", setup, {waits, gives_up, signals}, NULL, 3},
		{"both of two", setup, {waits_for_both, signals, signals_other}, NULL, 3},
		{"two waiters", setup, {waits, waits_too, signals}, NULL, 2},
		{"one waiter",
		 setup,
		 {waits_alone, signals},
		 NULL,
		 6,
		 .must = {"weft_wait_completion_finish x", "weft_wait_unpark x"}},
		{"one poller",
		 setup,
		 {polls, signals},
		 NULL,
		 6,
		 .must = {"weft_wait_completion_finish x", "weft_wait_completion_done l"}},
		{"signal that does not look",
		 setup,
		 {waits, signals_badly},
		 NULL,
		 4,
		 .broken = true},
		{"wait that does not enlist",
		 setup,
		 {waits_badly, signals},
		 NULL,
		 4,
		 .broken = true},
	};
	return explore_all(models, weft_countof(models));
}
