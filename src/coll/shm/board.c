/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * board.c - barrier and small allreduce, allgather and alltoall where many ranks share few cores:
 * all meet on a board in the memory of the group's first member (board.h says how and why).
 */
#include <string.h>

#include "base/counters.h"
#include "coll/shm/board_int.h"

/* One meeting of one member. */
struct meeting {
	const struct weft_coll_group *g;
	struct weft_keep *keep;
	weft_reduce_fn *fn;
	size_t count, bytes;
};

/* Where member r's data of this meeting lies. */
static char *data_of(const struct meeting *m, int r)
{
	struct weft_board_slot *s = m->keep->slot;
	return m->bytes <= WEFT_BOARD_DATA
		       ? s->cell[r].data
		       : weft_coll_board_at(s, m->keep->turn, (unsigned)m->g->size, (unsigned)r);
}

/* And where they are combined: the last member's share, if they lie in shares. */
static char *result_of(const struct meeting *m)
{
	return m->bytes <= WEFT_BOARD_DATA ? m->keep->slot->result.data
					   : data_of(m, m->g->size - 1);
}

/* All cells are there: as reduce_flat() in blocking.c, from the last rank to the first. */
static void combine_cells(const struct meeting *m, uint32_t what)
{
	struct weft_board_slot *s = m->keep->slot;
	int last = m->g->size - 1;
	char *acc = result_of(m);
	for (int r = 0; r <= last; r++)
		if (s->cell[r].what != what)
			what = 0;
	if (m->bytes <= WEFT_BOARD_DATA)
		memcpy(acc, s->cell[last].data, m->bytes);
	for (int r = last - 1; r >= 0 && what && m->bytes; r--)
		m->fn(data_of(m, r), acc, m->count);
	s->result.what = what;
}

/* My cell's data is written.  All come, and mean the same `what`. */
static weft_err meet(struct meeting *m, uint32_t what)
{
	const struct weft_coll_group *g = m->g;
	struct weft_keep *k = m->keep;
	struct weft_board_slot *s = k->slot;

	weft_count(WEFT_CNT_COLL_BOARDS, 1);
	s->cell[g->rank].what = what;
	if (weft_coll_board_arrive(s, (unsigned)g->size)) {
		uint32_t sleepers;
		combine_cells(m, what);
		if (weft_coll_board_finish(s, k->turn, &sleepers) && sleepers)
			weft_coll_board_wake(g, sleepers);
	} else {
		weft_err err = weft_coll_board_wait_for(g, &s->x_turn,
							weft_coll_board_next(k->turn), true);
		if (weft_unlikely(err))
			return err;
	}
	if (weft_unlikely(weft_coll_board_failed(s, k->turn))) {
		k->turn = WEFT_BOARD_FAILED;
		return WEFT_ERR_PEER;
	}
	k->turn = weft_coll_board_next(k->turn);
	return weft_unlikely(s->result.what != what) ? WEFT_ERR_TRUNC : WEFT_OK;
}

weft_err weft_coll_board_meet(const struct weft_coll_group *g, weft_reduce_fn *fn, const void *from,
			      void *to, size_t count, size_t bytes)
{
	struct meeting m = {.g = g, .keep = *g->keep_p, .fn = fn, .count = count, .bytes = bytes};

	if (weft_unlikely(m.keep->turn == WEFT_BOARD_FAILED))
		return WEFT_ERR_PEER;
	if (bytes)
		memcpy(data_of(&m, g->rank), from, bytes);
	const char *result = result_of(&m);
	weft_err err = meet(&m, 1 + (uint32_t)bytes);
	if (bytes && !err)
		memcpy(to, result, bytes);
	return err;
}

weft_err weft_coll_board_turn(const struct weft_coll_group *g, uint32_t what)
{
	struct meeting m = {.g = g, .keep = *g->keep_p};
	return weft_unlikely(m.keep->turn == WEFT_BOARD_FAILED) ? WEFT_ERR_PEER : meet(&m, what);
}

unsigned weft_coll_board_parity(const struct weft_coll_group *g)
{
	return weft_coll_keep_of(g)->turn & 1;
}

struct weft_stages **weft_coll_board_stages(const struct weft_coll_group *g)
{
	return &weft_coll_keep_of(g)->stages;
}

size_t weft_coll_board_room(const struct weft_coll_group *g)
{
	return g->size > WEFT_BOARD_MEMBERS ? 0 : weft_coll_board_share((unsigned)g->size);
}

weft_err weft_coll_board_show(const struct weft_coll_group *g, enum weft_coll_kind kind,
			      const struct weft_buf *from, size_t bytes)
{
	struct meeting m = {.g = g, .keep = *g->keep_p};
	struct weft_keep *k = m.keep;

	if (weft_unlikely(k->turn == WEFT_BOARD_FAILED))
		return WEFT_ERR_PEER;
	/* Who has not what the others expect says so to all. */
	bool as_expected = from->bytes == bytes;
	if (weft_likely(as_expected))
		weft_data_pack(
			from, 0,
			weft_coll_board_at(k->slot, k->turn, (unsigned)g->size, (unsigned)g->rank),
			bytes);
	weft_err err = meet(&m, as_expected ? ((uint32_t)kind + 1) << 16 | (uint32_t)bytes : 0);
	return weft_unlikely(!err && !as_expected) ? WEFT_ERR_TRUNC : err;
}

const char *weft_coll_board_shown(const struct weft_coll_group *g, int r)
{
	struct weft_keep *k = weft_coll_keep_of(g);
	/* The turn that is over: parity is all that counts. */
	return weft_coll_board_at(k->slot, k->turn ^ 1u, (unsigned)g->size, (unsigned)r);
}
