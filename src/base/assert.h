/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * assert.h - promises that the code checks about itself.
 *
 * Callers   any thread, any layer; not a signal handler.
 * Cost      none without WEFT_CHECKED, which Debug and sanitizer builds, the simulator, the fuzz
 * targets and the models define: the condition is compiled, but not evaluated. Failure   prints
 * file, line and condition, and aborts.
 *
 * For broken invariants only: mistakes of users, peers and networks are errors.  A structure must
 * not change its layout with WEFT_CHECKED: a checked program is linked with unchecked layers.
 */
#ifndef WEFT_ASSERT_H
#define WEFT_ASSERT_H

#include <errno.h>
#include <pthread.h>
#include "base/base.h"

_Noreturn void weft_assert_failed(const char *file, int line, const char *cond);

#ifdef WEFT_CHECKED
#define weft_assert(cond)                                                                          \
	(weft_likely(cond) ? (void)0 : weft_assert_failed(__FILE__, __LINE__, #cond))
#else
#define weft_assert(cond) ((void)sizeof(!(cond)))
#endif

/*
 * Opens each _locked function: weft_assert_held(weft_mask, &q->mask) asserts
 * weft_mask_held(&q->mask).  A lock of kind K declares `bool K_held(const struct K *)` beside it:
 * the calling thread holds it, or, where the lock does not know its holder, a thread does.
 */
#define weft_assert_held(kind, lock) weft_assert(kind##_held(lock))

/* For weft_assert_held(weft_mutex, &lock): a thread holds it. */
static inline bool weft_mutex_held(pthread_mutex_t *m)
{
	return pthread_mutex_trylock(m) == EBUSY;
}

#endif
