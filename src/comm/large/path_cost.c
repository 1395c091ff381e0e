/* SPDX-License-Identifier: BSD-3-Clause */
/* path_cost.c - the costs of both paths, kept and compared. */
#include <stdlib.h>
#include "base/mechanism.h"
#include "comm/large/path_cost.h"

/* The first measurements hold pages that are touched for the first time: soon another. */
#define EARLY 3
#define EARLY_TRY 4

#define RUN_MASK 0xffffffu /* the room for its number in a trip */

static struct weft_comm_path_cost_row *row_of(struct weft_comm_path_cost *w, unsigned kind,
					      uint64_t bytes)
{
	int size = 63 - __builtin_clzll(bytes | 1) - WEFT_PATH_FIRST;
	if (size < 0)
		size = 0;
	if (size >= WEFT_PATH_SIZES)
		size = WEFT_PATH_SIZES - 1;
	return &w->rows[kind][size];
}

/* An unknown cost counts as the cheaper one. */
static enum weft_comm_path_cost_way cheaper_way(const struct weft_comm_path_cost_row *row)
{
	if (!row->cost[WEFT_PATH_SENT])
		return WEFT_PATH_SENT;
	return row->cost[WEFT_PATH_SENT] < row->cost[WEFT_PATH_FETCH] ? WEFT_PATH_SENT
								      : WEFT_PATH_FETCH;
}

/* A run took that path, and so long. */
static void note_cost(struct weft_comm_path_cost_row *row, enum weft_comm_path_cost_way way,
		      uint64_t bytes, uint64_t ns)
{
	uint64_t old = row->cost[way];
	uint64_t cost = (uint64_t)((double)ns * 65536 / (double)bytes) + 1;
	if (old && cost > 2 * old + 64) /* it may have been the machine; and 1 must not stay 1 */
		cost = 2 * old + 64;
	if (old)
		cost = cost < old ? (old + 3 * cost) / 4 : (3 * old + cost) / 4;
	row->cost[way] = cost < UINT32_MAX / 2 ? (uint32_t)cost : UINT32_MAX / 2;
}

static void run_end_locked(struct weft_comm_path_cost *w, uint64_t now)
{
	weft_assert_held(weft_comm_spin, &w->lock);
	if (w->row && w->bytes)
		note_cost(w->row, w->way, w->bytes, now - w->since);
	w->begun = 0;
}

static void run_begin_locked(struct weft_comm_path_cost *w, struct weft_comm_path_cost_row *row,
			     uint64_t now)
{
	weft_assert_held(weft_comm_spin, &w->lock);
	bool known = row->cost[WEFT_PATH_SENT] && row->cost[WEFT_PATH_FETCH];
	w->way = cheaper_way(row);
	if (known && !row->until) {
		w->way = w->way == WEFT_PATH_SENT ? WEFT_PATH_FETCH : WEFT_PATH_SENT;
		if (row->tried < EARLY)
			row->tried++;
	}
	w->id = (w->id + 1) & RUN_MASK;
	w->under = 0;
	w->row = row;
	w->since = now;
	w->bytes = 0;
}

/* One more in a run: each on the dearer path puts off the next of those. */
static void count_trip_locked(struct weft_comm_path_cost *w, struct weft_comm_path_cost_row *row)
{
	weft_assert_held(weft_comm_spin, &w->lock);
	if (w->way != cheaper_way(row))
		row->until += row->tried < EARLY ? EARLY_TRY : WEFT_PATH_TRY;
	else if (row->until)
		row->until--;
}

enum weft_comm_path_cost_way weft_comm_path_cost_begin_at(struct weft_comm_path_cost *w,
							  unsigned kind, uint64_t bytes,
							  uint64_t now,
							  struct weft_comm_path_cost_trip *trip)
{
	struct weft_comm_path_cost_row *row = row_of(w, kind, bytes);
	weft_comm_spin_lock(&w->lock);
	if (w->begun >= WEFT_PATH_RUN)
		run_end_locked(w, now);
	if (!w->begun)
		run_begin_locked(w, row, now);
	else if (w->row != row)
		w->row = NULL;
	w->begun++;
	w->under++;
	*trip = (struct weft_comm_path_cost_trip){w->id & RUN_MASK,
						  (uint8_t)(w->row ? w->way : cheaper_way(row))};
	if (w->row)
		count_trip_locked(w, row);
	enum weft_comm_path_cost_way way = trip->way;
	weft_comm_spin_unlock(&w->lock);
	return way;
}

void weft_comm_path_cost_end_at(struct weft_comm_path_cost *w,
				struct weft_comm_path_cost_trip *trip, uint64_t bytes, uint64_t now)
{
	weft_comm_spin_lock(&w->lock);
	if (trip->run == w->id && w->begun) { /* else its run has ended before it */
		w->bytes += bytes;
		if (!bytes)
			w->row = NULL;
		if (!--w->under)
			run_end_locked(w, now);
	}
	weft_comm_spin_unlock(&w->lock);
	trip->way = WEFT_PATH_NONE;
}

static struct weft_comm_path_cost *ways_of(_Atomic(struct weft_comm_path_cost *) *x_path_cost)
{
	/* SEE <- MADE.  Carries: the zeros. */
	struct weft_comm_path_cost *w = atomic_load_explicit(x_path_cost, memory_order_acquire),
				   *none = NULL;
	if (weft_likely(w != NULL))
		return w;
	w = calloc(1, sizeof *w);
	/* MADE -> SEE.  Without it another thread could read what was in the memory before. */
	if (!w || atomic_compare_exchange_strong_explicit(
			  x_path_cost, &none, w, memory_order_acq_rel, memory_order_acquire))
		return w;
	free(w);
	return none;
}

enum weft_comm_path_cost_way
weft_comm_path_cost_begin(_Atomic(struct weft_comm_path_cost *) *x_path_cost, unsigned kind,
			  uint64_t bytes, struct weft_comm_path_cost_trip *trip)
{
	struct weft_comm_path_cost *w = ways_of(x_path_cost);
	return w && weft_mechanism_on(WEFT_MECH_PATH_COST)
		       ? weft_comm_path_cost_begin_at(w, kind, bytes, weft_clock_ns(), trip)
		       : WEFT_PATH_FETCH;
}

void weft_comm_path_cost_end(_Atomic(struct weft_comm_path_cost *) *x_path_cost,
			     struct weft_comm_path_cost_trip *trip, uint64_t bytes)
{
	if (trip->way != WEFT_PATH_NONE)
		weft_comm_path_cost_end_at(ways_of(x_path_cost), trip, bytes, weft_clock_ns());
}

void weft_comm_path_cost_close(_Atomic(struct weft_comm_path_cost *) *x_path_cost)
{
	/* Relaxed: the owner's alone by now. */
	free(atomic_exchange_explicit(x_path_cost, NULL, memory_order_relaxed));
}
