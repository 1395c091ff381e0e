/* SPDX-License-Identifier: BSD-3-Clause */
/* cpus.c - sets of cores to text and back. */
#include <string.h>
#include "comm/cpus.h"

static const char digits[] = "0123456789abcdef";

void weft_comm_cpus_print(const cpu_set_t *set, char text[WEFT_CPUS_TEXT])
{
	int n = 0;
	for (int d = 0; d < CPU_SETSIZE / 4; d++) {
		int value = 0;
		for (int bit = 0; bit < 4; bit++)
			value |= CPU_ISSET(4 * d + bit, set) ? 1 << bit : 0;
		text[d] = digits[value];
		if (value)
			n = d + 1;
	}
	text[n] = 0;
}

void weft_comm_cpus_add(const char *text, cpu_set_t *set)
{
	for (int d = 0; d < CPU_SETSIZE / 4 && text[d]; d++) {
		const char *at = strchr(digits, text[d]);
		if (!at)
			return;
		for (int bit = 0; bit < 4; bit++)
			if ((int)(at - digits) & 1 << bit)
				CPU_SET(4 * d + bit, set);
	}
}
