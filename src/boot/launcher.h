/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launcher.h - what the environment says about the launcher of this process.
 *
 * Order     weft's own mpiexec, proven by the channel it names; PMI_FD, if it is open: PMI-2 first under
 *           Slurm, else PMI-1, and the other version where the first is refused; PMIx, if
 *           PMIX_NAMESPACE and PMIX_RANK are there; else one process.  Where signs of two are found,
 *           the first that answers counts.
 * Callers   the starting thread.
 * Trust     the variables are the user's: each number is checked, each descriptor is looked at.
 */
#ifndef WEFT_BOOT_LAUNCHER_H
#define WEFT_BOOT_LAUNCHER_H

#include "base/base.h"

struct weft_boot_service;

#define WEFT_BOOT_WAYS 4

struct weft_boot_env {
	const struct weft_boot_service
		*service[WEFT_BOOT_WAYS]; /* how to talk to it, in order; NULL ends */
	bool last;                        /* no other way is left: what fails is an error */
	int rank, size;                   /* PMIx says them itself */
	int pmi_fd;                       /* PMI_FD, or -1 */
	int secret_fd;                    /* WEFT_BOOT_FD of weft's own mpiexec, or -1 */
	bool spread;                      /* it says that ranks run on several hosts */
};

/* Reads PMI_*, WEFT_BOOT_* and the marks of other launchers.  Logs what is wrong; UNSUPPORTED: there
 * is a launcher, and weft does not speak its protocol. */
weft_err weft_boot_env_read(struct weft_boot_env *env_p) weft_must_use;

#endif
