/* SPDX-License-Identifier: BSD-3-Clause */
/* agent.c - the agent's loop: the link up, the links down, the keeper. */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "agent_rank.h"
#include "agent_setup.h"
#include "base/base.h"
#include "keeper.h"
#include "launch.h"
#include "descriptors.h"
#include "say.h"
#include "spawned.h"

#define FDS_PER_RANK 5
#define SPAWNS_AHEAD 4

static struct {
	int argc;
	char **argv;
	struct link up;
	struct part *parts; /* agents that we have started */
	int partn;
	struct launch launch;
	struct agent_setup setup;  /* host is ours once `ready` */
	char *body;                /* of the setup */
	struct handover *handover; /* until the last rank has it */
	bool ready, ending;
	int host;
	struct plan plan;
	int *locals;
	int keeper_sock; /* -1: no keeper */
	pid_t keeper;
	struct event_source keeper_source;
	int next, spawning;
	uint64_t
		silent_at; /* ns: without a word until then, mpiexec counts as lost; 0: it said it pauses */
} agent = {.keeper_sock = -1, .host = -1};

/* --- upwards --- */

static void say_up(const char *text, int len)
{
	link_send(&agent.up, FRAME_SAY, agent.host, 0, text, (size_t)len);
}

static void drop_line(const char *text, int len)
{
	(void)text;
	(void)len;
}

static void report_message(struct keeper_msg m)
{
	link_send(&agent.up, FRAME_KEEPER, agent.host, m.rank, &m, sizeof m);
}

/* Nothing of ours is left below this point: so the job's end is told. */
static void tell_gone(void)
{
	report_message((struct keeper_msg){.op = KEEPER_GONE});
}

/* --- the ranks --- */

static void start_more(void)
{
	int count = (int)agent.setup.rankc;
	while (agent.next < count && agent.spawning < SPAWNS_AHEAD && !agent.ending)
		if (agent_rank_start(agent.next++, agent.keeper_sock, agent.handover))
			agent.spawning++;
	if (agent.next == count && agent.handover) {
		explicit_bzero(agent.handover, sizeof *agent.handover);
		munmap(agent.handover, sizeof *agent.handover);
		agent.handover = NULL;
	}
}

static void keeper_gone(void)
{
	events_remove(agent.keeper_sock);
	close(agent.keeper_sock);
	agent.keeper_sock = -1;
	(void)waitpid(agent.keeper, NULL, 0); /* it ends right after its last word */
	agent_ranks_finish();
	tell_gone();
}

static void keeper_ready(struct event_source *source, uint32_t events)
{
	struct keeper_msg m;
	(void)source;
	(void)events;
	ssize_t n = recv(agent.keeper_sock, &m, sizeof m, MSG_WAITALL);
	if (n < 0 && errno == EINTR)
		return;
	if (n != (ssize_t)sizeof m) {
		keeper_kill_all(); /* it was killed: its ranks are ours now */
		say("the process that keeps the ranks of %s was killed: the job is ended",
		    agent.setup.name);
		link_send(&agent.up, FRAME_LOST, agent.host, 0, NULL, 0);
		keeper_gone();
		return;
	}
	if (m.op == KEEPER_GONE) {
		keeper_gone();
		return;
	}
	if (m.op == KEEPER_STARTED || m.op == KEEPER_FAILED)
		agent.spawning--;
	int i = agent_rank_find(m.rank);
	if (m.op == KEEPER_EXITED && i >= 0)
		agent_rank_ended(i);
	report_message(m);
	start_more();
}

/* --- the setup --- */

/* As on the first host, but for what belongs to a login on this one. */
static void take_environment(const struct agent_setup *s)
{
	static const char *const own[] = {"HOSTNAME",       "HOST",    "SSH_CLIENT",
					  "SSH_CONNECTION", "SSH_TTY", "XDG_RUNTIME_DIR",
					  "XDG_SESSION_ID", "SHLVL"};
	char *kept[sizeof own / sizeof own[0]];
	for (size_t i = 0; i < weft_countof(own); i++) {
		const char *v = getenv(own[i]);
		kept[i] = v ? strdup(v) : NULL;
	}
	clearenv();
	for (uint32_t i = 0; i < s->envc; i++)
		putenv(s->env[i]); /* the body stays */
	setenv(JOB_HOST, s->name, 1);
	for (size_t i = 0; i < weft_countof(own); i++) {
		if (kept[i])
			setenv(own[i], kept[i], 1);
		else
			unsetenv(own[i]);
		free(kept[i]);
	}
}

static bool take_folder(const struct agent_setup *s)
{
	umask((mode_t)s->mode);
	if (chdir(s->folder) == 0)
		return true;
	say("%s: cannot change to directory '%s', where mpiexec runs: %s", s->name, s->folder,
	    strerror(errno));
	return false;
}

/* The number of each rank of this host; the job's other ranks have none. */
static bool number_locals(const struct agent_setup *s)
{
	agent.locals = calloc((size_t)agent.plan.size, sizeof *agent.locals);
	for (uint32_t i = 0; agent.locals && i < s->rankc; i++) {
		if (s->ranks[i] >= (uint32_t)agent.plan.size)
			return false;
		agent.locals[s->ranks[i]] = (int)i;
	}
	return agent.locals;
}

static bool bind_ranks(const struct agent_setup *s, struct keeper_setup *ks)
{
	const char **slots = s->slotc ? (const char **)s->slots : NULL;
	if (!bind_is_wished(&agent.plan.bind))
		return true;
	struct bind_rank *binds = calloc(s->rankc, sizeof *binds);
	if (!binds || !bind_make(&agent.plan.bind, slots, (int)s->rankc, binds))
		return false;
	for (uint32_t i = 0; i < s->rankc && agent.plan.bind.report; i++)
		say("rank %u on %s %s", s->ranks[i], s->name, binds[i].text);
	ks->binds = binds;
	return true;
}

/* What the keeper's fd 0 is, rank 0 gets: a pipe that the link fills. */
static bool open_stdin(const struct agent_setup *s)
{
	int pair[2];
	if (s->ranks[0] != 0)
		return true;
	if (pipe2(pair, O_CLOEXEC) || dup2(pair[0], STDIN_FILENO) < 0)
		return false;
	close(pair[0]);
	agent_stdin_open(pair[1]);
	return true;
}

static void close_stdin(void)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null < 0)
		return;
	dup2(null, STDIN_FILENO);
	close(null);
}

/* Else the keeper would hold the link open after our end, and rank 0's stdin after its own. */
static void forget_in_keeper(void)
{
	close(agent.up.in);
	close(agent.up.out);
	agent_stdin_forget();
}

static bool keep_secret(struct agent_setup *s)
{
	agent.handover = handover_keep(&s->handover);
	explicit_bzero(&s->handover, sizeof s->handover);
	return agent.handover;
}

static bool start_ranks(struct agent_setup *s)
{
	struct keeper_setup ks = {.plan = &agent.plan, .argc = agent.argc, .argv = agent.argv};
	take_environment(s);
	say_through(drop_line); /* mpiexec has said it already */
	enum plan_result parsed = plan_parse((int)s->argc, s->argv, &agent.plan);
	say_through(say_up);
	if (parsed != PLAN_RUN || !number_locals(s)) {
		say("%s: the agent does not understand the command line: is another weft installed "
		    "there?",
		    s->name);
		return false;
	}
	if (!take_folder(s) || !bind_ranks(s, &ks))
		return false;
	ks.locals = agent.locals;
	ks.local_count = (int)s->rankc;
	ks.nofile = descriptors_raise((int)s->rankc, FDS_PER_RANK);
	if (!ks.nofile || !keep_secret(s) || !open_stdin(s) ||
	    !agent_ranks_init(&agent.up, agent.host, s->ranks, (int)s->rankc)) {
		say("%s: cannot start ranks: %s", s->name, strerror(errno));
		return false;
	}
	ks.forget = forget_in_keeper;
	sigemptyset(&ks.mask);
	agent.keeper = keeper_start(&ks, &agent.keeper_sock);
	close_stdin();
	agent.keeper_source.ready = keeper_ready;
	return agent.keeper >= 0 && events_add(agent.keeper_sock, EPOLLIN, &agent.keeper_source);
}

/* --- the links down --- */

static void part_greeted(struct link *l)
{
	struct part *p = weft_container_of(l, struct part, link);
	link_send(&agent.up, FRAME_READY, p->first, 0, NULL, 0);
}

static void part_frame(struct link *l, const struct frame *f, const char *body)
{
	(void)l;
	link_send(&agent.up, f->kind, f->host, f->rank, body, f->len);
}

static void part_lost(struct link *l, const char *why)
{
	struct part *p = weft_container_of(l, struct part, link);
	why = launch_why(p, &agent.launch, why);
	for (int h = p->first; h < p->first + p->count; h++)
		link_send(&agent.up, FRAME_LOST, h, 0, why, strlen(why) + 1);
}

static void start_agents(const struct agent_setup *s)
{
	agent.launch = (struct launch){
		.command = s->launcher,
		.program = s->program,
		.first = (int)s->below,
		.count = (int)s->hostc,
		.names = s->hosts,
		.fanout = (int)s->fanout,
		.greet = part_greeted,
		.frame = part_frame,
		.lost = part_lost,
	};
	if (!s->hostc || launch_parts(&agent.launch, false, &agent.parts, &agent.partn))
		return;
	for (uint32_t i = 0; i < s->hostc; i++)
		link_send(&agent.up, FRAME_LOST, (int)(s->below + i), 0, NULL, 0);
}

/* --- what comes from above --- */

static void take_setup(const struct frame *f, const char *body)
{
	agent.body = malloc((size_t)f->len + 1);
	if (agent.body)
		memcpy(agent.body, body, f->len);
	if (!agent.body || !agent_setup_read(&agent.setup, agent.body, f->len)) {
		fprintf(stderr, "mpiexec: the agent does not understand its setup\n");
		_exit(1);
	}
	explicit_bzero(agent.body, sizeof(struct handover)); /* read has its copy */
	agent.ready = true;
	agent.host = (int)agent.setup.host;
	agent.silent_at = weft_clock_ns() + agent.setup.silence * 1000000000ull;
	if (start_ranks(&agent.setup)) {
		start_more();
	} else {
		link_send(&agent.up, FRAME_LOST, agent.host, 0, NULL, 0);
		tell_gone();
	}
	start_agents(&agent.setup);
}

/* Agents that have not answered yet need no word: their end of the link tells them. */
static void drop_unready(void)
{
	for (int i = 0; i < agent.partn; i++)
		if (!agent.parts[i].link.greeted)
			link_close(&agent.parts[i].link);
}

static void take_command(const struct frame *f, const char *body)
{
	struct keeper_msg m = {.op = f->rank, .value = link_int(f, body)};
	if (m.op == KEEPER_LEAVE || m.op == KEEPER_END || m.op == KEEPER_KILL) {
		agent.ending = true;
		drop_unready();
	}
	if (agent.keeper_sock >= 0)
		(void)keeper_send(agent.keeper_sock, m, NULL);
}

static void take_own(const struct frame *f, const char *body)
{
	uint32_t taken[2];
	int i = agent.ready ? agent_rank_find(f->rank) : -1;
	switch ((enum frame_kind)f->kind) {
	case FRAME_SETUP:
		if (!agent.ready)
			take_setup(f, body);
		break;
	case FRAME_COMMAND:
		take_command(f, body);
		break;
	case FRAME_PMI:
		if (i >= 0)
			agent_rank_pmi(i, body, f->len);
		break;
	case FRAME_TAKEN:
		if (i < 0 || f->len != sizeof taken)
			break;
		memcpy(taken, body, sizeof taken);
		agent_rank_taken(i, taken[0] != 0, taken[1]);
		break;
	case FRAME_STDIN:
		agent_stdin_put(body, f->len);
		break;
	case FRAME_PING:
		link_send(&agent.up, FRAME_PONG, agent.host, 0, NULL, 0);
		break;
	case FRAME_PAUSE:
		agent.silent_at = 0;
		break;
	default:
		break;
	}
}

static void up_frame(struct link *l, const struct frame *f, const char *body)
{
	(void)l;
	if (agent.ready)
		agent.silent_at = weft_clock_ns() + agent.setup.silence * 1000000000ull;
	/* The first frame is this host's SETUP: before it, the agent has no number. */
	bool all = f->host == LINK_ALL_HOSTS, own = !agent.ready || f->host == agent.host;
	for (int i = 0; i < agent.partn; i++) {
		struct part *p = &agent.parts[i];
		bool theirs = all || (!own && f->host >= p->first && f->host < p->first + p->count);
		if (theirs && p->link.greeted)
			link_send(&p->link, f->kind, f->host, f->rank, body, f->len);
	}
	if (all || own)
		take_own(f, body);
}

static void part_all(void)
{
	for (int i = 0; i < agent.partn; i++)
		launch_part_with(&agent.parts[i]);
}

/* The keeper sees the end of its socket and kills what is left of the job here. */
static void up_lost(struct link *l, const char *why)
{
	(void)l;
	(void)why;
	part_all();
	_exit(0);
}

/* --- the loop --- */

static int next_timeout_ms(void)
{
	if (!agent.silent_at)
		return -1;
	uint64_t now = weft_clock_ns();
	return agent.silent_at > now ? (int)((agent.silent_at - now) / 1000000u) + 1 : 0;
}

static bool open_link(void)
{
	int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 10),
	    out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 10);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (in < 0 || out < 0 || null < 0 || dup2(null, STDIN_FILENO) < 0 ||
	    dup2(null, STDOUT_FILENO) < 0)
		return false;
	close(null);
	agent.up.frame = up_frame;
	agent.up.lost = up_lost;
	return events_init() && link_open(&agent.up, in, out, false);
}

int agent_main(int argc, char **argv)
{
	static const int defaults[] = {SIGINT, SIGQUIT, SIGHUP, SIGTSTP, SIGCHLD};
	sigset_t all;
	agent.argc = argc;
	agent.argv = argv;
	/* The command that started us may have ignored them: the ranks shall not. */
	for (size_t i = 0; i < weft_countof(defaults); i++)
		signal(defaults[i], SIG_DFL);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	signal(SIGPIPE, SIG_IGN);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) || !open_link()) {
		say("an agent is started by mpiexec, which talks to it through pipes: %s",
		    strerror(errno));
		return 2;
	}
	link_say_hello(&agent.up);
	for (;;) { /* ends: the link up is gone, or silent for too long */
		events_wait(next_timeout_ms());
		if (agent.silent_at && weft_clock_ns() >= agent.silent_at) {
			part_all();
			fprintf(stderr,
				"mpiexec: %s: no word from mpiexec for %u s: its ranks here are "
				"ended\n",
				agent.setup.name, agent.setup.silence);
			return 1;
		}
	}
}
