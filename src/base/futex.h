/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * futex.h - sleeping on a word of this process until another thread changes it.
 *
 * Callers   any thread.  wait: the caller loads the word, decides to sleep, and passes what it saw.
 * Order     none: the word's own loads and stores carry what they are labelled with.
 * Progress  wait may return early; the caller looks again.  wake: one system call.
 */
#ifndef WEFT_FUTEX_H
#define WEFT_FUTEX_H

#include "base/base.h"

/* Sleeps while *word is `seen`, at most until deadline_ns of weft_clock_ns(); WEFT_NEVER: no end.
 */
void weft_futex_wait(_Atomic uint32_t *word, uint32_t seen, uint64_t deadline_ns);

/* Wakes one thread that sleeps on *word. */
void weft_futex_wake(_Atomic uint32_t *word);

#endif
