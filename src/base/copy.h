/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * copy.h - copies of a few bytes without a call.
 *
 * Cost      up to 32 bytes: two compares, two loads, two stores.  More: memcpy.
 */
#ifndef WEFT_COPY_H
#define WEFT_COPY_H

#include <string.h>
#include "base/base.h"

#define WEFT_COPY_SMALL 32

/* First and last `half` bytes; they overlap unless len is twice that. */
#define WEFT_COPY_ENDS(half)                                                                       \
	do {                                                                                       \
		char first[half], last[half];                                                      \
		memcpy(first, from, half);                                                         \
		memcpy(last, (const char *)from + len - (half), half);                             \
		memcpy(to, first, half);                                                           \
		memcpy((char *)to + len - (half), last, half);                                     \
	} while (0)

/* As memcpy; len may be 0, the pointers then anything. */
static inline void weft_copy_bytes(void *to, const void *from, size_t len)
{
	if (weft_unlikely(len > WEFT_COPY_SMALL))
		memcpy(to, from, len);
	else if (len >= 16)
		WEFT_COPY_ENDS(16);
	else if (len >= 8)
		WEFT_COPY_ENDS(8);
	else if (len >= 4)
		WEFT_COPY_ENDS(4);
	else if (len >= 2)
		WEFT_COPY_ENDS(2);
	else if (len)
		*(char *)to = *(const char *)from;
}

#undef WEFT_COPY_ENDS

#endif
