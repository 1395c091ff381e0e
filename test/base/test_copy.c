/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of 0 to 200 bytes between all alignments change what they should and nothing beside it. */
#include "base/copy.h"
#include "check.h"

enum { MOST = 200, ROOM = MOST + 48 };

int main(void)
{
	static unsigned char from[ROOM], to[ROOM];
	for (unsigned i = 0; i < ROOM; i++)
		from[i] = (unsigned char)(i * 7 + 1);
	for (size_t len = 0; len <= MOST; len++) {
		for (size_t at = 0; at < 16; at++) {
			memset(to, 0, sizeof to);
			weft_copy_bytes(to + 16 + at, from + (len + at) % 16, len);
			CHECK(!len || !memcmp(to + 16 + at, from + (len + at) % 16, len));
			CHECK_EQ(to[15 + at], 0);
			CHECK_EQ(to[16 + at + len], 0);
		}
	}
	weft_copy_bytes(NULL, NULL, 0);
	return 0;
}
