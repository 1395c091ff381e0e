/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * serve.c - accesses of origins that cannot reach our memory, served by the engine.
 *
 * Runs in the poll that took the message, in the order of its origin.  Nothing here trusts what the
 * origin wrote: spans are checked against the window's memory, sizes against each other.
 */
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "rma/acc.h"
#include "rma/win_int.h"
#include "task/task.h"

/* A span in our memory. */
static char *span_address(const struct weft_rma_win *win, const struct weft_rma_span *s)
{
	char *base = win->flavor == WEFT_RMA_DYNAMIC ? NULL : win->base;
	return (char *)((uintptr_t)base + s->at);
}

/* Do all spans lie in the window?  *bytes_p: of them together. */
static bool spans_fit(struct weft_rma_win *win, const struct weft_rma_head *h, size_t *bytes_p)
{
	const struct weft_rma_span *s = weft_rma_spans(h);
	*bytes_p = 0;
	for (unsigned i = 0; i < h->n_spans; i++) {
		if (!weft_rma_reachable(win, s[i].at, s[i].len))
			return false;
		*bytes_p += s[i].len;
	}
	return true;
}

static weft_err serve_put(struct weft_rma_win *win, const struct weft_rma_head *h, size_t bytes)
{
	const struct weft_rma_span *s = weft_rma_spans(h);
	const char *data = weft_rma_data(h);
	if (bytes != h->bytes)
		return WEFT_ERR_PROTO;
	for (unsigned i = 0; i < h->n_spans; data += s[i++].len)
		memcpy(span_address(win, &s[i]), data, s[i].len);
	return WEFT_OK;
}

/* ---- large ones ----------------------------------------------------------------------------- */

struct weft_rma_coming {
	struct weft_rma_coming *next, **prev_p; /* L */
	struct weft_req req;
	struct weft_rma_win *win;
	int rank, tag;
	bool put;
	bool taken_back; /* L */
	bool kept, over; /* L: while it is being taken back; it has ended meanwhile */
};

/* err: what the origin's accesses before them came to. */
static void behind_over(struct weft_rma_win *win, int rank, const struct weft_rma_behind *b,
			uint32_t n, weft_err err)
{
	for (uint32_t i = 0; i < n; i++) {
		if (b[i].note && !err)
			weft_rma_note_came(win, b[i].id);
		else if (!b[i].note && weft_rma_tell(win, rank, WEFT_RMA_FLUSHED, b[i].id, err))
			weft_debug("window: rank %d does not hear of its flush", rank);
	}
}

static bool any_flush(const struct weft_rma_behind *b, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!b[i].note)
			return true;
	return false;
}

static void list_locked(struct weft_rma_win *win, struct weft_rma_coming *c)
{
	weft_assert_held(weft_comm_spin, &win->lock);
	c->next = win->coming;
	c->prev_p = &win->coming;
	if (c->next)
		c->next->prev_p = &c->next;
	win->coming = c;
}

static void unlist_locked(struct weft_rma_win *win, struct weft_rma_coming *c)
{
	weft_assert_held(weft_comm_spin, &win->lock);
	*c->prev_p = c->next;
	if (c->next)
		c->next->prev_p = c->prev_p;
}

/* A put's data has come, or an answer has gone. */
static void large_over(struct weft_req *req, void *arg)
{
	struct weft_rma_coming *c = arg;
	struct weft_rma_win *win = c->win;
	struct weft_rma_target *t = &win->target[c->rank];
	struct weft_rma_behind *behind = NULL;
	uint32_t n = 0;
	weft_err err = WEFT_OK;
	int rank = c->rank;
	weft_comm_spin_lock(&win->lock);
	/* Truncated: a put that was refused. */
	if (c->put && req->status.err && !t->served)
		t->served = req->status.err == WEFT_ERR_TRUNC ? WEFT_ERR_ARG : req->status.err;
	if (c->put && --t->coming == 0) {
		err = t->served;
		behind = t->flush;
		n = t->n_flushes;
		t->flush = NULL;
		t->n_flushes = 0;
		if (any_flush(behind, n))
			t->served = WEFT_OK;
	}
	weft_comm_spin_unlock(&win->lock);
	behind_over(win, rank, behind, n, err);
	free(behind);
	/* Last: the closer waits for an empty list. */
	weft_comm_spin_lock(&win->lock);
	bool kept = c->kept;
	c->over = true;
	if (!kept)
		unlist_locked(win, c);
	weft_comm_spin_unlock(&win->lock);
	if (!kept)
		free(c);
}

/* Data goes between b and the origin by a message of its own, which the origin has named. */
static weft_err serve_large(struct weft_rma_win *win, int rank, const struct weft_rma_head *h,
			    const struct weft_buf *b)
{
	bool put = h->kind == WEFT_RMA_PUT_LARGE;
	if (!weft_rma_tag_sane((int)h->id, !put))
		return WEFT_ERR_PROTO;
	struct weft_rma_coming *c = malloc(sizeof *c);
	int peer = weft_rma_process(win, rank);
	if (!c)
		return WEFT_ERR_NOMEM;
	*c = (struct weft_rma_coming){.win = win, .rank = rank, .tag = (int)h->id, .put = put};
	weft_comm_req_init(&c->req, large_over, c);
	weft_comm_spin_lock(&win->lock);
	win->target[rank].coming += put;
	list_locked(win, c);
	weft_comm_spin_unlock(&win->lock);
	weft_err err = put ? weft_comm_core_irecv(&c->req, win->data, peer, (int)h->id, b)
			   : weft_comm_core_isend(&c->req, win->data, peer, (int)h->id, b,
						  WEFT_SEND_STANDARD);
	if (err) {
		c->req.status.err = err;
		large_over(&c->req, c);
	} else if (!put) {
		weft_task_engine_pending();
	}
	return WEFT_OK;
}

/* One that has not been taken back; it is kept. */
static struct weft_rma_coming *next_coming_locked(struct weft_rma_win *win)
{
	weft_assert_held(weft_comm_spin, &win->lock);
	struct weft_rma_coming *c = win->coming;
	while (c && c->taken_back)
		c = c->next;
	if (c)
		c->taken_back = c->kept = true;
	return c;
}

bool weft_rma_serve_end(struct weft_rma_win *win)
{
	/* Ends: each turn takes one back for the first time.  One that is under way ends by itself. */
	for (;;) {
		weft_comm_spin_lock(&win->lock);
		struct weft_rma_coming *c = next_coming_locked(win);
		bool none = !win->coming;
		weft_comm_spin_unlock(&win->lock);
		if (!c)
			return none;
		if (c->put)
			(void)weft_comm_recv_cancel(&c->req);
		else
			weft_comm_send_cancel(&c->req, win->data, weft_rma_process(win, c->rank),
					      c->tag);
		weft_comm_spin_lock(&win->lock);
		bool over = c->over;
		c->kept = false;
		if (over)
			unlist_locked(win, c);
		weft_comm_spin_unlock(&win->lock);
		if (over)
			free(c);
	}
}

/* ---- answers ------------------------------------------------------------------------------ */

/* The answer to h: `bytes` bytes of room, or an error. */
static struct weft_rma_head *answer_to(const struct weft_rma_head *h, size_t bytes, weft_err err)
{
	struct weft_rma_head *a = weft_rma_message(WEFT_RMA_RESULT, 0, err ? 0 : bytes);
	if (a) {
		a->id = h->id;
		a->err = (int32_t)err;
	}
	return a;
}

static void send_answer(struct weft_rma_win *win, int rank, struct weft_rma_head *a)
{
	if (weft_rma_send(win, rank, a))
		weft_debug("window: rank %d does not get its answer", rank);
}

static void serve_get(struct weft_rma_win *win, int rank, const struct weft_rma_head *h,
		      size_t bytes)
{
	const struct weft_rma_span *s = weft_rma_spans(h);
	weft_err err = bytes <= weft_rma_room(0) ? WEFT_OK : WEFT_ERR_PROTO;
	struct weft_rma_head *a = answer_to(h, bytes, err);
	char *to = a && !err ? weft_rma_data(a) : NULL;
	for (unsigned i = 0; to && i < h->n_spans; to += s[i++].len)
		memcpy(to, span_address(win, &s[i]), s[i].len);
	send_answer(win, rank, a);
}

static weft_err acc_spans(struct weft_rma_win *win, const struct weft_rma_head *h, char *result,
			  size_t bytes)
{
	const struct weft_rma_span *s = weft_rma_spans(h);
	struct iovec piece[WEFT_RMA_SPANS_MAX];
	struct weft_buf from = weft_data_buf_flat(weft_rma_data(h), h->bytes);
	struct weft_buf to = weft_data_buf_flat(result, bytes);
	for (unsigned i = 0; i < h->n_spans; i++)
		piece[i] = (struct iovec){span_address(win, &s[i]), s[i].len};
	struct weft_rma_acc a = {.win = win,
				 .rank = win->rank,
				 .there = {.piece = piece, .n_pieces = h->n_spans},
				 .red = {(enum weft_op)h->op, h->elem},
				 .from = h->op == WEFT_OP_NO_OP ? NULL : &from,
				 .result = result ? &to : NULL,
				 .bytes = bytes};
	return weft_rma_acc(&a);
}

static weft_err acc_sane(const struct weft_rma_head *h, size_t bytes)
{
	bool operands = h->op != WEFT_OP_NO_OP;
	if (h->op >= WEFT_OP_COUNT || !weft_data_is_elem(h->elem) ||
	    h->bytes != (operands ? bytes : 0) || bytes > weft_rma_room(0))
		return WEFT_ERR_PROTO;
	return bytes % weft_rma_elem_bytes(h->elem) ? WEFT_ERR_PROTO : WEFT_OK;
}

static weft_err serve_acc(struct weft_rma_win *win, int rank, const struct weft_rma_head *h,
			  size_t bytes)
{
	weft_err err = acc_sane(h, bytes);
	if (h->kind == WEFT_RMA_ACC)
		return err ? err : acc_spans(win, h, NULL, bytes);
	struct weft_rma_head *a = answer_to(h, bytes, err);
	if (a && !err) {
		err = acc_spans(win, h, weft_rma_data(a), bytes);
		if (err) {
			a->err = (int32_t)err;
			a->bytes = 0;
		}
	}
	send_answer(win, rank, a);
	return WEFT_OK;
}

static void serve_swap(struct weft_rma_win *win, int rank, const struct weft_rma_head *h,
		       size_t bytes)
{
	weft_err err = weft_data_is_elem(h->elem) && bytes == weft_rma_elem_bytes(h->elem) &&
				       bytes <= 16 && h->bytes == 2 * bytes && h->n_spans == 1
			       ? WEFT_OK
			       : WEFT_ERR_PROTO;
	struct weft_rma_head *a = answer_to(h, bytes, err);
	if (a && !err) {
		struct weft_rma_memory m = {
			.buf = weft_data_buf_flat(span_address(win, weft_rma_spans(h)), bytes)};
		a->err = (int32_t)weft_rma_acc_swap(win, win->rank, &m, h->elem, weft_rma_data(h),
						    weft_rma_data(h) + bytes, weft_rma_data(a));
	}
	send_answer(win, rank, a);
}

/* A flush or a note: at once, or when the large puts before it have come. */
static void behind_puts(struct weft_rma_win *win, int rank, struct weft_rma_behind b)
{
	struct weft_rma_target *t = &win->target[rank];
	weft_err err = WEFT_OK;
	bool later = false;
	weft_comm_spin_lock(&win->lock);
	if (t->coming) {
		struct weft_rma_behind *grown =
			realloc(t->flush, (t->n_flushes + 1) * sizeof *grown);
		later = grown != NULL;
		if (grown) {
			t->flush = grown;
			t->flush[t->n_flushes++] = b;
		} else {
			err = WEFT_ERR_NOMEM;
		}
	} else {
		err = t->served;
		if (!b.note)
			t->served = WEFT_OK;
	}
	weft_comm_spin_unlock(&win->lock);
	if (!later)
		behind_over(win, rank, &b, 1, err);
}

/* ---- all ------------------------------------------------------------------------------------ */

static void refuse_access(struct weft_rma_win *win, int rank, const struct weft_rma_head *h)
{
	if (h->kind == WEFT_RMA_GET || h->kind == WEFT_RMA_FETCH_ACC || h->kind == WEFT_RMA_SWAP)
		send_answer(win, rank, answer_to(h, 0, WEFT_ERR_ARG));
	else if (h->kind == WEFT_RMA_GET_LARGE || h->kind == WEFT_RMA_PUT_LARGE) {
		/* It still has its message: taken and dropped, or answered empty. */
		struct weft_buf none = weft_data_buf_flat(NULL, 0);
		(void)serve_large(win, rank, h, &none);
	}
}

/* The next flush tells. */
static void note_failed(struct weft_rma_win *win, int rank, const struct weft_rma_head *h,
			weft_err err)
{
	/* What has an answer of its own tells by that. */
	if (h->kind == WEFT_RMA_GET || h->kind == WEFT_RMA_GET_LARGE ||
	    h->kind == WEFT_RMA_FETCH_ACC || h->kind == WEFT_RMA_SWAP)
		return;
	weft_comm_spin_lock(&win->lock);
	if (!win->target[rank].served)
		win->target[rank].served = err;
	weft_comm_spin_unlock(&win->lock);
}

void weft_rma_serve(struct weft_rma_win *win, int rank, const struct weft_rma_head *h, size_t len)
{
	size_t bytes;
	weft_err err = WEFT_OK;
	weft_assert(weft_rma_message_bytes(h) == len);
	if (!spans_fit(win, h, &bytes)) {
		refuse_access(win, rank, h);
		err = WEFT_ERR_ARG;
	} else if (h->kind == WEFT_RMA_PUT) {
		err = serve_put(win, h, bytes);
	} else if (h->kind == WEFT_RMA_PUT_LARGE || h->kind == WEFT_RMA_GET_LARGE) {
		const struct weft_rma_span *s = weft_rma_spans(h);
		struct weft_buf b =
			weft_data_buf_flat(h->n_spans ? span_address(win, s) : NULL, bytes);
		err = h->n_spans == 1 ? serve_large(win, rank, h, &b) : WEFT_ERR_PROTO;
	} else if (h->kind == WEFT_RMA_GET) {
		serve_get(win, rank, h, bytes);
	} else if (h->kind == WEFT_RMA_ACC || h->kind == WEFT_RMA_FETCH_ACC) {
		err = serve_acc(win, rank, h, bytes);
	} else if (h->kind == WEFT_RMA_SWAP) {
		serve_swap(win, rank, h, bytes);
	} else if (h->kind == WEFT_RMA_FLUSH) {
		behind_puts(win, rank, (struct weft_rma_behind){h->id, false});
	} else if (h->kind == WEFT_RMA_NOTE) {
		err = h->id < WEFT_RMA_NOTES ? WEFT_OK : WEFT_ERR_PROTO;
		if (!err)
			behind_puts(win, rank, (struct weft_rma_behind){h->id, true});
	} else if (h->kind == WEFT_RMA_UNLOCK) {
		weft_rma_lock_left(win, rank, h->flags & WEFT_RMA_EXCLUSIVE);
	} else if (h->kind == WEFT_RMA_COMPLETE) {
		/* COMPLETED -> complete_wait.  Carries: what was served before. */
		atomic_fetch_add_explicit(&win->target[rank].told_apart.x_completes, 1,
					  memory_order_release);
		weft_rma_notify(win);
	}
	if (err)
		note_failed(win, rank, h, err);
	if ((h->kind == WEFT_RMA_PUT || h->kind == WEFT_RMA_ACC) && h->flags & WEFT_RMA_ASKS)
		behind_puts(win, rank, (struct weft_rma_behind){h->id, false});
}
