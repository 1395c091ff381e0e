/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A task that one worker alone may run is handed to it in every order: submitted and rung for while
 * the worker falls asleep, and while a thread that may not run it moves it from the submissions
 * into the main one.
 */
#include "model/explore.h"
#include "task/queue/tqueue.h"
#include "task/wake/wake_word.h"

static struct weft_tqueue queue;
static struct weft_task task;
static _Atomic uint32_t x_word; /* the worker sleeps on it */
static struct weft_task *main_task;
static int payload;
static bool ran;

static void setup(void)
{
	memset((void *)&queue, 0, sizeof queue);
	memset((void *)&task, 0, sizeof task);
	weft_mask_init(&queue.mask);
	weft_mpsc_init(&queue.sub[0]);
	queue.shards = 1;
	atomic_store_explicit(&x_word, 0, memory_order_relaxed);
	main_task = NULL;
	payload = 0;
	ran = false;
}

/* As main_insert and main_remove in tqueue.c. */
static void put_main(struct weft_task *t, int by)
{
	uint32_t n = atomic_load_explicit(&queue.x_main, memory_order_relaxed);
	model_write(&payload, model_read(&payload) + 1); /* the mask's */
	main_task = t;
	atomic_store_explicit(&queue.x_main, n + (uint32_t)by, memory_order_relaxed);
}

static void collect(bool moving)
{
	struct weft_task *t;
	if (moving)
		weft_task_tqueue_moving_locked(&queue, true);
	while ((t = weft_task_tqueue_pop_locked(&queue))) /* ends: one task */
		put_main(t, 1);
	if (moving)
		weft_task_tqueue_moving_locked(&queue, false);
}

static void submits(void)
{
	weft_mpsc_push(&queue.sub[0], &weft_task_core(&task)->sub);
	weft_task_wake_word_ring(&x_word);
}

static void rings_first(void)
{
	weft_task_wake_word_ring(&x_word);
	weft_mpsc_push(&queue.sub[0], &weft_task_core(&task)->sub);
}

/* Polls once; may not run it. */
static void moves_how(bool moving)
{
	if (weft_task_tqueue_idle(&queue) || !weft_mask_try_quiet(&queue.mask))
		return;
	do
		collect(moving);
	while (!weft_mask_done(&queue.mask)); /* ends: no taker was skipped */
}

static void moves(void)
{
	moves_how(true);
}

static void moves_unseen(void)
{
	moves_how(false);
}

static bool not_rung(void *arg)
{
	uint32_t word;
	memcpy(&word, (void *)&x_word, sizeof word); /* as the kernel sees it */
	return word == *(uint32_t *)arg;
}

static void look(void)
{
	while (!weft_mask_try_quiet(&queue.mask)) /* ends: its holder lets it go */
		model_relax();
	do {
		collect(true);
		if (main_task) {
			put_main(NULL, -1);
			ran = true;
		}
	} while (!weft_mask_done(&queue.mask));
}

static bool half_done(void)
{
	struct weft_mpsc_node *next;
	memcpy(&next, (void *)&queue.sub[0].dummy.x_next, sizeof next); /* the newest */
	return !next;
}

static void works_how(bool seen_first)
{
	_Atomic(struct weft_mpsc_node *) *link = &queue.sub[0].dummy.x_next;
	while (!ran) { /* ends: it has run; asleep for ever is the failure */
		uint32_t seen = seen_first ? weft_task_wake_word_seen(&x_word) : 0;
		bool idle = weft_task_tqueue_idle(&queue);
		if (!idle)
			look();
		if (ran)
			break;
		if (!idle && weft_task_tqueue_submitted(&queue)) {
			/* Half done: a yield, after which the store that was on its way is seen. */
			if (half_done())
				model_relax();
			model_fresh((void *)link, sizeof *link);
			continue;
		}
		if (!seen_first)
			seen = weft_task_wake_word_seen(&x_word);
		model_block(not_rung, &seen);
	}
}

static void works(void)
{
	works_how(true);
}

static void works_late(void) /* reads the word after the look */
{
	works_how(false);
}

int main(void)
{
	static const struct model models[] = {
		{"urgent",
		 setup,
		 {works, submits, moves},
		 NULL,
		 2,
		 .must = {"weft_mpsc_pop c", "weft_mask_try_quiet c", "weft_mask_done x"}},
		{"moved unseen", setup, {works, submits, moves_unseen}, NULL, 2, .broken = true},
		{"word after the look", setup, {works_late, submits}, NULL, 4, .broken = true},
		{"rings before it submits", setup, {works, rings_first}, NULL, 4, .broken = true},
	};
	return explore_all(models, weft_countof(models));
}
