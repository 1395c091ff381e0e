/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * topo.h - the machine as a tree of places, pruned of levels without siblings.
 *
 * Place 0 is the root: all cores that this process may use.  Leaves are single processing units, up
 * to 8,192 of them.
 * HWLOC_SYNTHETIC, HWLOC_XMLFILE and HWLOC_COMPONENTS work: what is not this machine gives a tree,
 * and running cores are spread over its leaves.
 *
 * Callers   load, unload: the starting thread.  The rest: any thread, after load; the tree never
 *           changes.
 * Errors    where discovery fails the tree is one root with a leaf per allowed core, or the root
 *           alone; one debug line says so.
 */
#ifndef WEFT_TOPO_H
#define WEFT_TOPO_H

#include <sched.h>
#include "base/base.h"

struct weft_topo_node {
	char name[24];           /* "machine", "package 0", "core 3", "pu 7" */
	int parent;              /* -1: root */
	int first_child, childn; /* children are numbered one after the other */
	int rank;                /* which child of its parent */
	int depth;               /* root 0 */
	int first_leaf, leaves;  /* leaves are numbered from left to right */
	int cpu;                 /* a leaf's core in the system's count; -1: no leaf */
};

weft_err weft_topo_load(void) weft_must_use;
/* The same, anew if the cores that we may use, or what hwloc is told, have changed.  No thread looks
 * at the tree, but for those stalled in the midst of a look: the old tree stays. */
weft_err weft_topo_load_again(void) weft_must_use;
/* No thread looks at it any more. */
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

/*
 * The smallest place that covers those cores of set that are in the tree; the root when none is, or
 * set is NULL.  bytes: of *set, as for sched_setaffinity; 0: sizeof(cpu_set_t).
 */
int weft_topo_cover(const cpu_set_t *set, size_t bytes);

/* The caller's leaf if its core is in set, else that of set's first core in the tree; -1: none.
 * NULL: the caller's. */
int weft_topo_leaf_in(const cpu_set_t *set, size_t bytes);

static inline bool weft_topo_in_set(const cpu_set_t *set, size_t bytes, int cpu)
{
	bytes = bytes ? bytes : sizeof(cpu_set_t);
	return cpu >= 0 && (size_t)cpu < bytes * 8 && CPU_ISSET_S(cpu, bytes, set);
}

/* Binds the calling thread to a leaf's core.  False: the system does not let it. */
bool weft_topo_bind_self(int leaf);

#define WEFT_TOPO_CPUS_MAX 8192

/* The cores that the calling thread may use, in a set of WEFT_TOPO_CPUS_MAX; false: unknown. */
bool weft_topo_own_cpus(unsigned long *set_p);

/* Is this tree the machine we run on? */
bool weft_topo_is_real(void);

#endif
