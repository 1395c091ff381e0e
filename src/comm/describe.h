/* SPDX-License-Identifier: BSD-3-Clause */
/* describe.h - a core as text. */
#ifndef WEFT_COMM_DESCRIBE_H
#define WEFT_COMM_DESCRIBE_H

#include "comm/core.h"

/* What its drivers are and did, a line each, cut off at size. */
void weft_comm_core_describe(const struct weft_core *core, char *buf, size_t size);

#endif
