/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * psets.h - process sets: names for groups of this job's ranks.
 *
 * Sets      "mpi://WORLD" and "mpi://SELF" from weft_boot_open() on; "weft://host" and "weft://numa" are
 *           added by rt/, once the peers are known; the launcher's own (PMIx) by weft_boot_psets_refresh().
 * Callers   any thread, between weft_boot_open() and weft_boot_close().
 * Owner     boot/ owns names and members until weft_boot_close(); a set never changes and keeps its number.
 * Blocking  refresh asks the launcher, bounded by the setting init_timeout; the rest never waits long.
 */
#ifndef WEFT_BOOT_PSETS_H
#define WEFT_BOOT_PSETS_H

#include "base/base.h"

#define WEFT_PSET_NAME_MAX 512 /* with its NUL; a launcher's longer name is left out */

struct weft_boot_pset {
	const char *name;
	int size;
	int first;        /* ranks is NULL: the members are first .. first + size - 1 */
	const int *ranks; /* ascending, each once */
};

/* Rank of the set's i-th member. */
static inline int weft_boot_pset_rank(const struct weft_boot_pset *set, int i)
{
	return set->ranks ? set->ranks[i] : set->first + i;
}

/* How many sets there are now; their numbers are 0 .. count - 1. */
int weft_boot_psets_count(void);
/* NOENT: no such number. */
weft_err weft_boot_psets_at(int i, struct weft_boot_pset *set_p) weft_must_use;
/* NOENT: no such name. */
weft_err weft_boot_psets_find(const char *name, struct weft_boot_pset *set_p) weft_must_use;

/* Adds the sets that the launcher has defined since it was last asked. */
weft_err weft_boot_psets_refresh(void) weft_must_use;

/* Adds a set; copies name and ranks.  A name that is known keeps its first members.
 * ARG: not ascending ranks of this job, or too long a name. */
weft_err weft_boot_psets_add(const char *name, const int *ranks, int size) weft_must_use;

/* For boot.c. */
weft_err weft_boot_psets_open(int rank, int size) weft_must_use;
void weft_boot_psets_close(void);

#endif
