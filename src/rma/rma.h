/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rma.h - one-sided communication: windows, accesses, locks, flush, post and wait.
 *
 * A window is memory of each member that all members reach.  How an access travels depends on the
 * target, and is fixed when the window is made (enum weft_rma_path).  The target's application
 * takes part in none of them.
 *
 * Callers   new .. ready, free: the members together, one thread each, in this order.
 *           accesses, locks, flush, post, complete: any thread; not a handler.
 * Blocking  functions named _wait, lock, flush, start and unlock may block, polling as waiters do.  An
 *           access blocks only where too many messages wait for the network.
 * Owner     a buffer belongs to the access until flush, or until its operation is done: an origin's until
 *           the local end, a result's until the whole end.  Argument layouts may go after the call.
 * Order     accumulates of one origin to one target take effect in the order of their calls.
 * Errors    WEFT_ERR_ARG: outside the target's memory.  WEFT_ERR_PEER: the target is gone.
 *
 * Source    MPI 5.0, chapter 12; what an epoch allows is checked above, in mpi/rma/.
 */
#ifndef WEFT_RMA_H
#define WEFT_RMA_H

#include "comm/comm.h"
#include "data/reduce.h"
#include "data/type.h"
#include "rma/direct.h"
#include "wait/completion.h"

struct weft_rma_win;

enum weft_rma_flavor {
	WEFT_RMA_CREATE,   /* memory of the caller's */
	WEFT_RMA_ALLOCATE, /* ours, shared on each host where that works */
	WEFT_RMA_SHARED,   /* the same, and an error where it does not */
	WEFT_RMA_DYNAMIC,  /* attached later */
};

enum weft_rma_path {
	WEFT_RMA_MAPPED, /* loads, stores and atomics of the origin */
	WEFT_RMA_COPY,   /* the kernel's copy between processes, by the origin */
	WEFT_RMA_OWED,   /* messages that the target's engine serves */
};

/* ---- making a window: each step's result goes to all members -------------------------------- */

struct weft_rma_conf {
	struct weft_ctx *am, *data; /* of this window alone; data counts up (WEFT_CTX_COUNTED) */
	int rank, size;
	const int *peer; /* the process of each rank; NULL: the same number.  Stays */
	enum weft_rma_flavor flavor;
	void *base; /* CREATE */
	uint64_t len;
	int64_t unit;
	bool contiguous; /* SHARED: the members' parts follow each other without a hole */
	bool threads;    /* several may access at once */
};

/* What a member says of itself; travels as it is. */
struct weft_rma_offer {
	uint64_t base, len;
	int64_t unit;
	uint64_t canary_at, canary;
	int32_t pid;
	uint16_t contiguous, bulk;
};

/* Where a host's shared memory is: what the first member of the host says. */
struct weft_rma_ticket {
	int32_t pid, fd;
	uint64_t bytes;
};

weft_err weft_rma_win_new(const struct weft_rma_conf *conf, struct weft_rma_win **win_p,
			  struct weft_rma_offer *mine) weft_must_use;
/* all: the offers by rank; stays until ready. */
void weft_rma_win_share(struct weft_rma_win *win, const struct weft_rma_offer *all,
			struct weft_rma_ticket *mine);
/* False: this member cannot reach the host's memory, or has none for its part. */
bool weft_rma_win_map(struct weft_rma_win *win, const struct weft_rma_ticket *all);
/* mapped: what map answered, by rank.  WEFT_ERR_UNSUPPORTED: SHARED, and not all could. */
weft_err weft_rma_win_ready(struct weft_rma_win *win, const int32_t *mapped) weft_must_use;
/* The member's last flush, of all: no message of its is under way to the others after it. */
weft_err weft_rma_win_settle(struct weft_rma_win *win) weft_must_use;
/* After a failure, or when every member has settled. */
void weft_rma_win_free(struct weft_rma_win *win);

/* Windows that the program did not free take no messages any more; at the end. */
void weft_rma_end(void);

/* A peer of core is gone; from progress. */
void weft_rma_peer_down(struct weft_core *core, int peer);
/* Is a peer of core member of a window, whose answers may be awaited? */
bool weft_rma_peer_known(struct weft_core *core, int peer);

/* ---- asking --------------------------------------------------------------------------------- */

void *weft_rma_base(const struct weft_rma_win *win); /* own memory */
uint64_t weft_rma_len(const struct weft_rma_win *win, int rank);
int64_t weft_rma_unit(const struct weft_rma_win *win, int rank);
enum weft_rma_path weft_rma_path(const struct weft_rma_win *win, int rank);
/* Where rank's memory lies here; NULL: it is not mapped. */
void *weft_rma_mapped(const struct weft_rma_win *win, int rank);
/* By rank; as long as the window.  NULL until ready. */
const struct weft_rma_direct *weft_rma_direct(const struct weft_rma_win *win);
/* Are accumulates atomics of the CPU, so that loads and stores see them whole? */
bool weft_rma_cpu_atomics(const struct weft_rma_win *win);

/* DYNAMIC.  WEFT_ERR_ARG: overlaps what is attached / was not attached. */
weft_err weft_rma_attach(struct weft_rma_win *win, void *base, uint64_t len) weft_must_use;
weft_err weft_rma_detach(struct weft_rma_win *win, const void *base) weft_must_use;

/* ---- accesses ------------------------------------------------------------------------------- */

/* For an access that is waited for alone; init before, done when its parts are over. */
struct weft_rma_op {
	struct weft_completion done;
	_Atomic uint32_t x_left;
	_Atomic int x_err;
};

void weft_rma_op_init(struct weft_rma_op *op);
/* The call is over: the operation is done when its parts are. */
void weft_rma_op_started(struct weft_rma_op *op);

/* Bytes at rank's memory: `count` elements of type (NULL: bytes) from `at` bytes behind its base; DYNAMIC: an
 * address. */
struct weft_rma_there {
	int rank;
	int64_t at;
	size_t count;
	const struct weft_type *type;
	size_t bytes; /* of data */
};

/* op may be NULL: flush tells. */
weft_err weft_rma_put(struct weft_rma_win *win, const struct weft_buf *from,
		      const struct weft_rma_there *there, struct weft_rma_op *op) weft_must_use;
weft_err weft_rma_get(struct weft_rma_win *win, const struct weft_buf *to,
		      const struct weft_rma_there *there, struct weft_rma_op *op) weft_must_use;

struct weft_rma_reduction {
	enum weft_op op;
	unsigned elem; /* enum weft_basic, or a pair: what both sides consist of */
};

/* result may be NULL: an accumulate that fetches nothing.  from is not looked at for NO_OP. */
weft_err weft_rma_accumulate(struct weft_rma_win *win, const struct weft_buf *from,
			     const struct weft_buf *result, const struct weft_rma_there *there,
			     struct weft_rma_reduction red, struct weft_rma_op *op) weft_must_use;
/* One element of 1 to 16 bytes. */
weft_err weft_rma_compare_swap(struct weft_rma_win *win, const void *value, const void *compare,
			       void *result, unsigned elem,
			       const struct weft_rma_there *there) weft_must_use;

/* ---- synchronisation ------------------------------------------------------------------------ */

/* Everything that this process has started is over here (local), and at rank (flush). */
weft_err weft_rma_flush(struct weft_rma_win *win, int rank) weft_must_use;
weft_err weft_rma_flush_all(struct weft_rma_win *win) weft_must_use;
weft_err weft_rma_flush_local(struct weft_rma_win *win, int rank) weft_must_use;
weft_err weft_rma_flush_local_all(struct weft_rma_win *win) weft_must_use;

weft_err weft_rma_lock(struct weft_rma_win *win, int rank, bool exclusive) weft_must_use;
/* For an observer: the word of rank's lock, whose high half is the rank of its exclusive holder + 1; NULL: not in
 * this process's memory. */
const _Atomic uint64_t *weft_rma_lock_word(const struct weft_rma_win *win, int rank);
/* After flush. */
void weft_rma_unlock(struct weft_rma_win *win, int rank, bool exclusive);

/* Tells rank that it may access this member; waits until rank[0..n) have said so. */
weft_err weft_rma_post(struct weft_rma_win *win, int rank) weft_must_use;
weft_err weft_rma_post_wait(struct weft_rma_win *win, const int *rank, int n) weft_must_use;
/* Tells rank, after flush, that the accesses are over; waits until rank[0..n) have said so. */
weft_err weft_rma_complete(struct weft_rma_win *win, int rank) weft_must_use;
weft_err weft_rma_complete_wait(struct weft_rma_win *win, const int *rank, int n) weft_must_use;
bool weft_rma_complete_test(struct weft_rma_win *win, const int *rank, int n);

/* Each member has so many notifications: counts, from 0 on. */
#define WEFT_RMA_NOTES 64

/* Notification `note` of rank counts one more, once all puts and accumulates to rank that the caller has started
 * lie there.  If one of them was refused there, it does not count. */
weft_err weft_rma_note(struct weft_rma_win *win, int rank, unsigned note) weft_must_use;
/* Takes n off the own count; waits until it is that high.  rank: WEFT_ERR_PEER if that member is lost meanwhile;
 * WEFT_ANY_PEER: if any is. */
weft_err weft_rma_note_wait(struct weft_rma_win *win, unsigned note, uint64_t n,
			    int rank) weft_must_use;
/* True: taken.  Never waits. */
bool weft_rma_note_test(struct weft_rma_win *win, unsigned note, uint64_t n);

/* Do fences go through memory that all members share?  If so: waits, after flush, until all have come. */
bool weft_rma_fences(const struct weft_rma_win *win);
weft_err weft_rma_fence(struct weft_rma_win *win) weft_must_use;

#endif
