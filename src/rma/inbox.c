/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inbox.c - what comes to a window: receives that are always posted, and messages put in the order
 * of their origin.
 *
 * A receive that is posted while a message is there completes within the call that posts it.  So
 * that handlers do not nest as deep as messages lie there, its state says which thread goes on:
 *
 *            poster                      completer
 *   POSTING  ---- call returns ---->  POSTED   ---- serves, posts
 *   POSTING  <--- serves ------------ ARRIVED  (leaves it to the poster)
 *
 * Messages of one origin are served one by one, by number: the thread that finds the next one there
 * and no other thread serving does it, and those behind it.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "boot/boot.h"
#include "rma/win_int.h"
#include "task/task.h"

enum state { POSTING, POSTED, ARRIVED };

struct weft_rma_early {
	struct weft_rma_early *next;
	size_t len;
	alignas(16) char data[];
};

static struct weft_rma_head *early_head(struct weft_rma_early *e)
{
	return (struct weft_rma_head *)(void *)e->data;
}

/* ---- order -------------------------------------------------------------------------------- */

/* Keeps a copy, in its place.  False: no memory. */
static bool keep_locked(struct weft_rma_win *win, struct weft_rma_target *t,
			const struct weft_rma_head *h, size_t len)
{
	weft_assert_held(weft_comm_spin, &win->lock);
	struct weft_rma_early *e = malloc(sizeof *e + len);
	if (!e)
		return false;
	e->len = len;
	memcpy(e->data, h, len);
	struct weft_rma_early **at = &t->early;
	while (*at && (int32_t)(early_head(*at)->seq - h->seq) < 0)
		at = &(*at)->next;
	e->next = *at;
	*at = e;
	return true;
}

/* A number that has been served; no honest member sends it. */
static bool is_stale(const struct weft_rma_target *t, uint32_t seq)
{
	return (int32_t)(seq - t->expected) < 0;
}

/* The next message, if it is there; else no thread serves any more. */
static struct weft_rma_early *next_locked(struct weft_rma_win *win, struct weft_rma_target *t)
{
	weft_assert_held(weft_comm_spin, &win->lock);
	struct weft_rma_early *e = t->early;
	for (; e && is_stale(t, early_head(e)->seq);
	     e = t->early) { /* ends: the list gets shorter */
		t->early = e->next;
		free(e);
	}
	if (e && early_head(e)->seq == t->expected)
		t->early = e->next;
	else
		e = NULL;
	t->busy = e != NULL;
	return e;
}

static void in_order(struct weft_rma_win *win, int rank, const struct weft_rma_head *h, size_t len)
{
	struct weft_rma_target *t = &win->target[rank];
	weft_comm_spin_lock(&win->lock);
	bool now = !t->busy && h->seq == t->expected, stale = is_stale(t, h->seq);
	bool kept = now || stale || keep_locked(win, t, h, len);
	t->busy |= now;
	weft_comm_spin_unlock(&win->lock);
	if (stale)
		weft_warn("window: rank %d sends message %u twice; it is dropped", rank, h->seq);
	if (!kept) /* dropped, its origin would wait for ever */
		weft_boot_abort(1, "out of memory for a message to a window");
	if (!now)
		return;
	weft_rma_serve(win, rank, h, len);
	/* Ends: each turn serves a message that is there. */
	for (;;) {
		weft_comm_spin_lock(&win->lock);
		t->expected++;
		struct weft_rma_early *e = next_locked(win, t);
		weft_comm_spin_unlock(&win->lock);
		if (!e)
			return;
		weft_rma_serve(win, rank, early_head(e), e->len);
		free(e);
	}
}

/* ---- receives ----------------------------------------------------------------------------- */

static void handle_message(struct weft_rma_receive *r)
{
	struct weft_rma_win *win = r->win;
	const struct weft_status *st = &r->req.status;
	const struct weft_rma_head *h = (const void *)r->data;
	if (st->err || st->cancelled)
		return;
	int rank = st->peer < win->processes ? win->rank_of[st->peer] : -1;
	if (rank < 0 || st->bytes < sizeof *h || h->n_spans > WEFT_RMA_SPANS_MAX ||
	    h->bytes > WEFT_RMA_MESSAGE_MAX || weft_rma_message_bytes(h) != st->bytes) {
		weft_warn("window: a message of process %d makes no sense, and is dropped",
			  st->peer);
		return;
	}
	if (h->kind < WEFT_RMA_LOCK)
		in_order(win, rank, h, st->bytes);
	else
		weft_rma_answered(win, rank, h, st->bytes);
}

static void message_arrived(struct weft_req *req, void *arg);

/* Posts r until it stays posted; handles what is there already. */
static void post_receive(struct weft_rma_receive *r)
{
	struct weft_rma_win *win = r->win;
	struct weft_buf b = weft_data_buf_flat(r->data, sizeof r->data);
	/* Ends when no message is there, or when the window closes. */
	for (;;) {
		int was = POSTING;
		/* Relaxed: ordered by what posts it. */
		atomic_store_explicit(&r->x_state, POSTING, memory_order_relaxed);
		weft_comm_req_init(&r->req, message_arrived, r);
		if (atomic_load_explicit(&win->x_stop, memory_order_seq_cst) ||
		    weft_comm_core_irecv(&r->req, win->am, WEFT_ANY_PEER, WEFT_ANY_TAG, &b))
			break;
		/* LEAVE -> GO ON (message_arrived).  Acquire: SEE <- DONE (message_arrived), the message. */
		if (atomic_compare_exchange_strong_explicit(
			    &r->x_state, &was, POSTED, memory_order_acq_rel, memory_order_acquire))
			return;
		handle_message(r);
	}
	/* GONE -> STOP (close).  Carries: that nothing of r is used any more. */
	atomic_fetch_sub_explicit(&win->x_posted, 1, memory_order_release);
}

static void message_arrived(struct weft_req *req, void *arg)
{
	struct weft_rma_receive *r = arg;
	(void)req;
	/* DONE -> SEE (post_receive).  GO ON <- LEAVE.  Carries: the message; that the poster is out. */
	if (atomic_exchange_explicit(&r->x_state, ARRIVED, memory_order_acq_rel) == POSTING)
		return;
	handle_message(r);
	post_receive(r);
}

weft_err weft_rma_inbox_open(struct weft_rma_win *win)
{
	win->receive = aligned_alloc(alignof(struct weft_rma_receive),
				     WEFT_RMA_RECEIVES * sizeof *win->receive);
	if (!win->receive)
		return WEFT_ERR_NOMEM;
	atomic_store_explicit(&win->x_posted, WEFT_RMA_RECEIVES, memory_order_relaxed);
	for (int i = 0; i < WEFT_RMA_RECEIVES; i++) {
		win->receive[i].win = win;
		post_receive(&win->receive[i]);
	}
	return WEFT_OK;
}

void weft_rma_inbox_close(struct weft_rma_win *win)
{
	if (!win->receive)
		return;
	/* seq_cst: before the cancels; a receive that is posted later sees it. */
	atomic_store_explicit(&win->x_stop, true, memory_order_seq_cst);
	/* Ends when the last handler has returned and the network has taken all messages.  A receive
	 * that is just being posted is taken back in a later round. */
	for (;;) {
		/* STOP <- GONE (post_receive); and kept_sent's frees. */
		if (!atomic_load_explicit(&win->x_posted, memory_order_acquire) &&
		    !atomic_load_explicit(&win->x_unsent, memory_order_acquire) &&
		    weft_rma_serve_end(win))
			break;
		for (int i = 0; i < WEFT_RMA_RECEIVES; i++)
			/* Acquire: LEAVE, what the poster wrote. */
			if (atomic_load_explicit(&win->receive[i].x_state, memory_order_acquire) ==
			    POSTED)
				(void)weft_comm_recv_cancel(&win->receive[i].req);
		(void)weft_engine_poll();
		sched_yield();
	}
	for (int r = 0; r < win->size; r++)
		while (win->target[r].early) {
			struct weft_rma_early *e = win->target[r].early;
			win->target[r].early = e->next;
			free(e);
		}
	free(win->receive);
	win->receive = NULL;
}
