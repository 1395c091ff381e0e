/* SPDX-License-Identifier: BSD-3-Clause */
/* notify.c - puts that notify, and the wait for one: mpi-ext.h. */
#include <mpi-ext.h>

#include "mpi/aid/check.h"
#include "mpi/entry.h"
#include "mpi/error.h"
#include "mpi/rma/win.h"
#include "task/task.h"

_Static_assert(MPIX_WIN_NOTIFICATIONS == WEFT_RMA_NOTES, "the same number in both layers");

static int note_wrong(int notification)
{
	if (notification >= 0 && notification < MPIX_WIN_NOTIFICATIONS)
		return MPI_SUCCESS;
	return weft_mpi_err(MPI_ERR_ARG, "there is no notification %d: they are 0 to %d",
			    notification, MPIX_WIN_NOTIFICATIONS - 1);
}

static int args_wrong(MPI_Count origin_count, MPI_Datatype origin_datatype, MPI_Count target_count,
		      MPI_Datatype target_datatype, int notification)
{
	if (!weft_mpi_type_of(origin_datatype))
		return weft_mpi_bad_handle(MPI_ERR_TYPE, "datatype", origin_datatype);
	if (!weft_mpi_type_of(target_datatype))
		return weft_mpi_bad_handle(MPI_ERR_TYPE, "datatype", target_datatype);
	if (origin_count < 0)
		return weft_mpi_bad_count("origin_count", origin_count);
	if (target_count < 0)
		return weft_mpi_bad_count("target_count", target_count);
	return note_wrong(notification);
}

static int wait_wrong(struct weft_mpi_win *w, int notification, MPI_Count count, int source)
{
	if (count < 0)
		return weft_mpi_bad_count("count", count);
	if (source != MPI_ANY_SOURCE && (source < 0 || source >= w->members))
		return weft_mpi_err(MPI_ERR_RANK, "rank %d is not in a window of %d", source,
				    w->members);
	return note_wrong(notification);
}

/* What a peer did before it notified may have been ordered by notifications of this rank: WEFT_CHECK does not
 * compare what comes after with what came before. */
static void check_synchronised(struct weft_mpi_win *w)
{
	if (weft_unlikely(w->log))
		weft_mpi_check_win_flushed(w, -1, false);
}

static int notify_wait(struct weft_mpi_win *w, int notification, MPI_Count count, int source)
{
	int err = wait_wrong(w, notification, count, source);
	if (err)
		return err;
	int rank = source == MPI_ANY_SOURCE ? WEFT_ANY_PEER : source;
	weft_err waited = weft_rma_note_wait(w->rma, (unsigned)notification, (uint64_t)count, rank);
	check_synchronised(w);
	return weft_mpi_win_err(w, source == MPI_ANY_SOURCE ? -1 : source, waited);
}

static int notify_test(struct weft_mpi_win *w, int notification, MPI_Count count, int *flag)
{
	int err = flag ? wait_wrong(w, notification, count, MPI_ANY_SOURCE)
		       : weft_mpi_bad_pointer("flag");
	if (err)
		return err;
	*flag = weft_rma_note_test(w->rma, (unsigned)notification, (uint64_t)count);
	if (!*flag && weft_engine_poll())
		*flag = weft_rma_note_test(w->rma, (unsigned)notification, (uint64_t)count);
	if (*flag)
		check_synchronised(w);
	return MPI_SUCCESS;
}

/* ---- entry points ------------------------------------------------------------------------- */

/* The window; NULL: *err_p says why not. */
static struct weft_mpi_win *window_of_call(MPI_Win win, const char *func, int *err_p)
{
	if (weft_unlikely(!weft_mpi_running()))
		weft_mpi_not_running(func);
	struct weft_mpi_win *w = weft_mpi_window(win);
	if (weft_unlikely(!w))
		*err_p = weft_mpi_raise_win(win, weft_mpi_bad_handle(MPI_ERR_WIN, "window", win),
					    func);
	return w;
}

static int raise_on_window(MPI_Win win, int err, const char *func)
{
	return weft_unlikely(err) ? weft_mpi_raise_win(win, err, func) : MPI_SUCCESS;
}

WEFT_API int PMPIX_Put_notify(const void *origin_addr, MPI_Count origin_count,
			      MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
			      MPI_Count target_count, MPI_Datatype target_datatype,
			      int notification, MPI_Win win)
{
	int err = MPI_SUCCESS;
	struct weft_mpi_win *w = window_of_call(win, "MPIX_Put_notify", &err);
	if (!w)
		return err;
	err = args_wrong(origin_count, origin_datatype, target_count, target_datatype,
			 notification);
	if (!err)
		err = weft_mpi_Put(origin_addr, origin_count, origin_datatype, target_rank,
				   target_disp, target_count, target_datatype, win);
	if (!err && target_rank != MPI_PROC_NULL)
		err = weft_mpi_win_err(w, target_rank,
				       weft_rma_note(w->rma, target_rank, (unsigned)notification));
	return raise_on_window(win, err, "MPIX_Put_notify");
}

WEFT_API int PMPIX_Win_notify_wait(MPI_Win win, int notification, MPI_Count count, int source)
{
	int err = MPI_SUCCESS;
	struct weft_mpi_win *w = window_of_call(win, "MPIX_Win_notify_wait", &err);
	return w ? raise_on_window(win, notify_wait(w, notification, count, source),
				   "MPIX_Win_notify_wait")
		 : err;
}

WEFT_API int PMPIX_Win_notify_test(MPI_Win win, int notification, MPI_Count count, int *flag)
{
	int err = MPI_SUCCESS;
	struct weft_mpi_win *w = window_of_call(win, "MPIX_Win_notify_test", &err);
	return w ? raise_on_window(win, notify_test(w, notification, count, flag),
				   "MPIX_Win_notify_test")
		 : err;
}

WEFT_API int MPIX_Put_notify(const void *origin_addr, MPI_Count origin_count,
			     MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
			     MPI_Count target_count, MPI_Datatype target_datatype, int notification,
			     MPI_Win win) __attribute__((weak, alias("PMPIX_Put_notify")));
WEFT_API int MPIX_Win_notify_wait(MPI_Win win, int notification, MPI_Count count, int source)
	__attribute__((weak, alias("PMPIX_Win_notify_wait")));
WEFT_API int MPIX_Win_notify_test(MPI_Win win, int notification, MPI_Count count, int *flag)
	__attribute__((weak, alias("PMPIX_Win_notify_test")));
