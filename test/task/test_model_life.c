/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A task's life in every order: nothing that was published before a submit is missed, two runs
 * never overlap, a mask keeps runs away and loses none, and nothing touches the task after a wait.
 * Each order that life.h and the queue's slot label is weakened once and must be noticed.
 */
#include "model/explore.h"

#include "task/queue/life.h"
#include "task/queue/tqueue.h"
#include "wait/waiter.h"

static struct weft_tqueue queue;
static struct weft_task task;
static _Atomic int x_told[2], x_seen; /* seen: a bit for each, and OVER */
enum { ALL = 3, OVER = 4 };
static int data, runs;

static struct weft_task_core *core(void)
{
	return weft_task_core(&task);
}

static void setup(void)
{
	memset((void *)&queue, 0, sizeof queue);
	memset((void *)&task, 0, sizeof task);
	weft_wait_completion_init_done(&core()->done);
	for (int i = 0; i < 2; i++)
		atomic_store_explicit(&x_told[i], 0, memory_order_relaxed);
	atomic_store_explicit(&x_seen, 0, memory_order_relaxed);
	data = runs = 0;
}

/* As task.c does. */
static bool submit(void)
{
	if (weft_task_life_submit(&core()->x_state) != WEFT_LIFE_ENQUEUE)
		return false;
	while (!weft_wait_completion_done(
		&core()->done)) /* ends: the last run is about to signal */
		model_relax();
	weft_wait_completion_init(&core()->done);
	MODEL_CHECK(weft_task_tqueue_slot_put(&queue, &task));
	return true;
}

static void run(void)
{
	int seen = 0;
	for (int i = 0; i < 2; i++)
		if (atomic_load_explicit(&x_told[i], memory_order_relaxed))
			seen |= 1 << i;
	atomic_store_explicit(&x_seen, seen, memory_order_relaxed);
	model_write(&data, model_read(&data) + 1);
	runs++;
}

/* One look at the queue.  False: nothing there. */
static bool look(void)
{
	if (!weft_task_tqueue_slot_take(&queue))
		return false;
	enum weft_life_step step = weft_task_life_claim(&core()->x_state);
	if (step == WEFT_LIFE_RUN) {
		run();
		step = weft_task_life_settle(&core()->x_state, false);
	}
	if (step == WEFT_LIFE_FINISH)
		weft_wait_completion_finish(&core()->done);
	else if (step == WEFT_LIFE_ENQUEUE)
		MODEL_CHECK(weft_task_tqueue_slot_put(&queue, &task));
	return true;
}

/* What is stored is seen some time: a poller that looks for ever does not stay behind. */
static bool over(void)
{
	model_fresh(&x_seen, sizeof x_seen);
	model_fresh(&queue.x_slot, sizeof queue.x_slot);
	int seen = atomic_load_explicit(&x_seen, memory_order_relaxed);
	return seen == ALL || (seen & OVER);
}

/* Waits for another thread's store, unless the slot is full or everything is over. */
static void relax(void)
{
	int seen;
	void *slot;
	memcpy(&seen, (void *)&x_seen, sizeof seen);
	memcpy(&slot, (void *)&queue.x_slot, sizeof slot);
	if (!slot && seen != ALL && !(seen & OVER))
		model_relax();
}

static void polls(void)
{
	while (!over()) /* ends: what both submitters told was seen, or the model says so */
		if (!look())
			relax();
}

/* ---- nothing is missed -------------------------------------------------------------------------
 */

static void tells(int i)
{
	atomic_store_explicit(&x_told[i], 1, memory_order_relaxed);
	submit();
}

static void tells_first(void)
{
	tells(0);
}

static void tells_second(void)
{
	tells(1);
}

static void tells_both(void)
{
	tells(0);
	tells(1);
}

/* ---- one at a time -----------------------------------------------------------------------------
 */

static void ran_twice_at_most(void)
{
	MODEL_CHECK(runs == 1 || runs == 2);
}

/* ---- masked ------------------------------------------------------------------------------------
 */

static void masks(void)
{
	if (weft_task_life_mask(&core()->x_state))
		while (weft_task_life_running(&core()->x_state)) /* ends: it does not start again */
			model_relax();
	model_write(&data, model_read(&data) + 10);
	if (weft_task_life_unmask(&core()->x_state) == WEFT_LIFE_ENQUEUE)
		MODEL_CHECK(weft_task_tqueue_slot_put(&queue, &task));
}

static void submits_and_waits(void)
{
	submit();
	while (!weft_wait_completion_done(&core()->done)) /* ends: unmasked, and run */
		model_relax();
	atomic_fetch_or_explicit(&x_seen, OVER, memory_order_relaxed);
}

static void ran_once_and_masked(void)
{
	MODEL_CHECK(data == 11);
}

/* ---- freed after a wait ------------------------------------------------------------------------
 */

static void cancels_and_frees(void)
{
	enum weft_life_step step = WEFT_LIFE_NOTHING;
	submit();
	if (weft_task_life_cancel(&core()->x_state, &step) && step == WEFT_LIFE_FINISH)
		weft_wait_completion_finish(&core()->done);
	while (!weft_wait_completion_done(&core()->done)) /* ends: run or dropped */
		model_relax();
	model_write(&data, 0);
	model_free(&task, sizeof task);
	atomic_fetch_or_explicit(&x_seen, OVER, memory_order_relaxed);
}

static void looks_after_the_end(void)
{
	polls();
	weft_task_life_running(&core()->x_state);
}

/* ---- one time ----------------------------------------------------------------------------------
 */

static void submits_once(void)
{
	if (!weft_task_life_submit_once(&core()->x_state, &core()->done))
		return;
	model_write(&data, model_read(&data) + 1);
	MODEL_CHECK(weft_task_tqueue_slot_put(&queue, &task));
}

static void polls_once(void)
{
	for (int n = 0; n < 1;) { /* ends: one of the submitters wins */
		model_fresh(&queue.x_slot, sizeof queue.x_slot);
		if (!weft_task_tqueue_slot_take(&queue)) {
			relax();
			continue;
		}
		n++;
		model_write(&data, model_read(&data) + 1);
		weft_wait_completion_finish(&core()->done);
	}
	/* The other may begin after the first has ended. */
	if (weft_task_tqueue_slot_take(&queue)) {
		model_write(&data, model_read(&data) + 1);
		weft_wait_completion_finish(&core()->done);
	}
}

int main(void)
{
	static const struct model models[] = {
		{"two submit, one runs",
		 setup,
		 {tells_first, tells_second, polls},
		 NULL,
		 2,
		 .must = {"weft_task_life_submit c", "weft_task_life_claim c"}},
		{"one submits, two run", setup, {tells_both, polls, polls}, ran_twice_at_most, 2},
		{"one masks, one submits, one runs",
		 setup,
		 {masks, submits_and_waits, polls},
		 ran_once_and_masked,
		 2,
		 .must = {"weft_task_life_mask x", "weft_task_life_running l",
			  "weft_task_life_unmask x", "weft_task_life_settle c"}},
		{"cancelled, waited for, freed",
		 setup,
		 {cancels_and_frees, polls},
		 NULL,
		 6,
		 .must = {"weft_wait_completion_finish x"}},
		{"a runner that looks at a task after its end",
		 setup,
		 {cancels_and_frees, looks_after_the_end},
		 NULL,
		 6,
		 .broken = true},
		{"two submit what runs one time",
		 setup,
		 {submits_once, submits_once, polls_once},
		 NULL,
		 3,
		 .must = {"weft_task_life_submit_once c", "weft_task_tqueue_slot_take x",
			  "weft_task_tqueue_slot_put c"}},
	};
	return explore_all(models, weft_countof(models));
}
