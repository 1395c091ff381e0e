/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agent.h - mpiexec on another host: starts that host's ranks and carries what they say.
 *
 *	mpiexec === ssh === agent ---- keeper ---- ranks
 *	                      \=== ssh === agent ...
 *
 * The agent is mpiexec's hand: it decides nothing.  It gives each rank pipes and a PMI socket as
 * mpiexec does on its own machine, and sends on what comes out of them, a window per pipe.  When its
 * connection ends or falls silent, it ends, and its keeper kills every process of the job there.
 */
#ifndef MPIEXEC_AGENT_H
#define MPIEXEC_AGENT_H

#define AGENT_WINDOW ((size_t)256 << 10) /* bytes of a pipe that may be on their way to mpiexec */

/* Runs as an agent over stdin and stdout; returns the exit code. */
int agent_main(int argc, char **argv);

#endif
