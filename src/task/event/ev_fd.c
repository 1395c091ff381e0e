/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ev_fd.c - descriptors as an event source: one epoll set, so one call finds all that are ready.
 *
 * Each descriptor has a place in a table with its requests; it is registered for what they want
 * together, once (EPOLLONESHOT), and again while some are left.  The set itself is the source's
 * descriptor: the engine's watch set sleeps on it.  A place has a generation: what the set still
 * reports of a descriptor that was forgotten is dropped.
 */
#include "base/assert.h"
#include "base/log.h"
#include "task/event/event_int.h"
#include "task/wake/source_int.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define BATCH 64

struct fd_request {
	struct weft_event *next; /* of the same descriptor */
	int fd;
	short events;
};

_Static_assert(sizeof(struct fd_request) <= sizeof(((struct weft_ev *)0)->of_source), "it fits");

struct fd_place {
	struct weft_event *first; /* requests, in order of arrival */
	uint32_t generation;
};

struct fd_set_source {
	int epoll_fd;
	struct fd_place *place; /* M: by descriptor */
	int places;             /* M */
};

static struct fd_request *request_of(const struct weft_event *ev)
{
	return weft_task_event_data(ev);
}

/* The place of fd; NULL: no memory. */
static struct fd_place *place_of(struct fd_set_source *s, int fd)
{
	if (fd >= s->places) {
		int n = s->places ? s->places : 64;
		while (n <= fd) /* ends beyond fd */
			n *= 2;
		struct fd_place *more = realloc(s->place, (size_t)n * sizeof *more);
		if (!more)
			return NULL;
		memset(more + s->places, 0, (size_t)(n - s->places) * sizeof *more);
		s->place = more;
		s->places = n;
	}
	return &s->place[fd];
}

/* Registers fd for what its requests want; 0 or errno. */
static int register_fd(struct fd_set_source *s, int fd)
{
	struct fd_place *p = &s->place[fd];
	struct epoll_event e = {.events = EPOLLONESHOT,
				.data.u64 = (uint64_t)p->generation << 32 | (uint32_t)fd};
	for (struct weft_event *ev = p->first; ev; ev = request_of(ev)->next)
		e.events |= (uint32_t)request_of(ev)->events;
	/* Known, usually; not if it is new, or was closed and its number used again. */
	if (epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, fd, &e) == 0)
		return 0;
	if (errno == ENOENT && epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &e) == 0)
		return 0;
	return errno;
}

static void unlink_request(struct fd_place *p, struct weft_event *ev)
{
	struct weft_event **at = &p->first;
	while (*at && *at != ev) /* ends at ev, it is in */
		at = &request_of(*at)->next;
	if (*at)
		*at = request_of(ev)->next;
}

static bool fd_attach(void *arg, struct weft_event *ev, int64_t *result_p)
{
	struct fd_set_source *s = arg;
	struct fd_request *r = request_of(ev);
	struct fd_place *p = r->fd < 0 ? NULL : place_of(s, r->fd);
	if (!p) {
		*result_p = r->fd < 0 ? -EBADF : -ENOMEM;
		return true;
	}
	struct weft_event **at = &p->first;
	while (*at) /* ends at the last */
		at = &request_of(*at)->next;
	r->next = NULL;
	*at = ev;
	int failed = register_fd(s, r->fd);
	if (!failed)
		return false;
	unlink_request(p, ev);
	/* A regular file is always ready, as poll(2) says. */
	*result_p = failed == EPERM ? (r->events & (POLLIN | POLLOUT)) : -failed;
	return true;
}

static bool fd_detach(void *arg, struct weft_event *ev)
{
	struct fd_set_source *s = arg;
	struct fd_request *r = request_of(ev);
	struct fd_place *p = &s->place[r->fd];
	unlink_request(p, ev);
	if (!p->first)
		(void)epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, r->fd, NULL); /* gone: as well */
	return true;
}

/* fd is ready for `events`: completes the requests that want one of them. */
static void complete_ready(struct fd_set_source *s, int fd, uint32_t events)
{
	struct fd_place *p = &s->place[fd];
	weft_assert(fd >= 0 && fd < s->places);
	for (struct weft_event *ev = p->first, *next; ev; ev = next) {
		struct fd_request *r = request_of(ev);
		next = r->next;
		uint32_t mine = events & ((uint32_t)r->events | EPOLLHUP | EPOLLERR);
		if (!mine)
			continue;
		unlink_request(p, ev);
		weft_event_complete(ev, mine);
	}
	int failed = p->first ? register_fd(s, fd) : 0;
	while (failed && p->first) { /* ends: all told */
		struct weft_event *ev = p->first;
		p->first = request_of(ev)->next;
		weft_event_complete(ev, -failed);
	}
}

static void fd_poll_group(void *arg, struct weft_events *es)
{
	struct fd_set_source *s = arg;
	struct epoll_event e[BATCH];
	int n = epoll_wait(s->epoll_fd, e, BATCH, 0);
	for (int i = 0; i < n; i++) {
		int fd = (int)(uint32_t)e[i].data.u64;
		if (s->place[fd].generation == (uint32_t)(e[i].data.u64 >> 32))
			complete_ready(s, fd, e[i].events);
	}
}

static void fd_free(void *arg)
{
	struct fd_set_source *s = arg;
	close(s->epoll_fd);
	free(s->place);
	free(s);
}

weft_err weft_events_open_fds(struct weft_events **es_p)
{
	struct fd_set_source *s = calloc(1, sizeof *s);
	if (!s || !es_p) {
		free(s);
		return es_p ? WEFT_ERR_NOMEM : WEFT_ERR_ARG;
	}
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll_fd < 0) {
		weft_error("no descriptor for an event source: %s", strerror(errno));
		free(s);
		return WEFT_ERR_LIMIT;
	}
	struct weft_events_ops ops = {.name = "descriptors",
				      .poll_group = fd_poll_group,
				      .attach = fd_attach,
				      .detach = fd_detach,
				      .fd = s->epoll_fd,
				      .has_fd = true};
	weft_err err = weft_events_open(&ops, s, es_p);
	if (err)
		fd_free(s);
	else
		(*es_p)->free_arg = fd_free;
	return err;
}

weft_err weft_event_post_fd(struct weft_events *es, struct weft_event *ev, int fd, short events)
{
	*request_of(ev) = (struct fd_request){.fd = fd, .events = events};
	return weft_event_post(es, ev);
}

void weft_events_forget_fd(struct weft_events *es, int fd)
{
	struct fd_set_source *s = es->arg;
	struct weft_source_inside inside;
	weft_task_source_enter(&es->source, &inside);
	(void)weft_task_events_harvest(es); /* what was posted already is in the table after this */
	if (fd >= 0 && fd < s->places) {
		struct fd_place *p = &s->place[fd];
		p->generation++;
		(void)epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, fd, NULL); /* not there: as well */
		while (p->first) {                                     /* ends: all told */
			struct weft_event *ev = p->first;
			p->first = request_of(ev)->next;
			weft_event_complete(ev, -ECANCELED);
		}
		(void)weft_task_events_harvest(es);
	}
	weft_task_source_exit(&es->source, &inside);
}
