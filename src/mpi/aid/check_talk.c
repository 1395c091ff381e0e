/* SPDX-License-Identifier: BSD-3-Clause */
/* check_talk.c - talks that are under way. */
#include "mpi/aid/check_talk.h"

#include <stdlib.h>
#include "task/task.h"

#define STRAY_NS 50000000u /* what has not come by then, at the end, does not */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct weft_mpi_check_talk *list; /* under lock: all that are not freed */

static void message_over(struct weft_req *req, void *arg)
{
	struct weft_mpi_check_talk *t = arg;
	if (req == &t->recv && !req->status.err && !req->status.cancelled &&
	    req->status.bytes == req->buf.bytes)
		t->judge(t);
	/* Release: the one that frees it has our accesses behind it. */
	atomic_fetch_sub_explicit(&t->x_left, 1, memory_order_acq_rel);
}

bool weft_mpi_check_talk_sweep(const struct weft_mpi_comm *c)
{
	bool others = false;
	pthread_mutex_lock(&lock);
	for (struct weft_mpi_check_talk **at = &list; *at;) {
		struct weft_mpi_check_talk *t = *at;
		if (!atomic_load_explicit(&t->x_left, memory_order_acquire)) {
			*at = t->next;
			free(t);
			continue;
		}
		others |= !c || t->comm == c;
		at = &t->next;
	}
	pthread_mutex_unlock(&lock);
	return others;
}

void weft_mpi_check_talk_start(struct weft_mpi_check_talk *t, int tag, int to, const void *out,
			       int from, void *in, size_t bytes)
{
	struct weft_ctx *ctx = t->comm->coll;
	struct weft_buf b = weft_data_buf_flat(in, bytes);
	int messages = (to >= 0) + (from >= 0);

	if (!messages) {
		free(t);
		return;
	}
	t->receives = from >= 0;
	atomic_store_explicit(&t->x_left, messages,
			      memory_order_relaxed); /* published by the lock */
	pthread_mutex_lock(&lock);
	t->next = list;
	list = t;
	pthread_mutex_unlock(&lock);
	if (from >= 0) {
		weft_comm_req_init(&t->recv, message_over, t);
		if (weft_comm_core_irecv(&t->recv, ctx, from, tag, &b))
			atomic_fetch_sub_explicit(&t->x_left, 1, memory_order_acq_rel);
	}
	if (to >= 0) {
		b = weft_data_buf_flat(out, bytes);
		weft_comm_req_init(&t->send, message_over, t);
		if (weft_comm_core_isend(&t->send, ctx, to, tag, &b, WEFT_SEND_STANDARD))
			atomic_fetch_sub_explicit(&t->x_left, 1, memory_order_acq_rel);
	}
}

/* One whose message may not come, out of those of c, or (NULL) of any; it stays until x_left is lowered. */
static struct weft_mpi_check_talk *take_stray(const struct weft_mpi_comm *c)
{
	struct weft_mpi_check_talk *t;
	pthread_mutex_lock(&lock);
	for (t = list; t; t = t->next)
		if (!t->over && t->receives && (!c || (t->comm == c && t->loose)))
			break;
	if (t) {
		t->over = true;
		/* Relaxed: sweep looks under the lock. */
		atomic_fetch_add_explicit(&t->x_left, 1, memory_order_relaxed);
	}
	pthread_mutex_unlock(&lock);
	return t;
}

void weft_mpi_check_talk_end(const struct weft_mpi_comm *c)
{
	uint64_t until = weft_clock_ns() + STRAY_NS;
	struct weft_mpi_check_talk *t;

	while (weft_mpi_check_talk_sweep(c) && weft_clock_ns() < until)
		weft_engine_poll();
	while ((t = take_stray(c))) { /* ends: each is taken once */
		(void)weft_comm_recv_cancel(&t->recv);
		atomic_fetch_sub_explicit(&t->x_left, 1, memory_order_acq_rel);
	}
	/* Ends: receives are cancelled, sends are small; where a communicator is freed, its members have talked as
	 * often as we have. */
	while (weft_mpi_check_talk_sweep(c))
		weft_engine_poll();
}
