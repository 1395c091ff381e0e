/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_busy.h - a process beside the ranks that computes, as another user's program would: in a session of its own, so that
 * the kernel gives it a share beside the whole job's.
 */
#ifndef WEFT_BENCH_BUSY_H
#define WEFT_BENCH_BUSY_H

#include "bench.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Before MPI starts.  It ends with its parent, or with bench_busy_end. */
static inline pid_t bench_busy_start(void)
{
	pid_t parent = getpid(), child = fork();
	if (child)
		return child;
	(void)setsid();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == parent) /* ends: killed, or without a parent */
		(void)bench_compute(1000000);
	_exit(0);
}

static inline void bench_busy_end(pid_t child)
{
	if (child <= 0)
		return;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

#endif
