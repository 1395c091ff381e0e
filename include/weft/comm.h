/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comm.h - messages between the processes of a job, without MPI: peers, tags, requests, active
 * messages, and one-sided: put, get, atomics, notifications.
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

/* ---- one-sided ------------------------------------------------------------------------------- */

/*
 * A region is memory of a process that its peers may read, write and change.  The target's engine serves an
 * access, in the background: its program takes no part, and may compute or sleep.
 *
 * Start   as of messages.  req NULL: weft_comm_flush tells when it is over, and whether it failed.
 * Owner   buf and old are the access's until it is done.
 * Order   none between accesses.  What one has done is there for every access that starts after it is done.
 * Errors  WEFT_ERR_ARG: not inside of what key names there; nothing is touched.  WEFT_ERR_PEER: it is gone.
 */

/* Memory that peers may reach; the key is its name at the peers. */
WEFT_COMM_API weft_err weft_comm_expose(void *base, size_t bytes, uint64_t *key_p);
/* No access begins after it returns; that none is under way the caller has to know.  Ends waits for its
 * notifications. */
WEFT_COMM_API weft_err weft_comm_hide(uint64_t key);

/* A region as plain bytes, for a message or a file: owner, key and size. */
#define WEFT_COMM_HANDLE_BYTES 40
typedef struct weft_comm_handle {
	unsigned char bytes[WEFT_COMM_HANDLE_BYTES];
} weft_comm_handle;

/* Of an own region; WEFT_ERR_NOENT: there is none. */
WEFT_COMM_API weft_err weft_comm_handle_export(uint64_t key, weft_comm_handle *handle);
/* bytes_p may be NULL.  WEFT_ERR_ARG: no handle, or a damaged one, or of a peer that this job does not have. */
WEFT_COMM_API weft_err weft_comm_handle_import(const weft_comm_handle *handle, int *peer_p,
					       uint64_t *key_p, size_t *bytes_p);

/* Done means: the data lies in the peer's memory. */
WEFT_COMM_API weft_err weft_comm_put(weft_comm_request *req, int peer, uint64_t key, size_t offset,
				     const void *buf, size_t bytes);
WEFT_COMM_API weft_err weft_comm_get(weft_comm_request *req, int peer, uint64_t key, size_t offset,
				     void *buf, size_t bytes);

/*
 * Atomics on 4 or 8 bytes whose address is a multiple of that (else WEFT_ERR_ARG).  They are whole against each
 * other, and against atomic operations of the target's program; in one order, as seq_cst is.
 * old: what was there, `bytes` bytes; may be NULL.
 */
WEFT_COMM_API weft_err weft_comm_fetch_add(weft_comm_request *req, int peer, uint64_t key,
					   size_t offset, size_t bytes, uint64_t value, void *old);
WEFT_COMM_API weft_err weft_comm_swap(weft_comm_request *req, int peer, uint64_t key, size_t offset,
				      size_t bytes, uint64_t value, void *old);
/* Stores value where compare is. */
WEFT_COMM_API weft_err weft_comm_compare_swap(weft_comm_request *req, int peer, uint64_t key,
					      size_t offset, size_t bytes, uint64_t compare,
					      uint64_t value, void *old);

/* Waits until the accesses to peer, or to all, that this process has started are done.  The first failure of
 * those without a request, once. */
WEFT_COMM_API weft_err weft_comm_flush(int peer);
WEFT_COMM_API weft_err weft_comm_flush_all(void);

/* Each region has so many notifications: counts that start at 0. */
#define WEFT_COMM_NOTES 64

/* Put; then notification `note` of the region counts one more.  The count says that these data are there, and
 * nothing of other puts: flush before.  bytes may be 0. */
WEFT_COMM_API weft_err weft_comm_put_notify(weft_comm_request *req, int peer, uint64_t key,
					    size_t offset, const void *buf, size_t bytes,
					    unsigned note);
/* Waits, asleep, until note of the own region has counted to n, and takes n off.  from: the wait ends with
 * WEFT_ERR_PEER if that peer is lost; WEFT_COMM_ANY_PEER: only a notification ends it.  WEFT_ERR_NOENT: no such
 * region, or it has been hidden. */
WEFT_COMM_API weft_err weft_comm_notify_wait(uint64_t key, unsigned note, uint64_t n, int from);
/* The same without a wait: WEFT_AGAIN if the count is less, after one poll of the network. */
WEFT_COMM_API weft_err weft_comm_notify_test(uint64_t key, unsigned note, uint64_t n);

#ifdef __cplusplus
}
#endif
#endif
