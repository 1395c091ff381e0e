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

/* The node that has all of these cores; -1: none has, or the set is empty.  dir: of the kernel's nodes. */
int weft_topo_numa_of(const char *dir, const cpu_set_t *set);

#endif
