/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi1.h - the line protocol of PMI-1: one line asks, one line answers.
 *
 * Callers   the starting thread; abort: any thread.
 * Blocking  each but abort waits for the launcher's answer, bounded by the setting init_timeout.
 * Trust     what the launcher writes is not trusted: too long, of another kind or without the wanted
 *           key is WEFT_ERR_PROTO, and the log names what was asked.
 */
#ifndef WEFT_BOOT_PMI1_H
#define WEFT_BOOT_PMI1_H

#include "base/base.h"

#define WEFT_PMI_LINE_MAX 65536 /* a longer answer is a protocol error */
#define WEFT_PMI_NAME_MAX 512

struct weft_pmi {
	_Atomic int x_fd; /* -1: closed.  Written by the starting thread, read by abort */
	bool tells;       /* says when other ranks are late; weft's mpiexec says it for all */
	bool quiet;       /* another way to the launcher will be tried: a refusal is no error yet */
	int kvsname_max, keylen_max, vallen_max;
	char kvsname[WEFT_PMI_NAME_MAX];
	char *line;            /* WEFT_PMI_LINE_MAX + 1 bytes: what has been read */
	size_t fill, line_end; /* bytes in line; end of the answer being parsed, 0: none */
};

/* Says hello, learns limits and the name of the space.  UNSUPPORTED: the launcher
 * does not speak PMI-1; fd then stays open, for another way to ask; on any other failure it is closed. */
weft_err weft_boot_pmi_open(struct weft_pmi *p, int fd) weft_must_use;
weft_err weft_boot_pmi_int(struct weft_pmi *p, const char *cmd, const char *answer, const char *key,
			   int *out_p) weft_must_use;
weft_err weft_boot_pmi_put(struct weft_pmi *p, const char *key, const char *value) weft_must_use;
/* *value_p lies in p->line until the next call. */
weft_err weft_boot_pmi_get(struct weft_pmi *p, const char *key, const char **value_p) weft_must_use;
/* weft's mpiexec only: see get_many in service.h. */
weft_err weft_boot_pmi_get_batch(struct weft_pmi *p, int batch, int from, int *next_p,
				 const char **text_p) weft_must_use;
/* Waits for the other ranks as long as the launcher lives. */
weft_err weft_boot_pmi_barrier(struct weft_pmi *p) weft_must_use;
void weft_boot_pmi_finalize(struct weft_pmi *p);
/* One write, no answer expected.  True: the launcher will hear of it.  text: NULL, or what weft's
 * mpiexec says of it if it knows no other cause. */
bool weft_boot_pmi_abort(struct weft_pmi *p, int code, const char *text);

#endif
