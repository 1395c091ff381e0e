/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * batch.h - put, fence and get over a launcher's plain key-value space (PMI-1, PMI-2).
 *
 * Callers   the starting thread, between open and close.
 * Owner     all texts are wiped and freed by close.
 * Blocking  fence and get wait for the launcher, bounded by the setting init_timeout.
 */
#ifndef WEFT_BOOT_BATCH_H
#define WEFT_BOOT_BATCH_H

#include "base/base.h"

struct weft_boot_service;

#define WEFT_BOOT_PART_NAME 48 /* bytes of a key in the launcher's space */

/* The key of one part of what rank has put in a batch. */
void weft_boot_batch_part_name(char name[WEFT_BOOT_PART_NAME], int batch, int rank, int part);

void weft_boot_batch_open(const struct weft_boot_service *service, int rank, int size);
weft_err weft_boot_batch_put(const char *key, const char *value) weft_must_use;
weft_err weft_boot_batch_fence(void) weft_must_use;
/* rank: of the job.  NOENT: it has put no such key before the last fence.  TRUNC: buf is too small. */
weft_err weft_boot_batch_get(int rank, const char *key, char *buf, size_t size) weft_must_use;
void weft_boot_batch_close(void);

#endif
