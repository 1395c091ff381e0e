/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * budget.h - what the engine's threads may cost, and what they have cost.
 */
#ifndef WEFT_TASK_BUDGET_H
#define WEFT_TASK_BUDGET_H

#include "base/base.h"

/* Called by each thread of the engine for itself, before it sleeps. */
void weft_task_budget_init(void);
void weft_task_budget_given(void);    /* progress_budget, anew */
int64_t weft_task_budget_spend(void); /* how many ns it should pause */
bool weft_task_budget_pause(void);    /* spends, and pauses if it must; then true */
uint64_t weft_task_budget_used_ns(void);

#endif
