/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hooks.h - for a runtime that has its own scheduler: it lends weft's engine its spare moments.
 *
 * With WEFT_FLAVOUR=hooks the engine has no threads, and these calls, beside waits and tests, are
 * all that progresses it.  With other flavours they help.
 *
 * Callers   any thread or worker of the runtime, not a handler.  None blocks; each returns how many
 *           tasks and events it ran (a poll that answers AGAIN is none).
 */
#ifndef WEFT_HOOKS_H
#define WEFT_HOOKS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WEFT_HOOKS_API __attribute__((visibility("default")))
#else
#define WEFT_HOOKS_API
#endif

/* The worker has nothing to run: everything, from its own core's queue up.  Again while it is > 0.
 */
WEFT_HOOKS_API int weft_hook_idle(void);
/* Between two of its threads: a quick look, at most one per microsecond and thread. */
WEFT_HOOKS_API int weft_hook_switch(void);
/* At its timer's tick: everything. */
WEFT_HOOKS_API int weft_hook_tick(void);
/* When the program enters the runtime: a quick look. */
WEFT_HOOKS_API int weft_hook_entry(void);

#ifdef __cplusplus
}
#endif
#endif
