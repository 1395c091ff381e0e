/* SPDX-License-Identifier: BSD-3-Clause */
/* resource.c - the whole machine as hwloc has it, level by level. */
#include "topo/resource.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include "base/assert.h"
#include "base/cancel.h"
#include "topo/hwloc_lib.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct weft_hwloc *hw; /* as machine */
static hwloc_topology_t machine;    /* under lock until made; it stays */
static bool tried;
static int kinds;
static struct {
	char name[40];
	int depth;
} kind_at[WEFT_TOPO_RESOURCES_MAX];

static void add_kind(int depth)
{
	char type[24];
	hwloc_obj_t first = hw->get_obj_by_depth(machine, depth, 0);

	if (!first || kinds == WEFT_TOPO_RESOURCES_MAX || first->type == HWLOC_OBJ_GROUP)
		return;
	hw->obj_type_snprintf(type, sizeof type, first, 0);
	/* A cache with its kind, L1d, is named as hwloc names the level: L1dCache. */
	bool cache = hw->obj_type_is_cache(first->type);
	snprintf(kind_at[kinds].name, sizeof kind_at[kinds].name, "%s%s%s",
		 WEFT_TOPO_RESOURCE_PREFIX, type, cache ? "Cache" : "");
	kind_at[kinds++].depth = depth;
}

/* NUMA nodes have a level of their own, beside those of the cores: they come before the first kind
 * of which there are more. */
static void list_kinds(void)
{
	int nodes = (int)hw->get_nbobjs_by_depth(machine, HWLOC_TYPE_DEPTH_NUMANODE);
	bool told = nodes < 1;

	for (int d = 0; d < hw->topology_get_depth(machine); d++) {
		if (!told && (int)hw->get_nbobjs_by_depth(machine, d) > nodes) {
			add_kind(HWLOC_TYPE_DEPTH_NUMANODE);
			told = true;
		}
		add_kind(d);
	}
	if (!told)
		add_kind(HWLOC_TYPE_DEPTH_NUMANODE);
}

static void read_machine_locked(void)
{
	weft_assert_held(weft_mutex, &lock);
	tried = true;
	hw = weft_hwloc();
	if (!hw || hw->topology_init(&machine))
		return;
	/* Cores that we may not use count, too: numbers must agree with other processes'. */
	(void)hw->topology_set_flags(
		machine, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED | HWLOC_TOPOLOGY_FLAG_NO_DISTANCES |
				 HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS | HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS);
	if (hw->topology_load(machine)) {
		hw->topology_destroy(machine);
		return;
	}
	list_kinds();
}

int weft_topo_resources(void)
{
	int was = weft_cancel_off();
	pthread_mutex_lock(&lock);
	if (!tried)
		read_machine_locked();
	int n = kinds;
	pthread_mutex_unlock(&lock);
	weft_cancel_back(was);
	return n;
}

const char *weft_topo_resource_name(int kind)
{
	return kind_at[kind].name;
}

int weft_topo_resource_find(const char *name)
{
	int n = weft_topo_resources();
	size_t skip = sizeof WEFT_TOPO_RESOURCE_PREFIX - 1;
	bool whole = strncasecmp(name, WEFT_TOPO_RESOURCE_PREFIX, skip) == 0;

	for (int i = 0; i < n; i++)
		if (strcasecmp(name + (whole ? skip : 0), kind_at[i].name + skip) == 0)
			return i;
	return -1;
}

/* The object of that level that has all of set; -1: none has. */
static int only_one(int depth, hwloc_const_bitmap_t set)
{
	unsigned n = hw->get_nbobjs_by_depth(machine, depth);

	for (unsigned i = 0; i < n; i++) {
		hwloc_obj_t o = hw->get_obj_by_depth(machine, depth, i);
		if (o->cpuset && hw->bitmap_isincluded(set, o->cpuset))
			return (int)o->logical_index;
	}
	return -1;
}

static bool cores_of(const cpu_set_t *cpus, hwloc_bitmap_t set)
{
	for (unsigned c = 0; c < CPU_SETSIZE; c++)
		if (CPU_ISSET(c, cpus))
			hw->bitmap_set(set, c);
	/* A machine from a description may have fewer cores. */
	hw->bitmap_and(set, set, hw->topology_get_complete_cpuset(machine));
	return !hw->bitmap_iszero(set);
}

void weft_topo_resource_of(const cpu_set_t *cpus, int instance[WEFT_TOPO_RESOURCES_MAX])
{
	int n = weft_topo_resources();
	hwloc_bitmap_t set = n ? hw->bitmap_alloc() : NULL;
	bool known = set && cores_of(cpus, set);

	for (int i = 0; i < WEFT_TOPO_RESOURCES_MAX; i++)
		instance[i] = i < n && known ? only_one(kind_at[i].depth, set) : -1;
	if (set)
		hw->bitmap_free(set);
}

void weft_topo_resource_here(int instance[WEFT_TOPO_RESOURCES_MAX])
{
	cpu_set_t own;

	if (sched_getaffinity(getpid(), sizeof own, &own))
		CPU_ZERO(&own);
	weft_topo_resource_of(&own, instance);
}

int weft_topo_place_distance(const struct weft_topo_place *a, const struct weft_topo_place *b)
{
	int far = 0;

	for (int i = 0; i < WEFT_TOPO_RESOURCES_MAX; i++)
		far += a->at[i] != b->at[i];
	return far;
}
