/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wait.c - members of a group wait for each other in shared memory.
 *
 * A waiter looks at the event count, yielding, for as long as any waiter of this process polls;
 * then it sleeps in a receive, for a message from the poster.
 */
#include <time.h>

#include "base/cancel.h"
#include "base/counters.h"
#include "coll/calls.h"
#include "coll/shm/group.h"
#include "task/look.h"

/* What a member waits for, as weft_coll_shm_wait(). */
struct awaited {
	const struct weft_coll_group *g;
	_Atomic uint64_t *x_ec;
	uint32_t number;
	bool ahead;
};

static bool member_lost(const struct weft_coll_group *g)
{
	for (int r = 0; r < g->size; r++)
		if (weft_comm_lost(weft_comm_ctx_core(g->ctx), weft_coll_process(g, r)))
			return true;
	return false;
}

static bool is_reached(const void *arg)
{
	const struct awaited *w = arg;
	return weft_coll_ec_reached(w->x_ec, w->number);
}

/* Once a process of the job is lost, a receive from any peer fails at once: short naps instead. */
static void nap_and_poll(void)
{
	struct timespec ts = {.tv_nsec = 1000000};
	(void)weft_task_engine_poll();
	int was = weft_cancel_off();
	nanosleep(&ts, NULL);
	weft_cancel_back(was);
}

/* Sleeps until it is reached, or fails it. */
static weft_err sleep_until_reached(const struct awaited *w)
{
	unsigned me = (unsigned)w->g->rank;
	uint32_t sleepers;
	/* Each round ends with news: the number, or a lost process. */
	while (!weft_coll_ec_reached(w->x_ec, w->number)) {
		if (weft_unlikely(member_lost(w->g))) {
			if (weft_coll_ec_fail(w->x_ec, w->number, WEFT_COLL_EC_LOST, &sleepers))
				weft_coll_shm_give_up(w->g, WEFT_COLL_EC_LOST, sleepers);
			continue;
		}
		if (weft_unlikely(weft_coll_shm_mismatch(w->g, w->x_ec, w->number, w->ahead)))
			return WEFT_ERR_TRUNC;
		if (!weft_coll_ec_prepare_sleep(w->x_ec, me, w->number) &&
		    !weft_coll_ec_cancel_sleep(w->x_ec, me))
			break;
		weft_count(WEFT_CNT_COLL_SHM_SLEEPS, 1);
		if (weft_coll_shm_recv(w->g, WEFT_ANY_PEER, WEFT_TAG_WAKE, NULL, 0)) {
			(void)weft_coll_ec_cancel_sleep(w->x_ec, me);
			if (weft_coll_ended(w->g->ctx, w->g->tag)) {
				weft_err why = weft_coll_cause(w->g->ctx, WEFT_ERR_TRUNC);
				weft_coll_shm_give_up(w->g,
						      why == WEFT_ERR_PEER ? WEFT_COLL_EC_LOST
									   : WEFT_COLL_EC_MISMATCH,
						      0);
				return why;
			}
			if (!member_lost(w->g))
				nap_and_poll();
		}
	}
	return WEFT_OK;
}

static weft_err wait_long(const struct awaited *w)
{
	weft_err err = WEFT_OK;
	if (!weft_task_look_for_a_while(is_reached, w)) {
		weft_coll_shm_note_sleep(w->g);
		err = sleep_until_reached(w);
		weft_coll_shm_note_awake(w->g);
	}
	if (!err)
		err = weft_coll_ec_failed(w->x_ec);
	if (weft_unlikely(err))
		weft_coll_shm_of(w->g)->failed = err;
	return err;
}

weft_err weft_coll_shm_wait(const struct weft_coll_group *g, _Atomic uint64_t *x_ec,
			    uint32_t number, bool ahead)
{
	if (weft_likely(weft_coll_ec_reached(x_ec, number) && !weft_coll_ec_failed(x_ec)))
		return WEFT_OK;
	struct awaited w = {g, x_ec, number, ahead};
	return wait_long(&w);
}

weft_err weft_coll_shm_post(const struct weft_coll_group *g, _Atomic uint64_t *x_ec,
			    uint32_t number)
{
	uint32_t sleepers;
	if (weft_unlikely(!weft_coll_ec_post(x_ec, number, &sleepers))) {
		weft_err err = weft_coll_ec_failed(x_ec);
		weft_coll_shm_of(g)->failed = err;
		return err;
	}
	if (weft_unlikely(sleepers))
		weft_coll_shm_wake(g, sleepers);
	return WEFT_OK;
}

/* ---- phases -------------------------------------------------------------------------------- */

weft_err weft_coll_shm_begin(const struct weft_coll_group *g, struct weft_coll_ring_place **p_p)
{
	struct weft_coll_shm *s = weft_coll_shm_of(g);
	struct weft_coll_ring *ring = &s->slot->ring;
	weft_assert(g->size <= WEFT_COLL_RING_MEMBERS && g->rank < g->size);
	*p_p = weft_coll_ring_at(ring, s->phase);
	if (weft_unlikely(s->failed))
		return s->failed;
	return weft_coll_shm_wait(g, &ring->x_floor, weft_coll_ring_floor(s->phase), true);
}

void weft_coll_shm_pass(const struct weft_coll_group *g)
{
	struct weft_coll_shm *s = weft_coll_shm_of(g);
	struct weft_coll_ring *ring = &s->slot->ring;
	uint32_t next = weft_coll_ec_next(s->phase);
	if (weft_coll_ring_pass(ring, s->phase, (unsigned)g->size))
		(void)weft_coll_shm_post(g, &ring->x_floor, next);
	s->phase = next;
}
