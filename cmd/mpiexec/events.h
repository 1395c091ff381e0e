/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * events.h - the one epoll of mpiexec's main thread.
 *
 * A source is embedded in what it belongs to and is never freed while the job runs, so an event
 * that was already collected cannot meet freed memory.
 */
#ifndef MPIEXEC_EVENTS_H
#define MPIEXEC_EVENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

struct event_source {
	void (*ready)(struct event_source *self, uint32_t events);
};

/* All return false with errno set when the kernel refuses. */
bool events_init(void);
bool events_add(int fd, uint32_t events, struct event_source *source);
bool events_change(int fd, uint32_t events, struct event_source *source);
void events_remove(int fd);

/* Waits at most timeout_ms (-1: for ever) and calls the handlers that are ready. */
void events_wait(int timeout_ms);

#endif
