/* SPDX-License-Identifier: BSD-3-Clause */
/* descriptors.c - the limit of descriptors. */
#include "descriptors.h"

#include <errno.h>
#include <string.h>
#include "say.h"

#define FDS_BESIDES 20 /* our own, and the ends that are on their way to a rank */

rlim_t descriptors_raise(int ranks, int per_rank)
{
	struct rlimit r;
	rlim_t need = (rlim_t)ranks * per_rank + FDS_BESIDES;
	if (getrlimit(RLIMIT_NOFILE, &r)) {
		say("getrlimit: %s", strerror(errno));
		return 0;
	}
	rlim_t before = r.rlim_cur;
	if (r.rlim_cur < need && r.rlim_max >= need) {
		r.rlim_cur = need;
		if (setrlimit(RLIMIT_NOFILE, &r) == 0)
			return before;
	}
	if (r.rlim_cur >= need)
		return before;
	say("%d ranks need %llu descriptors, the limit is %llu: raise it with ulimit -Hn", ranks,
	    (unsigned long long)need, (unsigned long long)r.rlim_max);
	return 0;
}
