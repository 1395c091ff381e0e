/* SPDX-License-Identifier: BSD-3-Clause */
/* slot.h - a source's place, for source.c, which polls, and arm.c, which arms.  Mask held. */
#ifndef WEFT_SLOT_H
#define WEFT_SLOT_H

#include "task/engine_int.h"

/* The calling thread, which holds the mask of s, begins to run a callback of it. */
static inline void weft_task_slot_enter(struct weft_slot *s, struct weft_source_inside *inside)
{
	struct weft_engine_self *self = &weft_task_engine_self;
	*inside = (struct weft_source_inside){.slot = s, .outer = self->inside};
	self->inside = inside;
	self->in_handler++;
}

static inline void weft_task_slot_exit(const struct weft_source_inside *inside)
{
	weft_task_engine_self.inside = inside->outer;
	weft_task_engine_self.in_handler--;
}

/* source.c: looks once. */
int weft_task_slot_look_locked(struct weft_slot *s, unsigned turns);

/* arm.c: for who waits. */
void weft_task_slot_arm_locked(struct weft_engine *e, struct weft_slot *s);
void weft_task_slot_disarm_locked(struct weft_slot *s);

#endif
