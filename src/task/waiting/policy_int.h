/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * policy_int.h - what the program chooses, or the engine in its place (weft/policy.h).
 */
#ifndef WEFT_TASK_POLICY_INT_H
#define WEFT_TASK_POLICY_INT_H

#include <weft/policy.h>
#include "base/base.h"

/* What the program or the default says. */
struct weft_wait_plan weft_task_policy_ask_wait(const struct weft_wait_load *load);
bool weft_task_policy_has_source(void);
enum weft_events_method weft_task_policy_ask_source(const char *name,
						    const struct weft_events_load *load);

#endif
