/* SPDX-License-Identifier: BSD-3-Clause */
/* remote.c - the table of hosts, their setups, and frames to and from ranks. */
#include "remote.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "agent.h"
#include "agent_setup.h"
#include "base/base.h"
#include "base/settings.h"
#include "launch.h"
#include "pmi.h"
#include "say.h"
#include "spawned.h"

#define SECOND_NS 1000000000ull
#define TELL_NS (15 * SECOND_NS)   /* until a line says which hosts have not answered */
#define READY_NS (180 * SECOND_NS) /* until they count as lost */

enum state {
	STARTING,
	RUNNING, /* its setup is on the way: ranks start */
	GONE,    /* no process of the job is left there */
};

struct host {
	enum state state;
	bool asked; /* our ping has no answer yet */
	uint64_t heard_at;
	int *ranks, count;
};

struct far_rank {
	struct stream *streams[2];
	int rank, host;
	bool ended;
};

static struct {
	struct remote_setup s;
	struct host *hosts;
	int hostn, gone, starting;
	char **names; /* of the hosts */
	struct far_rank *ranks;
	struct launch launch;
	struct part *parts;
	int partn;
	char program[PATH_MAX], folder[PATH_MAX];
	uint64_t started_at, ping_at, silence_ns;
	bool told, ending;
	struct {
		struct event_source source;
		size_t away; /* bytes that rank 0 has not been given */
		bool armed, plain, ended;
	} in;
} r;

const char *remote_launcher(const struct plan *plan)
{
	return plan->agent ? plan->agent : weft_setting_str(WEFT_SET_RSH);
}

static void send_to(int host, uint32_t kind, int rank, const void *body, size_t len)
{
	struct part *p = launch_part_of(r.parts, r.partn, host);
	if (p)
		link_send(&p->link, kind, host, rank, body, len);
}

static void send_all(uint32_t kind, int rank, int value)
{
	for (int i = 0; i < r.partn; i++)
		if (r.parts[i].link.greeted)
			link_send_int(&r.parts[i].link, kind, LINK_ALL_HOSTS, rank, value);
}

/* --- hosts --- */

/* No process of the job is left there; their ranks have said all that they will. */
static void host_gone(int h)
{
	struct host *host = &r.hosts[h];
	if (host->state == GONE)
		return;
	if (host->state == STARTING)
		r.starting--;
	host->state = GONE;
	r.gone++;
	if (r.gone == r.hostn)
		r.s.hooks->heard(&(struct keeper_msg){.op = KEEPER_GONE});
}

static void end_streams(int h)
{
	for (int i = 0; i < r.hosts[h].count; i++)
		for (int end = 0; end < 2; end++)
			if (r.ranks[r.hosts[h].ranks[i]].streams[end])
				stream_end(r.ranks[r.hosts[h].ranks[i]].streams[end]);
}

static void host_lost(int h, const char *why)
{
	if (r.hosts[h].state == GONE)
		return;
	end_streams(h);
	for (int i = 0; i < r.hosts[h].count; i++)
		if (r.hosts[h].state == RUNNING && !r.ranks[r.hosts[h].ranks[i]].ended)
			pmi_detach(r.hosts[h].ranks[i]);
	if (!r.ending)
		r.s.hooks->host_lost(h, why);
	host_gone(h);
}

static void part_lost(struct link *l, const char *why)
{
	struct part *p = weft_container_of(l, struct part, link);
	why = launch_why(p, &r.launch, why);
	for (int h = p->first; h < p->first + p->count; h++)
		host_lost(h, why);
}

/* --- setting up a host --- */

extern char **environ;

static uint32_t count_environ(void)
{
	uint32_t n = 0;
	while (environ[n])
		n++; /* ends: the list ends in NULL */
	return n;
}

static void to_rank(int rank, const char *text, size_t len)
{
	send_to(r.ranks[rank].host, FRAME_PMI, rank, text, len);
}

static void tell_taken(struct far_rank *f, int end, size_t bytes)
{
	uint32_t body[2] = {(uint32_t)end, (uint32_t)bytes};
	send_to(f->host, FRAME_TAKEN, f->rank, body, sizeof body);
}

static void out_taken(void *arg, size_t bytes)
{
	tell_taken(arg, 0, bytes);
}

static void err_taken(void *arg, size_t bytes)
{
	tell_taken(arg, 1, bytes);
}

static bool attach_rank(int rank)
{
	struct far_rank *f = &r.ranks[rank];
	struct stream_way way;
	for (int end = 0; end < 2; end++) {
		if (!r.s.hooks->way(rank, end, &way))
			return false;
		f->streams[end] = stream_open_fed(&way, end ? err_taken : out_taken, f);
		if (!f->streams[end])
			return false;
	}
	pmi_attach_far(rank, plan_appnum_of(r.s.plan, rank), to_rank);
	return true;
}

/* The hosts below h's agent: the rest of the part that h is the first of, cut as launch_parts cuts. */
static void share_below(int h, struct agent_setup *s)
{
	int first = 0, count = r.hostn;
	for (;;) { /* ends: h is the first of a part, which gets smaller each turn */
		int parts = count < r.launch.fanout ? count : r.launch.fanout, i = 0;
		int from = 0, to = 0;
		for (; i < parts; i++) {
			from = first + (int)((long)count * i / parts);
			to = first + (int)((long)count * (i + 1) / parts);
			if (h >= from && h < to)
				break;
		}
		if (h == from) {
			s->below = (uint32_t)h + 1;
			s->hosts = r.names + h + 1;
			s->hostc = (uint32_t)(to - from - 1);
			return;
		}
		first = from + 1;
		count = to - from - 1;
	}
}

static bool send_setup(int h)
{
	struct host *host = &r.hosts[h];
	char **slots = r.s.place->slots ? calloc((size_t)host->count, sizeof *slots) : NULL;
	struct agent_setup s = {
		.handover = *r.s.handover,
		.host = (uint32_t)h,
		.name = r.s.place->hosts.items[h].name,
		.folder = r.folder,
		.launcher = r.s.launcher,
		.program = r.program,
		.fanout = (uint32_t)r.launch.fanout,
		.silence = (uint32_t)(r.silence_ns / SECOND_NS),
		.argv = r.s.plan->argv,
		.argc = (uint32_t)r.s.plan->argc,
		.env = environ,
		.envc = count_environ(),
		.ranks = (uint32_t *)host->ranks,
		.rankc = (uint32_t)host->count,
		.slots = slots,
		.slotc = slots ? (uint32_t)host->count : 0,
	};
	s.mode = (uint32_t)umask(0);
	umask((mode_t)s.mode);
	for (int i = 0; slots && i < host->count; i++)
		slots[i] = (char *)r.s.place->slots[host->ranks[i]];
	share_below(h, &s);
	size_t len = 0;
	char *body = agent_setup_write(&s, &len);
	explicit_bzero(&s.handover, sizeof s.handover);
	free(slots);
	if (!body)
		return false;
	send_to(h, FRAME_SETUP, 0, body, len);
	explicit_bzero(body, len);
	free(body);
	return true;
}

static void host_ready(int h)
{
	struct host *host = &r.hosts[h];
	if (host->state != STARTING || r.ending)
		return;
	bool good = true;
	for (int i = 0; i < host->count && good; i++)
		good = attach_rank(host->ranks[i]);
	host->state = RUNNING;
	r.starting--;
	if (!good || !send_setup(h))
		host_lost(h, "no memory");
}

static void part_greeted(struct link *l)
{
	host_ready(weft_container_of(l, struct part, link)->first);
}

/* --- stdin of rank 0 --- */

/* Reads while its window is open.  A regular file is always ready, and the kernel's epoll knows none. */
static void read_stdin(void)
{
	static char text[65536];
	int host = r.ranks[0].host;
	do {
		size_t room = AGENT_WINDOW - r.in.away;
		ssize_t n = read(STDIN_FILENO, text, room < sizeof text ? room : sizeof text);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		r.in.ended = n <= 0;
		send_to(host, FRAME_STDIN, 0, text, n > 0 ? (size_t)n : 0);
		r.in.away += n > 0 ? (size_t)n : 0;
	} while (r.in.plain && !r.in.ended && r.in.away < AGENT_WINDOW);
	if (r.in.armed && (r.in.ended || r.in.away >= AGENT_WINDOW)) {
		events_remove(STDIN_FILENO);
		r.in.armed = false;
	}
}

static void stdin_ready(struct event_source *source, uint32_t events)
{
	(void)source;
	(void)events;
	read_stdin();
}

static void want_stdin(void)
{
	if (r.in.ended || r.in.armed || r.in.away >= AGENT_WINDOW)
		return;
	r.in.source.ready = stdin_ready;
	r.in.armed = !r.in.plain && events_add(STDIN_FILENO, EPOLLIN, &r.in.source);
	if (!r.in.armed) {
		r.in.plain = true;
		read_stdin();
	}
}

/* --- frames --- */

static void heard_keeper(int h, const struct keeper_msg *m)
{
	if (m->op == KEEPER_GONE) {
		host_gone(h);
		return;
	}
	if (m->rank < 0 || m->rank >= r.s.plan->size || r.ranks[m->rank].host != h)
		return;
	if (m->op == KEEPER_EXITED)
		r.ranks[m->rank].ended = true;
	if (m->op == KEEPER_STARTED && m->rank == 0)
		want_stdin();
	r.s.hooks->heard(m);
}

static void heard_rank(struct far_rank *f, const struct frame *head, const char *body)
{
	int value = link_int(head, body);
	switch ((enum frame_kind)head->kind) {
	case FRAME_OUT:
	case FRAME_ERR:
		if (f->streams[head->kind == FRAME_ERR])
			stream_feed(f->streams[head->kind == FRAME_ERR], body, head->len);
		break;
	case FRAME_CLOSED:
		if (f->streams[value != 0])
			stream_end(f->streams[value != 0]);
		break;
	case FRAME_PMI:
		pmi_feed(f->rank, body, head->len);
		break;
	case FRAME_SPEAKER:
		pmi_speaker_ended(f->rank, value);
		break;
	default:
		break;
	}
}

static void part_frame(struct link *l, const struct frame *f, const char *body)
{
	struct keeper_msg m;
	size_t eaten;
	(void)l;
	if (f->host < 0 || f->host >= r.hostn)
		return;
	r.hosts[f->host].heard_at = weft_clock_ns();
	r.hosts[f->host].asked = false;
	switch ((enum frame_kind)f->kind) {
	case FRAME_READY:
		host_ready(f->host);
		break;
	case FRAME_KEEPER:
		if (f->len != sizeof m)
			break;
		memcpy(&m, body, sizeof m);
		heard_keeper(f->host, &m);
		break;
	case FRAME_SAY:
		if (f->len)
			sink_put(sink_stderr(), NULL, NULL, 0, body, f->len);
		break;
	case FRAME_EATEN:
		eaten = (size_t)link_int(f, body);
		r.in.away -= eaten < r.in.away ? eaten : r.in.away;
		want_stdin();
		break;
	case FRAME_LOST:
		host_lost(f->host, f->len && !body[f->len - 1] ? body : NULL);
		break;
	default:
		if (f->rank >= 0 && f->rank < r.s.plan->size && r.ranks[f->rank].host == f->host)
			heard_rank(&r.ranks[f->rank], f, body);
		break;
	}
}

/* --- the clock --- */

static void tell_late(void)
{
	char names[256] = "";
	size_t len = 0;
	for (int h = 0; h < r.hostn && len < sizeof names - 64; h++)
		if (r.hosts[h].state == STARTING)
			len += (size_t)snprintf(names + len, sizeof names - len, " %.60s",
						r.s.place->hosts.items[h].name);
	say("waiting for an agent on%s%s", names, len >= sizeof names - 64 ? " ..." : "");
	r.told = true;
}

int remote_tick(void)
{
	uint64_t now = weft_clock_ns();
	if (r.starting && !r.told && now >= r.started_at + TELL_NS)
		tell_late();
	for (int h = 0; h < r.hostn && r.starting && now >= r.started_at + READY_NS; h++)
		if (r.hosts[h].state == STARTING)
			host_lost(h, "no agent has answered for 180 s");
	for (int h = 0; h < r.hostn; h++)
		if (r.hosts[h].state == RUNNING && r.hosts[h].asked &&
		    now >= r.hosts[h].heard_at + r.silence_ns)
			host_lost(h, "its agent has fallen silent");
	if (now >= r.ping_at) {
		send_all(FRAME_PING, 0, 0);
		for (int h = 0; h < r.hostn; h++) {
			if (r.hosts[h].asked)
				continue;
			r.hosts[h].asked = true;
			r.hosts[h].heard_at = now;
		}
		r.ping_at = now + r.silence_ns / 4;
	}
	return (int)((r.ping_at - now) / 1000000u) + 1;
}

/* --- the interface --- */

bool remote_needs_secret(void)
{
	return r.starting > 0 && !r.ending;
}

void remote_command(enum keeper_op op, int value)
{
	bool end = op == KEEPER_LEAVE || op == KEEPER_END || op == KEEPER_KILL;
	send_all(FRAME_COMMAND, (int)op, value);
	if (!end)
		return;
	r.ending = true;
	for (int h = 0; h < r.hostn; h++)
		if (r.hosts[h].state == STARTING)
			host_gone(h); /* it has got no setup, and gets none */
	for (int i = 0; i < r.partn; i++)
		if (!r.parts[i].link.greeted)
			link_close(&r.parts[i].link);
}

void remote_pause(void)
{
	send_all(FRAME_PAUSE, 0, 0);
	r.ping_at = 0; /* the first thing after it: a ping */
	for (int h = 0; h < r.hostn; h++)
		r.hosts[h].asked = false;
}

static bool make_tables(void)
{
	int size = r.s.plan->size;
	r.hostn = r.s.place->hosts.count;
	r.hosts = calloc((size_t)r.hostn, sizeof *r.hosts);
	r.ranks = calloc((size_t)size, sizeof *r.ranks);
	r.names = calloc((size_t)r.hostn, sizeof *r.names);
	if (!r.hosts || !r.ranks || !r.names)
		return false;
	for (int h = 0; h < r.hostn; h++) {
		r.names[h] = (char *)r.s.place->hosts.items[h].name;
		r.hosts[h].ranks = calloc((size_t)r.s.place->counts[h] + 1, sizeof(int));
		if (!r.hosts[h].ranks)
			return false;
	}
	for (int rank = 0; rank < size; rank++) {
		struct host *h = &r.hosts[r.s.place->host_of[rank]];
		r.ranks[rank] = (struct far_rank){.rank = rank, .host = r.s.place->host_of[rank]};
		h->ranks[h->count++] = rank;
	}
	return true;
}

/* What the ranks have to know to start processes on the job's hosts.  A job that was started so has the hosts of the
 * one that has started it. */
static bool show_hosts(void)
{
	char *list = NULL;
	size_t len;
	if (spawned_is())
		return true;
	FILE *out = open_memstream(&list, &len);
	for (int h = 0; out && h < r.hostn; h++)
		fprintf(out, "%s%s", h ? "," : "", r.names[h]);
	bool good = out && fclose(out) == 0 && setenv(JOB_HOSTS, list, 1) == 0 &&
		    setenv(JOB_RSH, r.s.launcher, 1) == 0;
	free(list);
	return good;
}

static bool find_paths(void)
{
	ssize_t n = readlink("/proc/self/exe", r.program, sizeof r.program - 1);
	if (n < 0 || !getcwd(r.folder, sizeof r.folder)) {
		say("cannot find out where mpiexec runs: %s", strerror(errno));
		return false;
	}
	return true;
}

static void watch_errors(struct part *p)
{
	struct stream_way way = {.rank = -1, .sink = sink_stderr(), .file = -1};
	if (p->errors >= 0 && !stream_open(p->errors, &way))
		close(p->errors);
}

bool remote_start(const struct remote_setup *setup)
{
	r.s = *setup;
	if (!make_tables() || !show_hosts()) {
		say("no memory");
		return false;
	}
	if (!find_paths())
		return false;
	r.launch = (struct launch){
		.command = setup->launcher,
		.program = r.program,
		.count = r.hostn,
		.names = r.names,
		.fanout = (int)weft_setting_int(WEFT_SET_RSH_FANOUT),
		.here_direct = setup->here_direct,
		.greet = part_greeted,
		.frame = part_frame,
		.lost = part_lost,
	};
	r.starting = r.hostn;
	r.started_at = weft_clock_ns();
	r.silence_ns = (uint64_t)weft_setting_int(WEFT_SET_AGENT_SILENCE) * SECOND_NS;
	r.ping_at = r.started_at + r.silence_ns / 4;
	if (!launch_parts(&r.launch, true, &r.parts, &r.partn))
		return false;
	for (int i = 0; i < r.partn; i++)
		watch_errors(&r.parts[i]);
	return true;
}

void remote_end(void)
{
	for (int i = 0; i < r.partn; i++)
		launch_part_with(&r.parts[i]);
}
