/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shown.c - members with a core each show each other small data, and meet by signs.
 *
 * Each writes its share into the ring's area, all meet, each reads what it needs: no phase of the ring, no line
 * that all write, and no member that works for all.  Which area it is, and why two are enough: ring.h.
 */
#include <string.h>

#include "coll/shm/group.h"

static char *area_of(const struct weft_coll_group *g)
{
	struct weft_coll_shm *s = weft_coll_shm_of(g);
	return s->slot->ring.area[s->meets & 1];
}

/* Each shows `mine`, of `bytes` bytes if it is as all expect, and takes of each what lies `at` bytes behind the
 * beginning of what that shows. */
static weft_err exchange_shown(const struct weft_coll_group *g, const struct weft_coll_args *a,
			       const struct weft_buf *mine, size_t bytes, size_t at)
{
	char *shown = area_of(g);
	size_t apart = weft_coll_ring_area_share((unsigned)g->size);
	uint32_t what = 0; /* our data are not as all expect */
	weft_coll_shm_note(g, a->kind, true);
	if (weft_unlikely(weft_coll_shm_of(g)->failed))
		return weft_coll_shm_of(g)->failed;
	if (weft_likely(mine->bytes == bytes)) {
		weft_assert(bytes <= apart);
		what = weft_coll_what(a->kind, bytes);
		weft_data_pack(mine, 0, shown + (size_t)g->rank * apart, bytes);
	}
	weft_err err = weft_coll_shm_meet_by_signs(g, what);
	if (weft_likely(!err))
		weft_coll_take(g, a, shown, apart, at);
	return err;
}

weft_err weft_coll_shown_allgather(const struct weft_coll_group *g, const struct weft_coll_args *a)
{
	struct weft_buf mine = weft_coll_given(g, a);
	return exchange_shown(g, a, &mine, a->rcount * a->rtype->size, 0);
}

weft_err weft_coll_shown_alltoall(const struct weft_coll_group *g, const struct weft_coll_args *a)
{
	struct weft_buf mine = weft_coll_given(g, a);
	size_t block = a->rcount * a->rtype->size;
	return exchange_shown(g, a, &mine, block * (size_t)g->size, block * (size_t)g->rank);
}

/*
 * Combines the members' shares in the order of recursive doubling (reduce.c), so that a nonblocking call
 * gives the same bits.  The result is where this points to.
 */
static const char *combine_in_order(const struct weft_coll_group *g, const struct weft_coll_args *a,
				    const char *shown, size_t apart, size_t bytes)
{
	char *part = weft_coll_shm_of(g)->combined;
	int pow2 = 1;
	while (pow2 * 2 <= g->size)
		pow2 *= 2;
	int extra = g->size - pow2;
	for (int i = 0; i < pow2; i++) {
		int r = i < extra ? 2 * i + 1 : i + extra;
		memcpy(part + (size_t)i * apart, shown + (size_t)r * apart, bytes);
		if (i < extra)
			a->op.fn(shown + (size_t)(r - 1) * apart, part + (size_t)i * apart,
				 a->rcount);
	}
	/* Of neighbouring runs, each combined in its last place. */
	for (int run = 1; run < pow2; run *= 2)
		for (int i = 2 * run - 1; i < pow2; i += 2 * run)
			a->op.fn(part + (size_t)(i - run) * apart, part + (size_t)i * apart,
				 a->rcount);
	return part + (size_t)(pow2 - 1) * apart;
}

weft_err weft_coll_shown_allreduce(const struct weft_coll_group *g, const struct weft_coll_args *a)
{
	char *shown = area_of(g);
	size_t apart = weft_coll_ring_area_share((unsigned)g->size);
	size_t bytes = a->rcount * a->rtype->size;
	weft_coll_shm_note(g, a->kind, true);
	if (weft_unlikely(weft_coll_shm_of(g)->failed))
		return weft_coll_shm_of(g)->failed;
	weft_assert(bytes <= apart);
	memcpy(shown + (size_t)g->rank * apart, a->in_place ? a->rbuf : a->sbuf, bytes);
	weft_err err = weft_coll_shm_meet_by_signs(g, weft_coll_what(a->kind, bytes));
	if (weft_likely(!err))
		memcpy(a->rbuf, combine_in_order(g, a, shown, apart, bytes), bytes);
	return err;
}
