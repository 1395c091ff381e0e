/* SPDX-License-Identifier: BSD-3-Clause */
/* doctor.h - WEFT_DEADLOCK=abort: `weft doctor` watches the job and ends it when all ranks wait for each other. */
#ifndef MPIEXEC_DOCTOR_H
#define MPIEXEC_DOCTOR_H

#include <signal.h>

/* Starts it where the setting asks for it, with that signal mask, as no child of ours: it ends when this
 * process does.  Before this process adopts orphans. */
void doctor_start(const sigset_t *mask);

#endif
