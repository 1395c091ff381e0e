/* SPDX-License-Identifier: BSD-3-Clause */
/* Proves that who uses a lock alone becomes its owner, that others interrupt
 * it, and that whoever is inside is alone. */
#include "check.h"
#include "wait/solo.h"
#include <pthread.h>
#include <sched.h>

enum { TURNS = 20000, EVERY = 500 };

static struct weft_solo solo;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long value; /* what the lock protects */
static int inside;

struct user {
	long solo, turns; /* entered without the lock; at all */
	bool ok;
};

static void section(struct user *u)
{
	u->ok = u->ok && ++inside == 1;
	value++;
	inside--;
	u->turns++;
}

static void use(struct user *u)
{
	if (weft_wait_solo_enter(&solo, weft_wait_solo_self)) {
		section(u);
		weft_wait_solo_leave(&solo);
		u->solo++;
		return;
	}
	pthread_mutex_lock(&lock);
	weft_wait_solo_locked(&solo, weft_wait_solo_self);
	section(u);
	pthread_mutex_unlock(&lock);
}

/* Until somebody has become its owner, or cannot. */
static void become(struct user *u)
{
	for (unsigned i = 0; i < 4 * WEFT_SOLO_NEED && !u->solo; i++)
		use(u);
}

static void *interrupter(void *arg)
{
	struct user *u = arg;
	for (int i = 0; i < TURNS / EVERY; i++) {
		use(u);
		sched_yield();
	}
	return NULL;
}

static void one_becomes_owner(void)
{
	struct user a = {.ok = true};
	become(&a);
	if (!a.solo) {
		printf("skipped: no membarrier here\n");
		exit(77);
	}
	CHECK_EQ(value, a.turns);
	CHECK(a.ok);
}

/* The owner is this thread; another comes by, once and often. */
static void others_interrupt(void)
{
	struct user a = {.ok = true}, b = {.ok = true};
	long before = value;
	pthread_t t;
	CHECK_EQ(pthread_create(&t, NULL, interrupter, &b), 0);
	for (int i = 0; i < TURNS; i++)
		use(&a);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(value - before, a.turns + b.turns);
	CHECK(a.ok && b.ok);
}

/* An owner that has ended does not stand in the way. */
static void *ends_as_owner(void *arg)
{
	become(arg);
	return NULL;
}

static void owner_ends(void)
{
	struct user a = {.ok = true}, b = {.ok = true};
	pthread_t t;
	weft_wait_solo_init(&solo);
	CHECK_EQ(pthread_create(&t, NULL, ends_as_owner, &a), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK(a.solo > 0);
	long before = value;
	use(&b);
	CHECK_EQ(value, before + 1);
	CHECK_EQ(b.solo, 0);
}

int main(void)
{
	weft_wait_solo_init(&solo);
	one_becomes_owner();
	others_interrupt();
	owner_ends();
	return 0;
}
