/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * copy.h - runs the steps of a large copy: as a task of the engine, a step per round, outside every
 * mask; on the spot; or, for an explicit-only operation, in the polls of the application alone.
 *
 * Callers   start, defer: any thread.
 * Owner     the request, until its step answers OVER: then it is not touched any more.
 * Progress  start with `now`, or without memory, returns when the copy is over.
 */
#ifndef WEFT_COMM_COPY_H
#define WEFT_COMM_COPY_H

#include "comm/comm.h"
#include "task/task.h"

enum weft_comm_copy_verdict {
	WEFT_COPY_AGAIN,
	WEFT_COPY_WAIT,  /* nothing was done: the next step is a first one again */
	WEFT_COPY_ASIDE, /* leave it until a thread waits here, or none has for a while */
	WEFT_COPY_OVER,
};

enum weft_comm_copy_turn {
	WEFT_COPY_FIRST, /* of a task */
	WEFT_COPY_BACK,  /* the first after ASIDE */
	WEFT_COPY_NEXT,  /* any other; WAIT and ASIDE are not allowed */
};

typedef enum weft_comm_copy_verdict weft_comm_copy_step(struct weft_req *r,
							enum weft_comm_copy_turn turn);

/* In the request: what is left to the application's calls. */
struct weft_comm_copy_left {
	struct weft_task_app_work work;
	union {
		weft_comm_copy_step *step;
		void (*begin)(struct weft_req *r);
	};
};

enum weft_comm_side { WEFT_SIDE_SENDER, WEFT_SIDE_RECEIVER };

/* now: on the spot. */
void weft_comm_copy_start(struct weft_req *r, enum weft_comm_side side, weft_comm_copy_step *step,
			  bool now);
/* Is begin(r) left to the application's next call?  So it is for an explicit-only operation. */
bool weft_comm_copy_defer(struct weft_req *r, enum weft_comm_side side,
			  void (*begin)(struct weft_req *r));

#endif
