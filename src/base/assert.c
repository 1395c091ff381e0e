/* SPDX-License-Identifier: BSD-3-Clause */
/* assert.c - the end of a process whose code broke a promise. */
#include "base/assert.h"
#include "base/log.h"

void weft_assert_failed(const char *file, int line, const char *cond)
{
	weft_panic("%s:%d: assertion failed: %s", file, line, cond);
}
