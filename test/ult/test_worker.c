/* SPDX-License-Identifier: BSD-3-Clause */
/* Stealing finds threads behind a computation; pinned ones stay; a blocked carrier is replaced. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>
#include <weft/ult.h>
#include "check.h"
#include "wait/park.h"

#define CHILDREN 20
#define ROUNDS 5

static _Atomic int x_ran;

static void *runs(void *arg)
{
	atomic_fetch_add(&x_ran, 1);
	return NULL;
}

static void *stays(void *arg)
{
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(weft_ult_worker(), 0);
		weft_ult_yield();
	}
	return NULL;
}

/* Never lets its worker go, until others have run what it made ready. */
static void *computes(void *arg)
{
	weft_ult *t[CHILDREN];
	for (int i = 0; i < CHILDREN; i++)
		CHECK_EQ(weft_ult_create(&t[i], NULL, runs, NULL), WEFT_OK);
	while (atomic_load(&x_ran) < CHILDREN)
		usleep(10); /* in the kernel or not: its worker is busy */
	for (int i = 0; i < CHILDREN; i++)
		CHECK_EQ(weft_ult_join(t[i], NULL), WEFT_OK);
	return NULL;
}

static void stealing(void)
{
	struct weft_ult_attr a = WEFT_ULT_ATTR_INIT;
	weft_ult *t, *pinned[CHILDREN];
	CHECK_EQ(weft_ult_start(2), WEFT_OK);
	for (int round = 0; round < ROUNDS; round++) {
		atomic_store(&x_ran, 0);
		a.worker = 0;
		for (int i = 0; i < CHILDREN; i++)
			CHECK_EQ(weft_ult_create(&pinned[i], &a, stays, NULL), WEFT_OK);
		a.worker = round % 2;
		CHECK_EQ(weft_ult_create(&t, &a, computes, NULL), WEFT_OK);
		CHECK_EQ(weft_ult_join(t, NULL), WEFT_OK);
		for (int i = 0; i < CHILDREN; i++)
			CHECK_EQ(weft_ult_join(pinned[i], NULL), WEFT_OK);
	}
	CHECK_EQ(weft_ult_stop(), WEFT_OK);
}

static int fd[2];

static void *reads(void *arg)
{
	char byte = 0;
	weft_ult *self = weft_ult_self();
	for (int i = 0; i < ROUNDS; i++) {
		weft_ult_blocking_begin();
		CHECK(weft_ult_self() == self);
		CHECK_EQ(weft_ult_join(self, NULL), WEFT_ERR_DEADLOCK);
		CHECK_EQ(read(fd[0], &byte, 1), 1);
		weft_ult_blocking_end();
		CHECK_EQ(byte, i);
		CHECK(weft_ult_self() == self);
		CHECK_EQ(weft_ult_worker(), 0);
		weft_ult_yield();
	}
	return NULL;
}

/* Runs on the same worker while the other sits in read(). */
static void *writes(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		char byte = (char)i;
		for (int k = 0; k < 10; k++)
			weft_ult_yield();
		CHECK_EQ(write(fd[1], &byte, 1), 1);
	}
	return NULL;
}

static void blocking(void)
{
	weft_ult *t[6];
	CHECK_EQ(pipe(fd), 0);
	CHECK_EQ(weft_ult_start(1), WEFT_OK);
	CHECK_EQ(weft_ult_create(&t[0], NULL, reads, NULL), WEFT_OK);
	CHECK_EQ(weft_ult_create(&t[1], NULL, writes, NULL), WEFT_OK);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(weft_ult_join(t[i], NULL), WEFT_OK);
	weft_ult_blocking_begin(); /* nothing, here */
	weft_ult_blocking_end();
	CHECK_EQ(weft_ult_stop(), WEFT_OK);
	close(fd[0]);
	close(fd[1]);
}

static weft_ult_mutex held = WEFT_ULT_MUTEX_INIT;

static void *wants(void *arg)
{
	CHECK_EQ(weft_ult_mutex_lock(&held), WEFT_OK);
	CHECK_EQ(weft_ult_mutex_unlock(&held), WEFT_OK);
	return NULL;
}

static _Atomic(struct weft_parker *) x_sleeper;
static _Atomic bool x_may_end;

/* As in a wait of the layers above, which name nothing. */
static void *sleeps(void *arg)
{
	atomic_store(&x_sleeper, weft_wait_parker_self());
	while (!atomic_load(&x_may_end))
		(void)weft_wait_park(weft_wait_parker_self(), WEFT_NEVER);
	return arg;
}

static void *parks(void *arg)
{
	while (!atomic_load(&x_may_end))
		weft_ult_park();
	return arg;
}

static void report_until(const char *line)
{
	for (bool seen = false; !seen;) { /* ends: the thread comes to wait */
		char *text = NULL;
		size_t n = 0;
		FILE *f = open_memstream(&text, &n);
		CHECK(f);
		weft_ult_report(f);
		fclose(f);
		seen = strstr(text, line) != NULL;
		free(text);
		usleep(100);
	}
}

/* The report says which thread waits for what. */
static void report(void)
{
	struct weft_ult_attr a = WEFT_ULT_ATTR_INIT;
	weft_ult *t[3];
	CHECK_EQ(weft_ult_start(1), WEFT_OK);
	CHECK_EQ(weft_ult_mutex_lock(&held), WEFT_OK);
	a.name = "wanting";
	CHECK_EQ(weft_ult_create(&t[0], &a, wants, NULL), WEFT_OK);
	a.name = "sleeping";
	CHECK_EQ(weft_ult_create(&t[1], &a, sleeps, NULL), WEFT_OK);
	a.name = "parking";
	CHECK_EQ(weft_ult_create(&t[2], &a, parks, NULL), WEFT_OK);
	report_until("wanting: waits for mutex");
	report_until("sleeping: waits for a message, a task or another event");
	report_until("parking: waits for weft_ult_unpark");
	atomic_store(&x_may_end, true);
	weft_wait_unpark(atomic_load(&x_sleeper));
	weft_ult_unpark(t[2]);
	CHECK_EQ(weft_ult_mutex_unlock(&held), WEFT_OK);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(weft_ult_join(t[i], NULL), WEFT_OK);
	CHECK_EQ(weft_ult_stop(), WEFT_OK);
}

int main(void)
{
	stealing();
	blocking();
	report();
	return 0;
}
