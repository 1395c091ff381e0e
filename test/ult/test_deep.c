/* SPDX-License-Identifier: BSD-3-Clause */
/* A call that needs much stack gets one and may block on it: threads on 4 KiB, many in such calls
 * at once, woken by others, on any worker; a thread that runs over the larger stack too is named.
 * */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/ult.h>
#include "base/settings.h"
#include "check.h"
#include "ult/ult_int.h"
#include "wait/stack.h"

#define MANY 300
#define DEEP_BYTES 20000

static weft_ult *t[MANY];
static _Atomic int x_inside, x_open;

static char *lowest_of(const weft_ult *u)
{
	return u->stack;
}

static bool on_own(const void *at)
{
	const weft_ult *me = weft_ult_self();
	const char *p = at;
	return p >= lowest_of(me) && p < lowest_of(me) + weft_ult_stack_bytes(me->class);
}

/* More than fits on 4 KiB; blocks in the middle of it. */
static void call(void *arg)
{
	volatile char room[DEEP_BYTES];
	weft_ult *me = weft_ult_self();
	for (size_t i = 0; i < sizeof room; i += 64)
		room[i] = (char)(i / 64 + (uintptr_t)arg);
	/* The frame, not room: AddressSanitizer may keep that elsewhere. */
	CHECK_EQ(on_own(__builtin_frame_address(0)), WEFT_ULT_SANITIZED);
	CHECK(!weft_wait_stack_is_small()); /* a call within it stays where it is */
	atomic_fetch_add(&x_inside, 1);
	while (!atomic_load(&x_open))
		weft_ult_park();
	weft_ult_yield();
	for (size_t i = 0; i < sizeof room; i += 64)
		CHECK_EQ(room[i], (char)(i / 64 + (uintptr_t)arg));
	CHECK(weft_ult_self() == me);
}

static void *thread(void *arg)
{
	for (int round = 0; round < 3; round++) {
		CHECK_EQ(weft_wait_stack_is_small(), !WEFT_ULT_SANITIZED);
		weft_wait_deep_stack(call, arg);
	}
	return arg;
}

static void create_all(void)
{
	struct weft_ult_attr a = WEFT_ULT_ATTR_INIT;
	a.stack_size = 4096;
	for (long i = 0; i < MANY; i++)
		CHECK_EQ(weft_ult_create(&t[i], &a, thread, (void *)i), WEFT_OK);
}

static void many_block_in_it(void)
{
	CHECK_EQ(weft_ult_start(2), WEFT_OK);
	create_all();
	while (atomic_load(&x_inside) < MANY)
		weft_ult_sleep_ns(1000000);
	atomic_store(&x_open, 1);
	for (int i = 0; i < MANY; i++)
		weft_ult_unpark(t[i]);
	for (int i = 0; i < MANY; i++)
		CHECK_EQ(weft_ult_join(t[i], NULL), WEFT_OK);
	CHECK_EQ(atomic_load(&x_inside), 3 * MANY);
	CHECK_EQ(weft_ult_stop(), WEFT_OK);
}

static void note_where(void *arg)
{
	*(bool *)arg = weft_ult_self() ? on_own(__builtin_frame_address(0)) : false;
}

/* Large stacks, and plain threads: where they are. */
static void *large(void *arg)
{
	bool own = false;
	CHECK(!weft_wait_stack_is_small());
	weft_wait_deep_stack(note_where, &own);
	CHECK(own);
	return arg;
}

static void others_stay(void)
{
	struct weft_ult_attr a = WEFT_ULT_ATTR_INIT;
	weft_ult *u;
	bool own = true;
	a.stack_size = 65536;
	CHECK_EQ(weft_ult_start(1), WEFT_OK);
	CHECK_EQ(weft_ult_create(&u, &a, large, NULL), WEFT_OK);
	CHECK_EQ(weft_ult_join(u, NULL), WEFT_OK);
	CHECK(!weft_wait_stack_is_small());
	weft_wait_deep_stack(note_where, &own);
	CHECK(!own);
	CHECK_EQ(weft_ult_stop(), WEFT_OK);
}

#if !WEFT_ULT_SANITIZED
static long deeper(long n);
static long (*volatile next_level)(long n) = deeper; /* no loop can be made of this */

static long deeper(long n)
{
	volatile char room[200];
	memset((char *)room, 1, sizeof room);
	return n + (n < 1000000 ? next_level(n + 1) : 0) + room[7];
}

static void digs(void *arg)
{
	*(long *)arg = deeper(0);
}

static void *digger(void *arg)
{
	long n;
	weft_wait_deep_stack(digs, &n);
	return arg;
}

static void overflow_is_named(void)
{
	struct weft_ult_attr a = WEFT_ULT_ATTR_INIT;
	char said[8192];
	int fd[2], status;
	size_t n = 0;
	ssize_t some;
	CHECK_EQ(pipe(fd), 0);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		struct rlimit none = {0, 0};
		weft_ult *u;
		setrlimit(RLIMIT_CORE, &none);
		dup2(fd[1], 2);
		a.name = "digger";
		a.stack_size = 4096;
		if (weft_ult_start(1) || weft_ult_create(&u, &a, digger, NULL))
			_exit(4);
		(void)weft_ult_join(u, NULL);
		_exit(3);
	}
	close(fd[1]);
	while ((some = read(fd[0], said + n, sizeof said - 1 - n)) > 0)
		n += (size_t)some;
	said[n] = 0;
	close(fd[0]);
	CHECK_EQ(waitpid(child, &status, 0), child);
	if (!strstr(said, "\"digger\"") || !strstr(said, "65536 bytes for this call"))
		fprintf(stderr, "status %#x, said: %s\n", status, said);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	CHECK(strstr(said, "\"digger\""));
	CHECK(strstr(said, "65536 bytes for this call"));
}
#endif

/* With an argument: without what a machine that is only played cannot do. */
int main(int argc, char **argv)
{
	CHECK_EQ(weft_settings_load(), WEFT_OK);
#if !WEFT_ULT_SANITIZED
	if (argc < 2)
		overflow_is_named();
#endif
	others_stay();
	many_block_in_it();
	return 0;
}
