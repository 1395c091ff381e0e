/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How often a round visits each level, by counts, on made-up machines of 2 to 4,096 cores: a leaf
 * that polls alone visits each place above it in every round, many leaves together visit each place
 * once a round of all, and a leaf takes over when another stops.  A task goes to the smallest place
 * that covers its set and is found from there.
 */
#include <stdlib.h>
#include "check.h"
#include "task/queue/life.h"
#include "task/queue/tqueue.h"
#include "topo/topo.h"

static void load(const char *synthetic)
{
	setenv("HWLOC_SYNTHETIC", synthetic, 1);
	CHECK_EQ(weft_topo_load(), WEFT_OK);
	CHECK_EQ(weft_task_tqueues_create(), WEFT_OK);
}

static void unload(void)
{
	weft_task_tqueues_close();
	weft_topo_unload();
}

static unsigned visits(int place)
{
	return atomic_load(&weft_task_tqueue_of_place(place)->x_visits);
}

static const char *const machines[] = {
	"pu:1",
	"core:2",
	"pack:2 core:8",
	"pack:3 l3:2 core:5",
	"pack:2 core:4 pu:2",
	"pack:2 l3:4 core:4 pu:2",
	"pack:8 core:32 pu:2",
	"pu:1024",
	"pack:16 l3:8 core:16 pu:2",
	"pack:2 numa:2 l3:2 l2:2 core:2 pu:2",
};

/* Each leaf whose number is a multiple of `every` makes a round. */
static void all_round(int every)
{
	for (int i = 0; i < weft_topo_count(); i++) {
		const struct weft_topo_node *t = weft_topo_node(i);
		if (t->childn == 0 && t->first_leaf % every == 0)
			weft_task_tqueues_round(weft_task_tqueue_of_place(i), true);
	}
}

static bool polled(int place, int every)
{
	const struct weft_topo_node *t = weft_topo_node(place);
	int first = (t->first_leaf + every - 1) / every * every;
	return first < t->first_leaf + t->leaves;
}

/* Every leaf polls, or one of so many: each place with a poller below it is visited once a round.
 */
static void together(const char *synthetic, int every)
{
	enum { ROUNDS = 100 };
	load(synthetic);
	for (int r = 0; r < ROUNDS; r++)
		all_round(every);
	for (int i = 0; i < weft_topo_count(); i++)
		CHECK_EQ(visits(i), polled(i, every) ? ROUNDS : 0);
	unload();
}

static void round_of(int leaf)
{
	weft_task_tqueues_round(weft_task_tqueue_of_place(leaf), true);
}

/* A leaf alone: each round visits each place up to the root. */
static void alone(const char *synthetic, int cpu)
{
	enum { ROUNDS = 1000 };
	load(synthetic);
	int leaf = weft_topo_leaf_of_cpu(cpu);
	for (int r = 0; r < ROUNDS; r++)
		round_of(leaf);
	for (int i = 0; i < weft_topo_count(); i++) {
		const struct weft_topo_node *t = weft_topo_node(i);
		int at = weft_topo_node(leaf)->first_leaf;
		bool above = at >= t->first_leaf && at < t->first_leaf + t->leaves;
		CHECK_EQ(visits(i), above ? ROUNDS : 0);
	}
	unload();
}

/* All others stop: the last leaf alone visits the root again, after some rounds a level. */
static void takes_over(const char *synthetic)
{
	load(synthetic);
	int last = weft_topo_leaf_of_cpu(0);
	for (int i = 0; i < weft_topo_count(); i++)
		last = weft_topo_node(i)->childn == 0 ? i : last;
	for (int r = 0; r < 100; r++)
		all_round(1);
	unsigned before = visits(0);
	int rounds = 0, most = 2 * (WEFT_TQUEUE_SKIP_MAX + 1) * weft_topo_node(last)->depth;
	while (visits(0) == before) { /* ends: or the test fails */
		CHECK(rounds++ <= most);
		round_of(last);
	}
	before = visits(0);
	for (int r = 0; r < 100; r++)
		round_of(last);
	CHECK_EQ(visits(0), before + 100);
	/* And many again: the root is not visited more often for that. */
	before = visits(0);
	for (int r = 0; r < 100; r++)
		all_round(1);
	CHECK(visits(0) - before >= 84 && visits(0) - before <= 116);
	unload();
}

/* A slow poller leaves the way up to a quick one, and does not keep that from going. */
static void fast_and_slow(void)
{
	load("pack:2 core:8");
	int fast = weft_topo_leaf_of_cpu(0), slow = weft_topo_leaf_of_cpu(8);
	for (int r = 0; r < 10000; r++) {
		round_of(fast);
		if (r % 100 == 0)
			round_of(slow);
	}
	CHECK(visits(0) >= 9800 && visits(0) <= 10100);
	unload();
}

static int ran;

static enum weft_task_verdict runs(struct weft_task *t, void *arg)
{
	ran++;
	return WEFT_TASK_DONE;
}

static void push(struct weft_task *t, int place)
{
	weft_task_init(t, "placed", runs, NULL, 0);
	atomic_store(&weft_task_core(t)->x_state, WEFT_LIFE_QUEUED);
	weft_wait_completion_init(&weft_task_core(t)->done);
	weft_task_tqueue_push(weft_task_tqueue_of_place(place), t);
}

static void reaches(void)
{
	load("pack:2 core:2 pu:2");
	struct weft_task t;
	int leaf0 = weft_topo_leaf_of_cpu(0), leaf7 = weft_topo_leaf_of_cpu(7);
	/* A leaf's task is for that leaf alone. */
	push(&t, leaf0);
	for (int r = 0; r < 100; r++)
		CHECK_EQ(weft_task_tqueues_round(weft_task_tqueue_of_place(leaf7), true), 0);
	CHECK_EQ(weft_task_tqueues_round(weft_task_tqueue_of_place(leaf0), true), 1);
	/* The machine's task is found from anywhere, though another leaf has gone up till now. */
	push(&t, 0);
	int r = 0;
	while (!weft_task_tqueues_round(weft_task_tqueue_of_place(leaf7), true))
		CHECK(++r < 8);
	/* And a visit of everything finds all. */
	push(&t, leaf7);
	CHECK(weft_task_tqueues_submitted());
	CHECK_EQ(weft_task_tqueues_visit_all(), 1);
	CHECK(!weft_task_tqueues_submitted());
	CHECK_EQ(ran, 3);
	unload();
}

int main(void)
{
	for (size_t i = 0; i < weft_countof(machines); i++) {
		together(machines[i], 1);
		together(machines[i], 3);
		alone(machines[i], 0);
		takes_over(machines[i]);
	}
	fast_and_slow();
	reaches();
	return 0;
}
