/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agent_setup.h - what an agent has to know: the body of FRAME_SETUP.
 *
 * Owner     read: the strings lie in the body, which the caller keeps; arrays are the reader's.
 * Errors    read gives false for what is cut off or makes no sense.
 */
#ifndef MPIEXEC_AGENT_SETUP_H
#define MPIEXEC_AGENT_SETUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "handover.h"

struct agent_setup {
	struct handover handover; /* the job's secret and name */
	uint32_t host;            /* number of this host */
	const char *name;         /* its name on mpiexec's command line */
	const char *folder;       /* where mpiexec runs */
	uint32_t mode;            /* its umask */
	const char *launcher;     /* the command that starts an agent */
	const char *program;      /* path of mpiexec */
	uint32_t fanout, silence;
	char **argv; /* of mpiexec */
	uint32_t argc;
	char **env; /* NAME=VALUE */
	uint32_t envc;
	uint32_t *ranks; /* those of this host */
	uint32_t rankc;
	char **slots; /* of each of them what a rankfile says; slotc 0: no rankfile */
	uint32_t slotc;
	uint32_t below; /* number of the first host whose agent this one starts */
	char **hosts;   /* their names */
	uint32_t hostc;
};

/* The body, to be wiped and freed; NULL: no memory. */
char *agent_setup_write(const struct agent_setup *s, size_t *len_p);
bool agent_setup_read(struct agent_setup *s, char *body, size_t len);

#endif
