/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stats.h - what the engine counts: which threads polled, how late things were noticed, what it cost.
 *
 * The same numbers that `weft info --live PID` shows from outside.
 */
#ifndef WEFT_STATS_H
#define WEFT_STATS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WEFT_STATS_API __attribute__((visibility("default")))
#else
#define WEFT_STATS_API
#endif

struct weft_stat {
	const char *name, *help; /* static */
	uint64_t value;          /* since the process began, over all threads */
};

/* Writes up to n of them; returns how many there are.  Any thread; takes some microseconds. */
WEFT_STATS_API size_t weft_task_stats(struct weft_stat *stat, size_t n);
/* The value called so; 0 if there is none. */
WEFT_STATS_API uint64_t weft_task_stat(const char *name);

#ifdef __cplusplus
}
#endif
#endif
