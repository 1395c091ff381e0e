/* SPDX-License-Identifier: BSD-3-Clause */
/* tell.c - what the members of a team tell each other: an allgather by messages, or in shared memory by threads that wait. */
#include <string.h>

#include "base/assert.h"
#include "file/team.h"

/* ---- by messages -------------------------------------------------------------------------- */

static void step_begin(struct weft_file_all *a);

static void step_part_over(struct weft_file_all *a, weft_err err)
{
	struct weft_file_talk *t = &a->talk;
	(void)err; /* what has not come from a member says so */
	/* Both halves of a step, on any threads: the last one sees what the other received. */
	if (atomic_fetch_sub_explicit(&t->x_left, 1, memory_order_acq_rel) != 1)
		return;
	t->dist *= 2;
	step_begin(a);
}

static void step_over(struct weft_req *req, void *arg)
{
	step_part_over(arg, req->status.err);
}

/* Items travel round the members, twice as many each time. */
static void step_begin(struct weft_file_all *a)
{
	struct weft_file_talk *t = &a->talk;
	const struct weft_file_team *m = a->team;
	int n = m->size, d = t->dist;
	if (d >= n) {
		t->then(a);
		return;
	}
	size_t items = (size_t)(d < n - d ? d : n - d);
	int to = weft_file_team_process(m, (m->rank - d + n) % n);
	int from = weft_file_team_process(m, (m->rank + d) % n);
	struct weft_buf in = weft_data_buf_flat(t->all + (size_t)d * t->item, items * t->item);
	struct weft_buf out = weft_data_buf_flat(t->all, items * t->item);
	/* Relaxed: the requests order. */
	atomic_store_explicit(&t->x_left, 2, memory_order_relaxed);
	weft_comm_req_init(&t->recv, step_over, a);
	weft_comm_req_init(&t->send, step_over, a);
	weft_err err = weft_file_all_irecv(a, &t->recv, from, t->tag, &in);
	if (err)
		step_part_over(a, err);
	err = weft_comm_core_isend(&t->send, m->ctx, to, t->tag, &out, WEFT_SEND_STANDARD);
	if (err)
		step_part_over(a, err);
}

/*
 * Few members tell each other directly: each sends to those that it receives from, and so learns that one is
 * gone even where no connection has been made between the two.
 */
#define FEW 16

static void few_part_over(struct weft_file_all *a, weft_err err)
{
	struct weft_file_talk *t = &a->talk;
	(void)err; /* what has not come from a member says so */
	/* The last part sees what the others received. */
	if (atomic_fetch_sub_explicit(&t->x_left, 1, memory_order_acq_rel) != 1)
		return;
	t->then(a);
}

static void few_over(struct weft_req *req, void *arg)
{
	few_part_over(arg, req->status.err);
}

static void few_begin(struct weft_file_all *a)
{
	struct weft_file_talk *t = &a->talk;
	const struct weft_file_team *m = a->team;
	int n = m->size;
	struct weft_req *reqs = m->reqs;
	/* Relaxed: the requests order. */
	atomic_store_explicit(&t->x_left, 2 * (n - 1) + 1, memory_order_relaxed);
	for (int i = 1; i < n; i++) {
		int peer = weft_file_team_process(m, (m->rank + i) % n);
		struct weft_buf in = weft_data_buf_flat(t->all + (size_t)i * t->item, t->item);
		struct weft_buf out = weft_data_buf_flat(t->all, t->item);
		weft_comm_req_init(&reqs[2 * i], few_over, a);
		weft_comm_req_init(&reqs[2 * i + 1], few_over, a);
		weft_err err = weft_file_all_irecv(a, &reqs[2 * i], peer, t->tag, &in);
		if (err)
			few_part_over(a, err);
		err = weft_comm_core_isend(&reqs[2 * i + 1], m->ctx, peer, t->tag, &out,
					   WEFT_SEND_STANDARD);
		if (err)
			few_part_over(a, err);
	}
	few_part_over(a, WEFT_OK);
}

/* The items of all members come to `all`, which begins with this member's; then is called. */
void weft_file_tell(struct weft_file_all *a, int tag, void *all, size_t item,
		    void (*then)(struct weft_file_all *))
{
	a->talk.all = all;
	a->talk.item = item;
	a->talk.tag = a->tag + tag;
	a->talk.dist = 1;
	a->talk.then = then;
	if (a->team->size <= FEW)
		few_begin(a);
	else
		step_begin(a);
}

/* ---- by threads that wait ----------------------------------------------------------------- */

bool weft_file_tell_waiting(struct weft_file_all *a)
{
	struct weft_file_team *t = a->team;
	struct weft_coll_group g = t->group;
	g.tag = a->tag;
	const struct weft_type *bytes = &weft_data_type_elem[WEFT_B_BYTE];
	struct weft_coll_args args = {.kind = WEFT_COLL_FILE_WAITS,
				      .sbuf = t->info_in,
				      .rbuf = t->info,
				      .scount = sizeof *t->info,
				      .rcount = sizeof *t->info,
				      .stype = bytes,
				      .rtype = bytes};
	if (weft_coll_blocking(&g, &args))
		return false;
	for (int r = 0; r < t->size; r++)
		t->info_in[weft_file_team_place(t, r)] = t->info[r];
	return true;
}
