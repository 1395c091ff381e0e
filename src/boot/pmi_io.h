/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi_io.h - bytes to and from the launcher over PMI_FD, for PMI-1 and PMI-2.
 *
 * Callers   the starting thread; write_some: any thread.
 * Blocking  wait_ready and write_all wait, bounded by the setting init_timeout; wait_peers waits as long as
 *           the launcher lives, which ends the job when a rank dies; write_some does not.
 */
#ifndef WEFT_BOOT_PMI_IO_H
#define WEFT_BOOT_PMI_IO_H

#include <sys/types.h>
#include "base/base.h"

/* The time at which a request that begins now has taken too long. */
uint64_t weft_boot_pmi_deadline(void);
/* Waits until fd is ready for events; TIMEOUT when the deadline passes first. */
weft_err weft_boot_pmi_wait_ready(int fd, short events, uint64_t deadline) weft_must_use;
/* Waits for an answer that other ranks hold up.  tell: a line says so once, after init_timeout. */
weft_err weft_boot_pmi_wait_peers(int fd, bool tell) weft_must_use;
ssize_t weft_boot_pmi_write_some(int fd, const char *text, size_t len);
/* PEER: the launcher has closed its end. */
weft_err weft_boot_pmi_write_all(int fd, const char *text, size_t len) weft_must_use;

#endif
