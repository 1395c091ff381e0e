/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spawned.h - this mpiexec was started by MPI_Comm_spawn in a process of another job.
 *
 * WEFT_SPAWN_FD names a socket to that process.  Until it says that the ranks are connected to it,
 * its end is the end of this job.  A rank that cannot be started is reported there, not on stderr.
 *
 * Callers   the main thread only.  begin: first of all.
 */
#ifndef MPIEXEC_SPAWNED_H
#define MPIEXEC_SPAWNED_H

#include <stdbool.h>
#include <sys/types.h>

/* What ranks of a job of several hosts know about them, for the processes that they start: names as on the command
 * line, that of this host, and the command that starts an agent. */
#define JOB_HOSTS "WEFT_JOB_HOSTS"
#define JOB_HOST "WEFT_JOB_HOST"
#define JOB_RSH "WEFT_JOB_RSH"

#define SPAWNED_NAME "weft-spawn" /* of the process, for the keeper of the other job */

/* If so: goes on in a child, without any descriptor of the other process but that socket. */
void spawned_begin(void);
/* From now on: orphaned is called when the other process is gone too early. */
bool spawned_watch(void (*orphaned)(void));
/* Is it so? */
bool spawned_is(void);
/* These variables are another job's, which has nothing to do with this one. */
void spawned_forget_hosts(void);
/* True: the other process is told. */
bool spawned_tell(int rank, int error, int step);

#endif
