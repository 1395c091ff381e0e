/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The owner lock in every order: the thread inside is alone and sees what the one before wrote; the
 * membarrier, the look at inside, and the wait for an interrupted owner are what makes it so.
 */
#include "model/explore.h"
#define WEFT_OWNER_LOOKS 2
#define WEFT_OWNER_SELF ((uint32_t)(mx.now + 1) * 4 + WEFT_OWNER_OWNS)
/* The production source, compiled against the explorer's atomics. */
#include "wait/owner_lock.c"

static struct weft_owner_lock lock;
static _Atomic uint32_t own_lock, x_moment;
static int value, gave_up;

static void setup(void)
{
	weft_wait_owner_init(&lock, 0);
	weft_wait_owner_need = 1;
	atomic_store_explicit(&own_lock, 0, memory_order_relaxed);
	value = gave_up = 0;
	model_deaf = false;
}

/* The first thread has been alone before. */
static void setup_owned(void)
{
	setup();
	weft_wait_owner_init(&lock, 1 * 4 + WEFT_OWNER_OWNS);
}

static void setup_owned_for_long(void)
{
	setup_owned();
	weft_wait_owner_need = 1000;
}

static void setup_deaf(void)
{
	setup_owned();
	model_deaf = true;
}

static void section(void)
{
	/* Another thread may go first here, too. */
	(void)atomic_load_explicit(&x_moment, memory_order_relaxed);
	weft_assert_held(weft_wait_owner, &lock);
	model_write(&value, model_read(&value) + 1);
}

static void check(int sections)
{
	MODEL_CHECK(value == sections - gave_up);
}

/* ---- the lock -------------------------------------------------------------------------------- */

static void enters(void)
{
	enum weft_owner_how how = weft_wait_owner_in(&lock);
	section();
	weft_wait_owner_out(&lock, how);
}

static void enters_twice(void)
{
	enters();
	enters();
}

static void enters_thrice(void)
{
	enters_twice();
	enters();
}

static void locks(void)
{
	weft_wait_owner_lock(&lock);
	section();
	weft_wait_owner_unlock(&lock);
}

static void tries(void)
{
	enum weft_owner_how how = weft_wait_owner_try(&lock);
	if (how == WEFT_OWNER_BUSY) {
		gave_up++;
		return;
	}
	section();
	weft_wait_owner_out(&lock, how);
}

/* Interrupts without a look whether the owner is inside. */
static void locks_hastily(void)
{
	while (atomic_exchange_explicit(&lock.x_held, 1, memory_order_acquire))
		model_relax();
	atomic_store_explicit(&lock.x_owner, 1 * 4 + WEFT_OWNER_INTERRUPTED, memory_order_relaxed);
	weft_membarrier_private();
	section();
	weft_wait_owner_unlock(&lock);
}

/* Interrupts, and forgets that the owner may still be on its way in. */
static void locks_forgetfully(void)
{
	while (atomic_exchange_explicit(&lock.x_held, 1, memory_order_acquire))
		model_relax();
	if (atomic_load_explicit(&lock.x_owner, memory_order_relaxed) == 1 * 4 + WEFT_OWNER_OWNS) {
		weft_wait_owner_interrupt(&lock);
		atomic_store_explicit(&lock.x_owner, 0, memory_order_relaxed);
	} else {
		weft_wait_owner_taken(&lock);
	}
	section();
	weft_wait_owner_unlock(&lock);
}

static void becomes_owner_forgetfully(void)
{
	locks_forgetfully();
	enters_twice();
	enters();
}

static void check_two(void)
{
	check(2);
}

static void check_three(void)
{
	check(3);
}

static void check_four(void)
{
	check(4);
}

static void check_five(void)
{
	check(5);
}

/* ---- beside a lock of its own ---------------------------------------------------------------- */

static void enters_beside(void)
{
	if (weft_wait_owner_enter(&lock)) {
		section();
		weft_wait_owner_leave(&lock);
		return;
	}
	while (atomic_exchange_explicit(&own_lock, 1, memory_order_acquire)) /* ends: short */
		while (atomic_load_explicit(&own_lock, memory_order_relaxed))
			model_relax();
	weft_wait_owner_taken(&lock);
	model_write(&value, model_read(&value) + 1);
	atomic_store_explicit(&own_lock, 0, memory_order_release);
}

static void enters_beside_twice(void)
{
	enters_beside();
	enters_beside();
}

static void enters_beside_thrice(void)
{
	enters_beside_twice();
	enters_beside();
}

/* ---- a fixed owner --------------------------------------------------------------------------- */

static bool fence;

static void setup_fixed(void)
{
	setup();
	weft_wait_owner_init(&lock, WEFT_OWNER_FIXED);
	fence = false;
}

static void setup_fixed_fence(void)
{
	setup_fixed();
	fence = true;
}

static void setup_fixed_deaf(void)
{
	setup_fixed();
	model_deaf = true;
}

static void enters_fixed_twice(void)
{
	for (int i = 0; i < 2; i++) {
		weft_wait_owner_enter_fixed(&lock, fence);
		section();
		weft_wait_owner_leave(&lock);
	}
}

static void steals(void)
{
	if (!weft_wait_owner_steal_begin(&lock, fence)) {
		gave_up++;
		return;
	}
	section();
	weft_wait_owner_steal_end(&lock);
}

/* Does not wait until the owner is outside. */
static void steals_hastily(void)
{
	if (atomic_exchange_explicit(&lock.x_held, 1, memory_order_acquire))
		return;
	atomic_store_explicit(&lock.x_owner,
			      WEFT_OWNER_FIXED - WEFT_OWNER_OWNS + WEFT_OWNER_INTERRUPTED,
			      memory_order_seq_cst);
	weft_membarrier_private();
	section();
	weft_wait_owner_steal_end(&lock);
}

int main(void)
{
	static const struct model models[] = {
		{"owner and another",
		 setup_owned,
		 {enters_twice, enters},
		 check_three,
		 4,
		 .must = {"weft_wait_owner_leave s", "weft_wait_owner_interrupt l"}},
		{"owner and two others",
		 setup_owned_for_long,
		 {enters_twice, locks, enters},
		 check_four,
		 1,
		 .must = {"weft_wait_owner_unlock s", "weft_wait_owner_lock x"}},
		{"owner and one that tries", setup_owned, {enters_twice, tries}, check_three, 4},
		{"interrupted owner, and one that has become it",
		 setup_owned,
		 {enters, enters_thrice},
		 check_four,
		 3},
		{"two that become owners", setup, {enters_thrice, enters_twice}, check_five, 3},
		{"no membarrier",
		 setup_deaf,
		 {enters_twice, enters},
		 check_three,
		 4,
		 .broken = true},
		{"no wait until the owner is outside",
		 setup_owned,
		 {enters, locks_hastily},
		 check_two,
		 3,
		 .broken = true},
		{"an interrupted owner is forgotten",
		 setup_owned,
		 {enters, becomes_owner_forgetfully},
		 check_five,
		 2,
		 .broken = true},
		{"beside a lock: owner and another",
		 setup_owned,
		 {enters_beside_twice, enters_beside},
		 check_three,
		 4,
		 .must = {"weft_wait_owner_leave s", "weft_wait_owner_interrupt l"}},
		{"beside a lock: two that become owners",
		 setup,
		 {enters_beside_thrice, enters_beside_twice},
		 check_five,
		 3},
		{"fixed owner and thief",
		 setup_fixed,
		 {enters_fixed_twice, steals},
		 check_three,
		 4,
		 .must = {"weft_wait_owner_leave s", "weft_wait_owner_steal_end s",
			  "weft_wait_owner_steal_begin l", "weft_wait_owner_enter_fixed l"}},
		{"fixed owner and two thieves",
		 setup_fixed,
		 {enters_fixed_twice, steals, steals},
		 check_four,
		 2},
		{"fixed owner that fences, and two thieves",
		 setup_fixed_fence,
		 {enters_fixed_twice, steals, steals},
		 check_four,
		 2,
		 .must = {"weft_wait_owner_unlock s", "weft_wait_owner_steal_begin x"}},
		{"fixed owner that fences, and thief",
		 setup_fixed_fence,
		 {enters_fixed_twice, steals},
		 check_three,
		 4,
		 .must = {"weft_wait_owner_enter_fixed x", "weft_wait_owner_steal_begin s"}},
		{"fixed owner, no membarrier",
		 setup_fixed_deaf,
		 {enters_fixed_twice, steals},
		 check_three,
		 4,
		 .broken = true},
		{"a hasty thief",
		 setup_fixed,
		 {enters_fixed_twice, steals_hastily},
		 check_three,
		 4,
		 .broken = true},
	};
	return explore_all(models, weft_countof(models));
}
