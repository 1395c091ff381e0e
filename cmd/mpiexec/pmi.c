/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi.c - obeys the lines of each rank, counts barriers, watches the processes that speak. */
#include "pmi.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/base.h"
#include "conn.h"
#include "events.h"
#include "kvs.h"

#define LINE_BYTES_MAX 65536
#define KEY_BYTES 64
#define VALUE_BYTES 4096
#define BATCH_BYTES 32768 /* a client reads lines of 64 KiB */

static struct {
	struct conn *conns;
	int size, in_barrier, gone;
	uint64_t barrier_since;
	char name[96];
	const struct pmi_hooks *hooks;
} srv;

/* --- requests --- */

/* Copies the value of key in line, up to the next blank; false: absent or too long. */
static bool read_field(const char *line, const char *key, char *buf, size_t size)
{
	size_t n = strlen(key);
	while (*line) { /* ends: line moves past one word */
		line += strspn(line, " \t\r");
		size_t len = strcspn(line, " \t\r");
		if (len > n && strncmp(line, key, n) == 0 && line[n] == '=') {
			if (len - n - 1 >= size)
				return false;
			memcpy(buf, line + n + 1, len - n - 1);
			buf[len - n - 1] = 0;
			return true;
		}
		line += len;
	}
	return false;
}

/* Leaves MPI: how the process ends is no longer a matter of its peers, and the rank may yet run
 * another program. */
static void do_finalize(struct conn *c)
{
	c->state = PMI_LEFT;
	conn_stop_watching(c);
	conn_answer(c, "cmd=finalize_ack rc=0\n");
}

static void do_init(struct conn *c, const char *line)
{
	char version[8];
	if (!read_field(line, "pmi_version", version, sizeof version) ||
	    strcmp(version, "1") != 0) {
		conn_answer(c, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n");
		return;
	}
	c->state = PMI_JOINED;
	conn_watch_speaker(c);
	conn_answer(c, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
}

static void do_put(struct conn *c, const char *line)
{
	char key[KEY_BYTES], value[VALUE_BYTES];
	if (!read_field(line, "key", key, sizeof key) || !key[0])
		conn_answer(c, "cmd=put_result rc=-1 msg=bad_key\n");
	else if (!read_field(line, "value", value, sizeof value))
		conn_answer(c, "cmd=put_result rc=-1 msg=bad_value\n");
	else if (!kvs_put(key, value))
		conn_answer(c, "cmd=put_result rc=-1 msg=no_room\n");
	else
		conn_answer(c, "cmd=put_result rc=0 msg=success\n");
}

static void do_get(struct conn *c, const char *line)
{
	char key[KEY_BYTES];
	const char *value = read_field(line, "key", key, sizeof key) ? kvs_get(key) : NULL;
	if (value)
		conn_answer(c, "cmd=get_result rc=0 msg=success value=%s\n", value);
	else
		conn_answer(c, "cmd=get_result rc=-1 msg=key_not_found value=unknown\n");
}

/* Our own addition: the first parts of many ranks' batches in one answer (see src/boot/boot.c). */
static void do_batch(struct conn *c, const char *line)
{
	static char text[BATCH_BYTES + VALUE_BYTES + 1];
	char number[16];
	long batch =
		read_field(line, "batch", number, sizeof number) ? strtol(number, NULL, 10) : -1;
	long from = read_field(line, "from", number, sizeof number) ? strtol(number, NULL, 10) : -1;
	size_t n = 0;
	if (batch < 0 || from < 0 || from >= srv.size) {
		conn_answer(c, "cmd=weft_batch_result rc=-1 msg=bad_range\n");
		return;
	}
	long rank = from;
	for (; rank < srv.size && n < BATCH_BYTES; rank++) {
		char key[KEY_BYTES];
		snprintf(key, sizeof key, "w%ld.%ld.0", batch, rank);
		const char *value = kvs_get(key);
		size_t len = value ? strlen(value) : 0;
		memcpy(text + n, value ? value : "", len);
		n += len;
		text[n++] = ';';
	}
	text[n] = 0;
	conn_answer(c, "cmd=weft_batch_result rc=0 next=%ld value=%s\n", rank, text);
}

static void check_stuck(void)
{
	if (!srv.in_barrier || !srv.gone)
		return;
	for (int i = 0; i < srv.size; i++) {
		if (srv.conns[i].gone && !srv.conns[i].in_barrier) {
			srv.hooks->stuck(i);
			return;
		}
	}
}

static void do_barrier(struct conn *c)
{
	if (!srv.in_barrier)
		srv.barrier_since = weft_clock_ns();
	if (!c->in_barrier) {
		c->in_barrier = true;
		srv.in_barrier++;
	}
	if (srv.in_barrier < srv.size) {
		check_stuck();
		return;
	}
	srv.in_barrier = 0;
	for (int i = 0; i < srv.size; i++)
		srv.conns[i].in_barrier = false;
	for (int i = 0; i < srv.size; i++)
		conn_answer(&srv.conns[i], "cmd=barrier_out\n");
}

static void do_abort(struct conn *c, const char *line)
{
	char text[16];
	long code = read_field(line, "exitcode", text, sizeof text) ? strtol(text, NULL, 10) : 1;
	/* Ours say why, in words to the line's end, if it is for what another rank did. */
	static char first_why[512];
	const char *why = strstr(line, " why=");
	if (why && !first_why[0])
		snprintf(first_why, sizeof first_why, "%s", why + strlen(" why="));
	c->aborted = true;
	srv.hooks->aborted(c->rank, (int)code, why ? first_why : NULL);
}

/* Requests that only need one fixed line. */
static bool do_simple(struct conn *c, const char *cmd)
{
	if (strcmp(cmd, "get_maxes") == 0)
		conn_answer(c, "cmd=maxes kvsname_max=%zu keylen_max=%d vallen_max=%d\n",
			    sizeof srv.name, KEY_BYTES, VALUE_BYTES);
	else if (strcmp(cmd, "get_appnum") == 0)
		conn_answer(c, "cmd=appnum appnum=%d\n", c->appnum);
	else if (strcmp(cmd, "get_my_kvsname") == 0)
		conn_answer(c, "cmd=my_kvsname kvsname=%s\n", srv.name);
	else if (strcmp(cmd, "get_universe_size") == 0)
		conn_answer(c, "cmd=universe_size size=-1\n"); /* there is no limit */
	else if (strcmp(cmd, "getbyidx") == 0)
		conn_answer(c, "cmd=getbyidx_results rc=-1 reason=not_supported\n");
	else if (strcmp(cmd, "create_kvs") == 0)
		conn_answer(c, "cmd=newkvs rc=-1 kvsname=\n");
	else if (strcmp(cmd, "publish_name") == 0)
		conn_answer(c, "cmd=publish_result rc=-1 info=failed msg=not_supported\n");
	else if (strcmp(cmd, "unpublish_name") == 0)
		conn_answer(c, "cmd=unpublish_result rc=-1 info=failed msg=not_supported\n");
	else if (strcmp(cmd, "lookup_name") == 0)
		conn_answer(c, "cmd=lookup_result rc=-1 info=failed msg=not_supported\n");
	else
		return false;
	return true;
}

static void obey_request(struct conn *c, const char *line)
{
	char cmd[32];
	if (c->in_multi) { /* a spawn request spans lines; its end is all that matters here */
		if (strcmp(line, "endcmd") == 0) {
			c->in_multi = false;
			conn_answer(c, "cmd=spawn_result rc=-1 status=not_supported\n");
		}
		return;
	}
	if (strncmp(line, "mcmd=spawn", 10) == 0) {
		c->in_multi = true;
		return;
	}
	if (!read_field(line, "cmd", cmd, sizeof cmd)) {
		srv.hooks->broken(c->rank, "a line that is not PMI-1");
		return;
	}
	if (strcmp(cmd, "put") == 0)
		do_put(c, line);
	else if (strcmp(cmd, "get") == 0)
		do_get(c, line);
	else if (strcmp(cmd, "weft_batch") == 0)
		do_batch(c, line);
	else if (strcmp(cmd, "barrier_in") == 0)
		do_barrier(c);
	else if (strcmp(cmd, "init") == 0)
		do_init(c, line);
	else if (strcmp(cmd, "abort") == 0)
		do_abort(c, line);
	else if (strcmp(cmd, "finalize") == 0)
		do_finalize(c);
	else if (!do_simple(c, cmd))
		conn_answer(c, "cmd=%s_result rc=-1 msg=unknown_command\n", cmd);
}

/* --- the connection --- */

static void close_conn(struct conn *c)
{
	if (conn_is_open(c)) {
		c->gone = true;
		srv.gone++;
	}
	if (c->fd >= 0) {
		events_remove(c->fd);
		close(c->fd);
		c->fd = -1;
	}
	c->send = NULL;
	conn_stop_watching(c);
	free(c->in);
	free(c->out);
	c->in = c->out = NULL;
	c->in_len = c->in_cap = c->out_len = c->out_cap = 0;
}

static void obey_lines(struct conn *c)
{
	size_t at = 0;
	while (conn_is_open(c)) { /* ends: no complete line is left */
		char *nl = memchr(c->in + at, '\n', c->in_len - at);
		if (!nl)
			break;
		*nl = 0;
		const char *line = c->in + at;
		if (strlen(line) != (size_t)(nl - line))
			srv.hooks->broken(c->rank, "a NUL byte");
		else
			obey_request(c, line);
		at = (size_t)(nl - c->in) + 1;
	}
	memmove(c->in, c->in + at, c->in_len - at);
	c->in_len -= at;
}

static bool make_room(struct conn *c)
{
	if (c->in_cap - c->in_len >= 2048)
		return true;
	size_t cap = c->in_cap ? c->in_cap * 2 : 4096;
	char *more = cap <= 2 * LINE_BYTES_MAX ? realloc(c->in, cap) : NULL;
	if (!more) {
		srv.hooks->broken(c->rank, "a line that does not end");
		close_conn(c);
		return false;
	}
	c->in = more;
	c->in_cap = cap;
	return true;
}

void pmi_feed(int rank, const char *text, size_t len)
{
	struct conn *c = &srv.conns[rank];
	while (len && c->send && make_room(c)) { /* ends: each turn takes some of the text */
		size_t room = c->in_cap - c->in_len - 1, n = len < room ? len : room;
		memcpy(c->in + c->in_len, text, n);
		c->in_len += n;
		text += n;
		len -= n;
		obey_lines(c);
	}
}

/* True: there may be more to read. */
static bool read_lines(struct conn *c)
{
	if (!make_room(c))
		return false;
	ssize_t n = conn_receive(c);
	if (n > 0) {
		c->in_len += (size_t)n;
		obey_lines(c);
		return c->fd >= 0;
	}
	if (n == 0 || (errno != EAGAIN && errno != EINTR))
		events_remove(c->fd); /* every holder is gone; what that means, its exit tells */
	return false;
}

static void socket_ready(struct event_source *source, uint32_t events)
{
	struct conn *c = weft_container_of(source, struct conn, source);
	if (c->fd < 0)
		return;
	if (events & EPOLLOUT) {
		conn_flush(c);
		conn_want(c);
	}
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		(void)read_lines(c);
}

/* First it ends (EPOLLIN), then its parent reaps it (EPOLLHUP): only then its status is known. */
static void speaker_ended(struct event_source *source, uint32_t events)
{
	struct conn *c = weft_container_of(source, struct conn, watcher);
	if (c->pid_fd < 0)
		return;
	if (events & EPOLLHUP)
		events_remove(c->pid_fd);
	else
		(void)events_change(c->pid_fd, 0, &c->watcher);
	conn_learn_status(c);
	c->speaker_gone = true;
	while (c->fd >= 0 && read_lines(c))
		continue; /* ends: the socket is empty */
	if (c->state == PMI_JOINED && !c->aborted)
		srv.hooks->lost(c->rank, c->speaker_status);
}

/* --- the interface --- */

bool pmi_init(int size, const char *jobid, const char *mapping, const struct pmi_hooks *hooks)
{
	srv.conns = calloc((size_t)size, sizeof *srv.conns);
	srv.size = size;
	srv.hooks = hooks;
	snprintf(srv.name, sizeof srv.name, "kvs_%s", jobid);
	/* A mapping that no client could read is left out: then each finds its neighbours by itself. */
	if (!srv.conns || !mapping ||
	    (strlen(mapping) < VALUE_BYTES && !kvs_put("PMI_process_mapping", mapping)))
		return false;
	for (int i = 0; i < size; i++)
		srv.conns[i] =
			(struct conn){.fd = -1, .pid_fd = -1, .rank = i, .speaker_status = -1};
	return true;
}

bool pmi_attach(int rank, int appnum, int fd)
{
	struct conn *c = &srv.conns[rank];
	int on = 1;
	c->fd = fd;
	c->appnum = appnum;
	c->source.ready = socket_ready;
	c->watcher.ready = speaker_ended;
	(void)setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
	return events_add(fd, EPOLLIN, &c->source);
}

void pmi_attach_far(int rank, int appnum, void (*send)(int rank, const char *text, size_t len))
{
	struct conn *c = &srv.conns[rank];
	c->appnum = appnum;
	c->send = send;
}

void pmi_speaker_ended(int rank, int status)
{
	struct conn *c = &srv.conns[rank];
	c->speaker_status = status;
	c->speaker_gone = true;
	if (c->state == PMI_JOINED && !c->aborted)
		srv.hooks->lost(rank, status);
}

void pmi_detach(int rank)
{
	struct conn *c = &srv.conns[rank];
	while (c->fd >= 0 && read_lines(c))
		continue; /* ends: the socket is empty */
	conn_learn_status(c);
	close_conn(c);
	check_stuck();
}

enum pmi_state pmi_state_of(int rank)
{
	return srv.conns[rank].state;
}

bool pmi_is_attached(int rank)
{
	return conn_is_open(&srv.conns[rank]);
}

bool pmi_is_silent(int rank)
{
	return srv.conns[rank].speaker_gone && srv.conns[rank].speaker_status < 0;
}

int pmi_speaker_status(int rank)
{
	return srv.conns[rank].speaker_status;
}

uint64_t pmi_barrier_since(void)
{
	return srv.in_barrier ? srv.barrier_since : 0;
}

int pmi_late_rank(void)
{
	for (int i = 0; i < srv.size; i++)
		if (srv.conns[i].state == PMI_SILENT && conn_is_open(&srv.conns[i]))
			return i;
	return -1;
}

bool pmi_has_aborted(int rank)
{
	return srv.conns[rank].aborted;
}
