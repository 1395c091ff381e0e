/* SPDX-License-Identifier: BSD-3-Clause */
/* co.c - coroutines by the switch of user-level threads; they wait by parkers of a kind of their own. */
#include "co.h"

#include <sys/mman.h>
#include "check.h"
#include "ult/sched/ctx.h"
#include "ult/stack/san.h"
#include "wait/stack.h"

#define STACK ((size_t)1 << 20)

static struct sim_co *running;

/* Onto c's stack, and back. */
static void enter(struct sim_co *c)
{
	c->below = running;
	c->state = SIM_CO_RUNNING;
	running = c;
#ifdef WEFT_TSAN
	c->back_fiber = __tsan_get_current_fiber();
	__tsan_switch_to_fiber(c->fiber, 0);
#endif
#ifdef WEFT_ASAN
	void *fake;
	__sanitizer_start_switch_fiber(&fake, c->stack, STACK);
#endif
	(void)weft_ult_ctx_switch(&c->back, c->sp, c);
#ifdef WEFT_ASAN
	__sanitizer_finish_switch_fiber(fake, NULL, NULL);
#endif
	running = c->below;
}

static void arrive(struct sim_co *c)
{
#ifdef WEFT_ASAN
	__sanitizer_finish_switch_fiber(c->fake, &c->back_bottom, &c->back_size);
#endif
	(void)c;
}

static void leave(enum sim_co_state state)
{
	struct sim_co *c = running;
	c->state = state;
#ifdef WEFT_TSAN
	__tsan_switch_to_fiber(c->back_fiber, 0);
#endif
#ifdef WEFT_ASAN
	__sanitizer_start_switch_fiber(&c->fake, c->back_bottom, c->back_size);
#endif
	(void)weft_ult_ctx_switch(&c->sp, c->back, NULL);
	arrive(c);
}

static void entry(void *arg)
{
	struct sim_co *c = arg;
	arrive(c);
	for (;;) { /* ends: it is not resumed */
		c->body(c->arg);
		leave(SIM_CO_IDLE);
	}
}

/* ---- waits ---------------------------------------------------------------------------------- */

static bool co_park(struct weft_parker *p, uint64_t deadline_ns)
{
	struct sim_co *c = p->ops_arg;
	CHECK(c == running && deadline_ns == WEFT_NEVER);
	if (!c->woken)
		leave(SIM_CO_PARKED);
	c->woken = false;
	return true;
}

static void co_unpark(struct weft_parker *p)
{
	struct sim_co *c = p->ops_arg;
	c->woken = true;
	if (c->state == SIM_CO_PARKED)
		c->state = SIM_CO_READY;
}

static const struct weft_parker_ops ops = {
	.name = "the simulator's coroutine",
	.park = co_park,
	.unpark = co_unpark,
	.yield = sim_co_yield,
};

static struct weft_parker *self(void)
{
	return running ? &running->parker : NULL;
}

static void call_here(void (*fn)(void *arg), void *arg)
{
	fn(arg);
}

static bool not_small(void)
{
	return false;
}

void sim_co_begin(void)
{
	static const struct weft_stacks stacks = {call_here, not_small, call_here};
	/* Relaxed: one thread.  Set, so that a wait looks for no work of the engine before it parks. */
	atomic_store_explicit(&weft_wait_x_stacks, &stacks, memory_order_relaxed);
	weft_wait_parker_set_self_hook(self);
}

/* ---- life ----------------------------------------------------------------------------------- */

void sim_co_make(struct sim_co *c)
{
	CHECK(c->state != SIM_CO_RUNNING);
	if (!c->stack) {
		c->stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				-1, 0);
		CHECK(c->stack != MAP_FAILED);
		weft_ult_tell_stack(c->stack, STACK);
		weft_wait_parker_init(&c->parker, &ops, c);
	} else if (c->state == SIM_CO_IDLE) {
		return; /* it waits in entry() */
	}
#ifdef WEFT_ASAN
	__asan_unpoison_memory_region(c->stack, STACK);
	c->fake = NULL;
#endif
#ifdef WEFT_TSAN
	if (c->fiber)
		__tsan_destroy_fiber(c->fiber);
	c->fiber = __tsan_create_fiber(0);
#endif
	c->sp = weft_ult_ctx_make(c->stack + STACK, entry);
	c->state = SIM_CO_IDLE;
}

void sim_co_start(struct sim_co *c, void (*body)(void *arg), void *arg)
{
	CHECK(c->state == SIM_CO_IDLE);
	c->body = body;
	c->arg = arg;
	c->woken = false;
	enter(c);
}

void sim_co_resume(struct sim_co *c)
{
	CHECK(c->state == SIM_CO_READY);
	enter(c);
}

void sim_co_yield(void)
{
	CHECK(running);
	leave(SIM_CO_READY);
}
