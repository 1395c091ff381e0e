/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * membarrier.h - a full fence that the caller runs on behalf of other threads.
 *
 * For protocols with a frequent and a rare side.  The frequent side stores, runs
 * weft_compiler_barrier(), and loads; the rare side stores, runs a membarrier, and loads.  When the
 * membarrier returns each covered thread has run a full fence, so at least one side sees the
 * other's store.  "private" covers the threads of this process, "global" those of all registered
 * processes.
 *
 * Callers   register: any thread, before the protocol begins.  private, global: after it was true.
 * Cost      0.1 to 2 us, and about 1 us of each other core that runs a covered thread.
 *           register: nothing more, since the library has registered the process as it was loaded.
 * Failure   register false: this kernel or sandbox has none.  A call that fails after it had worked
 *           ends the process: the protocol would lose updates.
 */
#ifndef WEFT_MEMBARRIER_H
#define WEFT_MEMBARRIER_H

#include "base/base.h"

bool weft_membarrier_private_register(void);
void weft_membarrier_private(void);

bool weft_membarrier_global_register(void);
void weft_membarrier_global(void);

#endif
