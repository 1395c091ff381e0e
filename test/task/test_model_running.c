/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A task's name is read by the overseer while it runs (task/queue/running.h), in every order: the runner
 * frees it after the run at the earliest, and after the overseer has read it.
 */
#include "model/explore.h"
#include "task/queue/running.h"

static struct weft_running r;
static const char *const names[2] = {"first", "second"};
static int letters[2]; /* what the names are made of */

static void setup(void)
{
	memset((void *)&r, 0, sizeof r);
	letters[0] = letters[1] = 0;
}

static void runs(void)
{
	for (int i = 0; i < 2; i++) {
		model_write(&letters[i], 1);
		weft_task_running_end(&r, weft_task_running_begin(&r, names[i]));
		model_write(&letters[i], 2); /* free */
	}
}

static void runs_unasked(void)
{
	model_write(&letters[0], 1);
	(void)weft_task_running_begin(&r, names[0]);
	atomic_store_explicit(&r.x_runs, 2, memory_order_seq_cst);
	model_write(&letters[0], 2);
}

static void no_barrier(void)
{
}

static void oversees_how(void (*barrier)(void))
{
	const char *name;
	uint32_t run = weft_task_running_now(&r);
	if (run % 2 == 0 || !weft_task_running_pin(&r, run, barrier, &name))
		return;
	MODEL_CHECK(name == names[run / 2]);
	MODEL_CHECK(model_read(&letters[run / 2]) == 1);
	weft_task_running_unpin(&r);
}

static void oversees(void)
{
	oversees_how(model_membarrier);
	oversees_how(model_membarrier);
}

static void oversees_unfenced(void)
{
	oversees_how(no_barrier);
}

int main(void)
{
	static const struct model models[] = {
		{"runs",
		 setup,
		 {runs, oversees},
		 NULL,
		 4,
		 .must = {"weft_task_running_unpin s", "weft_task_running_end l"}},
		{"does not ask whether it is pinned",
		 setup,
		 {runs_unasked, oversees},
		 NULL,
		 4,
		 .broken = true},
		{"without the barrier", setup, {runs, oversees_unfenced}, NULL, 4, .broken = true},
	};
	return explore_all(models, weft_countof(models));
}
