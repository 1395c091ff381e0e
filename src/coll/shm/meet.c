/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meet.c - small allreduce, allgather and alltoall: meetings in the ring.
 *
 * Each member shows its share, the last one to arrive combines them if the collective reduces, and
 * each takes what is for it.
 */
#include <string.h>

#include "base/counters.h"
#include "base/log.h"
#include "coll/shm/group.h"

/* One meeting of one member. */
struct meeting {
	const struct weft_coll_group *g;
	struct weft_coll_ring_place *place;
	char *share;        /* member 0's */
	size_t apart;       /* from a member's share to the next one's; its room */
	uint32_t what;      /* 0: this member's data are not as all expect */
	weft_reduce_fn *fn; /* NULL: shares are not combined */
	size_t count;
};

static char *share_of(const struct meeting *m, int r)
{
	weft_assert(r >= 0 && r < m->g->size);
	return m->share + (size_t)r * m->apart;
}

size_t weft_coll_shm_meet_max(int n)
{
	return weft_coll_ring_area_share((unsigned)n);
}

/* Waits for the place, and finds room for shares of so many bytes. */
static weft_err meeting_begin(struct meeting *m, size_t bytes)
{
	struct weft_coll_shm *s = weft_coll_shm_of(m->g);
	unsigned n = (unsigned)m->g->size;
	weft_err err = weft_coll_shm_begin(m->g, &m->place);
	if (weft_unlikely(err))
		return err;
	m->share = m->place->data;
	m->apart = weft_coll_ring_share(n);
	if (bytes > m->apart) {
		m->share = s->slot->ring.area[s->meets & 1];
		m->apart = weft_coll_ring_area_share(n);
	}
	weft_assert(bytes <= m->apart);
	return WEFT_OK;
}

/* Do all members mean the same?  If not even the same kind, says so. */
static uint32_t common_what(const struct meeting *m)
{
	const uint32_t *gave = m->place->gave;
	for (int r = 0; r < m->g->size; r++) {
		if (weft_likely(gave[r] == m->what))
			continue;
		if (gave[r] && m->what && gave[r] >> 24 != m->what >> 24)
			weft_error("collectives that do not match: rank %d of the communicator is "
				   "in %s, rank %d in %s",
				   m->g->rank, weft_coll_what_name(m->what), r,
				   weft_coll_what_name(gave[r]));
		return 0;
	}
	return m->what;
}

/* All shares are there: combines them from the last rank to the first, as reduce.c does. */
static void combine_shares(const struct meeting *m)
{
	int last = m->g->size - 1;
	uint32_t what = common_what(m);
	for (int r = last - 1; r >= 0 && what && m->fn; r--)
		m->fn(share_of(m, r), share_of(m, last), m->count);
	m->place->what = what;
	m->place->number = weft_coll_number(m->g);
}

/* This member's share is written: until all have come, and mean the same. */
static weft_err meet_all(const struct meeting *m)
{
	const struct weft_coll_group *g = m->g;
	struct weft_coll_shm *s = weft_coll_shm_of(g);
	struct weft_coll_ring_place *p = m->place;
	uint32_t head = weft_coll_ec_next(s->heads);
	weft_err err;

	weft_count(WEFT_CNT_COLL_MEETINGS, 1);
	p->gave[g->rank] = m->what;
	if (weft_coll_ring_arrive(p, (unsigned)g->size)) {
		combine_shares(m);
		weft_coll_ring_clear(p);
		err = weft_coll_shm_post(g, &s->slot->ring.x_head, head);
	} else {
		err = weft_coll_shm_wait(g, &s->slot->ring.x_head, head, true);
	}
	if (weft_unlikely(err))
		return err;
	s->heads = head;
	s->meets++;
	if (weft_likely(m->what && p->what == m->what && p->number == weft_coll_number(g)))
		return WEFT_OK;
	if (p->what)
		return weft_coll_shm_out_of_step(g, m->what, p->what, p->number);
	return WEFT_ERR_TRUNC;
}

/* What other members have shown is read. */
static weft_err meeting_end(const struct meeting *m, weft_err err)
{
	if (weft_likely(!weft_coll_shm_of(m->g)->failed))
		weft_coll_shm_pass(m->g);
	return err;
}

/* ---- for the other ways ------------------------------------------------------------------- */

weft_err weft_coll_shm_meet(const struct weft_coll_group *g, uint32_t what)
{
	struct meeting m = {.g = g, .what = what};
	weft_err err = meeting_begin(&m, 0);
	return err ? err : meeting_end(&m, meet_all(&m));
}

weft_err weft_coll_shm_tell(const struct weft_coll_group *g, enum weft_coll_kind kind,
			    const void *mine, void *all, size_t bytes)
{
	struct meeting m = {.g = g, .what = weft_coll_what(kind, bytes)};
	weft_coll_shm_note(g, kind, false);
	weft_err err = meeting_begin(&m, bytes);
	if (err)
		return err;
	memcpy(share_of(&m, g->rank), mine, bytes);
	err = meet_all(&m);
	for (int r = 0; r < g->size && !err; r++)
		memcpy((char *)all + (size_t)r * bytes, share_of(&m, r), bytes);
	return meeting_end(&m, err);
}

static void and_words(const void *in, void *inout, size_t n)
{
	const uint32_t *a = in;
	uint32_t *b = inout;
	for (size_t i = 0; i < n; i++)
		b[i] &= a[i];
}

/* Combines the members' `from`, of m.count elements and so many bytes, into `to`. */
static weft_err combine_from(struct meeting *m, const void *from, void *to, size_t bytes)
{
	weft_err err = meeting_begin(m, bytes);
	if (weft_unlikely(err))
		return err;
	memcpy(share_of(m, m->g->rank), from, bytes);
	err = meet_all(m);
	if (weft_likely(!err))
		memcpy(to, share_of(m, m->g->size - 1), bytes);
	return meeting_end(m, err);
}

weft_err weft_coll_shm_and(const struct weft_coll_group *g, enum weft_coll_kind kind, uint32_t mine,
			   uint32_t *all_p)
{
	struct meeting m = {
		.g = g, .what = weft_coll_what(kind, sizeof mine), .fn = and_words, .count = 1};
	weft_coll_shm_note(g, kind, false);
	return combine_from(&m, &mine, all_p, sizeof mine);
}

/* ---- collectives -------------------------------------------------------------------------- */

weft_err weft_coll_shm_allreduce(const struct weft_coll_group *g, const struct weft_coll_args *a)
{
	size_t bytes = a->rcount * a->rtype->size;
	struct meeting m = {
		.g = g, .what = weft_coll_what(a->kind, bytes), .fn = a->op.fn, .count = a->rcount};
	weft_coll_shm_note(g, a->kind, true);
	return combine_from(&m, a->in_place ? a->rbuf : a->sbuf, a->rbuf, bytes);
}

/* Each shows `mine`, of `bytes` bytes if it is as all expect, and takes from member r what
 * lies `at` bytes behind the beginning of what r shows. */
static weft_err exchange_shares(const struct weft_coll_group *g, const struct weft_coll_args *a,
				const struct weft_buf *mine, size_t bytes, size_t at)
{
	struct meeting m = {.g = g};
	if (weft_likely(mine->bytes == bytes))
		m.what = weft_coll_what(a->kind, bytes);
	weft_coll_shm_note(g, a->kind, true);
	weft_err err = meeting_begin(&m, bytes);
	if (weft_unlikely(err))
		return err;
	if (weft_likely(m.what != 0))
		weft_data_pack(mine, 0, share_of(&m, g->rank), bytes);
	err = meet_all(&m);
	if (weft_likely(!err))
		weft_coll_take(g, a, m.share, m.apart, at);
	return meeting_end(&m, err);
}

weft_err weft_coll_shm_allgather(const struct weft_coll_group *g, const struct weft_coll_args *a)
{
	struct weft_buf mine = weft_coll_given(g, a);
	return exchange_shares(g, a, &mine, a->rcount * a->rtype->size, 0);
}

weft_err weft_coll_shm_alltoall(const struct weft_coll_group *g, const struct weft_coll_args *a)
{
	struct weft_buf mine = weft_coll_given(g, a);
	size_t block = a->rcount * a->rtype->size;
	return exchange_shares(g, a, &mine, block * (size_t)g->size, block * (size_t)g->rank);
}
