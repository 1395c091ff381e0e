/* SPDX-License-Identifier: BSD-3-Clause */
/* basic.c - the table of basic elements. */
#include "data/basic.h"

const struct weft_basic_info weft_data_basic_info[WEFT_BASIC_COUNT] = {
#define WEFT_BASIC(id, ctype, c, ext)                                                              \
	[WEFT_B_##id] = {.size = sizeof(ctype),                                                    \
			 .align = alignof(ctype),                                                  \
			 .cls = WEFT_CLASS_##c,                                                    \
			 .external = ext,                                                          \
			 .name = #id},
#include "data/basic_table.h"
#undef WEFT_BASIC
};
