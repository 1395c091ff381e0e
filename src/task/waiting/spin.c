/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spin.c - how long a waiter polls before it sleeps.
 *
 * Spinning pays when the answer comes sooner than a sleep and a wake-up would take, and costs
 * all other threads when cores are short.  So the time is learned from how sleeps went, for each place
 * in the code that waits (its return address, hashed: places that meet in a slot share what they
 * learn): a program may wait here for an answer and there for its next job.  A sleep shorter than
 * the longest spin means that spinning would have caught it; a long one means that the spin was
 * wasted.  When both sides of an exchange sleep, each waits for the other's wake-up too: the
 * longest spin must outlast two of them, or a pair that once began to sleep would find every wait
 * too long to spin, for ever.
 *
 * Where cores are short no thread spins (policy.c decides, or the program).  With more ranks than
 * cores a waiter yields instead (patience.h).  A sleep and a wake-up there cost each
 * side several system calls (arming, doorbell, epoll), a yield one.  When rounds show that
 * strangers took our core, it takes turns (turn.h), and goes on spinning where that pays: the time of a
 * sleep says little there, since the way back to the core is the longest part of it.  Where the control
 * group gives less than a core per rank, it sleeps at once: what it would burn is taken from the thread
 * that it waits for.
 */
#include "base/assert.h"
#include "base/mechanism.h"
#include "base/settings.h"
#include "task/engine_int.h"
#include "task/waiting/policy_int.h"
#include "task/waiting/spin.h"
#include "task/event/load.h"
#include "task/waiting/turn.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#define SPIN_MAX_NS 200000u    /* two wake-ups of a guest's idle core: the peer's and then ours */
#define SPIN_MIN_NS 4000u      /* below a futex wake-up (4.7 us) a spin cannot win anything */
#define GAP_US 400             /* a round that took this long was preempted, or the host's */
#define QUEUED_NS 2000000u     /* so long waited for a core: strangers run there */
#define CROWDED_NS 50000000u   /* how long a suspicion lasts; then its witness asks the kernel */
#define WITNESS_NS 2000000000u /* so long what it saw is news: it may sleep in between */
#define QUEUED_SHARE 5         /* a fifth of its time in the queue: they are still there */
#define SITE_BITS 6            /* a program waits in a dozen places or two */
#define SITES (1u << SITE_BITS)
/* Among strangers: so many spins in a row in vain, and a place sleeps at once, but for each so-manieth wait. */
#define VAIN_MOST 3
#define VAIN_PROBE 16

static _Atomic uint32_t x_spin_ns =
	SPIN_MAX_NS;                       /* all places together: for a wait that does not learn */
static _Atomic uint32_t x_site_ns[SITES];  /* 0: nothing learned there yet */
static _Atomic uint8_t x_site_vain[SITES]; /* waits among strangers since a spin there last paid */
static _Atomic int64_t x_given_us = -1;
static _Atomic uint32_t x_yield_max = 64;
static _Atomic int x_quota; /* cores that the control group gives; 0: no limit */
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
	long online = own == 1 ? sysconf(_SC_NPROCESSORS_ONLN) : 1; /* reads a file */
	return online > 1 ? (int)online : own;
}

static void note_quota(void)
{
	atomic_store_explicit(&x_quota, weft_task_load_quota(), memory_order_relaxed);
}

void weft_task_spin_given(void)
{
	/* Relaxed: each wait has the older value or the newer. */
	atomic_store_explicit(&x_given_us, weft_setting_int(WEFT_SET_SPIN_US),
			      memory_order_relaxed);
	atomic_store_explicit(&x_yield_max, (uint32_t)weft_setting_int(WEFT_SET_YIELD_MAX),
			      memory_order_relaxed);
}

void weft_task_spin_init(void)
{
	atomic_store_explicit(&x_per_us, weft_cycles_per_us(), memory_order_relaxed);
	weft_task_spin_given();
	atomic_store_explicit(&x_spin_ns, SPIN_MAX_NS, memory_order_relaxed);
	for (unsigned i = 0; i < SITES; i++) {
		atomic_store_explicit(&x_site_ns[i], 0, memory_order_relaxed);
		atomic_store_explicit(&x_site_vain[i], 0, memory_order_relaxed);
	}
	note_quota();
	if (!atomic_load_explicit(&x_cpus, memory_order_relaxed))
		atomic_store_explicit(&x_cpus, shared_cpus(), memory_order_relaxed);
}

void weft_task_spin_set_ranks(int ranks, int cpus)
{
	atomic_store_explicit(&x_ranks, ranks > 0 ? ranks : 1, memory_order_relaxed);
	atomic_store_explicit(&x_cpus, cpus > 0 ? cpus : shared_cpus(), memory_order_relaxed);
	note_quota();
}

void weft_task_spin_ranks(int *ranks_p, int *cpus_p)
{
	*ranks_p = atomic_load_explicit(&x_ranks, memory_order_relaxed);
	*cpus_p = atomic_load_explicit(&x_cpus, memory_order_relaxed);
}

bool weft_task_engine_cores_taken(void)
{
	/* Relaxed, both: set at the start. */
	return atomic_load_explicit(&x_ranks, memory_order_relaxed) >=
	       atomic_load_explicit(&x_cpus, memory_order_relaxed);
}

bool weft_task_spin_crowded(void)
{
	int ranks = atomic_load_explicit(&x_ranks, memory_order_relaxed);
	int quota = atomic_load_explicit(&x_quota, memory_order_relaxed);
	return atomic_load_explicit(&x_given_us, memory_order_relaxed) < 0 &&
	       (ranks > atomic_load_explicit(&x_cpus, memory_order_relaxed) ||
		(quota && quota < ranks));
}

/*
 * Which thread saw the strangers, when it last asked the kernel, and for how long it had stood in the queue
 * by then.  It asks for itself: the machine's pressure would not do, since threads that hand
 * messages over on one core make half of it, and its averages speak of the last ten seconds.
 */
static _Thread_local struct {
	uint64_t asked_ns, queued_ns;
} witness;

static void note_strangers(uint64_t now)
{
	if (!weft_mechanism_on(WEFT_MECH_TURNS))
		return;
	if (!witness.asked_ns || now - witness.asked_ns > WITNESS_NS) {
		witness.asked_ns = now;
		witness.queued_ns = weft_task_load_queued_ns();
	}
	atomic_store_explicit(&x_crowded_until, now + CROWDED_NS, memory_order_relaxed);
}

/* The suspicion is over.  True: the witness, if that is us, has reason for the next one. */
static bool still_crowded(uint64_t now)
{
	uint64_t since = witness.asked_ns, queued = witness.queued_ns;
	if (!since)
		return false;
	witness.asked_ns = 0;
	if (now - since > WITNESS_NS)
		return false;
	uint64_t by_now = weft_task_load_queued_ns();
	if (by_now < queued || (by_now - queued) * QUEUED_SHARE < now - since)
		return false;
	note_strangers(now);
	return true;
}

/* Other programs took our core, or did not let us in. */
bool weft_task_spin_preempted(void)
{
	uint64_t until = atomic_load_explicit(&x_crowded_until, memory_order_relaxed);
	if (!until)
		return false;
	uint64_t now = weft_clock_ns();
	return now < until || still_crowded(now);
}

/* All here is relaxed: learned numbers, any mixture of old and new is a fair guess. */
static unsigned index_of(const void *site)
{
	return (unsigned)(((uintptr_t)site * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - SITE_BITS));
}

static _Atomic uint32_t *slot_of(const void *site)
{
	return &x_site_ns[index_of(site)];
}

static uint32_t learned_ns(_Atomic uint32_t *slot)
{
	uint32_t ns = atomic_load_explicit(slot, memory_order_relaxed);
	return ns ? ns : SPIN_MAX_NS;
}

uint64_t weft_task_spin_site_ns(const void *site)
{
	return learned_ns(slot_of(site));
}

unsigned weft_task_spin_yield_max(void)
{
	return atomic_load_explicit(&x_yield_max, memory_order_relaxed);
}

bool weft_task_spin_wanted(void)
{
	return atomic_load_explicit(&x_given_us, memory_order_relaxed) != 0;
}

/* Among strangers, once its turn is over: is an answer likely while the caller spins? */
static bool spin_may_pay(const void *site)
{
	unsigned vain = atomic_load_explicit(&x_site_vain[index_of(site)], memory_order_relaxed);
	return vain < VAIN_MOST || vain % VAIN_PROBE == 0;
}

static struct weft_wait_plan plan_for(const void *site, _Atomic uint32_t *slot)
{
	int64_t given = atomic_load_explicit(&x_given_us, memory_order_relaxed);
	if (given >= 0)
		return (struct weft_wait_plan){.ns = (uint64_t)given * 1000};
	struct weft_wait_load load = {
		.site = site,
		.learned_ns = learned_ns(slot),
		.ranks = atomic_load_explicit(&x_ranks, memory_order_relaxed),
		.cores = atomic_load_explicit(&x_cpus, memory_order_relaxed),
		.quota = atomic_load_explicit(&x_quota, memory_order_relaxed),
		.preempted = weft_task_spin_preempted(),
	};
	weft_assert(load.learned_ns >= SPIN_MIN_NS && load.learned_ns <= 2 * SPIN_MAX_NS);
	uint64_t left = load.preempted ? weft_task_turn_left_ns() : 0;
	if (left) { /* its turn */
		load.preempted = false;
		load.learned_ns = left < load.learned_ns ? left : load.learned_ns;
	} else if (load.preempted && spin_may_pay(site)) {
		load.preempted = false;
	}
	struct weft_wait_plan plan = weft_task_policy_ask_wait(&load);
	if (plan.yield && !weft_task_spin_yield_max())
		plan.ns = 0;
	return plan;
}

struct weft_wait_plan weft_task_spin_plan(const void *site)
{
	return plan_for(site, slot_of(site));
}

uint64_t weft_task_spin_cycles(uint64_t ns)
{
	return ns * atomic_load_explicit(&x_per_us, memory_order_relaxed) / 1000;
}

uint64_t weft_task_engine_patience(bool *yield_p)
{
	const struct weft_parker *p = weft_wait_parker_self();
	struct weft_wait_plan plan = plan_for(NULL, &x_spin_ns);
	*yield_p = plan.yield;
	/* A user-level thread shall not keep its worker: others of it can run. */
	return p && !weft_wait_parker_is_thread(p) ? 0 : weft_task_spin_cycles(plan.ns);
}

static void after_sleep(_Atomic uint32_t *slot, uint64_t ns)
{
	uint32_t spin = learned_ns(slot);
	if (ns < SPIN_MAX_NS)
		spin = spin * 2 > SPIN_MAX_NS ? SPIN_MAX_NS : spin * 2;
	else
		spin -= spin / 8;
	if (spin < SPIN_MIN_NS)
		spin = SPIN_MIN_NS;
	weft_assert(spin >= SPIN_MIN_NS && spin <= SPIN_MAX_NS);
	atomic_store_explicit(slot, spin, memory_order_relaxed);
}

static void after_spin(_Atomic uint32_t *slot)
{
	uint32_t spin = learned_ns(slot);
	if (spin < SPIN_MAX_NS)
		atomic_store_explicit(slot, spin + spin / 16 + 1, memory_order_relaxed);
}

static void spun_well(const void *site)
{
	_Atomic uint8_t *slot = &x_site_vain[index_of(site)];
	if (weft_unlikely(atomic_load_explicit(slot, memory_order_relaxed)))
		atomic_store_explicit(slot, 0, memory_order_relaxed);
}

void weft_task_spin_paid(const void *site)
{
	spun_well(site);
	after_spin(slot_of(site));
	after_spin(&x_spin_ns);
}

static void spun_in_vain(const void *site)
{
	_Atomic uint8_t *slot = &x_site_vain[index_of(site)];
	unsigned vain = atomic_load_explicit(slot, memory_order_relaxed) + 1u;
	atomic_store_explicit(slot, (uint8_t)(vain > VAIN_PROBE ? VAIN_MOST : vain),
			      memory_order_relaxed);
}

void weft_task_engine_looked(bool seen)
{
	if (seen)
		spun_well(NULL);
	else if (weft_task_spin_preempted())
		spun_in_vain(NULL);
}

/* Has the kernel taken a core from this thread since it asked last? */
static bool switched_away(void)
{
	static _Thread_local long before = -1;
	struct rusage now;
	if (getrusage(RUSAGE_THREAD, &now))
		return true;
	bool moved = now.ru_nivcsw != before;
	before = now.ru_nivcsw;
	return moved;
}

/* This thread did not run for ns.  Did it stand in the queue for a core meanwhile, behind others
 * than the ranks of our own job? */
static bool stood_in_queue(uint64_t ns)
{
	static _Thread_local uint64_t before;
	if (ns < QUEUED_NS || weft_task_spin_crowded())
		return false;
	uint64_t now = weft_task_load_queued_ns(), waited = now > before ? now - before : 0;
	before = now;
	return waited >= QUEUED_NS;
}

void weft_task_spin_gap(uint64_t cycles)
{
	if (cycles < GAP_US * atomic_load_explicit(&x_per_us, memory_order_relaxed))
		return;
	/* One gap may be the host's, which does not count as a switch; two of ours within a short
	 * time are neighbours, and so is one in which we stood in the queue for long. */
	uint64_t now = weft_clock_ns();
	if (!switched_away())
		return;
	weft_task_turn_begins();
	uint64_t last = atomic_exchange_explicit(&x_last_gap, now, memory_order_relaxed);
	if ((last && now - last < CROWDED_NS / 2) ||
	    stood_in_queue(cycles * 1000 / atomic_load_explicit(&x_per_us, memory_order_relaxed)))
		note_strangers(now);
}

void weft_task_spin_slept(const void *site, uint64_t ns)
{
	if (weft_unlikely(stood_in_queue(ns)))
		note_strangers(weft_clock_ns());
	if (weft_unlikely(
		    weft_task_spin_preempted())) { /* the sleep says little about the answer */
		weft_task_turn_begins();
		spun_in_vain(site);
		return;
	}
	after_sleep(slot_of(site), ns);
	after_sleep(&x_spin_ns, ns);
}

/* Over the places that have learned something; the longest where none has. */
static unsigned range_of(uint32_t *least_p, uint32_t *most_p)
{
	unsigned n = 0;
	*least_p = SPIN_MAX_NS;
	*most_p = 0;
	for (unsigned i = 0; i < SITES; i++) {
		uint32_t ns = atomic_load_explicit(&x_site_ns[i], memory_order_relaxed);
		if (!ns)
			continue;
		n++;
		*least_p = ns < *least_p ? ns : *least_p;
		*most_p = ns > *most_p ? ns : *most_p;
	}
	if (!n)
		*most_p = SPIN_MAX_NS;
	return n;
}

void weft_task_spin_describe(FILE *out)
{
	int64_t given = atomic_load_explicit(&x_given_us, memory_order_relaxed);
	if (given >= 0) {
		fprintf(out, "  waiters spin %lld us before they sleep (given)\n",
			(long long)given);
		return;
	}
	uint32_t least, most;
	unsigned n = range_of(&least, &most);
	struct weft_wait_plan plan = plan_for(NULL, &x_spin_ns);
	const char *how = plan.yield ? "yield" : "spin";
	if (n)
		fprintf(out, "  waiters %s %u to %u us before they sleep (learned at %u place%s)",
			how, least / 1000, most / 1000, n, n == 1 ? "" : "s");
	else
		fprintf(out, "  waiters %s %u us before they sleep (to be learned)", how,
			most / 1000);
	if (weft_task_spin_crowded())
		fprintf(out, ": %d ranks on %d cores, quota %d",
			atomic_load_explicit(&x_ranks, memory_order_relaxed),
			atomic_load_explicit(&x_cpus, memory_order_relaxed),
			atomic_load_explicit(&x_quota, memory_order_relaxed));
	fprintf(out, "%s\n", plan.ns ? "" : "; at this moment they sleep at once");
}
