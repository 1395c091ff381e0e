/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queues are closed in every order (task/queue/tqueue.h): a submission at that moment is refused,
 * runs, or ends with what was left, once; also one half done, and one that comes while a poller
 * holds the mask or comes to hold it after the closer.
 */
#include "model/explore.h"
#include "task/queue/tqueue.h"

static struct weft_tqueue queue;
static struct weft_task task[2];
static _Atomic(struct weft_tqueue *) x_open;
static struct weft_task *main_task; /* under the mask; payload shows a race */
static int payload, submitted, refused, ran, ended;

static void setup(void)
{
	memset((void *)&queue, 0, sizeof queue);
	memset((void *)task, 0, sizeof task);
	weft_mask_init(&queue.mask);
	weft_mpsc_init(&queue.sub[0]);
	queue.shards = 1;
	atomic_store_explicit(&x_open, &queue, memory_order_relaxed);
	main_task = NULL;
	payload = submitted = refused = ran = ended = 0;
}

/* As in tqueue.c. */
static void collect(struct weft_tqueue *q)
{
	struct weft_task *t = weft_task_tqueue_pop_locked(q);
	model_write(&payload, model_read(&payload) + 1); /* the mask's */
	if (t) {
		MODEL_CHECK(!main_task);
		main_task = t;
	}
}

static void end_main(struct weft_tqueue *q)
{
	collect(q);
	ended += main_task != NULL;
	main_task = NULL;
}

static void closes_how(bool (*release)(struct weft_tqueue *))
{
	weft_task_tqueue_close(&x_open);
	while (!weft_mask_try_quiet(&queue.mask)) /* ends: its holder lets it go */
		model_relax();
	while (!release(&queue))
		;
}

static bool release(struct weft_tqueue *q)
{
	return weft_task_tqueue_release(q, &x_open, end_main);
}

static void closes(void)
{
	closes_how(release);
}

/* Goes without those whose push is half done. */
static bool release_at_once(struct weft_tqueue *q)
{
	end_main(q);
	return weft_mask_done(&q->mask);
}

static void closes_at_once(void)
{
	closes_how(release_at_once);
}

/* As enqueue() and weft_task_tqueue_push(). */
static void submit(int i, bool slot, bool asks)
{
	/* OPEN, as weft_task_tqueue_of_place(). */
	if (!atomic_load_explicit(&x_open, memory_order_acquire)) {
		refused++;
		return;
	}
	submitted++;
	if (!slot || !weft_task_tqueue_slot_put(&queue, &task[i]))
		weft_mpsc_push(&queue.sub[0], &weft_task_core(&task[i])->sub);
	if (asks)
		weft_task_tqueue_pushed(&queue, &x_open, end_main);
}

static void submits(void)
{
	submit(0, false, true);
}

static void submits_to_slot(void)
{
	submit(0, true, true);
}

static void does_not_ask(void)
{
	submit(0, false, false);
}

/* A poller at that moment: a task that it has taken may come back to the queue. */
static void polls_how(bool asks, bool keeps)
{
	if (!weft_mask_try_quiet(&queue.mask))
		return;
	do {
		collect(&queue);
		if (!keeps) {
			ran += main_task != NULL;
			main_task = NULL;
		}
	} while (asks ? !release(&queue) : !weft_mask_done(&queue.mask));
}

static void polls(void)
{
	polls_how(true, false);
}

static void puts_back(void)
{
	polls_how(true, true);
}

static void puts_back_and_goes(void)
{
	polls_how(false, true);
}

/* A handler, mask in hand, submits to its own queue. */
static void submits_inside(void)
{
	if (!weft_mask_try_quiet(&queue.mask))
		return;
	submit(0, false, true);
	while (!release(&queue)) /* ends: no taker was skipped */
		collect(&queue);
}

static void none_left(void)
{
	MODEL_CHECK(ran + ended == submitted && !main_task);
	MODEL_CHECK(submitted + refused <= 1);
}

/* It is still open for a handler that submits inside and is done before. */
static void none_left_but_in_queue(void)
{
	MODEL_CHECK(ran + ended == submitted && !main_task);
}

int main(void)
{
	static const struct model models[] = {
		{"submission queue",
		 setup,
		 {submits, closes},
		 none_left,
		 3,
		 .must = {"weft_task_tqueue_closed l", "weft_task_tqueue_close s",
			  "weft_mpsc_push x", "weft_mask_done x"}},
		{"slot",
		 setup,
		 {submits_to_slot, closes},
		 none_left,
		 8,
		 .must = {"weft_task_tqueue_closed l", "weft_task_tqueue_close s",
			  "weft_task_tqueue_slot_put c"}},
		{"a poller", setup, {submits, closes, polls}, none_left, 3},
		{"a poller puts it back",
		 setup,
		 {submits_to_slot, closes, puts_back},
		 none_left,
		 3,
		 .must = {"weft_mask_try_quiet c"}},
		{"from inside", setup, {submits_inside, closes}, none_left_but_in_queue, 2},
		{"does not ask", setup, {does_not_ask, closes}, none_left, 4, .broken = true},
		{"does not wait for half a push",
		 setup,
		 {submits, closes_at_once},
		 none_left,
		 4,
		 .broken = true},
		{"puts it back and goes",
		 setup,
		 {submits_to_slot, closes, puts_back_and_goes},
		 none_left,
		 4,
		 .broken = true},
	};
	return explore_all(models, weft_countof(models));
}
