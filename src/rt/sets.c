/* SPDX-License-Identifier: BSD-3-Clause */
/* sets.c - asks comm/ which ranks are near, and gives them a name. */
#include "rt/sets.h"

#include <sched.h>
#include <stdlib.h>
#include "base/log.h"
#include "boot/psets.h"
#include "comm/comm.h"
#include "topo/numa.h"

static int numa_of(const struct weft_topo_numa *numa, int rank)
{
	cpu_set_t cpus;
	weft_comm_peer_cpus(weft_comm_home(), rank, &cpus);
	return weft_topo_numa_of(numa, &cpus);
}

static void add_pset(const char *name, const int *ranks, int n)
{
	weft_err err = weft_boot_psets_add(name, ranks, n);
	if (err)
		weft_info("process set %s is left out: %s", name, weft_strerror(err));
}

void weft_rt_name_sets(int rank, int size)
{
	int *ranks = malloc((size_t)size * sizeof *ranks);
	int hosts = 0, near = 0;
	struct weft_topo_numa numa;
	if (!ranks)
		return;
	weft_topo_numa_read(WEFT_TOPO_NUMA_DIR, &numa);
	int node = numa_of(&numa, rank);
	for (int p = 0; p < size; p++)
		if (weft_comm_same_host(weft_comm_home(), p))
			ranks[hosts++] = p;
	add_pset("weft://host", ranks, hosts);
	for (int i = 0; i < hosts && node >= 0; i++)
		if (numa_of(&numa, ranks[i]) == node)
			ranks[near++] = ranks[i];
	if (near)
		add_pset("weft://numa", ranks, near);
	weft_topo_numa_fini(&numa);
	free(ranks);
}
