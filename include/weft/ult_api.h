/* SPDX-License-Identifier: BSD-3-Clause */
/* ult_api.h - what weft/ult.h and weft/ult_sync.h both begin with. */
#ifndef WEFT_ULT_API_H
#define WEFT_ULT_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft/err.h>

#if defined(__GNUC__)
#define WEFT_ULT_API __attribute__((visibility("default")))
#else
#define WEFT_ULT_API
#endif

#endif
