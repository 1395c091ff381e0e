/* SPDX-License-Identifier: BSD-3-Clause */
/* The shared memory driver keeps the contract, also where the kernel lacks things. */
#include "driver_suite.c"
#include "net/shm/shm_int.h"

static void with_less(struct weft_shm_lacks lacks)
{
	weft_net_shm_lacks = lacks;
	run_case(&weft_net_driver_shm, "flood with less", 2, case_flood);
	run_case(&weft_net_driver_shm, "sleep with less", 2, case_sleep);
	run_case(&weft_net_driver_shm, "left with less", 2, case_left);
	run_case(&weft_net_driver_shm, "copy with less", 2, case_copy);
	run_case(&weft_net_driver_shm, "regions with less", 2, case_regions);
	run_case(&weft_net_driver_shm, "killed with less", 2, case_killed_asleep);
	weft_net_shm_lacks = (struct weft_shm_lacks){0};
}

static void refuses_other_hosts(void)
{
	char key[WEFT_HOST_KEY_MAX], text[256];
	if (weft_net_host_key(key, sizeof key))
		return;
	snprintf(text, sizeof text, "shm1 %s weft-0", key);
	CHECK(weft_net_shm_same_host(text, key));
	snprintf(text, sizeof text, "shm1 %s0 weft-0", key);
	CHECK(!weft_net_shm_same_host(text, key));
	CHECK(!weft_net_shm_same_host("tcp1 10.0.0.1 80", key));
	CHECK(!weft_net_shm_same_host("", key));
}

int main(void)
{
	refuses_other_hosts();
	run_suite_together(&weft_net_driver_shm);
	/* More peers than the poll looks at each time. */
	run_case(&weft_net_driver_shm, "all to all of 12", 12, case_all_to_all);
	run_case(&weft_net_driver_shm, "sleep of 12", 12, case_sleep);
	with_less((struct weft_shm_lacks){.membarrier = true});
	with_less((struct weft_shm_lacks){.cma = true, .pidfd = true});
	return 0;
}
