/* SPDX-License-Identifier: BSD-3-Clause */
/* win_sync.c - epochs: fence, start and post, locks, flush. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/aid/check.h"
#include "mpi/comm/group.h"
#include "mpi/error.h"
#include "mpi/rma/win.h"
#include "task/task.h"

#define ASSERTS                                                                                    \
	(MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE |               \
	 MPI_MODE_NOSUCCEED)

/* Accesses to rank, or to all, are over: WEFT_CHECK forgets them. */
static void check_flushed(struct weft_mpi_win *w, int rank, bool local)
{
	if (weft_unlikely(w->log))
		weft_mpi_check_win_flushed(w, rank, local);
}

/* ---- checks ------------------------------------------------------------------------------- */

int weft_mpi_win_err(struct weft_mpi_win *w, int rank, weft_err err)
{
	if (!err)
		return MPI_SUCCESS;
	if (err == WEFT_ERR_ARG && rank >= 0)
		return weft_mpi_err(MPI_ERR_RMA_RANGE, "an access to rank %d", rank);
	if (err == WEFT_ERR_ARG)
		return weft_mpi_err(MPI_ERR_RMA_RANGE, "an access");
	if (err == WEFT_ERR_PEER && rank >= 0)
		return weft_mpi_err_peer(err, weft_mpi_comm_peer(w->comm, rank));
	return weft_mpi_err_of(err);
}

static int asserts_wrong(int assert, int allowed)
{
	if (assert & ~ASSERTS)
		return weft_mpi_err(MPI_ERR_ASSERT, "%d is no combination of assertions", assert);
	if (assert & ~allowed)
		return weft_mpi_err(MPI_ERR_ASSERT, "the assertion does not belong to this call");
	return MPI_SUCCESS;
}

static int rank_wrong(const struct weft_mpi_win *w, int rank)
{
	if (rank >= 0 && rank < w->comm->size)
		return MPI_SUCCESS;
	return weft_mpi_err(MPI_ERR_RANK, "rank %d is not in a window of %d", rank, w->comm->size);
}

static int sync_wrong(const char *what)
{
	return weft_mpi_err(MPI_ERR_RMA_SYNC, "%s", what);
}

/* A fence that was followed by accesses wants a fence; one that was not is over. */
static int fence_over(struct weft_mpi_win *w)
{
	/* Relaxed: the program orders accesses and epochs. */
	if (w->fenced && atomic_load_explicit(&w->x_used, memory_order_relaxed))
		return sync_wrong("accesses since the last fence want another fence first");
	w->fenced = false;
	return MPI_SUCCESS;
}

/* ---- accesses ----------------------------------------------------------------------------- */

/* Locks rank on behalf of lock_all, once. */
static int lock_late(struct weft_mpi_win *w, int rank)
{
	uint8_t was = WEFT_MPI_FREE;
	_Atomic uint8_t *held = &w->x_held[rank];
	if (w->lock_all_unchecked)
		return MPI_SUCCESS;
	/* Ends when the thread that takes the lock has it. */
	while (!atomic_compare_exchange_weak_explicit(held, &was, WEFT_MPI_TAKING,
						      memory_order_acquire, memory_order_acquire)) {
		if (was == WEFT_MPI_SHARED)
			return MPI_SUCCESS;
		if (was == WEFT_MPI_TAKING && !weft_engine_poll())
			sched_yield();
		was = WEFT_MPI_FREE;
	}
	weft_err err = weft_rma_lock(w->rma, rank, false);
	/* TAKEN -> the threads above.  Carries: what the last exclusive holder wrote. */
	atomic_store_explicit(held, err ? WEFT_MPI_FREE : WEFT_MPI_SHARED, memory_order_release);
	return weft_mpi_win_err(w, rank, err);
}

int weft_mpi_win_access(struct weft_mpi_win *w, int rank)
{
	if (weft_unlikely(rank < 0 || rank >= w->comm->size))
		return rank_wrong(w, rank);
	/* Acquire: TAKEN. */
	if (atomic_load_explicit(&w->x_held[rank], memory_order_acquire) > WEFT_MPI_TAKING)
		return MPI_SUCCESS;
	if (w->lock_all)
		return lock_late(w, rank);
	if (w->may[rank])
		return MPI_SUCCESS;
	if (w->fenced) {
		atomic_store_explicit(&w->x_used, true, memory_order_relaxed); /* as fence_over */
		return MPI_SUCCESS;
	}
	return sync_wrong(w->started ? "the target is not in the group of MPI_Win_start"
				     : "no epoch is open: call fence, start or lock first");
}

/* ---- fence -------------------------------------------------------------------------------- */

int weft_mpi_Win_fence(int assert, MPI_Win win)
{
	struct weft_mpi_win *w = weft_mpi_window(win);
	int err = asserts_wrong(assert, MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE |
						MPI_MODE_NOSUCCEED);
	if (err)
		return err;
	if (w->n_locks || w->lock_all || w->started || w->posted)
		return sync_wrong("an epoch of locks, start or post is open");
	err = weft_mpi_win_err(w, -1, weft_rma_flush_all(w->rma));
	if (weft_unlikely(w->log)) {
		int checked = weft_mpi_check_win_fence(w);
		err = err ? err : checked;
	}
	int met = weft_rma_fences(w->rma) ? weft_mpi_win_err(w, -1, weft_rma_fence(w->rma))
					  : weft_mpi_Barrier(w->comm_handle);
	w->fenced = !(assert &MPI_MODE_NOSUCCEED);
	atomic_store_explicit(&w->x_used, false, memory_order_relaxed); /* as fence_over */
	return err ? err : met;
}

/* ---- post and start ----------------------------------------------------------------------- */

/* The ranks of a group's members in the window. */
static int ranks_of(struct weft_mpi_win *w, MPI_Group group, int **ranks_p, int *n_p)
{
	struct weft_mpi_group *given = weft_mpi_group_of(group);
	struct weft_mpi_group *g =
		given->size ? weft_mpi_group_in(given, w->comm->group->domain) : NULL;
	int n = given->size, *rank = malloc(((size_t)n + 1) * sizeof *rank);
	bool known = rank && (g || !n);
	for (int i = 0; known && i < n; i++) {
		rank[i] = weft_mpi_group_rank_of(w->comm->group, g->world[i]);
		known = rank[i] != MPI_UNDEFINED;
	}
	weft_mpi_group_unref(g);
	if (!rank)
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	if (!known) {
		free(rank);
		return weft_mpi_err(MPI_ERR_GROUP,
				    "the group has processes that are not in the window");
	}
	*ranks_p = rank;
	*n_p = n;
	return MPI_SUCCESS;
}

int weft_mpi_Win_post(MPI_Group group, int assert, MPI_Win win)
{
	struct weft_mpi_win *w = weft_mpi_window(win);
	int err = asserts_wrong(assert, MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT);
	if (err)
		return err;
	if (w->posted)
		return sync_wrong("the window is posted already");
	err = fence_over(w);
	if (!err)
		err = ranks_of(w, group, &w->posted, &w->n_posted);
	for (int i = 0; !err && !(assert &MPI_MODE_NOCHECK) && i < w->n_posted; i++)
		err = weft_mpi_win_err(w, w->posted[i], weft_rma_post(w->rma, w->posted[i]));
	return err;
}

static void start_over(struct weft_mpi_win *w)
{
	for (int i = 0; i < w->n_started; i++)
		w->may[w->started[i]] = false;
	free(w->started);
	w->started = NULL;
	w->n_started = 0;
}

int weft_mpi_Win_start(MPI_Group group, int assert, MPI_Win win)
{
	struct weft_mpi_win *w = weft_mpi_window(win);
	int err = asserts_wrong(assert, MPI_MODE_NOCHECK);
	if (err)
		return err;
	if (w->started || w->n_locks || w->lock_all)
		return sync_wrong("an epoch of start or of locks is open already");
	err = fence_over(w);
	if (!err)
		err = ranks_of(w, group, &w->started, &w->n_started);
	if (err)
		return err;
	if (!(assert &MPI_MODE_NOCHECK))
		err = weft_mpi_win_err(w, -1, weft_rma_post_wait(w->rma, w->started, w->n_started));
	for (int i = 0; i < w->n_started; i++)
		w->may[w->started[i]] = true;
	if (err)
		start_over(w);
	return err;
}

int weft_mpi_Win_complete(MPI_Win win)
{
	struct weft_mpi_win *w = weft_mpi_window(win);
	int err = MPI_SUCCESS;
	if (!w->started)
		return sync_wrong("MPI_Win_start has not been called");
	for (int i = 0; i < w->n_started; i++) {
		int r = w->started[i];
		int late = weft_mpi_win_err(w, r, weft_rma_flush(w->rma, r));
		if (weft_unlikely(w->log))
			weft_mpi_check_win_complete(w, r);
		int told = weft_mpi_win_err(w, r, weft_rma_complete(w->rma, r));
		err = err ? err : late ? late : told;
		check_flushed(w, r, false);
	}
	start_over(w);
	return err;
}

static void post_over(struct weft_mpi_win *w)
{
	free(w->posted);
	w->posted = NULL;
	w->n_posted = 0;
}

int weft_mpi_Win_wait(MPI_Win win)
{
	struct weft_mpi_win *w = weft_mpi_window(win);
	if (!w->posted)
		return sync_wrong("MPI_Win_post has not been called");
	int err = weft_mpi_win_err(w, -1, weft_rma_complete_wait(w->rma, w->posted, w->n_posted));
	if (weft_unlikely(w->log) && !err)
		weft_mpi_check_win_wait(w);
	post_over(w);
	return err;
}

int weft_mpi_Win_test(MPI_Win win, int *flag)
{
	struct weft_mpi_win *w = weft_mpi_window(win);
	if (!w->posted)
		return sync_wrong("MPI_Win_post has not been called");
	*flag = weft_rma_complete_test(w->rma, w->posted, w->n_posted);
	if (!*flag) {
		(void)weft_engine_poll();
		*flag = weft_rma_complete_test(w->rma, w->posted, w->n_posted);
	}
	if (*flag && weft_unlikely(w->log))
		weft_mpi_check_win_wait(w);
	if (*flag)
		post_over(w);
	return MPI_SUCCESS;
}

/* ---- locks -------------------------------------------------------------------------------- */

int weft_mpi_Win_lock(int lock_type, int rank, int assert, MPI_Win win)
{
	struct weft_mpi_win *w = weft_mpi_window(win);
	if (lock_type != MPI_LOCK_EXCLUSIVE && lock_type != MPI_LOCK_SHARED)
		return weft_mpi_err(MPI_ERR_LOCKTYPE,
				    "%d is neither MPI_LOCK_EXCLUSIVE nor MPI_LOCK_SHARED",
				    lock_type);
	int err = asserts_wrong(assert, MPI_MODE_NOCHECK);
	if (!err && rank != MPI_PROC_NULL)
		err = rank_wrong(w, rank);
	if (err || rank == MPI_PROC_NULL)
		return err;
	/* Relaxed: the program orders its own locks. */
	if (w->lock_all ||
	    atomic_load_explicit(&w->x_held[rank], memory_order_relaxed) != WEFT_MPI_FREE)
		return sync_wrong("the target is locked already");
	if (w->started)
		return sync_wrong("an epoch of MPI_Win_start is open");
	err = fence_over(w);
	bool exclusive = lock_type == MPI_LOCK_EXCLUSIVE;
	uint8_t held = exclusive ? WEFT_MPI_EXCLUSIVE : WEFT_MPI_SHARED;
	if (!err && assert &MPI_MODE_NOCHECK)
		held = WEFT_MPI_UNCHECKED;
	else if (!err)
		err = weft_mpi_win_err(w, rank, weft_rma_lock(w->rma, rank, exclusive));
	if (err)
		return err;
	atomic_store_explicit(&w->x_held[rank], held, memory_order_relaxed);
	w->n_locks++;
	return MPI_SUCCESS;
}

/* Gives the target's lock back, if it is held. */
static void let_go(struct weft_mpi_win *w, int rank)
{
	/* Relaxed: as in lock. */
	uint8_t held = atomic_load_explicit(&w->x_held[rank], memory_order_relaxed);
	atomic_store_explicit(&w->x_held[rank], WEFT_MPI_FREE, memory_order_relaxed);
	if (held == WEFT_MPI_SHARED || held == WEFT_MPI_EXCLUSIVE)
		weft_rma_unlock(w->rma, rank, held == WEFT_MPI_EXCLUSIVE);
}

int weft_mpi_Win_unlock(int rank, MPI_Win win)
{
	struct weft_mpi_win *w = weft_mpi_window(win);
	if (rank == MPI_PROC_NULL)
		return MPI_SUCCESS;
	int err = rank_wrong(w, rank);
	if (err)
		return err;
	if (w->lock_all ||
	    atomic_load_explicit(&w->x_held[rank], memory_order_relaxed) == WEFT_MPI_FREE)
		return sync_wrong("MPI_Win_lock has not been called for the target");
	err = weft_mpi_win_err(w, rank, weft_rma_flush(w->rma, rank));
	check_flushed(w, rank, false);
	let_go(w, rank);
	w->n_locks--;
	return err;
}

int weft_mpi_Win_lock_all(int assert, MPI_Win win)
{
	struct weft_mpi_win *w = weft_mpi_window(win);
	int err = asserts_wrong(assert, MPI_MODE_NOCHECK);
	if (err)
		return err;
	if (w->lock_all || w->n_locks || w->started)
		return sync_wrong("an epoch of locks or of start is open already");
	err = fence_over(w);
	if (err)
		return err;
	w->lock_all = true;
	w->lock_all_unchecked = assert &MPI_MODE_NOCHECK;
	return MPI_SUCCESS;
}

int weft_mpi_Win_unlock_all(MPI_Win win)
{
	struct weft_mpi_win *w = weft_mpi_window(win);
	if (!w->lock_all)
		return sync_wrong("MPI_Win_lock_all has not been called");
	int err = weft_mpi_win_err(w, -1, weft_rma_flush_all(w->rma));
	check_flushed(w, -1, false);
	for (int r = 0; r < w->comm->size; r++)
		let_go(w, r);
	w->lock_all = false;
	return err;
}

/* ---- flush -------------------------------------------------------------------------------- */

static int flush_forbidden(struct weft_mpi_win *w, int rank)
{
	if (w->lock_all || atomic_load_explicit(&w->x_held[rank], memory_order_relaxed) != 0)
		return MPI_SUCCESS;
	return sync_wrong("flush wants the target to be locked");
}

static int flush_one(MPI_Win win, int rank, weft_err (*flush)(struct weft_rma_win *, int))
{
	struct weft_mpi_win *w = weft_mpi_window(win);
	if (rank == MPI_PROC_NULL)
		return MPI_SUCCESS;
	int err = rank_wrong(w, rank);
	if (!err)
		err = flush_forbidden(w, rank);
	if (err)
		return err;
	err = weft_mpi_win_err(w, rank, flush(w->rma, rank));
	check_flushed(w, rank, flush == weft_rma_flush_local);
	return err;
}

static int flush_every(MPI_Win win, weft_err (*flush)(struct weft_rma_win *))
{
	struct weft_mpi_win *w = weft_mpi_window(win);
	if (!w->lock_all && !w->n_locks)
		return sync_wrong("flush wants a target to be locked");
	int err = weft_mpi_win_err(w, -1, flush(w->rma));
	check_flushed(w, -1, flush == weft_rma_flush_local_all);
	return err;
}

int weft_mpi_Win_flush(int rank, MPI_Win win)
{
	return flush_one(win, rank, weft_rma_flush);
}

int weft_mpi_Win_flush_local(int rank, MPI_Win win)
{
	return flush_one(win, rank, weft_rma_flush_local);
}

int weft_mpi_Win_flush_all(MPI_Win win)
{
	return flush_every(win, weft_rma_flush_all);
}

int weft_mpi_Win_flush_local_all(MPI_Win win)
{
	return flush_every(win, weft_rma_flush_local_all);
}

int weft_mpi_Win_sync(MPI_Win win)
{
	(void)win;
	/* seq_cst: the window's memory is one for loads, stores and accesses; this orders them. */
	atomic_thread_fence(memory_order_seq_cst);
	return MPI_SUCCESS;
}
