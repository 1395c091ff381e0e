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

static void add(struct args *a, const char *text)
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

static void addf(struct args *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void addf(struct args *a, const char *fmt, ...)
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
	add(a, text);
	free(text);
}

static void add_program(struct args *a, const struct plan_program *prog)
{
	for (int i = 0; i < prog->argc; i++)
		add(a, prog->argv[i]);
}

static bool is_bound(const struct plan *plan)
{
	return plan->bind.bind != BIND_UNSET && plan->bind.bind != BIND_NONE;
}

/* --- Hydra --- */

static void hydra_vars(struct args *a, const char *option, const struct plan_vars *vars)
{
	for (int i = 0; i < vars->count; i++) {
		add(a, option);
		add(a, vars->items[i].name);
		add(a, vars->items[i].value);
	}
}

static void hydra_args(struct args *a, const struct plan *plan)
{
	if (plan->hosts) {
		add(a, "-hosts");
		add(a, plan->hosts);
	}
	if (plan->hostfile) {
		add(a, "-f");
		add(a, plan->hostfile);
	}
	if (plan->per_host) {
		add(a, "-ppn");
		addf(a, "%d", plan->per_host);
	}
	if (is_bound(plan)) {
		add(a, "-bind-to");
		add(a, bind_word(plan->bind.bind));
	}
	if (plan->bind.map != BIND_UNSET && plan->bind.map != BIND_HOST) {
		add(a, "-map-by");
		add(a, bind_word(plan->bind.map));
	}
	if (plan->label)
		add(a, "-l");
	if (plan->exit_codes)
		add(a, "-print-all-exitcodes");
	if (plan->go_on)
		add(a, "-disable-auto-cleanup");
	if (plan->out_pattern) {
		add(a, "-outfile-pattern");
		add(a, plan->out_pattern);
	}
	if (plan->err_pattern) {
		add(a, "-errfile-pattern");
		add(a, plan->err_pattern);
	}
	if (plan->env == PLAN_ENV_NONE)
		add(a, "-genvnone");
	hydra_vars(a, "-genv", &plan->vars);
	if (plan->timeout_s > 0) {
		char text[32];
		snprintf(text, sizeof text, "%.0f", plan->timeout_s < 1 ? 1 : plan->timeout_s);
		setenv("MPIEXEC_TIMEOUT", text, 1);
	}
	for (int i = 0; i < plan->program_count; i++) {
		const struct plan_program *prog = &plan->programs[i];
		if (i)
			add(a, ":");
		add(a, "-n");
		addf(a, "%d", prog->ranks);
		if (prog->wdir) {
			add(a, "-wdir");
			add(a, prog->wdir);
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
	add(a, "--mpi=pmi2");
	if (plan->hosts)
		addf(a, "--nodelist=%s", plan->hosts);
	/* srun takes a name with a slash for a file, and ours has some. */
	if (plan->hostfile)
		addf(a, "--nodelist=%s", plan->hostfile);
	if (plan->per_host)
		addf(a, "--ntasks-per-node=%d", plan->per_host);
	if (is_bound(plan))
		addf(a, "--cpu-bind=%s%s", plan->bind.report ? "verbose," : "",
		     srun_binding(plan->bind.bind));
	if (plan->label)
		add(a, "--label");
	if (plan->go_on)
		add(a, "--kill-on-bad-exit=0");
	if (plan->timeout_s > 0) {
		long s = (long)plan->timeout_s;
		addf(a, "--time=%ld:%02ld", s / 60, s % 60);
	}
}

static void srun_args(struct args *a, const struct plan *plan)
{
	for (int v = 0; v < plan->vars.count; v++)
		setenv(plan->vars.items[v].name, plan->vars.items[v].value, 1);
	for (int i = 0; i < plan->program_count; i++) {
		const struct plan_program *prog = &plan->programs[i];
		if (i)
			add(a, ":");
		srun_options(a, plan);
		addf(a, "--ntasks=%d", prog->ranks);
		if (prog->wdir)
			addf(a, "--chdir=%s", prog->wdir);
		if (prog->vars.count) {
			add(a, "env");
			/* After the options: env starts the program with these variables. */
			for (int v = 0; v < prog->vars.count; v++)
				addf(a, "%s=%s", prog->vars.items[v].name,
				     prog->vars.items[v].value);
		}
		add_program(a, prog);
	}
}

/* --- PRRTE --- */

static void prterun_vars(struct args *a, const struct plan_vars *vars)
{
	for (int i = 0; i < vars->count; i++) {
		add(a, "-x");
		addf(a, "%s=%s", vars->items[i].name, vars->items[i].value);
	}
}

static void prterun_args(struct args *a, const struct plan *plan)
{
	if (plan->label)
		add(a, "--tag-output");
	if (plan->bind.report)
		add(a, "--report-bindings");
	if (plan->timeout_s > 0) {
		add(a, "--timeout");
		addf(a, "%.0f", plan->timeout_s < 1 ? 1 : plan->timeout_s);
	}
	for (int i = 0; i < plan->program_count; i++) {
		const struct plan_program *prog = &plan->programs[i];
		if (i)
			add(a, ":");
		if (plan->hosts) {
			add(a, "--host");
			add(a, plan->hosts_by_program ? prog->hosts : plan->hosts);
		}
		if (plan->hostfile) {
			add(a, "--hostfile");
			add(a, plan->hostfile);
		}
		if (plan->per_host) {
			add(a, "--map-by");
			addf(a, "ppr:%d:node:oversubscribe", plan->per_host);
		} else if (plan->bind.map != BIND_UNSET) {
			add(a, "--map-by");
			addf(a, "%s:oversubscribe", bind_word(plan->bind.map));
		}
		add(a, "--bind-to");
		add(a, is_bound(plan) ? bind_word(plan->bind.bind) : "none");
		add(a, "-n");
		addf(a, "%d", prog->ranks);
		if (prog->wdir) {
			add(a, "--wdir");
			add(a, prog->wdir);
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
		add(&a, e->name);
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
