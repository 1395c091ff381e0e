/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agent_rank.h - the ends of the agent's ranks: their output, their PMI socket, rank 0's stdin.
 *
 * Callers   the agent's main thread.
 */
#ifndef MPIEXEC_AGENT_RANK_H
#define MPIEXEC_AGENT_RANK_H

#include <sys/types.h>
#include "handover.h"
#include "link.h"

/* The link up, this host's number, its ranks.  False: errno says why. */
bool agent_ranks_init(struct link *up, int host, const uint32_t *ranks, int count);

/* Makes the ends of the i-th rank and asks the keeper to start it. */
bool agent_rank_start(int i, int keeper_sock, const struct handover *handover);

/* Its number among this host's ranks; -1: none of ours. */
int agent_rank_find(int rank);

/* Lines for the rank from the PMI server. */
void agent_rank_pmi(int i, const char *text, size_t len);
/* mpiexec has taken that many bytes of its stdout (0) or stderr (1). */
void agent_rank_taken(int i, int end, size_t bytes);
/* The rank's process has ended: sends what its PMI socket still holds. */
void agent_rank_ended(int i);
/* All processes have ended: sends the rest of each pipe, as far as its window allows. */
void agent_ranks_finish(void);

/* The pipe that becomes rank 0's stdin: our end.  Empty text: end of file. */
void agent_stdin_open(int fd);
/* Closes our copy of it, in the keeper. */
void agent_stdin_forget(void);
void agent_stdin_put(const char *text, size_t len);

#endif
