/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kicks that are spared (kick_filter.h) in every order: of two submitters the second may rely on the
 * first one's kick, and both submissions are looked at all the same, wherever the looking thread is
 * between two sleeps.
 */
#include "model/explore.h"
#include "task/wake/kick_filter.h"

enum { HOW = 1, SUBMITTERS = 2 };

static struct weft_kick_filter told;
static _Atomic int x_work[SUBMITTERS]; /* a seq_cst exchange, as in the queues */
static _Atomic int x_edges;            /* kicks that no sleeper has taken */
static int found;                      /* the explorer's: no order of its own */

static void setup(void)
{
	memset((void *)&told, 0, sizeof told);
	for (int i = 0; i < SUBMITTERS; i++)
		atomic_store_explicit(&x_work[i], 0, memory_order_relaxed);
	atomic_store_explicit(&x_edges, 0, memory_order_relaxed);
	found = 0;
}

static void submit(int i)
{
	uint64_t key;
	atomic_exchange_explicit(&x_work[i], 1, memory_order_seq_cst);
	if (weft_task_kick_filter_already(&told, HOW, &key))
		return;
	atomic_fetch_add_explicit(&x_edges, 1, memory_order_acq_rel); /* the system call */
	weft_task_kick_filter_note(&told, key);
}

static void first(void)
{
	submit(0);
}

static void second(void)
{
	submit(1);
}

/* Notes with the count of now, not with that of before the kick. */
static void notes_late(void)
{
	uint64_t key;
	atomic_exchange_explicit(&x_work[0], 1, memory_order_seq_cst);
	if (weft_task_kick_filter_already(&told, HOW, &key))
		return;
	atomic_fetch_add_explicit(&x_edges, 1, memory_order_acq_rel);
	(void)weft_task_kick_filter_already(&told, HOW, &key);
	weft_task_kick_filter_note(&told, key);
}

static bool nothing_new(void *arg)
{
	int edges;
	(void)arg;
	memcpy(&edges, (void *)&x_edges, sizeof edges); /* as the kernel sees it */
	return edges == 0;
}

static void look(void)
{
	for (int i = 0; i < SUBMITTERS; i++)
		if (atomic_load_explicit(&x_work[i], memory_order_seq_cst)) {
			atomic_store_explicit(&x_work[i], 0, memory_order_relaxed);
			found++;
		}
}

static void looks(void)
{
	while (found < SUBMITTERS) { /* ends: both are found; asleep for ever is the failure */
		model_block(nothing_new, NULL);
		atomic_exchange_explicit(&x_edges, 0, memory_order_acq_rel);
		weft_task_kick_filter_woke(&told);
		look();
	}
}

static void looks_before_it_counts(void)
{
	while (found < SUBMITTERS) {
		model_block(nothing_new, NULL);
		atomic_exchange_explicit(&x_edges, 0, memory_order_acq_rel);
		look();
		weft_task_kick_filter_woke(&told);
	}
}

int main(void)
{
	static const struct model models[] = {
		{"two submit",
		 setup,
		 {looks, first, second},
		 NULL,
		 4,
		 .must = {"weft_task_kick_filter_already l", "weft_task_kick_filter_woke x"}},
		{"looks before it counts",
		 setup,
		 {looks_before_it_counts, first, second},
		 NULL,
		 4,
		 .broken = true},
		{"notes the wrong look",
		 setup,
		 {looks, notes_late, second},
		 NULL,
		 4,
		 .broken = true},
	};
	return explore_all(models, weft_countof(models));
}
