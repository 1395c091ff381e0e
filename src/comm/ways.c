/* SPDX-License-Identifier: BSD-3-Clause */
/* ways.c - the costs of ways.h, kept and compared. */
#include <stdlib.h>
#include "comm/ways.h"

static struct weft_ways_row *row_of(struct weft_ways *w, unsigned kind, uint64_t bytes)
{
	int size = 63 - __builtin_clzll(bytes | 1) - WEFT_WAYS_FIRST;
	if (size < 0)
		size = 0;
	if (size >= WEFT_WAYS_SIZES)
		size = WEFT_WAYS_SIZES - 1;
	return &w->row[kind][size];
}

enum weft_ways_way weft_ways_choose(struct weft_ways_row *row)
{
	/* Relaxed, all: learned, any mixture will do. */
	uint32_t turn = atomic_load_explicit(&row->x_turn, memory_order_relaxed) + 1;
	uint32_t fetch = atomic_load_explicit(&row->x_cost[WEFT_WAYS_FETCH], memory_order_relaxed);
	uint32_t sent = atomic_load_explicit(&row->x_cost[WEFT_WAYS_SENT], memory_order_relaxed);
	atomic_store_explicit(&row->x_turn, turn, memory_order_relaxed);
	if (!sent)
		return WEFT_WAYS_SENT;
	if (!fetch)
		return WEFT_WAYS_FETCH;
	/* The first measurements hold pages touched for the first time: soon another. */
	bool dearer = turn % WEFT_WAYS_TRY == 0 || turn == 4 || turn == 8 || turn == 16;
	return (sent < fetch) != dearer ? WEFT_WAYS_SENT : WEFT_WAYS_FETCH;
}

void weft_ways_took(struct weft_ways_row *row, enum weft_ways_way way, uint64_t bytes, uint64_t ns)
{
	_Atomic uint32_t *x_cost = &row->x_cost[way];
	/* Relaxed, both: as in choose. */
	uint64_t old = atomic_load_explicit(x_cost, memory_order_relaxed);
	uint64_t cost = (uint64_t)((double)ns * 65536 / (double)(bytes | 1)) + 1;
	if (old && cost > 2 * old + 64) /* it may have been the machine; and 1 must not stay 1 */
		cost = 2 * old + 64;
	if (old)
		cost = cost < old ? (old + 3 * cost) / 4 : (3 * old + cost) / 4;
	atomic_store_explicit(x_cost, cost < UINT32_MAX / 2 ? (uint32_t)cost : UINT32_MAX / 2,
			      memory_order_relaxed);
}

static struct weft_ways *ways_of(_Atomic(struct weft_ways *) *x_ways)
{
	/* SEE <- MADE.  Carries: the zeros. */
	struct weft_ways *w = atomic_load_explicit(x_ways, memory_order_acquire), *none = NULL;
	if (weft_likely(w != NULL))
		return w;
	w = calloc(1, sizeof *w);
	/* MADE -> SEE.  Without it another thread could read what was in the memory before. */
	if (!w || atomic_compare_exchange_strong_explicit(x_ways, &none, w, memory_order_acq_rel,
							  memory_order_acquire))
		return w;
	free(w);
	return none;
}

enum weft_ways_way weft_ways_begin(_Atomic(struct weft_ways *) *x_ways, enum weft_ways_kind kind,
				   uint64_t bytes, struct weft_ways_trip *trip)
{
	struct weft_ways *w = ways_of(x_ways);
	if (!w)
		return WEFT_WAYS_FETCH;
	enum weft_ways_way way = weft_ways_choose(row_of(w, kind, bytes));
	*trip = (struct weft_ways_trip){
		.since = weft_clock_ns(), .kind = (uint8_t)kind, .way = (uint8_t)way};
	return way;
}

void weft_ways_end(_Atomic(struct weft_ways *) *x_ways, struct weft_ways_trip *trip, uint64_t bytes)
{
	if (trip->way == WEFT_WAYS_NONE)
		return;
	weft_ways_took(row_of(ways_of(x_ways), trip->kind, bytes), trip->way, bytes,
		       weft_clock_ns() - trip->since);
	trip->way = WEFT_WAYS_NONE;
}

void weft_ways_close(_Atomic(struct weft_ways *) *x_ways)
{
	/* Relaxed: the owner's alone by now. */
	free(atomic_exchange_explicit(x_ways, NULL, memory_order_relaxed));
}
