/* SPDX-License-Identifier: BSD-3-Clause */
/* policy.c - the choices that a program may make itself, and what the engine chooses otherwise. */
#include <weft/policy.h>

#include "task/engine_int.h"
#include "task/waiting/policy_int.h"

static _Atomic(const struct weft_policy *) x_policy;

void weft_policy_set(const struct weft_policy *p)
{
	/* POLICY -> current.  Carries: *p. */
	atomic_store_explicit(&x_policy, p, memory_order_release);
}

static const struct weft_policy *current_policy(void)
{
	/* POLICY.  Without it a waiter could call a function that is not yet written there. */
	return atomic_load_explicit(&x_policy, memory_order_acquire);
}

struct weft_wait_plan weft_policy_wait(const struct weft_wait_load *load)
{
	struct weft_wait_plan plan = {.ns = load->learned_ns};
	/* Each look takes from what the program itself may use. */
	if (load->quota && load->quota < load->ranks)
		plan.ns = 0;
	/* Our own ranks look briefly and hand the core on; strangers keep it when they get it. */
	else if (load->ranks > load->cores)
		plan.yield = true;
	else if (load->preempted)
		plan.ns = 0;
	return plan;
}

enum weft_events_method weft_policy_source(const struct weft_events_load *load)
{
	return load->polled && load->running <= load->cores ? WEFT_EVENTS_POLL : WEFT_EVENTS_BLOCK;
}

struct weft_wait_plan weft_task_policy_ask_wait(const struct weft_wait_load *load)
{
	const struct weft_policy *p = current_policy();
	if (weft_likely(!p || !p->wait))
		return weft_policy_wait(load);
	weft_task_engine_self.in_handler++;
	struct weft_wait_plan plan = p->wait(p->arg, load);
	weft_task_engine_self.in_handler--;
	return plan;
}

bool weft_task_policy_has_source(void)
{
	const struct weft_policy *p = current_policy();
	return p && p->source;
}

enum weft_events_method weft_task_policy_ask_source(const char *name,
						    const struct weft_events_load *load)
{
	const struct weft_policy *p = current_policy();
	return p && p->source ? p->source(p->arg, name, load) : WEFT_EVENTS_AUTO;
}
