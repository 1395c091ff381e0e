/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slot.c - the looks at sources, in each round.
 *
 * A look at a source may cost a system call.  So each has a period: how many rounds pass between
 * looks.  An event sets its period to 1; an event elsewhere doubles it, up to what its measured
 * cost allows.  Before a thread sleeps every source is looked at.
 */
#include "task/wake/outside.h"
#include "task/wake/slot.h"
#include "task/wake/source_int.h"

#define MEASURE_EVERY 32 /* looks; two clock reads each, so about 1 ns a look */
#define SPIN_TURNS 4     /* about 60 ns: a task that is submitted meanwhile waits so long */
#define WAIT_TURNS 16    /* about 250 ns: a message there and back over shared memory */

/* The others wait longer for their next look. */
static void slow_others(struct weft_engine *e, const struct weft_slot *hot, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct weft_slot *s = &e->slot[i];
		if (s == hot)
			continue;
		uint32_t period = atomic_load_explicit(&s->x_period, memory_order_relaxed);
		if (period < atomic_load_explicit(&s->x_period_max, memory_order_relaxed))
			atomic_store_explicit(&s->x_period, period * 2, memory_order_relaxed);
	}
}

static void note_poll_cost(struct weft_slot *s, uint64_t cycles)
{
	if (cycles > 100000 || weft_task_slot_rare(s))
		return; /* preempted */
	s->cost += (uint32_t)((int32_t)cycles - (int32_t)s->cost) / 4;
	uint64_t ns = s->cost * 1000ull / weft_cycles_per_us();
	atomic_store_explicit(&s->x_period_max,
			      ns < 60    ? 1
			      : ns < 150 ? 8
					 : 64,
			      memory_order_relaxed);
}

int weft_task_slot_look_locked(struct weft_slot *s, unsigned turns)
{
	weft_assert_held(weft_mask, &s->mask);
	struct weft_source *src = atomic_load_explicit(&s->x_source, memory_order_relaxed);
	if (!src)
		return 0;
	bool spin = turns > 1 && src->spin;
	bool measure = ++s->looks % MEASURE_EVERY == 0 && !spin;
	uint64_t c0 = measure ? weft_cycles() : 0;
	struct weft_source_inside inside;
	weft_task_slot_enter(s, &inside);
	int found = spin ? src->spin(src->arg, turns) : src->poll(src->arg);
	weft_task_slot_exit(&inside);
	if (found > 0)
		weft_task_outside_tell(&weft_task_engine);
	if (measure && !found)
		note_poll_cost(s, weft_cycles() - c0);
	return found > 0 ? found : 0;
}

int weft_task_slot_look(struct weft_slot *s, enum weft_round_kind kind)
{
	bool have =
		kind == WEFT_ROUND_FULL ? weft_mask_try(&s->mask) : weft_mask_try_quiet(&s->mask);
	if (!have) {
		weft_count(WEFT_CNT_MASK_SKIPS, 1);
		return 0;
	}
	unsigned turns = kind == WEFT_ROUND_WAIT   ? WAIT_TURNS
			 : kind == WEFT_ROUND_SPIN ? SPIN_TURNS
						   : 1;
	int found = weft_task_slot_look_locked(s, turns);
	while (!weft_mask_done(
		&s->mask)) /* ends when no thread was turned away during the last look */
		found += weft_task_slot_look_locked(s, 1);
	return found;
}

int weft_task_sources_round(struct weft_engine *e, enum weft_round_kind kind)
{
	/* SLOTS <- add.  Carries: the slots' contents. */
	/* SLOTS <- SLOTS (add).  Carries: the slot's mask; what is in it comes with x_source. */
	uint32_t n = atomic_load_explicit(&e->x_slots, memory_order_acquire);
	int found = 0;
	for (uint32_t i = 0; i < n; i++) {
		/* Relaxed: see x_order; a full round leaves nothing out. */
		uint32_t at = kind == WEFT_ROUND_FULL || n == 1
				      ? i
				      : atomic_load_explicit(&e->x_order[i], memory_order_relaxed);
		struct weft_slot *s = &e->slot[at];
		if (!atomic_load_explicit(&s->x_source, memory_order_relaxed))
			continue;
		if (kind != WEFT_ROUND_FULL) {
			/* Relaxed: a thread that wants something from it looks itself. */
			if (atomic_load_explicit(&s->x_idle, memory_order_relaxed))
				continue;
			/* Several pollers may count down together: a look more or less. */
			uint32_t wait = atomic_load_explicit(&s->x_wait, memory_order_relaxed);
			/* What needs no answer has not rung: only a look finds it. */
			if (wait > 1 && !weft_arm_is_for_replies(weft_task_slot_level(s))) {
				atomic_store_explicit(&s->x_wait, wait - 1, memory_order_relaxed);
				continue;
			}
			uint32_t period = atomic_load_explicit(&s->x_period, memory_order_relaxed);
			if (wait != period)
				atomic_store_explicit(&s->x_wait, period, memory_order_relaxed);
		}
		int got = weft_task_slot_look(s, kind);
		if (got) {
			found += got;
			if (n > 1) {
				if (!weft_task_slot_rare(s) &&
				    atomic_load_explicit(&s->x_period, memory_order_relaxed) != 1) {
					atomic_store_explicit(&s->x_period, 1,
							      memory_order_relaxed);
					atomic_store_explicit(&s->x_wait, 1, memory_order_relaxed);
				}
				slow_others(e, s, n);
			}
		}
	}
	return found;
}
