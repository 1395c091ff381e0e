/* SPDX-License-Identifier: BSD-3-Clause */
/* A process's messages to itself keep the contract of drivers. */
#include "driver_suite.c"

int main(void)
{
	run_suite_alone(&weft_net_driver_self);
	return 0;
}
