/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wait_site.h - the waits of this layer for a caller that names where it waits: the time to poll is
 * learned there.
 */
#ifndef WEFT_TASK_WAIT_SITE_H
#define WEFT_TASK_WAIT_SITE_H

#include "task/task.h"

/* The public waits of this layer, for whose caller the time is learned. */
#define WEFT_WAIT_SITE __builtin_return_address(0)
weft_err weft_task_engine_wait_all_at(struct weft_completion *const *c, size_t n,
				      uint64_t timeout_ns, const void *site);
weft_err weft_task_engine_wait_any_at(struct weft_completion *const *c, size_t n,
				      uint64_t timeout_ns, const void *site);

#endif
