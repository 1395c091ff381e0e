/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * answer.h - memory for packets that belong to no request.
 *
 * Callers   any thread.  init, fini: when nothing else can be running.
 * Full      alloc: NULL.
 */
#ifndef WEFT_COMM_ANSWER_H
#define WEFT_COMM_ANSWER_H

#include "comm/lock.h"
#include "comm/send/out.h"

/* Answers that belong to no request and could not go at once; some are kept ready, so that a gate
 * that is full needs no memory for the next few. */
#define WEFT_ANSWERS_KEPT 64

struct weft_answers {
	alignas(WEFT_CACHELINE) struct weft_spin lock;
	struct weft_out *free; /* L */
	unsigned kept;         /* L */
	bool no_more;          /* I: malloc has nothing; for tests */
};

weft_err weft_comm_answers_init(struct weft_answers *a) weft_must_use;
void weft_comm_answers_fini(struct weft_answers *a);
/* Asserts what they promise, while no thread uses them. */
void weft_comm_answers_check(const struct weft_answers *a);
struct weft_out *weft_comm_answer_alloc(struct weft_answers *a);
void weft_comm_answer_free(struct weft_answers *a, struct weft_out *o);

#endif
