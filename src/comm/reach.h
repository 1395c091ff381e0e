/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reach.h - on which host each peer is, and which driver reaches it.
 *
 * Callers   all: weft_comm_start, weft_comm_join, once per core.  end: when the core is gone.  same_host: any thread between
 *           the two.
 * Owner     the cards are the record's, from all until end.
 * Progress  all: waits for all other members, once or more.
 * Failure   said in a line, once; the core then has the rails that were opened, and goes with them.
 */
#ifndef WEFT_COMM_REACH_H
#define WEFT_COMM_REACH_H

#include <stdbool.h>
#include <stdint.h>
#include "base/base.h"
#include "base/sample.h"
#include "comm/cpus.h"
#include "net/host.h"

struct weft_comm_meeting;
struct weft_core;

#define WEFT_REACH_TEXT 1024 /* an address, or a host key */

/* What a rank publishes of itself. */
struct weft_reach_card {
	uint64_t credit; /* what a peer may have under way to it */
	char host[WEFT_HOST_KEY_MAX];
	char shm[WEFT_REACH_TEXT]; /* empty: none */
	char cpus[WEFT_CPUS_TEXT];
	char name[WEFT_SAMPLE_NAME]; /* its host's; empty: none */
};

struct weft_reach {
	struct weft_core *core;
	void *space; /* for try_get, at first contact */
	weft_err (*try_get)(void *space, int rank, const char *key, char *buf, size_t size);
	struct weft_reach_card *card; /* by rank; of ranks elsewhere empty, where fetched lazily */
	bool crowded;                 /* some host has more ranks than cores for them */
	bool apart;                   /* some pair of ranks is not connected by shm */
};

/* Opens the drivers that the settings allow and the peers need, and sets each peer's gate. */
weft_err weft_comm_reach_all(struct weft_reach *reach, struct weft_core *core,
			     const struct weft_comm_meeting *job) weft_must_use;
void weft_comm_reach_end(struct weft_reach *reach);
bool weft_comm_reach_same_host(const struct weft_reach *reach, int p, int q);

#endif
