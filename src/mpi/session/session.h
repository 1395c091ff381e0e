/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session.h - sessions: uses of the library that come and go, beside MPI_Init or without it.
 *
 * The library (init.c) starts with its first user and is at rest, its threads asleep, while there is none;
 * it stops with the process, or in an MPI_Finalize before which no session was ever open.
 *
 * Owner     a session is referenced by its handle, by the groups made of its process sets, and by the
 *           communicators made of these.  With the last reference the library loses a user: a
 *           communicator that outlives its session's handle still works and can be freed.
 */
#ifndef WEFT_MPI_SESSION_H
#define WEFT_MPI_SESSION_H

#include "mpi/mpi_int.h"

struct weft_mpi_session {
	struct weft_mpi_head head;
	_Atomic int x_comms;        /* communicators that are not freed */
	bool strict;                /* I: its end is refused while there are any */
	struct weft_mpi_info *info; /* I: what MPI_Session_get_info tells */
	pthread_mutex_t lock;       /* of what follows */
	struct weft_mpi_errhandler *errhandler;
	struct weft_mpi_bsend *bsend; /* under bsend.c's lock */
};

void weft_mpi_session_unref_last(struct weft_mpi_session *s);

/* NULL is fine, for both. */
static inline struct weft_mpi_session *weft_mpi_session_ref(struct weft_mpi_session *s)
{
	if (s)
		weft_mpi_object_ref(&s->head);
	return s;
}

static inline void weft_mpi_session_unref(struct weft_mpi_session *s)
{
	if (s && weft_mpi_object_unref(&s->head))
		weft_mpi_session_unref_last(s);
}

/* A communicator of it begins, ends. */
struct weft_mpi_session *weft_mpi_session_use(struct weft_mpi_session *s);
void weft_mpi_session_unuse(struct weft_mpi_session *s);

/* ---- the library (init.c) ----------------------------------------------------------------- */

/* One more user; starts the layers if it is the first. */
int weft_mpi_library_use(void);
/* May several threads call MPI at once?  Sessions let them, whatever MPI_Init was asked for. */
bool weft_mpi_several_threads(void);
void weft_mpi_library_unuse(void);
/* Where groups without a communicator meet; open while the library is up. */
struct weft_ctx *weft_mpi_library_ctx(void);

#endif
