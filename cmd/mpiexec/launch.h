/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launch.h - starts the agents of a share of the hosts: a child link per part of the share.
 *
 * A share of more hosts than `fanout` is cut into as many parts; the first host of each part gets an
 * agent from us, which starts those of the rest.
 *
 * Callers   the main thread: mpiexec for all hosts, an agent for those below it.
 */
#ifndef MPIEXEC_LAUNCH_H
#define MPIEXEC_LAUNCH_H

#include <sys/types.h>
#include "link.h"

struct launch {
	const char *command; /* that starts an agent: words, the host follows */
	const char *program; /* path of mpiexec, the same on every host */
	int first;           /* number of the first host of the share */
	int count;
	char *const *names; /* of the share's hosts */
	int fanout;
	bool here_direct; /* the command is not used for names of this host */
	/* greet, frame and lost of a part's link; its `parts` entry is around the link */
	void (*greet)(struct link *l);
	void (*frame)(struct link *l, const struct frame *f, const char *body);
	void (*lost)(struct link *l, const char *why);
};

struct part {
	struct link link;
	int first, count; /* hosts: the agent's own, and those below it */
	const char *name; /* of the first */
	pid_t pid;        /* of the command */
	int errors;       /* what the command says on stderr, or -1 */
};

/* Starts one agent per part; *parts_p has *count_p of them.  pipes: their stderr comes to `errors`, else
 * to our own.  False: after one line; those that were started are there. */
bool launch_parts(const struct launch *l, bool pipes, struct part **parts_p, int *count_p);

/* Why the command of a part ended, in words; waits a moment for its end. */
const char *launch_why(struct part *p, const struct launch *l, const char *why);

/* Parts with the agent and waits a moment for the command's end. */
void launch_part_with(struct part *p);

/* The part of the host; NULL: none. */
struct part *launch_part_of(struct part *parts, int count, int host);

/* Is this a name of the machine we are on? */
bool launch_is_here(const char *name);

#endif
