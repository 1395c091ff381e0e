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
#include "bind.h"

#define PLAN_RANKS_MAX 65536

struct plan_var {
	const char *name, *value; /* value NULL: the one that mpiexec has */
};

struct plan_vars {
	struct plan_var *items;
	int count;
};

/* What of mpiexec's own environment a rank gets. */
enum plan_env {
	PLAN_ENV_UNSET, /* a program: as for all; for all: everything */
	PLAN_ENV_ALL,
	PLAN_ENV_NONE, /* PATH and what the options name */
};

struct plan_program {
	char **argv; /* NULL-terminated */
	int argc;
	int ranks;         /* how many; 0 while not given */
	int first;         /* rank of the first */
	const char *wdir;  /* or NULL */
	const char *path;  /* folders to look for it first, or NULL */
	const char *soft;  /* the numbers of ranks that will do, or NULL: ranks */
	const char *hosts; /* its own, or NULL; meant only where the plan says so */
	enum plan_env env;
	struct plan_vars vars;
};

struct plan {
	struct plan_program *programs;
	int program_count;
	int size; /* ranks of all programs */
	enum plan_env env;
	struct plan_vars vars; /* for every program */
	struct bind_wish bind;
	bool label;
	bool exit_codes;        /* print that of each rank */
	bool go_on;             /* a rank that fails does not end the job */
	double timeout_s;       /* 0: none */
	const char *timeout_by; /* the option or variable that set it */
	/* where output goes, NULL: to mpiexec's own; %r rank, %h host */
	const char *out_pattern, *err_pattern;
	const char *out_folder; /* a file per rank below it, and to mpiexec's own */
	bool out_folder_only;   /* not to mpiexec's own */
	/* other machines */
	const char *hosts;     /* "a,b", or NULL; those of all programs */
	bool hosts_by_program; /* a program behind the first has hosts of its own */
	const char *hostfile;  /* or NULL */
	const char *engine;    /* the launcher to hand over to; NULL: the first one found */
	const char *agent;     /* the command that starts a program on a host, or NULL */
	int per_host;          /* ranks per host, 0: not given */
	bool fill_hosts;       /* no -n: as many ranks as per_host gives on all hosts */
	/* the command line with the words of files in it */
	int argc;
	char **argv;
};

enum plan_result {
	PLAN_RUN,  /* go on */
	PLAN_DONE, /* help or version was printed: exit 0 */
	PLAN_BAD,  /* one line was printed: exit 2 */
};

/* Reads the command line. */
enum plan_result plan_parse(int argc, char **argv, struct plan *plan);

/* Gives the one program that many ranks, also in argv, which agents read. */
void plan_set_ranks(struct plan *plan, int ranks);

/* Does it ask for other machines, or for another engine? */
bool plan_is_remote(const struct plan *plan);

/* The program that the rank runs, and its number. */
const struct plan_program *plan_program_of(const struct plan *plan, int rank);
int plan_appnum_of(const struct plan *plan, int rank);

/* Memory for the plan: they end the process, after one line, where there is none. */
void *plan_grow(void *array, int count, size_t item); /* room for count + 1 */
char *plan_copy(const char *s, size_t n);

#endif
