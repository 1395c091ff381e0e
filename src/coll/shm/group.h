/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * group.h - what a group does in shared memory: the memory that each process shows, what a member
 * keeps, and what the files of this folder offer each other.
 *
 * Ways      ring    small data, in a ring of phases in the first member's memory (ring.h)
 *           stages  larger data, piece by piece through memory that each member shows (stage.c)
 *           reads   still larger data, read out of each other's memory (peer_reads.c)
 * Agreed    once per way and communicator, the same on all members, in a collective that would
 *           take it (agree.c).  A way that turns out not to work is dropped by all in one meeting.
 * Callers   each member one thread at a time, as MPI demands of collectives.
 */
#ifndef WEFT_COLL_SHM_GROUP_H
#define WEFT_COLL_SHM_GROUP_H

#include "coll/alg.h"
#include "coll/shm/ring.h"
#include "coll/shm/shm.h"

#define WEFT_COLL_SHM_SLOTS 6
#define WEFT_COLL_SHM_STAGES 4
#define WEFT_COLL_SHM_PIECE 16384

struct weft_coll_slot {
	/* Whose it is: 0 free, 1 taken.  The owner takes it, the last member gives it back. */
	alignas(WEFT_CACHELINE) _Atomic uint32_t x_used;
	_Atomic uint32_t x_gone; /* members that will not come again */
	struct weft_coll_ring ring;
};

/* Memory of one member that it writes and all read; the two are used as the ring's areas. */
struct weft_coll_stage {
	alignas(WEFT_CACHELINE) _Atomic uint32_t x_used; /* as a slot's */
	alignas(WEFT_CACHELINE) char piece[2][WEFT_COLL_SHM_PIECE];
};

/* What each process shows. */
struct weft_coll_shm_memory {
	struct weft_coll_slot slot[WEFT_COLL_SHM_SLOTS];
	struct weft_coll_stage stage[WEFT_COLL_SHM_STAGES];
};

#define WEFT_COLL_SHM_NOTES 64 /* more phases than any member gets ahead */

/* What a member keeps per communicator. */
struct weft_coll_shm {
	unsigned have;  /* ways of the group, WEFT_COLL_SHM_...; the same on all members */
	unsigned asked; /* ways that the group has agreed on, for or against */
	unsigned calls,
		large_calls; /* collectives that would have taken the ring, or another way */
	weft_err failed;     /* a member is lost, or calls did not match: the ways are closed */

	int size;
	struct weft_coll_slot *slot;
	uint32_t phase; /* the next one of the ring */
	uint32_t heads; /* posts of x_head in phases before */
	uint32_t meets; /* meetings before: parity says which area and piece is written next */
	uint32_t signs; /* of them by signs */
	uint32_t noted[WEFT_COLL_SHM_NOTES];            /* our last notes, by number */
	alignas(16) char combined[WEFT_COLL_RING_AREA]; /* shown.c, for the length of a call */

	struct weft_coll_stage *stage[WEFT_COLL_RING_MEMBERS];
	struct weft_coll_reads *reads; /* of peer_reads.c */
	struct weft_req req;           /* under way, one at a time; here, as stacks may be small */
};

static inline struct weft_coll_shm *weft_coll_shm_of(const struct weft_coll_group *g)
{
	return *g->shm_p;
}

static inline struct weft_coll_ring *weft_coll_ring_of(const struct weft_coll_group *g)
{
	return &weft_coll_shm_of(g)->slot->ring;
}

/* Of a collective, 23 bits. */
static inline uint32_t weft_coll_number(const struct weft_coll_group *g)
{
	return (uint32_t)g->tag / WEFT_COLL_TAGS & 0x7fffff;
}

/* What a phase is about; not 0. */
static inline uint32_t weft_coll_what(enum weft_coll_kind kind, size_t bytes)
{
	weft_assert(bytes < 1 << 24);
	return ((uint32_t)kind + 1) << 24 | (uint32_t)bytes;
}

static inline const char *weft_coll_what_name(uint32_t what)
{
	return weft_coll_kind_name((what >> 24) - 1);
}

/* What this member gives in an allgather or alltoall. */
static inline struct weft_buf weft_coll_given(const struct weft_coll_group *g,
					      const struct weft_coll_args *a)
{
	size_t blocks = a->kind == WEFT_COLL_ALLTOALL ? (size_t)g->size : 1;
	if (!a->in_place)
		return weft_data_buf_typed(a->sbuf, a->scount * blocks, a->stype);
	if (a->kind == WEFT_COLL_ALLTOALL)
		return weft_data_buf_typed(a->rbuf, a->rcount * blocks, a->rtype);
	return weft_coll_view_buf(weft_coll_args_rblock(a, g->rank));
}

/* What is for this member of shares that lie there: member 0's at `shown`, each `apart` bytes behind the one
 * before, and in each `at` bytes behind its beginning. */
static inline void weft_coll_take(const struct weft_coll_group *g, const struct weft_coll_args *a,
				  const char *shown, size_t apart, size_t at)
{
	for (int r = 0; r < g->size; r++) {
		struct weft_buf to = weft_coll_view_buf(weft_coll_args_rblock(a, r));
		if (!a->in_place || r != g->rank || a->kind == WEFT_COLL_ALLTOALL)
			weft_data_unpack(&to, 0, shown + (size_t)r * apart + at, to.bytes);
	}
}

/* ---- wait.c ------------------------------------------------------------------------------- */
/*
 * Until `number` is posted.  ahead: no member gets past our collective before that.  WEFT_ERR_PEER:
 * it never will be, as a member is lost; _TRUNC: as the members' calls do not match.
 */
weft_err weft_coll_shm_wait(const struct weft_coll_group *g, _Atomic uint64_t *x_ec,
			    uint32_t number, bool ahead);
/* Posts and wakes. */
weft_err weft_coll_shm_post(const struct weft_coll_group *g, _Atomic uint64_t *x_ec,
			    uint32_t number);
/* Sends a wake-up to each member of the mask. */
void weft_coll_shm_wake(const struct weft_coll_group *g, uint32_t sleepers);
/* The caller is through with its phase. */
void weft_coll_shm_pass(const struct weft_coll_group *g);
/* Until the place of the caller's next phase is free; that is *p_p in any case. */
weft_err weft_coll_shm_begin(const struct weft_coll_group *g, struct weft_coll_ring_place **p_p);

/* Messages between members, of any tag; both block. */
weft_err weft_coll_shm_send(const struct weft_coll_group *g, int rank, int tag, const void *data,
			    size_t bytes);
weft_err weft_coll_shm_recv(const struct weft_coll_group *g, int peer, int tag, void *data,
			    size_t bytes);

/* ---- mismatch.c --------------------------------------------------------------------------- */
/* Notes which collective this member is in; in_ring: as one whose size asks for the ring, where
 * other sizes go by messages. */
void weft_coll_shm_note(const struct weft_coll_group *g, enum weft_coll_kind kind, bool in_ring);
/* The caller is about to sleep: its note once more, and that it sleeps, ordered before what it looks
 * at next; and it is awake again. */
void weft_coll_shm_note_sleep(const struct weft_coll_group *g);
void weft_coll_shm_note_awake(const struct weft_coll_group *g);
/*
 * The caller is about to wait for `number`.  True: another member is in a different collective than
 * we were under the same number, or (ahead) past ours; that is reported, and the group has failed.
 */
bool weft_coll_shm_mismatch(const struct weft_coll_group *g, _Atomic uint64_t *x_ec,
			    uint32_t number, bool ahead);
/* The group will not meet any more, for WEFT_COLL_EC_LOST or _MISMATCH: says so to all that wait,
 * wherever, and to these sleepers. */
void weft_coll_shm_give_up(const struct weft_coll_group *g, uint32_t why, uint32_t sleepers);
/* The caller's collective is `mine`, and its phase was about `theirs`, of the collective `number`.
 * WEFT_ERR_TRUNC: reported; unless both are over with this phase, the group has failed. */
weft_err weft_coll_shm_out_of_step(const struct weft_coll_group *g, uint32_t mine, uint32_t theirs,
				   uint32_t number);

/* ---- meet.c, signs.c ---------------------------------------------------------------------- */
/* All meet and mean the same `what`, not 0; no data. */
weft_err weft_coll_shm_meet(const struct weft_coll_group *g, uint32_t what);
/* The same by signs, for members with a core each; and the one of both that suits the group. */
weft_err weft_coll_shm_meet_by_signs(const struct weft_coll_group *g, uint32_t what);
weft_err weft_coll_shm_sync(const struct weft_coll_group *g, uint32_t what);
/* All meet; AND of all members' `mine`. */
weft_err weft_coll_shm_and(const struct weft_coll_group *g, enum weft_coll_kind kind, uint32_t mine,
			   uint32_t *all_p);
/* All meet; each shows `bytes` bytes, and gets those of all members, one after the other.  No more
 * than fit for each member (weft_coll_ring_area_share). */
weft_err weft_coll_shm_tell(const struct weft_coll_group *g, enum weft_coll_kind kind,
			    const void *mine, void *all, size_t bytes);

/* ---- peer_reads.c ------------------------------------------------------------------------- */
/* Can this member read from each other one?  Tried with a word.  Members call it together; no memory:
 * false. */
weft_err weft_coll_reads_try(const struct weft_coll_group *g, enum weft_coll_kind kind,
			     bool *can_p);
void weft_coll_reads_free(struct weft_coll_reads *r);

#endif
