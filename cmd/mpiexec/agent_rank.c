/* SPDX-License-Identifier: BSD-3-Clause */
/* agent_rank.c - reads pipes within their windows, and passes PMI lines on in both directions. */
#include "agent_rank.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "agent.h"
#include "base/base.h"
#include "conn.h"
#include "ends.h"
#include "keeper.h"

#define CHUNK ((size_t)65536)
#define UP_MAX ((size_t)8 << 20) /* bytes on the link up beyond which ranks are not read */

struct pipe_end {
	struct event_source source;
	int fd; /* -1: closed */
	int rank, which;
	size_t away; /* bytes that mpiexec has not taken yet */
	bool paused, finishing;
};

struct agent_rank {
	struct pipe_end ends[2];
	struct conn conn;
	bool in_line; /* the last byte read was not a newline: what follows is no command's beginning */
};

static struct {
	struct link *up;
	int host, count;
	struct agent_rank *ranks;
	struct {
		struct event_source source;
		int fd; /* -1: closed */
		char *text;
		size_t len;
		bool ended, armed;
	} in;
} a = {.in = {.fd = -1}};

/* --- output --- */

static void close_end(struct pipe_end *e)
{
	if (e->fd < 0)
		return;
	if (!e->paused)
		events_remove(e->fd);
	close(e->fd);
	e->fd = -1;
	link_send_int(a.up, FRAME_CLOSED, a.host, e->rank, e->which);
}

/* Reads what the window allows, once.  1: some, 0: none now, -1: the end. */
static int read_end(struct pipe_end *e)
{
	static char text[CHUNK];
	size_t room = AGENT_WINDOW - e->away;
	ssize_t n = read(e->fd, text, room < CHUNK ? room : CHUNK);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	if (n == 0)
		return -1;
	e->away += (size_t)n;
	link_send(a.up, e->which ? FRAME_ERR : FRAME_OUT, a.host, e->rank, text, (size_t)n);
	return 1;
}

static void end_ready(struct event_source *source, uint32_t events)
{
	struct pipe_end *e = weft_container_of(source, struct pipe_end, source);
	if (e->fd < 0 || e->paused)
		return;
	if (e->away >= AGENT_WINDOW) {
		events_remove(e->fd);
		e->paused = true;
	} else if (read_end(e) < 0) {
		close_end(e);
	}
}

static void finish_end(struct pipe_end *e)
{
	e->finishing = true;
	while (e->fd >= 0 && e->away < AGENT_WINDOW) /* ends: no writer is left */
		if (read_end(e) <= 0)
			close_end(e);
}

void agent_rank_taken(int i, int end, size_t bytes)
{
	struct pipe_end *e = &a.ranks[i].ends[end];
	e->away -= bytes < e->away ? bytes : e->away;
	if (e->fd < 0 || e->away >= AGENT_WINDOW)
		return;
	if (e->paused && events_add(e->fd, EPOLLIN, &e->source))
		e->paused = false;
	if (e->finishing)
		finish_end(e);
}

void agent_ranks_finish(void)
{
	for (int i = 0; i < a.count; i++)
		for (int which = 0; which < 2; which++)
			finish_end(&a.ranks[i].ends[which]);
}

/* --- PMI --- */

/* The process that says init is watched; one that says finalize may end as it likes. */
static void look_at_lines(struct agent_rank *r, const char *text, size_t len)
{
	struct conn *c = &r->conn;
	for (size_t at = 0; at < len;) { /* ends: at moves past a line */
		const char *nl = memchr(text + at, '\n', len - at);
		size_t n = nl ? (size_t)(nl - text) - at : len - at;
		if (!r->in_line && n >= 9 && memcmp(text + at, "cmd=init ", 9) == 0)
			conn_watch_speaker(c);
		else if (!r->in_line && n >= 12 && memcmp(text + at, "cmd=finalize", 12) == 0)
			conn_stop_watching(c);
		r->in_line = !nl;
		at += n + (nl ? 1 : 0);
	}
}

/* True: there may be more to read. */
static bool read_pmi(struct agent_rank *r)
{
	struct conn *c = &r->conn;
	c->in_len = 0;
	ssize_t n = conn_receive(c);
	if (n > 0) {
		look_at_lines(r, c->in, (size_t)n);
		link_send(a.up, FRAME_PMI, a.host, c->rank, c->in, (size_t)n);
		return true;
	}
	if (n == 0 || (errno != EAGAIN && errno != EINTR))
		events_remove(c->fd);
	return false;
}

static void pmi_ready(struct event_source *source, uint32_t events)
{
	struct agent_rank *r = weft_container_of(source, struct agent_rank, conn.source);
	if (r->conn.fd < 0)
		return;
	if (events & EPOLLOUT) {
		conn_flush(&r->conn);
		conn_want(&r->conn);
	}
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR) && link_waiting(a.up) < UP_MAX)
		(void)read_pmi(r);
}

static void speaker_ended(struct event_source *source, uint32_t events)
{
	struct agent_rank *r = weft_container_of(source, struct agent_rank, conn.watcher);
	struct conn *c = &r->conn;
	if (c->pid_fd < 0)
		return;
	if (events & EPOLLHUP)
		events_remove(c->pid_fd);
	else
		(void)events_change(c->pid_fd, 0, &c->watcher);
	conn_learn_status(c);
	while (c->fd >= 0 && read_pmi(r))
		continue; /* ends: the socket is empty */
	link_send_int(a.up, FRAME_SPEAKER, a.host, c->rank, c->speaker_status);
}

void agent_rank_pmi(int i, const char *text, size_t len)
{
	struct conn *c = &a.ranks[i].conn;
	if (c->fd >= 0)
		conn_answer_bytes(c, text, len);
}

void agent_rank_ended(int i)
{
	struct agent_rank *r = &a.ranks[i];
	struct conn *c = &r->conn;
	while (c->fd >= 0 && read_pmi(r))
		continue; /* ends: the socket is empty */
	if (c->pid_fd >= 0) {
		conn_learn_status(c);
		link_send_int(a.up, FRAME_SPEAKER, a.host, c->rank, c->speaker_status);
	}
	conn_stop_watching(c);
	if (c->fd < 0)
		return;
	events_remove(c->fd);
	close(c->fd);
	c->fd = -1;
}

/* --- starting --- */

bool agent_ranks_init(struct link *up, int host, const uint32_t *ranks, int count)
{
	a.up = up;
	a.host = host;
	a.count = count;
	a.ranks = calloc((size_t)count, sizeof *a.ranks);
	for (int i = 0; a.ranks && i < count; i++) {
		struct agent_rank *r = &a.ranks[i];
		for (int which = 0; which < 2; which++)
			r->ends[which] = (struct pipe_end){.source = {end_ready},
							   .fd = -1,
							   .rank = (int)ranks[i],
							   .which = which};
		r->conn = (struct conn){
			.fd = -1, .pid_fd = -1, .rank = (int)ranks[i], .speaker_status = -1};
		r->conn.source.ready = pmi_ready;
		r->conn.watcher.ready = speaker_ended;
	}
	return a.ranks;
}

int agent_rank_find(int rank)
{
	for (int i = 0; i < a.count; i++)
		if (a.ranks[i].conn.rank == rank)
			return i;
	return -1;
}

static bool take_pipe(struct pipe_end *e, int *fd_p)
{
	if (fcntl(*fd_p, F_SETFL, O_NONBLOCK) || !events_add(*fd_p, EPOLLIN, &e->source))
		return false;
	e->fd = *fd_p;
	*fd_p = -1;
	return true;
}

static bool take_ends(struct agent_rank *r, struct ends *e, const struct handover *handover)
{
	struct conn *c = &r->conn;
	int on = 1;
	if (send(e->ours[KEEPER_FD_BOOT], handover, sizeof *handover, MSG_NOSIGNAL) !=
	    (ssize_t)sizeof *handover)
		return false;
	c->in_cap = 4096;
	c->in = malloc(c->in_cap);
	if (!c->in || !take_pipe(&r->ends[0], &e->ours[KEEPER_FD_OUT]) ||
	    !take_pipe(&r->ends[1], &e->ours[KEEPER_FD_ERR]) ||
	    !events_add(e->ours[KEEPER_FD_PMI], EPOLLIN, &c->source))
		return false;
	c->fd = e->ours[KEEPER_FD_PMI];
	e->ours[KEEPER_FD_PMI] = -1;
	(void)setsockopt(c->fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
	return true;
}

bool agent_rank_start(int i, int keeper_sock, const struct handover *handover)
{
	struct agent_rank *r = &a.ranks[i];
	struct ends e;
	struct keeper_msg m = {.op = KEEPER_SPAWN, .rank = r->conn.rank};
	bool good = ends_make(&e) && take_ends(r, &e, handover);
	int error = errno;
	if (!good) {
		struct keeper_msg failed = {.op = KEEPER_FAILED,
					    .rank = r->conn.rank,
					    .value = error,
					    .step = KEEPER_STEP_SETUP};
		link_send(a.up, FRAME_KEEPER, a.host, r->conn.rank, &failed, sizeof failed);
	}
	good = good && keeper_send(keeper_sock, m, e.theirs);
	ends_close(e.ours);
	ends_close(e.theirs);
	return good;
}

/* --- stdin of rank 0 --- */

static void close_stdin(void)
{
	if (a.in.fd < 0)
		return;
	if (a.in.armed)
		events_remove(a.in.fd);
	close(a.in.fd);
	a.in.fd = -1;
	free(a.in.text);
	a.in.text = NULL;
	a.in.len = 0;
}

static void tell_eaten(size_t bytes)
{
	if (bytes)
		link_send_int(a.up, FRAME_EATEN, a.host, 0, (int)bytes);
}

static void feed_stdin(void)
{
	size_t done = 0;
	while (a.in.fd >= 0 && done < a.in.len) { /* ends: written, full, or no reader */
		ssize_t n = write(a.in.fd, a.in.text + done, a.in.len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n <= 0) {
			tell_eaten(a.in.len); /* its reader has gone: what comes is dropped */
			close_stdin();
			return;
		}
		done += (size_t)n;
	}
	if (done)
		memmove(a.in.text, a.in.text + done, a.in.len - done);
	a.in.len -= done;
	tell_eaten(done);
	bool arm = a.in.len > 0;
	if (arm && !a.in.armed)
		a.in.armed = events_add(a.in.fd, EPOLLOUT, &a.in.source);
	else if (!arm && a.in.armed) {
		events_remove(a.in.fd);
		a.in.armed = false;
	}
	if (!a.in.len && a.in.ended)
		close_stdin();
}

static void stdin_ready(struct event_source *source, uint32_t events)
{
	(void)source;
	(void)events;
	feed_stdin();
}

void agent_stdin_open(int fd)
{
	a.in.fd = fd;
	a.in.source.ready = stdin_ready;
	(void)fcntl(fd, F_SETFL, O_NONBLOCK);
}

void agent_stdin_forget(void)
{
	if (a.in.fd >= 0)
		close(a.in.fd);
}

void agent_stdin_put(const char *text, size_t len)
{
	if (a.in.fd < 0) {
		if (a.up)
			tell_eaten(len);
		return;
	}
	char *more = len ? realloc(a.in.text, a.in.len + len) : NULL;
	if (len && !more) {
		close_stdin();
		return;
	}
	if (len) {
		a.in.text = more;
		memcpy(more + a.in.len, text, len);
		a.in.len += len;
	}
	a.in.ended = a.in.ended || !len;
	feed_stdin();
}
