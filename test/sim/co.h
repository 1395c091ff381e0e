/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * co.h - threads of the application as coroutines of the simulator's one thread: where such a thread
 * would sleep, it leaves its stack, and goes on when it is resumed after a wake-up.
 *
 * A coroutine is resumed from wherever the schedule is, also from within a post of another one, and comes back there: so
 * resumes nest as calls do.
 *
 * Callers   begin: once, before the first.  make: when it is idle, or for good abandoned.  yield: a coroutine.
 * Owner     stacks belong to this file and stay.
 */
#ifndef WEFT_TEST_SIM_CO_H
#define WEFT_TEST_SIM_CO_H

#include <stdbool.h>
#include <stddef.h>
#include "wait/park.h"

enum sim_co_state {
	SIM_CO_IDLE,    /* its body has returned */
	SIM_CO_READY,   /* goes on when it is resumed */
	SIM_CO_PARKED,  /* waits for a wake-up */
	SIM_CO_RUNNING, /* is on the stack of resumes */
};

struct sim_co {
	enum sim_co_state state;
	void (*body)(void *arg);
	void *arg;
	bool woken; /* a wake-up that no park has taken */
	struct weft_parker parker;
	char *stack;
	void *sp, *back; /* its own, its resumer's */
	struct sim_co *below;
	void *fiber, *back_fiber, *fake; /* of sanitizers */
	const void *back_bottom;
	size_t back_size;
};

void sim_co_begin(void);
/* Idle, whatever it was.  c is zeroed before the first time. */
void sim_co_make(struct sim_co *c);
/* Starts body(arg); c is idle.  Runs until it parks, yields or ends. */
void sim_co_start(struct sim_co *c, void (*body)(void *arg), void *arg);
/* c is READY. */
void sim_co_resume(struct sim_co *c);
/* The running coroutine lets others move. */
void sim_co_yield(void);

#endif
