/* SPDX-License-Identifier: BSD-3-Clause */
/* plan.c - reads the command line: options, program, a colon, options, program. */
#include "plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "options.h"
#include "say.h"
#include "soft.h"
#include "words.h"

#define FILES_MAX 16 /* a file may name another one, but not itself for ever */

void *plan_grow(void *array, int count, size_t item)
{
	void *p = realloc(array, ((size_t)count + 1) * item);
	if (!p) {
		say("no memory");
		exit(1);
	}
	return p;
}

char *plan_copy(const char *s, size_t n)
{
	char *p = strndup(s, n);
	if (!p) {
		say("no memory");
		exit(1);
	}
	return p;
}

/* Puts the words of a file in the place of the option that names it, argv[at..at + used - 1]. */
static bool insert_file(struct plan *plan, const char *path, int at, int used)
{
	char **argv = NULL;
	int count = 0;
	for (int i = 0; i < at; i++) {
		argv = plan_grow(argv, count, sizeof *argv);
		argv[count++] = plan->argv[i];
	}
	if (!words_read(path, &argv, &count))
		return false;
	int rest = at + used;
	if (rest < plan->argc && strcmp(plan->argv[rest], ":") != 0) {
		say("%s: its programs end the options; '%.60s' comes after", path,
		    plan->argv[rest]);
		return false;
	}
	for (; rest < plan->argc; rest++) {
		argv = plan_grow(argv, count, sizeof *argv);
		argv[count++] = plan->argv[rest];
	}
	argv = plan_grow(argv, count, sizeof *argv);
	argv[count] = NULL;
	plan->argv = argv;
	plan->argc = count;
	return true;
}

/* Reads the options at argv[*i_p] and leaves *i_p at the program. */
static enum plan_result parse_options(struct plan *plan, int *i_p, struct plan_program *prog,
				      int *files_p)
{
	int i = *i_p;
	while (i < plan->argc && plan->argv[i][0] == '-' && plan->argv[i][1]) {
		char *shown = plan->argv[i], *inline_arg;
		int option = i++;
		if (strcmp(shown, "--") == 0)
			break; /* the program follows */
		const struct option_row *row = option_find(shown, &inline_arg);
		if (!row)
			return PLAN_BAD;
		char **arg = inline_arg ? &inline_arg : plan->argv + i;
		if (!inline_arg) {
			if (plan->argc - i < row->args) {
				say("%s needs %s; mpiexec --help explains it", shown,
				    row->args == 1 ? "a value" : "a name and a value");
				return PLAN_BAD;
			}
			i += row->args;
		}
		if (option_is_file(row)) {
			if (++*files_p > FILES_MAX) {
				say("%s %s: more than %d files", shown, arg[0], FILES_MAX);
				return PLAN_BAD;
			}
			if (!insert_file(plan, arg[0], option, i - option))
				return PLAN_BAD;
			i = option;
			continue;
		}
		enum plan_result result = row->apply(plan, prog, shown, arg);
		if (result != PLAN_RUN)
			return result;
	}
	*i_p = i;
	return PLAN_RUN;
}

static bool is_colon(const char *word)
{
	return strcmp(word, ":") == 0;
}

static enum plan_result parse_program(struct plan *plan, int *i_p, struct plan_program *prog)
{
	int start = *i_p, i = start;
	while (i < plan->argc && !is_colon(plan->argv[i]))
		i++;
	prog->argc = i - start;
	if (!prog->argc) {
		say("no program given%s; usage: mpiexec -n N program [arguments]",
		    plan->program_count ? " after ':'" : "");
		return PLAN_BAD;
	}
	for (int k = 0; k < prog->argc; k++) {
		prog->argv = plan_grow(prog->argv, k + 1, sizeof *prog->argv);
		prog->argv[k] = plan_copy(plan->argv[start + k], strlen(plan->argv[start + k]));
		prog->argv[k + 1] = NULL;
	}
	char *found = prog->path ? soft_find(prog->argv[0], prog->path) : NULL;
	if (found)
		prog->argv[0] = found;
	plan->programs = plan_grow(plan->programs, plan->program_count, sizeof *prog);
	plan->programs[plan->program_count++] = *prog;
	*i_p = i;
	return PLAN_RUN;
}

/* MPICH's users set it for whole scripts; an option says more. */
static bool read_environment(struct plan *plan)
{
	const char *text = getenv("MPIEXEC_TIMEOUT");
	if (plan->timeout_by || !text || !*text)
		return true;
	char *end;
	double v = strtod(text, &end);
	if (*end || !isfinite(v) || v > 1e9) {
		say("MPIEXEC_TIMEOUT=%.40s: give seconds", text);
		return false;
	}
	plan->timeout_s = v > 0 ? v : 0; /* MPICH takes -1 for none */
	plan->timeout_by = "MPIEXEC_TIMEOUT";
	return true;
}

/* Hosts behind the first ':' are that program's own; a program without any takes the first one's. */
static bool gather_hosts(struct plan *plan)
{
	char *all = NULL;
	size_t len;
	for (int i = 1; i < plan->program_count; i++)
		plan->hosts_by_program = plan->hosts_by_program || plan->programs[i].hosts;
	if (!plan->hosts_by_program)
		return true;
	FILE *out = open_memstream(&all, &len);
	for (int i = 0; out && i < plan->program_count; i++) {
		struct plan_program *p = &plan->programs[i];
		if (!p->hosts)
			p->hosts = plan->programs[0].hosts;
		if (!p->hosts) {
			say("--hosts of one program: the first one needs it, too");
			fclose(out);
			return false;
		}
		fprintf(out, "%s%s", i ? "," : "", p->hosts);
	}
	if (!out || fclose(out)) {
		say("no memory");
		return false;
	}
	plan->hosts = all;
	return true;
}

/* A program without -n has one rank, or as many as the options per host or object give. */
static bool count_ranks(struct plan *plan)
{
	bool alone = plan->program_count == 1 && !plan->programs[0].ranks;
	if (alone && plan->bind.per_object && !plan_is_remote(plan)) {
		int objects = bind_count_objects(&plan->bind);
		if (!objects)
			return false;
		plan->programs[0].ranks = objects * plan->bind.per_object;
	} else if (alone && plan->per_host && !plan_is_remote(plan)) {
		plan->programs[0].ranks = plan->per_host;
	}
	plan->fill_hosts = alone && plan->per_host && plan_is_remote(plan);
	plan->size = 0;
	for (int i = 0; i < plan->program_count; i++) {
		struct plan_program *p = &plan->programs[i];
		if (!p->ranks)
			p->ranks = 1;
		int soft = p->soft ? soft_count(p->soft, p->ranks) : p->ranks;
		if (!soft) {
			say("-soft %s: it allows no number from 1 to %d", p->soft, p->ranks);
			return false;
		}
		p->ranks = soft;
		p->first = plan->size;
		plan->size += p->ranks;
		if (plan->size > PLAN_RANKS_MAX) {
			say("more than %d ranks", PLAN_RANKS_MAX);
			return false;
		}
	}
	return true;
}

enum plan_result plan_parse(int argc, char **argv, struct plan *plan)
{
	int i = 1, files = 0;
	/* Copies: the keeper writes its name over the words that the kernel gave us. */
	plan->argc = argc;
	plan->argv = plan_grow(NULL, argc, sizeof *plan->argv);
	for (int k = 0; k < argc; k++)
		plan->argv[k] = plan_copy(argv[k], strlen(argv[k]));
	plan->argv[argc] = NULL;
	for (;;) { /* ends: each turn consumes one program and its ':' */
		struct plan_program prog = {0};
		enum plan_result result = parse_options(plan, &i, &prog, &files);
		if (result == PLAN_RUN)
			result = parse_program(plan, &i, &prog);
		if (result != PLAN_RUN)
			return result;
		if (i == plan->argc)
			return read_environment(plan) && gather_hosts(plan) && count_ranks(plan)
				       ? PLAN_RUN
				       : PLAN_BAD;
		i++;
	}
}

void plan_set_ranks(struct plan *plan, int ranks)
{
	char text[16];
	int len = snprintf(text, sizeof text, "-n%d", ranks);
	plan->argv = plan_grow(plan->argv, plan->argc + 1, sizeof *plan->argv);
	memmove(plan->argv + 2, plan->argv + 1, (size_t)plan->argc * sizeof *plan->argv);
	plan->argv[1] = plan_copy(text, (size_t)len);
	plan->argc++;
	plan->programs[0].ranks = plan->size = ranks;
}

bool plan_is_remote(const struct plan *plan)
{
	/* Inside an allocation, ranks per host are about its hosts. */
	return plan->hosts || plan->hostfile || plan->engine || plan->agent ||
	       (plan->per_host && getenv("SLURM_JOB_ID"));
}

int plan_appnum_of(const struct plan *plan, int rank)
{
	int i = 0;
	while (rank >= plan->programs[i].first + plan->programs[i].ranks)
		i++; /* ends: rank is below the size, which is the end of the last program */
	return i;
}

const struct plan_program *plan_program_of(const struct plan *plan, int rank)
{
	return &plan->programs[plan_appnum_of(plan, rank)];
}
