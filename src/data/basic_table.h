/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * basic_table.h - WEFT_BASIC(ID, C type, class, bytes of one number in external32); no include
 * guard.  New ones stand at the end: the numbers are part of the wire.
 *
 * Classes: BYTE and CHAR are opaque; INT, UINT, FLOAT, COMPLEX are numbers; BOOL is 0 or 1 in C's
 * or Fortran's sense.
 */
/* clang-format off */
WEFT_BASIC(BYTE, uint8_t, BYTE, 1)
WEFT_BASIC(CHAR, char, CHAR, 1)
WEFT_BASIC(WCHAR, wchar_t, CHAR, 2)
WEFT_BASIC(I8, int8_t, INT, 1)
WEFT_BASIC(I16, int16_t, INT, 2)
WEFT_BASIC(I32, int32_t, INT, 4)
WEFT_BASIC(I64, int64_t, INT, 8)
WEFT_BASIC(LONG, long, INT, 4)
WEFT_BASIC(U8, uint8_t, UINT, 1)
WEFT_BASIC(U16, uint16_t, UINT, 2)
WEFT_BASIC(U32, uint32_t, UINT, 4)
WEFT_BASIC(U64, uint64_t, UINT, 8)
WEFT_BASIC(ULONG, unsigned long, UINT, 4)
WEFT_BASIC(F32, float, FLOAT, 4)
WEFT_BASIC(F64, double, FLOAT, 8)
WEFT_BASIC(F80, long double, FLOAT, 16)
WEFT_BASIC(C32, float _Complex, COMPLEX, 4)
WEFT_BASIC(C64, double _Complex, COMPLEX, 8)
WEFT_BASIC(C80, long double _Complex, COMPLEX, 16)
WEFT_BASIC(BOOL, _Bool, BOOL, 1)
WEFT_BASIC(L8, int8_t, BOOL, 1)
WEFT_BASIC(L16, int16_t, BOOL, 2)
WEFT_BASIC(L32, int32_t, BOOL, 4)
WEFT_BASIC(L64, int64_t, BOOL, 8)
/* clang-format on */
