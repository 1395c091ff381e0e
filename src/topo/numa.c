/* SPDX-License-Identifier: BSD-3-Clause */
/* numa.c - reads "0-3,8-11", the kernel's list of a node's cores. */
#include "topo/numa.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The cores of a list; false: no list, or an empty one. */
static bool read_list(const char *text, cpu_set_t *set)
{
	CPU_ZERO(set);
	while (*text >= '0' && *text <= '9') { /* ends: each turn moves on */
		char *end;
		long first = strtol(text, &end, 10), last = first;
		if (*end == '-')
			last = strtol(end + 1, &end, 10);
		for (long c = first; c <= last && c < CPU_SETSIZE; c++)
			CPU_SET((size_t)c, set);
		text = end + (*end == ',');
	}
	return (*text == '\n' || !*text) && CPU_COUNT(set);
}

static bool read_node(const char *dir, const char *node, cpu_set_t *set)
{
	char path[512], line[4096];
	snprintf(path, sizeof path, "%.200s/%.200s/cpulist", dir, node);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, line, sizeof line - 1);
	close(fd);
	line[n > 0 ? n : 0] = 0;
	return n > 0 && read_list(line, set);
}

static bool add_node(struct weft_topo_numa *numa, int number, const cpu_set_t *cpus)
{
	struct weft_topo_numa_node *more =
		realloc(numa->node, (size_t)(numa->count + 1) * sizeof *more);
	if (!more)
		return false;
	more[numa->count++] = (struct weft_topo_numa_node){number, *cpus};
	numa->node = more;
	return true;
}

void weft_topo_numa_read(const char *dir, struct weft_topo_numa *numa)
{
	*numa = (struct weft_topo_numa){0};
	DIR *d = opendir(dir);
	if (!d)
		return;
	bool good = true;
	for (struct dirent *e; good && (e = readdir(d));) { /* ends with the folder */
		char *end;
		cpu_set_t cpus;
		long n = strncmp(e->d_name, "node", 4) ? -1 : strtol(e->d_name + 4, &end, 10);
		if (n >= 0 && end != e->d_name + 4 && !*end && read_node(dir, e->d_name, &cpus))
			good = add_node(numa, (int)n, &cpus);
	}
	closedir(d);
}

void weft_topo_numa_fini(struct weft_topo_numa *numa)
{
	free(numa->node);
}

int weft_topo_numa_of(const struct weft_topo_numa *numa, const cpu_set_t *set)
{
	for (int i = 0; i < numa->count && CPU_COUNT(set); i++) {
		cpu_set_t there;
		CPU_AND(&there, &numa->node[i].cpus, set);
		if (CPU_EQUAL(&there, set))
			return numa->node[i].number;
	}
	return -1;
}
