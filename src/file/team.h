/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * team.h - the members of an open file, and their collective accesses.
 *
 * A collective access first tells all members what each one does (info), from which all conclude the same
 * strategy: each moves its own part, or aggregators move stretches of the file and exchange data with the members.
 * At the end of a write, and of two phases, members tell each other how it went: an error is every member's.
 * Between, they confirm that each has heard of all: a member that has died may have told some of the others only, and these must
 * not go on without the rest.  A member whose part is short ranges of a mapped file, or long ones of a local one, moves it first, and
 * then tells how it went; where all do, that is all that they tell each other, and they agree that some reads that follow, more each
 * time, need no word at all, since a read fails alone.
 *
 * Accesses of one team run one after the other, in the order of their start, which is the same on all members.
 *
 * Callers   open, drop, start: an application thread; MPI makes start's order the same on all members.
 * Owner     the access is the library's from start until fn has been called, its last access.
 * Progress  by the completion of messages and requests, no call needed; copies are tasks.
 * Memory    what an access cannot do without is made by open, since the other members count on this one: one access
 *           runs at a time.  Where there is no memory for its data it goes on with empty messages, and fails on all members.
 */
#ifndef WEFT_FILE_TEAM_H
#define WEFT_FILE_TEAM_H

#include "coll/calls.h"
#include "comm/comm.h"
#include "file/op.h"
#include "file/strategy.h"
#include "file/view_wire.h"

/* How an access ends, beside errnos: some members read and others write. */
#define WEFT_FILE_MISMATCH 0x10001

#define WEFT_FILE_TAGS 8 /* one access's; its own number is the multiple */

struct weft_file_all;
struct weft_file_info;
struct weft_file_verdict;
struct weft_file_lane2;

struct weft_file_team {
	struct weft_coll_group group; /* I; of it, at hand: */
	void *shm; /* its ways through shared memory, apart from those of other calls on the file */
	int rank, size;       /* I */
	const int *peer;      /* I: rank -> process; NULL: itself */
	struct weft_ctx *ctx; /* I */
	int forced;           /* I: a strategy, or -1 */
	int aggregators;      /* I, with the ranks that are */
	int *aggregator;      /* I */
	uint64_t
		window; /* bytes that an aggregator moves at once, at most; the smallest of the members' counts */
	uint64_t call_ns;                    /* I: what a request of this file system costs */
	pthread_mutex_t lock;                /* of what follows */
	struct weft_file_all *first, **last; /* accesses in their order; the first one runs */
	/* The runner's: the access that is first. */
	char *view_sent; /* as encoded, what the aggregators have of this member */
	size_t view_sent_bytes;
	struct weft_file_view_copy *view;      /* at an aggregator: of each member */
	struct weft_file_info *info, *info_in; /* by rank; as they come */
	struct weft_file_verdict *verdict;
	struct weft_req *reqs; /* of what members tell each other, two for each; of views */
	char **view_in;        /* by rank */
	/* By write: of the view with that hash. */
	struct weft_file_learned learned[2];

	uint64_t learned_view, learned_number; /* 0: none */
	uint64_t last_lo, last_hi;             /* of the file: where the own last write was */
	bool local; /* I: of this host alone, behind the kernel's cache */
	/* So many reads are each member's own affair, as all have agreed; the same on all members. */
	unsigned alone, alone_next;
	uint64_t alone_view;          /* number of the view that it was agreed for */
	bool strayed;                 /* one of the own would better have been made together */
	struct weft_file_lane2 *lane; /* two_phase.c */
	unsigned lanes;
};

/* The aggregators are given by `is`: size flags.  The group's tag and memory are not used. */
int weft_file_team_open(struct weft_file_team *t, const struct weft_coll_group *g, const bool *is,
			const struct weft_file *f);
void weft_file_team_drop(struct weft_file_team *t);

/* What a member tells all others. */
struct weft_file_info {
	uint64_t lo, hi; /* of the file; lo == hi: nothing */
	uint64_t pos, bytes;
	uint64_t write;
	uint64_t ranges;     /* about */
	uint64_t view_bytes; /* that it sends to the aggregators now; 0: they have it */
	uint64_t window, call_ns;
	uint64_t map_ns;  /* its part by mapped pages; 0: not */
	uint64_t refused; /* it takes part with nothing, and the call fails on it */
	uint64_t odd;     /* its view cannot be cut by offsets */
	uint64_t
		done; /* it has nothing to move together with others: its part, if any, is over; so it went: */
	int64_t err;       /* errno */
	uint64_t at;       /* in the file */
	uint64_t alone;    /* the next reads may be each member's own affair */
	uint64_t ratio[2]; /* what it has learned */
};

/* How it went, of one member. */
struct weft_file_verdict {
	int64_t err;   /* errno */
	uint64_t at;   /* in the file: nothing behind it counts */
	uint64_t said; /* 0: the member is gone */
};

/* An allgather under way. */
struct weft_file_talk {
	char *all; /* item i is that of rank (rank + i) mod size */
	size_t item;
	int dist, tag;
	_Atomic int x_left;
	struct weft_req send, recv;
	void (*then)(struct weft_file_all *a);
};

struct weft_file_all {
	/* The caller's. */
	struct weft_file_team *team;
	struct weft_file_op *op; /* its file, view, buf, pos, write; how it ended: err, bytes */
	int tag;
	uint64_t view_number; /* the same on all members, another one for each view */
	int failed;           /* errno: this member takes part with nothing, and fails so */
	void (*fn)(struct weft_file_all *a); /* as a handler; NULL: `turn` is signalled */
	void *arg;
	/* Own. */
	struct weft_file_all *next;
	void (*moved)(struct weft_file_all *a); /* this member's data has been moved */
	struct weft_file_talk talk;
	enum weft_file_strategy strategy;
	uint64_t cost_ns, begin_ns; /* what it is to take; 0: not to be learned from */
	pthread_t caller;
	bool waits; /* the caller waits, and moves its part itself where each member does: */
	bool yours; /* its turn */
	bool tells; /* it is to tell the others, with its turn */
	bool lends; /* the caller may wait for the system as well: */
	struct weft_file_io *call; /* with its turn: to be made by it; else NULL */
	bool apart;                /* the own part goes straight, whatever the others do */
	bool alone;                /* and no member hears of it */
	uint64_t map_ns;
	struct weft_completion turn; /* it is over, or the caller's turn */
	uint64_t lo, hi, domain, domain_min, window;
	unsigned rounds;
	char *wire; /* the own view, where it was needed */
	size_t wire_bytes;
	_Atomic int x_left;   /* views, or lanes, under way */
	pthread_mutex_t lock; /* of what follows */
	int err;
	uint64_t err_at; /* in the file */
	uint64_t end;    /* reads: data from this position on is not there */
};

void weft_file_all_start(struct weft_file_all *a);
/* As start, and waits; fn is not called. */
void weft_file_all_run(struct weft_file_all *a);

/* A receive of the access; none once its members have ended it for a death (coll/calls.h). */
static inline weft_err weft_file_all_irecv(const struct weft_file_all *a, struct weft_req *req,
					   int peer, int tag, const struct weft_buf *in)
{
	if (weft_unlikely(weft_coll_ended(a->team->ctx, a->tag)))
		return WEFT_ERR_PEER;
	return weft_comm_core_irecv(req, a->team->ctx, peer, tag, in);
}

/* ---- tell.c ---- */
/* By messages: the items of all members come to `all`, which begins with this member's; then is called. */
void weft_file_tell(struct weft_file_all *a, int tag, void *all, size_t item,
		    void (*then)(struct weft_file_all *));
/*
 * t->info_in, by the thread that waits for the access, where the others' threads do so too.  False: not here, but by messages:
 * on all members, or a member is gone or in another call, which the messages find out.
 */
bool weft_file_tell_waiting(struct weft_file_all *a);
/* Of rank r in an array that begins with this member's. */
static inline int weft_file_team_place(const struct weft_file_team *t, int r)
{
	return (r - t->rank + t->size) % t->size;
}

/* ---- two_phase.c ---- */
/* The lanes; 0 or ENOMEM. */
int weft_file_lanes_open(struct weft_file_team *t);
void weft_file_lanes_drop(struct weft_file_team *t);
/* The second half, once all is agreed; ends with a->moved. */
void weft_file_two_phase(struct weft_file_all *a);
/* The access has failed here, at that place of the file; the first place counts. */
static inline void weft_file_all_fail(struct weft_file_all *a, int err, uint64_t at)
{
	pthread_mutex_lock(&a->lock);
	if (!a->err || at < a->err_at) {
		a->err = err;
		a->err_at = at;
	}
	pthread_mutex_unlock(&a->lock);
}

static inline int weft_file_team_process(const struct weft_file_team *t, int rank)
{
	return t->peer ? t->peer[rank] : rank;
}

#endif
