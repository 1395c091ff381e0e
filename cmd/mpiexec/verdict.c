/* SPDX-License-Identifier: BSD-3-Clause */
/* verdict.c - words and exit codes. */
#include "verdict.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "keeper.h"
#include "say.h"

bool verdict_replaces(const struct verdict *b, const struct verdict *a)
{
	if (verdict_is_unfinished(a) && b->kind >= VERDICT_DIED)
		return !verdict_is_unfinished(b);
	return a->kind == VERDICT_NONE || (a->kind < VERDICT_DIED && b->kind >= VERDICT_DIED);
}

bool verdict_is_unfinished(const struct verdict *v)
{
	return v->kind == VERDICT_DIED && v->value == 0;
}

uint64_t verdict_window_ns(const struct verdict *v)
{
	switch (v->kind) {
	case VERDICT_STUCK:
	case VERDICT_ABORT: /* the keeper may be about to tell of the death that led to it */
		return v->text ? 3000000000u : 100000000u;
	default:
		return 10000000u; /* for the last lines that are on their way */
	}
}

static const struct place *placed;

void verdict_use(const struct place *place)
{
	placed = place;
}

static void say_died(const struct verdict *v, const char *host)
{
	if (WIFSIGNALED(v->value)) {
		const char *name = sigabbrev_np(WTERMSIG(v->value));
		char number[16];
		snprintf(number, sizeof number, "%d", WTERMSIG(v->value));
		say("rank %d on %s was killed by signal %s%s%s", v->rank, host, name ? "SIG" : "",
		    name ? name : number, WCOREDUMP(v->value) ? " (core dumped)" : "");
	} else if (WEXITSTATUS(v->value)) {
		say("rank %d on %s ended with exit code %d", v->rank, host, WEXITSTATUS(v->value));
	} else {
		say("rank %d on %s ended with exit code 0 but without MPI_Finalize", v->rank, host);
	}
}

static void say_start(const struct verdict *v, const struct plan *plan)
{
	const struct plan_program *prog = plan_program_of(plan, v->rank);
	const char *name = prog->argv[0], *reason = strerror(v->value), *hint = "";
	switch ((enum keeper_step)v->step) {
	case KEEPER_STEP_WDIR:
		say("rank %d: cannot change to directory '%s': %s", v->rank, prog->wdir, reason);
		return;
	case KEEPER_STEP_FORK:
	case KEEPER_STEP_SETUP:
		say("rank %d cannot be started: %s; a limit of processes or descriptors (ulimit "
		    "-u, "
		    "ulimit -n)?",
		    v->rank, reason);
		return;
	case KEEPER_STEP_EXEC:
		break;
	}
	if (v->value == ENOENT && !strchr(name, '/') && !prog->wdir && access(name, X_OK) == 0)
		hint = "; it is in this directory: write ./ before it";
	else if (v->value == ENOENT && strchr(name, '/') && !prog->wdir && access(name, F_OK) == 0)
		hint = " (the interpreter that its first line names)";
	say("cannot start '%s': %s%s", name, reason, hint);
}

void verdict_say(const struct verdict *v, const struct plan *plan)
{
	char host[65] = "this host";
	(void)gethostname(host, sizeof host - 1);
	const char *name =
		placed && v->rank >= 0 ? placed->hosts.items[placed->host_of[v->rank]].name : "";
	if (name[0])
		snprintf(host, sizeof host, "%s", name);
	switch (v->kind) {
	case VERDICT_NONE:
		break;
	case VERDICT_LOST:
		say("rank %d on %s ended without MPI_Finalize", v->rank, host);
		break;
	case VERDICT_STUCK:
		say("rank %d on %s ended while other ranks wait for it (is it an MPI program, and "
		    "the same as theirs?)",
		    v->rank, host);
		break;
	case VERDICT_ABORT:
		if (v->text)
			say("rank %d: %s", v->rank, v->text);
		else
			say("rank %d on %s aborted the job with code %d", v->rank, host, v->value);
		break;
	case VERDICT_DIED:
		say_died(v, host);
		break;
	case VERDICT_PROTOCOL:
		say("rank %d on %s sent %s on its PMI channel", v->rank, host, v->text);
		break;
	case VERDICT_START:
		say_start(v, plan);
		break;
	case VERDICT_INTERNAL:
		if (v->text)
			say("%s", v->text);
		break;
	}
}

int verdict_exit_code(const struct verdict *v)
{
	switch (v->kind) {
	case VERDICT_NONE:
		return 0;
	case VERDICT_ABORT:
		return v->value & 255 ? v->value & 255 : 1;
	case VERDICT_DIED:
		if (WIFSIGNALED(v->value))
			return 128 + WTERMSIG(v->value);
		return WEXITSTATUS(v->value) ? WEXITSTATUS(v->value) : 1;
	case VERDICT_START:
		if (v->step != KEEPER_STEP_EXEC)
			return 1;
		return v->value == ENOENT ? 127 : 126;
	default:
		return 1;
	}
}
