/* SPDX-License-Identifier: BSD-3-Clause */
/* A set of cores has a NUMA node only if one node has all of them; lists of every shape are read. */
#include "topo/numa.h"
#include "check.h"

#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/weft-numa-XXXXXX";

static void node(const char *name, const char *list)
{
	char path[256];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	CHECK(mkdir(path, 0700) == 0);
	snprintf(path, sizeof path, "%s/%s/cpulist", dir, name);
	FILE *f = fopen(path, "w");
	CHECK(f && fputs(list, f) >= 0 && fclose(f) == 0);
}

static int of(int first, int second)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	if (first >= 0)
		CPU_SET((size_t)first, &set);
	if (second >= 0)
		CPU_SET((size_t)second, &set);
	struct weft_topo_numa numa;
	weft_topo_numa_read(dir, &numa);
	int node = weft_topo_numa_of(&numa, &set);
	weft_topo_numa_fini(&numa);
	return node;
}

int main(void)
{
	char command[64];
	CHECK(mkdtemp(dir) != NULL);
	node("node0", "0-3,8-11\n");
	node("node1", "4-7,12\n");
	node("node12", "13\n");
	node("node3", "\n");     /* memory without cores */
	node("node4", "14-");    /* nonsense */
	node("nodes", "0-99\n"); /* no node */
	CHECK_EQ(of(0, 11), 0);
	CHECK_EQ(of(3, 8), 0);
	CHECK_EQ(of(12, -1), 1);
	CHECK_EQ(of(13, 13), 12);
	CHECK_EQ(of(3, 4), -1);
	CHECK_EQ(of(99, -1), -1);
	CHECK_EQ(of(-1, -1), -1);
	struct weft_topo_numa none;
	cpu_set_t own;
	CHECK(sched_getaffinity(0, sizeof own, &own) == 0);
	weft_topo_numa_read("/nonexistent", &none);
	CHECK_EQ(weft_topo_numa_of(&none, &own), -1);
	weft_topo_numa_fini(&none);
	snprintf(command, sizeof command, "rm -r %s", dir);
	CHECK(system(command) == 0);
	return 0;
}
