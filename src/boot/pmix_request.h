/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmix_request.h - one request to libpmix and its answer, which a thread of that library brings.
 *
 * Callers   ask, fence_begin, wait, drop: any thread, one per request.
 * Owner     the caller, until drop; what the library points to lives until its callback has come, too.
 * Progress  ask and fence_begin never wait; wait ends at its deadline.  A callback that never comes costs the request's memory.
 */
#ifndef WEFT_BOOT_PMIX_REQUEST_H
#define WEFT_BOOT_PMIX_REQUEST_H

#include "base/base.h"
#include "boot/pmix_abi.h"

struct weft_pmix_request;

/* Which library answers; before the first request. */
void weft_boot_pmix_requests_open(const struct weft_pmix_lib *lib);

enum weft_pmix_how {
	WEFT_PMIX_KNOWN,    /* what the server knows of the job; absent: it says so at once */
	WEFT_PMIX_REQUIRED, /* what a rank publishes: the server may wait for it */
	WEFT_PMIX_REFRESH   /* the same, and not from what the server has been told earlier */
};
/* Asks for a value; NULL: no memory. */
struct weft_pmix_request *weft_boot_pmix_ask(const struct weft_pmix_proc *proc, const char *key,
					     enum weft_pmix_how how);
/* A fence of all ranks; NULL: no memory. */
struct weft_pmix_request *weft_boot_pmix_fence_begin(void);

/* Now plus the setting init_timeout, by CLOCK_MONOTONIC. */
uint64_t weft_boot_pmix_deadline(void);
/* Has the answer come?  Waits until that time; 0: does not wait. */
bool weft_boot_pmix_wait(struct weft_pmix_request *r, uint64_t until_ns);

/* Of a request whose answer has come: its status, and its value, which lives until drop; NULL, or false: the value
 * is of another kind. */
int weft_boot_pmix_status(const struct weft_pmix_request *r);
const char *weft_boot_pmix_text(const struct weft_pmix_request *r);
bool weft_boot_pmix_number(const struct weft_pmix_request *r, uint32_t *n_p);

void weft_boot_pmix_drop(struct weft_pmix_request *r);

/*
 * Calls fn(arg) and returns what it returned.  It is bounded by init_timeout: a library that waits for a server
 * which is stopped is left waiting, in a thread of its own, and so is *arg, `size` bytes of which are copied there
 * and, if it returns in time, back.  WEFT_PMIX_ERR_TIMEOUT: it did not.
 */
int weft_boot_pmix_call(int (*fn)(void *arg), void *arg, size_t size);

#endif
