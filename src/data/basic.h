/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * basic.h - the basic elements that every layout is made of, and the pairs of MINLOC and MAXLOC.
 *
 * Callers   any thread; constant tables.
 */
#ifndef WEFT_DATA_BASIC_H
#define WEFT_DATA_BASIC_H

#include <wchar.h>
#include "base/base.h"

enum weft_basic {
#define WEFT_BASIC(id, ctype, cls, ext) WEFT_B_##id,
#include "data/basic_table.h"
#undef WEFT_BASIC
	WEFT_BASIC_COUNT,
	/* Pairs (value, index): not basic, but operations know them.  The numbers of elements are part of the wire (rma/wire.h):
	 * a new basic element, and a new pair, goes to the end of its table and must not shift others. */
	WEFT_PAIR_FIRST = 32,
	WEFT_PAIR_BEFORE = WEFT_PAIR_FIRST - 1,
#define WEFT_PAIR(id, v, vt, i, it) WEFT_B_##id,
#include "data/pair_table.h"
#undef WEFT_PAIR
	WEFT_ELEM_COUNT,
	WEFT_B_NONE = WEFT_ELEM_COUNT, /* a layout without one element kind */
};

_Static_assert(WEFT_BASIC_COUNT <= WEFT_PAIR_FIRST, "the pairs' numbers are fixed");

/* Is it the number of a basic element or of a pair? */
static inline bool weft_data_is_elem(unsigned elem)
{
	return elem < WEFT_BASIC_COUNT || (elem >= WEFT_PAIR_FIRST && elem < WEFT_ELEM_COUNT);
}

enum weft_basic_class {
	WEFT_CLASS_BYTE,
	WEFT_CLASS_CHAR,
	WEFT_CLASS_INT,
	WEFT_CLASS_UINT,
	WEFT_CLASS_FLOAT,
	WEFT_CLASS_COMPLEX,
	WEFT_CLASS_BOOL,
	WEFT_CLASS_PAIR,
};

struct weft_basic_info {
	uint8_t size, align;
	uint8_t cls;
	uint8_t external; /* bytes of one number in external32 */
	const char *name;
};

extern const struct weft_basic_info weft_data_basic_info[WEFT_BASIC_COUNT];

/* (value, index) as C lays them out. */
#define WEFT_PAIR(id, v, vt, i, it)                                                                \
	struct weft_pair_##id {                                                                    \
		vt value;                                                                          \
		it index;                                                                          \
	};
#include "data/pair_table.h"
#undef WEFT_PAIR

#endif
