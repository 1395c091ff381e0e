/* SPDX-License-Identifier: BSD-3-Clause */
/* conn.c - what is read from a rank, which process wrote it, and the answers that it has yet to take. */
#include "conn.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ANSWERS_MAX (256u << 10) /* unread answers beyond which a rank is not served */
/* linux/pidfd.h of 6.15; older headers lack it. */
#define PIDFD_INFO_REQUEST _IOC(_IOC_READ | _IOC_WRITE, 0xff, 11, 64)
#define PIDFD_MASK_EXIT (1u << 3)

void conn_flush(struct conn *c)
{
	size_t done = 0;
	while (done < c->out_len) { /* ends: written, or the socket is full or gone */
		ssize_t n =
			send(c->fd, c->out + done, c->out_len - done, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			if (errno != EAGAIN)
				done = c->out_len; /* the reader is gone */
			break;
		}
		done += (size_t)n;
	}
	memmove(c->out, c->out + done, c->out_len - done);
	c->out_len -= done;
}

void conn_want(struct conn *c)
{
	uint32_t events = 0;
	if (c->out_len < ANSWERS_MAX)
		events |= EPOLLIN;
	if (c->out_len)
		events |= EPOLLOUT;
	(void)events_change(c->fd, events, &c->source);
}

void conn_answer_bytes(struct conn *c, const char *text, size_t len)
{
	if (c->send) {
		c->send(c->rank, text, len);
		return;
	}
	if (c->out_cap - c->out_len < len) {
		size_t cap = (c->out_len + len) * 2;
		char *more = realloc(c->out, cap);
		if (!more)
			return; /* the rank waits for ever for what there is no memory for */
		c->out = more;
		c->out_cap = cap;
	}
	bool was_behind = c->out_len > 0;
	memcpy(c->out + c->out_len, text, len);
	c->out_len += len;
	conn_flush(c);
	if (was_behind || c->out_len)
		conn_want(c);
}

void conn_answer(struct conn *c, const char *fmt, ...)
{
	char *text;
	va_list ap;
	if (!conn_is_open(c))
		return;
	va_start(ap, fmt);
	int n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	conn_answer_bytes(c, text, (size_t)n);
	free(text);
}

void conn_watch_speaker(struct conn *c)
{
	c->speaker_status = -1;
	if (c->speaker <= 0 || c->pid_fd >= 0)
		return;
	c->pid_fd = (int)syscall(SYS_pidfd_open, c->speaker, 0);
	if (c->pid_fd >= 0 && !events_add(c->pid_fd, EPOLLIN, &c->watcher)) {
		close(c->pid_fd);
		c->pid_fd = -1;
	}
}

void conn_stop_watching(struct conn *c)
{
	if (c->pid_fd < 0)
		return;
	events_remove(c->pid_fd);
	close(c->pid_fd);
	c->pid_fd = -1;
}

/* A rank has no reason to send descriptors: those that it sends shall not use ours up. */
static void close_all(struct cmsghdr *m)
{
	size_t n = (m->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	for (size_t i = 0; i < n; i++) {
		int fd;
		memcpy(&fd, CMSG_DATA(m) + i * sizeof fd, sizeof fd);
		close(fd);
	}
}

ssize_t conn_receive(struct conn *c)
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
		if (m->cmsg_level == SOL_SOCKET && m->cmsg_type == SCM_RIGHTS)
			close_all(m);
		if (m->cmsg_level != SOL_SOCKET || m->cmsg_type != SCM_CREDENTIALS)
			continue;
		memcpy(&who, CMSG_DATA(m), sizeof who);
		c->speaker = who.pid;
	}
	return n;
}

void conn_learn_status(struct conn *c)
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
