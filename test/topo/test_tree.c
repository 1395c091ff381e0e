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

/* ---- machines from a file -------------------------------------------------------------------- */

/* One object: its kind, its number, its cores as a mask, and all that it ever had, and its NUMA
 * nodes.  What follows is inside it until `end`. */
static void object(FILE *f, const char *type, int number, unsigned cores, unsigned all,
		   unsigned nodes)
{
	bool top = strcmp(type, "Machine") == 0;
	fprintf(f,
		"<object type=\"%s\" os_index=\"%d\" cpuset=\"0x%x\" complete_cpuset=\"0x%x\" "
		"nodeset=\"0x%x\" complete_nodeset=\"0x%x\"",
		type, number, cores, all, nodes, nodes);
	if (top)
		fprintf(f, " allowed_cpuset=\"0x%x\" allowed_nodeset=\"0x%x\"", cores, nodes);
	fprintf(f, ">\n");
}

static void end(FILE *f)
{
	fprintf(f, "</object>\n");
}

static void whole(FILE *f, const char *type, int number, unsigned cores, unsigned nodes)
{
	object(f, type, number, cores, cores, nodes);
	end(f);
}

/* A core with its threads, the lowest numbered first. */
static void core(FILE *f, int number, unsigned threads, unsigned nodes)
{
	object(f, "Core", number, threads, threads, nodes);
	for (int i = 0; i < 32; i++)
		if (threads >> i & 1)
			whole(f, "PU", i, 1u << i, nodes);
	end(f);
}

static void load_xml(void (*machine)(FILE *f))
{
	char path[] = "/tmp/weft-topo-XXXXXX";
	int fd = mkstemp(path);
	CHECK(fd >= 0);
	FILE *f = fdopen(fd, "w");
	CHECK(f != NULL);
	fprintf(f, "<?xml version=\"1.0\"?>\n<topology version=\"2.0\">\n");
	machine(f);
	fprintf(f, "</topology>\n");
	fclose(f);
	unsetenv("HWLOC_SYNTHETIC");
	setenv("HWLOC_XMLFILE", path, 1);
	weft_topo_unload();
	CHECK_EQ(weft_topo_load(), WEFT_OK);
	CHECK(!weft_topo_is_real()); /* read, not fallen back to this one */
	unsetenv("HWLOC_XMLFILE");
	unlink(path);
	check_tree();
}

/* A package of four cores beside one of a single core. */
static void unequal(FILE *f)
{
	object(f, "Machine", 0, 0x1f, 0x1f, 1);
	whole(f, "NUMANode", 0, 0x1f, 1);
	object(f, "Package", 0, 0xf, 0xf, 1);
	for (int i = 0; i < 4; i++)
		whole(f, "PU", i, 1u << i, 1);
	end(f);
	object(f, "Package", 1, 0x10, 0x10, 1);
	whole(f, "PU", 4, 0x10, 1);
	end(f);
	end(f);
}

/*
 * Two large cores of two threads and four small ones of one; its NUMA node 1 is memory without
 * cores, and the second package has no memory of its own.
 */
static void hybrid(FILE *f)
{
	object(f, "Machine", 0, 0x3ff, 0x3ff, 3);
	whole(f, "NUMANode", 1, 0, 2);
	object(f, "Package", 0, 0xff, 0xff, 1);
	whole(f, "NUMANode", 0, 0xff, 1);
	core(f, 0, 0x3, 1);
	core(f, 1, 0xc, 1);
	for (int i = 4; i < 8; i++)
		core(f, i, 1u << i, 1);
	end(f);
	object(f, "Package", 1, 0x300, 0x300, 0);
	core(f, 8, 0x100, 0);
	core(f, 9, 0x200, 0);
	end(f);
	end(f);
}

/* Cores 1, 6 and 7 are offline: of a core one thread is left, of a package one core. */
static void offline(FILE *f)
{
	object(f, "Machine", 0, 0x3d, 0xff, 1);
	whole(f, "NUMANode", 0, 0x3d, 1);
	object(f, "Package", 0, 0xd, 0xf, 1);
	core(f, 0, 0x1, 1);
	core(f, 1, 0xc, 1);
	end(f);
	object(f, "Package", 1, 0x30, 0xf0, 1);
	core(f, 2, 0x30, 1);
	end(f);
	end(f);
}

static int cover(unsigned cores)
{
	cpu_set_t s;
	CPU_ZERO(&s);
	for (int i = 0; i < 32; i++)
		if (cores >> i & 1)
			CPU_SET(i, &s);
	return weft_topo_cover(&s, 0);
}

static void from_xml(void)
{
	load_xml(unequal);
	CHECK_EQ(weft_topo_count(), 1 + 2 + 4);
	CHECK_EQ(weft_topo_node(1)->childn, 4);
	CHECK_EQ(weft_topo_node(2)->childn, 0); /* its package is its leaf */
	CHECK_EQ(weft_topo_node(2)->cpu, 4);

	load_xml(hybrid);
	CHECK_EQ(weft_topo_count(), 1 + 2 + 6 + 4 + 2);
	CHECK_EQ(weft_topo_node(0)->leaves, 10); /* memory is no place to run at */
	CHECK_EQ(weft_topo_node(cover(0x3))->leaves, 2);
	CHECK_EQ(weft_topo_node(cover(0x10))->leaves, 1);
	CHECK_EQ(weft_topo_node(cover(0x30))->leaves, 8); /* small cores share but the package */
	CHECK_EQ(weft_topo_node(cover(0x300))->leaves, 2);
	CHECK_EQ(cover(0x101), 0);

	load_xml(offline);
	CHECK_EQ(weft_topo_node(0)->leaves, 5);
	CHECK_EQ(weft_topo_node(cover(0x1))->cpu, 0);
	CHECK_EQ(weft_topo_node(cover(0xc))->leaves, 2);
	CHECK_EQ(cover(0xc2), 0); /* none of them is there */
	CHECK_EQ(cover(0x3), cover(0x1));
	CHECK_EQ(weft_topo_node(cover(0xf0))->leaves, 2);
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
