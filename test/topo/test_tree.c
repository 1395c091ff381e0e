/* SPDX-License-Identifier: BSD-3-Clause */
/* Levels without siblings are pruned, sets find their smallest place, cores their leaf, own
 * affinity is respected. */
#include <string.h>
#include <unistd.h>
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
		CHECK(t->first_leaf >= p->first_leaf);
		CHECK(t->first_leaf + t->leaves <= p->first_leaf + p->leaves);
		CHECK_EQ(t->childn == 0, t->cpu >= 0);
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
	CHECK_EQ(weft_topo_cover(&s, 0), 0);
	CHECK_EQ(weft_topo_cover(NULL, 0), 0);
	CPU_SET(5, &s);
	int leaf = weft_topo_cover(&s, 0);
	CHECK_EQ(leaf, weft_topo_leaf_of_cpu(5));
	CHECK_EQ(weft_topo_node(leaf)->childn, 0);
	CPU_SET(4, &s);
	CHECK_EQ(weft_topo_cover(&s, 0), weft_topo_node(leaf)->parent);
	CPU_SET(0, &s);
	CHECK_EQ(weft_topo_node(weft_topo_cover(&s, 0))->depth, 1);
	CPU_SET(15, &s);
	CHECK_EQ(weft_topo_cover(&s, 0), 0);
	CPU_ZERO(&s);
	CPU_SET(4, &s);
	CPU_SET(900, &s); /* not in the tree: as if it were not in the set */
	CHECK_EQ(weft_topo_cover(&s, 0), weft_topo_leaf_of_cpu(4));
	CPU_CLR(4, &s);
	CHECK_EQ(weft_topo_cover(&s, 0), 0);
	CHECK_EQ(weft_topo_leaf_in(&s, 0), -1);
	CPU_SET(7, &s);
	CPU_SET(8, &s); /* no place but the machine has just these */
	CHECK_EQ(weft_topo_cover(&s, 0), 0);
	/* Every core, known to the tree or not, has a leaf. */
	for (int cpu = -1; cpu < 2000; cpu++)
		CHECK_EQ(weft_topo_node(weft_topo_leaf_of_cpu(cpu))->childn, 0);
}

/* Sets larger than cpu_set_t, threads of a core numbered far apart, unequal packages. */
static void odd_machines(void)
{
	load("pack:8 numa:2 l3:2 core:64 pu:2");
	CHECK_EQ(weft_topo_node(0)->leaves, 4096);
	CHECK_EQ(weft_topo_node(0)->childn, 8);
	check_tree();
	size_t bytes = CPU_ALLOC_SIZE(4096);
	cpu_set_t *s = CPU_ALLOC(4096);
	CHECK(s != NULL);
	CPU_ZERO_S(bytes, s);
	CPU_SET_S(4095, bytes, s);
	CHECK_EQ(weft_topo_cover(s, bytes), weft_topo_leaf_of_cpu(4095));
	CHECK_EQ(weft_topo_leaf_in(s, bytes), weft_topo_leaf_of_cpu(4095));
	CPU_SET_S(4094, bytes, s);
	CHECK_EQ(weft_topo_node(weft_topo_cover(s, bytes))->leaves, 2);
	CPU_SET_S(3584, bytes, s);
	CHECK_EQ(weft_topo_node(weft_topo_cover(s, bytes))->leaves, 512);
	CPU_SET_S(0, bytes, s);
	CHECK_EQ(weft_topo_cover(s, bytes), 0);
	CPU_FREE(s);
	load("core:4 pu:2(indexes=0,4,1,5,2,6,3,7)");
	cpu_set_t pair;
	CPU_ZERO(&pair);
	CPU_SET(1, &pair);
	CPU_SET(5, &pair);
	CHECK_EQ(weft_topo_node(weft_topo_cover(&pair, 0))->leaves, 2);
	CHECK_EQ(weft_topo_node(weft_topo_cover(&pair, 0))->first_leaf, 2);
}

static const char unequal[] =
	"<?xml version=\"1.0\"?>\n<topology version=\"2.0\"><object type=\"Machine\" "
	"os_index=\"0\" "
	"cpuset=\"0x1f\" complete_cpuset=\"0x1f\" allowed_cpuset=\"0x1f\" nodeset=\"0x1\" "
	"complete_nodeset=\"0x1\" allowed_nodeset=\"0x1\"><object type=\"NUMANode\" os_index=\"0\" "
	"cpuset=\"0x1f\" complete_cpuset=\"0x1f\" nodeset=\"0x1\" complete_nodeset=\"0x1\"/>"
	"<object type=\"Package\" os_index=\"0\" cpuset=\"0xf\" complete_cpuset=\"0xf\" "
	"nodeset=\"0x1\" complete_nodeset=\"0x1\">%s</object><object type=\"Package\" "
	"os_index=\"1\" "
	"cpuset=\"0x10\" complete_cpuset=\"0x10\" nodeset=\"0x1\" "
	"complete_nodeset=\"0x1\">%s</object>"
	"</object></topology>\n";

static void pu(char *at, size_t room, int i)
{
	size_t used = strlen(at);
	snprintf(at + used, room - used,
		 "<object type=\"PU\" os_index=\"%d\" cpuset=\"0x%x\" complete_cpuset=\"0x%x\" "
		 "nodeset=\"0x1\" complete_nodeset=\"0x1\"/>",
		 i, 1u << i, 1u << i);
}

/* A package of four cores beside one of a single core, from a file. */
static void from_xml(void)
{
	char four[1024] = "", one[512] = "", path[] = "/tmp/weft-topo-XXXXXX";
	for (int i = 0; i < 4; i++)
		pu(four, sizeof four, i);
	pu(one, sizeof one, 4);
	int fd = mkstemp(path);
	CHECK(fd >= 0);
	FILE *f = fdopen(fd, "w");
	CHECK(f != NULL);
	fprintf(f, unequal, four, one);
	fclose(f);
	unsetenv("HWLOC_SYNTHETIC");
	setenv("HWLOC_XMLFILE", path, 1);
	weft_topo_unload();
	CHECK_EQ(weft_topo_load(), WEFT_OK);
	unsetenv("HWLOC_XMLFILE");
	unlink(path);
	CHECK_EQ(weft_topo_count(), 1 + 2 + 4);
	CHECK_EQ(weft_topo_node(1)->childn, 4);
	CHECK_EQ(weft_topo_node(2)->childn, 0); /* its package is its leaf */
	CHECK_EQ(weft_topo_node(2)->cpu, 4);
	check_tree();
}

static bool root_is(const cpu_set_t *set)
{
	cpu_set_t s;
	CPU_ZERO(&s);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (weft_topo_node(weft_topo_leaf_of_cpu(cpu))->cpu == cpu)
			CPU_SET(cpu, &s);
	return CPU_EQUAL(&s, set);
}

static void respects_affinity(void)
{
	cpu_set_t all, one;
	load(NULL);
	CHECK(weft_topo_is_real());
	CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
	CHECK(root_is(&all));
	weft_topo_describe(stdout);
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && CPU_COUNT(&one) == 0)
			CPU_SET(cpu, &one);
	CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
	load(NULL);
	CHECK(root_is(&one));
	CHECK_EQ(weft_topo_count(), 1);
	CHECK_EQ(sched_setaffinity(0, sizeof all, &all), 0);
}

int main(void)
{
	prunes();
	covers();
	odd_machines();
	from_xml();
	respects_affinity();
	weft_topo_unload();
	return 0;
}
