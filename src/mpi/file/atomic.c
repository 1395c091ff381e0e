/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * atomic.c - accesses in atomic mode: under locks over all that they touch.
 *
 * A lock may have to be waited for, so a non-blocking access goes to a thread of its own, which makes the accesses of
 * all files of this process in their order.  No access holds a lock while it waits for anything but the locks
 * of higher ranks and the system, so each ends.
 */
#include <pthread.h>

#include "base/log.h"
#include "mpi/file/mpi_file.h"
#include "task/task.h"
#include "task/thread.h"

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct weft_mpi_file_op *first, *last; /* L */
	bool there, stop;                      /* L */
	pthread_t thread;
} server = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

int weft_mpi_atomic_run(struct weft_mpi_file_op *o)
{
	struct weft_file_op *op = &o->op;
	/* The whole range of the file that the access touches, its holes too. */
	uint64_t from = weft_file_view_offset(op->view, op->pos), to = from;
	if (op->buf.bytes)
		to = weft_file_view_offset(op->view, op->pos + op->buf.bytes - 1) + 1;
	int err = weft_mpi_shared_lock(o->file, op->write, from, to);
	if (err)
		return err;
	weft_file_op_run(op);
	weft_mpi_shared_unlock(o->file, op->write, from, to);
	return MPI_SUCCESS;
}

static void serve_one(struct weft_mpi_file_op *o)
{
	o->code = weft_mpi_atomic_run(o);
	/* OVER -> IDLE (wait_for_accesses in open.c): the file may be closed from here on. */
	atomic_fetch_sub_explicit(&o->file->x_accesses, 1, memory_order_release);
	weft_wait_completion_signal(&o->over); /* the last access */
}

static void *serve_queue(void *arg)
{
	(void)arg;
	(void)weft_task_engine_thread_settle("weft-atomic");
	pthread_mutex_lock(&server.lock);
	while (server.first || !server.stop) { /* ends: stop, and none is left */
		struct weft_mpi_file_op *o = server.first;
		if (!o) {
			pthread_cond_wait(&server.changed, &server.lock);
			continue;
		}
		server.first = o->next;
		pthread_mutex_unlock(&server.lock);
		serve_one(o);
		pthread_mutex_lock(&server.lock);
	}
	pthread_mutex_unlock(&server.lock);
	return NULL;
}

/* False: there is no thread, and none can be started. */
static bool queue_op(struct weft_mpi_file_op *o)
{
	pthread_mutex_lock(&server.lock);
	if (!server.there)
		server.there =
			weft_task_engine_thread(&server.thread, serve_queue, NULL) == WEFT_OK;
	bool there = server.there;
	if (there) {
		o->next = NULL;
		if (server.first)
			server.last->next = o;
		else
			server.first = o;
		server.last = o;
		pthread_cond_signal(&server.changed);
	}
	pthread_mutex_unlock(&server.lock);
	return there;
}

void weft_mpi_atomic_start(struct weft_mpi_file_op *o)
{
	o->apart = true;
	weft_wait_completion_init(&o->over);
	/* Relaxed: the caller closes the file later, and knows of its own store. */
	atomic_fetch_add_explicit(&o->file->x_accesses, 1, memory_order_relaxed);
	if (queue_op(o))
		return;
	weft_info("no thread for accesses in atomic mode: the call that starts one makes it");
	serve_one(o);
}

void weft_mpi_atomic_end(void)
{
	pthread_mutex_lock(&server.lock);
	bool there = server.there;
	server.stop = true;
	pthread_cond_signal(&server.changed);
	pthread_mutex_unlock(&server.lock);
	if (there)
		pthread_join(server.thread, NULL);
	server.there = server.stop = false;
}
