/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many idle workers there are and where, on made-up machines: one per place of the level, as
 * many as are given in turn over its places, never on the last core that computes.
 */
#include <stdlib.h>
#include <string.h>
#include "check.h"
#include "task/engine_int.h"
#include "task/wake/idle.h"
#include "topo/topo.h"

enum { ROOM = 64 };

static int place[ROOM];

static int spread(const char *level, int given, int spare)
{
	return weft_task_idle_spread(level, given, spare, place, ROOM);
}

static void load(const char *synthetic)
{
	setenv("HWLOC_SYNTHETIC", synthetic, 1);
	CHECK_EQ(weft_topo_load(), WEFT_OK);
	/* Without hwloc the tree is this machine's. */
	if (weft_topo_is_real())
		SKIP("no made-up machines here");
}

static void each_its_own(int n, const char *name)
{
	for (int i = 0; i < n; i++) {
		char want[32];
		snprintf(want, sizeof want, "%s %d", name, i);
		CHECK_EQ(strcmp(weft_topo_node(place[i])->name, want), 0);
	}
}

int main(void)
{
	load("pack:4 core:8 pu:2");
	CHECK_EQ(spread("package", -1, 63), 4); /* one per socket */
	each_its_own(4, "package");
	CHECK_EQ(spread("core", -1, 63), 32);
	each_its_own(32, "core");
	CHECK_EQ(spread("machine", -1, 63), 1);
	CHECK_EQ(place[0], 0);
	CHECK_EQ(spread("package", -1, 3), 3); /* of four cores one computes */
	CHECK_EQ(spread("package", -1, 0), 0);
	CHECK_EQ(spread("package", 0, 63), 0);
	CHECK_EQ(spread("package", 6, 0), 6); /* what is given is given */
	each_its_own(4, "package");
	CHECK_EQ(place[4], place[0]);
	CHECK_EQ(place[5], place[1]);
	CHECK_EQ(spread("package", 1000, 63), ROOM);
	CHECK_EQ(spread("nonsense", -1, 63), 1);
	CHECK_EQ(place[0], 0);
	CHECK(!weft_task_idle_bind(place[0])); /* not this machine */
	weft_topo_unload();
	load("pack:1 core:16 pu:1"); /* one socket: its place is the machine's */
	CHECK_EQ(spread("package", -1, 15), 1);
	CHECK_EQ(place[0], 0);
	weft_topo_unload();
	CHECK_EQ(spread("package", -1, 15), 1); /* no tree yet */
	return 0;
}
