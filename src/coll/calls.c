/* SPDX-License-Identifier: BSD-3-Clause */
/* calls.c - members that wait long compare their calls (calls.h). */
#include "coll/calls.h"

#include <stdlib.h>
#include <string.h>
#include "base/assert.h"
#include "base/log.h"
#include "base/settings.h"
#include "coll/alg.h"
#include "wait/stack.h"

#define TAG_ASK 0x3fffffff                       /* no collective's, nor of making communicators */
#define TAGS_END (0x800000 * WEFT_COLL_TAGS * 2) /* of collectives, persistent ones included */
#define NUMBERS 0x7fffffu                        /* 23 bits */
#define ENDED 0x80000000u                        /* in x_ended: there is one */
#define ASKED_MOST 32                            /* members at a time */
#define KIND_OVER 0x80u /* in a note's kind: its sender has ended that call */

/* What is sent: the calls up to `number`, the last one last. */
struct note {
	uint32_t number;
	uint8_t answer;   /* to a question: wants none */
	uint8_t ended;    /* the sender has ended its collectives up to that number */
	uint8_t lost;     /* because a member is dead */
	uint8_t closed;   /* because the sender makes no further call */
	uint8_t kind[56]; /* + 1, KIND_OVER; 0: not known */
};

#define KINDS ((uint32_t)sizeof((struct note *)0)->kind)

/* How far b is behind a. */
static int32_t number_distance(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 9) >> 9;
}

/* A call with counts and displacements may meet one with a count. */
static uint8_t kind_family(uint8_t kind)
{
	switch (kind - 1) {
	case WEFT_COLL_GATHERV:
		return WEFT_COLL_GATHER + 1;
	case WEFT_COLL_SCATTERV:
		return WEFT_COLL_SCATTER + 1;
	case WEFT_COLL_ALLGATHERV:
		return WEFT_COLL_ALLGATHER + 1;
	case WEFT_COLL_ALLTOALLV:
	case WEFT_COLL_ALLTOALLW:
		return WEFT_COLL_ALLTOALL + 1;
	case WEFT_COLL_REDUCE_SCATTER_BLOCK:
		return WEFT_COLL_REDUCE_SCATTER + 1;
	case WEFT_COLL_NEIGHBOR_ALLGATHERV:
		return WEFT_COLL_NEIGHBOR_ALLGATHER + 1;
	case WEFT_COLL_NEIGHBOR_ALLTOALLV:
	case WEFT_COLL_NEIGHBOR_ALLTOALLW:
		return WEFT_COLL_NEIGHBOR_ALLTOALL + 1;
	default:
		return kind;
	}
}

static bool is_begun_access(uint8_t kind)
{
	return kind == WEFT_COLL_FILE_TOLD + 1 || kind == WEFT_COLL_FILE_ALONE + 1 ||
	       kind == WEFT_COLL_FILE_WAITS + 1;
}

/* Do such calls never meet?  Of a file access that has not begun it is not known yet which kind it is. */
static bool never_meet(uint8_t a, uint8_t b)
{
	if ((a == WEFT_COLL_FILE + 1 && is_begun_access(b)) ||
	    (b == WEFT_COLL_FILE + 1 && is_begun_access(a)))
		return false;
	return kind_family(a) != kind_family(b);
}

/* What we called under that number, kind + 1; 0: too long ago, or to come. */
static uint8_t call_numbered(struct weft_coll_calls *c, uint32_t number)
{
	/* Relaxed, here and below: compared by number. */
	uint32_t note =
		atomic_load_explicit(&c->x_note[number % WEFT_COLL_CALLS], memory_order_relaxed);
	return note >> 8 == (number & NUMBERS) ? (uint8_t)note : 0;
}

static uint32_t last_of(struct weft_coll_calls *c)
{
	return atomic_load_explicit(&c->x_last, memory_order_relaxed);
}

static bool is_ended(struct weft_coll_calls *c, uint32_t number)
{
	/* ENDED <- ENDED (end_calls). */
	uint32_t ended = atomic_load_explicit(&c->x_ended, memory_order_seq_cst);
	weft_assert(!ended || ended & ENDED);
	return ended & ENDED && number_distance(ended & NUMBERS, number) >= 0;
}

/* A call that this member does not make any more. */
static bool is_after_close(struct weft_coll_calls *c, uint32_t number)
{
	/* LAST <- CLOSED (weft_coll_calls_close).  Carries: x_last, which does not change any more. */
	return atomic_load_explicit(&c->x_closed, memory_order_acquire) &&
	       (number_distance(number, last_of(c)) > 0 || !call_numbered(c, last_of(c)));
}

void weft_coll_calls_close(struct weft_coll_calls *calls)
{
	/* CLOSED -> LAST (is_after_close).  Carries: x_last.  Without it a member that is in our last call
	 * could be told that we do not come. */
	if (calls)
		atomic_store_explicit(&calls->x_closed, true, memory_order_release);
}

/* ---- ending ------------------------------------------------------------------------------------- */

struct ended {
	struct weft_comm_tags tags;
	uint32_t number;
};

static uint32_t number_of(int tag)
{
	return (uint32_t)tag / WEFT_COLL_TAGS & NUMBERS;
}

void weft_coll_call_is(const struct weft_ctx *ctx, int tag, enum weft_coll_kind kind)
{
	struct weft_coll_calls *c = (struct weft_coll_calls *)weft_comm_ctx_ear(ctx);
	uint32_t number = number_of(tag);
	/* Relaxed: compared by number. */
	if (c && call_numbered(c, number))
		atomic_store_explicit(&c->x_note[number % WEFT_COLL_CALLS],
				      number << 8 | ((uint32_t)kind + 1), memory_order_relaxed);
}

static bool tag_ended(const struct weft_comm_tags *tags, int tag)
{
	const struct ended *e = (const struct ended *)tags;
	return tag >= 0 && tag < TAGS_END && number_distance(e->number, number_of(tag)) >= 0;
}

/* All up to that number. */
static void end_calls(struct weft_coll_calls *c, struct weft_ctx *ctx, uint32_t number)
{
	weft_assert(number <= NUMBERS);
	struct ended e = {.tags = {tag_ended}, .number = number};
	/* ENDED -> ENDED (is_ended).  seq_cst: a thread that posts a receive of them meanwhile sees it, or we see
	 * the receive; if neither, it waits, and asks again. */
	atomic_store_explicit(&c->x_ended, ENDED | e.number, memory_order_seq_cst);
	weft_comm_ctx_end(ctx, &e.tags);
}

static void end_for_loss(struct weft_coll_calls *c, struct weft_ctx *ctx)
{
	/* Relaxed: read after a receive that end_calls has ended, or as a hint. */
	atomic_store_explicit(&c->x_lost, true, memory_order_relaxed);
	end_calls(c, ctx, last_of(c));
}

static bool is_lost(struct weft_coll_calls *c)
{
	return atomic_load_explicit(&c->x_lost, memory_order_relaxed);
}

/* ---- sending ------------------------------------------------------------------------------------ */

struct sent {
	struct weft_req req;
	struct note note;
};

static void sent_over(struct weft_req *req, void *arg)
{
	(void)req;
	free(arg);
}

static void note_send(struct weft_ctx *ctx, int peer, const struct note *n)
{
	struct weft_buf b = weft_data_buf_flat(n, sizeof *n);
	if (weft_comm_send_now(ctx, peer, TAG_ASK, &b) != WEFT_AGAIN)
		return; /* a peer that is gone needs no answer */
	struct sent *s = malloc(sizeof *s);
	if (!s)
		return; /* it is asked again */
	s->note = *n;
	b = weft_data_buf_flat(&s->note, sizeof s->note);
	weft_comm_req_init(&s->req, sent_over, s);
	if (weft_comm_core_isend(&s->req, ctx, peer, TAG_ASK, &b, WEFT_SEND_STANDARD))
		free(s);
}

/* The calls up to that number. */
static void note_fill(struct weft_coll_calls *c, struct note *n, uint32_t number, bool answer)
{
	weft_assert(number <= NUMBERS);
	*n = (struct note){.number = number & NUMBERS, .answer = answer};
	for (uint32_t i = 0; i < KINDS; i++) {
		uint32_t at = (number - (KINDS - 1 - i)) & NUMBERS;
		uint8_t kind = call_numbered(c, at);
		weft_assert(kind < KIND_OVER);
		n->kind[i] =
			kind && !answer && is_ended(c, at) ? (uint8_t)(kind | KIND_OVER) : kind;
	}
}

struct asking {
	const struct weft_coll_group *g;
	struct weft_coll_calls *calls;
	unsigned round;
};

/* The process of a member: of the local group, then of the other one. */
static int member_process(const struct weft_coll_group *g, int i)
{
	if (i < g->size)
		return g->peer ? g->peer[i] : i;
	return g->remote ? g->remote[i - g->size] : i - g->size;
}

static void ask_member(const struct asking *a, const struct note *n, int distance_to)
{
	int all = a->g->size + a->g->remote_size;
	int i = (int)(((int64_t)a->g->rank + distance_to) % all);
	if (i != a->g->rank)
		note_send(a->g->ctx, member_process(a->g, i), n);
}

static void ask_all(void *arg)
{
	const struct asking *a = arg;
	int all = a->g->size + a->g->remote_size;
	struct note n;
	for (int i = 0; i < all; i++) {
		if (i != a->g->rank &&
		    weft_comm_ctx_peer_down(a->g->ctx, member_process(a->g, i))) {
			end_for_loss(a->calls, a->g->ctx);
			break;
		}
	}
	note_fill(a->calls, &n, last_of(a->calls), false);
	if (all <= ASKED_MOST + 1) {
		for (int i = 1; i < all; i++)
			ask_member(a, &n, i);
		return;
	}
	for (int step = 1; step < all && step > 0; step <<= 1)
		ask_member(a, &n, step);
	unsigned from = a->round * (unsigned)ASKED_MOST;
	for (unsigned i = 1; i <= ASKED_MOST; i++)
		ask_member(a, &n, (int)((from + i) % (unsigned)all));
}

void weft_coll_ask(const struct weft_coll_group *g, unsigned round)
{
	struct asking a = {g, (struct weft_coll_calls *)weft_comm_ctx_ear(g->ctx), round};
	if (a.calls)
		weft_wait_big_stack(ask_all, &a);
}

/* ---- what has ended ------------------------------------------------------------------------------ */

bool weft_coll_ended(const struct weft_ctx *ctx, int tag)
{
	struct weft_coll_calls *c = (struct weft_coll_calls *)weft_comm_ctx_ear(ctx);
	return c && is_ended(c, number_of(tag));
}

weft_err weft_coll_cause(const struct weft_ctx *ctx, weft_err err)
{
	struct weft_coll_calls *c = (struct weft_coll_calls *)weft_comm_ctx_ear(ctx);
	return err == WEFT_ERR_TRUNC && c && is_lost(c) ? WEFT_ERR_PEER : err;
}

void weft_coll_calls_failed(const struct weft_ctx *ctx, int tag, bool all)
{
	struct weft_coll_calls *c = (struct weft_coll_calls *)weft_comm_ctx_ear(ctx);
	uint32_t number = c && all ? last_of(c) : number_of(tag);
	/* ENDED -> ENDED (is_ended).  Carries: nothing but itself. */
	if (c && !is_ended(c, number))
		atomic_store_explicit(&c->x_ended, ENDED | number, memory_order_seq_cst);
}

void weft_coll_report_stray(struct weft_ctx *ctx, enum weft_coll_kind kind, int tag, int process)
{
	const char *check = weft_setting_str(WEFT_SET_CHECK);
	bool checking = check && strcmp(check, "0") != 0;
	weft_coll_calls_failed(ctx, tag, false);
	weft_error("collectives that do not match: this rank is in %s on %s, where process %d has "
		   "sent something else: do all ranks call the same collectives, in the same order "
		   "and with the same amount of data?%s",
		   weft_coll_kind_name(kind), weft_coll_comm_name(ctx), process,
		   checking ? "" : "  WEFT_CHECK=1 names both calls");
}

/* ---- hearing ------------------------------------------------------------------------------------ */

static void report_mismatch(struct weft_coll_calls *c, struct weft_ctx *ctx, int peer,
			    uint32_t number, uint8_t mine, uint8_t theirs)
{
	/* Once for each. */
	if (atomic_exchange_explicit(&c->x_told, number + 1, memory_order_relaxed) == number + 1)
		return;
	weft_error("collectives that do not match: in its collective number %u of %s this rank is "
		   "in %s, "
		   "process %d in %s; both end.  WEFT_CHECK=1 names the lines",
		   number + 1, weft_coll_comm_name(ctx), weft_coll_kind_name(mine - 1u), peer,
		   weft_coll_kind_name(theirs - 1u));
}

/* A peer has ended its collectives up to n's, and so ours end. */
static void report_end(struct weft_coll_calls *c, struct weft_ctx *ctx, int peer,
		       const struct note *n)
{
	/* After our close none of ours is under way.  Relaxed: it is for the line alone. */
	if (atomic_load_explicit(&c->x_closed, memory_order_relaxed))
		return;
	weft_error("collectives that do not match: process %d %s %s, and so this rank ends its %s, "
		   "too",
		   peer,
		   n->closed ? "is through, and calls no further one of" : "has ended its own of",
		   weft_coll_comm_name(ctx), weft_coll_kind_name(call_numbered(c, n->number) - 1u));
}

/* The first number under which theirs was another call than ours, among those that we have ended and they have
 * not (over), or that we have not: what they have ended we may have left, and their messages of it lie here.
 * False: none. */
static bool note_differs(struct weft_coll_calls *c, const struct note *n, bool over,
			 uint32_t *number_p, uint8_t *theirs_p)
{
	for (uint32_t i = 0; i < KINDS; i++) {
		*number_p = (n->number - (KINDS - 1 - i)) & NUMBERS;
		if (over && n->kind[i] & KIND_OVER)
			continue;
		*theirs_p = n->kind[i] & (uint8_t)~KIND_OVER;
		uint8_t ours = call_numbered(c, *number_p);
		if (*theirs_p && ours && never_meet(*theirs_p, ours) &&
		    is_ended(c, *number_p) == over)
			return true;
	}
	return false;
}

static void hear_calls(struct weft_comm_ear *ear, struct weft_ctx *ctx, int peer, const void *data,
		       size_t len)
{
	struct weft_coll_calls *c = (struct weft_coll_calls *)ear;
	struct note n, answer;
	uint32_t number;
	uint8_t theirs;
	if (len != sizeof n)
		return;
	memcpy(&n, data, sizeof n);
	bool apart = false;
	uint32_t at = 0;
	/* Ends: each is ended, and they are as many as a note has. */
	while (note_differs(c, &n, false, &number, &theirs)) {
		report_mismatch(c, ctx, peer, number, call_numbered(c, number), theirs);
		end_calls(c, ctx, number);
		at = number;
		apart = true;
	}
	if (apart) {
		/* Later calls may match. */
	} else if (n.answer && n.ended && n.lost && !is_ended(c, n.number)) {
		end_for_loss(c, ctx);
	} else if (n.answer && n.ended && !is_ended(c, n.number)) {
		report_end(c, ctx, peer, &n);
		end_calls(c, ctx, n.number);
	}
	if (n.answer)
		return;
	bool closed = is_after_close(c, n.number), ended = closed || is_ended(c, n.number);
	if (!apart) {
		/* An asker that has gone on since does not wait for what has ended. */
		if (!ended)
			return;
		apart = note_differs(c, &n, true, &at, &theirs);
	}
	note_fill(c, &answer, apart ? at : n.number, true);
	answer.ended = ended || is_ended(c, n.number);
	answer.lost = is_lost(c);
	answer.closed = closed;
	note_send(ctx, peer, &answer);
	/* What the asker has sent since, and waits for. */
	if (is_ended(c, n.number))
		end_calls(c, ctx,
			  atomic_load_explicit(&c->x_ended, memory_order_relaxed) & NUMBERS);
}

struct weft_coll_calls *weft_coll_calls_open(struct weft_ctx *ctx)
{
	struct weft_coll_calls *c = calloc(1, sizeof *c);
	if (c) {
		c->ear = (struct weft_comm_ear){.tag = TAG_ASK, .hear = hear_calls};
		c = (struct weft_coll_calls *)weft_comm_ctx_set_ear(ctx, &c->ear);
	} else {
		c = (struct weft_coll_calls *)weft_comm_ctx_ear(ctx);
	}
	/* Of an earlier communicator with that id. */
	for (int i = 0; c && i < WEFT_COLL_CALLS; i++)
		atomic_store_explicit(&c->x_note[i], 0, memory_order_relaxed);
	if (c) {
		atomic_store_explicit(&c->x_ended, 0, memory_order_relaxed);
		atomic_store_explicit(&c->x_told, 0, memory_order_relaxed);
		atomic_store_explicit(&c->x_lost, false, memory_order_relaxed);
		atomic_store_explicit(&c->x_closed, false, memory_order_relaxed);
	}
	return c;
}
