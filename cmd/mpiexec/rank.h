/* SPDX-License-Identifier: BSD-3-Clause */
/* rank.h - starts the process of one rank: group, cores, directory, environment, descriptors. */
#ifndef MPIEXEC_RANK_H
#define MPIEXEC_RANK_H

#include "keeper.h"

struct rank_failure {
	int step, error; /* enum keeper_step, errno */
};

/* Called in the keeper.  Waits until the program runs; returns its pid, or -1 and *failure_p. */
pid_t rank_spawn(const struct keeper_setup *setup, int rank, const int fds[KEEPER_FDS],
		 struct rank_failure *failure_p);

#endif
