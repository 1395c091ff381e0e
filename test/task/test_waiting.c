/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waits end when their completion comes, whichever thread polls: one and many waiters, one, any and all,
 * with and without background progress, with timeouts; a handler that waits is told so.
 */
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include "base/counters.h"
#include "base/settings.h"
#include "fake_source.h"
#include "task/engine_int.h"
#include "task/wake/arm.h"

static struct fake_source net;

static void signals(void *arg)
{
	weft_wait_completion_signal(arg);
}

struct pair {
	struct fake_msg msg;
	struct weft_completion done;
};

static void send_signal(struct pair *p)
{
	weft_wait_completion_init(&p->done);
	p->msg.fn = signals;
	p->msg.arg = &p->done;
	fake_send(&net, &p->msg);
}

static void waits_for_own_message(void)
{
	struct pair p;
	for (int i = 0; i < 1000; i++) {
		send_signal(&p);
		weft_task_engine_wait(&p.done);
	}
}

static void *sends_late(void *arg)
{
	struct pair *p = arg;
	usleep(20000);
	p->msg.fn = signals;
	p->msg.arg = &p->done;
	fake_send(&net, &p->msg);
	return NULL;
}

static void sleeps_and_is_woken(void)
{
	for (int i = 0; i < 5; i++) {
		struct pair p;
		pthread_t t;
		weft_wait_completion_init(&p.done);
		CHECK_EQ(pthread_create(&t, NULL, sends_late, &p), 0);
		weft_task_engine_wait(&p.done);
		CHECK_EQ(pthread_join(t, NULL), 0);
	}
}

static void *signals_late(void *arg)
{
	usleep(10000);
	weft_wait_completion_signal(arg);
	return NULL;
}

struct stays {
	struct pair p;
	bool says;
};

static void asks_and_signals(void *arg)
{
	struct stays *s = arg;
	s->says = weft_task_engine_stays(&s->p.done);
	weft_wait_completion_signal(&s->p.done);
}

static void send_question(struct stays *s)
{
	weft_wait_completion_init(&s->p.done);
	s->p.msg.fn = asks_and_signals;
	s->p.msg.arg = s;
	fake_send(&net, &s->p.msg);
}

/* A wait that may end before its completion promises nothing, unless the watcher goes on. */
static void stays_only_without_a_deadline(void)
{
	struct stays s;
	struct weft_completion *c = &s.p.done;
	send_question(&s);
	weft_task_engine_wait(c);
	CHECK(s.says);
	do { /* ends: switched off, the watcher is off in a moment */
		send_question(&s);
		CHECK_EQ(weft_task_engine_wait_all(&c, 1, 10000000000u), WEFT_OK);
		CHECK(s.says || !weft_progress_get());
	} while (s.says && !weft_progress_get());
}

/* Not a message but another thread of ours completes it: the sleeper in the watch set must wake. */
static void is_woken_by_a_thread(void)
{
	struct weft_completion c;
	pthread_t t;
	weft_wait_completion_init(&c);
	CHECK_EQ(pthread_create(&t, NULL, signals_late, &c), 0);
	weft_task_engine_wait(&c);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

static void times_out(void)
{
	struct weft_completion c[3], *p[3] = {&c[0], &c[1], &c[2]};
	for (int i = 0; i < 3; i++)
		weft_wait_completion_init(&c[i]);
	uint64_t t0 = weft_clock_ns();
	CHECK_EQ(weft_task_engine_wait_all(p, 3, 3000000), WEFT_ERR_TIMEOUT);
	CHECK_EQ(weft_task_engine_wait_any(p, 3, 3000000), WEFT_ERR_TIMEOUT);
	CHECK(weft_clock_ns() - t0 >= 6000000);
	weft_wait_completion_signal(&c[1]);
	CHECK_EQ(weft_task_engine_wait_any(p, 3, WEFT_FOREVER), WEFT_OK);
	CHECK_EQ(weft_task_engine_wait_all(p, 3, 0), WEFT_ERR_TIMEOUT);
	weft_wait_completion_signal(&c[0]);
	p[2] = NULL;
	CHECK_EQ(weft_task_engine_wait_all(p, 3, WEFT_FOREVER), WEFT_OK);
	CHECK_EQ(weft_task_engine_wait_all(p, 0, WEFT_FOREVER), WEFT_OK);
}

static void any_and_all_of_many(size_t n)
{
	struct pair *p = calloc(n, sizeof *p);
	struct weft_completion **c = calloc(n, sizeof *c);
	for (size_t i = 0; i < n; i++) {
		weft_wait_completion_init(&p[i].done);
		c[i] = &p[i].done;
	}
	pthread_t t;
	CHECK_EQ(pthread_create(&t, NULL, sends_late, &p[n / 2]), 0);
	CHECK_EQ(weft_task_engine_wait_any(c, n, WEFT_FOREVER), WEFT_OK);
	CHECK(weft_wait_completion_done(c[n / 2]));
	CHECK_EQ(pthread_join(t, NULL), 0);
	for (size_t i = 0; i < n; i++)
		if (i != n / 2 && i != n - 1)
			send_signal(&p[i]);
	CHECK_EQ(pthread_create(&t, NULL, sends_late, &p[n - 1]), 0);
	CHECK_EQ(weft_task_engine_wait_all(c, n, WEFT_FOREVER), WEFT_OK);
	CHECK_EQ(pthread_join(t, NULL), 0);
	free(p);
	free(c);
}

/* ---- many threads, each waiting for its own message --------------------------------------------
 */

#define THREADS_MAX 64

static struct pair box[THREADS_MAX];
static _Atomic int x_ready[THREADS_MAX];
static int threads, turns;

static void *waits_for_own(void *arg)
{
	intptr_t me = (intptr_t)arg;
	for (int i = 0; i < turns; i++) {
		weft_wait_completion_init(&box[me].done);
		atomic_store(&x_ready[me], 1);
		weft_task_engine_wait(&box[me].done);
	}
	return NULL;
}

static void *waits_on(void *arg)
{
	weft_task_engine_wait(arg);
	return NULL;
}

static void many_wait(int n, int rounds, uint64_t *seed)
{
	pthread_t t[THREADS_MAX];
	threads = n;
	turns = rounds;
	for (intptr_t i = 0; i < n; i++) {
		box[i].msg.fn = signals;
		box[i].msg.arg = &box[i].done;
		CHECK_EQ(pthread_create(&t[i], NULL, waits_for_own, (void *)i), 0);
	}
	int left[THREADS_MAX], total = n * rounds;
	for (int i = 0; i < n; i++)
		left[i] = rounds;
	while (total) {
		int i = (int)(weft_rand_next(seed) % (unsigned)n);
		if (!left[i] || !atomic_exchange(&x_ready[i], 0)) {
			sched_yield();
			continue;
		}
		left[i]--;
		total--;
		if (weft_rand_next(seed) % 64 == 0)
			usleep(100); /* lets the others fall asleep, that is a state too */
		fake_send(&net, &box[i].msg);
	}
	for (int i = 0; i < n; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

/* ---- a handler may not wait --------------------------------------------------------------------
 */

static weft_err handler_err;

static void waits_inside(void *arg)
{
	struct pair *p = arg;
	struct weft_completion never, *c = &never;
	weft_wait_completion_init(&never);
	CHECK(weft_engine_in_handler());
	handler_err = weft_task_engine_wait_all(&c, 1, WEFT_FOREVER);
	CHECK_EQ(weft_engine_poll(), 0);
	weft_wait_completion_signal(&p->done);
}

static void handler_is_refused(void)
{
	struct pair p = {.msg = {.fn = waits_inside, .arg = &p}};
	weft_wait_completion_init(&p.done);
	fake_send(&net, &p.msg);
	weft_task_engine_wait(&p.done);
	CHECK_EQ(handler_err, WEFT_ERR_DEADLOCK);
	CHECK(!weft_engine_in_handler());
}

/* ---- sources that come and go
 * -------------------------------------------------------------------- */

static struct fake_source passing;

static void removes_itself(void *arg)
{
	weft_task_source_remove(&passing.source);
	weft_wait_completion_signal(arg);
}

static void source_leaves_from_inside(void)
{
	struct pair p = {.msg = {.fn = removes_itself, .arg = &p.done}};
	weft_wait_completion_init(&p.done);
	memset((void *)&passing, 0, sizeof passing);
	fake_add(&passing, "passing", true);
	fake_send(&passing, &p.msg);
	weft_task_engine_wait(&p.done);
	/* Another thread may be on its way out of the poll that removed it. */
	while (atomic_load(&passing.x_inside))
		sched_yield();
	long polls = atomic_load(&passing.x_polls);
	for (int i = 0; i < 10; i++)
		weft_engine_poll();
	CHECK_EQ(atomic_load(&passing.x_polls), polls);
	close(passing.fd);
}

/* A waiter asleep does not miss a source that came after it fell asleep; one that cannot be armed
 * is looked at by the timer. */
static void source_comes_late(bool can_arm)
{
	struct pair p = {.msg = {.fn = signals, .arg = &p.done}};
	pthread_t t;
	weft_wait_completion_init(&p.done);
	memset((void *)&passing, 0, sizeof passing);
	CHECK_EQ(pthread_create(&t, NULL, waits_on, &p.done), 0);
	usleep(5000);
	fake_add(&passing, "late", can_arm);
	usleep(5000);
	fake_send(&passing, &p.msg);
	CHECK_EQ(pthread_join(t, NULL), 0);
	fake_remove(&passing);
}

static void all_of_it(uint64_t *seed)
{
	waits_for_own_message();
	sleeps_and_is_woken();
	is_woken_by_a_thread();
	stays_only_without_a_deadline();
	times_out();
	any_and_all_of_many(3);
	any_and_all_of_many(64);
	any_and_all_of_many(200);
	many_wait(2, 2000, seed);
	many_wait(16, 200, seed);
	many_wait(64, 50, seed);
	handler_is_refused();
	source_leaves_from_inside();
	source_comes_late(true);
	source_comes_late(false);
}

int main(int argc, char **argv)
{
	uint64_t seed = test_seed(argc, argv);
	CHECK_EQ(weft_setting_set(WEFT_SET_LOG, "error"), WEFT_OK);
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	fake_add(&net, "fake", true);
	all_of_it(&seed);
	weft_task_sources_check(&weft_task_engine);
	weft_progress_set(false);
	CHECK(!weft_progress_get());
	all_of_it(&seed);
	weft_task_sources_check(&weft_task_engine);
	weft_progress_set(true);
	all_of_it(&seed);
	weft_task_sources_check(&weft_task_engine);
	fake_remove(&net);
	weft_engine_stop();
	return 0;
}
