/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rma_oracle.c - what one-sided accesses must come to: a reference of every member's memory.
 *
 *   area     what a flush has ended lies there, byte by byte; a get that begins later gets it
 *   tickets  no number twice, none left out; one that is asked for after another is known is higher
 *   swaps    the word is the number of swaps that found what they compared with
 *   sums     each word of an accumulate is the sum of all
 *   locked   no update under the lock is lost; no two hold it that exclude each other
 *   cells    behind a notification lies what was put before it
 *
 * With a rank that died, a word lies between what is known to have been done and what was tried.
 */
#include <stdlib.h>
#include "rma.h"

void rma_fill_large(char *p, uint32_t version)
{
	for (size_t i = 0; i < RMA_LARGE; i++)
		p[i] = (char)(version * 37 + i + (i >> 8));
	if (!version)
		memset(p, 0, RMA_LARGE);
}

struct rma_access *rma_access_new(struct rma_thread *t, enum rma_kind kind, int to, size_t bytes)
{
	struct rma_access *a = calloc(1, sizeof *a);
	CHECK(a);
	a->kind = kind;
	a->to = to;
	a->bytes = bytes;
	a->settled = t->area[to].settled;
	a->data = malloc(bytes + 1);
	CHECK(a->data);
	memset(a->data, 'x', bytes);
	a->next = t->open;
	t->open = a;
	return a;
}

void rma_area_put(struct rma_thread *t, int to, unsigned at, const char *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		t->area[to].byte[at + i] = (unsigned char)data[i];
		t->area[to].stamp[at + i] = t->stamp;
	}
}

/* ---- what has come -------------------------------------------------------------------------- */

static void check_get(const struct rma_thread *t, const struct rma_access *a)
{
	const struct rma_area *area = &t->area[a->to];
	/* A byte that was put and not flushed before the get, or was put since, may be either. */
	for (size_t i = 0; i < a->bytes; i++)
		if (area->stamp[a->at + i] <= a->settled)
			CHECK_EQ((unsigned char)a->data[i], area->byte[a->at + i]);
}

static void check_get_large(const struct rma_thread *t, const struct rma_access *a)
{
	const struct rma_area *area = &t->area[a->to];
	if (area->large_stamp > a->settled)
		return;
	char *want = malloc(RMA_LARGE);
	CHECK(want);
	rma_fill_large(want, a->large);
	CHECK(!memcmp(want, a->data, RMA_LARGE));
	free(want);
}

static void check_ticket(const struct rma_access *a)
{
	struct rma_target *p = &rma.target[a->to];
	uint64_t got;
	memcpy(&got, a->data, sizeof got);
	CHECK(got < p->tickets && got < sizeof p->taken);
	CHECK(!p->taken[got]);
	CHECK((int64_t)got > a->above);
	p->taken[got] = true;
	p->tickets_known++;
	if ((int64_t)got > p->highest)
		p->highest = (int64_t)got;
}

static void check_swap(const struct rma_access *a)
{
	struct rma_target *p = &rma.target[a->to];
	uint64_t got;
	memcpy(&got, a->data, sizeof got);
	CHECK(got < p->swaps + 1);
	p->swaps_known += got == a->compare;
}

void rma_access_over(struct rma_thread *t, struct rma_access *a)
{
	if (a->kind == RMA_GET)
		check_get(t, a);
	else if (a->kind == RMA_GET_LARGE)
		check_get_large(t, a);
	else if (a->kind == RMA_TICKET)
		check_ticket(a);
	else if (a->kind == RMA_SWAP)
		check_swap(a);
	else if (a->kind == RMA_ADD)
		rma.target[a->to].sum_known += a->value;
	struct rma_access **at = &t->open;
	while (*at != a) /* ends: it is in the list */
		at = &(*at)->next;
	*at = a->next;
	memset(a->data, 0x5a, a->bytes); /* it is not read any more */
	free(a->data);
	free(a);
}

void rma_flushed(struct rma_thread *t, int to, bool gone)
{
	struct rma_access *next;
	for (struct rma_access *a = t->open; a; a = next) {
		next = a->next;
		if (a->to != to)
			continue;
		if (gone)
			a->kind = RMA_PUT; /* nothing is known of it */
		rma_access_over(t, a);
	}
	if (!gone)
		t->area[to].settled = t->stamp;
}

void rma_thread_drop(struct rma_thread *t)
{
	while (t->open) { /* ends: each turn takes one off */
		t->open->kind = RMA_PUT;
		rma_access_over(t, t->open);
	}
}

void rma_lock_got(int rank, int to, bool exclusive)
{
	struct rma_target *p = &rma.target[to];
	unsigned rest = 0;
	for (int r = 0; r < sim.plan.ranks; r++)
		if (r != to && rma_gone(r, to))
			rest |= 1u << r; /* recovered, or about to be */
	CHECK(p->holder < 0 || rest >> p->holder & 1);
	CHECK(!exclusive || !(p->holders & ~rest));
	if (exclusive)
		p->holder = rank;
	else
		p->holders |= 1u << rank;
}

void rma_lock_given(int rank, int to, bool exclusive)
{
	struct rma_target *p = &rma.target[to];
	if (!exclusive)
		p->holders &= ~(1u << rank);
	else if (p->holder == rank)
		p->holder = -1;
}

/* ---- the end -------------------------------------------------------------------------------- */

/* value: known <= value <= tried; whole: all that was tried is known. */
static void check_word(uint64_t value, uint64_t known, uint64_t tried, bool whole)
{
	CHECK(value >= known && value <= tried);
	if (whole)
		CHECK_EQ(value, tried);
}

static void check_areas(int to)
{
	char *want = malloc(RMA_LARGE);
	CHECK(want);
	for (int r = 0; r < sim.plan.ranks; r++) {
		if (sim.rank[r].dead || rma_gone(r, to) || rma.lost[r][to])
			continue;
		for (int n = 0; n < rma.threads; n++) {
			struct rma_thread *t = &rma.thread[r][n];
			const char *area = rma.memory[to] + rma_area_at(r, n);
			CHECK(!t->open);
			CHECK(!memcmp(area, t->area[to].byte, RMA_SMALL));
			rma_fill_large(want, t->area[to].large);
			if (!n)
				CHECK(!memcmp(area + RMA_SMALL, want, RMA_LARGE));
		}
		CHECK_EQ(*rma_word(to, RMA_CELL + (unsigned)r), rma.cells[r][to]);
	}
	free(want);
}

static void check_words(int to)
{
	struct rma_target *p = &rma.target[to];
	bool whole = true;
	for (int r = 0; r < sim.plan.ranks; r++)
		whole = whole && !(r != to && sim_broken(r, to));
	check_word(*rma_word(to, RMA_TICKETS), p->tickets_known, p->tickets, whole);
	check_word(*rma_word(to, RMA_SWAPS), p->swaps_known, p->swaps, false);
	if (whole)
		CHECK_EQ(*rma_word(to, RMA_SWAPS), p->swaps_known);
	check_word(*rma_word(to, RMA_LOCKED), p->locked_known, p->locked, whole);
	for (unsigned i = 0; i < RMA_SUMS; i++)
		check_word(*rma_word(to, RMA_SUM + i), p->sum_known, p->sum, whole);
}

/* Relaxed, all: one thread. */
static void check_window(int rank)
{
	struct weft_rma_win *win = rma.win[rank];
	CHECK(!win->locks && !win->waiters && !win->coming);
	CHECK_EQ(atomic_load_explicit(&win->x_waiters, memory_order_relaxed), 0);
	CHECK_EQ(atomic_load_explicit(&win->x_unsent, memory_order_relaxed), 0);
	const struct weft_rma_slot *mine = win->target[rank].slot;
	bool whole = true;
	for (int r = 0; r < sim.plan.ranks; r++) {
		struct weft_rma_target *t = &win->target[r];
		CHECK_EQ(atomic_load_explicit(&t->x_pending, memory_order_relaxed), 0);
		whole = whole && !(r != rank && rma_gone(r, rank));
		if (r == rank || sim_broken(r, rank))
			continue;
		CHECK(!t->early && !t->busy && !t->coming && !t->n_flushes && !t->far_lock);
		/* Each message whose order counts has been served. */
		CHECK_EQ(t->expected, atomic_load_explicit(&rma.win[r]->target[rank].x_seq,
							   memory_order_relaxed));
	}
	CHECK_EQ(atomic_load_explicit(&mine->x_lock, memory_order_relaxed), 0);
	for (int i = 0; i < win->places; i++)
		CHECK(!atomic_load_explicit(&win->target[rank].x_shared[i], memory_order_relaxed));
	(void)whole;
}

void rma_check_all(void)
{
	for (int r = 0; r < sim.plan.ranks; r++) {
		if (sim.rank[r].dead)
			continue;
		check_areas(r);
		check_words(r);
		check_window(r);
	}
}
