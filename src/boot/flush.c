/* SPDX-License-Identifier: BSD-3-Clause */
/* flush.c - what stdio holds is written out before the process ends at once. */
#include "boot/flush.h"

#include <poll.h>
#include <time.h>

void weft_boot_flush(FILE *f)
{
	struct pollfd pfd = {.fd = fileno(f), .events = POLLOUT};
	for (int tries = 0; ftrylockfile(f); tries++) {
		if (tries == 20)
			return;
		struct timespec pause = {.tv_nsec = 5000000};
		nanosleep(&pause, NULL);
	}
	if (poll(&pfd, 1, 200) > 0)
		fflush_unlocked(f);
	funlockfile(f);
}
