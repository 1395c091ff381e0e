/* SPDX-License-Identifier: BSD-3-Clause */
/* strategy.c - the table of strategies. */
#include <stdio.h>
#include <string.h>
#include "comm/request.h"
#include "comm/send/pack.h"
#include "comm/send/strategy.h"

/* A piece is 2 ms of a link of 1 Gbit/s, and what hides the costs of a packet on one of 100. */
#define PIECE ((size_t)256 * 1024)
#define AHEAD 4

/* A packet over a network that takes less is over before its neighbours are gathered. */
#define SLOW_US 2.0

struct weft_out *weft_comm_strategy_take_locked(struct weft_gate *g, struct weft_out **at)
{
	weft_assert_held(weft_comm_gate, g);
	struct weft_out *o = *at;
	*at = o->next;
	if (g->data_tail == &o->next)
		g->data_tail = at;
	return o;
}

static struct weft_out *oldest_locked(struct weft_gate *g)
{
	weft_assert_held(weft_comm_gate, g);
	return weft_comm_strategy_take_locked(g, &g->data_head);
}

static uint64_t bytes_left(struct weft_out *o)
{
	struct weft_core_req_send *s = weft_comm_req_send(weft_comm_req_of_send_out(o));
	return s->want - s->off;
}

static struct weft_out *shortest_locked(struct weft_gate *g)
{
	weft_assert_held(weft_comm_gate, g);
	struct weft_out **best = &g->data_head;
	for (struct weft_out **at = &g->data_head; *at; at = &(*at)->next)
		if (bytes_left(*at) < bytes_left(*best))
			best = at;
	return weft_comm_strategy_take_locked(g, best);
}

static struct weft_out *highest_locked(struct weft_gate *g)
{
	weft_assert_held(weft_comm_gate, g);
	struct weft_out **best = &g->data_head;
	for (struct weft_out **at = &g->data_head; *at; at = &(*at)->next)
		if ((*at)->priority > (*best)->priority)
			best = at;
	return weft_comm_strategy_take_locked(g, best);
}

const struct weft_strategy weft_comm_strategy_fifo = {.name = "fifo"};
static const struct weft_strategy aggregate = {
	.name = "aggregate", .pack = WEFT_PACK_MAX, .may_hold = true};
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
static const struct weft_strategy priority = {.name = "priority",
					      .apart = true,
					      .piece = PIECE,
					      .ahead = AHEAD,
					      .next_locked = highest_locked};
static const struct weft_strategy both = {.name = "aggregate and reorder",
					  .pack = WEFT_PACK_MAX,
					  .may_hold = true,
					  .apart = true,
					  .piece = PIECE,
					  .ahead = AHEAD,
					  .next_locked = oldest_locked};

static const struct weft_strategy *choose_for_network(const struct weft_net_card *card)
{
	return card->gathers || card->latency_us < SLOW_US ? &weft_comm_strategy_fifo : &both;
}

static const struct weft_strategy automatic = {.name = "auto", .choose = choose_for_network};

#define OWN_MAX 8
#define BUILT_IN 6
static const struct weft_strategy *known[BUILT_IN + OWN_MAX] = {
	&weft_comm_strategy_fifo, &aggregate, &reorder, &shortest, &priority, &automatic};
static unsigned n_known = BUILT_IN;

const struct weft_strategy *weft_comm_strategy_find(const char *name)
{
	for (unsigned i = 0; i < n_known; i++)
		if (!strcmp(known[i]->name, name))
			return known[i];
	return NULL;
}

void weft_comm_strategy_names(char *buf, size_t size)
{
	size_t at = 0;
	buf[0] = 0;
	for (unsigned i = 0; i < n_known && at < size; i++)
		at += (size_t)snprintf(buf + at, size - at, "%s%s", i ? ", " : "", known[i]->name);
}

weft_err weft_comm_strategy_add(const struct weft_strategy *s)
{
	if (weft_comm_strategy_find(s->name) || (s->apart && (!s->next_locked || !s->ahead)))
		return WEFT_ERR_ARG;
	if (n_known == weft_countof(known))
		return WEFT_ERR_LIMIT;
	known[n_known++] = s;
	return WEFT_OK;
}
