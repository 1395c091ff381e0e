/* SPDX-License-Identifier: BSD-3-Clause */
/* tally.c - counts up, and signals the waiters whose number has come. */
#include "task/queue/tally.h"

void weft_tally_init(struct weft_tally *y)
{
	*y = (struct weft_tally){{NULL}};
}

void weft_tally_add(struct weft_tally *y)
{
	struct weft_tally_entry *w = weft_task_tally_add_core(weft_task_tally_core(y));
	while (weft_unlikely(w != NULL)) { /* ends: the list is ours */
		struct weft_tally_entry *next = w->next;
		weft_wait_completion_signal(&w->come); /* its owner may be gone with it */
		w = next;
	}
}

uint64_t weft_tally_read(const struct weft_tally *y)
{
	/* READ <- ADD. */
	return weft_task_tally_count(
		atomic_load_explicit(&weft_task_tally_core(y)->x_word, memory_order_acquire));
}
