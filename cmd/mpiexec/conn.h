/* SPDX-License-Identifier: BSD-3-Clause */
/* conn.h - one rank's connection to the PMI server. */
#ifndef MPIEXEC_CONN_H
#define MPIEXEC_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "events.h"
#include "pmi.h"

struct conn {
	struct event_source source;  /* the socket */
	struct event_source watcher; /* the pidfd of the process that said init */
	int fd, pid_fd;              /* -1: closed */
	void (*send)(int rank, const char *text,
		     size_t len); /* the rank is elsewhere; NULL: at fd */
	int rank, appnum;
	pid_t speaker;
	int speaker_status; /* -1: it lives, or its end was not seen */
	enum pmi_state state;
	bool in_barrier, aborted, in_multi, gone, speaker_gone;
	char *in, *out;
	size_t in_len, in_cap, out_len, out_cap;
};

/* Is the rank served? */
static inline bool conn_is_open(const struct conn *c)
{
	return c->fd >= 0 || c->send;
}

/* Sends what the socket takes of the answers. */
void conn_flush(struct conn *c);
/* Listens to it, unless it leaves too many answers unread. */
void conn_want(struct conn *c);
/* Text for the rank; without a descriptor it goes to c->send. */
void conn_answer_bytes(struct conn *c, const char *text, size_t len);
void conn_answer(struct conn *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Reads once and learns which process wrote: the rank, or a program below a wrapper. */
ssize_t conn_receive(struct conn *c);
/* Asks the kernel (6.15 or later) for the wait status of a process that its own parent has reaped.
 */
void conn_learn_status(struct conn *c);
/* From the process that has written last, its end is noticed (c->watcher), unless one is watched already. */
void conn_watch_speaker(struct conn *c);
void conn_stop_watching(struct conn *c);

#endif
