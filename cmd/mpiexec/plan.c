/* SPDX-License-Identifier: BSD-3-Clause */
/* plan.c - reads the command line; each option in one table. */
#include "plan.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "say.h"

enum option {
	OPT_NP,
	OPT_X,
	OPT_ENV,
	OPT_GENV,
	OPT_WDIR,
	OPT_BIND,
	OPT_TIMEOUT,
	OPT_LABEL,
	OPT_IGNORED,
	OPT_HOSTS,
	OPT_HOSTFILE,
	OPT_PER_HOST,
	OPT_ENGINE,
	OPT_HELP,
	OPT_VERSION,
};

struct option_row {
	const char *names; /* "a|b": one or two dashes before either */
	enum option id;
	int args;
	const char *shown, *help;
};

static const struct option_row rows[] = {
	{"n|np|c", OPT_NP, 1, "-n N, -np N", "ranks of the program that follows (default 1)"},
	{"x", OPT_X, 1, "-x VAR[=VALUE]", "sets VAR for this program, or checks that it is set"},
	{"env", OPT_ENV, 2, "-env VAR VALUE", "sets VAR for this program"},
	{"genv", OPT_GENV, 2, "-genv VAR VALUE", "sets VAR for all programs"},
	{"wdir|wd", OPT_WDIR, 1, "--wdir DIR", "working directory of this program"},
	{"bind-to", OPT_BIND, 1, "--bind-to core|none", "one core per rank, or all (default none)"},
	{"timeout", OPT_TIMEOUT, 1, "--timeout SECONDS", "ends the job after that; exit code 124"},
	{"l|label|tag-output|prepend-rank", OPT_LABEL, 0, "-l, --label",
	 "\"[rank] \" before each line"},
	{"oversubscribe|allow-run-as-root|envall|genvall", OPT_IGNORED, 0, "--oversubscribe",
	 "accepted: more ranks than cores are always allowed"},
	{"hosts|host|H", OPT_HOSTS, 1, "--hosts A,B",
	 "other machines: hands over to srun, prterun or Hydra"},
	{"f|hostfile|machinefile", OPT_HOSTFILE, 1, "-f FILE, --hostfile FILE",
	 "the same, hosts in a file"},
	{"ppn", OPT_PER_HOST, 1, "-ppn N", "the same, N ranks per host"},
	{"engine", OPT_ENGINE, 1, "--engine NAME", "hands over to srun, prterun or mpiexec.hydra"},
	{"h|help", OPT_HELP, 0, "-h, --help", "this text"},
	{"V|version", OPT_VERSION, 0, "--version", "the version"},
};

static void print_help(void)
{
	printf("Usage: mpiexec [options] program [arguments] [: [options] program ...]\n"
	       "Starts the ranks of an MPI job on this machine and ends all of them together.\n\n");
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		printf("  %-26s %s\n", rows[i].shown, rows[i].help);
	printf("\nstdin goes to rank 0. The exit code is that of the first rank that fails,\n"
	       "128 + N for signal N, 127 for a program that is not found, 2 for a wrong option.\n"
	       "Ctrl-C asks the ranks to end, a second one ends them at once.\n");
}

static const struct option_row *find_option(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const char *p = rows[i].names;
		while (p) { /* ends: p moves to the next name, at last to NULL */
			const char *bar = strchr(p, '|');
			size_t n = bar ? (size_t)(bar - p) : strlen(p);
			if (n == len && strncmp(p, name, n) == 0)
				return &rows[i];
			p = bar ? bar + 1 : NULL;
		}
	}
	return NULL;
}

/* A NUL-terminated array that grows; programs and variables are few. */
static void *grow(void *array, int count, size_t item)
{
	void *p = realloc(array, ((size_t)count + 1) * item);
	if (!p) {
		say("no memory");
		exit(1);
	}
	return p;
}

static char *copy(const char *s, size_t n)
{
	char *p = strndup(s, n);
	if (!p) {
		say("no memory");
		exit(1);
	}
	return p;
}

static bool add_var(struct plan_vars *vars, const char *name, size_t len, const char *value)
{
	if (!len || memchr(name, '=', len)) {
		say("'%s' is not the name of a variable", name);
		return false;
	}
	vars->items = grow(vars->items, vars->count, sizeof *vars->items);
	vars->items[vars->count++] = (struct plan_var){copy(name, len), copy(value, strlen(value))};
	return true;
}

static bool add_exported(struct plan_vars *vars, const char *arg)
{
	const char *eq = strchr(arg, '=');
	if (eq)
		return add_var(vars, arg, (size_t)(eq - arg), eq + 1);
	const char *value = getenv(arg);
	if (!value) {
		say("-x %s: the variable is not set", arg);
		return true;
	}
	return add_var(vars, arg, strlen(arg), value);
}

static bool parse_count(const char *option, const char *text, int hi, int *out_p)
{
	char *end;
	errno = 0;
	long v = strtol(text, &end, 10);
	if (end == text || *end || errno || v < 1 || v > hi) {
		say("%s %s: give a number from 1 to %d", option, text, hi);
		return false;
	}
	*out_p = (int)v;
	return true;
}

static bool parse_timeout(const char *text, double *out_p)
{
	char *end;
	double v = strtod(text, &end);
	if (end == text || *end || !isfinite(v) || v < 0 || v > 1e9) {
		say("--timeout %s: give seconds, 0 for none", text);
		return false;
	}
	*out_p = v;
	return true;
}

static bool parse_bind(const char *text, bool *out_p)
{
	if (strcmp(text, "core") != 0 && strcmp(text, "none") != 0) {
		say("--bind-to %s: give core or none", text);
		return false;
	}
	*out_p = strcmp(text, "core") == 0;
	return true;
}

static enum plan_result apply(struct plan *plan, struct plan_program *prog, enum option id,
			      const char *shown, char **arg)
{
	bool good = true;
	switch (id) {
	case OPT_NP:
		good = parse_count(shown, arg[0], PLAN_RANKS_MAX, &prog->ranks);
		break;
	case OPT_X:
		good = add_exported(&prog->vars, arg[0]);
		break;
	case OPT_ENV:
		good = add_var(&prog->vars, arg[0], strlen(arg[0]), arg[1]);
		break;
	case OPT_GENV:
		good = add_var(&plan->vars, arg[0], strlen(arg[0]), arg[1]);
		break;
	case OPT_WDIR:
		prog->wdir = copy(arg[0], strlen(arg[0]));
		break;
	case OPT_BIND:
		good = parse_bind(arg[0], &plan->bind_core);
		break;
	case OPT_TIMEOUT:
		good = parse_timeout(arg[0], &plan->timeout_s);
		break;
	case OPT_LABEL:
		plan->label = true;
		break;
	case OPT_HOSTS:
		plan->hosts = arg[0];
		break;
	case OPT_HOSTFILE:
		plan->hostfile = arg[0];
		break;
	case OPT_PER_HOST:
		good = parse_count(shown, arg[0], PLAN_RANKS_MAX, &plan->per_host);
		break;
	case OPT_ENGINE:
		plan->engine = arg[0];
		break;
	case OPT_HELP:
		print_help();
		return PLAN_DONE;
	case OPT_VERSION:
		printf("weft mpiexec %s\n", WEFT_VERSION);
		return PLAN_DONE;
	case OPT_IGNORED:
		break;
	}
	return good ? PLAN_RUN : PLAN_BAD;
}

/* Reads the options at argv[*i_p] and leaves *i_p at the program. */
static enum plan_result parse_options(int argc, char **argv, int *i_p, struct plan *plan,
				      struct plan_program *prog)
{
	int i = *i_p;
	while (i < argc && argv[i][0] == '-' && argv[i][1]) {
		char *shown = argv[i++];
		const char *name = shown + (shown[1] == '-' ? 2 : 1);
		if (!*name)
			break; /* "--": the program follows */
		size_t len = strcspn(name, "=");
		const struct option_row *row = find_option(name, len);
		if (!row || (name[len] && row->args != 1)) {
			say("unknown option %s; mpiexec --help lists them", shown);
			return PLAN_BAD;
		}
		char *inline_arg = (char *)name + len + 1;
		char **arg = name[len] ? &inline_arg : argv + i;
		if (!name[len]) {
			if (argc - i < row->args) {
				say("%s needs %s; mpiexec --help explains it", shown,
				    row->args == 1 ? "a value" : "a name and a value");
				return PLAN_BAD;
			}
			i += row->args;
		}
		enum plan_result result = apply(plan, prog, row->id, shown, arg);
		if (result != PLAN_RUN)
			return result;
	}
	*i_p = i;
	return PLAN_RUN;
}

enum plan_result plan_parse(int argc, char **argv, struct plan *plan)
{
	int i = 1;
	for (;;) { /* ends: each turn consumes one program and its ':' */
		struct plan_program prog = {.ranks = 1, .first = plan->size};
		enum plan_result result = parse_options(argc, argv, &i, plan, &prog);
		if (result != PLAN_RUN)
			return result;
		int start = i;
		while (i < argc && strcmp(argv[i], ":") != 0)
			i++;
		prog.argc = i - start;
		if (!prog.argc) {
			say("no program given%s; usage: mpiexec -n N program [arguments]",
			    plan->program_count ? " after ':'" : "");
			return PLAN_BAD;
		}
		for (int k = 0; k < prog.argc; k++) {
			prog.argv = grow(prog.argv, k + 1, sizeof *prog.argv);
			prog.argv[k] = copy(argv[start + k], strlen(argv[start + k]));
			prog.argv[k + 1] = NULL;
		}
		plan->size += prog.ranks;
		if (plan->size > PLAN_RANKS_MAX) {
			say("more than %d ranks", PLAN_RANKS_MAX);
			return PLAN_BAD;
		}
		plan->programs = grow(plan->programs, plan->program_count, sizeof prog);
		plan->programs[plan->program_count++] = prog;
		if (i == argc)
			return PLAN_RUN;
		i++;
	}
}

bool plan_is_remote(const struct plan *plan)
{
	return plan->hosts || plan->hostfile || plan->per_host || plan->engine;
}
