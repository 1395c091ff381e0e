/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that runs over its stack ends the process with a message that names it; 20,000 at once,
 * whose addresses tell where their stacks are. */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/ult.h>
#include "base/settings.h"
#include "check.h"
#include "ult/stack/place.h"

static char said[8192];

/* Runs fn in a child that must die by SIGABRT; what it says is in said. */
static void dies(const char *name, void (*fn)(void))
{
	int fd[2], status;
	size_t n = 0;
	ssize_t some;
	CHECK_EQ(pipe(fd), 0);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		struct rlimit none = {0, 0};
		setrlimit(RLIMIT_CORE, &none);
		dup2(fd[1], 2);
		fn();
		_exit(3);
	}
	close(fd[1]);
	while ((some = read(fd[0], said + n, sizeof said - 1 - n)) > 0)
		n += (size_t)some;
	said[n] = 0;
	close(fd[0]);
	CHECK_EQ(waitpid(child, &status, 0), child);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
		fprintf(stderr, "%s: status %#x: %s\n", name, status, said);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static long deeper(long n);
static long (*volatile next_level)(long n) = deeper; /* no loop can be made of this */

static long deeper(long n)
{
	volatile char room[200];
	memset((char *)room, 1, sizeof room);
	return n + (n < 1000000 ? next_level(n + 1) : 0) + room[7];
}

static void *digs(void *arg)
{
	return (void *)deeper(0);
}

static char *volatile lowest;

static void *writes_below(void *arg)
{
	char here = 0;
	lowest = &here;
	/* Its stack has one page; not by memset, which a compiler would leave out. */
	volatile char *p = (char *)((uintptr_t)lowest & ~4095ul);
	for (int i = 0; i < 64; i++)
		p[i] = 7;
	weft_ult_yield();
	weft_ult_park_for(1);
	return NULL;
}

static void run_small(void *(*fn)(void *))
{
	struct weft_ult_attr a = WEFT_ULT_ATTR_INIT;
	weft_ult *t;
	a.name = "digger";
	a.stack_size = 4096;
	CHECK_EQ(weft_ult_start(1), WEFT_OK);
	CHECK_EQ(weft_ult_create(&t, &a, fn, NULL), WEFT_OK);
	CHECK_EQ(weft_ult_join(t, NULL), WEFT_OK);
}

static void overflows(void)
{
	run_small(digs);
}

static void overflows_without_light_guards(void)
{
	CHECK_EQ(weft_setting_set(WEFT_SET_ULT_GUARDS, "100"), WEFT_OK);
	run_small(digs);
}

static void overflows_without_guards(void)
{
	CHECK_EQ(weft_setting_set(WEFT_SET_ULT_GUARDS, "0"), WEFT_OK);
	run_small(writes_below);
}

static _Atomic int x_handled;

static void handle(int sig)
{
	atomic_fetch_add(&x_handled, 1);
}

static void raises(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	raise(SIGUSR2);
}

/* A signal that its thread lets in, on a stack that has no room for the handler's frame. */
static void *is_signalled(void *arg)
{
	volatile char room[2800]; /* no frame of a handler fits beside it */
	room[0] = room[sizeof room - 1] = 1;
	raises();
	return room[0] ? arg : NULL;
}

/* There is room for the frame, not for what the handler does. */
static void *is_signalled_early(void *arg)
{
	raises();
	return arg;
}

static void dig_in_handler(int sig)
{
	(void)deeper(sig);
}

static void handler_digs(void)
{
	struct sigaction a = {.sa_handler = dig_in_handler};
	CHECK_EQ(sigaction(SIGUSR2, &a, NULL), 0);
	run_small(is_signalled_early);
}

static void handles(int flags)
{
	struct sigaction a = {.sa_handler = handle, .sa_flags = flags};
	CHECK_EQ(sigaction(SIGUSR2, &a, NULL), 0);
	run_small(is_signalled);
}

static void handles_on_its_stack(void)
{
	handles(0);
}

static void handles_on_the_signal_stack(void)
{
	handles(SA_ONSTACK);
	CHECK_EQ(atomic_load(&x_handled), 1);
	raise(SIGABRT);
}

static void check_message(const char *how)
{
	if (!strstr(said, "\"digger\"") || !strstr(said, "4096 bytes") || !strstr(said, how))
		fprintf(stderr, "said: %s\n", said);
	CHECK(strstr(said, "\"digger\""));
	CHECK(strstr(said, "4096 bytes"));
	CHECK(strstr(said, how));
}

/* ---- many ------------------------------------------------------------------------------------ */

static _Atomic int x_begun, x_open, x_ended;

static void *waits(void *arg)
{
	atomic_fetch_add(&x_begun, 1);
	while (!atomic_load(&x_open))
		weft_ult_park();
	atomic_fetch_add(&x_ended, 1);
	return arg;
}

/* The addresses of nearly all beyond a worker's first 4,096 tell where their stacks end. */
static void check_guesses(weft_ult **t, int n)
{
	int asked = 0, right = 0;
	for (int i = 0; i < n; i++) {
		if (t[i]->slot < WEFT_READY_CHUNK)
			continue;
		asked++;
		CHECK(!weft_ult_guess(t[i], t[i]->home->id ^ 1));
		right += weft_ult_guess(t[i], t[i]->home->id) ==
			 t[i]->stack + weft_ult_stack_bytes(t[i]->class);
	}
	CHECK(asked == 0 ? n <= 2 * (int)WEFT_READY_CHUNK : right >= asked / 10 * 9);
}

static void begin_many(void)
{
	atomic_store(&x_begun, 0);
	atomic_store(&x_ended, 0);
	atomic_store(&x_open, 0);
}

static char **stack_of; /* if wanted: the lowest bytes of the stacks of those that were made last */

static void many_at_once(int n)
{
	struct weft_ult_attr a = WEFT_ULT_ATTR_INIT;
	weft_ult **t = malloc(sizeof(*t) * (size_t)n);
	CHECK(t);
	begin_many();
	a.stack_size = 4096;
	CHECK_EQ(weft_ult_start(2), WEFT_OK);
	for (long i = 0; i < n; i++)
		CHECK_EQ(weft_ult_create(&t[i], &a, waits, (void *)i), WEFT_OK);
	while (atomic_load(&x_begun) < n)
		weft_ult_sleep_ns(1000000);
	CHECK_EQ(atomic_load(&x_ended), 0);
	check_guesses(t, n);
	for (int i = 0; stack_of && i < n; i++)
		stack_of[i] = t[i]->stack;
	atomic_store(&x_open, 1);
	for (int i = 0; i < n; i++)
		weft_ult_unpark(t[i]);
	for (long i = 0; i < n; i++) {
		void *result;
		CHECK_EQ(weft_ult_join(t[i], &result), WEFT_OK);
		CHECK_EQ((long)result, i);
	}
	CHECK_EQ(atomic_load(&x_ended), n);
	CHECK_EQ(weft_ult_stop(), WEFT_OK);
	free(t);
}

#if !WEFT_ULT_SANITIZED
static weft_ult_sem dig_now = WEFT_ULT_SEM_INIT(0);

static void *digs_late(void *arg)
{
	CHECK_EQ(weft_ult_sem_wait(&dig_now), WEFT_OK);
	return arg ? writes_below(NULL) : digs(NULL);
}

/* One that was there before a million others, or after them. */
static void overflows_among_many(const char *guards, bool last)
{
	struct weft_ult_attr a = WEFT_ULT_ATTR_INIT;
	weft_ult *t, *digger;
	if (guards)
		CHECK_EQ(weft_setting_set(WEFT_SET_ULT_GUARDS, guards), WEFT_OK);
	CHECK_EQ(weft_ult_start(2), WEFT_OK);
	for (int i = 0; i <= 1000000; i++) {
		bool digging = i == (last ? 1000000 : 0);
		a.stack_size = 4096;
		a.name = digging ? "digger" : NULL;
		CHECK_EQ(weft_ult_create(digging ? &digger : &t, &a, digging ? digs_late : waits,
					 last && guards ? &dig_now : NULL),
			 WEFT_OK);
	}
	while (atomic_load(&x_begun) < 1000000)
		weft_ult_sleep_ns(1000000);
	weft_ult_sem_post(&dig_now);
	CHECK_EQ(weft_ult_join(digger, NULL), WEFT_OK);
}

static void first_of_a_million(void)
{
	overflows_among_many(NULL, false);
}

static void last_of_a_million(void)
{
	overflows_among_many(NULL, true);
}

static void first_of_a_million_mprotected(void)
{
	overflows_among_many("10000", false);
}

static void last_of_a_million_mprotected(void)
{
	overflows_among_many("10000", true); /* beyond the guards: it has a canary */
}

static void overflows_of_a_million(void)
{
	dies("first of a million", first_of_a_million);
	check_message("found by the guard");
	dies("last of a million", last_of_a_million);
	check_message("found by the guard");
	dies("first of a million, mprotect", first_of_a_million_mprotected);
	check_message("found by the guard");
	dies("last of a million, canary", last_of_a_million_mprotected);
	check_message("found at a switch");
}

static long resident_kib(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	CHECK(f);
	CHECK_EQ(fscanf(f, "%*d %ld", &pages), 1);
	fclose(f);
	return pages * 4;
}

/* What was given back the kernel takes when it needs memory, as here, where it is asked to; pages
 * that were not given back would have to go to a swap area. */
static void gives_way(void)
{
	enum { MANY = 100000 };
	CHECK_EQ(weft_setting_set(WEFT_SET_ULT_KEEP, "0"), WEFT_OK);
	CHECK((stack_of = malloc(sizeof(*stack_of) * MANY)));
	many_at_once(MANY);
	long before = resident_kib();
	for (int i = 0; i < MANY; i++)
		(void)madvise(stack_of[i], 4096, MADV_PAGEOUT);
	long after = resident_kib();
	printf("%ld KiB, %ld when the kernel has taken what it may\n", before, after);
	CHECK(after < before - MANY * 4 / 2);
	free(stack_of);
	stack_of = NULL;
}
#endif

/* Two rounds of threads, all of whose memory is given back: more than one worker keeps. */
static void gives_back(void)
{
	CHECK_EQ(weft_setting_set(WEFT_SET_ULT_KEEP, "0"), WEFT_OK);
	for (int round = 0; round < 2; round++)
		many_at_once(300); /* joined, and given, from outside */
}

/* Dead stacks beyond what may be kept are given back, and good for other threads. */
static void given_back(void)
{
	char *text = NULL;
	size_t size = 0;
	gives_back();
	FILE *f = open_memstream(&text, &size);
	weft_ult_stack_describe(f);
	fclose(f);
	if (!strstr(text, "given back"))
		fprintf(stderr, "%s", text);
	CHECK(strstr(text, "given back"));
	free(text);
}

#if !WEFT_ULT_SANITIZED
/* Ranges that are given back include guards: they stay. */
static void overflows_on_given_back(void)
{
	gives_back();
	run_small(digs);
}
#endif

/* ---- no mappings left ------------------------------------------------------------------------ */

#define MAPPINGS_MOST 300000

static void *is_nothing(void *arg)
{
	return arg;
}

static weft_err create_and_join(size_t stack_size)
{
	struct weft_ult_attr a = WEFT_ULT_ATTR_INIT;
	weft_ult *t;
	a.stack_size = stack_size;
	weft_err err = weft_ult_create(&t, &a, is_nothing, NULL);
	if (!err)
		CHECK_EQ(weft_ult_join(t, NULL), WEFT_OK);
	return err;
}

/* The application has used up vm.max_map_count: an error for a thread that needs a new stack, no
 * more. */
static void no_mappings_left(void)
{
	const size_t page = 4096, size = MAPPINGS_MOST * page;
	size_t used = 0;
	CHECK_EQ(weft_ult_start(1), WEFT_OK);
	CHECK_EQ(create_and_join(4096), WEFT_OK);
	char *m = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(m != MAP_FAILED);
	/* Every other page readable: each a mapping, and the gap behind it one. */
	while (used + 2 * page < size && mprotect(m + used, page, PROT_READ) == 0)
		used += 2 * page;
	if (used + 2 * page < size) { /* else this machine has more than we try */
		/* There may be room for one: the next must fail. */
		char *more[4];
		int n = 0;
		while (n < 4 && (more[n] = mmap(NULL, page, n % 2 ? PROT_NONE : PROT_READ,
						MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED)
			n++;
		if (n < 4) {
			CHECK_EQ(create_and_join(1 << 20), WEFT_ERR_NOMEM);
			CHECK_EQ(create_and_join(4096), WEFT_OK); /* has its stack */
		}
		while (n > 0)
			munmap(more[--n], page);
	}
	CHECK_EQ(munmap(m, size), 0);
	CHECK_EQ(create_and_join(1 << 20), WEFT_OK);
	CHECK_EQ(weft_ult_stop(), WEFT_OK);
}

int main(void)
{
	CHECK_EQ(weft_settings_load(), WEFT_OK);
#if !WEFT_ULT_SANITIZED
	dies("light guards", overflows);
	check_message("found by the guard");
	dies("mprotect", overflows_without_light_guards);
	check_message("found by the guard");
	dies("canary", overflows_without_guards);
	check_message("found at a switch");
	dies("given back", overflows_on_given_back);
	check_message("found by the guard");
	dies("handler with SA_ONSTACK", handles_on_the_signal_stack);
	CHECK(!said[0]);
	dies("handler without", handles_on_its_stack);
	check_message("it was to handle signal 12, without SA_ONSTACK");
	dies("handler that digs", handler_digs);
	check_message("found by the guard");
#ifdef __x86_64__
	check_message("in the handler of signal 12, without SA_ONSTACK");
#endif
	if (getenv("WEFT_LONG"))
		overflows_of_a_million();
	no_mappings_left(); /* from here on this process has guards of one kind */
	if (getenv("WEFT_LONG"))
		gives_way();
#endif
	given_back();
	for (int round = 0; round < (getenv("WEFT_LONG") ? 2 : 1); round++)
		many_at_once(getenv("WEFT_LONG") ? 1000000 : WEFT_ULT_SANITIZED ? 200 : 20000);
	return 0;
}
