/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * part.h - partitioned communication: what its two sides share.
 *
 * The sides find each other by one message, in the order of their init calls, in a context of the
 * communicator's own.  From then on a pair is a channel: each side has a number, by which the other
 * side's messages name it.
 *
 *   sender                              receiver
 *   init:  MATCH ---------------------> init posts a receive for it
 *                                       start: GO, once it is matched
 *   GO <------------------------------
 *   runs of ready partitions: HEAD ---> with their data, or DATA follows
 *
 * A run is neighbours that are ready, at most WEFT_MPI_PART_RUN bytes or one partition.  Small runs
 * travel together, their data behind the HEAD; larger ones as a message of their own, from the
 * user's buffer into the user's buffer.
 *
 * Owner     a side is the request's, and the match message's until that is over.  Its memory is kept for
 *           the next side, not given back: a thread may still be on its way out of MPI_Pready when
 *           another one has waited for the request and freed it.
 * Errors    a failed message ends the round on its side; so does a peer whose buffer has another size.
 */
#ifndef WEFT_MPI_PART_H
#define WEFT_MPI_PART_H

#include "data/type.h"
#include "mpi/mpi_int.h"

#define WEFT_MPI_PART_RUN (256u << 10) /* longer runs let the receiver see nothing for long */
#define WEFT_MPI_PART_INLINE 4096u     /* data behind a HEAD */
#define WEFT_MPI_PART_ITEMS 32u        /* runs in a HEAD */

struct weft_mpi_part_match {
	uint32_t chan, serial; /* of the sender */
	uint32_t parts;
	uint32_t sign; /* WEFT_CHECK: of all partitions together (comm/sign.h), or 0 */
	uint64_t part_bytes;
};

struct weft_mpi_part_go {
	uint32_t serial; /* from the match message: a side's number is used again */
	uint32_t chan;   /* of the receiver */
	int32_t err;     /* weft_err: the sizes differ */
	uint32_t zero;
};

struct weft_mpi_part_item {
	uint32_t first, n; /* the sender's partitions */
};

struct weft_mpi_part_head {
	uint32_t items;
	uint32_t follows; /* the data of the only item comes as DATA */
	struct weft_mpi_part_item item[];
};

#define WEFT_MPI_PART_HEAD_MAX                                                                     \
	(sizeof(struct weft_mpi_part_head) +                                                       \
	 WEFT_MPI_PART_ITEMS * sizeof(struct weft_mpi_part_item))

/* What a side's user gave. */
struct weft_mpi_part_data {
	struct weft_buf whole;
	uint32_t parts;
	size_t count; /* elements of a partition */
	size_t bytes; /* of its data */
};

/* First member of both sides. */
struct weft_mpi_part {
	struct weft_mpi_part *next; /* in the pool */
	_Atomic int x_refs;         /* the request, the match message */
	uint32_t chan;              /* I: of this process, for good */
	uint32_t serial;            /* how often it was used */
	uint32_t most;              /* I: partitions that it has room for */
	struct weft_mpi_part_data d;
	struct weft_ctx *match_ctx, *ctx;
	int peer; /* process; -1: MPI_PROC_NULL */
	int rank, tag;
	uint32_t sign;               /* WEFT_CHECK: of the data, or 0 */
	struct weft_completion done; /* of the round */
	_Atomic int x_err;           /* weft_err of the round: the first */
	/* Of the round: what is open.  1 while not all is posted, and 1 for each message under way. */
	_Atomic uint32_t x_open;
	struct weft_req match_req;
	struct weft_mpi_part_match match;
};

/* The tags of a side's messages in its context. */
static inline int weft_mpi_part_tag(uint32_t chan)
{
	return (int)(2 * chan);
}

static inline int weft_mpi_part_tag_data(uint32_t chan)
{
	return (int)(2 * chan + 1);
}

/* The data of n neighbours. */
static inline struct weft_buf weft_mpi_part_run(const struct weft_mpi_part_data *d, uint32_t first,
						uint32_t n)
{
	const char *base = d->whole.base;

	if (!d->whole.type)
		return weft_data_buf_flat(base + first * d->bytes, n * d->bytes);
	return (struct weft_buf){
		.base = (void *)(uintptr_t)(base + (ptrdiff_t)(first * d->count) *
							   weft_data_type_extent(d->whole.type)),
		.bytes = n * d->bytes,
		.type = d->whole.type,
		.count = n * d->count};
}

/* One thing less is open; the last ends the round. */
static inline void weft_mpi_part_drop(struct weft_mpi_part *s)
{
	/* CLOSE -> CLOSE.  Carries: what each message wrote, to the end of the round. */
	if (atomic_fetch_sub_explicit(&s->x_open, 1, memory_order_acq_rel) == 1)
		weft_wait_completion_signal(&s->done);
}

static inline void weft_mpi_part_add(struct weft_mpi_part *s)
{
	/* Relaxed: the caller's own keeps the round open. */
	atomic_fetch_add_explicit(&s->x_open, 1, memory_order_relaxed);
}

static inline void weft_mpi_part_fail(struct weft_mpi_part *s, weft_err err)
{
	int none = WEFT_OK;
	/* Relaxed: read after CLOSE. */
	atomic_compare_exchange_strong_explicit(&s->x_err, &none, err, memory_order_relaxed,
						memory_order_relaxed);
}

static inline bool weft_mpi_part_failed(struct weft_mpi_part *s)
{
	/* Relaxed: a hint, no more messages are begun. */
	return atomic_load_explicit(&s->x_err, memory_order_relaxed) != WEFT_OK;
}

/* ---- part.c ------------------------------------------------------------------------------- */

/* A pool of sides of one kind. */
struct weft_mpi_part_pool {
	struct weft_mpi_part *first; /* under part.c's lock */
	size_t bytes;                /* of a side */
	bool (*make)(struct weft_mpi_part *s);
	void (*unmake)(struct weft_mpi_part *s);
};

struct weft_mpi_part_args {
	const void *buf;
	int partitions;
	MPI_Count count;
	MPI_Datatype type;
	int rank, tag;
	struct weft_mpi_comm *comm;
};

/* A side for these arguments, and an inactive request for it. */
int weft_mpi_part_make(struct weft_mpi_part_pool *pool, const struct weft_mpi_part_args *a,
		       const struct weft_mpi_request_ops *ops, struct weft_mpi_part **s_p,
		       struct weft_mpi_request **r_p);
/* Drops a reference; any thread. */
void weft_mpi_part_unref(struct weft_mpi_part_pool *pool, struct weft_mpi_part *s);
/* Sends a small message to the other side; it is copied, and open until it is out. */
weft_err weft_mpi_part_send(struct weft_mpi_part *s, uint32_t to, const void *data, size_t len);
/* Before a round: nothing has failed, one thing is open. */
void weft_mpi_part_open(struct weft_mpi_part *s);

struct weft_completion *weft_mpi_part_wait_on(struct weft_mpi_request *r);
/* The round's error as MPI's. */
int weft_mpi_part_result(const struct weft_mpi_part *s);
void weft_mpi_part_pool_empty(struct weft_mpi_part_pool *pool);

/* At the end, when no side is in use. */
void weft_mpi_psends_fini(void);
void weft_mpi_precvs_fini(void);

#endif
