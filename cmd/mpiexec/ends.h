/* SPDX-License-Identifier: BSD-3-Clause */
/* ends.h - the pipes and sockets between us and a rank that is about to start: ours and its. */
#ifndef MPIEXEC_ENDS_H
#define MPIEXEC_ENDS_H

#include <stdbool.h>
#include "keeper.h"

struct ends {
	int ours[KEEPER_FDS], theirs[KEEPER_FDS];
};

/* False: errno says why; those that were made are there, the others -1. */
bool ends_make(struct ends *e);
/* Closes KEEPER_FDS descriptors; -1: none, or handed over. */
void ends_close(const int *fds);

#endif
