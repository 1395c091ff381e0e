/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * steps.c - small blocking collectives by messages, without a schedule: the caller walks through
 * the steps itself.
 *
 * Algorithms and messages are those of the schedules, in bcast.c and reduce.c.  All that a call
 * needs is in one struct, on the stack, and for a user-level thread, whose stack may be small, on
 * the heap.
 */
#include <stdlib.h>
#include <string.h>

#include "coll/alg.h"
#include "coll/blocking.h"
#include "coll/calls.h"
#include "base/assert.h"
#include "task/task.h"
#include "wait/stack.h"

/* Frames with buffers shall not add up in one. */
#define APART __attribute__((noinline))

/* What is combined: count elements, bytes in all. */
struct what {
	weft_reduce_fn *fn;
	const void *from;
	size_t count, bytes;
};

/* The state of one call, and what is under way at a time. */
struct steps {
	const struct weft_coll_group *g;
	enum weft_coll_kind kind;
	weft_err err; /* the first failure; from then on we send signs of failure */
	struct what what;
	struct weft_req recv, send;
	struct weft_buf mine, other;
	alignas(16) char acc[WEFT_COLL_STEPS_BYTES];
	alignas(16) char in[WEFT_COLL_STEPS_BYTES];
};

static void note_error(struct steps *n, weft_err err)
{
	if (err && !n->err)
		n->err = err;
}

/* Waits for a started receive into buf. */
static void finish_recv(struct steps *n, struct weft_req *req, const struct weft_buf *buf)
{
	weft_task_engine_wait(&req->done);
	weft_err err = weft_coll_judge(&req->status, buf, n->in[0]);
	if (weft_unlikely(weft_coll_is_stray(err, &req->status, buf) && !n->err))
		weft_coll_report_stray(n->g->ctx, n->kind, n->g->tag, req->status.peer);
	if (weft_unlikely(err)) /* others are told of a death as one */
		err = weft_coll_cause(n->g->ctx, err);
	note_error(n, err);
}

static bool start_recv(struct steps *n, struct weft_req *req, int rank, int tag,
		       const struct weft_buf *buf)
{
	weft_assert(rank != n->g->rank && tag < WEFT_TAG_AGREE);
	struct weft_buf sign = weft_data_buf_flat(n->in, 1);
	if (weft_unlikely(n->err) && weft_coll_ended(n->g->ctx, n->g->tag))
		return false;
	weft_comm_req_init(req, NULL, NULL);
	weft_err err = weft_comm_core_irecv(req, n->g->ctx, weft_coll_process(n->g, rank),
					    n->g->tag + tag, buf->bytes ? buf : &sign);
	note_error(n, err);
	return !err;
}

static void recv_step(struct steps *n, int rank, int tag, const struct weft_buf *buf)
{
	struct weft_req *req = &n->recv;
	if (start_recv(n, req, rank, tag, buf))
		finish_recv(n, req, buf);
}

/* The rare half of send: it does not go at once. */
static APART void send_and_wait(struct steps *n, int rank, int tag, const struct weft_buf *buf)
{
	struct weft_req *req = &n->send;
	weft_comm_req_init(req, NULL, NULL);
	weft_err err = weft_comm_core_isend(req, n->g->ctx, weft_coll_process(n->g, rank),
					    n->g->tag + tag, buf, WEFT_SEND_STANDARD);
	if (!err) {
		weft_task_engine_wait(&req->done);
		err = req->status.err;
	}
	note_error(n, err);
}

static void send_step(struct steps *n, int rank, int tag, const struct weft_buf *given)
{
	weft_assert(rank != n->g->rank && tag < WEFT_TAG_AGREE);
	struct weft_buf sign = weft_coll_sign_of(n->err, given->bytes);
	const struct weft_buf *buf = weft_likely(!n->err) ? given : &sign;
	weft_err err =
		weft_comm_send_now(n->g->ctx, weft_coll_process(n->g, rank), n->g->tag + tag, buf);
	if (err == WEFT_AGAIN)
		send_and_wait(n, rank, tag, buf);
	else
		note_error(n, err);
}

static const struct weft_buf nothing;

static APART void barrier_doubling(struct steps *n)
{
	const struct weft_coll_group *g = n->g;
	struct weft_req *req = &n->recv;
	for (int step = 1; step < g->size; step <<= 1) {
		bool posted = start_recv(n, req, (g->rank - step + g->size) % g->size,
					 WEFT_TAG_ACROSS, &nothing);
		send_step(n, (g->rank + step) % g->size, WEFT_TAG_ACROSS, &nothing);
		if (posted)
			finish_recv(n, req, &nothing);
	}
}

/* Rank 0 hears of all, then tells all: most ranks sleep only once. */
static APART void barrier_flat(struct steps *n)
{
	const struct weft_coll_group *g = n->g;
	if (g->rank) {
		send_step(n, 0, WEFT_TAG_UP, &nothing);
		recv_step(n, 0, WEFT_TAG_DOWN, &nothing);
		return;
	}
	for (int r = 1; r < g->size; r++)
		recv_step(n, r, WEFT_TAG_UP, &nothing);
	for (int r = 1; r < g->size; r++)
		send_step(n, r, WEFT_TAG_DOWN, &nothing);
}

static APART void bcast_tree(struct steps *n, const struct weft_buf *buf, int root)
{
	const struct weft_coll_group *g = n->g;
	int vr = (g->rank - root + g->size) % g->size, low = 1;
	if (weft_coll_alg_flat(g)) {
		if (vr)
			recv_step(n, root, WEFT_TAG_DOWN, buf);
		for (int i = 1; i < g->size && !vr; i++)
			send_step(n, (root + i) % g->size, WEFT_TAG_DOWN, buf);
		return;
	}
	while (low < g->size && !(vr & low))
		low <<= 1;
	if (vr)
		recv_step(n, (vr - low + root) % g->size, WEFT_TAG_DOWN, buf);
	for (int mask = low >> 1; mask; mask >>= 1)
		if (vr + mask < g->size)
			send_step(n, (vr + mask + root) % g->size, WEFT_TAG_DOWN, buf);
}

/* To root, combined from the last rank to the first; `to` is looked at on root only. */
static APART void reduce_at_root(struct steps *n, void *to, int root)
{
	const struct weft_coll_group *g = n->g;
	const struct what *w = &n->what;
	if (g->rank != root) {
		n->mine = weft_data_buf_flat(w->from, w->bytes);
		send_step(n, root, WEFT_TAG_UP, &n->mine);
		return;
	}
	n->mine = weft_data_buf_flat(n->acc, w->bytes);
	n->other = weft_data_buf_flat(n->in, w->bytes);
	int r = g->size - 1;
	if (r == root)
		memcpy(n->acc, w->from, w->bytes);
	else
		recv_step(n, r, WEFT_TAG_UP, &n->mine);
	for (r--; r >= 0; r--) {
		const void *left = w->from;
		if (r != root) {
			recv_step(n, r, WEFT_TAG_UP, &n->other);
			left = n->in;
		}
		if (!n->err)
			w->fn(left, n->acc, w->count);
	}
	memcpy(to, n->acc, w->bytes);
}

/* Sends what is mine to and receives from rank r at once. */
static void exchange_with(struct steps *n, int r)
{
	bool posted = start_recv(n, &n->recv, r, WEFT_TAG_ACROSS, &n->other);
	send_step(n, r, WEFT_TAG_ACROSS, &n->mine);
	if (posted)
		finish_recv(n, &n->recv, &n->other);
}

static APART void allreduce_doubling(struct steps *n, void *to)
{
	const struct weft_coll_group *g = n->g;
	const struct what *w = &n->what;
	int pow2 = 1, me;
	n->mine = weft_data_buf_flat(to, w->bytes);
	n->other = weft_data_buf_flat(n->in, w->bytes);
	while (pow2 * 2 <= g->size)
		pow2 *= 2;
	int extra = g->size - pow2;
	if (to != w->from)
		memcpy(to, w->from, w->bytes);
	if (g->rank < 2 * extra && g->rank % 2 == 0) {
		send_step(n, g->rank + 1, WEFT_TAG_FOLD, &n->mine);
		recv_step(n, g->rank + 1, WEFT_TAG_UNFOLD, &n->mine);
		return;
	}
	me = g->rank - extra;
	if (g->rank < 2 * extra) {
		recv_step(n, g->rank - 1, WEFT_TAG_FOLD, &n->other);
		if (!n->err)
			w->fn(n->in, to, w->count);
		me = g->rank / 2;
	}
	for (int mask = 1; mask < pow2; mask <<= 1) {
		int other = me ^ mask;
		exchange_with(n, other < extra ? 2 * other + 1 : other + extra);
		if (n->err)
			continue;
		if (other < me) {
			w->fn(n->in, to, w->count);
		} else {
			w->fn(to, n->in, w->count);
			memcpy(to, n->in, w->bytes);
		}
	}
	if (g->rank < 2 * extra)
		send_step(n, g->rank - 1, WEFT_TAG_UNFOLD, &n->mine);
}

/* ---- calls ---------------------------------------------------------------------------------- */

typedef void steps_fn(struct steps *n, const struct weft_coll_args *a);

static APART weft_err walk_here(steps_fn *fn, const struct weft_coll_group *g,
				const struct weft_coll_args *a)
{
	struct steps n;
	n.g = g;
	n.kind = a->kind;
	n.err = WEFT_OK;
	fn(&n, a);
	return n.err;
}

static APART weft_err walk_on_heap(steps_fn *fn, const struct weft_coll_group *g,
				   const struct weft_coll_args *a)
{
	struct steps *n = malloc(sizeof *n);
	if (!n)
		return WEFT_AGAIN; /* a schedule sends the same messages */
	n->g = g;
	n->kind = a->kind;
	n->err = WEFT_OK;
	fn(n, a);
	weft_err err = n->err;
	free(n);
	return err;
}

static weft_err walk_steps(steps_fn *fn, const struct weft_coll_group *g,
			   const struct weft_coll_args *a)
{
	weft_err err = weft_coll_note(g, a->kind, false);
	if (weft_unlikely(err))
		return err;
	return weft_wait_stack_may_be_small() ? walk_on_heap(fn, g, a) : walk_here(fn, g, a);
}

static void call_barrier(struct steps *n, const struct weft_coll_args *a)
{
	(void)a;
	barrier_doubling(n);
}

static void call_barrier_flat(struct steps *n, const struct weft_coll_args *a)
{
	(void)a;
	barrier_flat(n);
}

static void call_bcast(struct steps *n, const struct weft_coll_args *a)
{
	n->mine = weft_data_buf_typed(a->rbuf, a->rcount, a->rtype);
	if (n->mine.bytes)
		bcast_tree(n, &n->mine, a->root);
}

static void take_what(struct steps *n, const struct weft_coll_args *a)
{
	n->what = (struct what){.fn = a->op.fn,
				.from = a->in_place ? a->rbuf : a->sbuf,
				.count = a->rcount,
				.bytes = a->rcount * a->rtype->size};
	weft_assert(n->what.bytes && n->what.bytes <= WEFT_COLL_STEPS_BYTES);
}

static void call_reduce(struct steps *n, const struct weft_coll_args *a)
{
	take_what(n, a);
	reduce_at_root(n, a->rbuf, a->root);
}

static void call_allreduce(struct steps *n, const struct weft_coll_args *a)
{
	take_what(n, a);
	if (!weft_coll_alg_reduce_flat(n->g, n->what.bytes)) {
		allreduce_doubling(n, a->rbuf);
		return;
	}
	reduce_at_root(n, a->rbuf, 0);
	n->mine = weft_data_buf_flat(a->rbuf, n->what.bytes);
	bcast_tree(n, &n->mine, 0);
}

weft_err weft_coll_steps_barrier(const struct weft_coll_group *g, const struct weft_coll_args *a)
{
	return walk_steps(call_barrier, g, a);
}

weft_err weft_coll_steps_barrier_flat(const struct weft_coll_group *g,
				      const struct weft_coll_args *a)
{
	return walk_steps(call_barrier_flat, g, a);
}

weft_err weft_coll_steps_bcast(const struct weft_coll_group *g, const struct weft_coll_args *a)
{
	return walk_steps(call_bcast, g, a);
}

weft_err weft_coll_steps_reduce(const struct weft_coll_group *g, const struct weft_coll_args *a)
{
	return walk_steps(call_reduce, g, a);
}

weft_err weft_coll_steps_allreduce(const struct weft_coll_group *g, const struct weft_coll_args *a)
{
	return walk_steps(call_allreduce, g, a);
}
