/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pull.c - the fetches of large messages as a source of the progress engine: each poll copies one
 * piece of the message at the front, so that whoever waits, is idle or watches does the work.
 *
 * Callers   submit: any thread, upcalls included.  poll, arm, disarm: the engine, under the
 *           source's mask.
 * Order     first come, first served; a message is finished before the next begins, because its
 *           waiter gains nothing from half of two messages.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "comm/comm_int.h"
#include "task/task.h"

struct weft_pull_source {
	struct weft_source source;
	struct weft_spin lock;
	struct weft_out *first, **last; /* L: the requests, linked by their out.next */
	_Atomic bool x_some;            /* L writes: the list is not empty */
	_Atomic bool x_armed;
	struct weft_req *current; /* under the source's mask */
};

static void ring(struct weft_pull_source *ps)
{
	uint64_t one = 1;
	/* A full counter means that it is readable anyway. */
	while (write(ps->source.fd, &one, sizeof one) < 0 && errno == EINTR)
		;
}

void weft_pull_submit(struct weft_pull_source *ps, struct weft_req *r)
{
	struct weft_out *o = &weft_req_recv(r)->out;

	o->next = NULL;
	weft_spin_lock(&ps->lock);
	*ps->last = o;
	ps->last = &o->next;
	/* SUBMIT -> LOOK (pull_arm): seq_cst, before we ask whether anybody sleeps. */
	atomic_store_explicit(&ps->x_some, true, memory_order_seq_cst);
	weft_spin_unlock(&ps->lock);
	/* ASK <- ARM (pull_arm).  If we read false, pull_arm sees x_some. */
	if (atomic_load_explicit(&ps->x_armed, memory_order_seq_cst))
		ring(ps);
}

static struct weft_req *take(struct weft_pull_source *ps)
{
	/* Relaxed: a hint; what comes just now rings or is seen by the next poll. */
	if (!atomic_load_explicit(&ps->x_some, memory_order_relaxed))
		return NULL;
	weft_spin_lock(&ps->lock);
	struct weft_out *o = ps->first;
	if (o) {
		ps->first = o->next;
		if (!ps->first)
			ps->last = &ps->first;
	}
	atomic_store_explicit(&ps->x_some, ps->first != NULL, memory_order_seq_cst);
	weft_spin_unlock(&ps->lock);
	return o ? weft_req_of_recv_out(o) : NULL;
}

static int pull_poll(void *arg)
{
	struct weft_pull_source *ps = arg;

	if (!ps->current)
		ps->current = take(ps);
	if (!ps->current)
		return 0;
	if (weft_pull_step(ps->current))
		ps->current = NULL;
	return 1;
}

static bool has_some(struct weft_pull_source *ps)
{
	return ps->current || atomic_load_explicit(&ps->x_some, memory_order_seq_cst);
}

static weft_err pull_arm(void *arg)
{
	struct weft_pull_source *ps = arg;

	/* ARM -> ASK (submit), and then LOOK <- SUBMIT. */
	atomic_store_explicit(&ps->x_armed, true, memory_order_seq_cst);
	if (!has_some(ps))
		return WEFT_OK;
	atomic_store_explicit(&ps->x_armed, false, memory_order_seq_cst);
	return WEFT_AGAIN;
}

static void pull_disarm(void *arg)
{
	struct weft_pull_source *ps = arg;
	uint64_t count;

	atomic_store_explicit(&ps->x_armed, false, memory_order_seq_cst);
	/* Empties it; EAGAIN when nobody rang. */
	(void)!read(ps->source.fd, &count, sizeof count);
}

weft_err weft_pull_create(struct weft_pull_source **ps_p)
{
	struct weft_pull_source *ps = calloc(1, sizeof *ps);
	if (!ps)
		return WEFT_ERR_NOMEM;
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0) {
		weft_error("eventfd: %s", strerror(errno));
		free(ps);
		return WEFT_ERR_SYS;
	}
	ps->last = &ps->first;
	ps->source = (struct weft_source){.name = "fetch",
					  .poll = pull_poll,
					  .arm = pull_arm,
					  .disarm = pull_disarm,
					  .fd = fd,
					  .arg = ps};
	weft_err err = weft_source_add(&ps->source);
	if (err) {
		close(fd);
		free(ps);
		return err;
	}
	*ps_p = ps;
	return WEFT_OK;
}

void weft_pull_destroy(struct weft_pull_source *ps)
{
	weft_source_remove(&ps->source);
	close(ps->source.fd);
	free(ps);
}
