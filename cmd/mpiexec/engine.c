/* SPDX-License-Identifier: BSD-3-Clause */
/* engine.c - translates the plan and execs; nothing passes through a shell. */
#include "engine.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "hosts.h"
#include "say.h"

struct args {
	char **items;
	int count;
};

static void add_word(struct args *a, const char *text)
{
	char **items = realloc(a->items, ((size_t)a->count + 2) * sizeof *items);
	char *copy = strdup(text);
	if (!items || !copy) {
		say("no memory");
		exit(1);
	}
	items[a->count++] = copy;
	items[a->count] = NULL;
	a->items = items;
}

static void add_formatted(struct args *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void add_formatted(struct args *a, const char *fmt, ...)
{
	char *text;
	va_list ap;
	va_start(ap, fmt);
	int n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0) {
		say("no memory");
		exit(1);
	}
	add_word(a, text);
	free(text);
}

static void add_program(struct args *a, const struct plan_program *prog)
{
	for (int i = 0; i < prog->argc; i++)
		add_word(a, prog->argv[i]);
}

static bool is_bound(const struct plan *plan)
{
	return plan->bind.bind != BIND_UNSET && plan->bind.bind != BIND_NONE;
}

/* --- Hydra --- */

static void hydra_vars(struct args *a, const char *option, const struct plan_vars *vars)
{
	for (int i = 0; i < vars->count; i++) {
		add_word(a, option);
		add_word(a, vars->items[i].name);
		add_word(a, vars->items[i].value);
	}
}

static void hydra_args(struct args *a, const struct plan *plan)
{
	if (plan->hosts) {
		add_word(a, "-hosts");
		add_word(a, plan->hosts);
	}
	if (plan->hostfile) {
		add_word(a, "-f");
		add_word(a, plan->hostfile);
	}
	if (plan->per_host) {
		add_word(a, "-ppn");
		add_formatted(a, "%d", plan->per_host);
	}
	if (is_bound(plan)) {
		add_word(a, "-bind-to");
		add_word(a, bind_word(plan->bind.bind));
	}
	if (plan->bind.map != BIND_UNSET && plan->bind.map != BIND_HOST) {
		add_word(a, "-map-by");
		add_word(a, bind_word(plan->bind.map));
	}
	if (plan->label)
		add_word(a, "-l");
	if (plan->exit_codes)
		add_word(a, "-print-all-exitcodes");
	if (plan->go_on)
		add_word(a, "-disable-auto-cleanup");
	if (plan->out_pattern) {
		add_word(a, "-outfile-pattern");
		add_word(a, plan->out_pattern);
	}
	if (plan->err_pattern) {
		add_word(a, "-errfile-pattern");
		add_word(a, plan->err_pattern);
	}
	if (plan->env == PLAN_ENV_NONE)
		add_word(a, "-genvnone");
	hydra_vars(a, "-genv", &plan->vars);
	if (plan->timeout_s > 0) {
		char text[32];
		snprintf(text, sizeof text, "%.0f", plan->timeout_s < 1 ? 1 : plan->timeout_s);
		setenv("MPIEXEC_TIMEOUT", text, 1);
	}
	for (int i = 0; i < plan->program_count; i++) {
		const struct plan_program *prog = &plan->programs[i];
		if (i)
			add_word(a, ":");
		add_word(a, "-n");
		add_formatted(a, "%d", prog->ranks);
		if (prog->wdir) {
			add_word(a, "-wdir");
			add_word(a, prog->wdir);
		}
		hydra_vars(a, "-env", &prog->vars);
		add_program(a, prog);
	}
}

/* --- srun: variables go through its own environment --- */

static const char *srun_binding(enum bind_kind kind)
{
	switch (kind) {
	case BIND_THREAD:
		return "threads";
	case BIND_NUMA:
		return "ldoms";
	case BIND_PACKAGE:
		return "sockets";
	default:
		return "cores";
	}
}

static void srun_options(struct args *a, const struct plan *plan)
{
	add_word(a, "--mpi=pmi2");
	if (plan->hosts)
		add_formatted(a, "--nodelist=%s", plan->hosts);
	/* srun takes a name with a slash for a file, and ours has some. */
	if (plan->hostfile)
		add_formatted(a, "--nodelist=%s", plan->hostfile);
	if (plan->per_host)
		add_formatted(a, "--ntasks-per-node=%d", plan->per_host);
	if (is_bound(plan))
		add_formatted(a, "--cpu-bind=%s%s", plan->bind.report ? "verbose," : "",
			      srun_binding(plan->bind.bind));
	if (plan->label)
		add_word(a, "--label");
	if (plan->go_on)
		add_word(a, "--kill-on-bad-exit=0");
	if (plan->timeout_s > 0) {
		long s = (long)plan->timeout_s;
		add_formatted(a, "--time=%ld:%02ld", s / 60, s % 60);
	}
}

static void srun_args(struct args *a, const struct plan *plan)
{
	for (int v = 0; v < plan->vars.count; v++)
		setenv(plan->vars.items[v].name, plan->vars.items[v].value, 1);
	for (int i = 0; i < plan->program_count; i++) {
		const struct plan_program *prog = &plan->programs[i];
		if (i)
			add_word(a, ":");
		srun_options(a, plan);
		add_formatted(a, "--ntasks=%d", prog->ranks);
		if (prog->wdir)
			add_formatted(a, "--chdir=%s", prog->wdir);
		if (prog->vars.count) {
			add_word(a, "env");
			/* After the options: env starts the program with these variables. */
			for (int v = 0; v < prog->vars.count; v++)
				add_formatted(a, "%s=%s", prog->vars.items[v].name,
					      prog->vars.items[v].value);
		}
		add_program(a, prog);
	}
}

/* --- PRRTE --- */

static void prterun_vars(struct args *a, const struct plan_vars *vars)
{
	for (int i = 0; i < vars->count; i++) {
		add_word(a, "-x");
		add_formatted(a, "%s=%s", vars->items[i].name, vars->items[i].value);
	}
}

static void prterun_args(struct args *a, const struct plan *plan)
{
	if (plan->label)
		add_word(a, "--tag-output");
	if (plan->bind.report)
		add_word(a, "--report-bindings");
	if (plan->timeout_s > 0) {
		add_word(a, "--timeout");
		add_formatted(a, "%.0f", plan->timeout_s < 1 ? 1 : plan->timeout_s);
	}
	for (int i = 0; i < plan->program_count; i++) {
		const struct plan_program *prog = &plan->programs[i];
		if (i)
			add_word(a, ":");
		if (plan->hosts) {
			add_word(a, "--host");
			add_word(a, plan->hosts_by_program ? prog->hosts : plan->hosts);
		}
		if (plan->hostfile) {
			add_word(a, "--hostfile");
			add_word(a, plan->hostfile);
		}
		if (plan->per_host) {
			add_word(a, "--map-by");
			add_formatted(a, "ppr:%d:node:oversubscribe", plan->per_host);
		} else if (plan->bind.map != BIND_UNSET) {
			add_word(a, "--map-by");
			add_formatted(a, "%s:oversubscribe", bind_word(plan->bind.map));
		}
		add_word(a, "--bind-to");
		add_word(a, is_bound(plan) ? bind_word(plan->bind.bind) : "none");
		add_word(a, "-n");
		add_formatted(a, "%d", prog->ranks);
		if (prog->wdir) {
			add_word(a, "--wdir");
			add_word(a, prog->wdir);
		}
		prterun_vars(a, &plan->vars);
		prterun_vars(a, &prog->vars);
		add_program(a, prog);
	}
}

static const struct engine {
	const char *name;
	void (*translate)(struct args *a, const struct plan *plan);
	enum hosts_form form;
} engines[] = {
	{"srun", srun_args, HOSTS_NAMES},
	{"prterun", prterun_args, HOSTS_SLOTS},
	{"mpiexec.hydra", hydra_args, HOSTS_COLON},
};

/* Is there such a program?  Else what is wrong with the hosts is not said for it. */
static bool in_path(const char *name)
{
	const char *path = getenv("PATH");
	for (const char *at = path ? path : ""; *at; at += *at == ':') {
		int len = (int)strcspn(at, ":");
		char *file;
		if (asprintf(&file, "%.*s/%s", len, at, name) < 0)
			return false;
		bool there = access(file, X_OK) == 0;
		free(file);
		if (there)
			return true;
		at += len;
	}
	return false;
}

/* Without --engine: is it there, and would it reach the hosts?  Outside an allocation srun would queue for one, or
 * there is no cluster at all, only the package. */
static bool offers_itself(const struct engine *e)
{
	return in_path(e->name) && (e->translate != srun_args || getenv("SLURM_JOB_ID"));
}

bool engine_is_ours(const struct plan *plan)
{
	if (plan->agent || getenv("WEFT_RSH"))
		return true;
	if (plan->engine)
		return strcmp(plan->engine, "ssh") == 0 || strcmp(plan->engine, "rsh") == 0;
	if (plan->hosts_by_program) /* srun and Hydra have no such thing */
		return true;
	for (size_t i = 0; i < sizeof engines / sizeof engines[0]; i++)
		if (offers_itself(&engines[i]))
			return false;
	return true;
}

int engine_exec(struct plan *plan)
{
	for (size_t i = 0; i < sizeof engines / sizeof engines[0]; i++) {
		const struct engine *e = &engines[i];
		struct args a = {0};
		if (plan->engine && strcmp(plan->engine, e->name) != 0 &&
		    !(strcmp(plan->engine, "hydra") == 0 && e->translate == hydra_args))
			continue;
		if (plan->engine ? !in_path(e->name) : !offers_itself(e))
			continue;
		if (plan->hosts && !hosts_list_ok(plan->hosts, e->form))
			return 2;
		if (plan->hostfile && !(plan->hostfile = hosts_file(plan->hostfile, e->form)))
			return 2;
		add_word(&a, e->name);
		e->translate(&a, plan);
		execvp(e->name, a.items);
		say("cannot start %s: %s", e->name, strerror(errno));
		return 126;
	}
	say("--engine %s: not found; srun, prterun and mpiexec.hydra are known, ssh needs none of "
	    "them",
	    plan->engine);
	return 127;
}
