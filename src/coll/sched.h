/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sched.h - building schedules: steps and what they wait for.
 *
 * Adders return the number of the new step, or -1 after a failure, which c->err keeps; `after` (and
 * any step given to weft_coll_sched_after) may be -1: nothing to wait for.  A step runs once all steps
 * it waits for are over.  Steps without order between them start in the order they were added.
 *
 * Messages between two ranks with the same tag must be started in the same order on both sides;
 * algorithms give each phase its own tag (0 .. WEFT_COLL_TAGS-1).
 */
#ifndef WEFT_COLL_SCHED_H
#define WEFT_COLL_SCHED_H

#include "coll/coll.h"
#include "task/queue/weft_task.h"

enum weft_step_kind {
	WEFT_STEP_SEND,
	WEFT_STEP_RECV,
	WEFT_STEP_COPY,
	WEFT_STEP_REDUCE,
	WEFT_STEP_JOIN
};

struct weft_step {
	uint8_t kind;
	int peer, tag;
	unsigned before;      /* how many steps this one waits for */
	unsigned left;        /* of them, in this run */
	int edge, edge_last;  /* to steps that wait for it, in the order of adding; -1: none */
	struct weft_buf buf;  /* message; destination of a copy */
	struct weft_buf from; /* source of a copy */
	const void *in;       /* reduction */
	void *inout;
	size_t count;
	char sign;              /* where one of failure comes instead of a signal */
	struct weft_step *next; /* in the one list it is in: ready, over or parked */
	struct weft_coll *coll;
	struct weft_req req;
};

struct weft_edge {
	int step; /* it waits */
	int next;
};

/* Memory that lives as long as the schedule. */
struct weft_scratch {
	struct weft_scratch *next;
	alignas(64) char mem[];
};

/* Memory to cut pieces from. */
struct weft_arena {
	struct weft_scratch *block; /* NULL: none */
	size_t size, used;
};

struct weft_step_queue {
	struct weft_step *first, *last;
};

/* Fields without x_ belong to the runner, the thread that took x_state from IDLE to BUSY; while the schedule is not running, to its owner. */
struct weft_coll {
	struct weft_completion wake; /* finished, or something for advance() to do */
	/* IDLE, BUSY, or BUSY with steps that are over: a list that ends in BUSY. */
	_Atomic uintptr_t x_state;
	struct weft_ctx *ctx;
	struct weft_coll_op op;
	enum weft_coll_kind kind;
	weft_err err;
	bool finished;
	bool woken;  /* wake was or is about to be signalled for the parked steps */
	size_t left; /* steps that are not over */
	struct weft_step_queue ready, parked;

	size_t steps, steps_cap, edges, edges_cap;
	struct weft_step *step;
	struct weft_edge *edge;
	size_t types, types_cap;
	const struct weft_type **type; /* referenced */
	struct weft_scratch *scratch;
	struct weft_arena spare; /* kept between uses */
	struct weft_arena large; /* for this use, from the one that the process keeps */
	size_t want;             /* what this use asked for, as the next one may */
	struct weft_task task;
	struct weft_coll *next; /* pool */
};

int weft_coll_sched_send(struct weft_coll *c, int peer, int tag, struct weft_buf buf, int after);
int weft_coll_sched_recv(struct weft_coll *c, int peer, int tag, struct weft_buf buf, int after);
int weft_coll_sched_copy(struct weft_coll *c, struct weft_buf to, struct weft_buf from, int after);
/* inout = in op inout */
int weft_coll_sched_reduce(struct weft_coll *c, const void *in, void *inout, size_t count,
			   int after);
/* Does nothing; something to wait for. */
int weft_coll_sched_join(struct weft_coll *c);

void weft_coll_sched_after(struct weft_coll *c, int step, int before);

/* bytes of memory, aligned to 64, that live as long as the schedule.  Never NULL: after a
 * failure, which c->err keeps, an address that is not used. */
void *weft_coll_sched_scratch(struct weft_coll *c, size_t bytes);

/* Keeps t until the schedule is freed. */
void weft_coll_sched_keep(struct weft_coll *c, const struct weft_type *t);

/* Asserts what holds of a schedule that is built and does not run: sizes, and that each step can run
 * once those before it are over. */
void weft_coll_sched_check(const struct weft_coll *c);

static inline void weft_coll_sched_fail(struct weft_coll *c, weft_err err)
{
	if (!c->err)
		c->err = err;
}

#endif
