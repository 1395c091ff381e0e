/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * win_int.h - a window as the files of this folder see it.
 *
 * Letters   I: fixed when the window is ready.  L: under the window's lock.  x_: atomic.
 */
#ifndef WEFT_RMA_WIN_INT_H
#define WEFT_RMA_WIN_INT_H

#include <sys/types.h>
#include "base/assert.h"
#include "comm/lock.h"
#include "rma/attached.h"
#include "rma/page.h"
#include "rma/rma.h"
#include "rma/told.h"
#include "rma/quantum.h"
#include "rma/wire.h"

struct weft_rma_early; /* inbox.c: a message that came before its turn */

/* A member, as this process sees it: as a target of accesses, and as an origin of what it serves. */
struct weft_rma_target {
	uint64_t base, len; /* I: in the target's own address space */
	int64_t unit;       /* I */
	char *map;          /* I: MAPPED: where base lies here */
	pid_t pid;          /* I: COPY */
	enum weft_rma_path path;
	struct weft_rma_slot *slot; /* I: its locks; NULL: on another host, by messages */
	_Atomic uint8_t
		*x_shared; /* I: with slot: which members of the host hold its lock together */
	int place;         /* I: its number on this host; -1: its locks are asked for by messages */
	struct weft_rma_queue queue; /* of those on this host that look for its lock to be free */
	_Atomic bool x_lost;         /* its process is gone */
	struct weft_rma_attached *attached; /* I: DYNAMIC, on this host; else NULL */
	/* epochs: what it tells us and we tell it; by messages: told is told_apart, tells NULL */
	struct weft_rma_told *told, *tells; /* I */
	struct weft_rma_told told_apart;
	_Atomic uint64_t *x_notes; /* I: its notifications; NULL: counted by messages (note.c) */
	uint32_t posts, completes; /* of told, used; the program orders its epochs */
	/* as a target */
	_Atomic bool x_asked;       /* owed accesses that no flush has asked for */
	_Atomic bool x_woken;       /* a WAKE was sent to it, and may be under way */
	_Atomic uint32_t x_seq;     /* messages whose order counts */
	_Atomic uint32_t x_pending; /* parts of accesses that are not over here */
	/* Does a flush follow each message?  (sync.c)  Hints: how often in a row, and x_seq at the last one. */
	_Atomic uint32_t x_flush_streak, x_flush_seq;
	_Atomic int x_err; /* the first error since the last flush */
	/* as an origin */
	uint32_t expected;            /* L: the message that is next */
	bool busy;                    /* L: a thread serves it */
	struct weft_rma_early *early; /* L: by number */
	uint32_t coming;              /* L: large puts under way */
	uint32_t n_flushes;           /* L: flushes and notes that wait for them */
	struct weft_rma_behind *flush;
	weft_err served;  /* L: the first error since its last flush */
	uint8_t far_lock; /* L: what it holds of our lock without mapping it: enum weft_rma_far */
};

/* What waits until large puts have come: a flush, which is answered, or a note, which is counted. */
struct weft_rma_behind {
	uint32_t id;
	bool note;
};

enum weft_rma_far { WEFT_RMA_FAR_NONE, WEFT_RMA_FAR_SHARED, WEFT_RMA_FAR_EXCLUSIVE };

struct weft_rma_range { /* L: of a dynamic window */
	struct weft_rma_range *next;
	uint64_t base, len;
};

struct weft_rma_coming; /* serve.c */
struct weft_rma_waiter; /* wait.c */
struct weft_rma_lock_request;

#define WEFT_RMA_RECEIVES 4

struct weft_rma_receive { /* inbox.c */
	struct weft_rma_win *win;
	struct weft_req req;
	_Atomic int x_state;
	alignas(16) char data[WEFT_RMA_MESSAGE_MAX];
};

struct weft_rma_win {
	struct weft_core *core;     /* I */
	int first_number;           /* I: for ids: rank r is first_number + r */
	struct weft_ctx *am, *data; /* I */
	int rank, size;             /* I */
	const int *peer;            /* I */
	int *rank_of;               /* I: process -> rank or -1 */
	int processes;              /* I: length of rank_of */
	enum weft_rma_flavor flavor;
	bool contiguous;
	bool maps, copies;              /* I: what the setting rma_path allows on one host */
	bool cpu_atomics;               /* I */
	struct weft_rma_page page;      /* I */
	struct weft_rma_slot alone;     /* where there is no page */
	_Atomic uint8_t x_alone_shared; /* the same */
	_Atomic uint64_t *notes;        /* I: the own notifications, where there is no page */
	int places;                     /* I: members of this host that map the page; at least 1 */
	const struct weft_rma_offer *offer; /* until ready */
	void *base;                         /* I: own memory */
	struct weft_rma_target *target;     /* I: one per member */
	struct weft_rma_direct *direct;     /* I: the same */
	_Atomic uint32_t *inside;   /* I: bulk: a row per member of the host, as an origin */
	size_t inside_stride;       /* I: of the rows, in elements */
	struct weft_rma_meet *meet; /* I: fences; NULL: not all members share the page */
	uint64_t fences;            /* the caller's */
	bool threads;               /* I: several of this process may access at once */
	bool bulk;                  /* I: accumulates of many elements go by themselves (acc.c) */
	_Atomic(char *) x_scratch;  /* acc.c: memory for accumulates, while none uses it */
	struct weft_spin lock;
	struct weft_rma_range *range;              /* L */
	struct weft_rma_lock_request *locks;       /* L: in order */
	struct weft_rma_lock_request **locks_last; /* L */
	struct weft_rma_waiter *waiters;           /* L */
	_Atomic uint32_t x_waiters;
	_Atomic uint32_t x_unsent;      /* messages that the network has not taken */
	struct weft_rma_coming *coming; /* L: large accesses that are served (serve.c) */
	_Atomic uint32_t x_tag;         /* of large accesses */
	_Atomic int x_posted;           /* receives that will go on by themselves */
	_Atomic bool x_stop;
	struct weft_rma_receive *receive;
	struct weft_rma_win *next, **prev_p; /* list of all, under its lock */
	unsigned visitors; /* the same: threads that tell it of a loss; it stays in the list */
};

static inline int weft_rma_process(const struct weft_rma_win *win, int rank)
{
	return win->peer ? win->peer[rank] : rank;
}

/* The first error since the last flush stays. */
static inline void weft_rma_failed(struct weft_rma_target *t, weft_err err)
{
	int none = WEFT_OK;
	/* Relaxed: a flush reads it after it has seen the access end. */
	if (err)
		(void)atomic_compare_exchange_strong_explicit(
			&t->x_err, &none, (int)err, memory_order_relaxed, memory_order_relaxed);
}

/* Is the host's member with that number inside of the target?  (direct.h)  win->bulk. */
static inline _Atomic uint32_t *weft_rma_inside(const struct weft_rma_win *win, int place,
						int target)
{
	return win->inside + (size_t)place * win->inside_stride + win->target[target].place;
}

/* ---- wait.c --------------------------------------------------------------------------------- */

/* Waits until ready(win, arg); what may make it true is followed by notify. */
void weft_rma_wait_until(struct weft_rma_win *win, bool (*ready)(struct weft_rma_win *, void *),
			 void *arg);
void weft_rma_notify(struct weft_rma_win *win);
/* The same for a condition on words that members of this host write, each followed by a WAKE where this
 * one sleeps. */
void weft_rma_wait_until_told(struct weft_rma_win *win,
			      bool (*ready)(struct weft_rma_win *, void *), void *arg);

/* sync.c: a flush is likely to follow the message that comes next, and asks for nothing but it: the message may ask
 * itself. */
bool weft_rma_flush_expected(struct weft_rma_target *t);
/* sync.c: a member of this host may sleep on a word that the caller has changed. */
weft_err weft_rma_wake(struct weft_rma_win *win, int rank) weft_must_use;
/* note.c: an origin's message; what it has put is there. */
void weft_rma_note_came(struct weft_rma_win *win, unsigned note);

/* ---- inbox.c -------------------------------------------------------------------------------- */

weft_err weft_rma_inbox_open(struct weft_rma_win *win) weft_must_use;
void weft_rma_inbox_close(struct weft_rma_win *win);

/* ---- send.c --------------------------------------------------------------------------------- */

/* A message with room for spans and data; NULL: no memory.  Sending it gives it up. */
struct weft_rma_head *weft_rma_message(enum weft_rma_kind kind, unsigned n_spans, size_t bytes);
/* Never waits. */
weft_err weft_rma_send(struct weft_rma_win *win, int rank, struct weft_rma_head *h);
weft_err weft_rma_tell(struct weft_rma_win *win, int rank, enum weft_rma_kind kind, uint32_t id,
		       weft_err err);
/* Waits while too much is unsent.  Not in a handler. */
void weft_rma_throttle(struct weft_rma_win *win);

/* ---- serve.c, pending.c, lock.c: what comes -------------------------------------------------- */

/* Those that come in order; from `rank`. */
void weft_rma_serve(struct weft_rma_win *win, int rank, const struct weft_rma_head *h, size_t len);
/* Answers. */
void weft_rma_answered(struct weft_rma_win *win, int rank, const struct weft_rma_head *h,
		       size_t len);
/* Takes back what waits for data or has not been sent; true: nothing is left.  The window closes. */
bool weft_rma_serve_end(struct weft_rma_win *win);
/* Requests of locks, and that one is free; from `rank`. */
void weft_rma_lock_asked(struct weft_rma_win *win, int rank, bool exclusive, uint32_t id);
void weft_rma_lock_freed(struct weft_rma_win *win);
/* A member of another host gives up its lock of ours. */
void weft_rma_lock_left(struct weft_rma_win *win, int rank, bool exclusive);
/* Gives back what a dead member holds or asks for. */
void weft_rma_lock_recover(struct weft_rma_win *win, int rank);
/* The window ends: requests that still wait are not granted any more. */
void weft_rma_lock_end(struct weft_rma_win *win);
/* attached.c: does [at, at + len) lie in the own memory?  at as in a span. */
bool weft_rma_reachable(struct weft_rma_win *win, uint64_t at, uint64_t len);

#endif
