/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * payload.h - bytes that say which message they belong to, written and compared by memcpy and
 * memcmp: a sanitizer looks at each range once, not at each byte.
 */
#ifndef WEFT_TEST_PAYLOAD_H
#define WEFT_TEST_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Prime: no piece or slot size divides it, so what lies a piece too far differs. */
enum { PAYLOAD_PERIOD = 65521 };

static unsigned char payload_table[PAYLOAD_PERIOD];

__attribute__((constructor)) static void payload_init(void)
{
	uint32_t x = 1;
	for (size_t i = 0; i < PAYLOAD_PERIOD; i++) {
		x = x * 1664525 + 1013904223;
		payload_table[i] = (unsigned char)(x >> 24);
	}
}

/* The next piece of message `number` from byte `at` on, at most n bytes long. */
static inline size_t payload_piece(uint64_t number, size_t at, size_t n, const unsigned char **p)
{
	size_t from = (size_t)((number * 131 + at) % PAYLOAD_PERIOD);
	*p = payload_table + from;
	return n < PAYLOAD_PERIOD - from ? n : PAYLOAD_PERIOD - from;
}

static inline void payload_fill(void *buf, size_t n, uint64_t number)
{
	const unsigned char *p;
	for (size_t at = 0, len; at < n; at += len) {
		len = payload_piece(number, at, n - at, &p);
		memcpy((char *)buf + at, p, len);
	}
}

/* The first byte that is not as payload_fill() wrote it; n: none. */
static inline size_t payload_wrong(const void *buf, size_t n, uint64_t number)
{
	const unsigned char *p, *b = buf;
	for (size_t at = 0, len; at < n; at += len) {
		len = payload_piece(number, at, n - at, &p);
		if (memcmp(b + at, p, len) == 0)
			continue;
		while (b[at] == *p)
			at++, p++;
		return at;
	}
	return n;
}

/* Whether each of n bytes is c. */
static inline bool payload_is(const void *buf, size_t n, char c)
{
	const char *b = buf;
	return n == 0 || (b[0] == c && memcmp(b, b + 1, n - 1) == 0);
}

#endif
