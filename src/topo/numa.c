/* SPDX-License-Identifier: BSD-3-Clause */
/* numa.c - reads "0-3,8-11", the kernel's list of a node's cores. */
#include "topo/numa.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Takes the cores of a list out of set; false: no list. */
static bool take_list(const char *text, cpu_set_t *set)
{
	while (*text >= '0' && *text <= '9') { /* ends: each turn moves on */
		char *end;
		long first = strtol(text, &end, 10), last = first;
		if (*end == '-')
			last = strtol(end + 1, &end, 10);
		for (long c = first; c <= last && c < CPU_SETSIZE; c++)
			CPU_CLR((size_t)c, set);
		text = end + (*end == ',');
	}
	return *text == '\n' || !*text;
}

static bool node_has_all(const char *dir, const char *node, const cpu_set_t *set)
{
	char path[512], line[4096] = "";
	cpu_set_t others = *set;
	snprintf(path, sizeof path, "%.200s/%.200s/cpulist", dir, node);
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	bool read = fgets(line, sizeof line, f) != NULL;
	fclose(f);
	return read && take_list(line, &others) && !CPU_COUNT(&others);
}

int weft_topo_numa_of(const char *dir, const cpu_set_t *set)
{
	int found = -1;
	DIR *d = CPU_COUNT(set) ? opendir(dir) : NULL;
	if (!d)
		return -1;
	for (struct dirent *e; found < 0 && (e = readdir(d));) { /* ends with the folder */
		char *end;
		long n = strncmp(e->d_name, "node", 4) ? -1 : strtol(e->d_name + 4, &end, 10);
		if (n >= 0 && end != e->d_name + 4 && !*end && node_has_all(dir, e->d_name, set))
			found = (int)n;
	}
	closedir(d);
	return found;
}
