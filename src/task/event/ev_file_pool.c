/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ev_file_pool.c - files read and written by the blocking calls of a few threads.
 *
 * A thread takes a request, makes its call, and looks at the source, under its mask, so that waiters hear of
 * it without a round of the engine.  One thread is enough as long as calls compute, as copies to and from the system's
 * cache do; where they wait, as on a file system with a server behind, further ones are started, one at a time, while
 * requests wait.
 */
#include "base/assert.h"
#include "base/counters.h"
#include "base/futex.h"
#include "base/log.h"
#include "task/event/ev_file.h"
#include "task/file_call.h"
#include "task/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* As many requests as a FUSE server has threads for, by default, and some that are on their way. */
#define THREADS_MAX 16
/* A call that waits for longer is worth another thread: to wake one takes about 10 us. */
#define WAITS_NS 20000u
#define SLOW_NS 200000u /* what a slow file system is believed to wait before the first call */

struct pool_thread {
	struct file_pool *pool;
	const struct file_request *call; /* L: that it makes */
	pthread_t thread;
};

struct file_pool {
	struct weft_events *es;
	pthread_mutex_t lock;                /* letter L */
	struct weft_file_queue queue;        /* L */
	struct weft_file_queue done;         /* L */
	_Atomic bool x_some_done;            /* L: written; a hint for the poll */
	unsigned threads, idle, wakes;       /* L: idle ones that have been woken are not idle */
	unsigned threads_max;                /* L: fewer once the system gives no more */
	uint64_t wait_ns;                    /* L: how long calls wait, on average */
	bool stop;                           /* L */
	_Atomic uint32_t x_word;             /* L: written; idle threads sleep on it */
	struct pool_thread all[THREADS_MAX]; /* L: the first `threads` */
};

/* ---- the queue ---------------------------------------------------------------------------- */

void weft_task_file_queue_add(struct weft_file_queue *q, struct weft_event *ev)
{
	struct weft_event *before = q->last;
	if (before && before->priority < ev->priority) {
		before = NULL;
		for (struct weft_event *e = q->first; e->priority >= ev->priority;
		     e = weft_task_file_request(e)->next) /* ends: the last one's is lower */
			before = e;
	}
	struct weft_event **at = before ? &weft_task_file_request(before)->next : &q->first;
	weft_task_file_request(ev)->next = *at;
	*at = ev;
	if (before == q->last)
		q->last = ev;
}

void weft_task_file_queue_cut(struct weft_file_queue *q, struct weft_event *before,
			      struct weft_event *ev)
{
	struct weft_event *next = weft_task_file_request(ev)->next;
	if (before)
		weft_task_file_request(before)->next = next;
	else
		q->first = next;
	if (q->last == ev)
		q->last = before;
}

bool weft_task_file_queue_remove(struct weft_file_queue *q, struct weft_event *ev)
{
	struct weft_event *before = NULL;
	for (struct weft_event *e = q->first; e; e = weft_task_file_request(e)->next) {
		/* ends at the last */
		if (e == ev) {
			weft_task_file_queue_cut(q, before, ev);
			return true;
		}
		before = e;
	}
	return false;
}

/* ---- a call ------------------------------------------------------------------------------- */

static int64_t make_call(const struct file_request *r)
{
	ssize_t n = 0;
	if (r->op == FILE_CALL)
		return r->fn(r->buffer);
	do { /* ends: signals are blocked in this thread, so at once */
		if (r->op == FILE_READ)
			n = pread(r->fd, r->buffer, r->bytes, (off_t)r->offset);
		else if (r->op == FILE_WRITE)
			n = pwrite(r->fd, r->buffer, r->bytes, (off_t)r->offset);
		else if (r->op == FILE_READV)
			n = preadv(r->fd, r->buffer, (int)r->pieces, (off_t)r->offset);
		else if (r->op == FILE_WRITEV)
			n = pwritev(r->fd, r->buffer, (int)r->pieces, (off_t)r->offset);
		else
			n = fsync(r->fd);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static uint64_t thread_cpu_ns(void)
{
	struct timespec ts;
	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts))
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- the threads -------------------------------------------------------------------------- */

static bool is_write(const struct file_request *r)
{
	return r->op == FILE_WRITE || r->op == FILE_WRITEV || r->op == FILE_CALL;
}

/* Does a thread write there now? */
static bool is_written_locked(struct file_pool *p, int fd)
{
	weft_assert_held(weft_mutex, &p->lock);
	for (unsigned i = 0; i < p->threads; i++)
		if (p->all[i].call && p->all[i].call->fd == fd && is_write(p->all[i].call))
			return true;
	return false;
}

/* The next request that may go, out of the queue; NULL: there is none. */
static struct weft_event *take_locked(struct file_pool *p)
{
	weft_assert_held(weft_mutex, &p->lock);
	struct weft_event *before = NULL;
	int held = -1; /* a descriptor, at which an fsync waits */
	for (struct weft_event *ev = p->queue.first; ev; ev = weft_task_file_request(ev)->next) {
		/* ends at the last */
		const struct file_request *r = weft_task_file_request(ev);
		if (r->fd != held || !(is_write(r) || r->op == FILE_FSYNC)) {
			if (r->op != FILE_FSYNC || !is_written_locked(p, r->fd)) {
				weft_task_file_queue_cut(&p->queue, before, ev);
				return ev;
			}
			if (held < 0)
				held = r->fd;
		}
		before = ev;
	}
	return NULL;
}

static void *run_pool_thread(void *arg);

/* Requests wait: is one more thread worth it? */
static void call_help_locked(struct file_pool *p)
{
	weft_assert_held(weft_mutex, &p->lock);
	if (!p->queue.first || (p->threads > p->idle && p->wait_ns < WAITS_NS))
		return;
	if (p->idle) {
		p->idle--;
		p->wakes++;
		/* The word's change, not its order, ends the sleep; the lock carries the rest. */
		atomic_fetch_add_explicit(&p->x_word, 1, memory_order_release);
		weft_futex_wake(&p->x_word);
		return;
	}
	if (p->threads == p->threads_max)
		return;
	struct pool_thread *t = &p->all[p->threads];
	*t = (struct pool_thread){.pool = p};
	if (weft_task_engine_thread(&t->thread, run_pool_thread, t) == WEFT_OK) {
		p->threads++;
		return;
	}
	p->threads_max = p->threads;
	if (!p->threads)
		weft_warn("no thread for the blocking calls of files: a poll makes them");
}

/* Until there may be a request; the lock is given up meanwhile. */
static void sleep_locked(struct file_pool *p)
{
	weft_assert_held(weft_mutex, &p->lock);
	p->idle++;
	/* Relaxed: written under the lock. */
	uint32_t seen = atomic_load_explicit(&p->x_word, memory_order_relaxed);
	pthread_mutex_unlock(&p->lock);
	weft_futex_wait(&p->x_word, seen, WEFT_NEVER);
	pthread_mutex_lock(&p->lock);
	if (p->wakes)
		p->wakes--;
	else
		p->idle--;
}

/* With the result in it, to where the poll finds it. */
static void done_locked(struct file_pool *p, struct weft_event *ev)
{
	weft_assert_held(weft_mutex, &p->lock);
	struct weft_event *last = p->done.last;
	weft_task_file_request(ev)->next = NULL;
	if (last)
		weft_task_file_request(last)->next = ev;
	else
		p->done.first = ev;
	p->done.last = ev;
	/* Relaxed: a poll that reads an older value is followed by the look of the thread that wrote this. */
	atomic_store_explicit(&p->x_some_done, true, memory_order_relaxed);
}

static void *run_pool_thread(void *arg)
{
	struct pool_thread *t = arg;
	struct file_pool *p = t->pool;
	(void)weft_task_engine_thread_settle("weft-block");
	weft_task_engine_self.runner = WEFT_RUNNER_WATCHER;
	pthread_mutex_lock(&p->lock);
	while (!p->stop) { /* ends: stop */
		struct weft_event *ev = take_locked(p);
		if (!ev) {
			sleep_locked(p);
			continue;
		}
		struct file_request *r = weft_task_file_request(ev);
		t->call = r;
		r->with_kernel = true;
		call_help_locked(p);
		pthread_mutex_unlock(&p->lock);

		weft_count(WEFT_CNT_BLOCKING_CALLS, 1);
		uint64_t cpu = thread_cpu_ns(), begin = weft_clock_ns();
		r->result = make_call(r);
		uint64_t took = weft_clock_ns() - begin;
		cpu = thread_cpu_ns() - cpu;

		pthread_mutex_lock(&p->lock);
		p->wait_ns = (3 * p->wait_ns + (took > cpu ? took - cpu : 0)) / 4;
		t->call = NULL;
		done_locked(p, ev);
		pthread_mutex_unlock(&p->lock);
		weft_events_look(p->es);
		pthread_mutex_lock(&p->lock);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* ---- the source --------------------------------------------------------------------------- */

static bool pool_attach(void *arg, struct weft_event *ev, int64_t *result_p)
{
	struct file_pool *p = arg;
	pthread_mutex_lock(&p->lock);
	weft_task_file_queue_add(&p->queue, ev);
	call_help_locked(p);
	bool alone = !p->threads; /* no thread can be had */
	if (alone)
		(void)weft_task_file_queue_remove(&p->queue, ev);
	pthread_mutex_unlock(&p->lock);
	if (alone)
		*result_p = make_call(weft_task_file_request(ev));
	return alone;
}

static bool pool_detach(void *arg, struct weft_event *ev)
{
	struct file_pool *p = arg;
	pthread_mutex_lock(&p->lock);
	bool queued = weft_task_file_queue_remove(&p->queue, ev);
	pthread_mutex_unlock(&p->lock);
	return queued;
}

static void pool_poll(void *arg, struct weft_events *es)
{
	struct file_pool *p = arg;
	(void)es;
	/* Relaxed: see done_locked. */
	if (!atomic_load_explicit(&p->x_some_done, memory_order_relaxed))
		return;
	pthread_mutex_lock(&p->lock);
	struct weft_event *ev = p->done.first;
	p->done = (struct weft_file_queue){NULL, NULL};
	atomic_store_explicit(&p->x_some_done, false, memory_order_relaxed);
	pthread_mutex_unlock(&p->lock);
	while (ev) { /* ends at the last */
		const struct file_request *r = weft_task_file_request(ev);
		struct weft_event *next = r->next;
		weft_event_complete(ev, r->result);
		ev = next;
	}
}

/* No request is left, and the source is still there: a thread may look at it. */
static void pool_stop(void *arg)
{
	struct file_pool *p = arg;
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	atomic_fetch_add_explicit(&p->x_word, 1, memory_order_release);
	unsigned n = p->threads;
	for (unsigned i = 0; i < n; i++)
		weft_futex_wake(&p->x_word);
	pthread_mutex_unlock(&p->lock);
	for (unsigned i = 0; i < n; i++)
		pthread_join(p->all[i].thread, NULL);
}

static void pool_free(void *arg)
{
	struct file_pool *p = arg;
	weft_assert(!p->queue.first && !p->done.first);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

weft_err weft_task_file_pool_open(bool slow, struct weft_events **es_p)
{
	struct file_pool *p = calloc(1, sizeof *p);
	if (!p)
		return WEFT_ERR_NOMEM;
	pthread_mutex_init(&p->lock, NULL);
	p->threads_max = THREADS_MAX;
	p->wait_ns = slow ? SLOW_NS : 0;
	struct weft_events_ops ops = {.name = "files (threads)",
				      .poll_group = pool_poll,
				      .attach = pool_attach,
				      .detach = pool_detach,
				      .flags = WEFT_EVENTS_LOOKS};
	weft_err err = weft_events_open(&ops, p, &p->es);
	if (err) {
		pool_free(p);
		return err;
	}
	p->es->stop_arg = pool_stop;
	p->es->free_arg = pool_free;
	*es_p = p->es;
	return WEFT_OK;
}

weft_err weft_task_post_file_call(struct weft_events *es, struct weft_event *ev, int fd,
				  int64_t (*fn)(void *arg), void *arg)
{
	weft_assert(es->stop_arg == pool_stop);
	*weft_task_file_request(ev) =
		(struct file_request){.op = FILE_CALL, .fd = fd, .buffer = arg, .fn = fn};
	return weft_event_post(es, ev);
}
