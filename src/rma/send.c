/* SPDX-License-Identifier: BSD-3-Clause */
/* send.c - messages on their way out: at once, or kept until the network takes them. */
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "rma/win_int.h"
#include "task/task.h"

/* So many messages of a window may wait for the network before an access waits. */
#define UNSENT_MOST 1024

struct kept {
	struct weft_req req;
	struct weft_rma_win *win;
	struct weft_rma_head *h;
};

struct weft_rma_head *weft_rma_message(enum weft_rma_kind kind, unsigned n_spans, size_t bytes)
{
	weft_assert(bytes <= weft_rma_room(n_spans));
	struct weft_rma_head *h =
		malloc(sizeof *h + n_spans * sizeof(struct weft_rma_span) + bytes);
	if (h)
		*h = (struct weft_rma_head){
			.kind = (uint8_t)kind, .n_spans = n_spans, .bytes = (uint32_t)bytes};
	return h;
}

static void kept_sent(struct weft_req *req, void *arg)
{
	struct kept *k = arg;
	struct weft_rma_win *win = k->win;
	(void)req;
	free(k->h);
	free(k);
	/* Release: the frees are over; the closer waits for 0. */
	if (atomic_fetch_sub_explicit(&win->x_unsent, 1, memory_order_acq_rel) <= UNSENT_MOST / 2)
		weft_rma_notify(win);
}

weft_err weft_rma_send(struct weft_rma_win *win, int rank, struct weft_rma_head *h)
{
	if (!h)
		return WEFT_ERR_NOMEM;
	struct weft_rma_target *t = &win->target[rank];
	struct weft_buf b = weft_data_buf_flat(h, weft_rma_message_bytes(h));
	int peer = weft_rma_process(win, rank);
	/* Relaxed: the number alone matters; the target puts messages in its order. */
	if (h->kind < WEFT_RMA_LOCK)
		h->seq = atomic_fetch_add_explicit(&t->x_seq, 1, memory_order_relaxed);
	/* What is not answered is likely to have company: the network may hold it for the next poll. */
	bool answered = h->kind >= WEFT_RMA_GET && h->kind != WEFT_RMA_ACC;
	weft_err err = answered || h->flags & WEFT_RMA_ASKS
			       ? weft_comm_send_now(win->am, peer, h->kind, &b)
			       : weft_comm_start_now(win->am, peer, h->kind, &b);
	if (err != WEFT_AGAIN) {
		free(h);
		return err;
	}
	struct kept *k = malloc(sizeof *k);
	if (!k) {
		free(h);
		return WEFT_ERR_NOMEM;
	}
	k->win = win;
	k->h = h;
	weft_comm_req_init(&k->req, kept_sent, k);
	/* Relaxed: ordered by kept_sent's. */
	atomic_fetch_add_explicit(&win->x_unsent, 1, memory_order_relaxed);
	err = weft_comm_core_isend(&k->req, win->am, peer, h->kind, &b, WEFT_SEND_STANDARD);
	if (err) {
		atomic_fetch_sub_explicit(&win->x_unsent, 1, memory_order_relaxed);
		free(h);
		free(k);
		return err;
	}
	weft_task_engine_pending();
	return WEFT_OK;
}

weft_err weft_rma_tell(struct weft_rma_win *win, int rank, enum weft_rma_kind kind, uint32_t id,
		       weft_err err)
{
	struct weft_rma_head *h = weft_rma_message(kind, 0, 0);
	if (h) {
		h->id = id;
		h->err = (int32_t)err;
	}
	return weft_rma_send(win, rank, h);
}

static bool sent_enough(struct weft_rma_win *win, void *arg)
{
	(void)arg;
	/* Relaxed: a bound, not an order. */
	return atomic_load_explicit(&win->x_unsent, memory_order_relaxed) <= UNSENT_MOST / 2;
}

void weft_rma_throttle(struct weft_rma_win *win)
{
	if (weft_unlikely(atomic_load_explicit(&win->x_unsent, memory_order_relaxed) > UNSENT_MOST))
		weft_rma_wait_until(win, sent_enough, NULL);
}
