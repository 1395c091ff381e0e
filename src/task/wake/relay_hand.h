/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relay_hand.h - the relay's lease (relay.h) in use: submitter, idle worker, watcher, and the hand.
 */
#ifndef WEFT_TASK_RELAY_HAND_H
#define WEFT_TASK_RELAY_HAND_H

#include "task/engine_int.h"

/* Tasks are told to an idle worker that is awake, which wakes the hand on its core. */
bool weft_task_relay_tell(
	struct weft_engine *e); /* the submitter of a task: true: a thread looks, do not kick */
/* The idle worker's: true: it is the relay, until the end. */
bool weft_task_relay_begin(uint64_t now);
bool weft_task_relay_beat(uint64_t now); /* true: it still is */
bool weft_task_relay_serve(void);        /* true: there was a word, and the hand was told */
void weft_task_relay_end(void);
/* The watcher's, and at the end. */
void weft_task_relay_grant(struct weft_engine *e); /* an idle worker is called: it may relay */
uint64_t weft_task_relay_nap_ns(void); /* how long the watcher may sleep because of that */
bool weft_task_relay_check(struct weft_engine *e);     /* true: a word lay there, look */
bool weft_task_relay_take_back(struct weft_engine *e); /* the same, and there is no lease now */
void weft_task_relay_stop(void);

#endif
