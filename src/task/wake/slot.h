/* SPDX-License-Identifier: BSD-3-Clause */
/* slot.h - a source's place: looked at by slot.c, armed by arm.c, filled by source.c.  Mask held. */
#ifndef WEFT_SLOT_H
#define WEFT_SLOT_H

#include "base/assert.h"
#include "task/engine_int.h"

/* The calling thread, which holds the mask of s, begins to run a callback of it. */
static inline void weft_task_slot_enter(struct weft_slot *s, struct weft_source_inside *inside)
{
	weft_assert_held(weft_mask, &s->mask);
	struct weft_engine_self *self = &weft_task_engine_self;
	*inside = (struct weft_source_inside){.slot = s, .outer = self->inside};
	self->inside = inside;
	self->in_handler++;
}

static inline void weft_task_slot_exit(const struct weft_source_inside *inside)
{
	weft_assert(weft_task_engine_self.inside == inside); /* innermost first */
	weft_assert(weft_task_engine_self.in_handler > 0);
	weft_task_engine_self.inside = inside->outer;
	weft_task_engine_self.in_handler--;
}

#define WEFT_SLOT_PERIOD_RARE                                                                      \
	(1u << 30) /* rounds: in practice the first and those before a sleep */

static inline bool weft_task_slot_rare(const struct weft_slot *s)
{
	/* Relaxed: a hint. */
	return atomic_load_explicit(&s->x_period_max, memory_order_relaxed) ==
	       WEFT_SLOT_PERIOD_RARE;
}

/* slot.c: looks once. */
int weft_task_slot_look_locked(struct weft_slot *s, unsigned turns);
/* Mask not held: takes it if it is free, and looks until no thread was turned away meanwhile. */
int weft_task_slot_look(struct weft_slot *s, enum weft_round_kind kind);

/* arm.c: WEFT_AGAIN: something is there, and the slot is off. */
weft_err weft_task_slot_arm_locked(struct weft_engine *e, struct weft_slot *s,
				   enum weft_arm_level level);

static inline enum weft_arm_level weft_task_slot_level(const struct weft_slot *s)
{
	/* Relaxed: under the mask; without it a hint. */
	return (enum weft_arm_level)atomic_load_explicit(&s->x_level, memory_order_relaxed);
}

#endif
