/* SPDX-License-Identifier: BSD-3-Clause */
/* near.c - in which order a worker looks at the others: nearest first, by the machine's tree. */
#include "base/assert.h"
#include "ult/ult_int.h"

#include <stdlib.h>
#include "topo/topo.h"

/* The depth of the smallest place that holds both cores: the deeper the nearer. */
static int common_depth(int cpu_a, int cpu_b)
{
	int a = cpu_a < 0 ? -1 : weft_topo_leaf_of_cpu(cpu_a);
	int b = cpu_b < 0 ? -1 : weft_topo_leaf_of_cpu(cpu_b);
	if (a < 0 || b < 0)
		return 0;
	while (a != b) { /* ends: at the root */
		const struct weft_topo_node *na = weft_topo_node(a), *nb = weft_topo_node(b);
		if (na->depth >= nb->depth)
			a = na->parent;
		if (nb->depth >= na->depth)
			b = nb->parent;
	}
	return weft_topo_node(a)->depth;
}

void weft_ult_near(const int *cpu, int n, int id, uint16_t *order)
{
	int depth[WEFT_ULT_WORKERS_MAX], count = 0;
	/* A tree that is not there puts all at one distance. */
	bool tree = n > 2 && weft_topo_load() == WEFT_OK;
	for (int d = 1; d < n; d++) {
		int other = (id + d) % n, at = count++;
		int here = tree ? common_depth(cpu[id], cpu[other]) : 0;
		/* By insertion: those of one distance stay in a ring's order, so that not all
		 * begin with the same one. */
		for (; at > 0 && depth[at - 1] < here; at--) { /* ends: at the front */
			depth[at] = depth[at - 1];
			order[at] = order[at - 1];
		}
		weft_assert(at < n - 1 && other != id);
		depth[at] = here;
		order[at] = (uint16_t)other;
	}
}
