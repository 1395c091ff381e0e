/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * remote.h - mpiexec's side of the agents: many keepers on many hosts, looked at as one.
 *
 * Callers   the main thread; job.c owns the job's life and hears what happens by the hooks.
 * Order     of one rank: what it wrote and said before it ended comes before its end.
 */
#ifndef MPIEXEC_REMOTE_H
#define MPIEXEC_REMOTE_H

#include "handover.h"
#include "keeper.h"
#include "place.h"
#include "stream.h"

struct remote_hooks {
	void (*heard)(const struct keeper_msg *m);    /* KEEPER_GONE once: from the last host */
	void (*host_lost)(int host, const char *why); /* why: NULL, a line has said it */
	bool (*way)(int rank, bool err, struct stream_way *way_p);
};

struct remote_setup {
	const struct plan *plan;
	const struct place *place;
	const struct handover *handover; /* stays until remote_needs_secret says no */
	const char *launcher;            /* the command that starts an agent */
	bool here_direct;                /* not used for this host's own names */
	const struct remote_hooks *hooks;
};

/* The command that starts agents where no engine does: option, setting WEFT_RSH, or ssh. */
const char *remote_launcher(const struct plan *plan);

/* Starts the agents; ranks follow as each answers.  False: after one line. */
bool remote_start(const struct remote_setup *setup);

/* To every host: KEEPER_SIGNAL, KEEPER_END, KEEPER_KILL. */
void remote_command(enum keeper_op op, int value);
/* mpiexec stops: agents shall not take its silence for its end. */
void remote_pause(void);

/* Does a host still need the secret? */
bool remote_needs_secret(void);
/* Looks after silence; milliseconds until the next look. */
int remote_tick(void);
/* The job is over: parts with the agents. */
void remote_end(void);

#endif
