/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tree.h - all descendants of a process, however they changed group or session.
 *
 * A process that is a child subreaper keeps every descendant below it: orphans become its
 * children.  So "no children left" means "no descendant left", and a walk over /proc finds them all.
 * Signals go through pidfds whose process was checked again after opening: never to an unrelated process
 * that got the number of one that has ended.
 */
#ifndef MPIEXEC_TREE_H
#define MPIEXEC_TREE_H

#include <stdbool.h>
#include <sys/types.h>

/* Sends sig to every living descendant of the caller except `spare` and members of the groups for
 * which skip_group(pgid, arg) says yes (NULL: none).  Returns how many living descendants were
 * seen. */
int tree_signal(int sig, pid_t spare, bool (*skip_group)(pid_t pgid, void *arg), void *arg);

/* Is there a living descendant whose process has that name (at most 15 bytes)? */
bool tree_has(const char *name);

#endif
