/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * limits.h - where one algorithm takes over from another, all in one place.
 *
 * Numbers of ranks come in pairs: usual / with more ranks than cores, where a message costs a turn
 * on a core, so that few messages one after the other count more than few messages in all.  Sizes
 * are bytes of one rank's data.  Those that machines differ in are settings; they must be the same
 * on all ranks.  Measure with `weft bench coll`.
 */
#ifndef WEFT_COLL_LIMITS_H
#define WEFT_COLL_LIMITS_H

#include "base/settings.h"
#include "coll/coll.h"

enum {
	/* Up to so many ranks a root serves each one itself: each of them then wakes once, and a
	 * hop through a rank that sleeps costs more (5 us and up) than a few sends (0.2 us each).
	 */
	WEFT_LIMIT_FLAT_RANKS = 8,
	WEFT_LIMIT_FLAT_RANKS_CROWDED = 32,

	/* Up to so many ranks each sends its block to each other directly: one step, no block
	 * travels twice.  Beyond: Bruck's doubling while all blocks together are small, else a
	 * ring. */
	WEFT_LIMIT_DIRECT_RANKS = 16,
	WEFT_LIMIT_DIRECT_RANKS_CROWDED = 64,
	/* More ranks than cores, a network in between, and more ranks than this: through a root,
	 * which sees few messages, while what it passes on is at most so many bytes for each. */
	WEFT_LIMIT_DIRECT_RANKS_ROOT = 2,
	WEFT_LIMIT_ALLGATHER_ROOT_BYTES = 64 * 1024,
	WEFT_LIMIT_ALLTOALL_ROOT_BYTES = 16 * 1024,
	/* With more ranks than that, blocks of allgather from here on go from neighbour to
	 * neighbour: no fewer bytes, but two connections for each rank instead of n - 1, and two
	 * messages under way instead of all at once.  With 4 ranks that is the same. */
	WEFT_LIMIT_NEIGHBOR_RANKS = 6,
	WEFT_LIMIT_NEIGHBOR_BYTES = 32 * 1024,
	/* Beyond a root's ranks, and all blocks together small: fewer messages win earlier. */
	WEFT_LIMIT_DIRECT_RANKS_SMALL = 8,
	WEFT_LIMIT_DIRECT_BYTES_SMALL = 4096,
	WEFT_LIMIT_ALLGATHER_BRUCK_BYTES = 65536,

	/* Alltoall: Bruck's algorithm sends each block log2(n)/2 times but only log2(n) messages.
	 */
	WEFT_LIMIT_ALLTOALL_BRUCK_RANKS = 33,
	WEFT_LIMIT_ALLTOALL_BRUCK_BYTES = 256,

	/* Gather, scatter: a tree saves the root messages but copies blocks at every hop. */
	WEFT_LIMIT_TREE_RANKS = 9,
	WEFT_LIMIT_TREE_RANKS_CROWDED = 65,
	WEFT_LIMIT_TREE_BYTES = 2048,

	/* A reduction to one of two ranks is not shared out from here on: half of the data would
	 * come twice, once to be combined and once combined, and a copy costs more than to combine.
	 * Below, halves that go without asking win. */
	WEFT_LIMIT_REDUCE_PAIR_BYTES = 32 * 1024,

	/* More ranks than cores, shared memory: a blocking allgather, allreduce or alltoall of what
	 * a rank gives, up to so many bytes, goes in pieces of 16 KiB (shm/stage.c).  Each takes a
	 * meeting of all, two for allreduce, and so a turn on a core of each rank, later where
	 * other work shares the cores: 16 of them at most.  Alltoall copies everything twice that
	 * way instead of once: 4. */
	WEFT_LIMIT_STAGE_ALLGATHER = 256 * 1024,
	WEFT_LIMIT_STAGE_ALLREDUCE = 128 * 1024,
	WEFT_LIMIT_STAGE_ALLTOALL = 64 * 1024,
	/* With a core for each rank allreduce alone, from where it is shared out: two ranks need half
	 * the messages' time for 64 KiB, two thirds for 128 KiB, the same for 512 KiB. */
	WEFT_LIMIT_STAGE_ALLREDUCE_FREE = 512 * 1024,

	/* More ranks than cores, shared memory: a blocking alltoall of blocks from here on, and an
	 * allreduce of more than is staged, read from each other's memory (shm/peer_reads.c): a read costs
	 * 2 us before its first byte, less than turns on a core for a message, which for small
	 * ones only the receiver needs.  Up to so many bytes that a rank gives: a waiter of
	 * longer than messages would take sleeps, and a core may be left idle by then. */
	WEFT_LIMIT_READ_ALLTOALL = 16 * 1024,
	WEFT_LIMIT_READ = 1024 * 1024,

	/* More ranks than cores, shared memory: a blocking broadcast up to here goes in phases of
	 * 432 bytes (shm/ring.h).  A message of its own for each rank costs the root 0.1 us and more, a
	 * phase for all of them about 0.2; beyond three phases messages, which copy more at once, are
	 * as quick. */
	WEFT_LIMIT_RING_BCAST = 1024,

	/* A core for each rank, shared memory: up to so many ranks a small blocking allreduce is combined by
	 * each rank from what all show (shm/shown.c).  With more, doubling reads fewer lines. */
	WEFT_LIMIT_SHOWN_RANKS = 4,

	/* A blocking broadcast up to here needs no schedule; a larger one waits for its receivers,
	 * and a schedule serves all at once. */
	WEFT_LIMIT_STEPS_BCAST = 4096,
};

/* Do blocking collectives go through shared memory, where the group's members share a host? */
static inline bool weft_coll_limit_shm(const struct weft_coll_group *g)
{
	const char *how = weft_setting_str(WEFT_SET_COLL_SHM); /* auto, on, off */
	return how[0] == 'a' ? g->crowded : how[1] == 'n';
}

/* Do barriers and small ones that collect go through its ring?  With a core for each rank, too, where the job
 * needs no network: a giver writes its share and counts itself, and nothing is matched; where all
 * meet, they tell each other by signs. */
static inline bool weft_coll_limit_ring(const struct weft_coll_group *g)
{
	const char *how = weft_setting_str(WEFT_SET_COLL_SHM); /* auto, on, off */
	return weft_coll_limit_shm(g) || (how[0] == 'a' && !g->apart);
}

/* Do small allgather and alltoall go through a root?  Not over shared memory: there is the ring.
 */
static inline bool weft_coll_limit_rooted(const struct weft_coll_group *g)
{
	return g->crowded && g->apart && g->size > WEFT_LIMIT_DIRECT_RANKS_ROOT &&
	       g->size <= WEFT_LIMIT_FLAT_RANKS_CROWDED;
}

/* And larger blocks of allgather only between ranks side by side? */
static inline bool weft_coll_limit_neighbors(const struct weft_coll_group *g, size_t block)
{
	return weft_coll_limit_rooted(g) && block >= WEFT_LIMIT_NEIGHBOR_BYTES &&
	       g->size >= WEFT_LIMIT_NEIGHBOR_RANKS && g->size % 2 == 0;
}

/* Broadcast from here on is a scatter and an allgather: the root sends everything once instead of
 * once per child. */
static inline size_t weft_coll_limit_bcast_split(void)
{
	return (size_t)weft_setting_int(WEFT_SET_COLL_SPLIT);
}

/* Reductions from here on: every rank reduces its share of the vector, then the shares are
 * collected; no element travels more than twice.  Below: trees and doubling, few messages. */
static inline size_t weft_coll_limit_reduce_share(const struct weft_coll_group *g)
{
	return (size_t)weft_setting_int(g->crowded ? WEFT_SET_COLL_SHARE_CROWDED
					: g->apart ? WEFT_SET_COLL_SHARE_NET
						   : WEFT_SET_COLL_SHARE);
}

/* With more ranks than cores, up to here a root combines all contributions itself; it keeps all of
 * them until the last is there. */
static inline size_t weft_coll_limit_reduce_flat(void)
{
	return (size_t)weft_setting_int(WEFT_SET_COLL_FLAT);
}

#endif
