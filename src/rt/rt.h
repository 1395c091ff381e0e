/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rt.h - starts and stops the layers below, in order: settings, boot, engine, comm.
 *
 * Callers   one thread at a time.  start after stop is an error: a process joins one job, once.
 * Blocking  start and stop may block, bounded by the settings init_timeout and peer_timeout.
 */
#ifndef WEFT_RT_H
#define WEFT_RT_H

#include <stdio.h>
#include "boot/boot.h"

/* On success *info_p lives until stop.  What went wrong has been logged in one line.  Does not
 * return if this rank cannot do its part in a job of several: then the job ends. */
weft_err weft_rt_start(const struct weft_boot_info **info_p) weft_must_use;

/* Sends what is owed to peers, leaves them and the launcher in order. */
void weft_rt_stop(void);

bool weft_rt_running(void);

/* For `weft info`: job, drivers, engine; works before start too (then: what would be used). */
void weft_rt_describe(FILE *out);

#endif
