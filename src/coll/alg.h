/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alg.h - the algorithms: each adds the steps of one collective, or of a part of one, for this
 * rank.
 *
 * A part takes `after`, the step before which it must not begin (-1: none), and returns the step
 * after which its result is there, or -1 when there is nothing to wait for.
 */
#ifndef WEFT_COLL_ALG_H
#define WEFT_COLL_ALG_H

#include "base/assert.h"
#include "coll/sched.h"

/* count elements of t at base. */
struct weft_view {
	char *base;
	size_t count;
	const struct weft_type *t;
};

static inline struct weft_view weft_coll_view(const void *base, size_t count,
					      const struct weft_type *t)
{
	return (struct weft_view){.base = (char *)(uintptr_t)base, .count = count, .t = t};
}

/* n elements from element i on. */
static inline struct weft_view weft_coll_view_part(struct weft_view v, size_t i, size_t n)
{
	return weft_coll_view(v.base + (ptrdiff_t)i * weft_data_type_extent(v.t), n, v.t);
}

static inline struct weft_buf weft_coll_view_buf(struct weft_view v)
{
	return weft_data_buf_typed(v.base, v.count, v.t);
}

static inline size_t weft_coll_view_bytes(struct weft_view v)
{
	return v.count * v.t->size;
}

/* Scratch memory laid out like count elements of t. */
struct weft_view weft_coll_view_scratch(struct weft_coll *c, size_t count,
					const struct weft_type *t);

static inline int weft_coll_process(const struct weft_coll_group *g, int rank)
{
	weft_assert(rank >= 0 && rank < g->size);
	return g->peer ? g->peer[rank] : rank;
}

static inline int weft_coll_remote(const struct weft_coll_group *g, int rank)
{
	weft_assert(rank >= 0 && rank < g->remote_size);
	return g->remote ? g->remote[rank] : rank;
}

/* Messages to and from a rank of the local group, in phase `tag` of the collective. */
static inline int weft_coll_alg_send(struct weft_coll *c, const struct weft_coll_group *g, int rank,
				     int tag, struct weft_buf buf, int after)
{
	return weft_coll_sched_send(c, weft_coll_process(g, rank), g->tag + tag, buf, after);
}

static inline int weft_coll_alg_recv(struct weft_coll *c, const struct weft_coll_group *g, int rank,
				     int tag, struct weft_buf buf, int after)
{
	return weft_coll_sched_recv(c, weft_coll_process(g, rank), g->tag + tag, buf, after);
}

/* Copies unless both are the same place. */
int weft_coll_alg_copy(struct weft_coll *c, struct weft_view to, struct weft_view from, int after);

/*
 * A member that has failed sends a sign instead of its message, of a length that the message does
 * not have: a byte, which says whether for calls that do not match; nothing, instead of a byte.
 * Signals are received into a byte for that.
 */
static inline size_t weft_coll_sign_bytes(size_t bytes)
{
	return bytes == 1 ? 0 : 1;
}

static inline struct weft_buf weft_coll_sign_of(weft_err err, size_t bytes)
{
	static const char sign[2] = {0, 1};
	return weft_data_buf_flat(&sign[err == WEFT_ERR_TRUNC], weft_coll_sign_bytes(bytes));
}

/*
 * What the status of a receive into `buf` says; sign: what came if that is empty.  WEFT_ERR_PEER: a
 * member has failed; _TRUNC: the members' calls do not match.
 */
static inline weft_err weft_coll_judge(const struct weft_status *st, const struct weft_buf *buf,
				       char sign)
{
	if (st->err) /* cancelled: as calls do not match (calls.h), or with the communicator */
		return st->cancelled ? WEFT_ERR_TRUNC : st->err;
	if (weft_unlikely(st->bytes == weft_coll_sign_bytes(buf->bytes))) {
		if (buf->bytes)
			sign = 0;
		if (st->bytes && buf->bytes)
			weft_data_pack(buf, 0, &sign, 1);
		return sign ? WEFT_ERR_TRUNC : WEFT_ERR_PEER;
	}
	return weft_unlikely(!st->bytes && buf->bytes) ? WEFT_ERR_TRUNC : WEFT_OK;
}

/* Phases: the tags of the parts, so that parts of one collective never mix. */
enum {
	WEFT_TAG_UP,     /* towards a root */
	WEFT_TAG_DOWN,   /* from a root */
	WEFT_TAG_ACROSS, /* between equals, or between two groups */
	WEFT_TAG_SPREAD, /* allgather */
	WEFT_TAG_FOLD,   /* ranks beyond a power of two, in */
	WEFT_TAG_UNFOLD, /* and out */
	WEFT_TAG_EDGE,   /* + 0 .. 7: neighbourhoods, by direction; allgather between neighbours */
	WEFT_TAG_AGREE = 14, /* shm/agree.c */
	WEFT_TAG_WAKE = 15,  /* to a sleeper in shared memory, whatever collective it is in */
};

/* The communicator of ctx, in such a message. */
const char *weft_coll_comm_name(struct weft_ctx *ctx);
/* One line: the calling rank's collective met a message that is not of it, from that process. */
void weft_coll_report_stray(struct weft_ctx *ctx, enum weft_coll_kind kind, int tag, int process)
	__attribute__((cold));

/* Is that the status of a message that is no part of the collective, nor a sign of a failure? */
static inline bool weft_coll_is_stray(weft_err judged, const struct weft_status *st,
				      const struct weft_buf *buf)
{
	return judged == WEFT_ERR_TRUNC && !st->cancelled &&
	       (st->err || st->bytes != weft_coll_sign_bytes(buf->bytes));
}

/* ---- bcast.c ---- */
/* Does the root serve all members itself, without a tree? */
bool weft_coll_alg_flat(const struct weft_coll_group *g);
/* Synchronises the local group; buf is empty. */
int weft_coll_alg_barrier(struct weft_coll *c, const struct weft_coll_group *g, int after);
int weft_coll_alg_bcast(struct weft_coll *c, const struct weft_coll_group *g, struct weft_view v,
			int root, int after);
/* Signals up to rank 0 / down from it: halves of a barrier. */
int weft_coll_alg_signal_up(struct weft_coll *c, const struct weft_coll_group *g, int after);
int weft_coll_alg_signal_down(struct weft_coll *c, const struct weft_coll_group *g, int after);

/* ---- reduce.c ---- */
/* Does the root combine all contributions itself? */
bool weft_coll_alg_reduce_flat(const struct weft_coll_group *g, size_t bytes);
/* `from` is this rank's contribution and is not changed; the result goes to `to` on root only (to
 * is not looked at elsewhere, and may be the same place as from). */
int weft_coll_alg_reduce(struct weft_coll *c, const struct weft_coll_group *g,
			 struct weft_view from, struct weft_view to, int root, int after);
int weft_coll_alg_allreduce(struct weft_coll *c, const struct weft_coll_group *g,
			    struct weft_view from, struct weft_view to, int after);
/* Block r of `from`, at[r] .. at[r+1], goes reduced to rank r; `to` holds this rank's block. */
int weft_coll_alg_reduce_scatter(struct weft_coll *c, const struct weft_coll_group *g,
				 struct weft_view from, const size_t *at, struct weft_view to,
				 int after);
/* ---- scan.c ---- */
int weft_coll_alg_scan(struct weft_coll *c, const struct weft_coll_group *g, struct weft_view from,
		       struct weft_view to, bool exclusive);

/* ---- gather.c ---- */
/* Equal blocks: `all` (size * count elements) is looked at on root only.  own NULL: it is in place
 * already. */
int weft_coll_alg_gather(struct weft_coll *c, const struct weft_coll_group *g,
			 const struct weft_view *own, struct weft_view all, size_t count, int root,
			 int after);
int weft_coll_alg_scatter(struct weft_coll *c, const struct weft_coll_group *g,
			  struct weft_view all, size_t count, const struct weft_view *own, int root,
			  int after);
/* ---- allgather.c ---- */
/* blocks[r] is the place of rank r's block on this rank; own NULL: it is in place already. */
int weft_coll_alg_allgather(struct weft_coll *c, const struct weft_coll_group *g,
			    const struct weft_view *own, const struct weft_view *blocks, int after);

/* ---- whole collectives, by kind; called by build.c ---- */
typedef void weft_alg_fn(struct weft_coll *c, const struct weft_coll_group *g,
			 const struct weft_coll_args *a);
weft_alg_fn weft_coll_build_gather, weft_coll_build_scatter, weft_coll_build_allgather,
	weft_coll_build_alltoall, weft_coll_build_neighbor, weft_coll_build_inter;

/* The places of the blocks that (base, counts or count, displs, types or type) describe. */
struct weft_view weft_coll_args_sblock(const struct weft_coll_args *a, int i);
struct weft_view weft_coll_args_rblock(const struct weft_coll_args *a, int i);

#endif
