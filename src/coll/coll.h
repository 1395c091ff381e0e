/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll.h - collectives: a schedule of sends, receives, copies and reductions that advances by
 * itself.
 *
 * A schedule is built for one rank from the arguments of a collective, then started, once or (built
 * once, started often) again and again.  The completion of each of its messages starts what waited
 * for it, on the thread that noticed; no call is needed for that.  The exception are user's
 * operations: the schedule stops before them, signals `wake`, and goes on in advance().
 *
 * Callers   build, start, advance, free: an application thread, one at a time per schedule.
 * Owner     buffers belong to the schedule from start until it is finished; argument arrays only
 *           during build.  Layouts in the arguments are referenced by the schedule.
 * Progress  nothing blocks, except the functions named _wait.
 * Errors    a failed message fails the schedule, which still runs to its end, telling its peers by
 *           messages of the wrong length, so that no rank is left waiting.
 */
#ifndef WEFT_COLL_H
#define WEFT_COLL_H

#include "comm/comm.h"
#include "data/reduce.h"
#include "data/type.h"
#include "wait/completion.h"

struct weft_coll; /* a schedule */

/* The members, as one of them sees them. */
struct weft_coll_group {
	int rank, size;    /* of the local group */
	const int *peer;   /* its processes; NULL: rank r is process r */
	int remote_size;   /* of the other group of an intercommunicator; 0: there is none */
	const int *remote; /* its processes; NULL as above */
	struct weft_ctx *ctx;
	int tag;      /* of this collective: a multiple of WEFT_COLL_TAGS, equal on all members */
	bool crowded; /* more ranks than cores: prefer few wake-ups to few steps */
	bool apart;   /* in the job there are ranks that shared memory does not connect */
	/* What collectives through shared memory keep per communicator, NULL at first; NULL: no
	 * place for it.  When the communicator ends: weft_coll_shm_free(). */
	void **shm_p;
};

#define WEFT_COLL_TAGS 16

/* An operation: a kernel, or a user's function with what it needs. */
struct weft_coll_op {
	weft_reduce_fn *fn; /* NULL: user's */
	void (*user)(const struct weft_coll_op *op, const void *in, void *inout, size_t count);
	void *arg, *arg2;
	ptrdiff_t extent; /* of the user's datatype */
	bool commutative;
};

static inline void weft_coll_op_apply(const struct weft_coll_op *op, const void *in, void *inout,
				      size_t count)
{
	if (op->fn)
		op->fn(in, inout, count);
	else
		op->user(op, in, inout, count);
}

enum weft_coll_kind {
	WEFT_COLL_BARRIER,
	WEFT_COLL_BCAST,
	WEFT_COLL_GATHER,
	WEFT_COLL_GATHERV,
	WEFT_COLL_SCATTER,
	WEFT_COLL_SCATTERV,
	WEFT_COLL_ALLGATHER,
	WEFT_COLL_ALLGATHERV,
	WEFT_COLL_ALLTOALL,
	WEFT_COLL_ALLTOALLV,
	WEFT_COLL_ALLTOALLW,
	WEFT_COLL_REDUCE,
	WEFT_COLL_ALLREDUCE,
	WEFT_COLL_REDUCE_SCATTER,
	WEFT_COLL_REDUCE_SCATTER_BLOCK,
	WEFT_COLL_SCAN,
	WEFT_COLL_EXSCAN,
	WEFT_COLL_NEIGHBOR_ALLGATHER,
	WEFT_COLL_NEIGHBOR_ALLGATHERV,
	WEFT_COLL_NEIGHBOR_ALLTOALL,
	WEFT_COLL_NEIGHBOR_ALLTOALLV,
	WEFT_COLL_NEIGHBOR_ALLTOALLW,
	WEFT_COLL_FILE_WAITS, /* of a collective file access whose callers wait: as an allgather */
	WEFT_COLL_KIND_COUNT,
	/* Numbered with them, made elsewhere. */
	WEFT_COLL_FILE = WEFT_COLL_KIND_COUNT,
	/* One that has begun turns out to be either. */
	WEFT_COLL_FILE_TOLD,
	WEFT_COLL_FILE_ALONE, /* which no other member hears of */
};
/* Any number may be asked for. */
const char *weft_coll_kind_name(uint32_t kind);

#define WEFT_COLL_ROOT_NONE (-3) /* as MPI_PROC_NULL: of the root's group, but not it */
#define WEFT_COLL_ROOT_HERE (-4) /* as MPI_ROOT */

/* What a collective was called with; each kind reads what MPI defines for it. */
struct weft_coll_args {
	enum weft_coll_kind kind;
	bool in_place;
	int root;
	const void *sbuf; /* bcast: unused */
	void *rbuf;       /* bcast: the buffer */
	size_t scount, rcount;
	const struct weft_type *stype, *rtype;
	const int64_t *scounts, *rcounts;                      /* v and w */
	const intptr_t *sdispls, *rdispls;                     /* v: in extents, w: in bytes */
	const struct weft_type *const *stypes, *const *rtypes; /* w */
	struct weft_coll_op op;
	/* neighbourhoods: ranks of the local group, or negative for none */
	bool mirrored; /* Cartesian: what went out in direction 2k comes in from 2k + 1 */
	int sources, destinations;
	const int *source, *destination;
};

/* An empty schedule, from a pool.  NULL: no memory. */
struct weft_coll *weft_coll_new(void);
/* Gives it back; it must not be running. */
void weft_coll_free(struct weft_coll *c);

/* Fills c with the steps of this rank. */
weft_err weft_coll_build(struct weft_coll *c, const struct weft_coll_group *g,
			 const struct weft_coll_args *a) weft_must_use;

/* Starts it; it may be finished when this returns. */
void weft_coll_start(struct weft_coll *c);
/* What to wait for; then call advance. */
struct weft_completion *weft_coll_wait_on(struct weft_coll *c);
/* Runs what only an application thread may run.  True: finished. */
bool weft_coll_advance(struct weft_coll *c);
/* Of a finished schedule: the first thing that failed. */
weft_err weft_coll_result(const struct weft_coll *c);

/*
 * Small blocking collectives without a schedule.  WEFT_AGAIN: not such a case; else it is done.
 * May block.
 */
weft_err weft_coll_blocking(const struct weft_coll_group *g, const struct weft_coll_args *a);
/*
 * Before a collective that waits for messages, or starts (later): do the other members' calls match
 * it, as far as they have noted?  WEFT_ERR_TRUNC: no, and that has been reported.
 */
weft_err weft_coll_note(const struct weft_coll_group *g, enum weft_coll_kind kind,
			bool later) weft_must_use;
/* What its first blocking collective would make at shm_p; WEFT_ERR_NOMEM can then not come of one on this member alone. */
weft_err weft_coll_shm_prepare(const struct weft_coll_group *g) weft_must_use;
/* The group's members will not start another; not after weft_comm_stop(). */
void weft_coll_shm_free(void *shm);

#endif
