/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * topo.h - the machine as a tree of places, pruned of levels without siblings.
 *
 * Place 0 is the root: all cores that this process may use.  Leaves are single processing units.
 * HWLOC_SYNTHETIC, HWLOC_XMLFILE and HWLOC_COMPONENTS work: what is not this machine gives a tree,
 * and running cores are spread over its leaves.
 *
 * Callers   load, unload: the starting thread.  The rest: anyone, after load; the tree never
 * changes. Errors    where discovery fails the tree is one root with a leaf per allowed core, or
 * the root alone; one debug line says so.
 */
#ifndef WEFT_TOPO_H
#define WEFT_TOPO_H

#include <sched.h>
#include <stdio.h>
#include "base/base.h"

struct weft_topo_node {
	char name[24];           /* "machine", "package 0", "core 3", "pu 7" */
	int parent;              /* -1: root */
	int first_child, childn; /* children are numbered one after the other */
	int rank;                /* which child of its parent */
	int depth;               /* root 0 */
	cpu_set_t cpus;
};

weft_err weft_topo_load(void) weft_must_use;
void weft_topo_unload(void);

int weft_topo_count(void);
const struct weft_topo_node *weft_topo_node(int i);

/* The leaf that holds the core. */
int weft_topo_leaf_of_cpu(int cpu);

/* The leaf where the caller runs at this moment. */
static inline int weft_topo_leaf_here(void)
{
	return weft_topo_leaf_of_cpu(sched_getcpu());
}

/* The smallest place that covers set; the root if none does.  NULL: the root. */
int weft_topo_cover(const cpu_set_t *set);

/* Is this tree the machine we run on? */
bool weft_topo_is_real(void);

/* The tree, a line per place. */
void weft_topo_describe(FILE *out);

#endif
