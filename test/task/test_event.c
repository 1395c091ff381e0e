/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Event sources by callbacks: one call detects many, priorities order the looks, a blocking call
 * serves while no thread polls, the choice can be overridden, requests are withdrawn, posted again
 * from their own function, and end when the source is closed.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <weft/policy.h>
#include <weft/source.h>
#include "base/counters.h"
#include "base/settings.h"
#include "check.h"
#include "task/task.h"

/* A device: requests are numbers, each is there once the device's clock has reached it. */
struct device {
	_Atomic long x_clock;
	_Atomic long x_polls, x_groups, x_blocks;
	_Atomic bool x_unblock;
	int order[64], ordered; /* priorities in order of looks */
	sem_t tick;
};

struct wish {
	struct weft_event ev; /* first */
	long at;
	int runs;
};

static bool there(struct device *d, const struct weft_event *ev, int64_t *result_p)
{
	long now = atomic_load(&d->x_clock);
	if (now < ((const struct wish *)ev)->at)
		return false;
	*result_p = now;
	return true;
}

static bool device_poll(void *arg, struct weft_event *ev, int64_t *result_p)
{
	struct device *d = arg;
	atomic_fetch_add(&d->x_polls, 1);
	if (d->ordered < 64)
		d->order[d->ordered++] = ev->priority;
	return there(d, ev, result_p);
}

static void device_poll_group(void *arg, struct weft_events *es)
{
	struct device *d = arg;
	int64_t result;
	atomic_fetch_add(&d->x_groups, 1);
	for (struct weft_event *ev = weft_events_first(es); ev; ev = weft_events_next(es))
		if (there(d, ev, &result))
			weft_event_complete(ev, result);
}

/* Sleeps until the clock ticks or it is told to come back. */
static void sleep_tick(struct device *d)
{
	atomic_fetch_add(&d->x_blocks, 1);
	while (sem_wait(&d->tick) && errno == EINTR)
		;
}

static bool device_block(void *arg, struct weft_event *ev, int64_t *result_p)
{
	struct device *d = arg;
	sleep_tick(d);
	return there(d, ev, result_p);
}

static void device_block_group(void *arg, struct weft_events *es)
{
	sleep_tick(arg);
}

static void device_unblock(void *arg)
{
	struct device *d = arg;
	sem_post(&d->tick);
}

static void tick(struct device *d, long now)
{
	atomic_store(&d->x_clock, now);
	sem_post(&d->tick);
}

static void device_init(struct device *d)
{
	memset((void *)d, 0, sizeof *d);
	CHECK_EQ(sem_init(&d->tick, 0, 0), 0);
}

static void wish_init(struct wish *w, long at, int priority)
{
	memset((void *)w, 0, sizeof *w);
	weft_event_init(&w->ev, NULL, NULL);
	w->at = at;
	w->ev.priority = priority;
}

static void one_call_finds_many(void)
{
	struct device d;
	struct weft_events *es;
	struct weft_events_ops ops = {.name = "device", .poll_group = device_poll_group};
	enum { N = 100 };
	static struct wish w[N];
	struct weft_event *ev[N];
	device_init(&d);
	CHECK_EQ(weft_events_open(&ops, &d, &es), WEFT_OK);
	for (int i = 0; i < N; i++) {
		wish_init(&w[i], 1, 0);
		ev[i] = &w[i].ev;
		CHECK_EQ(weft_event_post(es, ev[i]), WEFT_OK);
		CHECK(!weft_event_done(ev[i]));
		CHECK_EQ(weft_event_post(es, ev[i]), WEFT_ERR_STATE);
	}
	atomic_store(&d.x_clock, 1);
	long before = atomic_load(&d.x_groups);
	weft_events_look(es);
	CHECK_EQ(weft_event_wait_all(ev, N, WEFT_FOREVER), WEFT_OK);
	/* Our look and perhaps one of the watcher's; not one per request. */
	CHECK(atomic_load(&d.x_groups) - before < 10);
	for (int i = 0; i < N; i++)
		CHECK_EQ(weft_event_result(ev[i]), 1);
	CHECK_EQ(weft_events_close(es), WEFT_OK);
}

static void looks_go_by_priority(void)
{
	struct device d;
	struct weft_events *es;
	struct weft_events_ops ops = {.name = "device", .poll = device_poll};
	static const int priority[] = {3, -1, 7, 3, 0};
	static const int want[] = {7, 3, 3, 0, -1};
	struct wish w[5];
	device_init(&d);
	CHECK_EQ(weft_events_open(&ops, &d, &es), WEFT_OK);
	for (int i = 0; i < 5; i++) {
		wish_init(&w[i], 1, priority[i]);
		CHECK_EQ(weft_event_post(es, &w[i].ev), WEFT_OK);
	}
	/* Progress is off: no other thread looks. */
	d.ordered = 0;
	weft_events_look(es);
	CHECK_EQ(d.ordered, 5);
	for (int i = 0; i < 5; i++)
		CHECK_EQ(d.order[i], want[i]);
	CHECK_EQ(weft_events_close(es), WEFT_OK);
	for (int i = 0; i < 5; i++) {
		CHECK(weft_event_done(&w[i].ev));
		CHECK_EQ(weft_event_result(&w[i].ev), -ECANCELED);
	}
}

/* No thread polls and there is no descriptor: the blocking call brings the event. */
static void blocking_calls_serve(bool group)
{
	struct device d;
	struct weft_events *es;
	struct weft_events_ops ops = {.name = "device", .unblock = device_unblock};
	struct wish w;
	device_init(&d);
	if (group) {
		ops.poll_group = device_poll_group;
		ops.block_group = device_block_group;
	} else {
		ops.block = device_block;
	}
	CHECK_EQ(weft_events_open(&ops, &d, &es), WEFT_OK);
	for (long at = 1; at <= 20; at++) {
		wish_init(&w, at, 0);
		CHECK_EQ(weft_event_post(es, &w.ev), WEFT_OK);
		if (at % 2) {
			while (!atomic_load(&d.x_blocks))
				sched_yield();
			tick(&d, at);
			while (!weft_event_done(&w.ev))
				sched_yield();
		} else {
			tick(&d, at);
			CHECK_EQ(weft_event_wait(&w.ev, WEFT_FOREVER), WEFT_OK);
		}
		CHECK(weft_event_result(&w.ev) >= at);
	}
	CHECK(atomic_load(&d.x_blocks) > 0);
	wish_init(&w, 1000, 0);
	CHECK_EQ(weft_event_post(es, &w.ev), WEFT_OK);
	weft_event_cancel(&w.ev);
	CHECK_EQ(weft_event_wait(&w.ev, WEFT_FOREVER), WEFT_OK);
	CHECK_EQ(weft_event_result(&w.ev), -ECANCELED);
	wish_init(&w, 1000, 0);
	CHECK_EQ(weft_event_post(es, &w.ev), WEFT_OK);
	CHECK_EQ(weft_events_close(es), WEFT_OK);
	CHECK_EQ(weft_event_result(&w.ev), -ECANCELED);
}

static _Atomic int x_asked;
static _Atomic int x_answer;

static enum weft_events_method choose(void *arg, const struct weft_events_load *load)
{
	CHECK(load->cores > 0);
	CHECK(load->requests > 0 || load->requests == 0);
	atomic_fetch_add(&x_asked, 1);
	return (enum weft_events_method)atomic_load(&x_answer);
}

static void choice_is_the_callers(void)
{
	struct device d;
	struct weft_events *es;
	struct weft_events_ops ops = {.name = "device",
				      .poll_group = device_poll_group,
				      .block_group = device_block_group,
				      .unblock = device_unblock,
				      .choose = choose};
	struct wish w;
	device_init(&d);
	CHECK_EQ(weft_events_open(&ops, &d, &es), WEFT_OK);
	/* Polling only: no blocking call, even while a thread waits. */
	atomic_store(&x_answer, WEFT_EVENTS_POLL);
	wish_init(&w, 1, 0);
	CHECK_EQ(weft_event_post(es, &w.ev), WEFT_OK);
	CHECK_EQ(weft_event_wait(&w.ev, 3000000), WEFT_ERR_TIMEOUT);
	CHECK_EQ(atomic_load(&d.x_blocks), 0);
	CHECK(atomic_load(&x_asked) > 0);
	atomic_store(&d.x_clock, 1);
	CHECK_EQ(weft_event_wait(&w.ev, WEFT_FOREVER), WEFT_OK);
	/* Blocking only: at once, although a waiter polls. */
	atomic_store(&x_answer, WEFT_EVENTS_BLOCK);
	wish_init(&w, 2, 0);
	CHECK_EQ(weft_event_post(es, &w.ev), WEFT_OK);
	while (!atomic_load(&d.x_blocks)) /* ends: the source's thread makes the call */
		sched_yield();
	tick(&d, 2);
	while (!weft_event_done(&w.ev))
		sched_yield();
	CHECK_EQ(weft_events_close(es), WEFT_OK);
}

static enum weft_events_method choose_for_all(void *arg, const char *name,
					      const struct weft_events_load *load)
{
	CHECK(arg == &x_asked);
	CHECK_EQ(strcmp(name, "device"), 0);
	return choose(arg, load);
}

/* The same for a source that says nothing, by the program's policy; AUTO: the default's. */
static void choice_is_the_programs(void)
{
	static const struct weft_policy program = {.source = choose_for_all, .arg = &x_asked};
	struct device d;
	struct weft_events *es;
	struct weft_events_ops ops = {.name = "device",
				      .poll_group = device_poll_group,
				      .block_group = device_block_group,
				      .unblock = device_unblock};
	struct wish w;
	weft_policy_set(&program);
	device_init(&d);
	CHECK_EQ(weft_events_open(&ops, &d, &es), WEFT_OK);
	atomic_store(&x_asked, 0);
	atomic_store(&x_answer, WEFT_EVENTS_POLL);
	wish_init(&w, 1, 0);
	CHECK_EQ(weft_event_post(es, &w.ev), WEFT_OK);
	CHECK_EQ(weft_event_wait(&w.ev, 3000000), WEFT_ERR_TIMEOUT);
	CHECK_EQ(atomic_load(&d.x_blocks), 0);
	CHECK(atomic_load(&x_asked) > 0);
	atomic_store(&d.x_clock, 1);
	CHECK_EQ(weft_event_wait(&w.ev, WEFT_FOREVER), WEFT_OK);
	atomic_store(&x_answer, WEFT_EVENTS_AUTO);
	wish_init(&w, 2, 0);
	CHECK_EQ(weft_event_post(es, &w.ev), WEFT_OK);
	while (!atomic_load(&d.x_blocks)) /* ends: no thread polls, so the default blocks */
		sched_yield();
	tick(&d, 2);
	while (!weft_event_done(&w.ev))
		sched_yield();
	CHECK_EQ(weft_events_close(es), WEFT_OK);
	weft_policy_set(NULL);
}

static bool again(struct weft_event *ev)
{
	struct wish *w = (struct wish *)ev;
	if (++w->runs == 1000)
		return false;
	if (w->runs == 1) /* a handler may not wait */
		CHECK_EQ(weft_event_wait(ev, 1), WEFT_ERR_DEADLOCK);
	CHECK_EQ(weft_event_post(ev->user, ev), WEFT_OK);
	return true;
}

static void functions_post_again(void)
{
	struct device d;
	struct weft_events *es;
	struct weft_events_ops ops = {.name = "device", .poll = device_poll};
	struct wish w;
	device_init(&d);
	CHECK_EQ(weft_events_open(&ops, &d, &es), WEFT_OK);
	wish_init(&w, 0, 0);
	weft_event_init(&w.ev, again, es);
	CHECK_EQ(weft_event_post(es, &w.ev), WEFT_OK);
	CHECK_EQ(weft_event_wait(&w.ev, WEFT_FOREVER), WEFT_OK);
	CHECK_EQ(w.runs, 1000);
	CHECK_EQ(weft_events_close(es), WEFT_OK);
}

/* Posters, cancellers and waiters at once; each event ends exactly once. */
struct crowd {
	struct device *d;
	struct weft_events *es;
	int rounds;
	unsigned long long seed;
};

static void *crowd_member(void *arg)
{
	struct crowd *c = arg;
	for (int i = 0; i < c->rounds; i++) {
		struct wish w;
		uint64_t r = weft_rand_next((uint64_t *)&c->seed);
		long now = atomic_load(&c->d->x_clock);
		wish_init(&w, r % 4 == 0 ? now + 1000000 : now + (long)(r % 3), (int)(r % 5));
		CHECK_EQ(weft_event_post(c->es, &w.ev), WEFT_OK);
		atomic_fetch_add(&c->d->x_clock, 1);
		if (r % 4 == 0)
			weft_event_cancel(&w.ev);
		else if (r % 8 == 1)
			weft_events_look(c->es);
		while (weft_event_wait(&w.ev, 1000000) == WEFT_ERR_TIMEOUT)
			atomic_fetch_add(&c->d->x_clock, 1);
		CHECK(weft_event_result(&w.ev) == -ECANCELED || weft_event_result(&w.ev) >= w.at);
		CHECK(r % 4 == 0 || weft_event_result(&w.ev) != -ECANCELED);
		memset((void *)&w, 0xa5, sizeof w); /* ours again */
	}
	return NULL;
}

static void crowds(void)
{
	struct device d;
	struct weft_events *es;
	struct weft_events_ops ops = {.name = "device", .poll_group = device_poll_group};
	pthread_t t[4];
	struct crowd c[4];
	device_init(&d);
	CHECK_EQ(weft_events_open(&ops, &d, &es), WEFT_OK);
	for (int i = 0; i < 4; i++) {
		c[i] = (struct crowd){.d = &d, .es = es, .rounds = 300, .seed = 7u + (unsigned)i};
		CHECK_EQ(pthread_create(&t[i], NULL, crowd_member, &c[i]), 0);
	}
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	CHECK_EQ(weft_events_close(es), WEFT_OK);
}

static void refuses_nonsense(void)
{
	struct weft_events *es;
	struct weft_events_ops ops = {.name = "nothing"};
	CHECK_EQ(weft_events_open(NULL, NULL, &es), WEFT_ERR_ARG);
	CHECK_EQ(weft_events_open(&ops, NULL, &es), WEFT_ERR_ARG);
	ops.block_group = device_block_group; /* without a poll that finds which request */
	CHECK_EQ(weft_events_open(&ops, NULL, &es), WEFT_ERR_ARG);
	ops = (struct weft_events_ops){
		.name = "bad", .poll_group = device_poll_group, .has_fd = true, .fd = 9999};
	CHECK_EQ(weft_events_open(&ops, NULL, &es), WEFT_ERR_SYS);
	CHECK_EQ(weft_events_close(NULL), WEFT_OK);
}

int main(void)
{
	CHECK_EQ(weft_setting_set(WEFT_SET_PROGRESS, "off"), WEFT_OK);
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	looks_go_by_priority();
	for (int on = 0; on < 2; on++) {
		weft_progress_set(on);
		one_call_finds_many();
		functions_post_again();
		blocking_calls_serve(false);
		blocking_calls_serve(true);
		choice_is_the_callers();
		choice_is_the_programs();
		crowds();
	}
	refuses_nonsense();
	weft_engine_stop();
	return 0;
}
