/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pair_table.h - WEFT_PAIR(id, value, value's C type, index, index's C type): the pairs of MINLOC and MAXLOC, made of basic
 * elements; no include guard.  Those of MPI's names, then the same values with an index of 64 bits.
 */
/* clang-format off */
WEFT_PAIR(F32_I32, F32, float, I32, int32_t)
WEFT_PAIR(F64_I32, F64, double, I32, int32_t)
WEFT_PAIR(I64_I32, LONG, long, I32, int32_t)
WEFT_PAIR(I32_I32, I32, int32_t, I32, int32_t)
WEFT_PAIR(I16_I32, I16, int16_t, I32, int32_t)
WEFT_PAIR(F80_I32, F80, long double, I32, int32_t)
WEFT_PAIR(F32_F32, F32, float, F32, float)
WEFT_PAIR(F64_F64, F64, double, F64, double)
WEFT_PAIR(I64_I64, I64, int64_t, I64, int64_t)
WEFT_PAIR(F32_I64, F32, float, I64, int64_t)
WEFT_PAIR(F64_I64, F64, double, I64, int64_t)
WEFT_PAIR(F80_I64, F80, long double, I64, int64_t)
WEFT_PAIR(I32_I64, I32, int32_t, I64, int64_t)
WEFT_PAIR(I16_I64, I16, int16_t, I64, int64_t)
/* clang-format on */
