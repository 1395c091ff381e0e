/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blocking.h - which way a small blocking collective takes, without a schedule.
 *
 * choose() is a pure function of a case and of what the group has, so that all members choose the
 * same; test/coll/test_choose.c has it as a table.
 */
#ifndef WEFT_COLL_BLOCKING_H
#define WEFT_COLL_BLOCKING_H

#include "coll/coll.h"

/* What a call is about, as far as it is the same on all members. */
struct weft_coll_case {
	const struct weft_coll_group *g; /* size, crowded, apart */
	enum weft_coll_kind kind;
	size_t count;  /* elements that a member gives to, or gets from, each other member */
	size_t bytes;  /* their data */
	bool combines; /* by a predefined operation, on data without holes */
	bool in_place; /* alltoall: the same on all members */
};

typedef weft_err weft_coll_run_fn(const struct weft_coll_group *g, const struct weft_coll_args *a);

/* A row of the table: the first that fits, and that needs no more than the group has, is run. */
struct weft_coll_way {
	const char *name;
	unsigned needs; /* WEFT_COLL_SHM_...; 0: messages only */
	bool (*fits)(const struct weft_coll_case *c);
	weft_coll_run_fn *run;
};

/* have: ways through shared memory, WEFT_COLL_SHM_...  NULL: a schedule. */
const struct weft_coll_way *weft_coll_choose(const struct weft_coll_case *c, unsigned have);

/* ---- steps.c: by messages; the caller walks through the steps itself ---- */
weft_coll_run_fn weft_coll_steps_barrier, weft_coll_steps_barrier_flat, weft_coll_steps_bcast,
	weft_coll_steps_reduce, weft_coll_steps_allreduce;
#define WEFT_COLL_STEPS_BYTES 64 /* that a reduction may have there */

#endif
