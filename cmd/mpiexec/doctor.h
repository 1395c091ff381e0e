/* SPDX-License-Identifier: BSD-3-Clause */
/* doctor.h - `weft doctor` for mpiexec: it says what the ranks wait for when a job is ended that may hang, and (WEFT_DEADLOCK=abort)
 * watches the job and ends it when all ranks wait for each other. */
#ifndef MPIEXEC_DOCTOR_H
#define MPIEXEC_DOCTOR_H

#include <signal.h>

/* Starts it where the setting asks for it, with that signal mask, as no child of ours: it ends when this
 * process does.  Before this process adopts orphans. */
void doctor_start(const sigset_t *mask);
/* What each rank on this host waits for, to stderr; nothing where they are none of weft's.  Takes half a second, five at most. */
void doctor_last_look(void);

#endif
