/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The small lock with an owner in every order: whoever is inside is alone, sees what the one before
 * wrote, and the membarrier is what makes it so.
 */
#include "model/explore.h"
#include <sys/syscall.h>
#include <unistd.h>

static bool deaf; /* a membarrier that is none */

#define syscall(...) ((void)(deaf ? (void)0 : model_membarrier()), 0L)
#define WEFT_BIASED_NEED 1u
/* The production sources, compiled against the explorer's atomics. */
#include "wait/solo.c"
#define weft_wait_solo_self                                                                        \
	((uint32_t)mx.now + 1) /* the explorer's threads are coroutines of one */
#include "comm/match/biased.c"

static struct weft_biased lock;
static _Atomic uint32_t moment;
static int value;

static void setup(void)
{
	memset(&lock, 0, sizeof lock);
	atomic_store_explicit(&lock.x_held, 0, memory_order_relaxed);
	atomic_store_explicit(&lock.x_inside, 0, memory_order_relaxed);
	atomic_store_explicit(&lock.x_owner, 0, memory_order_relaxed);
	value = 0;
	deaf = false;
}

/* Thread 1 has been alone before. */
static void setup_owned(void)
{
	setup();
	atomic_store_explicit(&lock.x_owner, 1 * 4 | WEFT_BIASED_OWNS, memory_order_relaxed);
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

static void use(void)
{
	enum weft_biased_how how = weft_comm_biased_in(&lock);
	add();
	weft_comm_biased_out(&lock, how);
}

static void twice(void)
{
	use();
	use();
}

static void thrice(void)
{
	twice();
	use();
}

static void lock_only(void)
{
	weft_comm_biased_lock(&lock);
	add();
	weft_comm_biased_unlock(&lock);
}

static int failed;

static void tries(void)
{
	enum weft_biased_how how = weft_comm_biased_try(&lock);
	if (how == WEFT_BIASED_BUSY) {
		failed = 1;
		return;
	}
	add();
	weft_comm_biased_out(&lock, how);
}

static void setup_tries(void)
{
	setup_owned();
	failed = 0;
}

static void check_tries(void)
{
	MODEL_CHECK(value == 3 - failed);
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
		 {twice, use},
		 check_three,
		 4,
		 .must = {"weft_comm_biased_out s", "weft_comm_biased_interrupt l"}},
		{"owner and two others",
		 setup_owned,
		 {twice, lock_only, use},
		 check_four,
		 1,
		 .must = {"weft_comm_biased_unlock s", "weft_comm_biased_lock x"}},
		{"owner and one that tries", setup_tries, {twice, tries}, check_tries, 4},
		{"owner that was, and one who has become it",
		 setup_owned,
		 {use, thrice},
		 check_four,
		 3},
		{"two that become owners", setup, {thrice, twice}, check_five, 3},
		{"no membarrier", setup_deaf, {twice, use}, check_three, 4, .broken = true},
	};
	return explore_all(models, weft_countof(models));
}
