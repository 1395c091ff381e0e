/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan.h - what the command line asks for: programs, their number of ranks, their surroundings.
 *
 * Callers   the main thread, once, before anything is started.
 * Owner     the plan owns its strings until the process ends.
 */
#ifndef MPIEXEC_PLAN_H
#define MPIEXEC_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#define PLAN_RANKS_MAX 65536

struct plan_var {
	const char *name, *value;
};

struct plan_vars {
	struct plan_var *items;
	int count;
};

struct plan_program {
	char **argv; /* NULL-terminated */
	int argc;
	int ranks;        /* how many */
	int first;        /* rank of the first */
	const char *wdir; /* or NULL */
	struct plan_vars vars;
};

struct plan {
	struct plan_program *programs;
	int program_count;
	int size;              /* ranks of all programs */
	struct plan_vars vars; /* for every program */
	bool bind_core;
	bool label;
	double timeout_s; /* 0: none */
	/* other machines */
	const char *hosts;    /* "a,b", or NULL */
	const char *hostfile; /* or NULL */
	const char *engine;   /* the launcher to hand over to; NULL: the first one found */
	int per_host;         /* ranks per host, 0: not given */
};

enum plan_result {
	PLAN_RUN,  /* go on */
	PLAN_DONE, /* help or version was printed: exit 0 */
	PLAN_BAD,  /* one line was printed: exit 2 */
};

/* Reads the command line. */
enum plan_result plan_parse(int argc, char **argv, struct plan *plan);

/* Does it ask for other machines, or for another engine? */
bool plan_is_remote(const struct plan *plan);

#endif
