/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * numa.h - on which NUMA node cores are, as the kernel tells it.
 *
 * Callers   any thread.  Blocking: reads small files of the kernel.
 * Errors    a machine that tells nothing has no nodes.
 */
#ifndef WEFT_TOPO_NUMA_H
#define WEFT_TOPO_NUMA_H

#include <sched.h>

#define WEFT_TOPO_NUMA_DIR "/sys/devices/system/node"

struct weft_topo_numa {
	int count;
	struct weft_topo_numa_node {
		int number;
		cpu_set_t cpus;
	} * node;
};

/* Reads the nodes that have cores below dir, the kernel's folder of nodes.  To be ended with fini, whatever it has found. */
void weft_topo_numa_read(const char *dir, struct weft_topo_numa *numa);
void weft_topo_numa_fini(struct weft_topo_numa *numa);

/* The node that has all of these cores; -1: none has, or the set is empty. */
int weft_topo_numa_of(const struct weft_topo_numa *numa, const cpu_set_t *set);

#endif
