/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's files give the tree that they say: threads of cores, nodes inside caches, cores of two kinds; the same
 * as hwloc's for this machine; sets that overlap, and files that are missing, are left to hwloc. */
#include <ftw.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "check.h"
#include "topo/sysfs.h"

static char root[64];

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

static void root_begin(void)
{
	snprintf(root, sizeof root, "/tmp/sysfs-tree-XXXXXX");
	CHECK(mkdtemp(root) != NULL);
}

static void root_end(void)
{
	CHECK_EQ(nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* A file of that text below the root. */
static void file(const char *text, const char *format, ...)
{
	char path[512];
	int n = snprintf(path, sizeof path, "%s/sys/devices/system/", root);
	va_list args;
	va_start(args, format);
	vsnprintf(path + n, sizeof path - (size_t)n, format, args);
	va_end(args);
	for (char *c = path + strlen(root) + 1; (c = strchr(c, '/'));
	     *c++ = '/') { /* ends: at the file */
		*c = 0;
		(void)mkdir(path, 0700);
	}
	FILE *f = fopen(path, "w");
	CHECK(f != NULL);
	fprintf(f, "%s\n", text);
	fclose(f);
}

/* NULL: the kernel does not tell. */
static void core(int cpu, const char *package, const char *l3, const char *l2, const char *core)
{
	if (package)
		file(package, "cpu/cpu%d/topology/package_cpus_list", cpu);
	if (core)
		file(core, "cpu/cpu%d/topology/core_cpus_list", cpu);
	file("Instruction", "cpu/cpu%d/cache/index0/type", cpu);
	file("1", "cpu/cpu%d/cache/index0/level", cpu);
	file("Unified", "cpu/cpu%d/cache/index1/type", cpu);
	file("2", "cpu/cpu%d/cache/index1/level", cpu);
	file(l2, "cpu/cpu%d/cache/index1/shared_cpu_list", cpu);
	file("Unified", "cpu/cpu%d/cache/index2/type", cpu);
	file("3", "cpu/cpu%d/cache/index2/level", cpu);
	file(l3, "cpu/cpu%d/cache/index2/shared_cpu_list", cpu);
}

/* "machine(L3 0(core 0=0 core 1=1) ...)" */
static void print(const struct weft_topo_node *nodes, int i, char *text, size_t size)
{
	size_t n = strlen(text);
	n += (size_t)snprintf(text + n, size - n, "%s%s", i && nodes[i].rank ? " " : "",
			      nodes[i].name);
	if (nodes[i].cpu >= 0)
		snprintf(text + n, size - n, "=%d", nodes[i].cpu);
	if (!nodes[i].childn)
		return;
	snprintf(text + n, size - n, "(");
	for (int k = 0; k < nodes[i].childn; k++)
		print(nodes, nodes[i].first_child + k, text, size);
	n = strlen(text);
	snprintf(text + n, size - n, ")");
}

static void expect(unsigned long own, const char *tree)
{
	struct weft_topo_node *nodes = NULL;
	char text[4096] = "";
	int n = 0;
	weft_err err = weft_topo_sysfs_read(root, &own, 1, &nodes, &n);
	if (!tree) {
		CHECK_EQ(err, WEFT_ERR_UNSUPPORTED);
		return;
	}
	CHECK_EQ(err, WEFT_OK);
	print(nodes, 0, text, sizeof text);
	if (strcmp(text, tree))
		fprintf(stderr, "is:     %s\nwanted: %s\n", text, tree);
	CHECK(strcmp(text, tree) == 0);
	free(nodes);
}

/* Two packages of two cores of two threads, numbered as firmware likes to. */
static void threads_of_cores(void)
{
	root_begin();
	for (int cpu = 0; cpu < 8; cpu++) {
		static const char *const pair[] = {"0,4", "1,5", "2,6", "3,7"};
		const char *package = cpu % 4 < 2 ? "0-1,4-5" : "2-3,6-7";
		core(cpu, package, package, pair[cpu % 4], pair[cpu % 4]);
	}
	expect(0xff, "machine(package 0(core 0(pu 0=0 pu 1=4) core 1(pu 2=1 pu 3=5)) "
		     "package 1(core 2(pu 4=2 pu 5=6) core 3(pu 6=3 pu 7=7)))");
	/* What is not ours is not there: one thread of each core, one package. */
	expect(0x0f, "machine(package 0(core 0=0 core 1=1) package 1(core 2=2 core 3=3))");
	expect(0xcc, "machine(core 0(pu 0=2 pu 1=6) core 1(pu 2=3 pu 3=7))");
	expect(0x20, "machine=5");
	root_end();
}

/* Nodes are smaller than the last cache, or larger than a package's. */
static void nodes_of_memory(void)
{
	root_begin();
	for (int cpu = 0; cpu < 4; cpu++) {
		static const char *const own[] = {"0", "1", "2", "3"};
		core(cpu, "0-3", "0-3", own[cpu], own[cpu]);
	}
	file("0-1", "node/online");
	file("0-1", "node/node0/cpulist");
	file("2-3", "node/node1/cpulist");
	expect(0xf, "machine(numa 0(core 0=0 core 1=1) numa 1(core 2=2 core 3=3))");
	file("1-3", "node/node1/cpulist");
	expect(0xf, NULL);
	root_end();
}

/* Two fast cores of two threads, and four slow ones that share a cache. */
static void two_kinds(void)
{
	root_begin();
	for (int cpu = 0; cpu < 8; cpu++) {
		static const char *const own[] = {"0-1", "0-1", "2-3", "2-3", "4", "5", "6", "7"};
		core(cpu, "0-7", "0-7", cpu < 4 ? own[cpu] : "4-7", own[cpu]);
	}
	expect(0xff, "machine(core 0(pu 0=0 pu 1=1) core 1(pu 2=2 pu 3=3) "
		     "L2 2(core 2=4 core 3=5 core 4=6 core 5=7))");
	root_end();
}

static void untold(void)
{
	root_begin();
	expect(0x3, NULL);
	core(0, NULL, "0-1", "0", "0");
	core(1, NULL, "0-1", "1", "1");
	expect(0x3, "machine(core 0=0 core 1=1)");
	root_end();
}

/* The leaves below each place. */
static void shape(char *text, size_t size)
{
	text[0] = 0;
	for (int i = 0; i < weft_topo_count(); i++) {
		const struct weft_topo_node *n = weft_topo_node(i);
		size_t len = strlen(text);
		snprintf(text + len, size - len, "%d:%d+%d=%d ", n->parent, n->first_leaf,
			 n->leaves, n->cpu);
	}
}

/* hwloc makes a place of a NUMA node only where its set is that of a group of its own. */
static void as_hwloc_says(void)
{
	char kernel[65536], hwloc[65536];
	CHECK_EQ(weft_topo_load(), WEFT_OK);
	shape(kernel, sizeof kernel);
	weft_topo_unload();
	setenv("HWLOC_THISSYSTEM", "1", 1);
	CHECK_EQ(weft_topo_load(), WEFT_OK);
	shape(hwloc, sizeof hwloc);
	if (strcmp(kernel, hwloc))
		fprintf(stderr, "kernel: %s\nhwloc:  %s\n", kernel, hwloc);
	CHECK(strcmp(kernel, hwloc) == 0 || access("/sys/devices/system/node/node1", F_OK) == 0);
}

int main(void)
{
	threads_of_cores();
	nodes_of_memory();
	two_kinds();
	untold();
	as_hwloc_says();
	return 0;
}
