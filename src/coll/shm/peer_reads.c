/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer_reads.c - alltoall and allreduce of what is too large for stages, where many ranks share few
 * cores: each shows on the board where its data lie, and reads what it needs out of the others'
 * memory.
 *
 * By messages each pair of ranks needs a request, an answer and turns on a core in between.  Here
 * all meet, each reads all that it needs in one turn on its core, and all meet again before
 * anybody touches what the others read.
 *
 * Errors    a rank that cannot read says so in the next meeting: then all of them take the way by
 *           messages, now and from then on.  Nothing that was given has been written over by then,
 *           except in place, when results were already being collected: then the call fails.
 */
#include <stdlib.h>
#include <string.h>

#include "base/counters.h"
#include "coll/shm/board_int.h"
#include "coll/limits.h"
#include "task/task.h"

/* The first calls go by messages, which connect those who will read from each other. */
#define READS_FROM 4
/* Combined at a time: read into the nearest cache that has room for it and for what it is added to;
 * a read costs 2 us before its first byte. */
#define PIECE ((size_t)64 * 1024)

enum { READS_YES = 1000, READS_NO };

/* Where a member's data lie: what it gives, and its share of the result; 0: they cannot be read. */
struct where {
	uint64_t from, share;
};

/* All say yes? */
static void both(const void *in, void *inout, size_t n)
{
	const char *a = in;
	char *b = inout;
	for (size_t i = 0; i < n; i++)
		b[i] = a[i] && b[i];
}

/* All meet.  WEFT_AGAIN: somebody says no, and nobody reads any more in this group. */
static weft_err agree(const struct weft_coll_group *g, enum weft_coll_kind kind, bool mine)
{
	char yes = mine, all = 0;
	weft_coll_board_note(g, kind);
	weft_err err = weft_coll_board_meet(g, both, &yes, &all, 1, 1);
	if (err || all)
		return err;
	weft_coll_keep_of(g)->reads.state = READS_NO;
	return WEFT_AGAIN;
}

/* Each shows its own, and gets everybody's.  WEFT_AGAIN as above. */
static weft_err show(const struct weft_coll_group *g, enum weft_coll_kind kind,
		     const struct where *mine, struct where *all)
{
	struct weft_buf buf = weft_data_buf_flat(mine, sizeof *mine);
	weft_coll_board_note(g, kind);
	weft_err err = weft_coll_board_show(g, kind, &buf, sizeof *mine);
	bool good = true;
	for (int r = 0; r < g->size && !err; r++) {
		memcpy(&all[r], weft_coll_board_shown(g, r), sizeof all[r]);
		good = good && all[r].from;
	}
	if (err || good)
		return err;
	weft_coll_keep_of(g)->reads.state = READS_NO;
	return WEFT_AGAIN;
}

static bool read_from(const struct weft_coll_group *g, int r, uint64_t from, void *to, size_t len)
{
	return !len || !weft_comm_read(weft_coll_process(g, r), from, to, len);
}

/* Can we all read from each other?  Tried with a word. */
static weft_err ask(const struct weft_coll_group *g, enum weft_coll_kind kind)
{
	struct where mine, all[WEFT_BOARD_MEMBERS];
	uint64_t word = 1 + (uint64_t)g->rank, theirs;
	bool good = true;
	for (int r = 0; r < g->size; r++)
		good = good && (r == g->rank || weft_comm_can_read(weft_coll_process(g, r)));
	weft_coll_keep_of(g)->reads.piece = malloc(PIECE);
	good = good && weft_coll_keep_of(g)->reads.piece;
	mine.from = mine.share = good ? (uint64_t)(uintptr_t)&word : 0;
	weft_err err = show(g, kind, &mine, all);
	if (err)
		return err;
	for (int r = 0; r < g->size && good; r++)
		good = r == g->rank || (read_from(g, r, all[r].from, &theirs, sizeof theirs) &&
					theirs == 1 + (uint64_t)r);
	err = agree(g, kind, good);
	if (!err)
		weft_coll_keep_of(g)->reads.state = READS_YES;
	return err;
}

/* Does this group read?  Asked in the same collectives by all members. */
static weft_err open_reads(const struct weft_coll_group *g, enum weft_coll_kind kind)
{
	weft_err err = WEFT_OK;
	if (!weft_coll_board_open(g, &err))
		return err ? err : WEFT_AGAIN;
	struct weft_reads *s = &weft_coll_keep_of(g)->reads;
	if (weft_unlikely(s->state < READS_YES) && s->state++ == READS_FROM) {
		s->state = READS_NO;
		err = ask(g, kind);
	}
	return err ? err : s->state == READS_YES ? WEFT_OK : WEFT_AGAIN;
}

void weft_coll_peer_reads_free(struct weft_reads *s)
{
	free(s->piece);
	free(s->share);
}

weft_err weft_coll_peer_reads_alltoall(const struct weft_coll_group *g,
				       const struct weft_coll_args *a, const struct weft_buf *mine)
{
	size_t n = (size_t)g->size, block = weft_coll_view_bytes(weft_coll_args_rblock(a, 0));
	if (block < WEFT_LIMIT_READ_ALLTOALL || block > WEFT_LIMIT_READ / n || a->in_place)
		return WEFT_AGAIN;
	weft_err err = open_reads(g, a->kind);
	if (err)
		return err;
	struct where all[WEFT_BOARD_MEMBERS], own = {0};
	bool flat = !mine->type && mine->bytes == n * block &&
		    !weft_coll_view_buf(weft_coll_args_rblock(a, 0)).type;
	own.from = flat ? (uint64_t)(uintptr_t)mine->base : 0;
	err = show(g, a->kind, &own, all);
	if (err)
		return err;
	weft_count(WEFT_CNT_COLL_READS, 1);
	size_t at = (size_t)g->rank * block;
	bool good = true;
	memcpy(weft_coll_view_buf(weft_coll_args_rblock(a, g->rank)).base, (char *)mine->base + at,
	       block);
	/* Each begins with its right neighbour, so that not all read from one. */
	for (int k = 1; k < g->size && good; k++) {
		int r = (g->rank + k) % g->size;
		struct weft_buf to = weft_coll_view_buf(weft_coll_args_rblock(a, r));
		good = read_from(g, r, all[r].from + at, to.base, block);
		(void)weft_engine_poll();
	}
	return agree(g, a->kind, good);
}

/* ---- allreduce ----------------------------------------------------------------------------- */

/* What one call is about; member r's share of the elements is at[r] .. at[r + 1]. */
struct sum {
	const struct weft_coll_group *g;
	const struct weft_coll_args *a;
	const char *from;
	size_t size;
	struct where all[WEFT_BOARD_MEMBERS];
	size_t at[WEFT_BOARD_MEMBERS + 1];
};

/* My share, from the last rank to the first, as reduce.c does. */
static bool combine(const struct sum *s, char *share)
{
	const struct weft_coll_group *g = s->g;
	char *piece = weft_coll_keep_of(g)->reads.piece;
	size_t end = s->at[g->rank + 1], most = PIECE / s->size, count;
	bool good = true;
	for (size_t lo = s->at[g->rank]; lo < end && good; lo += count) {
		char *acc = share + (lo - s->at[g->rank]) * s->size;
		count = end - lo < most ? end - lo : most;
		for (int r = g->size - 1; r >= 0 && good; r--) {
			bool first = r == g->size - 1;
			const char *in = s->from + lo * s->size;
			if (r != g->rank) {
				in = first ? acc : piece;
				good = read_from(g, r, s->all[r].from + lo * s->size,
						 first ? acc : piece, count * s->size);
			}
			if (first && in != acc)
				memcpy(acc, in, count * s->size);
			else if (!first && good)
				s->a->op.fn(in, acc, count);
		}
		(void)weft_engine_poll();
	}
	return good;
}

static bool collect(const struct sum *s, const char *share)
{
	const struct weft_coll_group *g = s->g;
	bool good = true;
	for (int k = 0; k < g->size && good; k++) {
		int r = (g->rank + k) % g->size;
		char *to = (char *)s->a->rbuf + s->at[r] * s->size;
		size_t len = (s->at[r + 1] - s->at[r]) * s->size;
		if (k)
			good = read_from(g, r, s->all[r].share, to, len);
		else if (to != share)
			memcpy(to, share, len);
		(void)weft_engine_poll();
	}
	return good;
}

/* Where my share is combined: in place the others read what lies there. */
static char *share_of(const struct sum *s)
{
	struct weft_reads *k = &weft_coll_keep_of(s->g)->reads;
	size_t begin = s->at[s->g->rank] * s->size, len = s->at[s->g->rank + 1] * s->size - begin;
	if (!s->a->in_place)
		return (char *)s->a->rbuf + begin;
	if (k->room < len) {
		free(k->share);
		k->share = malloc(len);
		k->room = k->share ? len : 0;
	}
	return k->share;
}

weft_err weft_coll_peer_reads_allreduce(const struct weft_coll_group *g,
					const struct weft_coll_args *a)
{
	struct sum s = {.g = g, .a = a, .size = a->rtype->size};
	size_t n = (size_t)g->size;
	if (a->rcount < n || a->rcount <= WEFT_LIMIT_STAGED_ALLREDUCE / s.size ||
	    a->rcount > WEFT_LIMIT_READ / s.size)
		return WEFT_AGAIN;
	weft_err err = open_reads(g, a->kind);
	if (err)
		return err;
	s.from = a->in_place ? a->rbuf : a->sbuf;
	for (size_t r = 0; r <= n; r++)
		s.at[r] = a->rcount * r / n;
	char *share = share_of(&s);
	struct where own = {share ? (uint64_t)(uintptr_t)s.from : 0, (uint64_t)(uintptr_t)share};
	err = show(g, a->kind, &own, s.all);
	if (!err) {
		weft_count(WEFT_CNT_COLL_READS, 1);
		err = agree(g, a->kind, combine(&s, share));
	}
	if (err)
		return err;
	err = agree(g, a->kind, collect(&s, share));
	return err == WEFT_AGAIN && a->in_place ? WEFT_ERR_PEER : err;
}
