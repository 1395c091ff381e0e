/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_offload.c - a send is left to an idle core when its post is known to cost more than the
 * word, and only then; it goes with the sender's wait at the latest, behind what came before and
 * before what comes after; regrets are counted, and make the next tries rarer.
 */
#include <stdlib.h>
#include "base/counters.h"
#include "comm/fake_net.h"
#include "comm/send/offload.h"
#include "task/task.h"

static bool idle_core;

static bool spare(void)
{
	return idle_core;
}

static uint64_t count(enum weft_counter_id id)
{
	return weft_counter_sum(id);
}

/* ---- the decision --------------------------------------------------------------------------- */

static void costs(void)
{
	struct weft_comm_offload_costs c = {0};
	/* Nothing known: at once. */
	CHECK(!weft_comm_offload_costs_say(&c, 8));
	atomic_store(&c.x_word_ns, 400);
	CHECK(!weft_comm_offload_costs_say(&c, 8));
	atomic_store(&c.x_post_ns[weft_comm_offload_class(8)], 500);
	CHECK(!weft_comm_offload_costs_say(&c, 8));
	atomic_store(&c.x_post_ns[weft_comm_offload_class(8)], 4000);
	CHECK(weft_comm_offload_costs_say(&c, 8) && weft_comm_offload_costs_say(&c, 15));
	CHECK(!weft_comm_offload_costs_say(&c, 16) && !weft_comm_offload_costs_say(&c, 7));
	CHECK_EQ(weft_comm_offload_class(0), 0);
	CHECK_EQ(weft_comm_offload_class(SIZE_MAX), WEFT_AWAY_CLASSES - 1);
}

/* Each regret in a row doubles the rest, up to a bound; what goes well halves it. */
static void rests(void)
{
	struct weft_comm_offload_costs c = {0};
	atomic_store(&c.x_rest_next, 16);
	uint64_t before = count(WEFT_CNT_OFFLOAD_REGRETS);
	for (uint32_t rest = 16; rest <= 128; rest *= 2) {
		weft_comm_offload_costs_over(&c, 3, true);
		CHECK_EQ(atomic_load(&c.x_rest), rest);
	}
	for (int i = 0; i < 5; i++)
		weft_comm_offload_costs_over(&c, 3, true);
	CHECK_EQ(atomic_load(&c.x_rest), WEFT_AWAY_REST_MAX);
	CHECK_EQ(count(WEFT_CNT_OFFLOAD_REGRETS) - before, 3 * 9);
	for (int i = 0; i < 20; i++)
		weft_comm_offload_costs_over(&c, 1, false);
	CHECK_EQ(atomic_load(&c.x_rest_next), 16);
}

/* ---- over a gate ---------------------------------------------------------------------------- */

static struct weft_core *core[2];
static struct weft_ctx *ctx[2];

static void start(void)
{
	fake_init(1);
	fake.latency_us = 5;
	fake.chance_full = fake.chance_late = fake.chance_accept = 0;
	fake.spare = spare;
	fake_cores(core, 2);
	for (int r = 0; r < 2; r++)
		CHECK(!weft_comm_core_ctx_open(core[r], 7, &ctx[r]));
	CHECK(core[0]->gate[1].offload != NULL);
}

/* A post of this size is known to cost that much, and no try has to rest. */
static void cost(size_t bytes, uint64_t ns)
{
	struct weft_comm_offload *a = core[0]->gate[1].offload;
	atomic_store(&a->costs.x_post_ns[weft_comm_offload_class(bytes)], (uint32_t)ns);
	atomic_store(&a->costs.x_rest, 0);
}

static void begin(struct weft_req *r, int *value)
{
	struct weft_buf b = weft_data_buf_flat(value, sizeof *value);
	weft_comm_req_init(r, NULL, NULL);
	CHECK(!weft_comm_core_isend(r, ctx[0], 1, 3, &b, WEFT_SEND_AWAY));
}

static void receive(int value)
{
	int got = -1;
	struct weft_req r;
	struct weft_buf b = weft_data_buf_flat(&got, sizeof got);
	weft_comm_req_init(&r, NULL, NULL);
	CHECK(!weft_comm_core_irecv(&r, ctx[1], 0, 3, &b));
	while (!weft_comm_req_done(&r)) /* ends: the message is under way */
		weft_comm_core_poll(core[1]);
	CHECK_EQ(got, value);
}

/* A parent's queue is not looked at in every round. */
static void look(void)
{
	for (int i = 0; i < 100; i++)
		(void)weft_engine_poll();
}

static void *polls(void *arg)
{
	(void)arg;
	look();
	return NULL;
}

/* Another thread than the sender looks at the engine's queues. */
static void other_core(void)
{
	pthread_t t;
	CHECK(!pthread_create(&t, NULL, polls, NULL));
	CHECK(!pthread_join(t, NULL));
}

static void only_if_idle(void)
{
	struct weft_req r;
	int v = 1;
	struct weft_buf b = weft_data_buf_flat(&v, sizeof v);
	uint64_t before = count(WEFT_CNT_OFFLOADED);
	cost(sizeof v, 1000000);
	idle_core = false;
	begin(&r, &v);
	CHECK(weft_comm_req_done(&r));
	receive(1);
	CHECK(!weft_comm_start_now(ctx[0], 1, 3, &b));
	receive(1);
	CHECK_EQ(count(WEFT_CNT_OFFLOADED), before);
	/* Cheap: not offloaded although a core is idle; a send that waits anyway: neither. */
	idle_core = true;
	cost(sizeof v, 100);
	begin(&r, &v);
	CHECK(weft_comm_req_done(&r));
	cost(sizeof v, 1000000);
	weft_comm_req_init(&r, NULL, NULL);
	CHECK(!weft_comm_core_isend(&r, ctx[0], 1, 3, &b, WEFT_SEND_STANDARD));
	CHECK(weft_comm_req_done(&r));
	receive(1);
	receive(1);
	weft_task_progress_off_here = true;
	begin(&r, &v);
	weft_task_progress_off_here = false;
	CHECK(weft_comm_req_done(&r));
	receive(1);
	CHECK_EQ(count(WEFT_CNT_OFFLOADED), before);
}

/* In order, whichever thread posts: offloaded, at once, offloaded. */
static void in_order(void)
{
	struct weft_req r[2];
	int v[3] = {1, 2, 3};
	struct weft_buf b = weft_data_buf_flat(&v[1], sizeof v[1]);
	uint64_t before = count(WEFT_CNT_OFFLOADED);
	idle_core = true;
	cost(sizeof v[0], 1000000);
	begin(&r[0], &v[0]);
	CHECK(!weft_comm_req_done(&r[0]));
	CHECK_EQ(weft_comm_start_now(ctx[0], 1, 3, &b), WEFT_AGAIN);
	begin(&r[1], &v[1]);
	CHECK(!weft_comm_req_done(&r[1]));
	other_core();
	CHECK(weft_comm_req_done(&r[0]) && weft_comm_req_done(&r[1]));
	receive(1);
	receive(2);
	CHECK_EQ(count(WEFT_CNT_OFFLOADED) - before, 2);

	/* One at once behind one that is away: both go now. */
	begin(&r[0], &v[0]);
	idle_core = false;
	begin(&r[1], &v[2]);
	CHECK(weft_comm_req_done(&r[0]) && weft_comm_req_done(&r[1]));
	receive(1);
	receive(3);
	other_core();
}

/* The sender waits before the task has begun: it goes, and that is a regret. */
static void regret(void)
{
	struct weft_req r;
	int v = 4;
	uint64_t before = count(WEFT_CNT_OFFLOAD_REGRETS), kept = count(WEFT_CNT_OFFLOAD_KEPT);
	struct weft_comm_offload *a = core[0]->gate[1].offload;
	idle_core = true;
	cost(sizeof v, 1000000);
	uint32_t rest = atomic_load(&a->costs.x_rest_next);
	begin(&r, &v);
	CHECK(!weft_comm_req_done(&r));
	look();
	CHECK(weft_comm_req_done(&r));
	receive(4);
	CHECK_EQ(count(WEFT_CNT_OFFLOAD_REGRETS) - before, 1);
	for (uint32_t i = 0; i < rest; i++) {
		begin(&r, &v);
		CHECK(weft_comm_req_done(&r));
		receive(4);
	}
	CHECK_EQ(count(WEFT_CNT_OFFLOAD_KEPT) - kept, rest);
	begin(&r, &v);
	CHECK(!weft_comm_req_done(&r));
	other_core();
	CHECK(weft_comm_req_done(&r));
	receive(4);
	/* No core came: what is left is owed, and the core is not idle. */
	cost(sizeof v, 1000000);
	begin(&r, &v);
	CHECK(!weft_comm_core_idle(core[0]));
	other_core();
	CHECK(weft_comm_core_idle(core[0]));
	receive(4);
}

int main(void)
{
	/* Only the test's own calls run tasks. */
	setenv("WEFT_FLAVOUR", "explicit", 1);
	costs();
	rests();
	CHECK(!weft_engine_start());
	start();
	only_if_idle();
	in_order();
	regret();
	/* The task is still queued when the gate goes. */
	struct weft_req r;
	int v = 5;
	cost(sizeof v, 1000000);
	begin(&r, &v);
	fake_end(core, 2);
	weft_engine_stop();
	return 0;
}
