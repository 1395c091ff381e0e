/* SPDX-License-Identifier: BSD-3-Clause */
/* board_int.h - what the files share by which ranks meet in shared memory: board.c, board_make.c,
 * board_wait.c, feed.c, peer_reads.c. */
#ifndef WEFT_COLL_BOARD_INT_H
#define WEFT_COLL_BOARD_INT_H

#include "coll/alg.h"
#include "coll/shm/board.h"

/* Of peer_reads.c. */
struct weft_reads {
	unsigned state; /* calls so far, or what became of it */
	char *piece, *share;
	size_t room; /* of share */
};

#define WEFT_KEEP_NOTES 64 /* more than anybody gets ahead in turns */

/* What a member keeps. */
struct weft_keep {
	struct weft_board_slot *slot; /* NULL: none (yet) */
	unsigned uses;
	uint32_t turn;      /* of the board; WEFT_BOARD_FAILED: neither board nor feed any more */
	uint32_t feed_turn; /* and of the feed */
	uint32_t feed_down; /* of it: those that went down */
	uint32_t noted[WEFT_KEEP_NOTES]; /* our last notes, by number */
	int size;
	struct weft_reads reads;
	struct weft_stages *stages; /* of stage.c; NULL: none */
	struct weft_req req;        /* under way, one at a time; here, as stacks may be small */
};

static inline struct weft_keep *weft_coll_keep_of(const struct weft_coll_group *g)
{
	return *g->keep_p;
}

/* Of a collective, 23 bits. */
static inline uint32_t weft_coll_board_number(const struct weft_coll_group *g)
{
	return (uint32_t)g->tag / WEFT_COLL_TAGS & 0x7fffff;
}

/* ---- board_make.c: messages between members, of any tag; both block ---- */
weft_err weft_coll_board_send(const struct weft_coll_group *g, int rank, int tag, const void *data,
			      size_t bytes);
weft_err weft_coll_board_recv(const struct weft_coll_group *g, int peer, int tag, void *data,
			      size_t bytes);

/* ---- board_wait.c ---- */
/* As weft_coll_board_note, for the feed. */
void weft_coll_board_note_fed(const struct weft_coll_group *g, enum weft_coll_kind kind);
/* Sends to each member of the mask, who sleeps on a word, what ends that. */
void weft_coll_board_wake(const struct weft_coll_group *g, uint32_t sleepers);
/* The group will not meet any more: word for all who wait, wherever, and these sleepers. */
void weft_coll_board_give_up(const struct weft_coll_group *g, uint32_t sleepers);
/* Until `number` is posted.  ahead: no member gets past our collective before that.  WEFT_ERR_PEER:
 * it never will be, as a member is lost; _TRUNC: as the members' calls do not match, which we have
 * found and said. */
weft_err weft_coll_board_wait_for(const struct weft_coll_group *g, _Atomic uint64_t *x_word,
				  uint32_t number, bool ahead);

/* ---- peer_reads.c ---- */
void weft_coll_peer_reads_free(struct weft_reads *s);

#endif
