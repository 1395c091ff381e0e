/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine's descriptor and wait sets: with background progress and without it an event loop that
 * sleeps in poll(2) misses nothing and is told by arming what is there already; nothing is readable
 * while nothing happens; what can only be polled lets it sleep between looks; a wait set gives each
 * thing out once, and may be destroyed with things in it.
 */
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <weft/pollable.h>
#include <weft/source.h>
#include "base/counters.h"
#include "check.h"
#include "task/engine_int.h"
#include "task/queue/weft_task.h"

static bool readable(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	return poll(&p, 1, ms) == 1;
}

/* As the header says: returns when ev is done. */
static void loop_until(struct weft_event *ev, int fd, weft_err (*arm)(void *), void *arg)
{
	while (!weft_event_done(ev)) {
		weft_err err = arm(arg);
		CHECK(err == WEFT_OK || err == WEFT_AGAIN);
		if (err == WEFT_OK && !weft_event_done(ev))
			CHECK(readable(fd, 30000)); /* a missing wake-up ends here */
		weft_engine_poll();
	}
}

static weft_err arm_engine(void *arg)
{
	return weft_engine_fd_arm();
}

struct pinger {
	struct weft_doorbell bell;
	int fd;
	_Atomic long x_wanted; /* rings asked for */
	_Atomic bool x_stop;
	long rung;
};

static void *ping(void *arg)
{
	struct pinger *p = arg;
	uint64_t seed = 3;
	while (!atomic_load(&p->x_stop)) {
		if (atomic_load(&p->x_wanted) <= p->rung) {
			sched_yield();
			continue;
		}
		for (uint64_t n = weft_rand_next(&seed) % 300; n; n--)
			weft_cpu_relax();
		p->rung++;
		weft_doorbell_ring(&p->bell, p->fd);
	}
	return NULL;
}

static void nothing_is_missed(int rounds, bool switching)
{
	static struct pinger p;
	struct weft_events *es;
	pthread_t t;
	int fd = weft_engine_fd();
	CHECK(fd >= 0);
	memset((void *)&p, 0, sizeof p);
	weft_doorbell_init(&p.bell);
	p.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	CHECK_EQ(weft_events_open_doorbells(&es), WEFT_OK);
	CHECK_EQ(pthread_create(&t, NULL, ping, &p), 0);
	for (int i = 0; i < rounds; i++) {
		struct weft_event ev;
		weft_event_init(&ev, NULL, NULL);
		CHECK_EQ(weft_event_post_doorbell(es, &ev, &p.bell, p.fd, (uint64_t)i), WEFT_OK);
		atomic_fetch_add(&p.x_wanted, 1);
		if (switching && i % 8 == 0)
			weft_progress_set(i % 16 == 0);
		loop_until(&ev, fd, arm_engine, NULL);
		CHECK_EQ(weft_event_result(&ev), i + 1);
	}
	atomic_store(&p.x_stop, true);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(weft_events_close(es), WEFT_OK);
	close(p.fd);
}

static enum weft_task_verdict run_task(struct weft_task *t, void *arg)
{
	atomic_fetch_add((_Atomic int *)arg, 1);
	return WEFT_TASK_DONE;
}

/* A few wake-ups for nothing are allowed, not one after the other. */
static void quiet_when_nothing_happens(void)
{
	int fd = weft_engine_fd(), woken = 0;
	for (int quiet = 0; quiet < 5; quiet++) {
		while (weft_engine_fd_arm() == WEFT_AGAIN)
			weft_engine_poll();
		if (readable(fd, 1)) {
			quiet = -1;
			CHECK(++woken < 100);
		}
	}
}

static weft_err arm_set(void *arg)
{
	return weft_waitset_arm(arg);
}

static void sets(void)
{
	enum { N = 40 };
	static struct weft_event ev[N];
	struct weft_events *es;
	struct weft_waitset *set;
	int p[N][2], seen[N] = {0};
	CHECK_EQ(weft_events_open_fds(&es), WEFT_OK);
	CHECK_EQ(weft_waitset_create(&set), WEFT_OK);
	for (int i = 0; i < N; i++) {
		CHECK_EQ(pipe(p[i]), 0);
		weft_event_init(&ev[i], NULL, NULL);
		CHECK_EQ(weft_event_post_fd(es, &ev[i], p[i][0], POLLIN), WEFT_OK);
		CHECK_EQ(weft_waitset_add_event(set, &ev[i], &ev[i]), WEFT_OK);
	}
	void *key[7];
	CHECK_EQ(weft_waitset_take(set, key, 7), 0);
	for (int i = 0; i < N / 2; i++)
		CHECK_EQ(write(p[i][1], "x", 1), 1);
	for (int got = 0; got < N / 2;) {
		size_t n = weft_waitset_take(set, key, 7);
		for (size_t k = 0; k < n; k++) {
			struct weft_event *e = key[k];
			CHECK(weft_event_done(e));
			CHECK_EQ(seen[e - ev]++, 0);
			got++;
		}
		if (!n && weft_waitset_arm(set) == WEFT_OK)
			CHECK(readable(weft_waitset_fd(set), 30000));
	}
	CHECK_EQ(weft_waitset_take(set, key, 7), 0);
	/* Done before it was added. */
	CHECK_EQ(weft_waitset_add_event(set, &ev[0], &ev[0]), WEFT_OK);
	CHECK_EQ(weft_waitset_arm(set), WEFT_AGAIN);
	CHECK_EQ(weft_waitset_take(set, key, 7), 1);
	CHECK(key[0] == &ev[0]);
	/* A task, too. */
	_Atomic int runs = 0;
	struct weft_task t;
	weft_task_init(&t, "in a set", run_task, (void *)&runs, 0);
	weft_task_submit(&t);
	CHECK_EQ(weft_waitset_add_task(set, &t, &t), WEFT_OK);
	while (!weft_waitset_take(set, key, 1))
		if (weft_waitset_arm(set) == WEFT_OK)
			CHECK(readable(weft_waitset_fd(set), 30000));
	CHECK(key[0] == &t && weft_task_done(&t));
	CHECK_EQ(write(p[N - 1][1], "x", 1), 1);
	loop_until(&ev[N - 1], weft_waitset_fd(set), arm_set, set);
	weft_waitset_destroy(set); /* one done and not taken, the others pending */
	CHECK_EQ(weft_events_close(es), WEFT_OK);
	for (int i = 0; i < N; i++) {
		close(p[i][0]);
		close(p[i][1]);
	}
}

/* Without threads: a submitted task makes the descriptor readable, and polling runs it. */
static void tasks_ring(void)
{
	_Atomic int runs = 0;
	struct weft_task t;
	int fd = weft_engine_fd();
	weft_task_init(&t, "rings", run_task, (void *)&runs, 0);
	while (weft_engine_fd_arm() == WEFT_AGAIN)
		weft_engine_poll();
	CHECK(!readable(fd, 0));
	weft_task_submit(&t);
	CHECK(readable(fd, 30000));
	while (!weft_task_done(&t))
		weft_engine_poll();
	CHECK_EQ(atomic_load(&runs), 1);
	/* Still there when a loop arms: AGAIN, or the task has run. */
	weft_task_submit(&t);
	CHECK_EQ(weft_engine_fd_arm(), WEFT_AGAIN);
	CHECK_EQ(atomic_load(&runs), 2);
}

static bool at_the_fifth_look(void *arg, struct weft_event *ev, int64_t *result_p)
{
	(void)ev;
	*result_p = 7;
	return ++*(int *)arg >= 5;
}

/* Without threads: for a source that can only be polled the loop sleeps, and looks at times. */
static void sleeps_between_looks(void)
{
	int looks = 0, slept = 0;
	struct weft_events_ops ops = {.name = "polled", .poll = at_the_fifth_look};
	struct weft_events *es;
	struct weft_event ev;
	int fd = weft_engine_fd();
	CHECK_EQ(weft_events_open(&ops, &looks, &es), WEFT_OK);
	weft_event_init(&ev, NULL, NULL);
	CHECK_EQ(weft_event_post(es, &ev), WEFT_OK);
	while (!weft_event_done(&ev))
		if (weft_engine_fd_arm() == WEFT_OK) {
			CHECK(readable(fd, 30000));
			slept++;
		}
	CHECK_EQ(weft_event_result(&ev), 7);
	CHECK(slept >= 2 && slept <= looks);
	CHECK_EQ(weft_events_close(es), WEFT_OK);
}

int main(void)
{
	CHECK_EQ(weft_engine_fd(), -1);
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	for (int on = 1; on >= 0; on--) {
		weft_progress_set(on);
		while (!on && atomic_load(&weft_task_engine.baton.x_watcher) != WEFT_WATCHER_OFF)
			sched_yield(); /* ends: it was told */
		nothing_is_missed(300, false);
		sets();
		if (!on) {
			tasks_ring();
			sleeps_between_looks();
			quiet_when_nothing_happens();
		}
	}
	nothing_is_missed(200, true);
	weft_engine_stop();
	CHECK_EQ(weft_engine_fd(), -1);
	return 0;
}
