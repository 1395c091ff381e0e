/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resource.h - kinds of hardware (a package, a cache, a core), and which one of each this process is
 * restricted to.
 *
 * Callers   any thread.  The machine is read whole, at the first call, not as topo.h's tree: a number
 *           means the same in all processes of a host.
 * Failure   without a machine that hwloc can read there are no kinds.
 */
#ifndef WEFT_TOPO_RESOURCE_H
#define WEFT_TOPO_RESOURCE_H

#include <sched.h>
#include "base/base.h"

#define WEFT_TOPO_RESOURCES_MAX 16
#define WEFT_TOPO_INSTANCES_MAX 8192 /* of a kind */
#define WEFT_TOPO_RESOURCE_PREFIX "hwloc://"

/* How many kinds, from large to small; -1: none of that name.  A name is hwloc's, with the prefix or
 * without, in letters of any case. */
int weft_topo_resources(void);
const char *weft_topo_resource_name(int kind);
int weft_topo_resource_find(const char *name);

/* For each kind the only one on which the process's first thread may run, or -1. */
void weft_topo_resource_here(int instance[WEFT_TOPO_RESOURCES_MAX]);
/* The same for a thread that may run on those cores. */
void weft_topo_resource_of(const cpu_set_t *cpus, int instance[WEFT_TOPO_RESOURCES_MAX]);

/* Where a process runs. */
struct weft_topo_place {
	int host;                        /* the same number for processes of one host */
	int at[WEFT_TOPO_RESOURCES_MAX]; /* -1: on several of that kind, or there is none */
};

/* The kinds in which two places of one host differ; 0: they share everything that either is restricted to. */
int weft_topo_place_distance(const struct weft_topo_place *a, const struct weft_topo_place *b);

#endif
