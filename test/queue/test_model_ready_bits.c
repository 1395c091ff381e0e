/* SPDX-License-Identifier: BSD-3-Clause */
/* Ready items in every order: each is taken once, with its contents, and none stays behind. */
#include "model/explore.h"
#include "queue/mask.h"
#include "queue/ready_bits.h"

static struct weft_ready_bits bits;
static struct weft_mask mask;
static _Alignas(8) char memory[256];
static int content[3], taken[3], twice;

static void setup(void)
{
	weft_mask_init(&mask);
	weft_ready_bits_init(&bits, 3, memory);
	weft_ready_bits_reset(&bits, 3);
	memset(content, 0, sizeof content);
	memset(taken, 0, sizeof taken);
	twice = 0;
}

static void take_all(void)
{
	if (!weft_mask_try(&mask))
		return;
	do {
		uint32_t first, n;
		weft_ready_bits_gather(&bits);
		while ((n = weft_ready_bits_run(&bits, 2, &first)))
			for (uint32_t i = first; i < first + n; i++) {
				MODEL_CHECK(model_read(&content[i]) == 7);
				model_write(&taken[i], model_read(&taken[i]) + 1);
			}
	} while (!weft_mask_done(&mask));
}

static void set(uint32_t item)
{
	uint64_t after;
	model_write(&content[item], 7);
	enum weft_ready r = weft_ready_bits_set(&bits, item, &after);
	MODEL_CHECK(r != WEFT_READY_TWICE);
	if (r == WEFT_READY_FIRST)
		take_all();
}

static void set0(void)
{
	set(0);
}

static void set1(void)
{
	set(1);
}

static void set2(void)
{
	set(2);
}

/* Another thread takes item 0 meanwhile: the second set has to notice all the same. */
static void set0_twice(void)
{
	uint64_t after;
	set(0);
	if (weft_ready_bits_set(&bits, 0, &after) == WEFT_READY_TWICE)
		twice = 1;
	take_all();
}

static void take_only(void)
{
	take_all();
}

static void two(void)
{
	MODEL_CHECK(taken[0] == 1 && taken[1] == 1);
}

static void three(void)
{
	MODEL_CHECK(taken[0] == 1 && taken[1] == 1 && taken[2] == 1);
}

static void once(void)
{
	MODEL_CHECK(taken[0] == 1 && twice == 1);
}

/* Tells of the word before its item is there. */
static void hasty(void)
{
	model_write(&content[1], 7);
	atomic_fetch_or_explicit(&bits.x_top[0], 1, memory_order_release);
	take_all();
	atomic_fetch_or_explicit(&bits.x_word[0], 2, memory_order_acq_rel);
}

int main(void)
{
	static const struct model models[] = {
		{"ready bits, two setters",
		 setup,
		 {set0, set1},
		 two,
		 4,
		 .must = {"weft_ready_bits_set_mask x", "weft_ready_bits_take_word l"}},
		{"ready bits, two setters and a taker",
		 setup,
		 {set0, set1, take_only},
		 two,
		 3,
		 .must = {"weft_ready_bits_set_mask l", "weft_ready_bits_take_word l"}},
		{"ready bits, three setters", setup, {set0, set1, set2}, three, 2},
		{"ready bits, set twice", setup, {set0_twice, take_only}, once, 4},
		{"ready bits told of too early", setup, {set0, hasty}, two, 3, .broken = true},
	};
	return explore_all(models, weft_countof(models));
}
