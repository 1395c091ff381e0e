/* SPDX-License-Identifier: BSD-3-Clause */
/* strategy.c - the table of strategies. */
#include "comm/strategy.h"

#include "comm/comm_int.h"

/* A piece is 2 ms of a link of 1 Gbit/s, and what hides the costs of a packet on one of 100. */
#define PIECE ((size_t)256 * 1024)
#define AHEAD 4

static struct weft_out *oldest_locked(struct weft_gate *g)
{
	struct weft_out *o = g->data_head;
	g->data_head = o->next;
	if (!g->data_head)
		g->data_tail = &g->data_head;
	return o;
}

static uint64_t left(struct weft_out *o)
{
	struct weft_core_req_send *s = weft_req_send(weft_req_of_send_out(o));
	return s->want - s->off;
}

static struct weft_out *shortest_locked(struct weft_gate *g)
{
	struct weft_out **best = &g->data_head;
	for (struct weft_out **at = &g->data_head; *at; at = &(*at)->next)
		if (left(*at) < left(*best))
			best = at;
	struct weft_out *o = *best;
	*best = o->next;
	if (g->data_tail == &o->next)
		g->data_tail = best;
	return o;
}

const struct weft_strategy weft_strategy_fifo = {.name = "fifo"};
static const struct weft_strategy reorder = {.name = "reorder",
					     .apart = true,
					     .piece = PIECE,
					     .ahead = AHEAD,
					     .next_locked = oldest_locked};
static const struct weft_strategy shortest = {.name = "shortest",
					      .apart = true,
					      .piece = PIECE,
					      .ahead = AHEAD,
					      .next_locked = shortest_locked};

#define OWN_MAX 8
static const struct weft_strategy *known[3 + OWN_MAX] = {&weft_strategy_fifo, &reorder, &shortest};
static unsigned n_known = 3;

const struct weft_strategy *weft_strategy_find(const char *name)
{
	for (unsigned i = 0; i < n_known; i++)
		if (!strcmp(known[i]->name, name))
			return known[i];
	return NULL;
}

weft_err weft_strategy_register(const struct weft_strategy *s)
{
	if (weft_strategy_find(s->name) || (s->apart && (!s->next_locked || !s->ahead)))
		return WEFT_ERR_ARG;
	if (n_known == weft_countof(known))
		return WEFT_ERR_LIMIT;
	known[n_known++] = s;
	return WEFT_OK;
}
