/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * strategy.h - a program's own order in which messages go to a peer; see doc/strategies.md.
 *
 * Register a plan before MPI_Init or weft_comm_open (later ones have no effect), start the job with
 * WEFT_STRATEGY=<its name>. A plan chooses among the data of large messages, which waits apart, and
 * says whether small ones travel together.  Messages are matched in order whatever a plan does.
 *
 * Callers   weft_strategy_register: the starting thread.
 *           next: any thread, one at a time per peer; it must not call MPI or weft, and must be
 *           short: the peer's other messages wait for it.
 * Owner     the library copies the plan, not what name and arg point to: those must stay.
 */
#ifndef WEFT_PUBLIC_STRATEGY_H
#define WEFT_PUBLIC_STRATEGY_H

#include <stddef.h>
#include <stdint.h>
#include <weft/err.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WEFT_STRATEGY_API __attribute__((visibility("default")))
#else
#define WEFT_STRATEGY_API
#endif

/* The data of a large message that its receiver waits for. */
typedef struct weft_strategy_item {
	uint64_t bytes; /* of the message */
	uint64_t left;  /* of them, not handed to the network yet */
	int peer;       /* where it goes */
	int tag;
	int priority; /* its communicator's: the info key weft_priority */
} weft_strategy_item;

#define WEFT_STRATEGY_ITEMS 32

typedef struct weft_strategy_plan {
	const char *name;
	/* The item that goes next: an index below n (any other: the oldest).  items are the oldest n that
	 * wait, in their order; n is 1 to WEFT_STRATEGY_ITEMS.  NULL: the oldest. */
	unsigned (*next)(void *arg, const weft_strategy_item *items, unsigned n);
	void *arg;
	size_t piece;    /* most bytes of data handed over at a time; 0: 256 KiB */
	unsigned ahead;  /* most such pieces that the network may hold; 0: 4 */
	size_t together; /* most bytes of small messages that share a packet; 0: none do */
	int window;      /* with together: those that follow each other may wait for a poll */
} weft_strategy_plan;

/* WEFT_ERR_ARG: no name, or the name is taken.  WEFT_ERR_LIMIT: there are 8 plans already. */
WEFT_STRATEGY_API weft_err weft_strategy_register(const weft_strategy_plan *plan);

#ifdef __cplusplus
}
#endif

#endif
