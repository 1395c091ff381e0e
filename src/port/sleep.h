/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sleep.h - a thread sleeps until a condition of this folder holds: accesses are over, a notification came.
 *
 *   waiter                          changer
 *   joins the list, counts itself   changes the state
 *   looks at the state              looks at the count
 *   sleeps
 *
 * Both in the order of seq_cst: either the waiter sees the change, or the changer the waiter.  Few threads wait
 * here at a time, so a change wakes all of them, and each looks again.
 *
 * Callers   until: any thread; not a handler.  changed: any thread, handlers included.
 */
#ifndef WEFT_PORT_SLEEP_H
#define WEFT_PORT_SLEEP_H

#include "base/base.h"

/* Returns when ready(arg) is true; what may make it true is followed by changed. */
void weft_port_sleep_until(bool (*ready)(void *arg), void *arg);
void weft_port_changed(void);

#endif
