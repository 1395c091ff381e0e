/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * service.h - what a launcher offers to the ranks that it has started, as a table.
 *
 * Each way of talking to a launcher is one table: alone.c (no launcher), pmi1.c (PMI-1 over PMI_FD),
 * pmi2.c (PMI-2 over PMI_FD), pmix.c (PMIx).  There are two kinds.  A plain key-value space has put, get
 * and fence, and batch.c gathers what a rank publishes into few values.  A lazy space keeps values by
 * rank, and a get waits for the value itself.
 *
 * Callers   the starting thread; abort: any thread.
 * Owner     one launcher per process, so a table keeps its state in its own file.
 * Blocking  open, put, get, get_many, fence, psets and close wait for the launcher's answer, bounded by the
 *           setting init_timeout; a plain space's fence waits for other ranks as long as the launcher is there.
 * Errors    each logs its cause once, with the key or request concerned; NOENT is not logged.
 */
#ifndef WEFT_BOOT_SERVICE_H
#define WEFT_BOOT_SERVICE_H

#include "boot/boot.h"
#include "boot/launcher.h"

struct weft_boot_lazy {
	/* A value of this rank; others see it after commit.  A key is put once. */
	weft_err (*put)(const char *key, const char *value);
	weft_err (*commit)(void);
	/* Any thread.  Waits until rank has committed the key, bounded by the setting init_timeout.
	 * TRUNC: buf is too small (not logged). */
	weft_err (*get)(int rank, const char *key, char *buf, size_t size);
	/* Any thread.  The same, but never waits: AGAIN until the value has come; call it again. */
	weft_err (*try_get)(int rank, const char *key, char *buf, size_t size);
	/* How many ranks the launcher has started on this node, and which, ascending; 0: unknown. */
	int (*locals)(const int **ranks_p);
};

struct weft_boot_service {
	/*
	 * Connects; sets launcher, protection, appnum and universe of info, and rank and size where
	 * the environment does not say them.  On failure nothing is kept open, but for UNSUPPORTED: the
	 * launcher answers and does not speak this protocol, and PMI_FD stays open for another one.
	 */
	weft_err (*open)(const struct weft_boot_env *env, struct weft_boot_info *info);
	/* Leaves in order: the launcher then expects a quiet exit. */
	void (*close)(void);

	/* NULL: a plain space. */
	const struct weft_boot_lazy *lazy;

	/* The longest value that put() takes, without its NUL. */
	size_t (*value_max)(void);
	weft_err (*put)(const char *key, const char *value);
	/* A value put before the last fence, by any rank.  *value_p lies in the service's memory until
	 * its next operation.  WEFT_ERR_NOENT: no such key. */
	weft_err (*get)(const char *key, const char **value_p);
	/*
	 * May be NULL.  The first parts that ranks from..*next_p - 1 put in a batch, each ended by
	 * ';': one answer for many ranks.  WEFT_ERR_NOENT: this launcher does not know the request.
	 * *text_p as in get().
	 */
	weft_err (*get_many)(int batch, int from, int *next_p, const char **text_p);
	/* What any rank has put before it is there for every rank after it. */
	weft_err (*fence)(void);

	/* May be NULL.  Any thread: gives the launcher's process sets to weft_boot_psets_add(). */
	weft_err (*psets)(void);

	/*
	 * Asks the launcher to end the job; never waits for an answer.  bereft: because another rank
	 * is gone, and `why` shall be printed only if the launcher knows no other cause.  False: the
	 * launcher will not hear of it, or prints nothing itself (bereft).
	 */
	bool (*abort)(int code, bool bereft, const char *why);
};

extern const struct weft_boot_service weft_boot_alone;
extern const struct weft_boot_service weft_boot_pmi1;
extern const struct weft_boot_service weft_boot_pmi2;
extern const struct weft_boot_service weft_boot_pmix;

/* Reports the end of a rank (boot.h); any thread, never waits. */
void weft_boot_died(int rank, const char *why);

#endif
