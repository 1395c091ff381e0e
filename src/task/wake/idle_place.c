/* SPDX-License-Identifier: BSD-3-Clause */
/* idle_place.c - how many idle workers there are, and at which places of the tree. */
#include "task/engine_int.h"
#include "task/wake/idle.h"
#include "topo/topo.h"

#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

/* "package 0" is of level "package". */
static bool is_of(int place, const char *level)
{
	const char *name = weft_topo_node(place)->name;
	size_t n = strlen(level);
	return strncasecmp(name, level, n) == 0 && (name[n] == ' ' || !name[n]);
}

/* The nth place of the level, from left to right; -1: there are no more. */
static int nth_of(const char *level, int nth)
{
	for (int i = 0; i < weft_topo_count(); i++)
		if (is_of(i, level) && nth-- == 0)
			return i;
	return -1;
}

int weft_task_idle_spread(const char *level, int given, int spare, int *place_p, int room)
{
	int at = 0, places = 0;
	while (weft_topo_count() && nth_of(level, places) >= 0) /* ends with the tree */
		places++;
	/* A tree without that level, or with one such place, pruned: the machine is the place. */
	int n = given >= 0 ? given : places ? places : 1;
	if (given < 0 && n > spare)
		n = spare;
	n = n > room ? room : n;
	for (; at < n; at++)
		place_p[at] = places ? nth_of(level, at % places) : 0;
	return n > 0 ? n : 0;
}

static bool is_below(int leaf, int place)
{
	while (leaf >= 0 && leaf != place)
		leaf = weft_topo_node(leaf)->parent;
	return leaf == place;
}

bool weft_task_idle_bind(int place)
{
	unsigned long own[WEFT_TOPO_CPUS_MAX / (8 * sizeof(unsigned long))];
	unsigned long set[weft_countof(own)] = {0};
	bool any = false;
	if (place == 0 || !weft_topo_is_real() || !weft_topo_own_cpus(own))
		return false;
	for (int i = 0; i < weft_topo_count(); i++) {
		int cpu = weft_topo_node(i)->cpu;
		if (cpu < 0 || cpu >= WEFT_TOPO_CPUS_MAX || !is_below(i, place))
			continue;
		unsigned long bit = 1ul << ((size_t)cpu % (8 * sizeof *own));
		set[(size_t)cpu / (8 * sizeof *own)] |= own[(size_t)cpu / (8 * sizeof *own)] & bit;
		any |= (own[(size_t)cpu / (8 * sizeof *own)] & bit) != 0;
	}
	/* None of them may be used by engine threads: stay where others may go. */
	return any && syscall(SYS_sched_setaffinity, 0, sizeof set, set) == 0;
}
