/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cont.h - continuations: callbacks that run once requests are complete.
 *
 * A continuation (struct weft_mpi_cont) counts its operations down.  Each operation waits as a
 * thread would, with a node in the completion's list, and a parker whose wake-up counts.  The one
 * that comes last hands the continuation to its continuation request (cont_req.c), which decides
 * where the callback runs: in a test of that request, in the next call of an application thread, or as
 * a task of the engine.
 *
 * Callers   attach: an MPI call.  cont_ready: any thread, task handlers included.
 *           cont_run: outside every lock; calls the program's code.
 * Owner     an operation's request is the continuation's from attach until its end; the continuation
 *           is freed when it has run, or, failed, when MPIX_Continue_get_failed has told of it.
 *           The request's part (struct weft_mpi_cont_req) lives until its handle and all of its
 *           continuations are gone.
 * Order     what the last operation wrote is visible to the callback.
 */
#ifndef WEFT_MPI_CONT_H
#define WEFT_MPI_CONT_H

#include <mpi-ext.h>

#include "mpi/p2p/request.h"
#include "task/task.h"
#include "wait/waiter.h"

struct weft_mpi_cont;

struct weft_mpi_cont_list {
	struct weft_mpi_cont *first, *last;
};

/* Behind a continuation request. */
struct weft_mpi_cont_req {
	bool everywhere; /* I: callbacks run in the background, too */
	bool defer;      /* I: never inside MPIX_Continue */
	int max_poll;    /* I: 0: no limit */
	_Atomic int x_refs;
	pthread_mutex_t lock; /* of what follows */
	bool poll_only;       /* until its handle is gone */
	bool started;
	int open;                         /* registered, and not run yet */
	int err;                          /* the first failure since the start */
	struct weft_mpi_comm *blamed;     /* whose error that is; referenced; or NULL */
	struct weft_mpi_cont_list due;    /* ready, but not started, or poll-only */
	struct weft_mpi_cont_list failed; /* not told yet */
	struct weft_completion bell;      /* something is due, or nothing is open */
};

/* One operation that a continuation waits for. */
struct weft_mpi_cont_op {
	struct weft_parker parker;
	struct weft_waiter waiter;
	struct weft_wait_node node;
	struct weft_task_app_work step; /* for requests that an application thread must advance */
	struct weft_mpi_request *r;     /* NULL: there was nothing to wait for */
	struct weft_mpi_cont *k;
};

struct weft_mpi_cont {
	union {
		struct weft_task task;          /* of a request that runs everywhere */
		struct weft_task_app_work work; /* of one that does not */
	};
	struct weft_mpi_cont *next; /* L of->lock: in one of its lists */
	struct weft_mpi_cont_req *of;
	MPIX_Continue_cb_function *cb;
	void *cb_data;
	int flags, count;
	bool several; /* statuses say the error */
	MPI_Status *statuses;
	struct weft_mpi_comm *comm; /* of its first failure; referenced; or NULL */
	_Atomic int x_left;         /* operations that are not over, and the attaching call */
	struct weft_mpi_cont_op op[];
};

/* cont_req.c: the one behind a handle, or an error. */
int weft_mpi_cont_req_of(MPI_Request handle, struct weft_mpi_cont_req **c_p);
bool weft_mpi_cont_req_is(const struct weft_mpi_request *r);
/* One more is registered. */
void weft_mpi_cont_open(struct weft_mpi_cont_req *c);
/* All operations of k are over.  here: the caller may run the callback itself. */
void weft_mpi_cont_ready(struct weft_mpi_cont *k, bool here);
/* k has run; code: as what it failed, or MPI_SUCCESS. */
void weft_mpi_cont_close(struct weft_mpi_cont *k, int code);

/* cont.c */
void weft_mpi_cont_run(struct weft_mpi_cont *k);
void weft_mpi_cont_free(struct weft_mpi_cont *k);
/* The calling thread has completed an operation itself: callbacks that may run in any call run now, unless it
 * is in one. */
void weft_mpi_cont_run_ready(void);

#endif
