/* SPDX-License-Identifier: BSD-3-Clause */
/* events.c - a thin cover over epoll. */
#include "events.h"

#include <stddef.h>

static int epoll_fd = -1;

bool events_init(void)
{
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return epoll_fd >= 0;
}

static bool control_epoll(int op, int fd, uint32_t events, struct event_source *source)
{
	struct epoll_event e = {.events = events, .data.ptr = source};
	return epoll_ctl(epoll_fd, op, fd, &e) == 0;
}

bool events_add(int fd, uint32_t events, struct event_source *source)
{
	return control_epoll(EPOLL_CTL_ADD, fd, events, source);
}

bool events_change(int fd, uint32_t events, struct event_source *source)
{
	return control_epoll(EPOLL_CTL_MOD, fd, events, source);
}

void events_remove(int fd)
{
	(void)control_epoll(EPOLL_CTL_DEL, fd, 0, NULL); /* may have gone with its descriptor */
}

void events_wait(int timeout_ms)
{
	struct epoll_event got[64];
	int n = epoll_wait(epoll_fd, got, 64, timeout_ms);
	for (int i = 0; i < n; i++) {
		struct event_source *source = got[i].data.ptr;
		source->ready(source, got[i].events);
	}
}
