/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sysfs.h - the machine's tree, read from the kernel's own files.
 *
 * hwloc knows more, and loads its plug-ins for it: 5 ms of each process's start, where this takes a tenth.  So this
 * is asked first, and hwloc where it does not know.
 *
 * Callers   one thread at a time.
 * Owner     the places are the caller's (free).
 */
#ifndef WEFT_TOPO_SYSFS_H
#define WEFT_TOPO_SYSFS_H

#include "topo/topo.h"

/*
 * The tree of the cores in own (words words), pruned; leaves are not numbered.  root: "" or a folder that holds a
 * copy of /sys.  WEFT_ERR_UNSUPPORTED: the files are not there, or their sets overlap.
 */
weft_err weft_topo_sysfs_read(const char *root, const unsigned long *own, size_t words,
			      struct weft_topo_node **nodes_p, int *count_p) weft_must_use;

#endif
