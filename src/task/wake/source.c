/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * source.c - where events come from: sources come and go, each under its slot's mask.
 */
#include "base/backoff.h"
#include "base/log.h"
#include "task/wake/slot.h"
#include "task/wake/source_int.h"
#include "task/wake/watcher.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

static struct weft_slot *slot_of(struct weft_source *s)
{
	return s->engine_private[0];
}

static bool is_inside(const struct weft_slot *s)
{
	const struct weft_source_inside *i = weft_task_engine_self.inside;
	while (i && i->slot != s) /* ends at the outermost */
		i = i->outer;
	return i != NULL;
}

/* ---- coming and going ------------------------------------------------------------------------ */

static struct weft_slot *free_slot(struct weft_engine *e)
{
	for (uint32_t i = 0; i < WEFT_SLOT_MAX; i++)
		if (!atomic_load_explicit(&e->slot[i].x_source, memory_order_relaxed))
			return &e->slot[i];
	return NULL;
}

/* Until the slot's mask is ours; its holder is in one poll callback. */
static void slot_lock(struct weft_slot *s)
{
	unsigned turns = 0;
	while (!weft_mask_try(&s->mask))
		weft_backoff(&turns);
}

static void slot_unlock(struct weft_slot *s)
{
	while (!weft_mask_done(&s->mask))
		weft_task_slot_look_locked(s, 1);
}

static int source_fd(const struct weft_source *src, unsigned i)
{
	return i ? src->more_fd[i - 1] : src->fd;
}

static bool is_watchable(const struct weft_source *src)
{
	return src->fd >= 0 && src->arm;
}

static void unwatch_slot(struct weft_engine *e, const struct weft_source *src)
{
	for (unsigned i = 0; i <= src->n_more; i++)
		epoll_ctl(e->watch_fd, EPOLL_CTL_DEL, source_fd(src, i), NULL);
}

/* WEFT_ERR_UNSUPPORTED: a descriptor is an epoll set of sets of sets, too deep for the kernel. */
static weft_err watch_slot(struct weft_engine *e, struct weft_slot *s, struct weft_source *src)
{
	if (!is_watchable(src))
		return WEFT_OK;
	/* Edges: each arrival wakes one sleeper, and the event does not stay. */
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET,
				 .data.u32 = 1 + (uint32_t)(s - e->slot)};
	for (unsigned i = 0; i <= src->n_more; i++) {
		if (epoll_ctl(e->watch_fd, EPOLL_CTL_ADD, source_fd(src, i), &ev) == 0)
			continue;
		int error = errno;
		unwatch_slot(e, src);
		if (error == ELOOP) {
			weft_info("source %s: its descriptor %d nests too deep to be watched; a "
				  "timer "
				  "looks at it",
				  src->name, source_fd(src, i));
			return WEFT_ERR_UNSUPPORTED;
		}
		weft_error("source %s: its descriptor %d cannot be watched: %s", src->name,
			   source_fd(src, i), strerror(error));
		return WEFT_ERR_SYS;
	}
	return WEFT_OK;
}

static int priority_of(struct weft_engine *e, uint32_t slot)
{
	struct weft_source *src =
		atomic_load_explicit(&e->slot[slot].x_source, memory_order_relaxed);
	return src ? src->priority : 0;
}

/* Quick rounds look at the first n slots in this order; slot_lock is held. */
static void order_slots(struct weft_engine *e, uint32_t n)
{
	weft_assert_held(weft_mutex, &e->slot_lock);
	weft_assert(n <= WEFT_SLOT_MAX);
	for (uint32_t i = 0; i < n; i++) { /* insertion: few, and seldom */
		uint32_t at = i;
		for (; at > 0; at--) {
			uint16_t before =
				atomic_load_explicit(&e->x_order[at - 1], memory_order_relaxed);
			if (priority_of(e, before) >= priority_of(e, i))
				break;
			atomic_store_explicit(&e->x_order[at], before, memory_order_relaxed);
		}
		atomic_store_explicit(&e->x_order[at], (uint16_t)i, memory_order_relaxed);
	}
}

weft_err weft_task_source_add(struct weft_source *src)
{
	struct weft_engine *e = &weft_task_engine;
	if (!src || !src->poll)
		return WEFT_ERR_ARG;
	/* READY (engine.c). */
	if (!atomic_load_explicit(&e->x_running, memory_order_acquire))
		return WEFT_ERR_STATE;
	pthread_mutex_lock(&e->slot_lock);
	struct weft_slot *s = free_slot(e);
	weft_err err = s ? watch_slot(e, s, src) : WEFT_ERR_LIMIT;
	bool too_deep = err == WEFT_ERR_UNSUPPORTED;
	if (err && !too_deep) {
		pthread_mutex_unlock(&e->slot_lock);
		if (!s)
			weft_error("more than %d sources", WEFT_SLOT_MAX);
		return err;
	}
	slot_lock(s);
	src->engine_private[0] = s;
	atomic_store_explicit(&s->x_level, WEFT_ARM_OFF, memory_order_relaxed);
	atomic_store_explicit(&s->x_rang, false, memory_order_relaxed);
	s->unarmable = too_deep || !src->arm || (src->fd < 0 && !src->self_armed);
	s->timed = false;
	s->cost = 0;
	uint32_t period = src->rare ? WEFT_SLOT_PERIOD_RARE : 1;
	atomic_store_explicit(&s->x_idle, false, memory_order_relaxed);
	atomic_store_explicit(&s->x_period_max, period, memory_order_relaxed);
	atomic_store_explicit(&s->x_period, period, memory_order_relaxed);
	atomic_store_explicit(&s->x_wait, 1, memory_order_relaxed);
	if (s->unarmable)
		atomic_fetch_add_explicit(&e->x_unarmable, 1, memory_order_relaxed);
	/* SOURCE -> round.  Carries: *src and the slot's fields. */
	atomic_store_explicit(&s->x_source, src, memory_order_release);
	/* A sleeper believes that all is armed: so this source is, from the start. */
	(void)weft_task_slot_arm_locked(e, s, WEFT_ARM_ALL);
	/* A poller that has disarmed the others finds this one at its next turn. */
	atomic_store_explicit(&e->x_some_armed, true, memory_order_relaxed);
	slot_unlock(s);
	uint32_t i = (uint32_t)(s - e->slot);
	uint32_t n = atomic_load_explicit(&e->x_slots, memory_order_relaxed);
	order_slots(e, i >= n ? i + 1 : n);
	if (i >= n)
		/* SLOTS -> rounds. */
		atomic_store_explicit(&e->x_slots, i + 1, memory_order_release);
	pthread_mutex_unlock(&e->slot_lock);
	/* A sleeper looks at it once, and takes its timer into account. */
	weft_task_watcher_call(e);
	return WEFT_OK;
}

void weft_task_source_remove(struct weft_source *src)
{
	struct weft_engine *e = &weft_task_engine;
	struct weft_slot *s = slot_of(src);
	if (!s)
		return;
	bool inside = is_inside(s); /* from its own callback: the mask is ours */
	pthread_mutex_lock(&e->slot_lock);
	if (!inside) {
		slot_lock(s);
		(void)weft_task_slot_arm_locked(e, s, WEFT_ARM_OFF);
	}
	if (s->unarmable)
		atomic_fetch_sub_explicit(&e->x_unarmable, 1, memory_order_relaxed);
	weft_task_source_timed_locked(src, false);
	weft_assert(atomic_load_explicit(&s->x_source, memory_order_relaxed) == src);
	atomic_store_explicit(&s->x_source, NULL, memory_order_relaxed);
	src->engine_private[0] = NULL;
	if (!inside)
		slot_unlock(s);
	if (is_watchable(src))
		unwatch_slot(e, src);
	pthread_mutex_unlock(&e->slot_lock);
}

/* ---- for sources with requests of their own -------------------------------------------------- */

void weft_task_source_enter(struct weft_source *src, struct weft_source_inside *inside)
{
	struct weft_slot *s = slot_of(src);
	bool nested = is_inside(s);
	weft_assert(nested || !weft_task_engine_self.inside); /* two could wait for each other */
	if (!nested)
		slot_lock(s);
	weft_task_slot_enter(s, inside);
	inside->nested = nested;
}

void weft_task_source_exit(struct weft_source *src, struct weft_source_inside *inside)
{
	weft_task_slot_exit(inside);
	if (!inside->nested)
		slot_unlock(slot_of(src));
}

void weft_task_source_look(struct weft_source *src)
{
	struct weft_slot *s = slot_of(src);
	atomic_store_explicit(&s->x_idle, false,
			      memory_order_relaxed); /* a hint, kept by its look */
	(void)weft_task_slot_look(s, WEFT_ROUND_FULL);
}

bool weft_task_source_armed_locked(const struct weft_source *src)
{
	const struct weft_slot *s = src->engine_private[0];
	weft_assert_held(weft_mask, &s->mask);
	return weft_task_slot_level(s) != WEFT_ARM_OFF;
}

void weft_task_source_timed_locked(struct weft_source *src, bool timed)
{
	struct weft_engine *e = &weft_task_engine;
	struct weft_slot *s = slot_of(src);
	weft_assert_held(weft_mask, &s->mask);
	if (s->timed == timed)
		return;
	s->timed = timed;
	if (timed) {
		atomic_fetch_add_explicit(&e->x_unarmable, 1, memory_order_relaxed);
		weft_task_watcher_call(e); /* a sleeper shall set its alarm */
	} else {
		atomic_fetch_sub_explicit(&e->x_unarmable, 1, memory_order_relaxed);
	}
}

void weft_task_source_idle_locked(struct weft_source *src, bool idle)
{
	struct weft_slot *s = slot_of(src);
	weft_assert_held(weft_mask, &s->mask);
	if (atomic_load_explicit(&s->x_idle, memory_order_relaxed) != idle)
		atomic_store_explicit(&s->x_idle, idle, memory_order_relaxed);
}

void weft_task_source_rare_locked(struct weft_source *src, bool rarely)
{
	struct weft_slot *s = slot_of(src);
	weft_assert_held(weft_mask, &s->mask);
	uint32_t period = rarely ? WEFT_SLOT_PERIOD_RARE : 1;
	if (rarely == weft_task_slot_rare(s))
		return;
	/* Relaxed, all: hints. */
	atomic_store_explicit(&s->x_period_max, period, memory_order_relaxed);
	atomic_store_explicit(&s->x_period, period, memory_order_relaxed);
	atomic_store_explicit(&s->x_wait, period, memory_order_relaxed);
}

void weft_task_sources_describe(FILE *out)
{
	struct weft_engine *e = &weft_task_engine;
	/* SLOTS <- SLOTS (add).  Carries: the slot's mask; what is in it comes with x_source. */
	uint32_t n = atomic_load_explicit(&e->x_slots, memory_order_acquire);
	for (uint32_t i = 0; i < n; i++) {
		struct weft_slot *s = &e->slot[i];
		struct weft_source *src = atomic_load_explicit(&s->x_source, memory_order_relaxed);
		if (src)
			fprintf(out, "  source %s: every %u rounds at most, %s\n", src->name,
				atomic_load_explicit(&s->x_period_max, memory_order_relaxed),
				s->unarmable ? "cannot be armed, looked at by the timer" : "armed");
	}
}
