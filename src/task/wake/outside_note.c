/* SPDX-License-Identifier: BSD-3-Clause */
/* outside_note.c - tells a foreign event loop that is armed that something was found. */
#include "base/assert.h"
#include "base/cancel.h"
#include "task/wake/outside.h"

#include <unistd.h>

static int note_fd = -1; /* set under outside.c's lock, before x_outside can be */

void weft_task_outside_note(int fd)
{
	note_fd = fd;
}

void weft_task_outside_ring(struct weft_engine *e)
{
	uint64_t one = 1;
	/* TOLD -> arm.  One of several threads that find something writes. */
	if (!atomic_exchange_explicit(&e->baton.x_outside, false, memory_order_seq_cst))
		return;
	weft_assert(note_fd >= 0);
	int was = weft_cancel_off();
	ssize_t n = write(note_fd, &one, sizeof one);
	weft_cancel_back(was);
	(void)n; /* EAGAIN: readable as well */
}
