/* SPDX-License-Identifier: BSD-3-Clause */
/* answer.c - memory for packets that belong to no request, some of it ready from the start. */
#include <stdlib.h>
#include "comm/send/answer.h"

struct weft_out *weft_comm_answer_alloc(struct weft_answers *a)
{
	weft_comm_spin_lock(&a->lock);
	struct weft_out *o = a->free;
	if (o) {
		a->free = o->next;
		a->kept--;
	}
	weft_comm_spin_unlock(&a->lock);
	return o || a->no_more ? o : malloc(sizeof *o);
}

void weft_comm_answer_free(struct weft_answers *a, struct weft_out *o)
{
	weft_comm_spin_lock(&a->lock);
	if (a->kept < WEFT_ANSWERS_KEPT) {
		o->next = a->free;
		a->free = o;
		a->kept++;
		o = NULL;
	}
	weft_comm_spin_unlock(&a->lock);
	free(o);
}

weft_err weft_comm_answers_init(struct weft_answers *a)
{
	for (int i = 0; i < WEFT_ANSWERS_KEPT; i++) {
		struct weft_out *o = malloc(sizeof *o);
		if (!o)
			return WEFT_ERR_NOMEM;
		weft_comm_answer_free(a, o);
	}
	return WEFT_OK;
}

void weft_comm_answers_fini(struct weft_answers *a)
{
	/* Ends: each round frees one. */
	for (struct weft_out *o; (o = a->free);) {
		a->free = o->next;
		free(o);
	}
	a->kept = 0;
}

void weft_comm_answers_check(const struct weft_answers *a)
{
	unsigned n = 0;
	weft_assert(!weft_comm_spin_held(&a->lock));
	for (const struct weft_out *o = a->free; o && n <= WEFT_ANSWERS_KEPT; o = o->next)
		n++;
	weft_assert(n == a->kept && n <= WEFT_ANSWERS_KEPT);
}
