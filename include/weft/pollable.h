/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pollable.h - descriptors that another event loop can sleep on: libuv, asyncio, a GUI, poll(2).
 *
 * The loop, whatever it is called, does three things:
 *
 *   1. arm.  WEFT_AGAIN: something is there; go to 3.
 *   2. look once more at what it waits for; nothing there: sleep until the descriptor is readable.
 *   3. weft_engine_poll(), look at what it waits for, and arm again.
 *
 * While weft's own threads run, they do the work, and the descriptor says that something came of
 * it. With background progress off no other thread does: then it says that polling would make progress.
 * What can only be polled (a source without a descriptor, a repeat task) then makes it readable
 * every WEFT_TIMER_MS.  A wake-up for nothing is possible, a missing one is not.
 *
 * Callers   any thread, not a handler, between weft_engine_start and weft_engine_stop.
 */
#ifndef WEFT_POLLABLE_H
#define WEFT_POLLABLE_H

#include <stddef.h>
#include <weft/err.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WEFT_POLLABLE_API __attribute__((visibility("default")))
#else
#define WEFT_POLLABLE_API
#endif

/* The engine's; readable (POLLIN) until armed again.  Do not read or close it.  -1: none. */
WEFT_POLLABLE_API int weft_engine_fd(void);
WEFT_POLLABLE_API weft_err weft_engine_fd_arm(void);

/* ---- a set of things to wait for ------------------------------------------------------------ */

struct weft_waitset;
struct weft_event;
struct weft_task;

/* Used by one thread at a time. */
WEFT_POLLABLE_API weft_err weft_waitset_create(struct weft_waitset **set_p);
/* What is still in it is left alone.  NULL is fine. */
WEFT_POLLABLE_API void weft_waitset_destroy(struct weft_waitset *set);
/* ev was posted; it stays the caller's and must live until it was taken out. */
WEFT_POLLABLE_API weft_err weft_waitset_add_event(struct weft_waitset *set, struct weft_event *ev,
						  void *key);
/* t was submitted. */
WEFT_POLLABLE_API weft_err weft_waitset_add_task(struct weft_waitset *set, struct weft_task *t,
						 void *key);
/* Takes out up to n that are done, in the order in which they became so; returns how many. */
WEFT_POLLABLE_API size_t weft_waitset_take(struct weft_waitset *set, void **key, size_t n);
/* As the engine's descriptor, for this set alone. */
WEFT_POLLABLE_API int weft_waitset_fd(const struct weft_waitset *set);
WEFT_POLLABLE_API weft_err weft_waitset_arm(struct weft_waitset *set);

#ifdef __cplusplus
}
#endif
#endif
