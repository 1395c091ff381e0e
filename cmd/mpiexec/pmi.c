/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi.c - reads lines, answers them, counts barriers, watches the processes that speak. */
#include "pmi.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/base.h"
#include "events.h"
#include "kvs.h"

#define LINE_BYTES_MAX 65536
#define ANSWERS_MAX (256u << 10) /* unread answers beyond which a rank is not served */
#define KEY_BYTES 64
#define VALUE_BYTES 4096
/* linux/pidfd.h of 6.15; older headers lack it. */
#define PIDFD_INFO_REQUEST _IOC(_IOC_READ | _IOC_WRITE, 0xff, 11, 64)
#define PIDFD_MASK_EXIT (1u << 3)
#define BATCH_BYTES 32768 /* a client reads lines of 64 KiB */

struct conn {
	struct event_source source;  /* the socket */
	struct event_source watcher; /* the pidfd of the process that said init */
	int fd, pid_fd;              /* -1: closed */
	int rank, appnum;
	pid_t speaker;
	int speaker_status; /* -1: it lives, or nobody knows */
	enum pmi_state state;
	bool in_barrier, aborted, in_multi, gone, speaker_gone;
	char *in, *out;
	size_t in_len, in_cap, out_len, out_cap;
};

static struct {
	struct conn *conns;
	int size, in_barrier, gone;
	char name[96];
	const struct pmi_hooks *hooks;
} srv;

/* --- answers --- */

static void flush_answers(struct conn *c)
{
	size_t done = 0;
	while (done < c->out_len) { /* ends: written, or the socket is full or gone */
		ssize_t n =
			send(c->fd, c->out + done, c->out_len - done, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			if (errno != EAGAIN)
				done = c->out_len; /* nobody will read it */
			break;
		}
		done += (size_t)n;
	}
	memmove(c->out, c->out + done, c->out_len - done);
	c->out_len -= done;
}

static void want_events(struct conn *c)
{
	uint32_t events = 0;
	if (c->out_len < ANSWERS_MAX)
		events |= EPOLLIN;
	if (c->out_len)
		events |= EPOLLOUT;
	(void)events_change(c->fd, events, &c->source);
}

static void answer(struct conn *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void answer(struct conn *c, const char *fmt, ...)
{
	va_list ap, again;
	if (c->fd < 0)
		return;
	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (c->out_cap - c->out_len <= (size_t)n) {
		size_t cap = (c->out_len + (size_t)n + 1) * 2;
		char *more = realloc(c->out, cap);
		if (!more)
			n = 0;
		else
			c->out = more, c->out_cap = cap;
	}
	if (n > 0) {
		vsnprintf(c->out + c->out_len, (size_t)n + 1, fmt, ap);
		c->out_len += (size_t)n;
	}
	va_end(ap);
	bool was_behind = c->out_len > (size_t)n;
	flush_answers(c);
	if (was_behind || c->out_len)
		want_events(c);
}

/* --- requests --- */

/* Copies the value of key in line, up to the next blank; false: absent or too long. */
static bool field(const char *line, const char *key, char *buf, size_t size)
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

static void stop_watching(struct conn *c)
{
	if (c->pid_fd < 0)
		return;
	events_remove(c->pid_fd);
	close(c->pid_fd);
	c->pid_fd = -1;
}

/* Leaves MPI: how the process ends is no longer a matter of its peers, and the rank may yet run
 * another program. */
static void do_finalize(struct conn *c)
{
	c->state = PMI_LEFT;
	stop_watching(c);
	answer(c, "cmd=finalize_ack rc=0\n");
}

static void do_init(struct conn *c, const char *line)
{
	char version[8];
	if (!field(line, "pmi_version", version, sizeof version) || strcmp(version, "1") != 0) {
		answer(c, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n");
		return;
	}
	c->state = PMI_JOINED;
	c->speaker_status = -1;
	if (c->speaker > 0 && c->pid_fd < 0) {
		c->pid_fd = (int)syscall(SYS_pidfd_open, c->speaker, 0);
		if (c->pid_fd >= 0 && !events_add(c->pid_fd, EPOLLIN, &c->watcher)) {
			close(c->pid_fd);
			c->pid_fd = -1;
		}
	}
	answer(c, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
}

static void do_put(struct conn *c, const char *line)
{
	char key[KEY_BYTES], value[VALUE_BYTES];
	if (!field(line, "key", key, sizeof key) || !key[0])
		answer(c, "cmd=put_result rc=-1 msg=bad_key\n");
	else if (!field(line, "value", value, sizeof value))
		answer(c, "cmd=put_result rc=-1 msg=bad_value\n");
	else if (!kvs_put(key, value))
		answer(c, "cmd=put_result rc=-1 msg=no_room\n");
	else
		answer(c, "cmd=put_result rc=0 msg=success\n");
}

static void do_get(struct conn *c, const char *line)
{
	char key[KEY_BYTES];
	const char *value = field(line, "key", key, sizeof key) ? kvs_get(key) : NULL;
	if (value)
		answer(c, "cmd=get_result rc=0 msg=success value=%s\n", value);
	else
		answer(c, "cmd=get_result rc=-1 msg=key_not_found value=unknown\n");
}

/* Our own addition: the first parts of many ranks' batches in one answer (see src/boot/boot.c). */
static void do_batch(struct conn *c, const char *line)
{
	static char text[BATCH_BYTES + VALUE_BYTES + 1];
	char number[16];
	long batch = field(line, "batch", number, sizeof number) ? strtol(number, NULL, 10) : -1;
	long from = field(line, "from", number, sizeof number) ? strtol(number, NULL, 10) : -1;
	size_t n = 0;
	if (batch < 0 || from < 0 || from >= srv.size) {
		answer(c, "cmd=weft_batch_result rc=-1 msg=bad_range\n");
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
	answer(c, "cmd=weft_batch_result rc=0 next=%ld value=%s\n", rank, text);
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
		answer(&srv.conns[i], "cmd=barrier_out\n");
}

static void do_abort(struct conn *c, const char *line)
{
	char text[16];
	long code = field(line, "exitcode", text, sizeof text) ? strtol(text, NULL, 10) : 1;
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
		answer(c, "cmd=maxes kvsname_max=%zu keylen_max=%d vallen_max=%d\n",
		       sizeof srv.name, KEY_BYTES, VALUE_BYTES);
	else if (strcmp(cmd, "get_appnum") == 0)
		answer(c, "cmd=appnum appnum=%d\n", c->appnum);
	else if (strcmp(cmd, "get_my_kvsname") == 0)
		answer(c, "cmd=my_kvsname kvsname=%s\n", srv.name);
	else if (strcmp(cmd, "get_universe_size") == 0)
		answer(c, "cmd=universe_size size=%d\n", srv.size);
	else if (strcmp(cmd, "getbyidx") == 0)
		answer(c, "cmd=getbyidx_results rc=-1 reason=not_supported\n");
	else if (strcmp(cmd, "create_kvs") == 0)
		answer(c, "cmd=newkvs rc=-1 kvsname=\n");
	else if (strcmp(cmd, "publish_name") == 0)
		answer(c, "cmd=publish_result rc=-1 info=failed msg=not_supported\n");
	else if (strcmp(cmd, "unpublish_name") == 0)
		answer(c, "cmd=unpublish_result rc=-1 info=failed msg=not_supported\n");
	else if (strcmp(cmd, "lookup_name") == 0)
		answer(c, "cmd=lookup_result rc=-1 info=failed msg=not_supported\n");
	else
		return false;
	return true;
}

static void obey(struct conn *c, const char *line)
{
	char cmd[32];
	if (c->in_multi) { /* a spawn request spans lines; its end is all that matters here */
		if (strcmp(line, "endcmd") == 0) {
			c->in_multi = false;
			answer(c, "cmd=spawn_result rc=-1 status=not_supported\n");
		}
		return;
	}
	if (strncmp(line, "mcmd=spawn", 10) == 0) {
		c->in_multi = true;
		return;
	}
	if (!field(line, "cmd", cmd, sizeof cmd)) {
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
		answer(c, "cmd=%s_result rc=-1 msg=unknown_command\n", cmd);
}

/* --- the connection --- */

static void close_conn(struct conn *c)
{
	if (c->fd >= 0) {
		events_remove(c->fd);
		close(c->fd);
		c->fd = -1;
		c->gone = true;
		srv.gone++;
	}
	stop_watching(c);
	free(c->in);
	free(c->out);
	c->in = c->out = NULL;
	c->in_len = c->in_cap = c->out_len = c->out_cap = 0;
}

/* Reads once and learns which process wrote: the rank, or a program below a wrapper. */
static ssize_t receive(struct conn *c)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(16 * sizeof(int))];
	} control;
	struct iovec iov = {c->in + c->in_len, c->in_cap - c->in_len - 1};
	struct msghdr h = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof control};
	ssize_t n = recvmsg(c->fd, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return n;
	for (struct cmsghdr *m = CMSG_FIRSTHDR(&h); m; m = CMSG_NXTHDR(&h, m)) {
		struct ucred who;
		if (m->cmsg_level != SOL_SOCKET || m->cmsg_type != SCM_CREDENTIALS)
			continue;
		memcpy(&who, CMSG_DATA(m), sizeof who);
		c->speaker = who.pid;
	}
	return n;
}

static void obey_lines(struct conn *c)
{
	size_t at = 0;
	while (c->fd >= 0) { /* ends: no complete line is left */
		char *nl = memchr(c->in + at, '\n', c->in_len - at);
		if (!nl)
			break;
		*nl = 0;
		const char *line = c->in + at;
		if (strlen(line) != (size_t)(nl - line))
			srv.hooks->broken(c->rank, "a NUL byte");
		else
			obey(c, line);
		at = (size_t)(nl - c->in) + 1;
	}
	memmove(c->in, c->in + at, c->in_len - at);
	c->in_len -= at;
}

/* True: there may be more to read. */
static bool read_lines(struct conn *c)
{
	if (c->in_cap - c->in_len < 2048) {
		size_t cap = c->in_cap ? c->in_cap * 2 : 4096;
		char *more = cap <= 2 * LINE_BYTES_MAX ? realloc(c->in, cap) : NULL;
		if (!more) {
			srv.hooks->broken(c->rank, "a line that does not end");
			close_conn(c);
			return false;
		}
		c->in = more;
		c->in_cap = cap;
	}
	ssize_t n = receive(c);
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
		flush_answers(c);
		want_events(c);
	}
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		(void)read_lines(c);
}

/* Asks the kernel (6.15 or later) for the wait status of a process that its own parent has reaped.
 */
static void learn_status(struct conn *c)
{
	struct {
		uint64_t mask, cgroup;
		uint32_t ids[11];
		int32_t exit_code;
	} info = {.mask = PIDFD_MASK_EXIT};
	if (c->pid_fd >= 0 && ioctl(c->pid_fd, PIDFD_INFO_REQUEST, &info) == 0 &&
	    (info.mask & PIDFD_MASK_EXIT))
		c->speaker_status = info.exit_code;
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
	learn_status(c);
	c->speaker_gone = true;
	while (c->fd >= 0 && read_lines(c))
		continue; /* ends: the socket is empty */
	if (c->state == PMI_JOINED && !c->aborted)
		srv.hooks->lost(c->rank, c->speaker_status);
}

/* --- the interface --- */

bool pmi_init(int size, const char *jobid, const struct pmi_hooks *hooks)
{
	char mapping[64];
	srv.conns = calloc((size_t)size, sizeof *srv.conns);
	srv.size = size;
	srv.hooks = hooks;
	snprintf(srv.name, sizeof srv.name, "kvs_%s", jobid);
	snprintf(mapping, sizeof mapping, "(vector,(0,1,%d))", size);
	if (!srv.conns || !kvs_put("PMI_process_mapping", mapping))
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

void pmi_detach(int rank)
{
	struct conn *c = &srv.conns[rank];
	while (c->fd >= 0 && read_lines(c))
		continue; /* ends: the socket is empty */
	learn_status(c);
	close_conn(c);
	check_stuck();
}

enum pmi_state pmi_state_of(int rank)
{
	return srv.conns[rank].state;
}

bool pmi_is_attached(int rank)
{
	return srv.conns[rank].fd >= 0;
}

bool pmi_is_silent(int rank)
{
	return srv.conns[rank].speaker_gone && srv.conns[rank].speaker_status < 0;
}

int pmi_speaker_status(int rank)
{
	return srv.conns[rank].speaker_status;
}

bool pmi_has_aborted(int rank)
{
	return srv.conns[rank].aborted;
}
