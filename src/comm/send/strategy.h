/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * strategy.h - in which order the packets that wait at a gate go out, and which travel together.
 *
 * A strategy is a table: it may put several small messages into one packet (pack.h), keep the data
 * of large messages apart from everything else, bound what goes at a time, and choose which message's
 * data is next.  Envelopes and answers always keep their order, so matching does not notice.
 *
 * fifo       as they came; a large message is handed over whole
 * aggregate  the same; small messages that wait, or follow each other, share a packet
 * reorder    data in pieces, and only when nothing else waits; messages in turn
 * shortest   the same, but the message that has the least left goes first
 * priority   the same, but the message of the communicator with the highest priority goes first
 * auto       by the network: fifo where a packet costs less than to gather it (shm) or the network
 *            gathers by itself (tcp), else reorder that aggregates, too
 *
 * Callers   functions of a strategy: the holder of the gate's mask.
 */
#ifndef WEFT_COMM_STRATEGY_H
#define WEFT_COMM_STRATEGY_H

#include "base/base.h"

struct weft_gate;
struct weft_out;
struct weft_net_card;

struct weft_strategy {
	const char *name;
	size_t pack;    /* most bytes of small messages in one packet; 0: each goes by itself */
	bool may_hold;  /* pack: those that follow each other may wait for the next poll */
	bool apart;     /* data waits in a list of its own (the gate's data_head) */
	size_t piece;   /* apart: most bytes of data in a packet */
	unsigned ahead; /* apart: most packets of data that the driver may hold */
	/* apart: takes the data that goes next out of the list, which is not empty. */
	struct weft_out *(*next_locked)(struct weft_gate *g);
	/* NULL, or: the strategy that it stands for on a network. */
	const struct weft_strategy *(*choose)(const struct weft_net_card *card);
	const void *own; /* of strategy_own.c */
};

extern const struct weft_strategy weft_comm_strategy_fifo;

/* The strategy of that name, or NULL. */
const struct weft_strategy *weft_comm_strategy_find(const char *name);
/* Their names, with commas. */
void weft_comm_strategy_names(char *buf, size_t size);

/* Adds a program's strategy, before the process starts to communicate; at most 8.  s must stay. */
weft_err weft_comm_strategy_add(const struct weft_strategy *s) weft_must_use;

/* Takes *at out of g's list of data. */
struct weft_out *weft_comm_strategy_take_locked(struct weft_gate *g, struct weft_out **at);

#endif
