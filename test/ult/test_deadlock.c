/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that wait for each other for ever are reported, by name; those that will be woken are
 * not, by a thread of any kind. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/ult.h>
#include "base/settings.h"
#include "check.h"
#include "ult/stack/san.h"
#include "ult/watch.h"

#define ROUNDS 200

#ifdef WEFT_TSAN
#define UNDER_TSAN true
#else
#define UNDER_TSAN false
#endif

static weft_ult_mutex fork_of[2] = {WEFT_ULT_MUTEX_INIT, WEFT_ULT_MUTEX_INIT};
static weft_ult_barrier both = WEFT_ULT_BARRIER_INIT(2);

static void *dines(void *arg)
{
	long me = (long)arg;
	CHECK_EQ(weft_ult_mutex_lock(&fork_of[me]), WEFT_OK);
	CHECK_EQ(weft_ult_barrier_wait(&both, NULL), WEFT_OK);
	(void)weft_ult_mutex_lock(&fork_of[!me]);
	return NULL;
}

static void *parks(void *arg)
{
	weft_ult_park();
	return NULL;
}

static weft_ult *named(const char *name, void *(*fn)(void *), long arg)
{
	struct weft_ult_attr a = WEFT_ULT_ATTR_INIT;
	weft_ult *t;
	a.name = name;
	CHECK_EQ(weft_ult_create(&t, &a, fn, (void *)arg), WEFT_OK);
	return t;
}

static void dine(void)
{
	CHECK_EQ(weft_ult_start(2), WEFT_OK);
	weft_ult *t = named("plato", dines, 0);
	(void)named("kant", dines, 1);
	(void)named("hume", parks, 0);
	(void)weft_ult_join(t, NULL);
}

/* Reads what a child says until it has said all that is wanted; then ends it. */
static void says(void (*fn)(void), const char *const *want)
{
	char said[8192] = "";
	size_t n = 0;
	int fd[2], status;
	CHECK_EQ(pipe(fd), 0);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		dup2(fd[1], 2);
		weft_ult_look_ns = 20000000;
		fn();
		_exit(3);
	}
	close(fd[1]);
	for (int i = 0; want[i];) { /* ends: the child has said it, or is killed for being late */
		if (strstr(said, want[i])) {
			i++;
			continue;
		}
		ssize_t some = read(fd[0], said + n, sizeof said - 1 - n);
		if (some <= 0)
			fprintf(stderr, "no \"%s\" in: %s\n", want[i], said);
		CHECK(some > 0);
		n += (size_t)some;
		said[n] = 0;
	}
	kill(child, SIGKILL);
	CHECK_EQ(waitpid(child, &status, 0), child);
	close(fd[0]);
}

/* ---- no false alarm -------------------------------------------------------------------------- */

static weft_ult_sem to_ult = WEFT_ULT_SEM_INIT(0), to_plain = WEFT_ULT_SEM_INIT(0);

/* All are asleep most of the time, but one is always about to wake another. */
static void *echoes(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(weft_ult_sem_wait(&to_ult), WEFT_OK);
		if (i % 3 == 0)
			weft_ult_yield();
		if (i % 50 == 0)
			weft_ult_sleep_ns(300000);
		weft_ult_sem_post(&to_plain);
	}
	return NULL;
}

static void *asks(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		if (i % 50 == 0)
			usleep(300); /* no thread knows that we come back */
		weft_ult_sem_post(&to_ult);
		CHECK_EQ(weft_ult_sem_wait(&to_plain), WEFT_OK);
	}
	return NULL;
}

static void *blocks(void *arg)
{
	for (int i = 0; i < 5; i++) {
		weft_ult_blocking_begin();
		usleep(300);
		weft_ult_blocking_end();
		weft_ult_unpark(arg);
	}
	return NULL;
}

static void *is_called(void *arg)
{
	weft_ult_park();
	return NULL;
}

static void no_alarm(void)
{
	pthread_t p;
	weft_ult_look_ns = 1000; /* look all the time */
	for (int workers = 1; workers <= 2; workers++) {
		CHECK_EQ(weft_ult_start(workers), WEFT_OK);
		weft_ult *t = named("echo", echoes, 0);
		CHECK_EQ(pthread_create(&p, NULL, asks, NULL), 0);
		CHECK_EQ(pthread_join(p, NULL), 0);
		CHECK_EQ(weft_ult_join(t, NULL), WEFT_OK);
		t = named("called", is_called, 0);
		weft_ult *b = named("blocks", blocks, (long)t);
		CHECK_EQ(weft_ult_join(t, NULL), WEFT_OK);
		CHECK_EQ(weft_ult_join(b, NULL), WEFT_OK);
		CHECK_EQ(weft_ult_stop(), WEFT_OK);
	}
	CHECK_EQ(atomic_load(&weft_ult_x_deadlocks), 0);
}

int main(void)
{
	static const char *const want[] = {"deadlock: 3 user-level threads wait",
					   "plato: waits for mutex",
					   "kant",
					   "hume: waits for weft_ult_unpark",
					   "held by",
					   "3 of them wait",
					   NULL};
	CHECK_EQ(weft_settings_load(), WEFT_OK);
	/* ThreadSanitizer has a kernel thread of its own, which counts as one from outside. */
	if (!UNDER_TSAN)
		says(dine, want);
	no_alarm();
	return 0;
}
