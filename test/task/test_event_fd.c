/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ready-made sources: descriptors (many pipes by one source, both directions, closed while others
 * poll them), timers (in order, withdrawn, far ones), doorbells (none lost, with and without
 * sleep).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <weft/source.h>
#include "base/counters.h"
#include "base/settings.h"
#include "check.h"
#include "task/task.h"

static void put_byte(int fd)
{
	char c = 1;
	CHECK_EQ(write(fd, &c, 1), 1);
}

static void many_pipes(void)
{
	enum { N = 100 };
	static struct weft_event ev[N];
	static struct weft_event *all[N];
	int p[N][2];
	struct weft_events *es;
	CHECK_EQ(weft_events_open_fds(&es), WEFT_OK);
	for (int i = 0; i < N; i++) {
		CHECK_EQ(pipe2(p[i], O_CLOEXEC), 0);
		weft_event_init(&ev[i], NULL, NULL);
		all[i] = &ev[i];
		CHECK_EQ(weft_event_post_fd(es, &ev[i], p[i][0], POLLIN), WEFT_OK);
		CHECK(!weft_event_done(&ev[i]));
	}
	CHECK_EQ(weft_event_wait_any(all, N, 1000000), WEFT_ERR_TIMEOUT);
	for (int i = 0; i < N; i++)
		put_byte(p[i][1]);
	CHECK_EQ(weft_event_wait_all(all, N, WEFT_FOREVER), WEFT_OK);
	for (int i = 0; i < N; i++) {
		CHECK_EQ(weft_event_result(&ev[i]), POLLIN);
		/* Ready already: done when post returns, or with the next look. */
		CHECK_EQ(weft_event_post_fd(es, &ev[i], p[i][0], POLLIN), WEFT_OK);
		CHECK_EQ(weft_event_wait(&ev[i], WEFT_FOREVER), WEFT_OK);
		close(p[i][1]);
		weft_events_forget_fd(es, p[i][0]);
		close(p[i][0]);
	}
	CHECK_EQ(weft_events_close(es), WEFT_OK);
}

/* Reader and writer of one socket, several readers, a hang-up, a regular file, no descriptor. */
static void several_of_one(void)
{
	int s[2];
	struct weft_events *es;
	struct weft_event in[2], out, bad;
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s), 0);
	CHECK_EQ(weft_events_open_fds(&es), WEFT_OK);
	weft_event_init(&in[0], NULL, NULL);
	weft_event_init(&in[1], NULL, NULL);
	weft_event_init(&out, NULL, NULL);
	weft_event_init(&bad, NULL, NULL);
	CHECK_EQ(weft_event_post_fd(es, &in[0], s[0], POLLIN), WEFT_OK);
	CHECK_EQ(weft_event_post_fd(es, &out, s[0], POLLOUT), WEFT_OK);
	CHECK_EQ(weft_event_post_fd(es, &in[1], s[0], POLLIN), WEFT_OK);
	CHECK_EQ(weft_event_wait(&out, WEFT_FOREVER), WEFT_OK);
	CHECK_EQ(weft_event_result(&out), POLLOUT);
	CHECK(!weft_event_done(&in[0]) && !weft_event_done(&in[1]));
	weft_event_cancel(&in[0]);
	CHECK_EQ(weft_event_wait(&in[0], WEFT_FOREVER), WEFT_OK);
	CHECK_EQ(weft_event_result(&in[0]), -ECANCELED);
	CHECK(!weft_event_done(&in[1]));
	close(s[1]);
	CHECK_EQ(weft_event_wait(&in[1], WEFT_FOREVER), WEFT_OK);
	CHECK(weft_event_result(&in[1]) & POLLHUP);
	CHECK_EQ(weft_event_post_fd(es, &bad, -1, POLLIN), WEFT_OK);
	CHECK_EQ(weft_event_wait(&bad, WEFT_FOREVER), WEFT_OK);
	CHECK_EQ(weft_event_result(&bad), -EBADF);
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	CHECK_EQ(weft_event_post_fd(es, &bad, file, POLLIN), WEFT_OK);
	CHECK_EQ(weft_event_wait(&bad, WEFT_FOREVER), WEFT_OK);
	CHECK_EQ(weft_event_result(&bad), POLLIN);
	close(file);
	weft_events_forget_fd(es, s[0]);
	close(s[0]);
	CHECK_EQ(weft_events_close(es), WEFT_OK);
}

/* One thread waits for pipes, another closes them under it; numbers are used again at once. */
struct closer {
	struct weft_events *es;
	_Atomic int x_fd; /* to be closed; -1: none */
	_Atomic bool x_stop;
};

static void *closing(void *arg)
{
	struct closer *c = arg;
	while (!atomic_load(&c->x_stop)) {
		int fd = atomic_exchange(&c->x_fd, -1);
		if (fd < 0) {
			sched_yield();
			continue;
		}
		weft_events_forget_fd(c->es, fd);
		close(fd);
	}
	return NULL;
}

static void closed_while_polled(void)
{
	struct closer c;
	pthread_t t;
	int cancelled = 0, ready = 0;
	atomic_store(&c.x_fd, -1);
	atomic_store(&c.x_stop, false);
	CHECK_EQ(weft_events_open_fds(&c.es), WEFT_OK);
	CHECK_EQ(pthread_create(&t, NULL, closing, &c), 0);
	for (int i = 0; i < 200; i++) {
		int p[2];
		struct weft_event ev;
		CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
		weft_event_init(&ev, NULL, NULL);
		CHECK_EQ(weft_event_post_fd(c.es, &ev, p[0], POLLIN), WEFT_OK);
		if (i % 3 == 0)
			put_byte(p[1]);
		atomic_store(&c.x_fd, p[0]);
		CHECK_EQ(weft_event_wait(&ev, WEFT_FOREVER), WEFT_OK);
		if (weft_event_result(&ev) == -ECANCELED)
			cancelled++;
		else
			ready += weft_event_result(&ev) == POLLIN;
		while (atomic_load(&c.x_fd) != -1)
			sched_yield();
		close(p[1]);
	}
	CHECK_EQ(cancelled + ready, 200);
	CHECK(cancelled >= 133);
	atomic_store(&c.x_stop, true);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(weft_events_close(c.es), WEFT_OK);
}

static int order[16], ordered;

static bool note(struct weft_event *ev)
{
	order[ordered++] = (int)(intptr_t)ev->user;
	return false;
}

struct start {
	struct weft_event ev, *late;
	struct weft_events *es;
};

/* Posts nine that are due, while no thread can look: the next look finds all of them. */
static bool post_nine(struct weft_event *first)
{
	static const int when[] = {7, 3, 9, 1, 5, 2, 8, 4, 6};
	struct start *s = first->user;
	for (int i = 0; i < 9; i++) {
		weft_event_init(&s->late[i], note, (void *)(intptr_t)when[i]);
		CHECK_EQ(weft_event_post_at(s->es, &s->late[i], (uint64_t)when[i]), WEFT_OK);
	}
	return false;
}

static void timers(void)
{
	struct weft_event ev[9], *all[9], far, never, soon;
	struct weft_events *es;
	CHECK_EQ(weft_events_open_timers(&es), WEFT_OK);
	struct start start = {.es = es, .late = ev};
	weft_event_init(&far, NULL, NULL);
	weft_event_init(&never, NULL, NULL);
	weft_event_init(&soon, NULL, NULL);
	weft_event_init(&start.ev, post_nine, &start);
	CHECK_EQ(weft_event_post_after(es, &far, 3600000000000u), WEFT_OK);
	CHECK_EQ(weft_event_post_after(es, &never, UINT64_MAX), WEFT_OK);
	uint64_t t0 = weft_clock_ns();
	CHECK_EQ(weft_event_post_after(es, &soon, 3000000), WEFT_OK);
	CHECK_EQ(weft_event_wait(&soon, WEFT_FOREVER), WEFT_OK);
	CHECK(weft_clock_ns() - t0 >= 3000000);
	ordered = 0;
	CHECK_EQ(weft_event_post_after(es, &start.ev, 1000000), WEFT_OK);
	CHECK_EQ(weft_event_wait(&start.ev, WEFT_FOREVER), WEFT_OK);
	for (int i = 0; i < 9; i++)
		all[i] = &ev[i];
	CHECK_EQ(weft_event_wait_all(all, 9, WEFT_FOREVER), WEFT_OK);
	for (int i = 0; i < 9; i++) {
		CHECK_EQ(order[i], i + 1);
		CHECK(weft_event_result(&ev[i]) > 0);
	}
	CHECK(!weft_event_done(&far) && !weft_event_done(&never));
	weft_event_cancel(&far);
	CHECK_EQ(weft_event_wait(&far, WEFT_FOREVER), WEFT_OK);
	CHECK_EQ(weft_event_result(&far), -ECANCELED);
	/* Past times are there at once. */
	CHECK_EQ(weft_event_post_at(es, &far, 1), WEFT_OK);
	CHECK_EQ(weft_event_wait(&far, WEFT_FOREVER), WEFT_OK);
	CHECK(weft_event_result(&far) > 0);
	CHECK_EQ(weft_events_close(es), WEFT_OK);
	CHECK_EQ(weft_event_result(&never), -ECANCELED);
}

/* Two threads ring each other's bells in turn: each ring is noticed, or this hangs. */
struct ringer {
	struct weft_doorbell *mine, *theirs;
	int my_fd, their_fd;
	int rounds;
	struct weft_events *es;
};

static void *ringing(void *arg)
{
	struct ringer *r = arg;
	uint64_t state = (uint64_t)(uintptr_t)r;
	for (int i = 0; i < r->rounds; i++) {
		struct weft_event ev;
		weft_event_init(&ev, NULL, NULL);
		CHECK_EQ(weft_event_post_doorbell(r->es, &ev, r->mine, r->my_fd, (uint64_t)i),
			 WEFT_OK);
		CHECK_EQ(weft_event_wait(&ev, WEFT_FOREVER), WEFT_OK);
		CHECK_EQ(weft_event_result(&ev), i + 1);
		for (uint64_t n = weft_rand_next(&state) % 200; n; n--)
			weft_cpu_relax();
		weft_doorbell_ring(r->theirs, r->their_fd);
	}
	return NULL;
}

static void doorbells(int rounds)
{
	static struct weft_doorbell bell[2];
	struct ringer r[2];
	pthread_t t[2];
	struct weft_events *es;
	CHECK_EQ(weft_events_open_doorbells(&es), WEFT_OK);
	int fd[2];
	for (int i = 0; i < 2; i++) {
		weft_doorbell_init(&bell[i]);
		fd[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		CHECK(fd[i] >= 0);
	}
	for (int i = 0; i < 2; i++) {
		r[i] = (struct ringer){&bell[i], &bell[1 - i], fd[i], fd[1 - i], rounds, es};
		CHECK_EQ(pthread_create(&t[i], NULL, ringing, &r[i]), 0);
	}
	weft_doorbell_ring(&bell[0], fd[0]);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	CHECK_EQ(weft_doorbell_count(&bell[0]), rounds + 1);
	CHECK_EQ(weft_events_close(es), WEFT_OK);
	close(fd[0]);
	close(fd[1]);
}

int main(void)
{
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	for (int on = 1; on >= 0; on--) {
		weft_progress_set(on);
		many_pipes();
		several_of_one();
		closed_while_polled();
		timers();
		doorbells(500);
	}
	/* Timers are noticed, and how late is counted. */
	CHECK(weft_counter_sum(WEFT_CNT_LATE_10US) + weft_counter_sum(WEFT_CNT_LATE_100US) +
		      weft_counter_sum(WEFT_CNT_LATE_1MS) + weft_counter_sum(WEFT_CNT_LATE_10MS) +
		      weft_counter_sum(WEFT_CNT_LATE_MORE) >=
	      20);
	weft_engine_stop();
	return 0;
}
