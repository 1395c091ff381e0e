/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ctx.h - a context: its posted wildcards and, once one was used, its unexpected messages in the
 * order they came; and the table of contexts by id.
 *
 * Callers   any thread.  fini_all: when nothing else can be running.
 * Owner     the core: a record, once made, stays until fini_all.
 * Letters   as in request.h.
 */
#ifndef WEFT_COMM_CTX_H
#define WEFT_COMM_CTX_H

#include "comm/comm.h"
#include "comm/lock.h"
#include "comm/match/phase.h"

struct weft_core;
struct weft_entry;
struct weft_msg;
struct weft_probe_waiter;

enum weft_hint {
	WEFT_HINT_NO_ANY_PEER = 1,
	WEFT_HINT_NO_ANY_TAG = 2,
	WEFT_HINT_OVERTAKING = 4,
};

/* Of which a context knows that it uses them: more than contexts with a few keys have. */
#define WEFT_CTX_PAGES 8u

struct weft_ctx {
	/* Read on every message, written when wildcards come and go. */
	struct weft_core *core;   /* I */
	uint32_t id;              /* I */
	uint32_t base;            /* I: where its keys begin in the table */
	uint32_t scatter;         /* I: what keys do with tags of 4096 and more, see bucket.h */
	_Atomic uint32_t x_wild;  /* wildcards and probes that wait; raised before the walk */
	_Atomic uint64_t x_epoch; /* L: wildcards ever posted; read without */
	struct weft_phase phase;  /* are unexpected messages in lists? see phase.h */
	_Atomic bool x_open;
	_Atomic uint8_t x_hints;    /* enum weft_hint */
	_Atomic int16_t x_priority; /* of its data, for strategies that ask */
	struct weft_ctx *next_all;  /* I: every record, newest first */
	/* The pages of the table that it may be in, + 1; 0: a free place.  See weft_comm_bucket_mark(). */
	_Atomic uint16_t x_page[WEFT_CTX_PAGES];

	alignas(WEFT_CACHELINE) struct weft_spin lock;
	_Atomic uint32_t x_unexpected;            /* L: messages in lists; a probe's hint */
	uint32_t not_by_peer, not_by_tag;         /* L: of them, without that index */
	uint32_t wild_posted[3];                  /* L: by enum wild, match.c */
	struct weft_entry *wild_head, *wild_tail; /* L: posted wildcards */
	struct weft_msg *all_head, *all_tail;     /* L: messages in lists */
	struct weft_probe_waiter *probes;         /* L */
	const char *name;                         /* under lock: its opener's; NULL: none */
	_Atomic(struct weft_comm_ear *) x_ear;    /* stays once it is there; or NULL */
	/* Pages whose place another one has: they lie where a row and a column meet. */
	_Atomic uint64_t x_rows, x_columns;
};

#define WEFT_CTX_TOP 2048u
#define WEFT_CTX_MID 2048u
#define WEFT_CTX_LEAF 1024u

struct weft_ctx_leaf {
	_Atomic(struct weft_ctx *) x_ctx[WEFT_CTX_LEAF];
};
struct weft_ctx_mid {
	_Atomic(struct weft_ctx_leaf *) x_leaf[WEFT_CTX_MID];
};

weft_err weft_comm_core_ctx_open(struct weft_core *core, uint32_t id,
				 struct weft_ctx **ctx_p) weft_must_use;
/* The record for id, made on demand; NULL: no memory. */
struct weft_ctx *weft_comm_ctx_find(struct weft_core *core, uint32_t id);
void weft_comm_ctx_fini_all(struct weft_core *core);

#endif
