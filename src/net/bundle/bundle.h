/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bundle.h - several networks to the same peers as one driver: `bundle`.
 *
 * Large packets are cut into pieces that go over all rails at once, each rail taking the next piece
 * when it is free and if it will have carried it before the others could; small ones take the first
 * rail that has room.  A rail that ends takes nothing with it: what it has not confirmed goes over
 * the others, arrives once, and in order (bundle_proto.h).  It is tried again, and used again.
 *
 * A peer is dead when no rail is up any more and none came up again within `peer_timeout`, or all
 * were refused.  Each side counts only rails that are up, so that two sides that give up different
 * rails at the same time find each other again.
 *
 * Callers   plan: before open.  The rest: as in driver.h.
 */
#ifndef WEFT_BUNDLE_H
#define WEFT_BUNDLE_H

#include "net/driver.h"

#define WEFT_BUNDLE_RAILS 4

struct weft_bundle_rail {
	const struct weft_driver *driver;
	char interface[64]; /* empty: the driver's own choice */
};

/* Reads "DRIVER[:INTERFACE],..."; errors are logged. */
weft_err weft_net_bundle_parse(const char *text, struct weft_bundle_rail *rails,
			       unsigned *n_p) weft_must_use;

/* The rails of the bundles that are opened from now on. */
void weft_net_bundle_plan(const struct weft_bundle_rail *rails, unsigned n);

/* What happened on a rail so far; any thread, the numbers are hints. */
struct weft_bundle_stats {
	const char *driver;
	unsigned up; /* peers */
	uint64_t units, bytes, again, lost, revived;
	double bandwidth_mbs; /* measured; 0: not yet */
};
unsigned weft_net_bundle_stats(struct weft_net *net, struct weft_bundle_stats *stats, unsigned max);

/* For tests: the poller ends this rail to peer, as a broken cable would; for_ms: it stays so. */
void weft_net_bundle_cut(struct weft_net *net, unsigned rail, unsigned for_ms);

#endif
