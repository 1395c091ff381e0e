/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * strategy.c - one schedule in three has a strategy (comm/send/strategy.h), with packs, pieces and
 * numbers of packets small enough to matter here.
 *
 * It is drawn beside the plan: a seed without one runs as if there were none.
 */
#include "comm/send/pack.h"
#include "sim.h"

/* What a pack of every size needs; see weft_comm_pack_open. */
#define INLINE_MAX 1024

static struct weft_strategy mine;

static unsigned pick(uint64_t *rnd, unsigned n)
{
	return (unsigned)(weft_rand_next(rnd) % n);
}

void sim_strategy_draw(uint64_t seed)
{
	static const char *const names[] = {"aggregate", "reorder", "shortest",
					    "priority",  "auto",    "auto"};
	struct sim_plan *p = &sim.plan;
	uint64_t rnd = ~seed;

	if (sim.fifo || pick(&rnd, 3))
		return;
	mine = *weft_comm_strategy_find(names[pick(&rnd, weft_countof(names))]);
	p->latency_us = pick(&rnd, 4) ? 10 : 0.5;
	p->hold = (unsigned[]){0, 50, 95}[pick(&rnd, 3)];
	if (mine.pack)
		mine.pack = (size_t[]){200, 600, WEFT_PACK_MAX}[pick(&rnd, 3)];
	if (mine.apart) {
		mine.piece = (size_t[]){100, 700, 5000}[pick(&rnd, 3)];
		mine.ahead = 1 + pick(&rnd, 4);
		/* A small message in three pieces, too. */
		if (pick(&rnd, 2))
			mine.pack = WEFT_PACK_MAX;
		mine.may_hold = mine.pack;
	}
	p->inline_max = pick(&rnd, 4) ? INLINE_MAX : 256;
	if (mine.pack) { /* many small messages, and a network that makes them wait */
		p->eager_max = p->eager_max < 512 ? 512 : p->eager_max;
		p->full = p->full < 30 ? 30 : p->full;
	}
	p->strategy = &mine;
	SIM_SAY("strategy %s, packs of %zu, pieces of %zu, %u ahead", mine.name, mine.pack,
		mine.piece, mine.ahead);
}

bool sim_strategy_hold(void)
{
	return sim.plan.hold && sim_chance(sim.plan.hold);
}

void sim_strategy_posts(const struct weft_gate *g, const struct weft_wire *h)
{
	if (!sim.plan.strategy || !g->strategy->apart)
		return;
	/* Relaxed: one thread. */
	int under = atomic_load_explicit(&g->x_data_under, memory_order_relaxed);
	if (h->kind != WEFT_WIRE_DATA && g->data_head)
		sim_cover(SIM_OVERTAKEN);
	if (h->kind == WEFT_WIRE_DATA && !h->flags && h->length) {
		CHECK(h->length <= g->strategy->piece);
		CHECK(under < (int)g->strategy->ahead);
		if (h->length == g->strategy->piece)
			sim_cover(SIM_DATA_PIECE);
	}
}

void sim_strategy_look(void)
{
	for (int r = 0; sim.plan.strategy && r < sim.plan.ranks; r++) {
		for (int p = 0; p < sim.plan.ranks; p++) {
			const struct weft_gate *g = &sim.rank[r].core->gate[p];
			if (weft_comm_pack_waits(g) && g->pack->held)
				sim_cover(SIM_PACK_HELD);
			if (g->data_head &&
			    atomic_load_explicit(&g->x_data_under, memory_order_relaxed) >=
				    (int)g->strategy->ahead)
				sim_cover(SIM_DATA_BEHIND);
		}
	}
}
