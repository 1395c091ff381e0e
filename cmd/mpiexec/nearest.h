/* SPDX-License-Identifier: BSD-3-Clause */
/* nearest.h - what comes nearest to a word that weft does not know. */
#ifndef MPIEXEC_NEAREST_H
#define MPIEXEC_NEAREST_H

#include <stddef.h>

/* One line about an unknown option: what does the same here, or what it may be a misspelling of. */
void nearest_option(const char *shown, const char *name, size_t len,
		    void (*all_names)(void (*each)(const char *name, size_t len, void *arg),
				      void *arg));

/* In words: what is nearest to an MCA parameter of Open MPI's.  Valid until the next call. */
const char *nearest_setting(const char *name, const char *value);

#endif
