/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * main.c - mpiexec: reads its command line, starts the keeper, runs the job.
 *
 * Read job.h for the life of a job, keeper.h for how processes start and end.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include "agent.h"
#include "base/settings.h"
#include "doctor.h"
#include "engine.h"
#include "handover.h"
#include "job.h"
#include "outfile.h"
#include "launch.h"
#include "descriptors.h"
#include "place.h"
#include "plan.h"
#include "remote.h"
#include "say.h"
#include "spawned.h"

#define FDS_PER_RANK 4 /* two pipes, a socket, a pidfd */

/* 0, 1 and 2 must be open, or descriptors of ours would take their places. */
static void open_standard(void)
{
	int fd;
	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* A job in the background must not fight with the shell for the terminal's input. */
static void choose_stdin(void)
{
	if (!isatty(STDIN_FILENO) || tcgetpgrp(STDIN_FILENO) == getpgrp())
		return;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		dup2(fd, STDIN_FILENO);
		close(fd);
	}
}

/* The signals that we answer.  SIGHUP stays ignored under nohup; the others are answered even when
 * a script's shell made its background jobs ignore them, for then they were sent to us on purpose.
 */
static void choose_signals(sigset_t *set)
{
	static const int all[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
				  SIGTSTP, SIGCONT, SIGUSR1, SIGUSR2};
	sigemptyset(set);
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		struct sigaction old;
		if (sigaction(all[i], NULL, &old) == 0 &&
		    (all[i] != SIGHUP || old.sa_handler != SIG_IGN))
			sigaddset(set, all[i]);
	}
}

/* The cores of each rank of this machine, and a line for each where it is wished. */
static bool bind_ranks(struct keeper_setup *ks, const struct place *place)
{
	const struct plan *plan = ks->plan;
	if (!bind_is_wished(&plan->bind))
		return true;
	struct bind_rank *binds = calloc((size_t)plan->size, sizeof *binds);
	if (!binds || !bind_make(&plan->bind, place->slots, plan->size, binds))
		return false;
	ks->binds = binds;
	char host[65] = "this host";
	(void)gethostname(host, sizeof host - 1);
	for (int i = 0; i < plan->size && plan->bind.report; i++)
		say("rank %d on %s %s", i, host, binds[i].text);
	return true;
}

/* Hosts that all are this one need no agent, unless told how to start one. */
static bool all_here(const struct plan *plan, const struct place *place)
{
	bool here = !plan->agent && !getenv("WEFT_RSH");
	for (int h = 0; h < place->hosts.count && here; h++)
		here = launch_is_here(place->hosts.items[h].name);
	return here;
}

/* Open MPI's -N without -n: that many on each host. */
static bool fill_hosts(struct plan *plan)
{
	struct host_list hosts;
	if (!plan->fill_hosts || !(plan->hosts || plan->hostfile))
		return true;
	if (!hosts_collect(plan->hosts, plan->hostfile, &hosts))
		return false;
	if ((long)hosts.count * plan->per_host > PLAN_RANKS_MAX) {
		say("more than %d ranks", PLAN_RANKS_MAX);
		return false;
	}
	plan_set_ranks(plan, hosts.count * plan->per_host);
	return true;
}

static int run_job(int argc, char **argv, struct plan *plan)
{
	bool far = plan_is_remote(plan);
	if (far && !fill_hosts(plan))
		return 2;
	struct keeper_setup ks = {
		.plan = plan, .argc = argc, .argv = argv, .local_count = plan->size};
	struct place place;
	if (!place_make(plan, far, &place))
		return 2;
	far = far && !all_here(plan, &place);
	if (!far && !bind_ranks(&ks, &place))
		return 2;
	struct job_setup js = {.plan = plan, .place = &place, .keeper = -1, .sock = -1};
	char jobid[HANDOVER_JOBID_MAX];
	sigset_t ours;
	choose_stdin();
	signal(SIGCHLD, SIG_DFL); /* ignored, it would swallow the ranks' exit codes */
	choose_signals(&ours);
	sigprocmask(SIG_BLOCK, &ours, &ks.mask);
	int per_rank = (far ? 0 : FDS_PER_RANK) + 2 * outfile_wanted(plan);
	ks.nofile = descriptors_raise(plan->size, per_rank);
	if (!ks.nofile)
		return 1;
	if (!handover_name(jobid)) {
		say("getrandom: %s", strerror(errno));
		return 1;
	}
	doctor_start(&ks.mask);
	/* Should the keeper be killed, the ranks become our children. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1)) {
		say("prctl: %s", strerror(errno));
		return 1;
	}
	js.jobid = jobid;
	if (far && weft_settings_load())
		return 2;
	if (far) {
		js.launcher = remote_launcher(plan);
		js.here_direct = !plan->agent && !getenv("WEFT_RSH");
	} else {
		js.keeper = keeper_start(&ks, &js.sock);
		if (js.keeper < 0)
			return 1;
	}
	/* The sink says what became of the output. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	js.signal_fd = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
	if (js.signal_fd < 0) {
		say("signalfd: %s", strerror(errno));
		return 1;
	}
	return job_run(&js);
}

int main(int argc, char **argv)
{
	static struct plan plan;
	open_standard();
	if (argc == 2 && strcmp(argv[1], "--weft-agent") == 0)
		return agent_main(argc, argv);
	spawned_begin();
	if (!spawned_is())
		spawned_forget_hosts();
	switch (plan_parse(argc, argv, &plan)) {
	case PLAN_BAD:
		return 2;
	case PLAN_DONE:
		return fflush(stdout) ? 1 : 0;
	case PLAN_RUN:
		break;
	}
	if (plan_is_remote(&plan) && !engine_is_ours(&plan))
		return engine_exec(&plan);
	/* The writer threads may be stuck at a reader that never reads: end without them. */
	_exit(run_job(argc, argv, &plan));
}
