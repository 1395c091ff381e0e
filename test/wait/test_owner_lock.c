/* SPDX-License-Identifier: BSD-3-Clause */
/* Proves that a thread that uses a lock alone becomes its owner, that other threads interrupt it, that
 * thieves keep a fixed owner out, and that the thread inside is alone. */
#include <pthread.h>
#include <sched.h>
#include "check.h"
#include "wait/owner_lock.h"

enum { TURNS = 20000, EVERY = 500 };

static struct weft_owner_lock lock;
static pthread_mutex_t own_lock = PTHREAD_MUTEX_INITIALIZER;
static long value; /* what the lock protects */
static int inside;

struct user {
	void (*use)(struct user *u);
	long as_owner, turns; /* sections entered by stores; in all */
	bool ok;
};

static void section(struct user *u)
{
	CHECK(weft_wait_owner_held(&lock));
	u->ok = u->ok && ++inside == 1;
	value++;
	inside--;
	u->turns++;
}

static void use_lock(struct user *u)
{
	enum weft_owner_how how = weft_wait_owner_in(&lock);
	section(u);
	u->as_owner += how == WEFT_OWNER_BY_STORES;
	weft_wait_owner_out(&lock, how);
}

static void use_try(struct user *u)
{
	enum weft_owner_how how = weft_wait_owner_try(&lock);
	if (how == WEFT_OWNER_BUSY)
		return;
	section(u);
	u->as_owner += how == WEFT_OWNER_BY_STORES;
	weft_wait_owner_out(&lock, how);
}

/* Beside a lock of its own. */
static void use_beside(struct user *u)
{
	if (weft_wait_owner_enter(&lock)) {
		section(u);
		u->as_owner++;
		weft_wait_owner_leave(&lock);
		return;
	}
	pthread_mutex_lock(&own_lock);
	weft_wait_owner_taken(&lock);
	u->ok = u->ok && ++inside == 1;
	value++;
	inside--;
	u->turns++;
	pthread_mutex_unlock(&own_lock);
}

static void use_until_owner(struct user *u)
{
	for (unsigned i = 0; i < 4 * weft_wait_owner_need && !u->as_owner; i++)
		u->use(u);
}

static void *interrupter(void *arg)
{
	struct user *u = arg;
	for (int i = 0; i < TURNS / EVERY; i++) {
		u->use(u);
		sched_yield();
	}
	return NULL;
}

static void one_becomes_owner(void (*use)(struct user *))
{
	struct user a = {.use = use, .ok = true};
	long before = value;
	use_until_owner(&a);
	if (!a.as_owner)
		SKIP("no membarrier here");
	CHECK_EQ(value - before, a.turns);
	CHECK(a.ok);
}

/* The owner is this thread; another comes by, again and again. */
static void others_interrupt(void (*use)(struct user *))
{
	struct user a = {.use = use, .ok = true}, b = a;
	long before = value;
	pthread_t t;
	CHECK_EQ(pthread_create(&t, NULL, interrupter, &b), 0);
	for (int i = 0; i < TURNS; i++)
		use(&a);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(value - before, a.turns + b.turns);
	CHECK(a.ok && b.ok);
}

static void *ends_as_owner(void *arg)
{
	use_until_owner(arg);
	return NULL;
}

/* An owner that has ended does not stand in the way. */
static void owner_ends(void)
{
	struct user a = {.use = use_lock, .ok = true}, b = a;
	pthread_t t;
	weft_wait_owner_init(&lock, 0);
	CHECK_EQ(pthread_create(&t, NULL, ends_as_owner, &a), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK(a.as_owner > 0);
	long before = value;
	use_lock(&b);
	CHECK_EQ(value, before + 1);
	CHECK_EQ(b.as_owner, 0);
}

/* ---- a fixed owner --------------------------------------------------------------------------- */

static bool fence;
static _Atomic bool x_stop;
static _Atomic int x_stolen;

static void *thief(void *arg)
{
	struct user *u = arg;
	while (!atomic_load(&x_stop)) { /* ends: the owner is through */
		if (weft_wait_owner_steal_begin(&lock, fence)) {
			section(u);
			weft_wait_owner_steal_end(&lock);
			atomic_fetch_add(&x_stolen, 1);
		}
		sched_yield();
	}
	return NULL;
}

static void thieves_and_owner(bool by_fence)
{
	struct user u[3] = {{.ok = true}, {.ok = true}, {.ok = true}};
	pthread_t t[2];
	long before = value;
	fence = by_fence;
	atomic_store(&x_stop, false);
	atomic_store(&x_stolen, 0);
	weft_wait_owner_init(&lock, WEFT_OWNER_FIXED);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, thief, &u[i]), 0);
	for (int i = 0; i < 10 * TURNS || atomic_load(&x_stolen) < 100; i++) {
		weft_wait_owner_enter_fixed(&lock, fence);
		section(&u[2]);
		weft_wait_owner_leave(&lock);
		if (i % EVERY == 0)
			sched_yield();
	}
	atomic_store(&x_stop, true);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	CHECK_EQ(value - before, u[0].turns + u[1].turns + u[2].turns);
	CHECK(u[0].ok && u[1].ok && u[2].ok);
}

int main(void)
{
	static void (*const ways[])(struct user *) = {use_lock, use_try, use_beside};
	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
		weft_wait_owner_init(&lock, 0);
		one_becomes_owner(ways[i]);
		others_interrupt(ways[i]);
	}
	/* Owners come and go. */
	weft_wait_owner_init(&lock, 0);
	weft_wait_owner_need = 8;
	others_interrupt(use_lock);
	owner_ends();
	thieves_and_owner(true);
	if (weft_membarrier_private_register())
		thieves_and_owner(false);
	return 0;
}
