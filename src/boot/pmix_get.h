/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmix_get.h - values of other ranks, over PMIx: gets that wait, and gets that no thread waits for.
 *
 * Callers   open, close: the starting thread.  get, try_get: any thread between the two.
 * Late      a rank that has not come to MPI_Init yet is waited for: by get as long as the setting init_timeout
 *           says, by try_get for ever, with one line after that time.
 * Errors    what a server answers while another node's server is not up yet passes: asked again, as long as
 *           init_timeout says.  A server that is gone is an error at once.  Each is logged once.
 */
#ifndef WEFT_BOOT_PMIX_GET_H
#define WEFT_BOOT_PMIX_GET_H

#include "boot/pmix_request.h"

void weft_boot_pmix_gets_open(const struct weft_pmix_lib *lib, const struct weft_pmix_proc *me);
void weft_boot_pmix_gets_close(void);

/* As in struct weft_boot_lazy (service.h). */
weft_err weft_boot_pmix_get(int rank, const char *key, char *buf, size_t size) weft_must_use;
weft_err weft_boot_pmix_try_get(int rank, const char *key, char *buf, size_t size) weft_must_use;

#endif
