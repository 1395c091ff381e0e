/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core_check.h - asserts what a core's structures promise: table, contexts, gates, credit, ids,
 * answers, pools.
 *
 * Callers   tests and the simulator, while no thread is in the core.
 */
#ifndef WEFT_COMM_CORE_CHECK_H
#define WEFT_COMM_CORE_CHECK_H

struct weft_core;

void weft_comm_core_check(struct weft_core *core);

#endif
