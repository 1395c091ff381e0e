/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launcher.h - what the environment says about the launcher of this process.
 *
 * Callers   the starting thread.
 * Trust     the variables are the user's: each number is checked, each descriptor is looked at.
 */
#ifndef WEFT_BOOT_LAUNCHER_H
#define WEFT_BOOT_LAUNCHER_H

#include "base/base.h"

struct weft_boot_service;

struct weft_boot_env {
	const struct weft_boot_service *service; /* how to talk to it */
	int rank, size;
	int pmi_fd;    /* PMI_FD, or -1 */
	int secret_fd; /* WEFT_BOOT_FD of weft's own mpiexec, or -1 */
};

/* Reads PMI_*, WEFT_BOOT_* and the marks of other launchers.  Logs what is wrong; UNSUPPORTED: there
 * is a launcher, and weft does not speak its protocol. */
weft_err weft_boot_env_read(struct weft_boot_env *env_p) weft_must_use;

#endif
