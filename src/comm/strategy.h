/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * strategy.h - in which order the packets that wait at a gate go out.
 *
 * A strategy is a table: it may keep the data of large messages apart from everything else, bound
 * what goes at a time, and choose whose data is next.  Envelopes and answers always keep their
 * order, so matching does not notice.
 *
 * fifo      as they came; a large message is handed over whole
 * reorder   data in pieces, and only when nothing else waits; messages in turn
 * shortest  the same, but the message that has the least left goes first
 *
 * Callers   functions of a strategy: the holder of the gate's mask.
 */
#ifndef WEFT_COMM_STRATEGY_H
#define WEFT_COMM_STRATEGY_H

#include "base/base.h"

struct weft_gate;
struct weft_out;

struct weft_strategy {
	const char *name;
	bool apart;     /* data waits in a list of its own (the gate's data_head) */
	size_t piece;   /* apart: most bytes of data in a packet */
	unsigned ahead; /* apart: most packets of data that the driver may hold */
	/* apart: takes the data that goes next out of the list, which is not empty. */
	struct weft_out *(*next_locked)(struct weft_gate *g);
};

extern const struct weft_strategy weft_strategy_fifo;

/* The strategy of that name, or NULL. */
const struct weft_strategy *weft_strategy_find(const char *name);

/* Adds one's own, before the process starts to communicate; at most 8.  s must stay. */
weft_err weft_strategy_register(const struct weft_strategy *s) weft_must_use;

#endif
