/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arm.c - arming the sources, so that what comes rings, and disarming them.
 *
 * For who waits, for whatever comes, or only for what needs an answer: see baton.h.  The caller
 * holds the baton.
 */
#include "base/cancel.h"
#include "base/log.h"
#include "task/wake/slot.h"

/* How sources are armed. */
enum how {
	WAIT, /* somebody waits */
	ALL,  /* nobody does, but whatever comes is wanted */
	LEFT, /* what needs an answer from us */
};

static weft_err call_arm(struct weft_slot *s, struct weft_source *src, enum how how, bool soon)
{
	struct weft_source_inside inside;
	weft_task_slot_enter(s, &inside);
	weft_err err = how == WAIT ? src->arm(src->arg) : src->arm_left(src->arg, how == ALL, soon);
	weft_task_slot_exit(&inside);
	s->armed = err == WEFT_OK;
	return err;
}

static weft_err arm_locked(struct weft_engine *e, struct weft_slot *s, enum how how, bool soon)
{
	struct weft_source *src = atomic_load_explicit(&s->x_source, memory_order_relaxed);
	if (!src || s->unarmable)
		return WEFT_OK;
	/* RANG <- RANG (kick.c, who was woken).  Carries: what the bell rang for. */
	bool rang = atomic_exchange_explicit(&s->x_rang, false, memory_order_acq_rel);
	if (!src->arm_left)
		how = WAIT;
	if (s->armed && !rang && how >= s->how && !(soon && src->arm_left))
		return WEFT_OK;
	s->how = (uint8_t)how;
	atomic_store_explicit(&s->x_quiet, how == LEFT, memory_order_relaxed);
	weft_err err = call_arm(s, src, how, soon);
	if (err != WEFT_OK && err != WEFT_AGAIN) {
		weft_info("source %s cannot be armed (%s): the timer looks after it", src->name,
			  weft_strerror(err));
		s->unarmable = true;
		atomic_fetch_add_explicit(&e->x_unarmable, 1, memory_order_relaxed);
		err = WEFT_OK;
	}
	return err;
}

static weft_err settle_locked(struct weft_slot *s)
{
	struct weft_source *src = atomic_load_explicit(&s->x_source, memory_order_relaxed);
	struct weft_source_inside inside;
	if (!src || !src->settle || !s->armed || s->how == WAIT)
		return WEFT_OK;
	weft_task_slot_enter(s, &inside);
	weft_err err = src->settle(src->arg);
	weft_task_slot_exit(&inside);
	s->armed = err == WEFT_OK;
	if (err)
		atomic_store_explicit(&s->x_quiet, false, memory_order_relaxed);
	return err;
}

void weft_task_slot_disarm_locked(struct weft_slot *s)
{
	struct weft_source *src = atomic_load_explicit(&s->x_source, memory_order_relaxed);
	if (!s->armed)
		return;
	s->armed = false;
	atomic_store_explicit(&s->x_quiet, false, memory_order_relaxed);
	if (src && src->disarm) {
		struct weft_source_inside inside;
		weft_task_slot_enter(s, &inside);
		src->disarm(src->arg);
		weft_task_slot_exit(&inside);
	}
}

void weft_task_slot_arm_locked(struct weft_engine *e, struct weft_slot *s)
{
	(void)arm_locked(e, s, WAIT, false);
}

static weft_err sources_arm(struct weft_engine *e, enum how how, bool soon)
{
	/* SLOTS <- SLOTS (add).  Carries: the slot's mask; what is in it comes with x_source. */
	uint32_t n = atomic_load_explicit(&e->x_slots, memory_order_acquire);
	weft_err err = WEFT_OK;
	weft_count(WEFT_CNT_ARMS, 1);
	int was = weft_cancel_off(); /* who arms holds the baton */
	atomic_store_explicit(&e->x_disarm_left, false, memory_order_relaxed);
	weft_task_baton_arm(&e->baton, how == LEFT, how != WAIT);
	for (uint32_t i = 0; i < n && err == WEFT_OK; i++) {
		struct weft_slot *s = &e->slot[i];
		if (!weft_mask_try(&s->mask)) {
			err = WEFT_AGAIN; /* somebody polls it at this moment */
			break;
		}
		err = arm_locked(e, s, how, soon);
		while (!weft_mask_done(&s->mask)) /* as in look() */
			weft_task_slot_look_locked(s, 1);
	}
	if (err)
		weft_task_sources_disarm(e);
	weft_cancel_back(was);
	return err;
}

weft_err weft_task_sources_arm(struct weft_engine *e)
{
	return sources_arm(e, WAIT, false);
}

weft_err weft_task_sources_arm_left(struct weft_engine *e, bool soon)
{
	/* More ranks than cores: nobody saves a fence there, and no timer shall wake us. */
	if (weft_task_spin_crowded() || e->defer_fd < 0)
		return sources_arm(e, WAIT, false);
	return sources_arm(e, weft_task_baton_heard(&e->baton) ? ALL : LEFT, soon);
}

weft_err weft_task_sources_settle(struct weft_engine *e)
{
	/* SLOTS <- SLOTS (add).  Carries: the slot's mask; what is in it comes with x_source. */
	uint32_t n = atomic_load_explicit(&e->x_slots, memory_order_acquire);
	weft_err err = WEFT_OK;
	int was = weft_cancel_off();
	for (uint32_t i = 0; i < n && err == WEFT_OK; i++) {
		struct weft_slot *s = &e->slot[i];
		if (!weft_mask_try(&s->mask)) {
			err = WEFT_AGAIN; /* somebody polls it at this moment */
			break;
		}
		err = settle_locked(s);
		while (!weft_mask_done(&s->mask)) /* as in look() */
			weft_task_slot_look_locked(s, 1);
	}
	/* Relaxed: the holder's. */
	atomic_store_explicit(&e->baton.x_unsettled, false, memory_order_relaxed);
	if (err)
		weft_task_sources_disarm(e);
	weft_cancel_back(was);
	return err;
}

void weft_task_sources_disarm(struct weft_engine *e)
{
	/* SLOTS <- SLOTS (add).  Carries: the slot's mask; what is in it comes with x_source. */
	uint32_t n = atomic_load_explicit(&e->x_slots, memory_order_acquire);
	bool left = false;
	int was = weft_cancel_off();
	atomic_store_explicit(&e->baton.x_armed, false, memory_order_relaxed);
	atomic_store_explicit(&e->baton.x_unsettled, false, memory_order_relaxed);
	for (uint32_t i = 0; i < n; i++) {
		struct weft_slot *s = &e->slot[i];
		if (!weft_mask_try_quiet(&s->mask)) {
			left = true; /* being polled; the next round tries again */
			continue;
		}
		weft_task_slot_disarm_locked(s);
		while (!weft_mask_done(&s->mask))
			weft_task_slot_look_locked(s, 1);
	}
	/* Relaxed: only the holder of the baton acts on it. */
	atomic_store_explicit(&e->x_disarm_left, left, memory_order_relaxed);
	weft_cancel_back(was);
}
