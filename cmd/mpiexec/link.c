/* SPDX-License-Identifier: BSD-3-Clause */
/* link.c - buffers and frames over two descriptors that do not block. */
#include "link.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"

#define FRAME_MAX ((size_t)64 << 20) /* a command line and an environment at most */
#define CHUNK ((size_t)65536)
#define NOISE_MAX ((size_t)1 << 20) /* what login shells print */
#define HELLO "weft-agent "
#define PART_NS 2000000000u

static void give_up(struct link *l, const char *why)
{
	if (l->in < 0 && l->out < 0)
		return;
	link_close(l);
	l->lost(l, why);
}

/* A bigger buffer; the old one is wiped. */
static bool make_room(char **text_p, size_t len, size_t *cap_p, size_t more)
{
	if (*cap_p - len >= more)
		return true;
	size_t cap = (len + more) * 2;
	char *text = malloc(cap);
	if (!text)
		return false;
	if (len)
		memcpy(text, *text_p, len);
	if (*text_p)
		explicit_bzero(*text_p, *cap_p);
	free(*text_p);
	*text_p = text;
	*cap_p = cap;
	return true;
}

static void drop_bytes(char *text, size_t *len_p, size_t done)
{
	memmove(text, text + done, *len_p - done);
	explicit_bzero(text + *len_p - done, done);
	*len_p -= done;
}

/* --- out --- */

static bool flush_frames(struct link *l)
{
	size_t done = 0;
	while (done < l->out_len) { /* ends: all is written, or the descriptor takes no more */
		ssize_t n = write(l->out, l->out_text + done, l->out_len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	if (done)
		drop_bytes(l->out_text, &l->out_len, done);
	bool wants = l->out_len > 0;
	if (wants != l->wants_out)
		(void)events_change(l->out, wants ? EPOLLOUT : 0, &l->out_source);
	l->wants_out = wants;
	return true;
}

static void out_ready(struct event_source *source, uint32_t events)
{
	struct link *l = weft_container_of(source, struct link, out_source);
	if (l->out < 0)
		return;
	if ((events & (EPOLLERR | EPOLLHUP)) || !flush_frames(l))
		give_up(l, NULL);
}

static void send_bytes(struct link *l, const void *a, size_t an, const void *b, size_t bn)
{
	if (l->out < 0)
		return;
	if (!make_room(&l->out_text, l->out_len, &l->out_cap, an + bn)) {
		give_up(l, "no memory");
		return;
	}
	memcpy(l->out_text + l->out_len, a, an);
	if (bn)
		memcpy(l->out_text + l->out_len + an, b, bn);
	l->out_len += an + bn;
	if (!l->wants_out)
		(void)flush_frames(l); /* a link that is gone says so to its reader */
}

void link_send(struct link *l, uint32_t kind, int host, int rank, const void *body, size_t len)
{
	struct frame f = {.len = (uint32_t)len, .kind = kind, .host = host, .rank = rank};
	send_bytes(l, &f, sizeof f, body, len);
}

void link_send_int(struct link *l, uint32_t kind, int host, int rank, int value)
{
	int32_t v = value;
	link_send(l, kind, host, rank, &v, sizeof v);
}

int link_int(const struct frame *f, const char *body)
{
	int32_t v = 0;
	if (f->len >= sizeof v)
		memcpy(&v, body, sizeof v);
	return v;
}

size_t link_waiting(const struct link *l)
{
	return l->out_len;
}

void link_say_hello(struct link *l)
{
	char text[96];
	int n = snprintf(text, sizeof text, "\n" HELLO "%s %d\n", WEFT_VERSION, LINK_PROTOCOL);
	send_bytes(l, text, (size_t)n, NULL, 0);
}

/* --- in --- */

/* Looks for the hello at the beginning of a line.  True: go on with frames. */
static bool find_hello(struct link *l)
{
	static char why[160];
	char *end = memchr(l->in_text, '\n', l->in_len);
	while (end) { /* ends: the hello, or no whole line is left */
		size_t n = (size_t)(end - l->in_text) + 1;
		*end = 0;
		if (strncmp(l->in_text, HELLO, sizeof HELLO - 1) == 0) {
			char version[64] = "";
			int protocol = 0;
			(void)sscanf(l->in_text + sizeof HELLO - 1, "%63s %d", version, &protocol);
			if (protocol != LINK_PROTOCOL) {
				snprintf(why, sizeof why,
					 "weft %s is installed there, whose agent this mpiexec "
					 "(weft " WEFT_VERSION
					 ") does not speak with: install the same",
					 version);
				give_up(l, why);
				return false;
			}
			drop_bytes(l->in_text, &l->in_len, n);
			l->greeted = true;
			if (l->greet)
				l->greet(l);
			return l->in >= 0;
		}
		drop_bytes(l->in_text, &l->in_len, n);
		end = memchr(l->in_text, '\n', l->in_len);
	}
	if (l->in_len > NOISE_MAX)
		give_up(l, "what answers there is no agent");
	return false;
}

static void take_frames(struct link *l)
{
	size_t at = 0;
	while (l->in >= 0 &&
	       l->in_len - at >= sizeof(struct frame)) { /* ends: no whole frame is left */
		struct frame f;
		memcpy(&f, l->in_text + at, sizeof f);
		if (f.len > FRAME_MAX) {
			give_up(l, "what it sends makes no sense");
			return;
		}
		if (l->in_len - at - sizeof f < f.len)
			break;
		l->frame(l, &f, l->in_text + at + sizeof f);
		at += sizeof f + f.len;
	}
	if (l->in >= 0 && at)
		drop_bytes(l->in_text, &l->in_len, at);
}

static void in_ready(struct event_source *source, uint32_t events)
{
	struct link *l = weft_container_of(source, struct link, in_source);
	(void)events;
	if (l->in < 0)
		return;
	if (!make_room(&l->in_text, l->in_len, &l->in_cap, CHUNK)) {
		give_up(l, "no memory");
		return;
	}
	ssize_t n = read(l->in, l->in_text + l->in_len, l->in_cap - l->in_len);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		give_up(l, NULL);
		return;
	}
	l->in_len += (size_t)n;
	l->heard_at = weft_clock_ns();
	if (l->greeted || find_hello(l))
		take_frames(l);
}

/* --- life --- */

bool link_open(struct link *l, int in, int out, bool parent)
{
	l->in = in;
	l->out = out;
	l->greeted = !parent;
	l->heard_at = weft_clock_ns();
	l->in_source.ready = in_ready;
	l->out_source.ready = out_ready;
	return fcntl(in, F_SETFL, O_NONBLOCK) == 0 && fcntl(out, F_SETFL, O_NONBLOCK) == 0 &&
	       events_add(in, EPOLLIN, &l->in_source) && events_add(out, 0, &l->out_source);
}

static void close_end(int *fd_p)
{
	if (*fd_p < 0)
		return;
	events_remove(*fd_p);
	close(*fd_p);
	*fd_p = -1;
}

/* The input buffer stays: a handler may be looking at it. */
void link_close(struct link *l)
{
	close_end(&l->in);
	close_end(&l->out);
	if (l->out_text)
		explicit_bzero(l->out_text, l->out_cap);
	free(l->out_text);
	l->out_text = NULL;
	l->out_len = l->out_cap = 0;
}

void link_part(struct link *l)
{
	uint64_t end = weft_clock_ns() + PART_NS;
	close_end(&l->out);
	while (l->in >= 0) { /* ends: the other side has gone, or after that time */
		char text[512];
		uint64_t now = weft_clock_ns();
		struct pollfd p = {.fd = l->in, .events = POLLIN};
		if (now >= end || poll(&p, 1, (int)((end - now) / 1000000u) + 1) <= 0)
			break;
		ssize_t n = read(l->in, text, sizeof text);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			break;
	}
	link_close(l);
}
