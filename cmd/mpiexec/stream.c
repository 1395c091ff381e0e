/* SPDX-License-Identifier: BSD-3-Clause */
/* stream.c - one buffer per pipe. */
#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "events.h"

#define CHUNK 65536
#define LINE_MAX_BYTES ((size_t)64 << 20)

struct stream {
	struct event_source source;
	struct stream *next;
	struct sink *sink;
	int fd; /* -1: closed */
	bool paused, live;
	char head[24];
	size_t head_len;
	char *text; /* an unfinished line and what follows it */
	size_t len, cap;
};

static struct stream *streams;

static void put(struct stream *s, const char *text, size_t len)
{
	sink_put(s->sink, s, s->head, s->head_len, text, len);
}

/* Hands over each finished line; `all`: the rest too. */
static void hand_over(struct stream *s, size_t from, bool all)
{
	char *last = memrchr(s->text + from, '\n', s->len - from);
	size_t end = last ? (size_t)(last - s->text) + 1 : 0;
	if (all || s->live || s->len - end > LINE_MAX_BYTES)
		end = s->len;
	if (!s->head_len && end) {
		put(s, s->text, end);
	} else {
		for (size_t at = 0; at < end;) { /* ends: at moves past one line */
			char *nl = memchr(s->text + at, '\n', end - at);
			size_t n = nl ? (size_t)(nl - s->text) + 1 - at : end - at;
			put(s, s->text + at, n);
			at += n;
		}
	}
	memmove(s->text, s->text + end, s->len - end);
	s->len -= end;
}

static void close_stream(struct stream *s)
{
	if (s->fd < 0)
		return;
	if (s->len)
		hand_over(s, 0, true);
	if (!s->paused)
		events_remove(s->fd);
	close(s->fd);
	s->fd = -1;
	free(s->text);
	s->text = NULL;
	s->len = s->cap = 0;
}

/* Reads once.  1: got something, 0: nothing there now, -1: end of file or a reader that left. */
static int read_once(struct stream *s)
{
	if (sink_is_broken(s->sink))
		return -1; /* the rank shall see a broken pipe, as it would without us */
	if (s->cap - s->len < CHUNK) {
		size_t cap = s->cap * 2 + CHUNK;
		char *more = realloc(s->text, cap);
		if (!more)
			return -1;
		s->text = more;
		s->cap = cap;
	}
	ssize_t n = read(s->fd, s->text + s->len, CHUNK);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	if (n == 0)
		return -1;
	size_t from = s->len;
	s->len += (size_t)n;
	hand_over(s, from, false);
	return 1;
}

static void pause_stream(struct stream *s)
{
	events_remove(s->fd);
	s->paused = true;
}

static void ready(struct event_source *source, uint32_t events)
{
	struct stream *s = (struct stream *)source;
	(void)events;
	if (s->fd < 0)
		return;
	if (sink_is_full(s->sink))
		pause_stream(s);
	else if (read_once(s) < 0)
		close_stream(s);
}

bool stream_open(int rank, int fd, struct sink *sink, bool label, bool live)
{
	struct stream *s = calloc(1, sizeof *s);
	if (!s)
		return false;
	s->source.ready = ready;
	s->sink = sink;
	s->fd = fd;
	s->live = live;
	if (label)
		s->head_len = (size_t)snprintf(s->head, sizeof s->head, "[%d] ", rank);
	if (fcntl(fd, F_SETFL, O_NONBLOCK) || !events_add(fd, EPOLLIN, &s->source)) {
		free(s);
		return false;
	}
	s->next = streams;
	streams = s;
	return true;
}

void stream_resume_all(void)
{
	for (struct stream *s = streams; s; s = s->next) {
		if (s->fd >= 0 && sink_is_broken(s->sink))
			close_stream(s);
		if (s->fd < 0 || !s->paused || sink_is_full(s->sink))
			continue;
		if (events_add(s->fd, EPOLLIN, &s->source))
			s->paused = false;
	}
}

bool stream_finish_all(void)
{
	bool all = true;
	for (struct stream *s = streams; s; s = s->next) {
		if (s->fd < 0)
			continue;
		int got = 1;
		while (got > 0 && !sink_is_full(s->sink))
			got = read_once(s); /* ends: the pipe has no writer any more */
		if (got <= 0)
			close_stream(s);
		else
			all = false;
	}
	return all;
}
