/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * board_make.c - a group agrees on its board, by messages, in its BOARD_FROM-th small collective:
 * groups that live shorter do not pay for it.
 */
#include <stdlib.h>

#include "coll/shm/board_int.h"
#include "task/task.h"

#define BOARD_FROM 4
_Static_assert(sizeof(struct weft_board_memory) == WEFT_COMM_BOARD_BYTES, "comm/ has room for it");

/* ---- messages ----------------------------------------------------------------------------- */

weft_err weft_coll_board_send(const struct weft_coll_group *g, int rank, int tag, const void *data,
			      size_t bytes)
{
	struct weft_buf buf = weft_data_buf_flat(data, bytes);
	int peer = weft_coll_process(g, rank);
	weft_err err = weft_comm_send_now(g->ctx, peer, tag, &buf);
	if (err != WEFT_AGAIN)
		return err;
	struct weft_req *req = &weft_coll_keep_of(g)->req;
	weft_comm_req_init(req, NULL, NULL);
	err = weft_comm_core_isend(req, g->ctx, peer, tag, &buf, WEFT_SEND_STANDARD);
	if (err)
		return err;
	weft_task_engine_wait(&req->done);
	return req->status.err;
}

weft_err weft_coll_board_recv(const struct weft_coll_group *g, int peer, int tag, void *data,
			      size_t bytes)
{
	struct weft_buf buf = weft_data_buf_flat(data, bytes);
	struct weft_req *req = &weft_coll_keep_of(g)->req;
	weft_comm_req_init(req, NULL, NULL);
	weft_err err = weft_comm_core_irecv(req, g->ctx, peer, tag, &buf);
	if (err)
		return err;
	weft_task_engine_wait(&req->done);
	err = req->status.err;
	return !err && req->status.bytes != bytes ? WEFT_ERR_PEER : err;
}

/* ---- making one --------------------------------------------------------------------------- */

/* The same answer on every member. */
static bool may_have_board(const struct weft_coll_group *g)
{
	if (!g->crowded || g->size < 2 || g->size > WEFT_BOARD_MEMBERS)
		return false;
	for (int r = 0; r < g->size; r++)
		if (!weft_comm_same_host(weft_coll_process(g, r)))
			return false;
	return true;
}

static struct weft_board_slot *slot_at(int owner, int index)
{
	struct weft_board_memory *m = weft_comm_board(owner);
	return m && index >= 0 && index < WEFT_BOARD_SLOTS ? &m->slot[index] : NULL;
}

/* A free slot of our own; -1: none. */
static int slot_take(int self)
{
	for (int i = 0; i < WEFT_BOARD_SLOTS; i++) {
		struct weft_board_slot *s = slot_at(self, i);
		uint32_t none = 0;
		/* TAKE <- GIVE (weft_coll_keep_free).  Carries: nobody of the last group looks at
		 * the slot any more. */
		if (!s || !atomic_compare_exchange_strong_explicit(
				  &s->x_used, &none, 1, memory_order_acquire, memory_order_relaxed))
			continue;
		/* Relaxed: the message with the index publishes them. */
		atomic_store_explicit(&s->x_left, 0, memory_order_relaxed);
		atomic_store_explicit(&s->x_count, 0, memory_order_relaxed);
		atomic_store_explicit(&s->x_turn, 0, memory_order_relaxed);
		atomic_store_explicit(&s->feed.x_head, 0, memory_order_relaxed);
		atomic_store_explicit(&s->feed.x_floor, 0, memory_order_relaxed);
		atomic_store_explicit(&s->feed.x_passed[0], 0, memory_order_relaxed);
		atomic_store_explicit(&s->feed.x_passed[1], 0, memory_order_relaxed);
		for (unsigned t = 0; t < WEFT_FEED_TURNS; t++) {
			weft_coll_feed_clear(&s->feed.turn[t]);
			s->feed.turn[t].number = UINT32_MAX; /* the last group's could be ours */
		}
		for (int r = 0; r < WEFT_BOARD_MEMBERS; r++)
			atomic_store_explicit(&s->cell[r].x_note, 0, memory_order_relaxed);
		return i;
	}
	return -1;
}

/* The first member offers a slot, hears whether all can reach it, and says so. */
static weft_err agree_first(const struct weft_coll_group *g, struct weft_keep *k)
{
	int self = weft_coll_process(g, 0), index = slot_take(self);
	char yes = index >= 0, answer;
	weft_err err = WEFT_OK;
	for (int r = 1; r < g->size && !err; r++)
		err = weft_coll_board_send(g, r, g->tag + WEFT_TAG_BOARD, &index, sizeof index);
	for (int r = 1; r < g->size && !err; r++) {
		err = weft_coll_board_recv(g, weft_coll_process(g, r), g->tag + WEFT_TAG_BOARD,
					   &answer, 1);
		yes = yes && answer;
	}
	for (int r = 1; r < g->size && !err; r++)
		err = weft_coll_board_send(g, r, g->tag + WEFT_TAG_BOARD, &yes, 1);
	if (!err && yes)
		k->slot = slot_at(self, index);
	else if (!err && index >= 0)
		/* Relaxed: nobody else has used it. */
		atomic_store_explicit(&slot_at(self, index)->x_used, 0, memory_order_relaxed);
	return err;
}

static weft_err agree_other(const struct weft_coll_group *g, struct weft_keep *k)
{
	int first = weft_coll_process(g, 0), index;
	char yes;
	weft_err err =
		weft_coll_board_recv(g, first, g->tag + WEFT_TAG_BOARD, &index, sizeof index);
	if (err)
		return err;
	struct weft_board_slot *slot = slot_at(first, index);
	yes = slot != NULL;
	err = weft_coll_board_send(g, 0, g->tag + WEFT_TAG_BOARD, &yes, 1);
	if (!err)
		err = weft_coll_board_recv(g, first, g->tag + WEFT_TAG_BOARD, &yes, 1);
	if (!err && yes)
		k->slot = slot;
	return err;
}

weft_err weft_coll_board_connect(const struct weft_coll_group *g)
{
	char byte = 0;
	weft_err err = WEFT_OK;
	for (int k = 1; k < g->size && !err; k++)
		err = weft_coll_board_send(g, (g->rank + k) % g->size, g->tag + WEFT_TAG_BOARD,
					   &byte, 1);
	for (int k = 1; k < g->size && !err; k++)
		err = weft_coll_board_recv(g,
					   weft_coll_process(g, (g->rank + g->size - k) % g->size),
					   g->tag + WEFT_TAG_BOARD, &byte, 1);
	return err;
}

bool weft_coll_board_open(const struct weft_coll_group *g, weft_err *err_p)
{
	if (!g->crowded || !g->keep_p)
		return false;
	struct weft_keep *k = weft_coll_keep_of(g);
	if (weft_unlikely(!k)) {
		k = calloc(1, sizeof *k);
		if (!k) {
			*err_p = WEFT_ERR_NOMEM;
			return false;
		}
		k->size = g->size;
		*g->keep_p = k;
	}
	if (weft_likely(k->slot != NULL))
		return true;
	if (k->uses > BOARD_FROM)
		return false;
	if (k->uses++ < BOARD_FROM || !may_have_board(g))
		return false;
	*err_p = g->rank ? agree_other(g, k) : agree_first(g, k);
	return k->slot != NULL;
}

void weft_coll_keep_free(void *keep)
{
	struct weft_keep *k = keep;
	if (!k)
		return;
	/* GIVE -> TAKE (slot_take).  Carries: we, and by the count all others, look no more. */
	bool last =
		k->slot && atomic_fetch_add_explicit(&k->slot->x_left, 1, memory_order_acq_rel) ==
				   (uint32_t)k->size - 1;
	weft_coll_stages_free(k->stages, last);
	weft_coll_peer_reads_free(&k->reads);
	if (last)
		atomic_store_explicit(&k->slot->x_used, 0, memory_order_release);
	free(k);
}
