/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lock with an owner in every order: whoever enters is alone, sees what the one before wrote,
 * and the membarrier is what makes it so.
 */
#include "model/explore.h"
#include <sys/syscall.h>
#include <unistd.h>

static bool deaf; /* a membarrier that is none */

#define syscall(...) ((void)(deaf ? (void)0 : model_membarrier()), 0L)
/* The production source, compiled against the explorer's atomics. */
#include "wait/solo.c"

static struct weft_solo solo;
static _Atomic uint32_t lock, moment;
static int value;

static void setup(void)
{
	weft_wait_solo_init(&solo);
	solo.need = 1;
	atomic_store_explicit(&lock, 0, memory_order_relaxed);
	value = 0;
	deaf = false;
}

/* Thread 1 has been alone before. */
static void setup_owned(void)
{
	setup();
	atomic_store_explicit(&solo.x_owner, 1, memory_order_relaxed);
	solo.last = 1;
	solo.need = 1000;
}

/* The same, and the next one is as soon. */
static void setup_was(void)
{
	setup_owned();
	solo.need = 1;
}

static void setup_deaf(void)
{
	setup_owned();
	deaf = true;
}

static void add(void)
{
	/* The others may go first here, too. */
	(void)atomic_load_explicit(&moment, memory_order_relaxed);
	model_write(&value, model_read(&value) + 1);
}

static void use(uint32_t me)
{
	if (weft_wait_solo_enter(&solo, me)) {
		add();
		weft_wait_solo_leave(&solo);
		return;
	}
	while (atomic_exchange_explicit(&lock, 1, memory_order_acquire)) /* ends: each is short */
		while (atomic_load_explicit(&lock, memory_order_relaxed))
			model_relax();
	weft_wait_solo_locked(&solo, me);
	add();
	atomic_store_explicit(&lock, 0, memory_order_release);
}

static void first(void)
{
	use(1);
}

static void first_twice(void)
{
	use(1);
	use(1);
}

static void first_thrice(void)
{
	use(1);
	use(1);
	use(1);
}

static void second(void)
{
	use(2);
}

static void second_twice(void)
{
	use(2);
	use(2);
}

static void second_often(void)
{
	use(2);
	use(2);
	use(2);
	use(2);
}

static void third(void)
{
	use(3);
}

static void check_three(void)
{
	MODEL_CHECK(value == 3);
}

static void check_four(void)
{
	MODEL_CHECK(value == 4);
}

static void check_five(void)
{
	MODEL_CHECK(value == 5);
}

int main(void)
{
	static const struct model models[] = {
		{"owner and another",
		 setup_owned,
		 {first_twice, second},
		 check_three,
		 4,
		 .must = {"weft_wait_solo_leave s", "weft_wait_solo_interrupt l"}},
		{"owner and two others", setup_owned, {first_twice, second, third}, check_four, 1},
		{"owner that was, and one who has become it",
		 setup_was,
		 {first, second_often},
		 check_five,
		 3},
		{"two that become owners", setup, {first_thrice, second_twice}, check_five, 3},
		{"no membarrier",
		 setup_deaf,
		 {first_twice, second},
		 check_three,
		 4,
		 .broken = true},
	};
	return explore_all(models, weft_countof(models));
}
