/* SPDX-License-Identifier: BSD-3-Clause */
/* offload.c - small sends that an idle core posts. */
#include <stdlib.h>
#include "base/counters.h"
#include "comm/send/offload.h"
#include "task/task.h"

/* A post that takes less costs less than waking another core. */
#define SLOW_US 2.0
#define WORD_START_NS 400u
#define REST_START 16u

static uint32_t load_relaxed(_Atomic uint32_t *x)
{
	return atomic_load_explicit(x, memory_order_relaxed);
}

static void store_relaxed(_Atomic uint32_t *x, uint32_t to)
{
	atomic_store_explicit(x, to, memory_order_relaxed);
}

/* By eighths; an interrupted measurement counts as four times the usual, no more. */
static void smooth_cost(_Atomic uint32_t *x, uint64_t ns)
{
	uint64_t was = load_relaxed(x);
	ns = ns < 100000000u ? ns + 1 : 100000000u;
	if (was)
		ns = (was * 7 + (ns < 4 * was ? ns : 4 * was) + 4) / 8;
	store_relaxed(x, (uint32_t)ns);
}

bool weft_comm_offload_costs_say(struct weft_comm_offload_costs *c, size_t bytes)
{
	/* Half as much again: what the handover costs the other core, and decisions to regret. */
	return load_relaxed(&c->x_post_ns[weft_comm_offload_class(bytes)]) >
	       load_relaxed(&c->x_word_ns) * 3 / 2;
}

void weft_comm_offload_costs_over(struct weft_comm_offload_costs *c, uint32_t n, bool regret)
{
	uint32_t next = load_relaxed(&c->x_rest_next);
	if (!regret) {
		store_relaxed(&c->x_rest_next, next > REST_START ? next / 2 : REST_START);
		return;
	}
	weft_count(WEFT_CNT_OFFLOAD_REGRETS, n);
	store_relaxed(&c->x_rest, next);
	store_relaxed(&c->x_rest_next,
		      next < WEFT_AWAY_REST_MAX / 2 ? next * 2 : WEFT_AWAY_REST_MAX);
}

bool weft_comm_offload_pays(struct weft_gate *g, size_t bytes)
{
	struct weft_comm_offload_costs *c = &g->offload->costs;
	if (bytes > weft_comm_gate_eager_max(g) || !weft_comm_offload_costs_say(c, bytes) ||
	    weft_task_progress_off_here)
		return false;
	uint32_t rest = load_relaxed(&c->x_rest);
	if (rest) {
		store_relaxed(&c->x_rest, rest - 1);
		weft_count(WEFT_CNT_OFFLOAD_KEPT, 1);
		return false;
	}
	if (weft_likely(g->core->spare()))
		return true;
	if (g->core->wish)
		g->core->wish();
	return false;
}

bool weft_comm_offload_samples(struct weft_comm_offload *a, size_t bytes)
{
	unsigned class = weft_comm_offload_class(bytes);
	uint32_t turn = load_relaxed(&a->costs.x_turn[class]);
	store_relaxed(&a->costs.x_turn[class], turn + 1);
	return turn < 4 || turn % WEFT_AWAY_SAMPLE == 0;
}

void weft_comm_offload_learn(struct weft_comm_offload *a, size_t bytes, uint64_t ns)
{
	smooth_cost(&a->costs.x_post_ns[weft_comm_offload_class(bytes)], ns);
}

/* ---- handing over --------------------------------------------------------------------------- */

bool weft_comm_offload_send(struct weft_gate *g, struct weft_req *r)
{
	struct weft_comm_offload *a = g->offload;
	struct weft_out *o = &weft_comm_req_send(r)->out;
	if (o->type != WEFT_OUT_EAGER || !weft_comm_offload_pays(g, r->buf.bytes))
		return false;
	uint64_t now = weft_clock_ns();
	/* Relaxed, all: for the report; the push orders what matters. */
	atomic_store_explicit(&a->x_since_ns, now, memory_order_relaxed);
	store_relaxed(&a->x_by, weft_wait_owner_self);
	atomic_fetch_add_explicit(&a->x_left, 1, memory_order_relaxed);
	weft_count(WEFT_CNT_OFFLOADED, 1);
	weft_comm_gate_push(g, o); /* from here on r may be over */
	(void)weft_task_submit_spare(&a->task);
	smooth_cost(&a->costs.x_word_ns, weft_clock_ns() - now);
	return true;
}

/* Did the handover not pay?  Called by the thread that posts now. */
static bool was_regretted(struct weft_comm_offload *a)
{
	/* Relaxed: empty, another thread has posted it, most likely the sender with its next send. */
	if (!atomic_load_explicit(&a->gate->x_in, memory_order_relaxed))
		return true;
	if (weft_task_engine_runner() == WEFT_RUNNER_APPLICATION &&
	    load_relaxed(&a->x_by) == weft_wait_owner_self)
		return true;
	return weft_clock_ns() - atomic_load_explicit(&a->x_since_ns, memory_order_relaxed) >
	       WEFT_AWAY_LATE_NS;
}

static enum weft_task_verdict kick_gate(struct weft_task *t, void *arg)
{
	struct weft_comm_offload *a = arg;
	uint32_t n = atomic_exchange_explicit(&a->x_left, 0, memory_order_relaxed);
	(void)t;
	if (n)
		weft_comm_offload_costs_over(&a->costs, n, was_regretted(a));
	weft_comm_gate_kick(a->gate);
	return WEFT_TASK_DONE;
}

void weft_comm_offload_open(struct weft_gate *g, double latency_us)
{
	weft_comm_offload_close(g);
	if (!g->core->spare || latency_us < SLOW_US)
		return;
	/* No memory: everything goes at once. */
	struct weft_comm_offload *a = calloc(1, sizeof *a);
	if (!a)
		return;
	a->gate = g;
	store_relaxed(&a->costs.x_word_ns, WORD_START_NS);
	store_relaxed(&a->costs.x_rest_next, REST_START);
	weft_task_init(&a->task, "offload", kick_gate, a, 0);
	g->offload = a;
}

void weft_comm_offload_close(struct weft_gate *g)
{
	if (!g->offload)
		return;
	(void)weft_task_cancel_wait(&g->offload->task);
	free(g->offload);
	g->offload = NULL;
}
