/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file_limit.h - may a file be made as long as that?  Beyond `ulimit -f` the kernel kills the
 * process that tries, with SIGXFSZ; a memfd is a file, too.
 *
 * Callers   any thread, before it makes a file; not on a fast path: a system call.
 */
#ifndef WEFT_FILE_LIMIT_H
#define WEFT_FILE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

static inline bool weft_file_fits(uint64_t bytes)
{
	struct rlimit most;
	return getrlimit(RLIMIT_FSIZE, &most) != 0 || most.rlim_cur == RLIM_INFINITY ||
	       bytes <= most.rlim_cur;
}

#endif
