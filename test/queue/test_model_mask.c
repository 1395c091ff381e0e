/* SPDX-License-Identifier: BSD-3-Clause */
/* The mask in every order: one thread works at a time, and what a skipper published is worked on.
 */
#include "model/explore.h"
#include "queue/mask.h"

static struct weft_mask mask;
static _Atomic int x_box[3]; /* published relaxed: only the mask's own order hands it over */
static int worked, inside;   /* plain: protected by the mask */

static void setup(void)
{
	weft_mask_init(&mask);
	memset((void *)x_box, 0, sizeof x_box);
	worked = inside = 0;
}

static void work(void)
{
	model_write(&inside, model_read(&inside) + 1);
	MODEL_CHECK(model_read(&inside) == 1);
	for (int i = 0; i < 3; i++)
		if (atomic_load_explicit(&x_box[i], memory_order_relaxed) == 1) {
			atomic_store_explicit(&x_box[i], 2, memory_order_relaxed);
			model_write(&worked, model_read(&worked) + 1);
		}
	model_write(&inside, model_read(&inside) - 1);
}

static void submit(int i)
{
	atomic_store_explicit(&x_box[i], 1, memory_order_relaxed);
	if (!weft_mask_try(&mask))
		return;
	do
		work();
	while (!weft_mask_done(&mask));
}

static void submit0(void)
{
	submit(0);
}

static void submit1(void)
{
	submit(1);
}

static void submit2(void)
{
	submit(2);
}

/* Lets go without a look whether a thread was turned away. */
static void forgetful(void)
{
	atomic_store_explicit(&x_box[0], 1, memory_order_relaxed);
	if (!weft_mask_try(&mask))
		return;
	work();
	atomic_store_explicit(&mask.x_word, WEFT_MASK_FREE, memory_order_release);
}

static void all_worked(void)
{
	int left = 0;
	for (int i = 0; i < 3; i++)
		left += x_box[i] == 1;
	MODEL_CHECK(left == 0);
	MODEL_CHECK(mask.x_word == WEFT_MASK_FREE);
}

int main(void)
{
	static const struct model models[] = {
		{"mask, three threads", setup, {submit0, submit1, submit2}, all_worked, 3},
		{"mask, two threads",
		 setup,
		 {submit0, submit1},
		 all_worked,
		 6,
		 .must = {"weft_mask_try_quiet c", "weft_mask_try x", "weft_mask_done x"}},
		{"mask without the second look",
		 setup,
		 {forgetful, submit1},
		 all_worked,
		 3,
		 .broken = true},
	};
	return explore_all(models, weft_countof(models));
}
