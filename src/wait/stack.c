/* SPDX-License-Identifier: BSD-3-Clause */
/* stack.c - the two hooks that user-level threads and other runtimes set. */
#include "wait/stack.h"

const struct weft_stacks *_Atomic weft_wait_x_stacks;
void (*_Atomic weft_wait_x_entry)(void);
