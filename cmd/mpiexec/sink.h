/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sink.h - mpiexec's own stdout or stderr: whole lines go in, a thread of its own writes them out.
 *
 * Writing may block for as long as the reader likes; the main thread (PMI, signals, timers) never
 * does.  The descriptor is shared with other programs, so it is not made non-blocking.
 *
 * Callers   the main thread only.
 * Order     text comes out in the order of sink_put.
 * Full      sink_is_full() is a wish, not a refusal: put always takes; callers stop reading.
 */
#ifndef MPIEXEC_SINK_H
#define MPIEXEC_SINK_H

#include <stdbool.h>
#include <stddef.h>

struct sink;

/* Opens the sinks of stdout and stderr; the same one for both when they are the same file.
 * `drained` is called in the main thread when a full sink has room again or cannot be written. */
bool sink_open_all(void (*drained)(void));

/* The sink of all files, opened at its first use; NULL: errno says why. */
struct sink *sink_files(void);
/* Appends text for a file; its descriptor stays open to the end. */
void sink_put_file(struct sink *files, int fd, const char *text, size_t len);

struct sink *sink_stdout(void);
struct sink *sink_stderr(void);

/* Appends text that came from `origin` (any address that tells sources apart).  If another origin
 * left an unfinished line, that line is ended first. */
void sink_put(struct sink *s, const void *origin, const char *head, size_t head_len,
	      const char *text, size_t len);

bool sink_is_full(const struct sink *s);   /* 4 MiB are waiting */
bool sink_is_broken(const struct sink *s); /* its reader is gone for good */

int sink_error(const struct sink *s); /* the errno of what broke it, 0: nothing */

/* Everything has been written, or cannot be. */
bool sink_is_idle(const struct sink *s);

#endif
