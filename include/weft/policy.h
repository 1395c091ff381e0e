/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * policy.h - two choices that the engine makes, for programs that know better: how a waiter passes
 * the time before it sleeps, and whether an event source is polled or left to a blocking call.
 *
 * Callers   weft_policy_set: any thread, any time, also before the engine starts.
 * Owner     the structure is the caller's; it stays valid and unchanged until another is set and
 *           the waits and sources that may be asking it have returned.
 * Asked     wait: once per wait that did not find its answer at once, by the waiting thread.
 *           source: as weft_events_ops.choose, for sources that have no choice of their own.
 *           Both are handlers: short, no wait.  Neither is asked on the fast path.
 */
#ifndef WEFT_POLICY_H
#define WEFT_POLICY_H

#include <stdbool.h>
#include <stdint.h>
#include <weft/source.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WEFT_POLICY_API __attribute__((visibility("default")))
#else
#define WEFT_POLICY_API
#endif

/* What a waiter knows. */
struct weft_wait_load {
	const void *site;    /* where in the program it waits; NULL: nowhere in particular */
	uint64_t learned_ns; /* looking for so long has paid there, or may */
	int ranks, cores;    /* of the job on this host, and the cores that they share */
	int quota;           /* cores that the control group gives; 0: no limit */
	/* It lost its core to strangers, lately, its turn is over, and polling has not paid there. */
	bool preempted;
};

struct weft_wait_plan {
	uint64_t ns; /* look for so long, then sleep; 0: sleep at once */
	bool yield;  /* hand the core over between looks; ends early when no thread takes it */
};

struct weft_policy {
	/* NULL: as weft_policy_wait. */
	struct weft_wait_plan (*wait)(void *arg, const struct weft_wait_load *load);
	/* NULL: as weft_policy_source.  WEFT_EVENTS_AUTO: the same. */
	enum weft_events_method (*source)(void *arg, const char *name,
					  const struct weft_events_load *load);
	void *arg;
};

/* NULL: the defaults again.  The setting spin_us, when given, rules over `wait`. */
WEFT_POLICY_API void weft_policy_set(const struct weft_policy *p);

/*
 * The defaults.  A waiter spins for the learned time; not at all when the control group gives less
 * than a core per rank or, among strangers, when its turn is over; with more ranks than cores it
 * yields.
 */
WEFT_POLICY_API struct weft_wait_plan weft_policy_wait(const struct weft_wait_load *load);
/* Polls while a thread polls anyway and no more threads run than there are cores. */
WEFT_POLICY_API enum weft_events_method weft_policy_source(const struct weft_events_load *load);

#ifdef __cplusplus
}
#endif
#endif
