/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spin.c - how long a waiter polls before it sleeps.
 *
 * Spinning pays when the answer comes sooner than a sleep and a wake-up would take, and costs
 * everybody else when cores are short.  So the time is learned from how sleeps went: a sleep
 * shorter than the longest spin means that spinning would have caught it; a long one means that the
 * spin was wasted.  When both sides of an exchange sleep, each waits for the other's wake-up too:
 * the longest spin must outlast two of them, or a pair that once began to sleep would find every
 * wait too long to spin, for ever.
 * With more ranks than cores a waiter yields between its rounds, so that whoever it waits for can
 * run; the same time bounds it.  A sleep and a wake-up there cost each side several system calls
 * (arming, doorbell, epoll), a yield one.  When rounds show that we were preempted, by threads that
 * we know nothing of, a spin lasts no longer than the sleep it may spare costs: it is then never
 * worse than twice the better choice.
 */
#include "base/log.h"
#include "base/settings.h"
#include "task/engine_int.h"
#include "task/load.h"

#include <sched.h>
#include <unistd.h>

#define SPIN_MAX_NS 200000u    /* two wake-ups of a guest's idle core: the peer's and then ours */
#define SPIN_MIN_NS 4000u      /* below a futex wake-up (4.7 us) a spin cannot win anything */
#define SPIN_CROWDED_NS 50000u /* at most, when others want our core: about what sleeping costs */
#define GAP_US 400             /* a round that took this long was preempted */
#define PRESSED_NS 2000000000u /* so long after a gap the kernel's pressure counts */
#define CROWDED_NS 50000000u   /* how long a suspicion lasts; then spin again and see */

static _Atomic uint32_t x_spin_ns = SPIN_MAX_NS;
static _Atomic int64_t x_given_us = -1;
static _Atomic bool x_short_quota; /* the control group gives less than a core per rank */
static _Atomic int x_ranks = 1, x_cpus = 0;
static _Atomic uint64_t x_crowded_until, x_last_gap;
static _Atomic uint64_t x_per_us = 1;

static int own_cpus(void)
{
	cpu_set_t set;
	if (sched_getaffinity(0, sizeof set, &set))
		return 1;
	int n = CPU_COUNT(&set);
	return n > 0 ? n : 1;
}

/*
 * How many cores this host's ranks share.  A launcher that binds leaves each rank with a part; its
 * own set, our parent's, is the whole.  A single core under a parent with the same may be either a
 * wrapper of a bound rank or a job on one core: hope for the first, rounds will show the second.
 */
static int shared_cpus(void)
{
	cpu_set_t set;
	int own = own_cpus();
	if (sched_getaffinity(getppid(), sizeof set, &set) == 0 && CPU_COUNT(&set) > own)
		return CPU_COUNT(&set);
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	return own == 1 && online > 1 ? (int)online : own;
}

static void note_quota(void)
{
	int quota = weft_load_quota();
	atomic_store_explicit(&x_short_quota,
			      quota > 0 &&
				      quota < atomic_load_explicit(&x_ranks, memory_order_relaxed),
			      memory_order_relaxed);
}

void weft_spin_init(void)
{
	atomic_store_explicit(&x_per_us, weft_cycles_per_us(), memory_order_relaxed);
	atomic_store_explicit(&x_given_us, weft_setting_int(WEFT_SET_SPIN_US),
			      memory_order_relaxed);
	atomic_store_explicit(&x_spin_ns, SPIN_MAX_NS, memory_order_relaxed);
	note_quota();
	if (!atomic_load_explicit(&x_cpus, memory_order_relaxed))
		atomic_store_explicit(&x_cpus, shared_cpus(), memory_order_relaxed);
	weft_idle_size(atomic_load_explicit(&x_ranks, memory_order_relaxed),
		       atomic_load_explicit(&x_cpus, memory_order_relaxed));
}

void weft_engine_set_local_ranks(int ranks, int cpus)
{
	atomic_store_explicit(&x_ranks, ranks > 0 ? ranks : 1, memory_order_relaxed);
	atomic_store_explicit(&x_cpus, cpus > 0 ? cpus : shared_cpus(), memory_order_relaxed);
	note_quota();
	weft_idle_size(ranks, atomic_load_explicit(&x_cpus, memory_order_relaxed));
}

/* More ranks than cores: whom we wait for may need our core to answer. */
static bool oversubscribed(void)
{
	return atomic_load_explicit(&x_ranks, memory_order_relaxed) >
		       atomic_load_explicit(&x_cpus, memory_order_relaxed) ||
	       atomic_load_explicit(&x_short_quota, memory_order_relaxed);
}

/* Somebody took our core while we spun. */
static bool crowded(void)
{
	uint64_t until = atomic_load_explicit(&x_crowded_until, memory_order_relaxed);
	if (!until)
		return false;
	uint64_t now = weft_clock_ns();
	/* Seen lately, and the kernel says that it goes on. */
	return now < until || (now < until + PRESSED_NS && weft_load_pressed());
}

/* All here is relaxed: learned numbers, any mixture of old and new is a fair guess. */
uint64_t weft_spin_cycles(void)
{
	uint64_t per_us = atomic_load_explicit(&x_per_us, memory_order_relaxed);
	int64_t given = atomic_load_explicit(&x_given_us, memory_order_relaxed);
	if (given >= 0)
		return (uint64_t)given * per_us;
	uint64_t ns = atomic_load_explicit(&x_spin_ns, memory_order_relaxed);
	if (ns > SPIN_CROWDED_NS && crowded())
		ns = SPIN_CROWDED_NS;
	return ns * per_us / 1000;
}

bool weft_spin_yields(void)
{
	return atomic_load_explicit(&x_given_us, memory_order_relaxed) < 0 && oversubscribed();
}

uint64_t weft_engine_patience(bool *yield_p)
{
	const struct weft_parker *p = weft_parker_self();
	*yield_p = weft_spin_yields();
	/* A user-level thread shall not keep its worker: others of it can run. */
	return p && !weft_parker_is_thread(p) ? 0 : weft_spin_cycles();
}

void weft_spin_slept(uint64_t ns)
{
	uint32_t spin = atomic_load_explicit(&x_spin_ns, memory_order_relaxed);
	if (ns < SPIN_MAX_NS)
		spin = spin * 2 > SPIN_MAX_NS ? SPIN_MAX_NS : spin * 2;
	else
		spin -= spin / 8;
	if (spin < SPIN_MIN_NS)
		spin = SPIN_MIN_NS;
	atomic_store_explicit(&x_spin_ns, spin, memory_order_relaxed);
}

void weft_spin_paid(void)
{
	uint32_t spin = atomic_load_explicit(&x_spin_ns, memory_order_relaxed);
	if (spin < SPIN_MAX_NS)
		atomic_store_explicit(&x_spin_ns, spin + spin / 16 + 1, memory_order_relaxed);
}

void weft_spin_gap(uint64_t cycles)
{
	if (cycles < GAP_US * atomic_load_explicit(&x_per_us, memory_order_relaxed))
		return;
	/* One gap may be the host's; two within a short time are neighbours. */
	uint64_t now = weft_clock_ns();
	uint64_t last = atomic_exchange_explicit(&x_last_gap, now, memory_order_relaxed);
	if (last && now - last < CROWDED_NS / 2)
		atomic_store_explicit(&x_crowded_until, now + CROWDED_NS, memory_order_relaxed);
}

void weft_spin_describe(FILE *out)
{
	int64_t given = atomic_load_explicit(&x_given_us, memory_order_relaxed);
	if (given >= 0)
		fprintf(out, "  waiters spin %lld us before they sleep (given)\n",
			(long long)given);
	else if (oversubscribed())
		fprintf(out, "  waiters yield %u us before they sleep: %d ranks on %d cores\n",
			atomic_load_explicit(&x_spin_ns, memory_order_relaxed) / 1000,
			atomic_load_explicit(&x_ranks, memory_order_relaxed),
			atomic_load_explicit(&x_cpus, memory_order_relaxed));
	else
		fprintf(out, "  waiters spin %u us before they sleep (learned)\n",
			atomic_load_explicit(&x_spin_ns, memory_order_relaxed) / 1000);
}
