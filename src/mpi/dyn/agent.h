/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agent.h - the process that starts the children of MPI_Comm_spawn: weft's own mpiexec, whatever has
 * started this job.
 *
 * It ends the children when its control socket closes before release: this process has died, or did
 * not get them all.  After release it ends them as any job, when one of them dies.
 *
 * Callers   one thread at a time per agent.
 * Owner     the agent is the caller's until release or end.
 */
#ifndef WEFT_MPI_AGENT_H
#define WEFT_MPI_AGENT_H

#include "base/base.h"

/* What mpiexec says when it cannot start a rank; the same in cmd/mpiexec/spawned.c. */
struct weft_mpi_agent_word {
	int32_t rank, error, step; /* errno; 1: its working directory, 3: the program itself */
};

struct weft_mpi_agent {
	int fd; /* readable: it has something to say, or is gone */
};

/* argv: of mpiexec, without its name; port: the children call there.  An MPI error code. */
int weft_mpi_agent_start(char **argv, const char *port, struct weft_mpi_agent *agent);
/* Once fd is readable, or the children have failed otherwise.  False: it is gone without a word. */
bool weft_mpi_agent_word(struct weft_mpi_agent *agent, struct weft_mpi_agent_word *word);
/* The children are connected, and live on without us. */
void weft_mpi_agent_release(struct weft_mpi_agent *agent);
void weft_mpi_agent_end(struct weft_mpi_agent *agent);

#endif
