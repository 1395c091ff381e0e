/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * board.h - a place in shared memory where the members of a group on one host meet.
 *
 * With more ranks than cores a message costs its receiver a turn on a core.  Through a root every
 * meeting costs two turns each, one to arrive, one to hear of it, and the root's own turns beside;
 * here who comes last sees that all have come, does the work for all, and nobody else has to run.
 * What each has for each other lies there, too, for all to read once all have come.
 *
 * Recipe    member: write your cell; arrive.  Last one: combine the cells into `result`, finish,
 *           wake the sleepers.  The others: look at the turn until it is over; who is tired of it
 *           dozes, and then sleeps until a message wakes him.
 * Turns     each meeting is one turn of x_turn.  Who finds that a member is lost ends the turn as
 *           FAILED instead: one of both ends it, so all members see the same end.
 * Callers   each member one thread at a time.
 * Owner     the memory is one member's; every member may write all of it, so nothing in it is
 *           trusted further than that job's results go: no index or length is read from it.
 * Progress  arrive, finish: wait-free.
 *
 *   x_note                  its member writes, all read, any time
 *   cell, x_count, result   written in turn t only; cells read by who comes last, result until the
 *                           reader arrives in turn t + 1
 *   area[t & 1]             a share for each member, written by it before it arrives in turn t, and
 *                           the last member's also by who comes last; read by all until they arrive
 *                           in turn t + 1.  Two of them: who is in turn t + 1 already must not
 *                           write over what others still read; who is in turn t + 2 knows that all
 *                           have arrived in t + 1.
 *   x_turn                  turns that are over, and who sleeps until the next one is: word.h
 */
#ifndef WEFT_COLL_BOARD_H
#define WEFT_COLL_BOARD_H

#include "coll/shm/feed.h"
#include "coll/shm/shared_word.h"

#define WEFT_BOARD_MEMBERS WEFT_WORD_SLEEPERS
#define WEFT_BOARD_DATA 56
#define WEFT_BOARD_AREA 4096 /* shared out among the members */
#define WEFT_BOARD_SLOTS 6
#define WEFT_BOARD_STAGES 4
#define WEFT_BOARD_STAGE_BYTES 16384

#define WEFT_BOARD_FAILED WEFT_WORD_FAILED

struct weft_board_cell {
	uint32_t what;           /* which collective, and how much data: the same on all members */
	_Atomic uint32_t x_note; /* the collective that the member called last; see board.c */
	alignas(8) char data[WEFT_BOARD_DATA];
};

struct weft_board_slot {
	/* Whose it is: 0 free, 1 taken.  The owner takes it, the last member gives it back. */
	alignas(WEFT_CACHELINE) _Atomic uint32_t x_used;
	_Atomic uint32_t x_left; /* members that will not come again */
	alignas(WEFT_CACHELINE) _Atomic uint32_t x_count;
	alignas(WEFT_CACHELINE) _Atomic uint64_t x_turn;
	alignas(WEFT_CACHELINE) struct weft_board_cell result; /* what: 0 when they did not agree */
	struct weft_board_cell cell[WEFT_BOARD_MEMBERS];
	alignas(WEFT_CACHELINE) char area[2][WEFT_BOARD_AREA];
	struct weft_feed feed; /* of collectives with a root */
};

/* Memory of one member that it writes and all read; halves as in area[]. */
struct weft_board_stage {
	alignas(WEFT_CACHELINE) _Atomic uint32_t x_used; /* as a slot's */
	alignas(WEFT_CACHELINE) char half[2][WEFT_BOARD_STAGE_BYTES];
};

/* What each process shows. */
struct weft_board_memory {
	struct weft_board_slot slot[WEFT_BOARD_SLOTS];
	struct weft_board_stage stage[WEFT_BOARD_STAGES];
};

/* Member r's share of the area in that turn; n members. */
static inline size_t weft_coll_board_share(unsigned n)
{
	return WEFT_BOARD_AREA / n & ~(size_t)(WEFT_CACHELINE - 1);
}

static inline char *weft_coll_board_at(struct weft_board_slot *s, uint32_t turn, unsigned n,
				       unsigned r)
{
	return s->area[turn & 1] + r * weft_coll_board_share(n);
}

static inline uint32_t weft_coll_board_next(uint32_t turn)
{
	return (turn + 1) & WEFT_WORD_NUMBERS;
}

/* My cell is written.  True: all n are here, and the caller must finish. */
static inline bool weft_coll_board_arrive(struct weft_board_slot *s, unsigned n)
{
	/* ARRIVE -> LAST (the same operation of who comes last).  Carries: the cell, and that we
	 * have read the last result.  Without it who comes last could combine an old cell, or
	 * write over a result that is still being read. */
	return atomic_fetch_add_explicit(&s->x_count, 1, memory_order_acq_rel) == n - 1;
}

/* Ends the turn, and takes those whom to wake; false: somebody has failed it before. */
static inline bool weft_coll_board_finish(struct weft_board_slot *s, uint32_t turn,
					  uint32_t *sleepers_p)
{
	/* Relaxed: published by POST (word.h); nobody arrives before he has seen that. */
	atomic_store_explicit(&s->x_count, 0, memory_order_relaxed);
	return weft_coll_shared_word_post(&s->x_turn, weft_coll_board_next(turn), sleepers_p);
}

/* A member is lost, the turn cannot end; false: it has ended. */
static inline bool weft_coll_board_fail(struct weft_board_slot *s, uint32_t turn,
					uint32_t *sleepers_p)
{
	return weft_coll_shared_word_fail(&s->x_turn, weft_coll_board_next(turn), sleepers_p);
}

/* Turn `turn` is over: not as it should be?  FAILED, or what no member writes that keeps to this.
 */
static inline bool weft_coll_board_failed(struct weft_board_slot *s, uint32_t turn)
{
	/* Relaxed: after SEE (word.h).  Nobody ends the next turn before we arrive there. */
	return atomic_load_explicit(&s->x_turn, memory_order_relaxed) >> 32 !=
	       weft_coll_board_next(turn);
}

#endif
