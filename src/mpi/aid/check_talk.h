/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_talk.h - messages by which members of a communicator compare what they have called: one out, one in, and a
 * judgement when the latter comes.  No call waits for that.
 *
 * Callers   start: inside a collective call.  judge: the thread that notices the message.
 * Owner     a talk is of malloc, and this file's from start on.
 */
#ifndef WEFT_MPI_CHECK_TALK_H
#define WEFT_MPI_CHECK_TALK_H

#include "mpi/aid/check.h"

/* The first member of what is compared. */
struct weft_mpi_check_talk {
	struct weft_req recv, send;
	struct weft_mpi_comm *comm; /* valid while messages are to come, or the communicator is */
	void (*judge)(const struct weft_mpi_check_talk *t);
	bool loose;         /* the other side may not talk: its arguments may be others */
	_Atomic int x_left; /* ends of messages to come */
	struct weft_mpi_check_talk *next;
	bool receives, over;
};

/* To and from processes of the communicator's core; negative: no message. */
void weft_mpi_check_talk_start(struct weft_mpi_check_talk *t, int tag, int to, const void *out,
			       int from, void *in, size_t bytes);
/* Frees those whose messages are over; true: there are others, of c or of any (NULL). */
bool weft_mpi_check_talk_sweep(const struct weft_mpi_comm *c);
/* Before c is freed, and at the end (NULL): until all are over, or what is loose does not come. */
void weft_mpi_check_talk_end(const struct weft_mpi_comm *c);

#endif
