/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reduce.c - kernels of the predefined operations, one per operation and element, from a table.
 *
 * MPI's table of what is allowed: MIN MAX on INT, UINT, FLOAT; SUM PROD also on COMPLEX; LAND LOR
 * LXOR on INT, UINT, BOOL; BAND BOR BXOR on INT, UINT, BYTE; MINLOC MAXLOC on pairs; REPLACE NO_OP
 * on all.
 */
#include "data/reduce.h"

#include <string.h>

/* a: from in, b: from inout */
#define DO_SUM(a, b) ((a) + (b))
#define DO_PROD(a, b) ((a) * (b))
#define DO_MIN(a, b) ((a) < (b) ? (a) : (b))
#define DO_MAX(a, b) ((a) > (b) ? (a) : (b))
#define DO_BAND(a, b) ((a) & (b))
#define DO_BOR(a, b) ((a) | (b))
#define DO_BXOR(a, b) ((a) ^ (b))
#define DO_LAND(a, b) ((a) && (b))
#define DO_LOR(a, b) ((a) || (b))
#define DO_LXOR(a, b) (!(a) != !(b))

/* Signed sums and products wrap, as users expect from MPI: computed unsigned. */
#define KERNEL(op, id, ctype, comptype)                                                            \
	static void do_##op##_##id(const void *in, void *inout, size_t n)                          \
	{                                                                                          \
		const ctype *a = in;                                                               \
		ctype *b = inout;                                                                  \
		for (size_t i = 0; i < n; i++)                                                     \
			b[i] = (ctype)DO_##op((comptype)a[i], (comptype)b[i]);                     \
	}

#define KERNELS_INT(id, ctype, utype)                                                              \
	KERNEL(SUM, id, ctype, utype)                                                              \
	KERNEL(PROD, id, ctype, utype)                                                             \
	KERNEL(MIN, id, ctype, ctype)                                                              \
	KERNEL(MAX, id, ctype, ctype)                                                              \
	KERNEL(BAND, id, ctype, ctype)                                                             \
	KERNEL(BOR, id, ctype, ctype)                                                              \
	KERNEL(BXOR, id, ctype, ctype)                                                             \
	KERNELS_BOOL(id, ctype)
#define KERNELS_FLOAT(id, ctype)                                                                   \
	KERNEL(SUM, id, ctype, ctype)                                                              \
	KERNEL(PROD, id, ctype, ctype)                                                             \
	KERNEL(MIN, id, ctype, ctype)                                                              \
	KERNEL(MAX, id, ctype, ctype)
#define KERNELS_COMPLEX(id, ctype)                                                                 \
	KERNEL(SUM, id, ctype, ctype)                                                              \
	KERNEL(PROD, id, ctype, ctype)
#define KERNELS_BOOL(id, ctype)                                                                    \
	KERNEL(LAND, id, ctype, ctype)                                                             \
	KERNEL(LOR, id, ctype, ctype)                                                              \
	KERNEL(LXOR, id, ctype, ctype)

KERNEL(BAND, BYTE, uint8_t, uint8_t)
KERNEL(BOR, BYTE, uint8_t, uint8_t)
KERNEL(BXOR, BYTE, uint8_t, uint8_t)
KERNELS_INT(I8, int8_t, uint8_t)
/* unsigned, not uint16_t: the latter would be promoted to int, whose product may overflow */
KERNELS_INT(I16, int16_t, unsigned)
KERNELS_INT(I32, int32_t, uint32_t)
KERNELS_INT(I64, int64_t, uint64_t)
KERNELS_INT(U8, uint8_t, uint8_t)
KERNELS_INT(U16, uint16_t, unsigned)
KERNELS_INT(U32, uint32_t, uint32_t)
KERNELS_INT(U64, uint64_t, uint64_t)
KERNELS_INT(LONG, long, unsigned long)
KERNELS_INT(ULONG, unsigned long, unsigned long)
KERNELS_FLOAT(F32, float)
KERNELS_FLOAT(F64, double)
KERNELS_FLOAT(F80, long double)
KERNELS_COMPLEX(C32, float _Complex)
KERNELS_COMPLEX(C64, double _Complex)
KERNELS_COMPLEX(C80, long double _Complex)
/* As bytes: another rank may have sent what is no value of _Bool. */
_Static_assert(sizeof(_Bool) == 1, "a _Bool is a byte");
KERNELS_BOOL(BOOL, uint8_t)

/* Fortran's LOGICAL: each compiler has its own .TRUE. */
static _Atomic int64_t x_true = 1, x_false;

void weft_data_logical_set(int64_t yes, int64_t no)
{
	/* Relaxed: set before the program reduces a LOGICAL. */
	atomic_store_explicit(&x_true, yes, memory_order_relaxed);
	atomic_store_explicit(&x_false, no, memory_order_relaxed);
}

#define KERNEL_LOGICAL(op, id, ctype)                                                              \
	static void do_##op##_##id(const void *in, void *inout, size_t n)                          \
	{                                                                                          \
		const ctype *a = in;                                                               \
		ctype *b = inout;                                                                  \
		/* Relaxed: as in set. */                                                          \
		ctype yes = (ctype)atomic_load_explicit(&x_true, memory_order_relaxed);            \
		ctype no = (ctype)atomic_load_explicit(&x_false, memory_order_relaxed);            \
		for (size_t i = 0; i < n; i++)                                                     \
			b[i] = (ctype)(DO_##op(a[i] != no, b[i] != no) ? yes : no);                \
	}
#define KERNELS_LOGICAL(id, ctype)                                                                 \
	KERNEL_LOGICAL(LAND, id, ctype)                                                            \
	KERNEL_LOGICAL(LOR, id, ctype)                                                             \
	KERNEL_LOGICAL(LXOR, id, ctype)
KERNELS_LOGICAL(L8, int8_t)
KERNELS_LOGICAL(L16, int16_t)
KERNELS_LOGICAL(L32, int32_t)
KERNELS_LOGICAL(L64, int64_t)

/* Of equal values the lower index stays. */
#define KERNEL_LOC(op, id, better)                                                                 \
	static void do_##op##_##id(const void *in, void *inout, size_t n)                          \
	{                                                                                          \
		const struct weft_pair_##id *a = in;                                               \
		struct weft_pair_##id *b = inout;                                                  \
		for (size_t i = 0; i < n; i++) {                                                   \
			if (a[i].value better b[i].value) {                                        \
				b[i].value = a[i].value;                                           \
				b[i].index = a[i].index;                                           \
			} else if (a[i].value == b[i].value && a[i].index < b[i].index) {          \
				b[i].index = a[i].index;                                           \
			}                                                                          \
		}                                                                                  \
	}
#define KERNELS_PAIR(id)                                                                           \
	KERNEL_LOC(MINLOC, id, <)                                                                  \
	KERNEL_LOC(MAXLOC, id, >)
#define WEFT_PAIR(id, v, vt, i, it) KERNELS_PAIR(id)
#include "data/pair_table.h"
#undef WEFT_PAIR

#define REPLACE(id, ctype)                                                                         \
	static void do_REPLACE_##id(const void *in, void *inout, size_t n)                         \
	{                                                                                          \
		memcpy(inout, in, n * sizeof(ctype));                                              \
	}
#define WEFT_BASIC(id, ctype, cls, ext) REPLACE(id, ctype)
#include "data/basic_table.h"
#undef WEFT_BASIC
#define WEFT_PAIR(id, v, vt, i, it) REPLACE(id, struct weft_pair_##id)
#include "data/pair_table.h"
#undef WEFT_PAIR

static void do_nothing(const void *in, void *inout, size_t n)
{
}

/* One row of the table: the kernels of an element. */
#define ROW_BYTE(id)                                                                               \
	[WEFT_OP_BAND][WEFT_B_##id] = do_BAND_##id, [WEFT_OP_BOR][WEFT_B_##id] = do_BOR_##id,      \
	[WEFT_OP_BXOR][WEFT_B_##id] = do_BXOR_##id,
#define ROW_BOOL(id)                                                                               \
	[WEFT_OP_LAND][WEFT_B_##id] = do_LAND_##id, [WEFT_OP_LOR][WEFT_B_##id] = do_LOR_##id,      \
	[WEFT_OP_LXOR][WEFT_B_##id] = do_LXOR_##id,
#define ROW_COMPLEX(id)                                                                            \
	[WEFT_OP_SUM][WEFT_B_##id] = do_SUM_##id, [WEFT_OP_PROD][WEFT_B_##id] = do_PROD_##id,
#define ROW_FLOAT(id)                                                                              \
	ROW_COMPLEX(id)                                                                            \
	[WEFT_OP_MIN][WEFT_B_##id] = do_MIN_##id, [WEFT_OP_MAX][WEFT_B_##id] = do_MAX_##id,
#define ROW_INT(id) ROW_FLOAT(id) ROW_BYTE(id) ROW_BOOL(id)
#define ROW_UINT(id) ROW_INT(id)
#define ROW_CHAR(id)
#define ROW_PAIR(id)                                                                               \
	[WEFT_OP_MINLOC][WEFT_B_##id] = do_MINLOC_##id,                                            \
	[WEFT_OP_MAXLOC][WEFT_B_##id] = do_MAXLOC_##id,                                            \
	[WEFT_OP_REPLACE][WEFT_B_##id] = do_REPLACE_##id,

static weft_reduce_fn *const kernels[WEFT_OP_COUNT][WEFT_ELEM_COUNT] = {
#define WEFT_BASIC(id, ctype, cls, ext)                                                            \
	ROW_##cls(id)[WEFT_OP_REPLACE][WEFT_B_##id] = do_REPLACE_##id,
#include "data/basic_table.h"
#undef WEFT_BASIC
#define WEFT_PAIR(id, v, vt, i, it) ROW_PAIR(id)
#include "data/pair_table.h"
#undef WEFT_PAIR
};

weft_reduce_fn *weft_data_reduce_find(enum weft_op op, unsigned elem)
{
	if (!weft_data_is_elem(elem))
		return NULL;
	return op == WEFT_OP_NO_OP ? do_nothing : kernels[op][elem];
}
