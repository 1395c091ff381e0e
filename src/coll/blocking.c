/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blocking.c - small blocking collectives without a schedule: the caller walks through the steps itself.
 *
 * Same order of combining as in bcast.c and reduce.c, so that a blocking and a nonblocking call
 * give the same bits.  With more ranks than cores on one host, barrier, allreduce, allgather and
 * alltoall meet on a board (board.c), with more data than fits there piece by piece (stage.c), and
 * those with a root take turns there (feed.c), or read from each other (peer_reads.c); else algorithms
 * and messages are those of the schedules.  All that a call needs is in one struct now, on the
 * stack, and for a user-level thread, whose own may be small, on the heap.
 */
#include <stdlib.h>
#include <string.h>

#include "coll/alg.h"
#include "coll/shm/board.h"
#include "coll/limits.h"
#include "task/task.h"
#include "wait/stack.h"

#define SMALL 64 /* bytes that a reduction may have */

/* Frames with buffers shall not add up in one. */
#define APART __attribute__((noinline))

/* What is combined: count elements, bytes in all. */
struct what {
	weft_reduce_fn *fn;
	const void *from;
	size_t count, bytes;
};

/* The state of one call, and what is under way at a time. */
struct now {
	const struct weft_coll_group *g;
	weft_err err; /* the first failure; from then on we send signs of failure */
	struct what what;
	struct weft_req recv, send;
	struct weft_buf mine, other;
	alignas(16) char acc[SMALL];
	alignas(16) char in[SMALL];
};

static void note(struct now *n, weft_err err)
{
	if (err && !n->err)
		n->err = err;
}

/* Waits for a started receive of `bytes` bytes. */
static void finish_recv(struct now *n, struct weft_req *req, size_t bytes)
{
	weft_task_engine_wait(&req->done);
	weft_err err = req->status.err;
	/* See check_message in run.c. */
	if ((!err && !req->status.bytes && bytes) || (err == WEFT_ERR_TRUNC && !bytes))
		err = WEFT_ERR_PEER;
	note(n, err);
}

static bool start_recv(struct now *n, struct weft_req *req, int rank, int tag,
		       const struct weft_buf *buf)
{
	weft_comm_req_init(req, NULL, NULL);
	weft_err err = weft_comm_core_irecv(req, n->g->ctx, weft_coll_process(n->g, rank),
					    n->g->tag + tag, buf);
	note(n, err);
	return !err;
}

static void recv(struct now *n, int rank, int tag, const struct weft_buf *buf)
{
	struct weft_req *req = &n->recv;
	if (start_recv(n, req, rank, tag, buf))
		finish_recv(n, req, buf->bytes);
}

/* The rare half of send: it does not go at once. */
static APART void send_waiting(struct now *n, int rank, int tag, const struct weft_buf *buf)
{
	struct weft_req *req = &n->send;
	weft_comm_req_init(req, NULL, NULL);
	weft_err err = weft_comm_core_isend(req, n->g->ctx, weft_coll_process(n->g, rank),
					    n->g->tag + tag, buf, WEFT_SEND_STANDARD);
	if (!err) {
		weft_task_engine_wait(&req->done);
		err = req->status.err;
	}
	note(n, err);
}

static void send(struct now *n, int rank, int tag, const struct weft_buf *given)
{
	static char byte;
	struct weft_buf sign = weft_data_buf_flat(&byte, given->bytes ? 0 : 1);
	const struct weft_buf *buf = weft_likely(!n->err) ? given : &sign;
	weft_err err =
		weft_comm_send_now(n->g->ctx, weft_coll_process(n->g, rank), n->g->tag + tag, buf);
	if (err == WEFT_AGAIN)
		send_waiting(n, rank, tag, buf);
	else
		note(n, err);
}

static const struct weft_buf nothing;

static APART void barrier(struct now *n)
{
	const struct weft_coll_group *g = n->g;
	struct weft_req *req = &n->recv;
	for (int step = 1; step < g->size; step <<= 1) {
		bool posted = start_recv(n, req, (g->rank - step + g->size) % g->size,
					 WEFT_TAG_ACROSS, &nothing);
		send(n, (g->rank + step) % g->size, WEFT_TAG_ACROSS, &nothing);
		if (posted)
			finish_recv(n, req, 0);
	}
}

/* Rank 0 hears of all, then tells all: most ranks sleep only once. */
static APART void barrier_flat(struct now *n)
{
	const struct weft_coll_group *g = n->g;
	if (g->rank) {
		send(n, 0, WEFT_TAG_UP, &nothing);
		recv(n, 0, WEFT_TAG_DOWN, &nothing);
		return;
	}
	for (int r = 1; r < g->size; r++)
		recv(n, r, WEFT_TAG_UP, &nothing);
	for (int r = 1; r < g->size; r++)
		send(n, r, WEFT_TAG_DOWN, &nothing);
}

static APART void bcast(struct now *n, const struct weft_buf *buf, int root)
{
	const struct weft_coll_group *g = n->g;
	int vr = (g->rank - root + g->size) % g->size, low = 1;
	if (weft_coll_alg_flat(g)) {
		if (vr)
			recv(n, root, WEFT_TAG_DOWN, buf);
		for (int i = 1; i < g->size && !vr; i++)
			send(n, (root + i) % g->size, WEFT_TAG_DOWN, buf);
		return;
	}
	while (low < g->size && !(vr & low))
		low <<= 1;
	if (vr)
		recv(n, (vr - low + root) % g->size, WEFT_TAG_DOWN, buf);
	for (int mask = low >> 1; mask; mask >>= 1)
		if (vr + mask < g->size)
			send(n, (vr + mask + root) % g->size, WEFT_TAG_DOWN, buf);
}

/* To root, combined from the last rank to the first; `to` is looked at on root only. */
static APART void reduce_flat(struct now *n, void *to, int root)
{
	const struct weft_coll_group *g = n->g;
	const struct what *w = &n->what;
	if (g->rank != root) {
		n->mine = weft_data_buf_flat(w->from, w->bytes);
		send(n, root, WEFT_TAG_UP, &n->mine);
		return;
	}
	n->mine = weft_data_buf_flat(n->acc, w->bytes);
	n->other = weft_data_buf_flat(n->in, w->bytes);
	int r = g->size - 1;
	if (r == root)
		memcpy(n->acc, w->from, w->bytes);
	else
		recv(n, r, WEFT_TAG_UP, &n->mine);
	for (r--; r >= 0; r--) {
		const void *left = w->from;
		if (r != root) {
			recv(n, r, WEFT_TAG_UP, &n->other);
			left = n->in;
		}
		if (!n->err)
			w->fn(left, n->acc, w->count);
	}
	memcpy(to, n->acc, w->bytes);
}

/* Sends what is mine to and receives from rank r at once. */
static void swap_with(struct now *n, int r)
{
	bool posted = start_recv(n, &n->recv, r, WEFT_TAG_ACROSS, &n->other);
	send(n, r, WEFT_TAG_ACROSS, &n->mine);
	if (posted)
		finish_recv(n, &n->recv, n->other.bytes);
}

static APART void allreduce_doubling(struct now *n, void *to)
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
		send(n, g->rank + 1, WEFT_TAG_FOLD, &n->mine);
		recv(n, g->rank + 1, WEFT_TAG_UNFOLD, &n->mine);
		return;
	}
	me = g->rank - extra;
	if (g->rank < 2 * extra) {
		recv(n, g->rank - 1, WEFT_TAG_FOLD, &n->other);
		if (!n->err)
			w->fn(n->in, to, w->count);
		me = g->rank / 2;
	}
	for (int mask = 1; mask < pow2; mask <<= 1) {
		int other = me ^ mask;
		swap_with(n, other < extra ? 2 * other + 1 : other + extra);
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
		send(n, g->rank - 1, WEFT_TAG_UNFOLD, &n->mine);
}

/* Is there room on a board for what each member has, of so many blocks of one size?  The same
 * answer on all of them: sizes match, whatever the types. */
static size_t shown_bytes(const struct weft_coll_group *g, const struct weft_coll_args *a,
			  size_t blocks)
{
	size_t room = g->crowded ? weft_coll_board_room(g) : 0, size = a->rtype->size;
	return size && a->rcount <= room / blocks / size ? a->rcount * size * blocks : 0;
}

/* Each shows its block, or its blocks for all, and takes what is for it: from member r what lies
 * `at` bytes behind the beginning of what r shows. */
static APART weft_err exchange_on_board(const struct weft_coll_group *g,
					const struct weft_coll_args *a, const struct weft_buf *from,
					size_t bytes, size_t at)
{
	weft_coll_board_note(g, a->kind);
	weft_err err = weft_coll_board_show(g, a->kind, from, bytes);
	for (int r = 0; r < g->size && !err; r++) {
		struct weft_buf to = weft_coll_view_buf(weft_coll_args_rblock(a, r));
		if (!a->in_place || r != g->rank || a->kind == WEFT_COLL_ALLTOALL)
			weft_data_unpack(&to, 0, weft_coll_board_shown(g, r) + at, to.bytes);
	}
	return err;
}

/* Through the board, or piece by piece; n->mine is `blocks` blocks that this member gives. */
static weft_err exchange(struct now *n, const struct weft_coll_args *a, size_t blocks, size_t at)
{
	const struct weft_coll_group *g = n->g;
	size_t bytes = shown_bytes(g, a, blocks);
	if (bytes && weft_coll_board_open(g, &n->err))
		return exchange_on_board(g, a, &n->mine, bytes, bytes / blocks * at);
	if (!bytes && weft_coll_limit_staged(g, a->kind, a->rcount, a->rtype->size, blocks) &&
	    weft_coll_stage_open(g, a->kind, &n->err))
		return weft_coll_stage_exchange(g, a, &n->mine);
	if (n->err || a->kind != WEFT_COLL_ALLTOALL || !g->crowded)
		return n->err ? n->err : WEFT_AGAIN;
	return weft_coll_peer_reads_alltoall(g, a, &n->mine);
}

static APART weft_err allgather(struct now *n, const struct weft_coll_args *a)
{
	n->mine = weft_coll_view_buf(a->in_place ? weft_coll_args_rblock(a, n->g->rank)
						 : weft_coll_view(a->sbuf, a->scount, a->stype));
	return exchange(n, a, 1, 0);
}

static APART weft_err alltoall(struct now *n, const struct weft_coll_args *a)
{
	size_t size = (size_t)n->g->size;
	n->mine = weft_coll_view_buf(a->in_place
					     ? weft_coll_view(a->rbuf, a->rcount * size, a->rtype)
					     : weft_coll_view(a->sbuf, a->scount * size, a->stype));
	return exchange(n, a, size, (size_t)n->g->rank);
}

/* Too large for the board; of a predefined operation on data without holes. */
static APART weft_err allreduce_staged(struct now *n, const struct weft_coll_args *a)
{
	const struct weft_type *t = a->rtype;
	if (!a->op.fn || !t->flat || t->true_lb || !n->g->crowded)
		return WEFT_AGAIN;
	if (!weft_coll_limit_staged(n->g, a->kind, a->rcount, t->size, 1))
		return weft_coll_peer_reads_allreduce(n->g, a);
	if (!weft_coll_stage_open(n->g, a->kind, &n->err))
		return n->err ? n->err : WEFT_AGAIN;
	return weft_coll_stage_allreduce(n->g, a);
}

/* At most so many bytes, and an operation that needs no user's code?  Fills w. */
static bool small(const struct weft_coll_args *a, struct what *w, size_t most)
{
	const struct weft_type *t = a->rtype;
	if (!a->op.fn || !t->flat || t->true_lb || a->rcount > most || a->rcount * t->size > most ||
	    !a->rcount)
		return false;
	*w = (struct what){.fn = a->op.fn,
			   .from = a->in_place ? a->rbuf : a->sbuf,
			   .count = a->rcount,
			   .bytes = a->rcount * t->size};
	return true;
}

static inline __attribute__((always_inline)) weft_err
walk(struct now *n, const struct weft_coll_group *g, const struct weft_coll_args *a)
{
	const struct what *w = &n->what;
	n->g = g;
	n->err = WEFT_OK;
	switch (a->kind) {
	case WEFT_COLL_BARRIER:
		if (weft_coll_board_open(g, &n->err)) {
			weft_coll_board_note(g, a->kind);
			return weft_coll_board_meet(g, NULL, NULL, NULL, 0, 0);
		}
		if (!g->crowded)
			barrier(n);
		else if (weft_coll_alg_flat(g))
			barrier_flat(n);
		else
			return WEFT_AGAIN;
		return n->err;
	case WEFT_COLL_BCAST:
		if (a->rcount > WEFT_LIMIT_NOW_BCAST_BYTES ||
		    a->rcount * a->rtype->size > WEFT_LIMIT_NOW_BCAST_BYTES)
			return WEFT_AGAIN;
		n->err = weft_coll_feed_bcast(g, a);
		if (n->err != WEFT_AGAIN)
			return n->err;
		if ((n->err = weft_coll_note(g, a->kind, false)))
			return n->err;
		n->mine = weft_data_buf_typed(a->rbuf, a->rcount, a->rtype);
		if (n->mine.bytes)
			bcast(n, &n->mine, a->root);
		return n->err;
	case WEFT_COLL_REDUCE:
		if (!weft_coll_alg_reduce_flat(g, a->rcount * a->rtype->size) ||
		    !small(a, &n->what, g->crowded ? WEFT_BOARD_AREA : SMALL))
			return WEFT_AGAIN;
		n->err = weft_coll_feed_reduce(g, a);
		if (n->err != WEFT_AGAIN || w->bytes > SMALL)
			return n->err;
		if ((n->err = weft_coll_note(g, a->kind, false)))
			return n->err;
		reduce_flat(n, a->rbuf, a->root);
		return n->err;
	case WEFT_COLL_ALLREDUCE:
		if (!small(a, &n->what, g->crowded ? WEFT_BOARD_AREA : SMALL))
			return allreduce_staged(n, a);
		if (g->crowded && w->bytes <= weft_coll_board_room(g) &&
		    weft_coll_board_open(g, &n->err)) {
			weft_coll_board_note(g, a->kind);
			return weft_coll_board_meet(g, w->fn, w->from, a->rbuf, w->count, w->bytes);
		}
		if (w->bytes > SMALL)
			return n->err ? n->err : allreduce_staged(n, a);
		if ((n->err = weft_coll_note(g, a->kind, false)))
			return n->err;
		if (!weft_coll_alg_reduce_flat(g, w->bytes)) {
			allreduce_doubling(n, a->rbuf);
			return n->err;
		}
		reduce_flat(n, a->rbuf, 0);
		n->mine = weft_data_buf_flat(a->rbuf, w->bytes);
		bcast(n, &n->mine, 0);
		return n->err;
	case WEFT_COLL_SCATTER:
		return weft_coll_feed_scatter(g, a);
	case WEFT_COLL_GATHER:
		return weft_coll_feed_gather(g, a);
	case WEFT_COLL_ALLGATHER:
		return allgather(n, a);
	case WEFT_COLL_ALLTOALL:
		return alltoall(n, a);
	default:
		return WEFT_AGAIN;
	}
}

static APART weft_err walk_here(const struct weft_coll_group *g, const struct weft_coll_args *a)
{
	struct now n;
	return walk(&n, g, a);
}

static APART weft_err walk_light(const struct weft_coll_group *g, const struct weft_coll_args *a)
{
	struct now *n = malloc(sizeof *n);
	if (!n)
		return WEFT_AGAIN; /* a schedule sends the same messages */
	weft_err err = walk(n, g, a);
	free(n);
	return err;
}

weft_err weft_coll_now(const struct weft_coll_group *g, const struct weft_coll_args *a)
{
	if (g->remote_size || g->size == 1)
		return WEFT_AGAIN;
	return weft_wait_stack_may_be_small() ? walk_light(g, a) : walk_here(g, a);
}
