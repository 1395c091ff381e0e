/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer_reads.c - alltoall and allreduce of what is too large for stages: each member shows in the
 * ring where its data lie, and reads what it needs out of the other members' memory.
 *
 * By messages each pair of ranks needs a request, an answer and turns on a core in between.  Here
 * all meet, each reads all that it needs in one turn on its core, and all meet again before any
 * member touches what is read.
 *
 * Errors    a member that cannot read says so in the next meeting: then all of them take the way by
 *           messages, now and from then on.  Nothing that was given has been written over by then,
 *           except in place, when results were already being collected: then the call fails.
 */
#include <stdlib.h>
#include <string.h>

#include "base/counters.h"
#include "coll/shm/group.h"
#include "task/task.h"

/* Combined at a time: read into the nearest cache that has room for it and for what it is added to;
 * a read costs 2 us before its first byte. */
#define PIECE ((size_t)64 * 1024)

/* Where a member's data lie: what it gives, and its share of the result; from 0: they cannot be
 * read. */
struct place {
	uint64_t from, share;
};

/* What a member keeps, and what its call is about; member r combines elements at[r] .. at[r + 1].
 */
struct weft_coll_reads {
	struct place of[WEFT_COLL_RING_MEMBERS];
	size_t at[WEFT_COLL_RING_MEMBERS + 1];
	char *share; /* of the result, in place */
	size_t share_size;
	char piece[PIECE];
};

static struct weft_coll_reads *reads_of(const struct weft_coll_group *g)
{
	return weft_coll_shm_of(g)->reads;
}

/* This group reads no more. */
static weft_err drop_reads(const struct weft_coll_group *g)
{
	weft_coll_shm_of(g)->have &= ~(unsigned)WEFT_COLL_SHM_READ;
	return WEFT_AGAIN;
}

/* All meet.  WEFT_AGAIN: not all are well. */
static weft_err all_well(const struct weft_coll_group *g, enum weft_coll_kind kind, bool well)
{
	uint32_t all;
	weft_err err = weft_coll_shm_and(g, kind, well, &all);
	return err || all ? err : drop_reads(g);
}

/* Each shows its own place.  WEFT_AGAIN: not all can be read. */
static weft_err show_places(const struct weft_coll_group *g, enum weft_coll_kind kind,
			    struct place mine)
{
	struct weft_coll_reads *k = reads_of(g);
	weft_err err = weft_coll_shm_tell(g, kind, &mine, k->of, sizeof mine);
	bool all = true;
	for (int r = 0; r < g->size && !err; r++)
		all = all && k->of[r].from;
	return err || all ? err : drop_reads(g);
}

static bool read_from(const struct weft_coll_group *g, int r, uint64_t from, void *to, size_t len)
{
	weft_assert(r != g->rank && from);
	return !len ||
	       !weft_comm_read(weft_comm_ctx_core(g->ctx), weft_coll_process(g, r), from, to, len);
}

weft_err weft_coll_reads_try(const struct weft_coll_group *g, enum weft_coll_kind kind, bool *can_p)
{
	struct weft_coll_shm *s = weft_coll_shm_of(g);
	uint64_t word = 1 + (uint64_t)g->rank, at = (uint64_t)(uintptr_t)&word, theirs;
	uint64_t all[WEFT_COLL_RING_MEMBERS];
	uint32_t over;
	s->reads = calloc(1, sizeof *s->reads);
	bool can = s->reads;
	weft_err err = weft_coll_shm_tell(g, kind, &at, all, sizeof at);
	for (int r = 0; r < g->size && can && !err; r++)
		can = r == g->rank ||
		      (weft_comm_can_read(weft_comm_ctx_core(g->ctx), weft_coll_process(g, r)) &&
		       read_from(g, r, all[r], &theirs, sizeof theirs) &&
		       theirs == 1 + (uint64_t)r);
	*can_p = can;
	/* Our word is on the stack: it must stay there until all have read it. */
	return err ? err : weft_coll_shm_and(g, kind, 1, &over);
}

void weft_coll_reads_free(struct weft_coll_reads *k)
{
	if (k)
		free(k->share);
	free(k);
}

weft_err weft_coll_read_alltoall(const struct weft_coll_group *g, const struct weft_coll_args *a)
{
	size_t n = (size_t)g->size, block = a->rcount * a->rtype->size;
	size_t at = (size_t)g->rank * block;
	struct weft_buf mine = weft_coll_given(g, a);
	struct weft_buf own = weft_coll_view_buf(weft_coll_args_rblock(a, g->rank));
	weft_assert(!a->in_place);
	bool flat = !mine.type && mine.bytes == n * block && !own.type, well = true;
	weft_err err = show_places(g, a->kind,
				   (struct place){flat ? (uint64_t)(uintptr_t)mine.base : 0, 0});
	if (err)
		return err;
	weft_count(WEFT_CNT_COLL_READS, 1);
	memcpy(own.base, (char *)mine.base + at, block);
	/* Each begins with its right neighbour, so that not all read from one. */
	for (int k = 1; k < g->size && well; k++) {
		int r = (g->rank + k) % g->size;
		struct weft_buf to = weft_coll_view_buf(weft_coll_args_rblock(a, r));
		well = read_from(g, r, reads_of(g)->of[r].from + at, to.base, block);
		(void)weft_task_engine_poll();
	}
	return all_well(g, a->kind, well);
}

/* ---- allreduce ----------------------------------------------------------------------------- */

/* What one call is about. */
struct sum {
	const struct weft_coll_group *g;
	const struct weft_coll_args *a;
	struct weft_coll_reads *k;
	const char *from;
	size_t size;
};

/* Adds `count` elements from element `lo` on of all members into acc, from the last rank to the
 * first, as reduce.c does. */
static bool combine_piece(const struct sum *s, size_t lo, size_t count, char *acc)
{
	const struct weft_coll_group *g = s->g;
	bool well = true;
	for (int r = g->size - 1; r >= 0 && well; r--) {
		bool first = r == g->size - 1;
		const char *in = s->from + lo * s->size;
		if (r != g->rank) {
			char *to = first ? acc : s->k->piece;
			well = read_from(g, r, s->k->of[r].from + lo * s->size, to,
					 count * s->size);
			in = to;
		}
		if (first && in != acc)
			memcpy(acc, in, count * s->size);
		else if (!first && well)
			s->a->op.fn(in, acc, count);
	}
	return well;
}

static bool combine_share(const struct sum *s, char *share)
{
	weft_assert(share && s->size <= PIECE);
	const size_t *at = &s->k->at[s->g->rank];
	size_t most = PIECE / s->size, count;
	bool well = true;
	for (size_t lo = at[0]; lo < at[1] && well; lo += count) {
		count = at[1] - lo < most ? at[1] - lo : most;
		well = combine_piece(s, lo, count, share + (lo - at[0]) * s->size);
		(void)weft_task_engine_poll();
	}
	return well;
}

static bool collect_shares(const struct sum *s, const char *share)
{
	const struct weft_coll_group *g = s->g;
	bool well = true;
	for (int k = 0; k < g->size && well; k++) {
		int r = (g->rank + k) % g->size;
		char *to = (char *)s->a->rbuf + s->k->at[r] * s->size;
		size_t len = (s->k->at[r + 1] - s->k->at[r]) * s->size;
		if (k)
			well = read_from(g, r, s->k->of[r].share, to, len);
		else if (to != share)
			memcpy(to, share, len);
		(void)weft_task_engine_poll();
	}
	return well;
}

/* Where this member's share is combined; in place that is what other members read.  NULL: no
 * memory. */
static char *share_of(const struct sum *s)
{
	struct weft_coll_reads *k = s->k;
	const size_t *at = &k->at[s->g->rank];
	size_t len = (at[1] - at[0]) * s->size;
	if (!s->a->in_place)
		return (char *)s->a->rbuf + at[0] * s->size;
	if (k->share_size < len) {
		free(k->share);
		k->share = malloc(len);
		k->share_size = k->share ? len : 0;
	}
	return k->share;
}

weft_err weft_coll_read_allreduce(const struct weft_coll_group *g, const struct weft_coll_args *a)
{
	struct sum s = {.g = g,
			.a = a,
			.k = reads_of(g),
			.from = a->in_place ? a->rbuf : a->sbuf,
			.size = a->rtype->size};
	size_t n = (size_t)g->size;
	weft_assert(a->rcount >= n && s.size && s.size <= PIECE);
	for (size_t r = 0; r <= n; r++)
		s.k->at[r] = a->rcount * r / n;
	char *share = share_of(&s);
	struct place own = {share ? (uint64_t)(uintptr_t)s.from : 0, (uint64_t)(uintptr_t)share};
	weft_err err = show_places(g, a->kind, own);
	if (!err) {
		weft_count(WEFT_CNT_COLL_READS, 1);
		err = all_well(g, a->kind, combine_share(&s, share));
	}
	if (err)
		return err;
	err = all_well(g, a->kind, collect_shares(&s, share));
	return err == WEFT_AGAIN && a->in_place ? WEFT_ERR_PEER : err;
}
