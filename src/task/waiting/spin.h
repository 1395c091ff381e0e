/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spin.h - how long to poll before sleeping, learned for each place that waits.
 */
#ifndef WEFT_TASK_SPIN_H
#define WEFT_TASK_SPIN_H

#include <stdio.h>
#include <weft/policy.h>
#include "base/base.h"

/* Site: where in the code the wait is, any address that stays the same */
struct weft_wait_plan
weft_task_spin_plan(const void *site);             /* how this wait polls before it sleeps */
uint64_t weft_task_spin_site_ns(const void *site); /* what was learned there */
uint64_t weft_task_spin_cycles(uint64_t ns);
unsigned weft_task_spin_yield_max(void); /* so many in a row that no thread took */
bool weft_task_spin_wanted(void);        /* waiters do poll before they sleep */
bool weft_task_spin_preempted(void);     /* strangers took our core, lately */
bool weft_task_spin_crowded(void); /* fewer cores than ranks: no look lasts longer than it must */
void weft_task_spin_slept(const void *site, uint64_t ns); /* it spun in vain, then slept for ns */
void weft_task_spin_paid(const void *site);               /* it ended while spinning */
void weft_task_spin_gap(uint64_t cycles); /* a round took that long: were we preempted? */
void weft_task_spin_init(void);
void weft_task_spin_given(void); /* spin_us and yield_max, anew */
/* How many ranks of the job share how many cores of this host; cores 0: find out. */
void weft_task_spin_set_ranks(int ranks, int cpus);
void weft_task_spin_ranks(int *ranks_p, int *cpus_p);
void weft_task_spin_describe(FILE *out);

#endif
