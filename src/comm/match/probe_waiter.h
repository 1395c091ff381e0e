/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * probe_waiter.h - threads that wait for a message to come, without a receive for it.
 *
 * Callers   pick: holder of the context's lock.  signal, wake: no lock held.
 * Owner     the waiting thread owns its record from the signal on; picked ones are the picker's.
 */
#ifndef WEFT_COMM_PROBE_WAITER_H
#define WEFT_COMM_PROBE_WAITER_H

#include "comm/match/ctx.h"

struct weft_probe_waiter {
	struct weft_probe_waiter *next; /* L context */
	int peer, tag;
	bool failed; /* before the signal: a peer it might have waited for died */
	struct weft_completion arrived;
};

/* Takes out those that were waiting for such a message; returns them. */
struct weft_probe_waiter *weft_comm_probes_pick_locked(struct weft_ctx *ctx, int peer, int tag);
void weft_comm_probes_signal(struct weft_probe_waiter *w);
/* Wakes those that wait for a message from peer. */
void weft_comm_match_wake_probes(struct weft_ctx *ctx, int peer, bool failed);

#endif
