/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * win.h - windows as MPI names them: the object, and which epoch it is in.
 *
 * Callers   any thread.  MPI makes the program order the calls that open and close epochs; accesses of
 *           an epoch come from many threads.
 * Owner     the window's communicator is its own: a copy of the one that it was made on.
 */
#ifndef WEFT_MPI_WIN_H
#define WEFT_MPI_WIN_H

#include "mpi/errhandler.h"
#include "mpi/mpi_int.h"
#include "rma/rma.h"

/* How a target is locked. */
enum weft_mpi_held {
	WEFT_MPI_FREE,
	WEFT_MPI_TAKING, /* by lock_all, at the first access; a thread is about to */
	WEFT_MPI_SHARED,
	WEFT_MPI_EXCLUSIVE,
	WEFT_MPI_UNCHECKED, /* MPI_MODE_NOCHECK: the program says that no other lock meets it */
};

struct weft_mpi_win {
	struct weft_mpi_head head;
	struct weft_rma_win *rma;
	const struct weft_rma_direct *direct; /* of rma */
	int members;
	struct weft_mpi_comm *comm; /* has a handle */
	MPI_Comm comm_handle;
	/* epochs */
	bool fenced;         /* accesses are allowed since the last fence */
	_Atomic bool x_used; /* and there was one */
	bool lock_all;       /* each target is locked at its first access */
	bool lock_all_unchecked;
	int n_locks;             /* by MPI_Win_lock */
	_Atomic uint8_t *x_held; /* per rank: enum weft_mpi_held */
	bool *may;               /* per rank: in the group of MPI_Win_start */
	int *started, n_started; /* ranks; NULL: no access epoch */
	int *posted, n_posted;   /* ranks; NULL: no exposure epoch */
	/* what attributes point to */
	void *base;
	MPI_Aint size;
	int disp_unit, flavor, model;
	struct weft_mpi_check_win *log; /* aid/check_win.c; NULL: not all members check */
	int *paths;                     /* per rank: MPIX_WIN_PATH_* */
	pthread_mutex_t lock;           /* of what follows */
	struct weft_mpi_errhandler *errhandler;
	struct weft_mpi_info *info;
	char name[MPI_MAX_OBJECT_NAME];
};

static inline struct weft_mpi_win *weft_mpi_window(MPI_Win h)
{
	return weft_mpi_object_find(h, WEFT_MPI_WIN);
}

/* May this process access rank now?  MPI_PROC_NULL is the caller's business.  May wait for a lock that
 * MPI_Win_lock_all left for the first access. */
int weft_mpi_win_access(struct weft_mpi_win *w, int rank);

/* Frees a window of the library's own without meeting the others, since a member is gone: later accesses of the survivors to this
 * member are refused. */
void weft_mpi_win_discard(MPI_Win win);

/* For those that ask: paths.c.  weft_mpi_win_paths_fill: false: no memory. */
bool weft_mpi_win_paths_fill(struct weft_mpi_win *w);
int weft_mpi_win_paths_info(struct weft_mpi_win *w, struct weft_mpi_info *i);

/* The class of an error of rma/. */
int weft_mpi_win_err(struct weft_mpi_win *w, int rank, weft_err err);

#endif
