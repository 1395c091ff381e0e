/* SPDX-License-Identifier: BSD-3-Clause */
/* waitset.h - what the layers above put into a wait set (weft/pollable.h): completions of their own. */
#ifndef WEFT_TASK_WAITSET_H
#define WEFT_TASK_WAITSET_H

#include <weft/pollable.h>
#include "wait/completion.h"

/* As weft_waitset_add_event; c must live until it was taken out, or the set destroyed. */
weft_err weft_task_waitset_add(struct weft_waitset *set, struct weft_completion *c, void *key);

#endif
