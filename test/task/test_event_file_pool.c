/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files by threads: calls that wait do not wait for each other, up to 16 of them; one thread is enough for calls that do
 * not; an fsync comes after the writes before it, and those behind it wait until it has begun; queued requests can be
 * withdrawn; calls of the poster's own.
 * pread, pwrite and fsync of two made-up descriptors are this program's own, and wait until the test lets them go.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include <weft/source.h>
#include "check.h"
#include "task/file_call.h"
#include "task/task.h"

enum { GATED = 100001, FREE = 100002, THREADS = 16, MANY = 40 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int inside, inside_max, may_pass; /* calls of GATED */
static char order[MANY + 1];             /* 'w': a write of GATED is over; 'f': an fsync */
static int n_order;

static ssize_t gated_call(int fd, size_t bytes, char mark)
{
	pthread_mutex_lock(&lock);
	inside++;
	inside_max = inside > inside_max ? inside : inside_max;
	pthread_cond_broadcast(&changed);
	while (fd == GATED && !may_pass) /* ends: the test lets calls pass */
		pthread_cond_wait(&changed, &lock);
	if (fd == GATED)
		may_pass--;
	inside--;
	if (mark && n_order < MANY)
		order[n_order++] = mark;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return (ssize_t)bytes;
}

/* While calls may begin. */
static int most_inside(void)
{
	pthread_mutex_lock(&lock);
	int most = inside_max;
	pthread_mutex_unlock(&lock);
	return most;
}

static ssize_t read_call(int fd, void *buf, size_t bytes)
{
	memset(buf, 7, bytes);
	return gated_call(fd, bytes, 0);
}

ssize_t pread(int fd, void *buf, size_t bytes, off_t at)
{
	(void)at;
	return read_call(fd, buf, bytes);
}

ssize_t pread64(int fd, void *buf, size_t bytes, off64_t at)
{
	(void)at;
	return read_call(fd, buf, bytes);
}

ssize_t pwrite(int fd, const void *buf, size_t bytes, off_t at)
{
	(void)buf, (void)at;
	return gated_call(fd, bytes, 'w');
}

ssize_t pwrite64(int fd, const void *buf, size_t bytes, off64_t at)
{
	(void)buf, (void)at;
	return gated_call(fd, bytes, 'w');
}

int fsync(int fd)
{
	(void)fd;
	pthread_mutex_lock(&lock);
	order[n_order++] = 'f';
	pthread_mutex_unlock(&lock);
	return 0;
}

static void wait_until_inside(int n)
{
	pthread_mutex_lock(&lock);
	while (inside != n) /* ends: the calls come, or ctest's patience */
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void let_pass(int n)
{
	pthread_mutex_lock(&lock);
	may_pass += n;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void post_reads(struct weft_events *es, int fd, struct weft_event *ev, char *c, int n)
{
	for (int i = 0; i < n; i++) {
		weft_event_init(&ev[i], NULL, NULL);
		CHECK_EQ(weft_event_post_read(es, &ev[i], fd, &c[i], 1, (uint64_t)i), WEFT_OK);
	}
}

static void together_and_bounded(struct weft_events *es)
{
	static struct weft_event ev[MANY];
	struct weft_event *all[MANY];
	char c[MANY] = {0};
	inside_max = 0;
	for (int i = 0; i < MANY; i++)
		all[i] = &ev[i];
	post_reads(es, GATED, ev, c, MANY);
	wait_until_inside(THREADS);
	/* The last ones wait in the queue: one is withdrawn. */
	weft_event_cancel(&ev[MANY - 1]);
	CHECK_EQ(weft_event_wait(&ev[MANY - 1], WEFT_FOREVER), WEFT_OK);
	CHECK_EQ(weft_event_result(&ev[MANY - 1]), -ECANCELED);
	/* One that a thread is at completes by itself. */
	weft_event_cancel(&ev[0]);
	CHECK(!weft_event_done(&ev[0]));
	let_pass(MANY - 1);
	CHECK_EQ(weft_event_wait_all(all, MANY, WEFT_FOREVER), WEFT_OK);
	CHECK_EQ(inside_max, THREADS);
	for (int i = 0; i < MANY - 1; i++) {
		CHECK_EQ(weft_event_result(&ev[i]), 1);
		CHECK_EQ(c[i], 7);
	}
}

static void fsync_in_its_place(struct weft_events *es)
{
	static struct weft_event ev[4];
	struct weft_event *all[4];
	for (int i = 0; i < 4; i++) {
		all[i] = &ev[i];
		weft_event_init(&ev[i], NULL, NULL);
	}
	n_order = inside_max = 0;
	memset(order, 0, sizeof order);
	CHECK_EQ(weft_event_post_write(es, &ev[0], GATED, "a", 1, 0), WEFT_OK);
	CHECK_EQ(weft_event_post_write(es, &ev[1], GATED, "b", 1, 1), WEFT_OK);
	CHECK_EQ(weft_event_post_fsync(es, &ev[2], GATED), WEFT_OK);
	CHECK_EQ(weft_event_post_write(es, &ev[3], GATED, "c", 1, 2), WEFT_OK);
	wait_until_inside(2);
	CHECK_EQ(n_order, 0);
	/* While the fsync runs the last write may begin. */
	let_pass(2);
	CHECK_EQ(weft_event_wait(&ev[2], WEFT_FOREVER), WEFT_OK);
	CHECK_EQ(strcmp(order, "wwf"), 0);
	CHECK_EQ(most_inside(), 2);
	let_pass(1);
	CHECK_EQ(weft_event_wait_all(all, 4, WEFT_FOREVER), WEFT_OK);
	CHECK_EQ(strcmp(order, "wwfw"), 0);
}

/* A call of the poster's own is a write to its descriptor, on another thread. */
struct own {
	pthread_t by;
	int calls;
};

static int64_t own_call(void *arg)
{
	struct own *o = arg;
	o->by = pthread_self();
	o->calls++;
	return gated_call(GATED, 1234567, 'o');
}

static void own_calls(struct weft_events *es)
{
	static struct weft_event ev[2];
	struct own o = {.calls = 0};
	n_order = 0;
	memset(order, 0, sizeof order);
	for (int i = 0; i < 2; i++)
		weft_event_init(&ev[i], NULL, NULL);
	CHECK_EQ(weft_task_post_file_call(es, &ev[0], GATED, own_call, &o), WEFT_OK);
	CHECK_EQ(weft_event_post_fsync(es, &ev[1], GATED), WEFT_OK);
	wait_until_inside(1);
	CHECK_EQ(n_order, 0);
	let_pass(1);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(weft_event_wait(&ev[i], WEFT_FOREVER), WEFT_OK);
	CHECK_EQ(strcmp(order, "of"), 0);
	CHECK_EQ(weft_event_result(&ev[0]), 1234567);
	CHECK_EQ(o.calls, 1);
	CHECK(!pthread_equal(o.by, pthread_self()));
}

static void one_is_enough(struct weft_events *es)
{
	static struct weft_event ev[MANY];
	struct weft_event *all[MANY];
	char c[MANY];
	for (int turn = 0; turn < 5; turn++) {
		for (int i = 0; i < MANY; i++)
			all[i] = &ev[i];
		post_reads(es, FREE, ev, c, MANY);
		CHECK_EQ(weft_event_wait_all(all, MANY, WEFT_FOREVER), WEFT_OK);
	}
}

static void closed_with_requests(struct weft_events *es)
{
	static struct weft_event ev[MANY];
	char c[MANY];
	int withdrawn = 0;
	post_reads(es, GATED, ev, c, MANY);
	wait_until_inside(THREADS);
	let_pass(MANY);
	CHECK_EQ(weft_events_close(es), WEFT_OK);
	for (int i = 0; i < MANY; i++) {
		CHECK(weft_event_done(&ev[i]));
		withdrawn += weft_event_result(&ev[i]) == -ECANCELED;
	}
	CHECK(withdrawn <= MANY - THREADS);
}

int main(void)
{
	struct weft_events *es;
	CHECK_EQ(weft_engine_start(), WEFT_OK);
	for (int on = 0; on < 2; on++) {
		weft_progress_set(on);
		CHECK_EQ(weft_events_open_files_blocking(&es), WEFT_OK);
		CHECK_EQ(strcmp(weft_events_files_by(es), "threads"), 0);
		together_and_bounded(es);
		fsync_in_its_place(es);
		own_calls(es);
		one_is_enough(es);
		CHECK_EQ(weft_events_close(es), WEFT_OK);
	}
	CHECK_EQ(weft_events_open_files_blocking(&es), WEFT_OK);
	closed_with_requests(es);
	weft_engine_stop();
	return 0;
}
