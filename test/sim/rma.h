/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rma.h - one-sided traffic: what the ranks' threads have done to the window's memory so far; rma.c does it,
 * rma_oracle.c says what must come of it.
 *
 * A member's memory: words that all change by accumulates, a cell of each origin behind which it notifies, one
 * of each origin for epochs, and for each thread of each origin an area that it alone puts to.
 */
#ifndef WEFT_TEST_SIM_RMA_H
#define WEFT_TEST_SIM_RMA_H

#include "co.h"
#include "rma/win_int.h"
#include "sim.h"

#define RMA_THREADS 2
#define RMA_SUMS 5      /* words that one accumulate changes */
#define RMA_SMALL 512u  /* bytes of an area that are known one by one */
#define RMA_LARGE 20480 /* and those of a large access of thread 0 */

enum rma_word {
	RMA_TICKETS, /* fetch_and_op adds 1 */
	RMA_SWAPS,   /* compare_and_swap adds 1, if no other has */
	RMA_LOCKED,  /* get and put under the lock add 1 */
	RMA_SUM,     /* accumulates */
	RMA_CELL = RMA_SUM + RMA_SUMS,
	RMA_EPOCH = RMA_CELL + SIM_RANKS,
	RMA_WORDS = RMA_EPOCH + SIM_RANKS
};

/* What a thread knows of its area at a target. */
struct rma_area {
	unsigned char byte[RMA_SMALL];
	uint32_t stamp[RMA_SMALL]; /* of the last put */
	uint32_t large, large_stamp;
	uint32_t settled; /* puts up to this stamp have been flushed */
};

enum rma_kind { RMA_PUT, RMA_GET, RMA_GET_LARGE, RMA_TICKET, RMA_SWAP, RMA_ADD };

/* An access that no flush has ended. */
struct rma_access {
	struct rma_access *next;
	enum rma_kind kind;
	int to;
	unsigned at;
	size_t bytes;
	uint32_t settled; /* of the area when a get began */
	uint32_t large;
	int64_t above; /* a ticket is higher than those that were known when it was asked for */
	uint64_t value, compare; /* of operands; compare: of a swap */
	struct weft_rma_op op;   /* waited for, if it has one */
	char *data;
};

struct rma_thread {
	struct sim_co co;
	int rank, number;
	uint32_t stamp;
	struct rma_access *open;
	bool settling; /* its last flush of all */
	struct rma_area area[SIM_RANKS];
};

struct rma_target { /* what has been done to its words */
	uint64_t tickets, tickets_known, swaps, swaps_known, locked, locked_known;
	uint64_t sum, sum_known;
	int64_t highest; /* ticket that is known */
	bool taken[1024];
	int holder;       /* of the exclusive lock; -1: none */
	unsigned holders; /* of the shared one, a bit each */
};

extern struct rma {
	struct weft_rma_win *win[SIM_RANKS];
	struct weft_ctx *am[SIM_RANKS], *data[SIM_RANKS];
	char *memory[SIM_RANKS];
	int threads, hosts;
	enum weft_rma_flavor flavor;
	struct rma_thread thread[SIM_RANKS][RMA_THREADS];
	struct rma_target target[SIM_RANKS];
	uint64_t cells[SIM_RANKS][SIM_RANKS]; /* notifications: of origin, to target */
	uint64_t noted[SIM_RANKS][SIM_RANKS]; /* by target, of origin */
	bool lost[SIM_RANKS][SIM_RANKS];      /* origin has been told that target is gone */
	unsigned epochs[SIM_RANKS], epochs_most;
	bool epochs_over[SIM_RANKS]; /* one has failed */
} rma;

size_t rma_area_at(int rank, int thread);
size_t rma_bytes(void);
static inline uint64_t *rma_word(int target, unsigned i)
{
	return (uint64_t *)(void *)rma.memory[target] + i;
}

/* Is that peer out of reach, so that what is asked of it may fail? */
bool rma_gone(int rank, int peer);

/* rma_oracle.c */
void rma_fill_large(char *p, uint32_t version);
struct rma_access *rma_access_new(struct rma_thread *t, enum rma_kind kind, int to, size_t bytes);
/* A put, a get begins. */
void rma_area_put(struct rma_thread *t, int to, unsigned at, const char *data, size_t bytes);
/* The access is over, by its request or a flush: looks at what it got, frees it. */
void rma_access_over(struct rma_thread *t, struct rma_access *a);
/* Accesses to that target are over; gone: nothing is known of them. */
void rma_flushed(struct rma_thread *t, int to, bool gone);
/* A dead rank's thread. */
void rma_thread_drop(struct rma_thread *t);
void rma_lock_got(int rank, int to, bool exclusive);
void rma_lock_given(int rank, int to, bool exclusive);
/* All is over: memory, and what windows keep. */
void rma_check_all(void);

#endif
