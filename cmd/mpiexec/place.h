/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * place.h - which rank runs on which host, and as which of that host's ranks.
 *
 * A host takes ranks in blocks: as many as -ppn or its slots say, else one; the last host done, the
 * first takes its next block.  --map-by node takes one at a time, a rankfile says all by itself.
 *
 * Callers   the main thread, before anything is started.
 * Owner     the tables live until the process ends.
 */
#ifndef MPIEXEC_PLACE_H
#define MPIEXEC_PLACE_H

#include "hosts.h"
#include "plan.h"

struct place {
	struct host_list hosts; /* at least one; this machine alone: "" */
	int *host_of;           /* by rank */
	int *locals;            /* by rank: which of its host's ranks it is */
	int *counts;            /* ranks by host */
	const char **slots;     /* by rank: of a rankfile, or NULL; NULL: no rankfile */
};

/* False: after one line. */
bool place_make(const struct plan *plan, bool remote, struct place *place);

/* What PMI-1 calls PMI_process_mapping, in as few words as it allows; to be freed. */
char *place_mapping(const struct place *place, int size);

#endif
