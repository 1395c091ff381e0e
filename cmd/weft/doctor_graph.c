/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doctor_graph.c - a deadlock: the largest set of ranks each of which waits, and for ranks of the set alone.
 *
 * A thread that waits for one rank needs that one; for any rank, or for any of several requests: one of them; in a
 * collective: every member, and those that are in the same one are no hindrance; for a lock of a window: its holder,
 * the same in two looks.  A rank is in the set if all its waits are hopeless.
 */
#include <string.h>
#include "doctor.h"

struct weft_doctor_rank *weft_doctor_find(struct weft_doctor_job *j, int rank)
{
	for (int i = 0; i < j->ranks; i++)
		if (j->rank[i].rank == rank)
			return &j->rank[i];
	return NULL;
}

void weft_doctor_compare(const struct weft_doctor_job *before, struct weft_doctor_job *now)
{
	for (int i = 0; i < now->ranks; i++) {
		struct weft_doctor_rank *r = &now->rank[i];
		const struct weft_doctor_rank *was =
			weft_doctor_find((struct weft_doctor_job *)(uintptr_t)before, r->rank);
		r->still = was && was->pid == r->pid && was->ticks == r->ticks && r->waits &&
			   was->waits == r->waits;
		for (int k = 0; r->still && k < r->waits; k++)
			r->still = was->wait[k].note_at == r->wait[k].note_at &&
				   was->wait[k].note.since_ns == r->wait[k].note.since_ns &&
				   r->wait[k].note.since_ns &&
				   was->wait[k].holder == r->wait[k].holder;
	}
}

/* Has rank r a thread in the same collective as w? */
static bool in_same(const struct weft_doctor_rank *r, const struct weft_doctor_wait *w)
{
	for (int i = 0; i < r->waits; i++) {
		const struct weft_doctor_wait *o = &r->wait[i];
		if (o->note.form == WEFT_WAIT_ALL && o->note.id == w->note.id &&
		    o->note.collected == w->note.collected && strcmp(o->call, w->call) == 0)
			return true;
	}
	return false;
}

/* Has r a thread in a later collective of that communicator?  Then it has done its part of this one. */
static bool has_passed(const struct weft_doctor_rank *r, const struct weft_doctor_wait *w)
{
	for (int i = 0; i < r->waits; i++) {
		const struct weft_wait_note *o = &r->wait[i].note;
		if (o->form == WEFT_WAIT_ALL && o->id == w->note.id &&
		    (int32_t)(o->collected - w->note.collected) > 0)
			return true;
	}
	return false;
}

static bool stuck(struct weft_doctor_job *j, int rank)
{
	const struct weft_doctor_rank *r = weft_doctor_find(j, rank);
	return r && r->stuck;
}

/* A stuck rank that wait w of rank r needs; -1: there is hope. */
static int hopeless(struct weft_doctor_job *j, const struct weft_doctor_rank *r,
		    const struct weft_doctor_wait *w)
{
	int found = -1;
	if (w->note.form == WEFT_WAIT_OTHER || w->note.hope)
		return -1;
	if (w->note.process >= 0)
		return stuck(j, w->note.process) ? w->note.process : -1;
	for (int i = 0; i < w->note.size; i++) {
		int m = weft_doctor_member(w, i);
		const struct weft_doctor_rank *o = weft_doctor_find(j, m);
		if (m == r->rank && w->note.form != WEFT_WAIT_ALL)
			continue;
		if (w->note.form == WEFT_WAIT_ALL) {
			if (m != r->rank && o && o->stuck && !in_same(o, w) && !has_passed(o, w))
				return m;
		} else if (!o || !o->stuck) {
			return -1; /* a message of this one would do */
		} else {
			found = m;
		}
	}
	return found;
}

int weft_doctor_waits_for(struct weft_doctor_job *j, const struct weft_doctor_rank *r,
			  const struct weft_doctor_wait **w_p)
{
	for (int k = 0; k < r->waits; k++) {
		int to = hopeless(j, r, &r->wait[k]);
		if (to >= 0) {
			*w_p = &r->wait[k];
			return to;
		}
	}
	return -1;
}

int weft_doctor_deadlock(struct weft_doctor_job *j)
{
	int n = 0;
	bool changed = true;
	for (int i = 0; i < j->ranks; i++)
		j->rank[i].stuck = j->rank[i].still;
	/* Ends: each round but the last takes a rank out. */
	while (changed) {
		changed = false;
		for (int i = 0; i < j->ranks; i++) {
			struct weft_doctor_rank *r = &j->rank[i];
			bool all = r->stuck;
			for (int k = 0; all && k < r->waits; k++)
				all = hopeless(j, r, &r->wait[k]) >= 0;
			changed |= r->stuck != all;
			r->stuck = all;
		}
	}
	for (int i = 0; i < j->ranks; i++)
		n += j->rank[i].stuck;
	return n;
}
