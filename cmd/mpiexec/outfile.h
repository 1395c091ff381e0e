/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * outfile.h - files that the ranks' output goes to, on the machine where mpiexec runs.
 *
 * Callers   the main thread, before the ranks of the file are started.
 */
#ifndef MPIEXEC_OUTFILE_H
#define MPIEXEC_OUTFILE_H

#include "plan.h"

enum outfile_end { OUTFILE_OUT, OUTFILE_ERR };

/* The descriptor of the file of the rank's stdout or stderr; -1: it has none, -2: after one line.
 * Ranks whose patterns give the same name share a file. */
int outfile_open(const struct plan *plan, int rank, const char *host, enum outfile_end end);

bool outfile_wanted(const struct plan *plan);

/* Does the rank's output also go to mpiexec's own? */
bool outfile_copies(const struct plan *plan, enum outfile_end end);

#endif
