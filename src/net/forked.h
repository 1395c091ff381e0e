/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * forked.h - lets go, in a child that the application forks, of what peers watch to see us die.
 *
 * Without it a peer would take us for alive as long as any forked child is.  (Programs that a child
 * executes lose the descriptors anyway: all are CLOEXEC.)
 *
 * Callers   add, remove: the starting thread, at open and close.
 *           The function runs in the child, before fork() returns there: async-signal-safe calls
 *           only, and it must not change what the parent still uses.
 */
#ifndef WEFT_FORKED_H
#define WEFT_FORKED_H

#include "base/base.h"

void weft_net_forked_add(void (*let_go)(void *arg), void *arg);
void weft_net_forked_remove(void *arg);

#endif
