/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * signs.c - meetings of members with a core each: signs in memory, no counter of all.
 *
 * A meeting of n members in the ring hands one line from member to member n times, and then to all of
 * them.  By signs it is log2(n) lines one after the other, each between two members.  The last member
 * to come does not do the work of all, so where members share cores the ring is quicker.
 */
#include "base/counters.h"
#include "coll/shm/group.h"

/* Tells the member `step` behind us; and that we have failed, if we have. */
static weft_err put_sign(const struct weft_coll_group *g, int step, unsigned round, uint32_t number,
			 uint32_t what)
{
	int r = (g->rank + step) % g->size;
	struct weft_coll_ring_sign *s =
		weft_coll_ring_sign_at(weft_coll_ring_of(g), (unsigned)r, round, number);
	uint32_t sleepers;
	s->what = what;
	s->number = weft_coll_number(g);
	bool well = weft_coll_ec_post_once(&s->x_sign, number, &sleepers);
	if (weft_unlikely(sleepers))
		weft_coll_shm_wake(g, sleepers);
	if (weft_likely(well))
		return WEFT_OK;
	weft_err err = weft_coll_ec_failed(&s->x_sign);
	weft_coll_shm_of(g)->failed = err;
	return err;
}

/* Until the member before us in that round has told us; *what_p is 0 from then on if it does not mean
 * the same. */
static weft_err read_sign(const struct weft_coll_group *g, unsigned round, uint32_t number,
			  uint32_t *what_p)
{
	struct weft_coll_ring_sign *s =
		weft_coll_ring_sign_at(weft_coll_ring_of(g), (unsigned)g->rank, round, number);
	/* Members that have heard of all go on before each has. */
	weft_err err = weft_coll_shm_wait(g, &s->x_sign, number, false);
	if (weft_unlikely(err))
		return err;
	if (weft_unlikely(s->number != weft_coll_number(g) ||
			  (*what_p && s->what && *what_p >> 24 != s->what >> 24)))
		return weft_coll_shm_out_of_step(g, *what_p, s->what, s->number);
	if (weft_unlikely(s->what != *what_p))
		*what_p = 0;
	return WEFT_OK;
}

weft_err weft_coll_shm_meet_by_signs(const struct weft_coll_group *g, uint32_t what)
{
	struct weft_coll_shm *s = weft_coll_shm_of(g);
	uint32_t number = weft_coll_ec_next(s->signs);
	weft_err err = s->failed;
	unsigned round = 0;
	weft_count(WEFT_CNT_COLL_MEETINGS, 1);
	for (int step = 1; step < g->size && weft_likely(!err); step <<= 1, round++) {
		err = put_sign(g, step, round, number, what);
		if (weft_likely(!err))
			err = read_sign(g, round, number, &what);
	}
	if (weft_unlikely(err))
		return err;
	s->signs = number;
	s->meets++;
	return what ? WEFT_OK : WEFT_ERR_TRUNC;
}

weft_err weft_coll_shm_sync(const struct weft_coll_group *g, uint32_t what)
{
	return g->crowded ? weft_coll_shm_meet(g, what) : weft_coll_shm_meet_by_signs(g, what);
}

weft_err weft_coll_shm_barrier(const struct weft_coll_group *g, const struct weft_coll_args *a)
{
	weft_coll_shm_note(g, a->kind, false);
	return weft_coll_shm_sync(g, weft_coll_what(a->kind, 0));
}
