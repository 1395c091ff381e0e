/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2.h - the messages of PMI-2: a length of six characters, then "cmd=NAME;key=value;...".
 *
 * Callers   the starting thread; abort: any thread.
 * Blocking  each but abort waits for the launcher's answer, bounded by the setting init_timeout.
 * Trust     what the launcher writes is not trusted: too long, of another kind or without the wanted
 *           key is WEFT_ERR_PROTO, and the log names what was asked.
 */
#ifndef WEFT_BOOT_PMI2_H
#define WEFT_BOOT_PMI2_H

#include "base/base.h"

#define WEFT_PMI2_TEXT_MAX 65536 /* a longer answer is a protocol error */
#define WEFT_PMI2_FIELDS_MAX 64
#define WEFT_PMI2_JOBID_MAX 256
#define WEFT_PMI2_VALUE_MAX 1000
#define WEFT_PMI2_GETS 16 /* under way at once: their answers fit a socket's buffer */

struct weft_pmi2 {
	_Atomic int x_fd; /* -1: closed.  Written by the starting thread, read by abort */
	bool quiet;       /* another way to the launcher will be tried: a refusal is no error yet */
	int rank, size, appnum;
	char jobid[WEFT_PMI2_JOBID_MAX];
	char *text; /* WEFT_PMI2_TEXT_MAX + 1 bytes: the last answer */
	struct {
		const char *key, *value;
	} field[WEFT_PMI2_FIELDS_MAX]; /* of that answer; they lie in text */
	int n_fields;
	char many[WEFT_PMI2_GETS * (WEFT_PMI2_VALUE_MAX + 1) + 1]; /* what get_many answers */
};

/* Says hello, learns rank, size and the job's name.  UNSUPPORTED: the launcher
 * does not speak PMI-2; fd then stays open, for another way to ask; on any other failure it is closed. */
weft_err weft_boot_pmi2_open(struct weft_pmi2 *p, int fd) weft_must_use;
weft_err weft_boot_pmi2_put(struct weft_pmi2 *p, const char *key, const char *value) weft_must_use;
/* *value_p lies in p->text until the next call.  NOENT: there is none. */
weft_err weft_boot_pmi2_get(struct weft_pmi2 *p, const char *key,
			    const char **value_p) weft_must_use;
/* As get_many of service.h, by requests that are sent together: a single turn of this process, not one for each. */
weft_err weft_boot_pmi2_get_many(struct weft_pmi2 *p, int batch, int from, int *next_p,
				 const char **text_p) weft_must_use;
/* An attribute of the job; NOENT: the launcher has none. */
weft_err weft_boot_pmi2_attribute(struct weft_pmi2 *p, const char *key,
				  const char **value_p) weft_must_use;
weft_err weft_boot_pmi2_fence(struct weft_pmi2 *p) weft_must_use;
void weft_boot_pmi2_finalize(struct weft_pmi2 *p);
/* One write, no answer expected.  True: the launcher will hear of it. */
bool weft_boot_pmi2_abort(struct weft_pmi2 *p, const char *why);

#endif
