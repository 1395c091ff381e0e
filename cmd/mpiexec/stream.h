/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream.h - what a rank writes: read from its pipe, cut into lines, handed to a sink line by line.
 *
 * Lines     are never mixed with another rank's, up to 64 MiB each.  An unfinished line waits for
 *           its end, except in a job of one rank, and for rank 0 on a terminal (prompts): those
 *           show at once, and are ended by a newline if another rank has something to say.
 * Callers   the main thread only.
 */
#ifndef MPIEXEC_STREAM_H
#define MPIEXEC_STREAM_H

#include "sink.h"

struct stream_way {
	int rank;
	struct sink *sink; /* NULL: to the file alone */
	int file;          /* or -1 */
	bool label;
	bool live; /* unfinished lines show at once */
};

/* Takes the read end of a rank's pipe. */
bool stream_open(int fd, const struct stream_way *way);

struct stream;

/* One that is fed by its owner, which hears by `taken` how much has gone on. */
struct stream *stream_open_fed(const struct stream_way *way, void (*taken)(void *arg, size_t bytes),
			       void *arg);
void stream_feed(struct stream *s, const char *text, size_t len);
/* Nothing more comes. */
void stream_end(struct stream *s);
/* Its reader is gone: what is fed from now on is lost. */
bool stream_is_broken(const struct stream *s);

/* Reads on after a full sink got room. */
void stream_resume_all(void);

/* The writers are gone: reads what is left in each pipe and closes it, as far as the sinks have
 * room.  True: all are closed. */
bool stream_finish_all(void);

#endif
