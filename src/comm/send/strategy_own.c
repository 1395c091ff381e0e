/* SPDX-License-Identifier: BSD-3-Clause */
/* strategy_own.c - weft/strategy.h: a program's own plan as a strategy. */
#include <string.h>
#include <weft/strategy.h>
#include "comm/request.h"
#include "comm/send/gate.h"

#define OWN_MAX 8
#define PIECE ((size_t)256 * 1024)
#define AHEAD 4

static struct own {
	struct weft_strategy strategy;
	weft_strategy_plan plan;
} own[OWN_MAX];
static unsigned n_own;

static weft_strategy_item item_of(struct weft_gate *g, struct weft_out *o)
{
	struct weft_core_req_send *s = weft_comm_req_send(weft_comm_req_of_send_out(o));
	return (weft_strategy_item){.bytes = s->want,
				    .left = s->want - s->off,
				    .peer = g->peer,
				    .tag = weft_comm_req_of_send_out(o)->status.tag,
				    .priority = o->priority};
}

static struct weft_out *asked_locked(struct weft_gate *g)
{
	weft_assert_held(weft_comm_gate, g);
	const weft_strategy_plan *plan = g->strategy->own;
	weft_strategy_item items[WEFT_STRATEGY_ITEMS] = {{0}};
	struct weft_out **at[WEFT_STRATEGY_ITEMS];
	unsigned n = 0;

	for (struct weft_out **o = &g->data_head; *o && n < WEFT_STRATEGY_ITEMS; o = &(*o)->next) {
		at[n] = o;
		items[n++] = item_of(g, *o);
	}
	unsigned i = plan->next ? plan->next(plan->arg, items, n) : 0;
	return weft_comm_strategy_take_locked(g, at[i < n ? i : 0]);
}

weft_err weft_strategy_register(const weft_strategy_plan *plan)
{
	if (!plan || !plan->name || !*plan->name)
		return WEFT_ERR_ARG;
	if (n_own == OWN_MAX)
		return WEFT_ERR_LIMIT;
	struct own *o = &own[n_own];
	o->plan = *plan;
	o->strategy = (struct weft_strategy){.name = plan->name,
					     .pack = plan->together,
					     .may_hold = plan->window,
					     .apart = true,
					     .piece = plan->piece ? plan->piece : PIECE,
					     .ahead = plan->ahead ? plan->ahead : AHEAD,
					     .next_locked = asked_locked,
					     .own = &o->plan};
	weft_err err = weft_comm_strategy_add(&o->strategy);
	if (!err)
		n_own++;
	return err;
}
