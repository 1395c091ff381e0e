/* SPDX-License-Identifier: BSD-3-Clause */
/* Thieves look at their own core's neighbours first, then at their package's, then further. */
#include <stdlib.h>
#include "base/settings.h"
#include "check.h"
#include "topo/topo.h"
#include "ult/ult_int.h"

int main(void)
{
	int cpu[16];
	uint16_t order[16];
	/* Not this machine: 2 packages of 4 cores with 2 units each, in the order of the leaves. */
	setenv("HWLOC_SYNTHETIC", "package:2 core:4 pu:2", 1);
	CHECK_EQ(weft_settings_load(), WEFT_OK);
	CHECK_EQ(weft_topo_load(), WEFT_OK);
	for (int i = 0; i < 16; i++)
		cpu[i] = i;
	for (int id = 0; id < 16; id++) {
		unsigned seen = 1u << id;
		weft_ult_near(cpu, 16, id, order);
		CHECK_EQ(order[0], id ^ 1); /* the other unit of the core */
		for (int k = 0; k < 15; k++) {
			CHECK_EQ(order[k] / 8 == id / 8, k < 7); /* the package */
			seen |= 1u << order[k];
		}
		CHECK_EQ(seen, 0xffff);
	}
	/* Workers that are bound nowhere: a ring. */
	for (int i = 0; i < 4; i++)
		cpu[i] = -1;
	weft_ult_near(cpu, 4, 2, order);
	CHECK(order[0] == 3 && order[1] == 0 && order[2] == 1);
	weft_topo_unload();
	return 0;
}
