/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lease of an idle worker (task/wake/relay.h) in every order: each task is looked at by the relay,
 * by the watcher, or its submitter makes the system call, also when the relay loses its core for
 * ever while it holds the lease, or between taking a word and telling the hand.
 */
#include "model/explore.h"
#include "task/wake/relay.h"

enum { TASKS = 2 };

static struct weft_relay relay;
static _Atomic int x_work[TASKS];
static _Atomic int x_kicks; /* system calls that no thread has woken from */
static int tasks, found;    /* the explorer's: no order of its own */

static void setup(void)
{
	tasks = TASKS;
	memset((void *)&relay, 0, sizeof relay);
	for (int i = 0; i < TASKS; i++)
		atomic_store_explicit(&x_work[i], 0, memory_order_relaxed);
	atomic_store_explicit(&x_kicks, 0, memory_order_relaxed);
	found = 0;
	weft_task_relay_offer(&relay);
}

static void setup_one(void)
{
	setup();
	tasks = 1;
}

static void submit(int i)
{
	/* Weaker than the queue's exchange: the word must carry it. */
	atomic_store_explicit(&x_work[i], 1, memory_order_relaxed);
	if (!weft_task_relay_ask(&relay))
		atomic_fetch_add_explicit(&x_kicks, 1, memory_order_acq_rel);
}

static void first(void)
{
	submit(0);
}

static void second(void)
{
	submit(1);
}

/* Trusts a word that lies there already. */
static void spares_the_exchange(void)
{
	atomic_store_explicit(&x_work[1], 1, memory_order_relaxed);
	if (!atomic_load_explicit(&relay.x_word, memory_order_acquire) &&
	    !weft_task_relay_ask(&relay))
		atomic_fetch_add_explicit(&x_kicks, 1, memory_order_acq_rel);
}

static void look(void)
{
	for (int i = 0; i < TASKS; i++)
		/* The load may miss what is not carried; the exchange is for one of two. */
		if (atomic_load_explicit(&x_work[i], memory_order_relaxed) &&
		    atomic_exchange_explicit(&x_work[i], 0, memory_order_relaxed))
			found++;
}

static void relays(void)
{
	if (!weft_task_relay_accept(&relay))
		return;
	for (int i = 0; i < 2; i++)
		if (weft_task_relay_answer(&relay, WEFT_WORD_MARKED)) {
			look(); /* the thread that it wakes */
			weft_task_relay_answered(&relay);
		}
	if (weft_task_relay_close(&relay))
		look();
}

static void is_gone_holding(void)
{
	(void)weft_task_relay_accept(&relay);
}

static void is_gone_telling(void)
{
	if (weft_task_relay_accept(&relay))
		(void)weft_task_relay_answer(&relay, WEFT_WORD_MARKED);
}

/* Takes the word away before the hand is told. */
static void is_gone_unmarked(void)
{
	if (weft_task_relay_accept(&relay))
		(void)weft_task_relay_answer(&relay, WEFT_WORD_NONE);
}

static bool nothing_new(void *arg)
{
	int kicks;
	(void)arg;
	memcpy(&kicks, (void *)&x_kicks, sizeof kicks); /* as the kernel sees it */
	return kicks == 0 && found < tasks;
}

static void sleeps_long(void)
{
	while (found < tasks) { /* ends: both are found; asleep for ever is the failure */
		model_block(nothing_new, NULL);
		atomic_exchange_explicit(&x_kicks, 0, memory_order_acq_rel);
		look();
	}
}

static void watches(void)
{
	if (weft_task_relay_answer(&relay, WEFT_WORD_NONE)) /* a short sleep is over */
		look();
	if (weft_task_relay_close(&relay))
		look();
	sleeps_long();
}

static void looks_at_the_word_first(void)
{
	bool word = atomic_exchange_explicit(&relay.x_word, 0, memory_order_acq_rel) != 0;
	atomic_exchange_explicit(&relay.x_lease, WEFT_LEASE_NONE, memory_order_acq_rel);
	if (word)
		look();
	sleeps_long();
}

int main(void)
{
	static const struct model models[] = {
		{"one submits",
		 setup_one,
		 {watches, relays, first},
		 NULL,
		 4,
		 .must = {"weft_task_relay_ask x", "weft_task_relay_answer x"}},
		{"two submit", setup, {watches, relays, first, second}, NULL, 1},
		{"the relay is gone",
		 setup_one,
		 {watches, is_gone_holding, first},
		 NULL,
		 4,
		 .must = {"weft_task_relay_ask x", "weft_task_relay_close x"}},
		{"the relay is gone with the word",
		 setup,
		 {watches, is_gone_telling, first, second},
		 NULL,
		 1},
		{"the relay has taken the word",
		 setup_one,
		 {watches, is_gone_unmarked, first},
		 NULL,
		 4,
		 .broken = true},
		{"a word that lies there",
		 setup,
		 {sleeps_long, relays, first, spares_the_exchange},
		 NULL,
		 3,
		 .broken = true},
		{"the word before the lease",
		 setup_one,
		 {looks_at_the_word_first, is_gone_holding, first},
		 NULL,
		 4,
		 .broken = true},
	};
	return explore_all(models, weft_countof(models));
}
