/* SPDX-License-Identifier: BSD-3-Clause */
/* engine.h - other machines: the command line in the words of srun, prterun or Hydra. */
#ifndef MPIEXEC_ENGINE_H
#define MPIEXEC_ENGINE_H

#include "plan.h"

/* Becomes a real engine; returns only when that fails, with the exit code, after one line.  Another
 * file may stand for plan->hostfile then. */
int engine_exec(struct plan *plan);

/* Are the ranks on other machines mpiexec's own to start: told so, or no engine is there? */
bool engine_is_ours(const struct plan *plan);

#endif
