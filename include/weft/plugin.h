/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plugin.h - for a runtime with threads of its own: how they block, so that they block well in
 * weft's and in MPI's waits.
 *
 * Without it a thread that waits blocks the kernel thread that runs it.  With it the thread alone
 * stops, by the runtime's own means, and is continued when its message is there.
 *
 * Callers   set: any thread; the functions are called by the runtime's threads, except unpark.
 * Progress  while all of the runtime's threads wait, weft's background progress sees to the
 *           messages; it is faster when the runtime's idle loop calls weft_hook_idle()
 *           (weft/hooks.h).  With progress off a waiting thread polls and yields in turn.
 * Example   examples/plugins/argobots.h; doc/plugins.md.
 */
#ifndef WEFT_PLUGIN_H
#define WEFT_PLUGIN_H

#include <weft/err.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WEFT_PLUGIN_API __attribute__((visibility("default")))
#else
#define WEFT_PLUGIN_API
#endif

/* None of these functions may call weft or MPI. */
struct weft_plugin {
	/*
	 * The calling thread, if it is one of the runtime's and may block; else NULL, and it blocks
	 * as plain threads do.  The same for all of the thread's life; two threads that live at the
	 * same time have two.
	 */
	void *(*self)(void);
	/*
	 * The caller stops until unpark(self).  Each park gets one unpark, which may come before
	 * it, and none comes after it: what belongs to the thread may be freed at its end.  Coming
	 * back early does no harm.
	 */
	void (*park)(void *self);
	/* Continues a thread that parks, or is about to.  Called by any kernel thread, also by
	 * those that weft starts; may not block. */
	void (*unpark)(void *thread);
	/* Lets others run, then goes on. */
	void (*yield)(void);
};

/*
 * From now on the runtime's threads block by these functions.  p stays the caller's and must live
 * until the next set; NULL: no runtime any more (none of its threads may be waiting).
 * WEFT_ERR_ARG: a function is missing.  WEFT_ERR_STATE: another one is set.  WEFT_ERR_NOMEM.
 */
WEFT_PLUGIN_API weft_err weft_plugin_set(const struct weft_plugin *p);

#ifdef __cplusplus
}
#endif
#endif
