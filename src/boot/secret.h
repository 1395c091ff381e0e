/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * secret.h - the 32 bytes that prove membership in the job, and the page that they lie on.
 *
 * Callers   the starting thread.
 * Owner     the info object belongs to boot.c; what is read or printed elsewhere is wiped after use.
 */
#ifndef WEFT_BOOT_SECRET_H
#define WEFT_BOOT_SECRET_H

#include "boot/boot.h"

/* What weft's mpiexec sends over the inherited socket, once per rank. */
#define WEFT_BOOT_HANDOVER_MAGIC "weftjob1"
struct weft_boot_handover {
	char magic[8];
	uint8_t secret[WEFT_SECRET_BYTES];
	char jobid[WEFT_JOBID_MAX];
};

/* An info object on a page of its own that no core dump contains; NULL: no memory. */
struct weft_boot_info *weft_boot_info_create(void);
/* Wipes and frees it. */
void weft_boot_info_destroy(struct weft_boot_info *info);

/* Reads secret and job name from fd and closes it, whatever happens. */
weft_err weft_boot_secret_receive(int fd, struct weft_boot_info *info) weft_must_use;
/* Draws a fresh secret and a fresh job name. */
weft_err weft_boot_secret_make(struct weft_boot_info *info) weft_must_use;
/* As text for a key-value space, and back; text holds WEFT_BOOT_SECRET_TEXT bytes. */
#define WEFT_BOOT_SECRET_TEXT (2 * WEFT_SECRET_BYTES + 1 + WEFT_JOBID_MAX + 1)
void weft_boot_secret_print(const struct weft_boot_info *info, char *text);
weft_err weft_boot_secret_parse(const char *text, struct weft_boot_info *info) weft_must_use;

#endif
