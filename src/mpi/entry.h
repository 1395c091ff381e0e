/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * entry.h - what the generated entry points call: the state of the library, checks of arguments,
 * and conversions between the int forms and the large-count ones.
 *
 * Cost      inline checks are a load and a compare each; everything named bad_ is cold.
 */
#ifndef WEFT_MPI_ENTRY_H
#define WEFT_MPI_ENTRY_H

#include <limits.h>
#include <stdlib.h>
#include "base/trace.h"
#include "mpi/mpi_int.h"

/* ---- state -------------------------------------------------------------------------------- */

static inline bool weft_mpi_running(void)
{
	/* Relaxed: a program that calls MPI from another thread orders that after MPI_Init. */
	return atomic_load_explicit(&weft_mpi_x_state, memory_order_relaxed) == WEFT_MPI_RUNNING;
}

/* ---- the trace and the checks; only where they are on ---------------------------------------- */

/* Is a trace written, does a tool listen, or are calls checked (mpi/aid)? */
extern _Atomic bool weft_mpi_x_hooked;
/* Asks again. */
void weft_mpi_hook(void);

static inline bool weft_mpi_hooked(void)
{
	/* Relaxed: as weft_mpi_running. */
	return weft_unlikely(atomic_load_explicit(&weft_mpi_x_hooked, memory_order_relaxed));
}

/* The call's name, for its return; never 0. */
unsigned weft_mpi_trace_call(const char *name) __attribute__((cold));
void weft_mpi_trace_return(unsigned name) __attribute__((cold));

/* ---- arguments ---------------------------------------------------------------------------- */

/* Each records why and returns the error class. */
int weft_mpi_unsupported(void) __attribute__((cold));
int weft_mpi_no_memory(void) __attribute__((cold));
int weft_mpi_bad_handle(int code, const char *what, const void *handle) __attribute__((cold));
int weft_mpi_bad_rank(MPI_Comm comm, int rank, bool wild) __attribute__((cold));
int weft_mpi_bad_root(MPI_Comm comm, int root) __attribute__((cold));
int weft_mpi_bad_tag(int tag) __attribute__((cold));
int weft_mpi_bad_count(const char *name, MPI_Count count) __attribute__((cold));
int weft_mpi_bad_pointer(const char *name) __attribute__((cold));

/* For checks of handles. */
static inline void *weft_mpi_win_of(MPI_Win h)
{
	return weft_mpi_object_find(h, WEFT_MPI_WIN);
}

static inline void *weft_mpi_file_of(MPI_File h)
{
	return weft_mpi_object_find(h, WEFT_MPI_FILE);
}

/* The communicator of a file's group; MPI_COMM_NULL: no such file. */
MPI_Comm weft_mpi_file_comm(MPI_File file);

static inline void *weft_mpi_session_of(MPI_Session h)
{
	return weft_mpi_object_find(h, WEFT_MPI_SESSION);
}

/* comm was checked before. */
static inline bool weft_mpi_rank_wrong(MPI_Comm comm, int rank, bool wild)
{
	if (weft_likely((unsigned)rank < (unsigned)weft_mpi_comm_of(comm)->peers))
		return false;
	return rank != MPI_PROC_NULL && !(wild && rank == MPI_ANY_SOURCE);
}

static inline bool weft_mpi_root_wrong(MPI_Comm comm, int root)
{
	const struct weft_mpi_comm *c = weft_mpi_comm_of(comm);

	if (weft_likely((unsigned)root < (unsigned)c->peers))
		return false;
	return !c->inter || (root != MPI_ROOT && root != MPI_PROC_NULL);
}

/* The datatype comes from a large-count constructor: its contents say so. */
void weft_mpi_type_made_large(MPI_Datatype made);

/* ---- conversions -------------------------------------------------------------------------- */

/* Widened copies of int arrays; they live as long as the call. */
struct weft_mpi_widen {
	bool failed;
	unsigned used;      /* of small */
	unsigned big_count; /* of big */
	MPI_Count *big[4];
	MPI_Count small[16]; /* few: the caller's stack may be that of a user-level thread */
};

/* n values of in, or NULL for NULL. */
const MPI_Count *weft_mpi_widen(struct weft_mpi_widen *w, const int *in, MPI_Count n);

static inline void weft_mpi_widen_free(struct weft_mpi_widen *w)
{
	for (unsigned i = 0; i < w->big_count; i++)
		free(w->big[i]);
}

/* How many counts the root of a gather or scatter gives; 0 on the other ranks. */
int weft_mpi_root_peers(MPI_Comm comm, int root);
/* Number of neighbours that one receives from (in) or sends to. */
int weft_mpi_degree(MPI_Comm comm, bool in);

/* A result that does not fit in an int is MPI_UNDEFINED. */
static inline int weft_mpi_narrow(MPI_Count v)
{
	return v > INT_MAX || v < INT_MIN ? MPI_UNDEFINED : (int)v;
}

#endif
