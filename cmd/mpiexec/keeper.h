/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * keeper.h - the process between mpiexec and the ranks: starts them, and outlives mpiexec by the
 * moment it takes to end them.
 *
 *	mpiexec ---- keeper (own session, child subreaper) ---- rank 0 (own process group)
 *	                                                    \-- rank 1 ...
 *
 * mpiexec dies in any way: the socket closes, the keeper kills every descendant and ends.
 * The keeper dies: mpiexec, a subreaper too, inherits the ranks and kills them; its direct children
 * get SIGKILL from the kernel besides (parent-death signal).
 *
 * Wire      a stream socket, struct keeper_msg each way; SPAWN carries four descriptors.
 * Callers   keeper_start: mpiexec's only thread, before it starts others.
 */
#ifndef MPIEXEC_KEEPER_H
#define MPIEXEC_KEEPER_H

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>
#include "plan.h"

enum keeper_op {
	/* to the keeper */
	KEEPER_SPAWN = 1, /* rank; descriptors KEEPER_FDS */
	KEEPER_SIGNAL,    /* value: signal for every rank's group and every stray descendant */
	KEEPER_LEAVE,     /* END, once the jobs that ranks have spawned are over */
	KEEPER_END,       /* SIGTERM to all, SIGKILL 1.5 seconds later; then GONE */
	KEEPER_KILL,      /* SIGKILL to all; then GONE */
	/* from the keeper */
	KEEPER_STARTED, /* rank, value: pid */
	KEEPER_FAILED,  /* rank, value: errno, step: what failed */
	KEEPER_EXITED,  /* rank, value: wait status */
	KEEPER_GONE,    /* no descendant is left; the keeper ends */
};

enum keeper_step { KEEPER_STEP_FORK, KEEPER_STEP_WDIR, KEEPER_STEP_SETUP, KEEPER_STEP_EXEC };

struct keeper_msg {
	int32_t op, rank, value, step;
};

enum { KEEPER_FD_OUT, KEEPER_FD_ERR, KEEPER_FD_PMI, KEEPER_FD_BOOT, KEEPER_FDS };

struct keeper_setup {
	const struct plan *plan;
	sigset_t mask;                 /* signal mask for the ranks */
	unsigned long nofile;          /* soft limit of descriptors for the ranks */
	const int *locals;             /* of each rank its number on this machine; NULL: the rank */
	int local_count;               /* ranks on this machine */
	const struct bind_rank *binds; /* by number on this machine; NULL: none is bound */
	int argc;
	char **argv; /* overwritten in the keeper, to give it a name of its own */
	const char *jobid;
	void (*forget)(void); /* called in the keeper: closes what only its parent needs; or NULL */
};

/* Forks the keeper.  Returns its pid and our end of the socket, or -1 after a message. */
pid_t keeper_start(const struct keeper_setup *setup, int *sock_p);

/* Sends a message; fds: KEEPER_FDS descriptors (they stay ours) or NULL.  False: it is gone. */
bool keeper_send(int sock, struct keeper_msg msg, const int *fds);

/* Kills and reaps every descendant of this process: the last resort of both processes. */
void keeper_kill_all(void);

#endif
