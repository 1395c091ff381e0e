/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm.h - blocking collectives through shared memory, for groups whose members are all on one host;
 * what the rest of coll/ sees of this folder.
 *
 * Callers   one thread at a time per group.  All functions may block.
 * Errors    WEFT_ERR_PEER: a member is lost.  WEFT_ERR_TRUNC: the members' calls do not match.  Both
 *           end the group's ways through shared memory.  WEFT_AGAIN: on all members, nothing has
 *           happened, take another way.
 */
#ifndef WEFT_COLL_SHM_SHM_H
#define WEFT_COLL_SHM_SHM_H

#include "coll/coll.h"

/* Ways through shared memory, as group.h explains them. */
enum {
	WEFT_COLL_SHM_RING = 1,
	WEFT_COLL_SHM_STAGE = 2,
	WEFT_COLL_SHM_READ = 4,
	WEFT_COLL_SHM_ALL = 7,
};

/*
 * The ways that this group has agreed on.  needs: what the caller's collective would take.  The
 * first collectives that need a way go without it; then all members agree on it, by messages.  All
 * members must ask in the same collectives for the same.
 */
weft_err weft_coll_shm_open(const struct weft_coll_group *g, enum weft_coll_kind kind,
			    unsigned needs, unsigned *have_p);

/* Bytes for each of n members that there is room for. */
size_t weft_coll_shm_scatter_max(int n);
size_t weft_coll_shm_gather_max(int n);
size_t weft_coll_shm_meet_max(int n);

/* ---- WEFT_COLL_SHM_RING: what a member gives, or gets, is at most that long ---- */
weft_err weft_coll_shm_barrier(const struct weft_coll_group *g, const struct weft_coll_args *a);
/* By a predefined operation, on data without holes; so all that combine. */
weft_err weft_coll_shm_allreduce(const struct weft_coll_group *g, const struct weft_coll_args *a);
weft_err weft_coll_shm_allgather(const struct weft_coll_group *g, const struct weft_coll_args *a);
weft_err weft_coll_shm_alltoall(const struct weft_coll_group *g, const struct weft_coll_args *a);
/* Any length, in as many phases as that takes. */
weft_err weft_coll_shm_bcast(const struct weft_coll_group *g, const struct weft_coll_args *a);
weft_err weft_coll_shm_scatter(const struct weft_coll_group *g, const struct weft_coll_args *a);
weft_err weft_coll_shm_reduce(const struct weft_coll_group *g, const struct weft_coll_args *a);
weft_err weft_coll_shm_gather(const struct weft_coll_group *g, const struct weft_coll_args *a);

/* The same for members with a core each. */
weft_err weft_coll_shown_allreduce(const struct weft_coll_group *g, const struct weft_coll_args *a);
weft_err weft_coll_shown_allgather(const struct weft_coll_group *g, const struct weft_coll_args *a);
weft_err weft_coll_shown_alltoall(const struct weft_coll_group *g, const struct weft_coll_args *a);

/* ---- WEFT_COLL_SHM_STAGE: any length ---- */
weft_err weft_coll_stage_allgather(const struct weft_coll_group *g, const struct weft_coll_args *a);
weft_err weft_coll_stage_alltoall(const struct weft_coll_group *g, const struct weft_coll_args *a);
weft_err weft_coll_stage_allreduce(const struct weft_coll_group *g, const struct weft_coll_args *a);

/* ---- WEFT_COLL_SHM_READ: not in place for alltoall; allreduce of an element per member or more ----
 */
weft_err weft_coll_read_alltoall(const struct weft_coll_group *g, const struct weft_coll_args *a);
weft_err weft_coll_read_allreduce(const struct weft_coll_group *g, const struct weft_coll_args *a);

#endif
