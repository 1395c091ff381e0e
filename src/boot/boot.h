/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * boot.h - the peers of this process: rank, size, a key-value space shared with them, the job's secret.
 *
 * Sources   the table that fits the launcher (service.h); none: one process.  A process that
 *           sees the signs of a launcher it cannot talk to says so and fails.
 * Callers   the starting thread only, until weft_boot_close(); weft_boot_abort(): any thread.
 * Blocking  open, publish, fence and close wait for the launcher, bounded by the setting init_timeout.
 * Late      a rank that comes to MPI_Init late but within that time is waited for without a word.  After it a line
 *           says so; then PMI-1 and PMI-2 wait on, since the launcher ends the job if that rank dies, and
 *           PMIx, whose server may say nothing, ends with an error.
 */
#ifndef WEFT_BOOT_H
#define WEFT_BOOT_H

#include "base/base.h"

#define WEFT_SECRET_BYTES 32
#define WEFT_JOBID_MAX 64

struct weft_boot_info {
	int rank, size;
	int appnum;   /* number of the program on mpiexec's command line, or 0 */
	int universe; /* slots, if the launcher has more than the job's; else 0 */
	/* Both are there after the first weft_boot_publish() at the latest; nothing else changes later. */
	char jobid[WEFT_JOBID_MAX]; /* unique among jobs that run now */
	uint8_t secret[WEFT_SECRET_BYTES];
	bool spread;          /* the launcher says that ranks run on several hosts */
	bool secret_by_kvs;   /* the secret went through a foreign launcher's space */
	const char *launcher; /* "weft", "hydra", "none" ...: for weft info */
	const char *
		protection; /* how the secret came here, the end of a sentence; NULL: it was made here */
};

/* Joins the job.  On success *info_p lives until weft_boot_close().  Logs what is wrong. */
weft_err weft_boot_open(const struct weft_boot_info **info_p) weft_must_use;

/* Keeps value under key for this rank until it is published: any text without NUL, long values are split
 * inside.  A key is put once. */
weft_err weft_boot_put(const char *key, const char *value) weft_must_use;

/* What this rank has put is there for every rank's get.  All ranks call it, in the same order; some
 * launchers make each wait for all (PMI-1, PMI-2), others do not (PMIx). */
weft_err weft_boot_publish(void) weft_must_use;

/* The same, and all ranks wait for each other. */
weft_err weft_boot_fence(void) weft_must_use;

/* The value that rank has put under key; call it after the caller's own publish.  Waits until the rank has
 * published it where publish does not.  NOENT: none. */
weft_err weft_boot_get(int rank, const char *key, char *buf, size_t size) weft_must_use;

/* May a get at first contact replace an exchange between all? */
bool weft_boot_is_lazy(void);
/* Then this, for any thread, too: never waits; AGAIN until the value has come. */
weft_err weft_boot_try_get(int rank, const char *key, char *buf, size_t size) weft_must_use;
/* How many ranks the launcher has started on this node, and which, ascending; 0: unknown. */
int weft_boot_locals(const int **ranks_p);

/* The launcher reports that a rank has ended without leaving.  The hook is called from a foreign thread,
 * must not wait, and may be called again for the same rank.  NULL: none; then no call is under way. */
void weft_boot_on_death(void (*hook)(int rank, const char *why));

/* Leaves the job in order: the launcher then expects a quiet exit. */
void weft_boot_close(void);

/* Ends the whole job with exit code `code`; text names the cause (may be NULL).  Flushes stdio. */
_Noreturn void weft_boot_abort(int code, const char *text);

/* The same because another rank is gone.  weft's mpiexec prints that rank's end once for all ranks
 * that end with it, or text if it knows of none; under another launcher this rank prints text. */
_Noreturn void weft_boot_abort_bereft(int code, const char *text);

#endif
