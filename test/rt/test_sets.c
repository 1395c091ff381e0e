/* SPDX-License-Identifier: BSD-3-Clause */
/* After the start the ranks of this host have a name, and those of this NUMA node where cores have one. */
#include "boot/boot.h"
#include "boot/psets.h"
#include "check.h"
#include "rt/rt.h"
#include "topo/numa.h"

int main(void)
{
	const struct weft_boot_info *info;
	struct weft_boot_pset s;
	cpu_set_t own;
	CHECK_EQ(weft_rt_start(&info), WEFT_OK);
	CHECK_EQ(weft_boot_psets_find("weft://host", &s), WEFT_OK);
	CHECK(s.size == 1 && weft_boot_pset_rank(&s, 0) == 0);
	CHECK(sched_getaffinity(0, sizeof own, &own) == 0);
	struct weft_topo_numa numa;
	weft_topo_numa_read(WEFT_TOPO_NUMA_DIR, &numa);
	bool one_node = weft_topo_numa_of(&numa, &own) >= 0;
	weft_topo_numa_fini(&numa);
	CHECK_EQ(weft_boot_psets_find("weft://numa", &s), one_node ? WEFT_OK : WEFT_ERR_NOENT);
	CHECK_EQ(weft_boot_psets_count(), one_node ? 4 : 3);
	weft_rt_stop();
	CHECK_EQ(weft_boot_psets_count(), 0);
	return 0;
}
