/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handover.h - what every rank gets over its inherited socket: the job's secret and name.
 *
 * The same bytes as in src/boot/secret.h: commands do not include a layer's private header, the
 * tests of both compare them by running.
 */
#ifndef MPIEXEC_HANDOVER_H
#define MPIEXEC_HANDOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HANDOVER_JOBID_MAX 64

struct handover {
	char magic[8];
	uint8_t secret[32];
	char jobid[HANDOVER_JOBID_MAX];
};

/* A fresh job name: 32 hexadecimal digits.  False: no random numbers. */
bool handover_name(char jobid[HANDOVER_JOBID_MAX]);

/* A copy on a page of its own that no core dump contains; NULL: errno says why. */
struct handover *handover_keep(const struct handover *from);

/* A fresh secret on a page of its own that no core dump contains; NULL: errno says why.
 * The caller wipes and unmaps it. */
struct handover *handover_create(const char *jobid);

#endif
