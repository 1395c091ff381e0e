/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comm.h - messages between the processes of a job, without MPI: peers, tags, requests, active
 * messages, put and get.
 *
 * Start the program with weft's mpiexec (or alone: then there is one peer, itself).  Works beside
 * MPI too: after MPI_Init in the same process, these messages never meet MPI's.
 *
 * Callers   any thread.  Handlers of active messages may start operations, and may not wait:
 *           what would block there answers WEFT_ERR_DEADLOCK.
 * Owner     request and buffer are the library's from the start until the request is done.
 * Order     messages with one (peer, tag) are received in the order they were sent.  Active
 *           messages have no order among each other, and several handlers may run at once.
 * Progress  in the background, and in every wait and test.
 *
 * Link with `pkg-config --libs weft`.
 */
#ifndef WEFT_PUBLIC_COMM_H
#define WEFT_PUBLIC_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft/err.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WEFT_COMM_API __attribute__((visibility("default")))
#else
#define WEFT_COMM_API
#endif

#define WEFT_COMM_ANY_PEER (-1)
#define WEFT_COMM_ANY_TAG (-2147483647 - 1)

/* ---- life ------------------------------------------------------------------------------------ */

/* Joins the job, all of its processes together, once per process. */
WEFT_COMM_API weft_err weft_comm_open(void);
/* Leaves it, all together; requests must be done.  Not if MPI runs still: before MPI_Finalize. */
WEFT_COMM_API weft_err weft_comm_close(void);
WEFT_COMM_API int weft_comm_rank(void);
WEFT_COMM_API int weft_comm_size(void);
/* Waits until all processes have called it. */
WEFT_COMM_API weft_err weft_comm_barrier(void);

/* ---- messages -------------------------------------------------------------------------------- */

typedef struct weft_comm_result {
	weft_err err; /* WEFT_OK, WEFT_ERR_TRUNC, WEFT_ERR_PEER, WEFT_ERR_CANCELLED, ... */
	int peer;     /* a receive: the sender of the message */
	int tag;
	size_t bytes; /* received, or sent */
} weft_comm_result;

/* An operation under way; the caller's memory, which must live until it is done. */
typedef struct weft_comm_request {
	uint64_t opaque[56];
} weft_comm_request;

/* Start; any result but WEFT_OK: nothing was started.  WEFT_ERR_ARG: no such peer, a tag below 0;
 * WEFT_ERR_STATE: not open. */
WEFT_COMM_API weft_err weft_comm_isend(weft_comm_request *req, int peer, int tag, const void *buf,
				       size_t bytes);
WEFT_COMM_API weft_err weft_comm_irecv(weft_comm_request *req, int peer, int tag, void *buf,
				       size_t bytes);
/* Done?  If not, one poll of the network.  result may be NULL, here and below. */
WEFT_COMM_API bool weft_comm_test(weft_comm_request *req, weft_comm_result *result);
/* The operation's own result, or WEFT_ERR_DEADLOCK in a handler. */
WEFT_COMM_API weft_err weft_comm_wait(weft_comm_request *req, weft_comm_result *result);
/* All n are done.  The first failure among them. */
WEFT_COMM_API weft_err weft_comm_wait_all(weft_comm_request *const *req, size_t n);
/* Cancels a receive that has not matched; true: it is done, with WEFT_ERR_CANCELLED. */
WEFT_COMM_API bool weft_comm_cancel(weft_comm_request *req);

/* Start and wait. */
WEFT_COMM_API weft_err weft_comm_send(int peer, int tag, const void *buf, size_t bytes);
WEFT_COMM_API weft_err weft_comm_recv(int peer, int tag, void *buf, size_t bytes,
				      weft_comm_result *result);
/* Is there a message that such a receive would get?  It stays. */
WEFT_COMM_API bool weft_comm_probe(int peer, int tag, weft_comm_result *result);
/* One poll of the network, for a thread that waits for what a handler does.  True: something
 * happened.  In a handler: false, and nothing is done. */
WEFT_COMM_API bool weft_comm_poll(void);

/* ---- active messages ------------------------------------------------------------------------- */

#define WEFT_COMM_AM_MAX 4096     /* bytes of a message */
#define WEFT_COMM_AM_HANDLERS 128 /* ids 0..127 */

/* Runs in the thread that polls; must be short; data is gone when it returns. */
typedef void (*weft_comm_handler)(int peer, const void *data, size_t bytes, void *arg);

/* All processes give an id the same meaning, before any message with it may arrive. */
WEFT_COMM_API weft_err weft_comm_am_handler(int id, weft_comm_handler fn, void *arg);
/* data may be used again at once.  Outside handlers: may wait for room. */
WEFT_COMM_API weft_err weft_comm_am(int peer, int id, const void *data, size_t bytes);

/* ---- put and get ----------------------------------------------------------------------------- */

/* Memory that peers may write and read; the key is its name at the peers. */
WEFT_COMM_API weft_err weft_comm_expose(void *base, size_t bytes, uint64_t *key_p);
/* No access begins after it returns; that none is under way the caller has to know. */
WEFT_COMM_API weft_err weft_comm_hide(uint64_t key);
/* Done means: the data lies in the peer's memory.  Outside of what key names: WEFT_ERR_ARG. */
WEFT_COMM_API weft_err weft_comm_put(weft_comm_request *req, int peer, uint64_t key, size_t offset,
				     const void *buf, size_t bytes);
WEFT_COMM_API weft_err weft_comm_get(weft_comm_request *req, int peer, uint64_t key, size_t offset,
				     void *buf, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
