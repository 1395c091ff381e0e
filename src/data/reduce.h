/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reduce.h - the predefined operations on basic elements: inout[i] = in[i] op inout[i].
 *
 * Callers   any thread.  Never blocks; plain loops that the compiler vectorises.
 */
#ifndef WEFT_DATA_REDUCE_H
#define WEFT_DATA_REDUCE_H

#include "data/basic.h"

enum weft_op {
	WEFT_OP_SUM,
	WEFT_OP_PROD,
	WEFT_OP_MIN,
	WEFT_OP_MAX,
	WEFT_OP_BAND,
	WEFT_OP_BOR,
	WEFT_OP_BXOR,
	WEFT_OP_LAND,
	WEFT_OP_LOR,
	WEFT_OP_LXOR,
	WEFT_OP_MINLOC,
	WEFT_OP_MAXLOC,
	WEFT_OP_REPLACE,
	WEFT_OP_NO_OP,
	WEFT_OP_COUNT
};

typedef void weft_reduce_fn(const void *in, void *inout, size_t n);

/* The kernel, or NULL: the operation is not defined for that element. */
weft_reduce_fn *weft_data_reduce_find(enum weft_op op, unsigned elem);

/* The numbers of .TRUE. and .FALSE. in elements L8 to L64; 1 and 0 at first.  Once, before such are reduced. */
void weft_data_logical_set(int64_t yes, int64_t no);

#endif
