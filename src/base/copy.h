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

/* First and last bytes, as one number each; they overlap unless len is twice as much. */
#define WEFT_COPY_ENDS(type)                                                                       \
	do {                                                                                       \
		type first, last;                                                                  \
		memcpy(&first, from, sizeof(type));                                                \
		memcpy(&last, (const char *)from + len - sizeof(type), sizeof(type));              \
		memcpy(to, &first, sizeof(type));                                                  \
		memcpy((char *)to + len - sizeof(type), &last, sizeof(type));                      \
	} while (0)

/* As memcpy; len may be 0, the pointers then anything. */
static inline __attribute__((always_inline)) void weft_copy_bytes(void *to, const void *from,
								  size_t len)
{
	if (weft_unlikely(len > WEFT_COPY_SMALL))
		memcpy(to, from, len);
	else if (len >= 16)
		WEFT_COPY_ENDS(__uint128_t);
	else if (len >= 8)
		WEFT_COPY_ENDS(uint64_t);
	else if (len >= 4)
		WEFT_COPY_ENDS(uint32_t);
	else if (len >= 2)
		WEFT_COPY_ENDS(uint16_t);
	else if (len)
		*(char *)to = *(const char *)from;
}

#undef WEFT_COPY_ENDS

#endif
