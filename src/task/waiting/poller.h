/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * poller.h - a thread that polls instead of waiting (a test, a probe), and polls in vain again and
 * again: where cores are short it keeps the core from the thread that it polls for.  So it gives the
 * core up, each time: first by a yield, then, after the time that waits at this place would poll for,
 * by a sleep of WEFT_POLLER_PAUSE_NS at most, that ends with the first arrival.
 *
 * Callers   poll, then, if that says so, pause: any thread, user-level ones included; in a handler
 *           both do nothing.
 * Short     more ranks than cores; strangers took the core lately; threads of this process poll in
 *           turn.  A thread that blocks beside the kernel's always lets others of its kind run.
 * Bound     where cores are free: a count, and every eighth poll in vain a look at the clock.  No
 *           system call: polls between which the thread computes for 10 us are no run.
 * Promise   a pause ends when one of c[0..n) is complete, with the first event that the caller finds,
 *           or after WEFT_POLLER_PAUSE_NS and what a wake-up takes.  What comes is not lost: the sleep
 *           is a wait's (holder.c).
 * Settings  as for waits: WEFT_SPIN_US, WEFT_YIELD_MAX, weft/policy.h.
 * Counted   poll_yields, poll_sleeps.
 */
#ifndef WEFT_TASK_POLLER_H
#define WEFT_TASK_POLLER_H

#include "base/base.h"

#define WEFT_POLLER_PAUSE_NS 50000u /* as long as ten wake-ups; what a computation may lose */
#define WEFT_POLLER_TURN_NS 10000u  /* among strangers: two wake-ups */
#define WEFT_POLLER_RUN 8           /* polls in vain between looks at the clock; a power of two */
#define WEFT_POLLER_MOST 4          /* completions whose end wakes it beside a holder */
#define WEFT_POLLER_GAP_NS 10000u   /* so long from poll to poll: the thread computes */

/* A thread's polls in vain. */
struct weft_poller {
	unsigned vain;     /* since the thread began, or stopped giving way */
	unsigned untaken;  /* yields in a row that no thread took */
	unsigned rests;    /* looks for which it does not give way to threads of this process */
	unsigned rest;     /* the next time so many */
	bool gives_way;    /* in a run, and cores are short */
	bool hot;          /* its last run ended without a sleep */
	bool beside;       /* other threads of this process poll */
	uint64_t looked;   /* cycles, when it last looked at the clock */
	uint64_t begun;    /* cycles, when this run began; 0: with the next poll in vain */
	uint64_t slept_ns; /* in this run */
	const void *site;  /* of its last pause */
};

enum weft_poller_step {
	WEFT_POLLER_ON,    /* polls on */
	WEFT_POLLER_LOOKS, /* in a run: are cores short? */
	WEFT_POLLER_GAP,   /* it computed meanwhile, or had lost its core */
	WEFT_POLLER_GIVES_WAY,
};

/* A poll in vain, at that time; `run` and `gap` are WEFT_POLLER_GAP_NS in cycles, of a run's polls and
 * of one. */
static inline enum weft_poller_step weft_task_poller_vain(struct weft_poller *p, uint64_t now,
							  uint64_t run, uint64_t gap)
{
	bool late = now - p->looked > (p->gives_way ? gap : run);
	p->looked = now;
	if (late) {
		p->gives_way = false;
		p->vain = 0;
		return WEFT_POLLER_GAP;
	}
	return p->gives_way ? WEFT_POLLER_GIVES_WAY : WEFT_POLLER_LOOKS;
}

/* Is the clock to be looked at, after this poll in vain? */
static inline bool weft_task_poller_counts(struct weft_poller *p)
{
	return p->gives_way || (++p->vain & (WEFT_POLLER_RUN - 1)) == 0;
}

/*
 * How long a run keeps the core, or yields, before it sleeps, of what a wait would.  Among strangers
 * a sleeper is let in by its arrival, and a long turn ends with the core taken away.  With more ranks than cores the
 * ranks themselves look like strangers to each other, so that says nothing.
 */
static inline uint64_t weft_task_poller_patience(uint64_t plan_ns, bool plan_yields, bool preempted)
{
	if (!preempted || plan_yields)
		return plan_ns;
	return plan_ns < WEFT_POLLER_TURN_NS ? plan_ns : WEFT_POLLER_TURN_NS;
}

enum weft_poller_way {
	WEFT_POLLER_SPINS,  /* keeps the core: it is its turn */
	WEFT_POLLER_YIELDS, /* to ranks, or threads of this process */
	WEFT_POLLER_SLEEPS,
};

/* How it gives way; `over`: it has for as long as the plan says. */
static inline enum weft_poller_way weft_task_poller_way(const struct weft_poller *p, bool over,
							bool plan_yields, unsigned untaken_max)
{
	if (plan_yields)
		return over || p->untaken > untaken_max ? WEFT_POLLER_SLEEPS : WEFT_POLLER_YIELDS;
	if (p->beside)
		return WEFT_POLLER_YIELDS;
	return over ? WEFT_POLLER_SLEEPS : WEFT_POLLER_SPINS;
}

#endif
