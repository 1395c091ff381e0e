/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * job.h - one job from its first rank to its exit code.
 *
 *	RUNNING --a failure--> FAILING --a moment--> ENDING --none left---> DRAINING --> exit
 *	   \--all have left, timeout, signal-----------^
 *
 * FAILING waits a moment, because the rank that died first is not always the first one heard of:
 * ranks that notice its death may ask for an abort before the keeper has reaped it.
 */
#ifndef MPIEXEC_JOB_H
#define MPIEXEC_JOB_H

#include "keeper.h"
#include "place.h"

struct job_setup {
	const struct plan *plan;
	const char *jobid;
	pid_t keeper;
	int sock; /* the keeper's */
	const struct place *place;
	const char *launcher; /* by which agents start; NULL: all ranks are on this machine */
	bool here_direct;     /* not needed for this host's own names */
	int signal_fd;        /* signals for mpiexec */
};

/* Runs the job and returns mpiexec's exit code. */
int job_run(const struct job_setup *setup);

#endif
