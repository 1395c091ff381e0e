/* SPDX-License-Identifier: BSD-3-Clause */
/* descriptors.h - descriptors for many ranks. */
#ifndef MPIEXEC_DESCRIPTORS_H
#define MPIEXEC_DESCRIPTORS_H

#include <sys/resource.h>

/* Raises the soft limit to what the ranks need; returns the one that was set before, or 0 after a
 * message. */
rlim_t descriptors_raise(int ranks, int per_rank);

#endif
