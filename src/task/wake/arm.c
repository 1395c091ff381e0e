/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arm.c - brings all sources to a level (base/arm_level.h), so that what arrives rings, or to OFF.
 *
 * Order     the baton's level is said before the first bell is armed: a bell that rings from then on
 *           takes it back (weft_task_baton_rang).
 * A slot that is armed for more than is asked stays as it is, unless its bell has rung.
 */
#include "base/cancel.h"
#include "base/log.h"
#include "base/trace.h"
#include "task/wake/slot.h"
#include "task/waiting/spin.h"
#include "task/wake/arm.h"

static weft_err call_arm(struct weft_slot *s, struct weft_source *src, enum weft_arm_level level)
{
	weft_assert_held(weft_mask, &s->mask);
	weft_assert(level <= WEFT_ARM_ALL && src->arm);
	struct weft_source_inside inside;
	weft_task_slot_enter(s, &inside);
	weft_err err = src->arm(src->arg, level);
	weft_task_slot_exit(&inside);
	/* Relaxed: under the mask; read without it as a hint. */
	atomic_store_explicit(&s->x_level, err ? WEFT_ARM_OFF : level, memory_order_relaxed);
	return err;
}

static void off_locked(struct weft_slot *s)
{
	weft_assert_held(weft_mask, &s->mask);
	struct weft_source *src = atomic_load_explicit(&s->x_source, memory_order_relaxed);
	if (weft_task_slot_level(s) == WEFT_ARM_OFF)
		return;
	if (src)
		(void)call_arm(s, src, WEFT_ARM_OFF);
	else
		atomic_store_explicit(&s->x_level, WEFT_ARM_OFF, memory_order_relaxed);
}

weft_err weft_task_slot_arm_locked(struct weft_engine *e, struct weft_slot *s,
				   enum weft_arm_level level)
{
	weft_assert_held(weft_mask, &s->mask);
	if (level == WEFT_ARM_OFF) {
		off_locked(s);
		return WEFT_OK;
	}
	struct weft_source *src = atomic_load_explicit(&s->x_source, memory_order_relaxed);
	if (!src || s->unarmable)
		return WEFT_OK;
	if (!src->arms_levels)
		level = WEFT_ARM_ALL;
	/* RANG <- RANG (kick.c, the woken).  Carries: what the bell rang for. */
	bool rang = atomic_exchange_explicit(&s->x_rang, false, memory_order_acq_rel);
	if (weft_task_slot_level(s) >= level && !rang && level != WEFT_ARM_SOON)
		return WEFT_OK;
	weft_err err = call_arm(s, src, level);
	if (err != WEFT_OK && err != WEFT_AGAIN) {
		weft_info("source %s cannot be armed (%s): the timer looks after it", src->name,
			  weft_strerror(err));
		s->unarmable = true;
		atomic_fetch_add_explicit(&e->x_unarmable, 1, memory_order_relaxed);
		err = WEFT_OK;
	}
	return err;
}

static void all_off(struct weft_engine *e)
{
	/* SLOTS <- SLOTS (add).  Carries: the slot's mask; what is in it comes with x_source. */
	uint32_t n = atomic_load_explicit(&e->x_slots, memory_order_acquire);
	bool left = false;
	weft_task_baton_arm(&e->baton, WEFT_ARM_OFF);
	for (uint32_t i = 0; i < n; i++) {
		struct weft_slot *s = &e->slot[i];
		if (!weft_mask_try_quiet(&s->mask)) {
			left = true; /* being polled; the next round tries again */
			continue;
		}
		off_locked(s);
		while (!weft_mask_done(&s->mask))
			weft_task_slot_look_locked(s, 1);
	}
	/* Relaxed: only the holder of the baton acts on it. */
	atomic_store_explicit(&e->x_some_armed, left, memory_order_relaxed);
}

static weft_err all_to(struct weft_engine *e, enum weft_arm_level level)
{
	/* SLOTS <- SLOTS (add), as above. */
	uint32_t n = atomic_load_explicit(&e->x_slots, memory_order_acquire);
	weft_err err = WEFT_OK;
	weft_count(WEFT_CNT_ARMS, 1);
	weft_trace(WEFT_TRACE_ARM, level, 0, 0, 0);
	atomic_store_explicit(&e->x_some_armed, false, memory_order_relaxed);
	weft_task_baton_arm(&e->baton, level);
	for (uint32_t i = 0; i < n && err == WEFT_OK; i++) {
		struct weft_slot *s = &e->slot[i];
		if (!weft_mask_try(&s->mask))
			return WEFT_AGAIN; /* another thread polls it at this moment */
		err = weft_task_slot_arm_locked(e, s, level);
		while (!weft_mask_done(&s->mask)) /* as in look() */
			weft_task_slot_look_locked(s, 1);
	}
	return err;
}

weft_err weft_task_sources_arm(struct weft_engine *e, enum weft_arm_level level)
{
	weft_task_baton_check_held(&e->baton);
	int was = weft_cancel_off();
	weft_err err = level == WEFT_ARM_OFF ? WEFT_OK : all_to(e, level);
	if (err || level == WEFT_ARM_OFF)
		all_off(e);
	weft_cancel_back(was);
	return err;
}

static void check_slot_locked(const struct weft_slot *s)
{
	weft_assert_held(weft_mask, &s->mask);
	weft_assert(weft_task_slot_level(s) <= WEFT_ARM_ALL);
	/* What cannot be armed, and what has gone, is off. */
	weft_assert(!s->unarmable || weft_task_slot_level(s) == WEFT_ARM_OFF ||
		    !atomic_load_explicit(&s->x_source, memory_order_relaxed));
}

void weft_task_sources_check(struct weft_engine *e)
{
	/* SLOTS <- SLOTS (add), as above. */
	uint32_t n = atomic_load_explicit(&e->x_slots, memory_order_acquire);
	weft_assert(n <= WEFT_SLOT_MAX);
	weft_task_baton_check(&e->baton);
	for (uint32_t i = 0; i < n; i++) {
		struct weft_slot *s = &e->slot[i];
		if (!weft_mask_try(&s->mask))
			continue; /* its holder looks */
		check_slot_locked(s);
		while (!weft_mask_done(&s->mask)) /* as in look() */
			weft_task_slot_look_locked(s, 1);
	}
}

enum weft_arm_level weft_task_sources_level_to_leave(struct weft_engine *e, bool soon)
{
	/* More ranks than cores: a fence saves nothing there, and no timer shall wake a thread. */
	if (weft_task_spin_crowded() || e->kick_timer_fd < 0)
		return WEFT_ARM_ALL;
	if (weft_task_baton_heard(&e->baton))
		return WEFT_ARM_ALL_UNCHECKED;
	return soon ? WEFT_ARM_SOON : WEFT_ARM_REPLIES_UNCHECKED;
}
