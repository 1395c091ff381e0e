/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * private_page.h - memory for what must not be written to a file: pages of its own that no core dump
 * contains.
 *
 * Callers   any thread; both call the kernel.
 */
#ifndef WEFT_PRIVATE_PAGE_H
#define WEFT_PRIVATE_PAGE_H

#include "base/base.h"

/* Zeroed; NULL: no memory. */
void *weft_private_page_alloc(size_t bytes);
/* Wipes it first.  at may be NULL. */
void weft_private_page_free(void *at, size_t bytes);

#endif
