/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run.c - runs schedules.
 *
 * At any time at most one thread, the runner, works on a schedule: it took x_state from IDLE to
 * BUSY.  A message that completes meanwhile (on another thread, or under the runner's own feet while
 * it starts it) is pushed onto x_state and found by the runner before it leaves.  So steps need no
 * atomics of their own, and starting a message inside the completion of another one never recurses.
 *
 *	IDLE --start, message over--> BUSY --nothing left to do--> IDLE
 *	                              BUSY --message over--> BUSY with a list --runner--> BUSY
 *
 * A runner that finds much to copy or combine in a handler passes its role on to a task.
 *
 * The runner that finishes the last step leaves the state BUSY and signals wake, its last access.
 */

#include "base/assert.h"
#include "base/backoff.h"
#include "base/counters.h"
#include "base/trace.h"
#include "coll/alg.h"
#include "coll/calls.h"

#define IDLE ((uintptr_t)0)
#define BUSY ((uintptr_t)1)

static void queue_add(struct weft_step_queue *q, struct weft_step *s)
{
	s->next = NULL;
	weft_assert(!q->first == !q->last);
	if (q->last)
		q->last->next = s;
	else
		q->first = s;
	q->last = s;
}

static struct weft_step *queue_take(struct weft_step_queue *q)
{
	struct weft_step *s = q->first;
	if (s) {
		q->first = s->next;
		if (!q->first)
			q->last = NULL;
	}
	return s;
}

/* A step is over: steps that waited for it may be ready. */
static void step_over(struct weft_coll *c, struct weft_step *s)
{
	weft_assert(c->left > 0 && !s->left);
	c->left--;
	for (int e = s->edge; e >= 0; e = c->edge[e].next) {
		struct weft_step *w = &c->step[c->edge[e].step];
		weft_assert(w->left > 0);
		if (--w->left == 0)
			queue_add(&c->ready, w);
	}
}

static inline void trace_schedule(enum weft_trace_kind what, const struct weft_coll *c, uint64_t a,
				  uint64_t b)
{
	if (weft_trace_on())
		weft_trace_put(what, c->kind, weft_comm_ctx_id(c->ctx), a, b);
}

/* What a message's status says about the schedule. */
static void check_message(struct weft_coll *c, const struct weft_step *s)
{
	weft_err err = s->req.status.err;
	trace_schedule(WEFT_TRACE_COLL_STEP, c, (uint64_t)(s - c->step), s->buf.bytes);
	if (s->kind == WEFT_STEP_RECV) {
		const struct weft_status *st = &s->req.status;
		err = weft_coll_judge(st, &s->buf, s->sign);
		if (weft_unlikely(weft_coll_is_stray(err, st, &s->buf) && !c->err))
			weft_coll_report_stray(c->ctx, c->kind, s->tag, s->peer);
	}
	if (weft_unlikely(err)) /* others are told of a death as one */
		weft_coll_sched_fail(c, weft_coll_cause(c->ctx, err));
}

/* Where the runner stands, and so what it may do. */
enum place {
	IN_HANDLER, /* in the completion of a message: short work only */
	IN_TASK,    /* in a task of ours */
	IN_CALL,    /* on an application thread, in an MPI call: user's operations too */
};

/* So many bytes are copied and combined in a handler; a runner with more becomes a task.  At 5 to
 * 10 GB/s that is about 10 us, during which the polled queue has to wait for us. */
#define HANDLER_BYTES 65536

static void run_schedule(struct weft_coll *c, enum place place);

/* A message is over; on any thread. */
static void message_over(struct weft_req *req, void *arg)
{
	struct weft_step *s = arg;
	struct weft_coll *c = s->coll;
	weft_assert(s->kind == WEFT_STEP_SEND || s->kind == WEFT_STEP_RECV);
	/* Relaxed: only compared and linked; the exchange below orders. */
	uintptr_t old = atomic_load_explicit(&c->x_state, memory_order_relaxed);
	do {
		s->next = old == IDLE ? NULL : (struct weft_step *)old;
		/* OVER -> TAKE (take_events).  Carries: the request's status, s->next and the data
		 * received. Without it, the runner could reduce data that is not there yet. The
		 * acquire half: IDLE was stored by the last runner, whose work we continue. */
	} while (!atomic_compare_exchange_weak_explicit(
		&c->x_state, &old, old == IDLE ? BUSY : (uintptr_t)s, memory_order_acq_rel,
		memory_order_relaxed));
	if (old != IDLE)
		return;
	check_message(c, s);
	step_over(c, s);
	run_schedule(c, IN_HANDLER);
}

/* True: it is over already. */
static bool start_send(struct weft_coll *c, struct weft_step *s)
{
	struct weft_buf buf = s->buf;
	if (weft_unlikely(c->err))
		buf = weft_coll_sign_of(c->err, s->buf.bytes);
	weft_err err = weft_comm_send_now(c->ctx, s->peer, s->tag, &buf);
	if (err == WEFT_AGAIN) {
		weft_comm_req_init(&s->req, message_over, s);
		err = weft_comm_core_isend(&s->req, c->ctx, s->peer, s->tag, &buf,
					   WEFT_SEND_STANDARD);
		if (!err)
			return false;
	}
	if (err)
		weft_coll_sched_fail(c, err);
	return true;
}

static bool start_recv(struct weft_coll *c, struct weft_step *s)
{
	struct weft_buf sign = weft_data_buf_flat(&s->sign, 1);
	if (weft_unlikely(c->err) && weft_coll_ended(c->ctx, s->tag))
		return true;
	weft_comm_req_init(&s->req, message_over, s);
	weft_err err = weft_comm_core_irecv(&s->req, c->ctx, s->peer, s->tag,
					    s->buf.bytes ? &s->buf : &sign);
	if (err)
		weft_coll_sched_fail(c, err);
	return err != WEFT_OK;
}

/* Bytes that a step copies or combines here and now. */
static size_t step_work(const struct weft_coll *c, const struct weft_step *s)
{
	if (s->kind == WEFT_STEP_COPY)
		return s->buf.bytes;
	if (s->kind == WEFT_STEP_REDUCE && c->op.fn)
		return s->count * sizeof(double);
	return 0;
}

/* Runs a step as far as it can; true: it is over. */
static bool step_start(struct weft_coll *c, struct weft_step *s, enum place place)
{
	switch (s->kind) {
	case WEFT_STEP_SEND:
		return start_send(c, s);
	case WEFT_STEP_RECV:
		return start_recv(c, s);
	case WEFT_STEP_COPY:
		if (!c->err)
			weft_data_copy(&s->buf, &s->from);
		return true;
	case WEFT_STEP_REDUCE:
		if (c->err)
			return true;
		if (!c->op.fn && place != IN_CALL) {
			weft_count(WEFT_CNT_COLL_PARKED, 1);
			queue_add(&c->parked, s);
			return false;
		}
		weft_coll_op_apply(&c->op, s->in, s->inout, s->count);
		return true;
	default:
		return true;
	}
}

static void take_events(struct weft_coll *c)
{
	/* Relaxed: a hint; the exchange below orders. */
	if (atomic_load_explicit(&c->x_state, memory_order_relaxed) == BUSY)
		return;
	/* TAKE: partner OVER in message_over.  Carries: the statuses of the messages in the list.
	 */
	uintptr_t list = atomic_exchange_explicit(&c->x_state, BUSY, memory_order_acquire);
	/* The list is newest first; the order among them does not matter. */
	while (list != BUSY) {
		weft_assert(list != IDLE);
		struct weft_step *s = (struct weft_step *)list;
		list = (uintptr_t)s->next;
		check_message(c, s);
		step_over(c, s);
	}
}

static enum weft_task_verdict run_in_task(struct weft_task *t, void *arg)
{
	run_schedule(arg, IN_TASK);
	/* The schedule may be finished and freed, or may have submitted the task again. */
	return WEFT_TASK_GONE;
}

/* Caller is the runner; it is no longer when this returns. */
static void run_schedule(struct weft_coll *c, enum place place)
{
	/* Relaxed: the caller took it. */
	weft_assert(atomic_load_explicit(&c->x_state, memory_order_relaxed) != IDLE);
	size_t budget = place == IN_HANDLER ? HANDLER_BYTES : SIZE_MAX;
	for (;;) {
		struct weft_step *s;
		while ((s = c->ready.first)) {
			size_t work = step_work(c, s);
			if (work > budget) {
				/* The task is the runner from here on. */
				weft_count(WEFT_CNT_COLL_TASKS, 1);
				weft_task_init(&c->task, "collective", run_in_task, c, 0);
				weft_task_submit(&c->task);
				return;
			}
			budget -= work;
			queue_take(&c->ready);
			if (step_start(c, s, place))
				step_over(c, s);
		}
		take_events(c);
		if (c->ready.first)
			continue;
		if (!c->left) {
			weft_assert(!c->parked.first);
			trace_schedule(WEFT_TRACE_COLL_END, c, 0, 0);
			c->finished = true;
			weft_wait_completion_signal(&c->wake);
			return;
		}
		bool wake = c->parked.first && !c->woken;
		if (wake)
			c->woken = true;
		uintptr_t busy = BUSY;
		/* LEAVE -> acquire half of OVER, or ENTER.  Carries: all we did to the schedule.
		 * Without it, the next runner could see counts from before our steps. */
		if (atomic_compare_exchange_strong_explicit(
			    &c->x_state, &busy, IDLE, memory_order_release, memory_order_relaxed)) {
			/* The schedule cannot finish before advance() has run what is parked, so it
			 * is still there. */
			if (wake)
				weft_wait_completion_signal(&c->wake);
			return;
		}
		if (wake)
			c->woken = false;
	}
}

void weft_coll_start(struct weft_coll *c)
{
	weft_assert(!c->steps || c->step);
	weft_count(WEFT_CNT_COLL_SCHEDULES, 1);
	weft_wait_completion_init(&c->wake);
	/* Relaxed: no other thread knows of this run before its first message starts. */
	atomic_store_explicit(&c->x_state, BUSY, memory_order_relaxed);
	trace_schedule(WEFT_TRACE_COLL, c, 0, c->steps);
	c->finished = c->woken = false;
	c->err = WEFT_OK;
	c->left = c->steps;
	c->ready = c->parked = (struct weft_step_queue){0};
	for (size_t i = 0; i < c->steps; i++) {
		struct weft_step *s = &c->step[i];
		s->coll = c;
		s->left = s->before;
		if (!s->before)
			queue_add(&c->ready, s);
	}
	run_schedule(c, IN_CALL);
}

struct weft_completion *weft_coll_wait_on(struct weft_coll *c)
{
	return &c->wake;
}

bool weft_coll_advance(struct weft_coll *c)
{
	if (!weft_wait_completion_done(&c->wake))
		return false;
	if (c->finished)
		return true;
	/* Parked steps.  Another runner may be at work; it leaves soon: it cannot finish.  Bound:
	 * the length of its work, which contains no user's operation. */
	uintptr_t idle = IDLE;
	unsigned turns = 0;
	/* ENTER: partner LEAVE.  Carries: what the last runner did. */
	while (!atomic_compare_exchange_weak_explicit(&c->x_state, &idle, BUSY,
						      memory_order_acquire, memory_order_relaxed)) {
		idle = IDLE;
		weft_backoff(&turns);
	}
	weft_wait_completion_init(&c->wake);
	c->woken = false;
	weft_assert(!c->ready.first);
	struct weft_step *s;
	while ((s = queue_take(&c->parked)))
		queue_add(&c->ready, s);
	run_schedule(c, IN_CALL);
	return weft_wait_completion_done(&c->wake) && c->finished;
}

weft_err weft_coll_result(const struct weft_coll *c)
{
	return c->err;
}
