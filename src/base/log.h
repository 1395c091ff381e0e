/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log.h - one line per event, to stderr, prefixed "weft[RANK]: ".
 *
 * Callers   any thread; not a signal handler.  Never holds a lock across a system call:
 *           each line is one write(2), so lines are not torn.
 * Level     setting `log`: error, warn, info, debug.
 */
#ifndef WEFT_LOG_H
#define WEFT_LOG_H

#include "base/base.h"

enum weft_log_level {
	WEFT_LOG_ERROR = 0,
	WEFT_LOG_WARN = 1,
	WEFT_LOG_INFO = 2,
	WEFT_LOG_DEBUG = 3,
};

extern int weft_log_level; /* the highest level that is printed; set once at start */

/* The rank in the prefix; -1: none.  Set once by boot. */
void weft_log_set_rank(int rank);

/* Reads the setting `log`. */
void weft_log_init(void);

void weft_log_line(enum weft_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Logs and ends the process with abort(): for broken invariants found at run time only. */
_Noreturn void weft_panic(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#define weft_error(...) weft_log_line(WEFT_LOG_ERROR, __VA_ARGS__)
#define weft_warn(...) weft_log_line(WEFT_LOG_WARN, __VA_ARGS__)
#define weft_info(...) weft_log_line(WEFT_LOG_INFO, __VA_ARGS__)
#define weft_debug(...)                                                                            \
	((void)(weft_log_level >= WEFT_LOG_DEBUG &&                                                \
		(weft_log_line(WEFT_LOG_DEBUG, __VA_ARGS__), 0)))

#endif
