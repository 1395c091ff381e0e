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
	struct sink *sink, *files; /* either may be NULL */
	int fd;                    /* -1: closed */
	int file;
	bool fed, open;
	void (*taken)(void *arg, size_t bytes); /* fed */
	void *arg;
	size_t owed; /* fed: bytes whose taking its feeder has not heard of */
	bool paused, live;
	char head[24];
	size_t head_len;
	char *text; /* an unfinished line and what follows it */
	size_t len, cap;
};

static struct stream *streams;

static void put_text(struct stream *s, const char *text, size_t len)
{
	if (s->sink)
		sink_put(s->sink, s, s->head, s->head_len, text, len);
}

static bool is_full(const struct stream *s)
{
	return (s->sink && sink_is_full(s->sink)) || (s->files && sink_is_full(s->files));
}

bool stream_is_broken(const struct stream *s)
{
	return (s->sink && sink_is_broken(s->sink)) || (s->files && sink_is_broken(s->files));
}

/* Hands over each finished line; `all`: the rest too. */
static void hand_over(struct stream *s, size_t from, bool all)
{
	char *last = memrchr(s->text + from, '\n', s->len - from);
	size_t end = last ? (size_t)(last - s->text) + 1 : 0;
	if (all || s->live || s->len - end > LINE_MAX_BYTES)
		end = s->len;
	if (s->files && end)
		sink_put_file(s->files, s->file, s->text, end);
	if (!s->head_len && end) {
		put_text(s, s->text, end);
	} else {
		for (size_t at = 0; at < end;) { /* ends: at moves past one line */
			char *nl = memchr(s->text + at, '\n', end - at);
			size_t n = nl ? (size_t)(nl - s->text) + 1 - at : end - at;
			put_text(s, s->text + at, n);
			at += n;
		}
	}
	memmove(s->text, s->text + end, s->len - end);
	s->len -= end;
}

static void close_stream(struct stream *s)
{
	if (!s->open)
		return;
	s->open = false;
	if (s->len)
		hand_over(s, 0, true);
	if (!s->fed && !s->paused)
		events_remove(s->fd);
	if (!s->fed)
		close(s->fd);
	s->fd = -1;
	free(s->text);
	s->text = NULL;
	s->len = s->cap = 0;
}

static bool make_room(struct stream *s, size_t more_bytes)
{
	if (s->cap - s->len >= more_bytes)
		return true;
	size_t cap = s->cap * 2 + more_bytes;
	char *more = realloc(s->text, cap);
	if (!more)
		return false;
	s->text = more;
	s->cap = cap;
	return true;
}

/* Reads once.  1: got something, 0: nothing there now, -1: end of file or a reader that left. */
static int read_once(struct stream *s)
{
	if (stream_is_broken(s))
		return -1; /* the rank shall see a broken pipe, as it would without us */
	if (!make_room(s, CHUNK))
		return -1;
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

static void stream_ready(struct event_source *source, uint32_t events)
{
	struct stream *s = (struct stream *)source;
	(void)events;
	if (!s->open)
		return;
	if (is_full(s))
		pause_stream(s);
	else if (read_once(s) < 0)
		close_stream(s);
}

static struct stream *make_stream(const struct stream_way *way)
{
	struct stream *s = calloc(1, sizeof *s);
	if (!s)
		return NULL;
	s->sink = way->sink;
	s->file = way->file;
	s->files = way->file >= 0 ? sink_files() : NULL;
	s->live = way->live;
	s->fd = -1;
	s->open = true;
	if (way->label)
		s->head_len = (size_t)snprintf(s->head, sizeof s->head, "[%d] ", way->rank);
	if (way->file >= 0 && !s->files) {
		free(s);
		return NULL;
	}
	return s;
}

static void keep_stream(struct stream *s)
{
	s->next = streams;
	streams = s;
}

bool stream_open(int fd, const struct stream_way *way)
{
	struct stream *s = make_stream(way);
	if (!s)
		return false;
	s->source.ready = stream_ready;
	s->fd = fd;
	if (fcntl(fd, F_SETFL, O_NONBLOCK) || !events_add(fd, EPOLLIN, &s->source)) {
		free(s);
		return false;
	}
	keep_stream(s);
	return true;
}

struct stream *stream_open_fed(const struct stream_way *way, void (*taken)(void *arg, size_t bytes),
			       void *arg)
{
	struct stream *s = make_stream(way);
	if (!s)
		return NULL;
	s->fed = true;
	s->taken = taken;
	s->arg = arg;
	keep_stream(s);
	return s;
}

static void tell_taken(struct stream *s)
{
	if (!s->owed || is_full(s))
		return;
	size_t n = s->owed;
	s->owed = 0;
	s->taken(s->arg, n);
}

void stream_feed(struct stream *s, const char *text, size_t len)
{
	if (s->open && make_room(s, len)) {
		size_t from = s->len;
		memcpy(s->text + s->len, text, len);
		s->len += len;
		hand_over(s, from, false);
	}
	s->owed += len;
	tell_taken(s);
}

void stream_end(struct stream *s)
{
	close_stream(s);
}

void stream_resume_all(void)
{
	for (struct stream *s = streams; s; s = s->next) {
		if (s->fed) {
			tell_taken(s);
			continue;
		}
		if (s->open && stream_is_broken(s))
			close_stream(s);
		if (!s->open || !s->paused || is_full(s))
			continue;
		if (events_add(s->fd, EPOLLIN, &s->source))
			s->paused = false;
	}
}

bool stream_finish_all(void)
{
	bool all = true;
	for (struct stream *s = streams; s; s = s->next) {
		if (!s->open)
			continue;
		if (s->fed) {
			all = false; /* its end is on the way */
			continue;
		}
		int got = 1;
		while (got > 0 && !is_full(s))
			got = read_once(s); /* ends: the pipe has no writer any more */
		if (got <= 0)
			close_stream(s);
		else
			all = false;
	}
	return all;
}
