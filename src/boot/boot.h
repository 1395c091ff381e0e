/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * boot.h - the peers of this process: rank, size, a key-value space shared with them, the job's secret.
 *
 * Sources   the table that fits the launcher (service.h); none: one process.  A process that
 *           sees the signs of a launcher it cannot talk to says so and fails.
 * Callers   the starting thread only, until weft_boot_close(); weft_boot_abort(): any thread.
 * Blocking  open, fence and close may block, bounded by the setting init_timeout.
 */
#ifndef WEFT_BOOT_H
#define WEFT_BOOT_H

#include "base/base.h"

#define WEFT_SECRET_BYTES 32
#define WEFT_JOBID_MAX 64

struct weft_boot_info {
	int rank, size;
	int appnum;                 /* number of the program on mpiexec's command line, or 0 */
	int universe;               /* slots, or 0 when unknown */
	char jobid[WEFT_JOBID_MAX]; /* unique among jobs that run now */
	uint8_t secret[WEFT_SECRET_BYTES];
	bool secret_by_kvs;   /* the secret went through a foreign launcher's space */
	const char *launcher; /* "weft", "hydra", "none": for weft info */
};

/* Joins the job.  On success *info_p lives until weft_boot_close().  Logs what is wrong. */
weft_err weft_boot_open(const struct weft_boot_info **info_p) weft_must_use;

/* Publishes value under key for this rank: any text without NUL, long values are split inside. */
weft_err weft_boot_put(const char *key, const char *value) weft_must_use;

/* Everything put before it is visible to every rank after it. */
weft_err weft_boot_fence(void) weft_must_use;

/* The value that rank put under key; WEFT_ERR_NOENT: none.  Call only after a fence. */
weft_err weft_boot_get(int rank, const char *key, char *buf, size_t size) weft_must_use;

/* Leaves the job in order: the launcher then expects a quiet exit. */
void weft_boot_close(void);

/* Ends the whole job with exit code `code`; text names the cause (may be NULL).  Flushes stdio. */
_Noreturn void weft_boot_abort(int code, const char *text);

/* The same because another rank is gone.  weft's mpiexec prints that rank's end once for all ranks
 * that end with it, or text if it knows of none; under another launcher this rank prints text. */
_Noreturn void weft_boot_abort_bereft(int code, const char *text);

#endif
