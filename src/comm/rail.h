/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rail.h - one driver of a core: what it reports, its polls, and the packs that wait for a poll.
 *
 * Callers   poll, arm, packs_disarm: the rail's poller.  events: once, before the driver is opened.
 * Letters   as in request.h.
 */
#ifndef WEFT_COMM_RAIL_H
#define WEFT_COMM_RAIL_H

#include "net/driver.h"
#include "queue/mpsc.h"

#define WEFT_RAILS_MAX 4

struct weft_core;

struct weft_rail {
	struct weft_core *core;           /* I */
	const struct weft_driver *driver; /* I */
	struct weft_net *net;             /* I */
	int fd[WEFT_NET_FDS];             /* I: that the driver sleeps on */
	unsigned n_fds;                   /* I */
	int peers;                        /* I: how many use it */
	struct weft_net_events events;    /* the driver has a copy (upcalls) */
	bool drained;
	bool packs;               /* I: a gate of it has a pack; see pack.h */
	_Atomic bool x_armed;     /* packs: the poller sleeps, or is about to */
	_Atomic uint64_t x_round; /* packs: polls so far */
	struct weft_mpsc held;    /* packs that were held back */
};

/* The table that its driver calls. */
struct weft_net_events weft_comm_rail_events(struct weft_rail *rail);
/* From now on it tells the trace of what arrives, or no longer; while others poll. */
void weft_comm_rail_trace(struct weft_rail *rail, bool on);
/* An application thread, perhaps, has come to poll while a ring may be late (send/urge.h). */
void weft_comm_rail_polled(struct weft_rail *rail);
/* One poll of the driver; packs that are held back go before. */
int weft_comm_rail_poll(struct weft_rail *rail);
/* Its poller is about to sleep: nothing is held back from here on.  False: look again. */
bool weft_comm_rail_packs_arm(struct weft_rail *rail);
void weft_comm_rail_packs_disarm(struct weft_rail *rail);

#endif
