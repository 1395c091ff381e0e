/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * service.h - what a launcher offers to the ranks that it has started, as a table.
 *
 * boot.c gathers what a rank publishes into few values and needs these operations alone; each way of
 * talking to a launcher is one table: alone.c (no launcher), pmi1.c (PMI-1 over PMI_FD).
 *
 * Callers   the starting thread; abort: any thread.
 * Owner     one launcher per process, so a table keeps its state in its own file.
 * Blocking  open, put, get, get_many, fence and close wait for the launcher's answer, bounded by the
 *           setting init_timeout.
 * Errors    each logs its cause once, with the key or request concerned; NOENT is not logged.
 */
#ifndef WEFT_BOOT_SERVICE_H
#define WEFT_BOOT_SERVICE_H

#include "boot/boot.h"
#include "boot/launcher.h"

struct weft_boot_service {
	/* Connects; sets launcher, appnum and universe of info.  On failure nothing is kept open. */
	weft_err (*open)(const struct weft_boot_env *env, struct weft_boot_info *info);
	/* Leaves in order: the launcher then expects a quiet exit. */
	void (*close)(void);

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

#endif
