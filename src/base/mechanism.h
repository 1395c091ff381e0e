/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mechanism.h - adaptive and special mechanisms, each with a switch, so that its worth is measured.
 *
 * The setting `without` names those that are left out; doc/cost.md has a row for each: what for, what
 * it gains on a figure that a user feels, and the test or model behind it.  The program works without
 * any of them, and `ctest -R cmd/test_mechanisms` runs it so.
 *
 * Callers   init: the starting thread, once the settings are read, before other threads.  on: any.
 * Bound     on: one load of a word that does not change.
 */
#ifndef WEFT_MECHANISM_H
#define WEFT_MECHANISM_H

#include <stdio.h>
#include "base/base.h"

enum weft_mechanism {
#define WEFT_MECHANISM(id, name, what) WEFT_MECH_##id,
#include "base/mechanism_table.h"
#undef WEFT_MECHANISM
	WEFT_MECH_COUNT
};

extern uint64_t weft_mechanisms_off; /* bit per mechanism; written by init alone */

static inline bool weft_mechanism_on(enum weft_mechanism m)
{
	return weft_likely(!(weft_mechanisms_off >> m & 1));
}

/* Reads the setting.  An unknown name: one line that lists all, WEFT_ERR_ARG. */
weft_err weft_mechanisms_init(void) weft_must_use;

/* Each with its purpose and whether it is on, a line each. */
void weft_mechanisms_print(FILE *out);

#endif
