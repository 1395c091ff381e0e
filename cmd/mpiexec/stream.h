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

/* Takes the read end of rank's pipe.  live: unfinished lines show at once. */
bool stream_open(int rank, int fd, struct sink *sink, bool label, bool live);

/* Reads on after a full sink got room. */
void stream_resume_all(void);

/* The writers are gone: reads what is left in each pipe and closes it, as far as the sinks have
 * room.  True: all are closed. */
bool stream_finish_all(void);

#endif
