/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * match_check.h - asserts what the matching table, the contexts and their lists promise.
 *
 * Callers   tests and the simulator, while no thread is in the core.
 * Cost      a look at each bucket of each page that was ever used.
 */
#ifndef WEFT_COMM_MATCH_CHECK_H
#define WEFT_COMM_MATCH_CHECK_H

struct weft_core;

void weft_comm_match_check(struct weft_core *core);

#endif
