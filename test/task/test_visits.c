/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A round goes from a leaf up and reaches a parent of N children every Nth time, exactly, on
 * made-up machines; a task goes to the smallest place that covers its set and is found from there.
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

/* Every leaf makes `rounds` rounds, in turn; what each place must have seen follows. */
static void counts(const char *synthetic, unsigned rounds)
{
	load(synthetic);
	unsigned total = 0;
	for (unsigned r = 0; r < rounds; r++)
		for (int i = 0; i < weft_topo_count(); i++)
			if (weft_topo_node(i)->childn == 0)
				weft_task_tqueues_round(weft_task_tqueue_of_place(i), true);
	for (int i = 0; i < weft_topo_count(); i++) {
		const struct weft_topo_node *t = weft_topo_node(i);
		/* N children, each visited `rounds` times, each coming up every Nth time. */
		CHECK_EQ(visits(i), rounds);
		total += t->childn == 0;
	}
	printf("%s: %u leaves, %d places, %u visits each\n", synthetic, total, weft_topo_count(),
	       rounds);
	unload();
}

/* One leaf alone: each level is seen as often as the one below divided by its siblings. */
static void alone(void)
{
	load("pack:2 core:4 pu:2");
	int leaf = weft_topo_leaf_of_cpu(0);
	for (int r = 0; r < 1600; r++)
		weft_task_tqueues_round(weft_task_tqueue_of_place(leaf), true);
	int core = weft_topo_node(leaf)->parent, pack = weft_topo_node(core)->parent;
	CHECK_EQ(visits(leaf), 1600);
	CHECK_EQ(visits(core), 800);
	CHECK_EQ(visits(pack), 200);
	CHECK_EQ(visits(0), 100);
	CHECK_EQ(visits(weft_topo_leaf_of_cpu(1)), 0);
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
	/* The machine's task is found from anywhere within the product of the siblings. */
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
	counts("pack:2 core:4 pu:2", 1600);
	counts("pack:3 l3:2 core:5", 900);
	counts("core:2", 100);
	counts("pu:1", 100);
	counts("pack:8 core:32 pu:2", 1024);
	alone();
	reaches();
	return 0;
}
