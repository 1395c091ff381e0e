/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpi-ext.h - what weft has beside MPI: continuations, a descriptor for a set of requests, and puts that notify.
 *
 * Continuations have the names, flags and info keys of the proposal to the MPI Forum.  A callback
 * is attached to one or several requests and runs once all of them are complete, on a thread that
 * is inside an MPI call, whichever call that is, or in the background where the info key allows it.
 * It is registered with a continuation request, a persistent one: callbacks run while it is
 * started, and it is complete when all that were registered have run.
 *
 *	MPIX_Continue_init(0, 0, MPI_INFO_NULL, &cont);
 *	MPI_Start(&cont);
 *	MPI_Irecv(..., &r);
 *	MPIX_Continue(&r, arrived, &item, 0, MPI_STATUS_IGNORE, cont);
 *	...
 *	MPI_Wait(&cont, MPI_STATUS_IGNORE);
 *
 * A callback may start operations and attach further callbacks.  It may not block, unless it was
 * registered with a poll-only request: then it runs inside MPI_Test or MPI_Wait for that request.
 *
 * Several callbacks may run at once where several threads are inside MPI calls, or in the background.
 *
 * Callers   any thread, between MPI_Init and MPI_Finalize, as MPI's thread level allows.
 */
#ifndef WEFT_MPI_EXT_H
#define WEFT_MPI_EXT_H

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WEFT_MPIX_API __attribute__((visibility("default")))
#else
#define WEFT_MPIX_API
#endif

/* ---- continuations -------------------------------------------------------------------------- */

/* For MPIX_Continue and MPIX_Continueall. */
#define MPIX_CONT_REQBUF_VOLATILE 1 /* the array may go after the call; always so here */
#define MPIX_CONT_REQUESTS_FREE 2   /* the same; persistent requests are freed at their end */
#define MPIX_CONT_DEFER_COMPLETE 8  /* never run the callback inside the call itself */
#define MPIX_CONT_INVOKE_FAILED 16  /* call it with the error when an operation has failed */
/* For MPIX_Continue_init: callbacks run only when the continuation request is tested or waited for. */
#define MPIX_CONT_POLL_ONLY 4

/*
 * rc: MPI_SUCCESS, or with MPIX_CONT_INVOKE_FAILED the first error of its operations.  Another
 * result than MPI_SUCCESS makes the continuation a failed one.
 */
typedef int MPIX_Continue_cb_function(int rc, void *cb_data);

/*
 * max_poll: how many callbacks one test of a poll-only request runs at most; 0: all that are due.
 * Info keys: mpi_continue_thread: "application" (the default: threads that call MPI) or "all" (the
 * library's own, too, without any call); mpi_continue_poll_only, mpi_continue_enqueue_complete
 * ("true": as the flags), mpi_continue_max_poll (a number); mpi_continue_async_signal_safe (ignored).
 */
WEFT_MPIX_API int MPIX_Continue_init(int flags, int max_poll, MPI_Info info, MPI_Request *cont_req);

/*
 * The library takes the requests over: those that are not persistent are MPI_REQUEST_NULL after the
 * call, persistent ones are inactive when the callback runs.  Statuses are filled before it runs; they
 * must live until then.  Null and inactive requests count as complete.  Complete already: the
 * callback runs before the call returns, if the continuation request is started.
 */
WEFT_MPIX_API int MPIX_Continue(MPI_Request *request, MPIX_Continue_cb_function *cb, void *cb_data,
				int flags, MPI_Status *status, MPI_Request cont_req);
WEFT_MPIX_API int MPIX_Continueall(int count, MPI_Request requests[], MPIX_Continue_cb_function *cb,
				   void *cb_data, int flags, MPI_Status statuses[],
				   MPI_Request cont_req);

/*
 * The cb_data of failed continuations, each once, the oldest first; *count: the array's length, then
 * how many there are.  An operation that fails calls the error handler of its communicator; the
 * continuation request then ends with the first such code.
 */
WEFT_MPIX_API int MPIX_Continue_get_failed(MPI_Request cont_req, int *count, void **cb_data);

WEFT_MPIX_API int PMPIX_Continue_init(int flags, int max_poll, MPI_Info info,
				      MPI_Request *cont_req);
WEFT_MPIX_API int PMPIX_Continue(MPI_Request *request, MPIX_Continue_cb_function *cb, void *cb_data,
				 int flags, MPI_Status *status, MPI_Request cont_req);
WEFT_MPIX_API int PMPIX_Continueall(int count, MPI_Request requests[],
				    MPIX_Continue_cb_function *cb, void *cb_data, int flags,
				    MPI_Status statuses[], MPI_Request cont_req);
WEFT_MPIX_API int PMPIX_Continue_get_failed(MPI_Request cont_req, int *count, void **cb_data);

/* ---- a descriptor for a set of requests ------------------------------------------------------ */

/*
 * For event loops (epoll, asyncio, a GUI): the descriptor is readable when a request of the set is
 * complete.  The loop:
 *
 *   1. arm.  ready: go to 3.
 *   2. sleep until the descriptor is readable.  Do not read or close it.
 *   3. take; MPI_Test what came out, and start and add what shall come next; go to 1.
 *
 * A request stays the program's.  It leaves the set when it is taken out: only then let MPI_Test,
 * MPI_Wait or MPI_Request_free end it, or free the set before.  A collective with an operation of the
 * program's, MPI_Comm_idup and the like come out whenever an MPI call must carry them on: where MPI_Test says
 * that it is not complete, add it again.  With background progress off (weft/progress.h) the
 * descriptor is readable when a take would make progress.  A wake-up for nothing is possible.
 *
 * A set is used by one thread at a time, and freed before MPI_Finalize.
 */
typedef struct MPIX_Pollset_s *MPIX_Pollset;
#define MPIX_POLLSET_NULL ((MPIX_Pollset)0)

WEFT_MPIX_API int MPIX_Pollset_create(MPIX_Pollset *set);
/* Requests that are in it are left alone. */
WEFT_MPIX_API int MPIX_Pollset_free(MPIX_Pollset *set);
/* An active request; key: what take gives for it. */
WEFT_MPIX_API int MPIX_Pollset_add(MPIX_Pollset set, MPI_Request request, void *key);
/* Takes out up to max that are complete, the one that was so first in front; makes progress when there is none. */
WEFT_MPIX_API int MPIX_Pollset_take(MPIX_Pollset set, int max, void *keys[], int *count);
WEFT_MPIX_API int MPIX_Pollset_fd(MPIX_Pollset set, int *fd);
/* *ready: do not sleep, take: something may be there already. */
WEFT_MPIX_API int MPIX_Pollset_arm(MPIX_Pollset set, int *ready);

WEFT_MPIX_API int PMPIX_Pollset_create(MPIX_Pollset *set);
WEFT_MPIX_API int PMPIX_Pollset_free(MPIX_Pollset *set);
WEFT_MPIX_API int PMPIX_Pollset_add(MPIX_Pollset set, MPI_Request request, void *key);
WEFT_MPIX_API int PMPIX_Pollset_take(MPIX_Pollset set, int max, void *keys[], int *count);
WEFT_MPIX_API int PMPIX_Pollset_fd(MPIX_Pollset set, int *fd);
WEFT_MPIX_API int PMPIX_Pollset_arm(MPIX_Pollset set, int *ready);

/* ---- puts that notify ------------------------------------------------------------------------ */

/*
 * A member of a window has MPIX_WIN_NOTIFICATIONS counts, numbered from 0, each 0 at first.  MPIX_Put_notify is
 * MPI_Put, and then notification `notification` of the target counts one more: when the count is seen, all
 * puts and accumulates of this origin to that target that came before in the program are there, this one
 * included, without a flush.  The target's program takes no part.  If the target refuses one of them, nothing is
 * counted, and the next flush says why.
 *
 *	origin: MPIX_Put_notify(buf, n, MPI_DOUBLE, target, 0, n, MPI_DOUBLE, 7, win);
 *	target: MPIX_Win_notify_wait(win, 7, 1, origin);   asleep until it has come
 *
 * The put wants an access epoch as MPI_Put does; the wait wants none, and may be in one.  Buffers of the put are
 * the program's after a flush or the end of the epoch.
 */
#define MPIX_WIN_NOTIFICATIONS 64

WEFT_MPIX_API int MPIX_Put_notify(const void *origin_addr, MPI_Count origin_count,
				  MPI_Datatype origin_datatype, int target_rank,
				  MPI_Aint target_disp, MPI_Count target_count,
				  MPI_Datatype target_datatype, int notification, MPI_Win win);
/*
 * Waits until the own notification has counted to `count`, and takes that off.  source: the wait ends with an error
 * of class MPI_ERR_PROC_ABORTED if that member dies; MPI_ANY_SOURCE: if any does.  Several threads may wait, user-level
 * threads, too.
 */
WEFT_MPIX_API int MPIX_Win_notify_wait(MPI_Win win, int notification, MPI_Count count, int source);
/* *flag: it had counted that far, and count is taken off. */
WEFT_MPIX_API int MPIX_Win_notify_test(MPI_Win win, int notification, MPI_Count count, int *flag);

/*
 * A key for MPI_Win_get_attr: the value points to an int for each rank of the window, how its memory is reached
 * from here.  By load and copy: the target may compute, sleep or be stopped.  By engine: its engine serves
 * the access, in the background; it may compute or sleep, not be stopped.  MPI_Win_get_info has the same as text:
 * weft_paths ("0-3:load 4-7:engine"), weft_target_progress ("none" or "engine": what the accesses want of
 * targets), weft_accumulate ("processor" or "lock": how accumulates are atomic).
 */
#define MPIX_WIN_PATHS 1000
#define MPIX_WIN_PATH_LOAD 1   /* loads, stores and atomics of the origin */
#define MPIX_WIN_PATH_COPY 2   /* the kernel's copy, by the origin */
#define MPIX_WIN_PATH_ENGINE 3 /* messages that the target's engine serves */

WEFT_MPIX_API int PMPIX_Put_notify(const void *origin_addr, MPI_Count origin_count,
				   MPI_Datatype origin_datatype, int target_rank,
				   MPI_Aint target_disp, MPI_Count target_count,
				   MPI_Datatype target_datatype, int notification, MPI_Win win);
WEFT_MPIX_API int PMPIX_Win_notify_wait(MPI_Win win, int notification, MPI_Count count, int source);
WEFT_MPIX_API int PMPIX_Win_notify_test(MPI_Win win, int notification, MPI_Count count, int *flag);

#ifdef __cplusplus
}
#endif
#endif
