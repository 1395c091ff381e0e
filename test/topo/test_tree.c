/* SPDX-License-Identifier: BSD-3-Clause */
/* Levels without siblings are pruned, sets find their smallest place, cores their leaf, own
 * affinity is respected. */
#include <string.h>
#include "check.h"
#include "topo/topo.h"

static void load(const char *synthetic)
{
	weft_topo_unload();
	if (synthetic)
		setenv("HWLOC_SYNTHETIC", synthetic, 1);
	else
		unsetenv("HWLOC_SYNTHETIC");
	CHECK_EQ(weft_topo_load(), WEFT_OK);
}

static void check_tree(void)
{
	int n = weft_topo_count();
	for (int i = 1; i < n; i++) {
		const struct weft_topo_node *t = weft_topo_node(i);
		const struct weft_topo_node *p = weft_topo_node(t->parent);
		CHECK(t->childn != 1);
		CHECK_EQ(t->depth, p->depth + 1);
		CHECK_EQ(p->first_child + t->rank, i);
		cpu_set_t both;
		CPU_AND(&both, &t->cpus, &p->cpus);
		CHECK(CPU_EQUAL(&both, &t->cpus));
	}
}

static void prunes(void)
{
	load("pack:1 l3:1 core:2 pu:1");
	CHECK_EQ(weft_topo_count(), 3);
	CHECK(strncmp(weft_topo_node(1)->name, "core", 4) == 0 ||
	      strncmp(weft_topo_node(1)->name, "Core", 4) == 0);
	check_tree();
	load("pack:2 l3:1 core:4 pu:2");
	CHECK_EQ(weft_topo_count(), 1 + 2 + 8 + 16);
	check_tree();
	load("pu:1");
	CHECK_EQ(weft_topo_count(), 1);
	load("pack:8 core:32 pu:2");
	CHECK_EQ(weft_topo_count(), 1 + 8 + 256 + 512);
	check_tree();
}

static void covers(void)
{
	load("pack:2 core:4 pu:2");
	cpu_set_t s;
	CPU_ZERO(&s);
	CHECK_EQ(weft_topo_cover(&s), 0);
	CHECK_EQ(weft_topo_cover(NULL), 0);
	CPU_SET(5, &s);
	int leaf = weft_topo_cover(&s);
	CHECK_EQ(leaf, weft_topo_leaf_of_cpu(5));
	CHECK_EQ(weft_topo_node(leaf)->childn, 0);
	CPU_SET(4, &s);
	CHECK_EQ(weft_topo_cover(&s), weft_topo_node(leaf)->parent);
	CPU_SET(0, &s);
	CHECK_EQ(weft_topo_node(weft_topo_cover(&s))->depth, 1);
	CPU_SET(15, &s);
	CHECK_EQ(weft_topo_cover(&s), 0);
	CPU_SET(900, &s);
	CHECK_EQ(weft_topo_cover(&s), 0);
	/* Every core, known to the tree or not, has a leaf. */
	for (int cpu = -1; cpu < 2000; cpu++)
		CHECK_EQ(weft_topo_node(weft_topo_leaf_of_cpu(cpu))->childn, 0);
}

static void respects_affinity(void)
{
	cpu_set_t all, one;
	load(NULL);
	CHECK(weft_topo_is_real());
	CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
	CHECK(CPU_EQUAL(&weft_topo_node(0)->cpus, &all));
	weft_topo_describe(stdout);
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && CPU_COUNT(&one) == 0)
			CPU_SET(cpu, &one);
	CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
	load(NULL);
	CHECK(CPU_EQUAL(&weft_topo_node(0)->cpus, &one));
	CHECK_EQ(weft_topo_count(), 1);
	CHECK_EQ(sched_setaffinity(0, sizeof all, &all), 0);
}

int main(void)
{
	prunes();
	covers();
	respects_affinity();
	weft_topo_unload();
	return 0;
}
