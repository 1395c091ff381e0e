/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relay.h - the lease by which submitters leave a word instead of making a system call.
 *
 * An idle worker that is awake (the relay) sees the word in a tenth of a microsecond and wakes, on
 * its own core, a thread that does the work.  It may lose that core at any moment and for long, so
 * it holds no more than a lease, which the watcher grants and takes back: as long as one is out the
 * watcher sleeps briefly, and looks whether a word lies there.
 *
 * Callers   offer: the watcher.  accept, answered: the idle worker.  answer, close: both.
 *           ask: a thread that has published work.
 * Order     what was published before ask() is visible to the thread that answer() or close() tells
 *           to look.
 * Progress  a few atomic operations each.  None waits.
 * Promise   ask() says true only if a thread is told to look afterwards, by answer or close: by
 *           the relay at once, or, if it does not get a core, by the watcher when it wakes.
 *
 *           offer accept ask answer close    .  together, no help needed
 *   offer     W      .    .     .    W       W  both are the watcher's
 *   accept           .    .     .    .       a relay whose lease was closed behind its back may
 *   ask                   .     .    .       close another's: its askers make the call
 *   answer                      .    .
 *   close                            .
 */
#ifndef WEFT_RELAY_H
#define WEFT_RELAY_H

#include "base/assert.h"
#include "base/base.h"

enum weft_lease {
	WEFT_LEASE_NONE = 0,
	WEFT_LEASE_OFFERED = 1, /* the watcher sleeps briefly already */
	WEFT_LEASE_HELD = 2,
};

enum weft_relay_word {
	WEFT_WORD_NONE = 0,
	WEFT_WORD_ASKED = 1,
	WEFT_WORD_MARKED = 2, /* the relay is about to wake the hand */
};

struct weft_relay {
	alignas(WEFT_CACHELINE) _Atomic uint32_t x_lease; /* watcher and relay; rarely */
	_Atomic uint64_t
		x_beat_ns; /* the relay, each microsecond or two: a hint, it has its core */
	alignas(WEFT_CACHELINE) _Atomic uint32_t x_word; /* submitters; relay and watcher clear */
};

/* True: it is offered now; do not sleep for long from here on. */
static inline bool weft_task_relay_offer(struct weft_relay *r)
{
	uint32_t none = WEFT_LEASE_NONE;
	/* Relaxed: nothing goes with it; the watcher revokes by what it finds there itself. */
	return atomic_compare_exchange_strong_explicit(&r->x_lease, &none, WEFT_LEASE_OFFERED,
						       memory_order_relaxed, memory_order_relaxed);
}

/* True: the caller is the relay now. */
static inline bool weft_task_relay_accept(struct weft_relay *r)
{
	uint32_t offered = WEFT_LEASE_OFFERED;
	/* Relaxed: a submitter that asks before we look leaves a word, and that is found. */
	return atomic_compare_exchange_strong_explicit(&r->x_lease, &offered, WEFT_LEASE_HELD,
						       memory_order_relaxed, memory_order_relaxed);
}

/* True: a thread will look. */
static inline bool weft_task_relay_ask(struct weft_relay *r)
{
	/* Relaxed: most often there is none. */
	if (atomic_load_explicit(&r->x_lease, memory_order_relaxed) != WEFT_LEASE_HELD)
		return false;
	/* ASK -> ANSWER, CLOSE.  Release: what the caller published goes with the word.  An
	 * exchange even where one lies: another's would not carry ours.  Without it the task could
	 * be looked for before it can be seen. ASK <- CLOSE.  Acquire: if the word was looked at
	 * for the last time before this, the end of the lease is visible.  Without it we could rely
	 * on one that is over. */
	atomic_exchange_explicit(&r->x_word, WEFT_WORD_ASKED, memory_order_acq_rel);
	/* Relaxed: the exchange has ordered it. */
	return atomic_load_explicit(&r->x_lease, memory_order_relaxed) == WEFT_LEASE_HELD;
}

/*
 * True: a word lies there; see that a thread looks, and then say so.  The watcher clears it, the
 * relay marks it: it may lose its core before it has told the hand, and then the watcher must look.
 */
static inline bool weft_task_relay_answer(struct weft_relay *r, uint32_t mark)
{
	uint32_t word =
		atomic_load_explicit(&r->x_word, memory_order_relaxed); /* again and again */
	if (weft_likely(word == WEFT_WORD_NONE || word == mark))
		return false;
	weft_assert(mark == WEFT_WORD_NONE || mark == WEFT_WORD_MARKED);
	/* ANSWER <- ASK.  Acquire: what was published is visible. */
	return atomic_exchange_explicit(&r->x_word, mark, memory_order_acquire) != WEFT_WORD_NONE;
}

/* The relay: the hand has been told, the system call is over.  A word that came since stays. */
static inline void weft_task_relay_answered(struct weft_relay *r)
{
	uint32_t mark = WEFT_WORD_MARKED;
	/* Relaxed: carries nothing, the hand was told all. */
	atomic_compare_exchange_strong_explicit(&r->x_word, &mark, WEFT_WORD_NONE,
						memory_order_relaxed, memory_order_relaxed);
}

/* The end of a lease, either side; true: a word lay there, see that a thread looks. */
static inline bool weft_task_relay_close(struct weft_relay *r)
{
	/* Relaxed: the exchange takes it along. */
	atomic_store_explicit(&r->x_lease, WEFT_LEASE_NONE, memory_order_relaxed);
	/* CLOSE -> ASK.  Release: a submitter that leaves a word after this sees the lease's end.
	 * CLOSE <- ASK.  Acquire: what came with the word is visible.  Without the first a task
	 * could lie there that no thread has been told of, without the second be overlooked. */
	return atomic_exchange_explicit(&r->x_word, WEFT_WORD_NONE, memory_order_acq_rel) !=
	       WEFT_WORD_NONE;
}

#endif
