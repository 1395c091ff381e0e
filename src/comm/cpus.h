/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cpus.h - a set of cores as text: ranks publish where they may run.
 *
 * Callers   any thread; the functions keep nothing.
 */
#ifndef WEFT_CPUS_H
#define WEFT_CPUS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sched.h>
#include <stddef.h>

#define WEFT_CPUS_TEXT (CPU_SETSIZE / 4 + 1)

/* Hexadecimal, the first digit holds cores 0 to 3; as long as it has to be. */
void weft_comm_cpus_print(const cpu_set_t *set, char text[WEFT_CPUS_TEXT]);
/* Adds the cores of text, up to its first character that is no digit. */
void weft_comm_cpus_add(const char *text, cpu_set_t *set);

#endif
