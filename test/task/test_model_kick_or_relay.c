/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Spared kicks and the lease of an idle worker together (task/wake/kick_filter.h) in every order: of tasks that
 * are submitted while a note of an earlier one is there, and while the lease ends, none lies there
 * with no thread awake; also when the relay loses its core while it holds the lease.
 */
#include "model/explore.h"
#include "task/wake/kick_filter.h"

enum { TASKS = 2, KICK = 1 };

static struct weft_kick_filter told;
static struct weft_relay relay;
static _Atomic uint32_t x_word;   /* the hand's */
static _Atomic int x_work[TASKS]; /* a seq_cst exchange, as in the queues */
static _Atomic int x_kicks;       /* system calls that no thread has woken from */
static int found;                 /* the explorer's: no order of its own */

static void setup(void)
{
	memset((void *)&told, 0, sizeof told);
	memset((void *)&relay, 0, sizeof relay);
	for (int i = 0; i < TASKS; i++)
		atomic_store_explicit(&x_work[i], 0, memory_order_relaxed);
	atomic_store_explicit(&x_word, 0, memory_order_relaxed);
	atomic_store_explicit(&x_kicks, 0, memory_order_relaxed);
	found = 0;
	weft_task_kick_filter_woke(&told); /* as at the engine's start */
	weft_task_relay_offer(&relay);
	weft_task_relay_accept(&relay);
}

/* ---- submitters: as tell() --------------------------------------------------------------------
 */

static bool quick(const struct weft_relay *r)
{
	(void)r;
	return true;
}

static bool lost_its_core(const struct weft_relay *r)
{
	(void)r;
	return false;
}

static void submit(int i, bool (*has_core)(const struct weft_relay *))
{
	uint64_t key;
	atomic_exchange_explicit(&x_work[i], 1, memory_order_seq_cst);
	if (weft_task_kick_filter_already(&told, KICK, &key) ||
	    weft_task_kick_filter_relayed(&told, &relay, has_core))
		return;
	atomic_fetch_add_explicit(&x_kicks, 1, memory_order_acq_rel); /* the system call */
	weft_task_kick_filter_note(&told, key);
}

static void first(void)
{
	submit(0, quick);
}

static void second(void)
{
	submit(1, quick);
}

static void both(void)
{
	submit(0, quick);
	submit(1, quick);
}

static void both_slow(void)
{
	submit(0, lost_its_core);
	submit(1, lost_its_core);
}

/* Notes the count of now, not that of before it asked. */
static void notes_late(void)
{
	uint64_t key;
	atomic_exchange_explicit(&x_work[0], 1, memory_order_seq_cst);
	if (weft_task_relay_ask(&relay)) {
		(void)weft_task_kick_filter_already(&told, WEFT_TELL_RELAY, &key);
		weft_task_kick_filter_note(&told, key);
	} else {
		atomic_fetch_add_explicit(&x_kicks, 1, memory_order_acq_rel);
	}
}

/* ---- looking ----------------------------------------------------------------------------------
 */

static void look(void)
{
	for (int i = 0; i < TASKS; i++)
		if (atomic_load_explicit(&x_work[i], memory_order_seq_cst) &&
		    atomic_exchange_explicit(&x_work[i], 0, memory_order_relaxed))
			found++;
}

/* As weft_task_relay_serve() and weft_task_relay_end(). */
static void relays(void)
{
	for (int i = 0; i < 2; i++)
		if (weft_task_relay_answer(&relay, WEFT_WORD_MARKED)) {
			weft_task_wake_word_ring(&x_word);
			weft_task_relay_answered(&relay);
		}
	if (weft_task_relay_close(&relay))
		weft_task_wake_word_ring(&x_word);
}

static bool not_rung(void *arg)
{
	uint32_t word;
	memcpy(&word, (void *)&x_word, sizeof word); /* as the kernel sees it */
	return word == *(uint32_t *)arg && found < TASKS;
}

static void sleep_while(uint32_t seen)
{
	model_block(not_rung, &seen);
	model_fresh((void *)&x_word, sizeof x_word); /* the system call compared it */
}

static void hand(void)
{
	while (found < TASKS) { /* ends: all are found; asleep for ever is the failure */
		uint32_t seen = weft_task_kick_filter_begin(&told, &x_word);
		look();
		sleep_while(seen);
	}
}

static void hand_looks_first(void)
{
	while (found < TASKS) {
		uint32_t seen = weft_task_wake_word_seen(&x_word);
		look();
		weft_task_kick_filter_woke(&told);
		sleep_while(seen);
	}
}

static bool nothing_new(void *arg)
{
	int kicks;
	(void)arg;
	memcpy(&kicks, (void *)&x_kicks, sizeof kicks);
	return kicks == 0 && found < TASKS;
}

static void sleeps_long(void)
{
	while (found < TASKS) { /* ends: all are found; asleep for ever is the failure */
		model_block(nothing_new, NULL);
		atomic_exchange_explicit(&x_kicks, 0, memory_order_acq_rel);
		weft_task_kick_filter_woke(&told);
		look();
	}
}

/* Short sleeps while a lease is out; takes it back before a long one. */
static void watches(void)
{
	if (weft_task_kick_filter_look_after(&told, &relay, false))
		look();
	if (weft_task_kick_filter_look_after(&told, &relay, true))
		look();
	sleeps_long();
}

/* Looks without counting: a note of before is still one. */
static void watches_uncounted(void)
{
	if (weft_task_relay_close(&relay))
		look();
	sleeps_long();
}

int main(void)
{
	static const struct model models[] = {
		{"two submit, the relay is gone",
		 setup,
		 {first, second, watches},
		 NULL,
		 2,
		 .must = {"weft_task_kick_filter_already l", "weft_task_kick_filter_woke x",
			  "weft_task_relay_close x"}},
		{"one submits twice", setup, {both, watches, relays, hand}, NULL, 1},
		{"the relay has lost its core", setup, {both_slow, watches, hand}, NULL, 2},
		{"hand looks before it counts",
		 setup,
		 {both, relays, hand_looks_first},
		 NULL,
		 4,
		 .broken = true},
		{"watcher does not count",
		 setup,
		 {first, second, watches_uncounted},
		 NULL,
		 4,
		 .broken = true},
		{"notes the wrong look",
		 setup,
		 {notes_late, second, watches},
		 NULL,
		 4,
		 .broken = true},
	};
	return explore_all(models, weft_countof(models));
}
