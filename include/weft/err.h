/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * err.h - the results that weft's functions return: 0, or a negative reason.
 *
 * WEFT_AGAIN means "not now": normal, never logged, nothing was kept.
 * The function that first knows a cause logs it once; its callers pass the value up.
 */
#ifndef WEFT_ERR_H
#define WEFT_ERR_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weft_err {
	WEFT_OK = 0,
	WEFT_AGAIN = -1,            /* not now: full, empty, busy */
	WEFT_ERR_NOMEM = -2,        /* no memory */
	WEFT_ERR_ARG = -3,          /* an argument is out of its range */
	WEFT_ERR_TRUNC = -4,        /* the message is longer than the buffer */
	WEFT_ERR_PEER = -5,         /* the peer is gone */
	WEFT_ERR_PROTO = -6,        /* bytes from outside that make no sense */
	WEFT_ERR_AUTH = -7,         /* the other side does not know the job's secret */
	WEFT_ERR_SYS = -8,          /* a system call failed; the log has errno */
	WEFT_ERR_LIMIT = -9,        /* a limit of the system or of a setting is reached */
	WEFT_ERR_UNSUPPORTED = -10, /* not possible here */
	WEFT_ERR_CANCELLED = -11,
	WEFT_ERR_TIMEOUT = -12,
	WEFT_ERR_DEADLOCK = -13, /* the caller would wait for itself, or is a handler */
	WEFT_ERR_STATE = -14,    /* not allowed in this state */
	WEFT_ERR_NOENT = -15,    /* no such key, name or thing */
	WEFT_ERR_INTERNAL = -16,
} weft_err;

/* A short English text for err; never NULL, static. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const char *
weft_strerror(weft_err err);

#ifdef __cplusplus
}
#endif
#endif
