/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ult.h - user-level threads as the layers above see them: <weft/ult.h>, and the hooks.
 *
 * rt/ plugs task/ into the hooks.
 */
#ifndef WEFT_ULT_ULT_H
#define WEFT_ULT_ULT_H

#include <weft/ult.h>
#include "base/base.h"

struct weft_ult_hooks {
	/*
	 * A worker has nothing to run.  Polls, then sleeps on the caller's parker, until ready(arg)
	 * or deadline_ns of the clock (WEFT_NEVER: none).  A thread that makes something ready
	 * unparks the caller.  On the carrier's own stack.  NULL: spin, then sleep.
	 */
	void (*idle)(bool (*ready)(void *arg), void *arg, uint64_t deadline_ns);
	/* Now and then while threads run: a quick look for messages, on the carrier's own stack. */
	void (*tick)(void);
	/* Switches between two ticks; 1: at each switch; 0: 61. */
	uint32_t switches;
	/*
	 * A user-level thread, weft_ult_self(), waits or tests, in the engine, in MPI or here
	 * (park, join, mutex, ...), for what is not there yet: before it looks or sleeps.  On the
	 * carrier's own stack; may not block.  NULL: none, which costs such a call a branch.
	 */
	void (*entry)(void);
};

/* Any time; hooks stays the caller's and must live until others are set.  NULL: none; then it
 * returns after the last worker has left the old ones. */
void weft_ult_hooks_set(const struct weft_ult_hooks *hooks);

/* Which part of the process's cores the workers get: part `index` of `of`. */
void weft_ult_share_set(int index, int of);

/*
 * Runs fn(arg) on the stack of the carrier when the caller is a user-level thread, else here.  fn
 * may not block.  For calls that need more stack than a thread may have.
 */
void weft_ult_on_big_stack(void (*fn)(void *arg), void *arg);

/* What the caller is about to wait for, for reports; NULL: nothing any more. */
void weft_ult_waits_for(const char *what, const void *which);

/* The engine has stopped: says which threads wait for what only it would have brought.  They stay
 * in that wait. */
void weft_ult_engine_stopped(void);

void weft_ult_describe(FILE *out);

#endif
