/* SPDX-License-Identifier: BSD-3-Clause */
/* The tcp driver keeps the contract, over the loopback. */
#include "driver_suite.c"

int main(void)
{
	run_suite_together(&weft_driver_tcp);
	return 0;
}
