/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kick_or_relay.h - how the submitter of a task spares the system call: a kick is pending already
 * (kick_pending.h), or an idle worker that is awake sees to it (relay.h).
 *
 * Callers   relayed: the submitter of a task that any thread of ours may run.
 *           look_after: the watcher.  begin: the hand, rung by the relay.
 * Promise   relayed() says true only if the hand or the watcher looks at the queues afterwards.
 *           Both count their look before they begin it: a word that the one took belongs to a look
 *           that submitters do not rely on before it is counted.
 */
#ifndef WEFT_TASK_KICK_OR_RELAY_H
#define WEFT_TASK_KICK_OR_RELAY_H

#include "task/wake/relay.h"
#include "task/wake/kick_pending.h"
#include "task/wake/wake_word.h"

enum { WEFT_TELL_RELAY = 0 }; /* beside the kicks, in the note */

/* True: no system call is needed.  quick: has the relay its core? */
static inline bool weft_task_kick_or_relay_relayed(struct weft_task_kick_pending *t,
						   struct weft_relay *r,
						   bool (*quick)(const struct weft_relay *))
{
	uint64_t key;
	if (weft_task_kick_pending_already(t, WEFT_TELL_RELAY, &key))
		return true;
	if (!weft_task_relay_ask(r) || !quick(r))
		return false;
	weft_task_kick_pending_note(t, key);
	return true;
}

/* True: a word lay there; the caller looks now, and its look is counted. */
static inline bool weft_task_kick_or_relay_look_after(struct weft_task_kick_pending *t,
						      struct weft_relay *r, bool take_back)
{
	bool word = weft_task_relay_answer(r, WEFT_WORD_NONE);
	if (take_back)
		word |= weft_task_relay_close(r);
	if (word)
		weft_task_kick_pending_woke(t);
	return word;
}

/* The hand: looks next, and then sleeps while the word is what this returns. */
static inline uint32_t weft_task_kick_or_relay_begin(struct weft_task_kick_pending *t,
						     const _Atomic uint32_t *x_word)
{
	uint32_t seen = weft_task_wake_word_seen(x_word);
	weft_task_kick_pending_woke(t);
	return seen;
}

#endif
