/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A tally in every order: a waiter for n sees what the n adders wrote, may free the tally at
 * once, and is woken whatever crosses what.  Each labelled order is weakened once and noticed.
 */
#include "model/explore.h"

#include "task/queue/tally.h"

static struct weft_tally_core tally;
static int data[2];

static void setup(void)
{
	memset((void *)&tally, 0, sizeof tally);
	data[0] = data[1] = 0;
}

static void add(int i)
{
	model_write(&data[i], 1);
	struct weft_tally_entry *w = weft_task_tally_add_core(&tally);
	while (w) {
		struct weft_tally_entry *next = w->next;
		weft_wait_completion_finish(&w->come);
		w = next;
	}
}

static void adds_first(void)
{
	add(0);
}

static void adds_second(void)
{
	add(1);
}

static bool not_come(void *arg)
{
	uintptr_t v;
	memcpy(&v, arg, sizeof v);
	return v != WEFT_COMPLETION_DONE;
}

static void sleep_until_come(struct weft_tally_entry *w)
{
	model_block(not_come, (void *)&w->come.x_state);
	model_fresh(&w->come.x_state, sizeof w->come.x_state);
	MODEL_CHECK(weft_wait_completion_done(&w->come));
}

/* The entries are where the explorer knows them, not on a coroutine's stack. */
static void wait_with(struct weft_tally_entry *w, uint64_t n)
{
	w->n = n;
	weft_wait_completion_init(&w->come);
	if (weft_task_tally_reached(&tally, n) || !weft_task_tally_enlist(&tally, w))
		return;
	sleep_until_come(w);
}

static struct weft_tally_entry entry[2];

static void waits_and_frees(void)
{
	wait_with(&entry[0], 2);
	MODEL_CHECK(model_read(&data[0]) == 1 && model_read(&data[1]) == 1);
	model_free(&tally, sizeof tally);
}

/* Gives up at once: its entry is its own again, or is signalled. */
static void gives_up(void)
{
	struct weft_tally_entry *w = &entry[1];
	w->n = 1;
	weft_wait_completion_init(&w->come);
	if (weft_task_tally_enlist(&tally, w) && !weft_task_tally_withdraw(&tally, w))
		sleep_until_come(w);
}

static void waits_for_one(void)
{
	wait_with(&entry[0], 1);
	MODEL_CHECK(model_read(&data[0]) == 1);
}

int main(void)
{
	static const struct model models[] = {
		{"two add, one waits and frees",
		 setup,
		 {adds_first, adds_second, waits_and_frees},
		 NULL,
		 3,
		 .must = {"weft_task_tally_reached l", "weft_task_tally_add_core c",
			  "weft_task_tally_lock c", "weft_task_tally_unlock s"}},
		{"one adds, one waits, one gives up",
		 setup,
		 {adds_first, waits_for_one, gives_up},
		 NULL,
		 2},
	};
	return explore_all(models, weft_countof(models));
}
