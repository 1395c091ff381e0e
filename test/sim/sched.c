/* SPDX-License-Identifier: BSD-3-Clause */
/* sched.c - draws a plan, lets ranks move until nothing moves any more, and asks the oracle. */
#include <stdarg.h>
#include <stdlib.h>
#include "comm/core_check.h"
#include "sim.h"

struct sim sim;

#define MINUTE_NS ((uint64_t)60 * 1000000000u)

void sim_say(const char *format, ...)
{
	va_list ap;
	printf("%*s%9.3f us  ", (int)sim.depth * 2, "", (double)sim.now_ns / 1e3);
	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
	putchar('\n');
}

/* One of the values, as the seed says. */
#define ONE_OF(...)                                                                                \
	((const uint64_t[]){__VA_ARGS__}[sim_pick(sizeof((const uint64_t[]){__VA_ARGS__}) /        \
						  sizeof(uint64_t))])

static void draw_rails(struct sim_plan *p)
{
	p->bundle = true;
	p->ranks = (int)ONE_OF(2, 2, 3);
	p->rails = (int)ONE_OF(2, 2, SIM_RAILS);
	p->max_payload = ONE_OF(SIM_WHOLE, SIM_PAYLOAD);
	p->eager_max = ONE_OF(64, 1024, 6000, SIM_PAYLOAD);
	p->cuts = (unsigned)ONE_OF(0, 3, 10);
	p->large = sim_chance(20);
	p->window = (unsigned)ONE_OF(2, 8, 32);
	if (sim_chance(20))
		p->once = (int)sim_pick((unsigned)p->rails);
}

static void draw_plan(struct sim_plan *p)
{
	*p = (struct sim_plan){.victim = -1, .cut_a = -1, .frozen = -1};
	p->ranks = (int)ONE_OF(2, 2, 2, 3, 3, SIM_RANKS);
	p->rails = (int)ONE_OF(1, 1, SIM_RAILS);
	p->ops = (unsigned)ONE_OF(10, 40, 40, 100, 200);
	p->full = (unsigned)ONE_OF(0, 5, 30);
	p->accept = (unsigned)ONE_OF(0, 30, 90);
	p->stream = (unsigned)ONE_OF(0, 30, 90);
	p->nest = (unsigned)ONE_OF(0, 10, 40);
	p->window = (unsigned)ONE_OF(1, 4, 32);
	p->delay_ns = ONE_OF(0, 1000, 100000);
	p->eager_max = ONE_OF(0, 64, 512, 1024);
	p->inline_max = ONE_OF(sizeof(struct weft_wire_rts), 64, 256);
	p->max_payload = ONE_OF(1024, 4096, SIM_PAYLOAD);
	p->credit = ONE_OF(0, 700, 3000, 100000, UINT64_MAX / 2);
	p->can_get = sim_chance(60);
	p->get_fails = sim_chance(20);
	p->put_fails = sim_chance(20);
	p->offer = sim_chance(40);
	p->share = sim_chance(60);
	p->large = sim_pick(50) == 0;
	p->close_last = sim_chance(20);
	p->once = -1;
	p->notice_ns = ONE_OF(0, 10000, 5000000000u);
	p->kill_at = sim_pick(p->ops + 1);
	p->freeze_at = sim_pick(p->ops + 1);
	p->tasks = sim_chance(30);
	if (sim_chance(30))
		draw_rails(p);
	unsigned bad = sim_pick(10);
	if (bad < 3) {
		p->victim = (int)sim_pick((unsigned)p->ranks);
	} else if (bad == 3 && !p->bundle) {
		p->cut_a = (int)sim_pick((unsigned)p->ranks);
		p->cut_b = (p->cut_a + 1) % p->ranks;
	} else if (bad == 4) {
		p->frozen = (int)sim_pick((unsigned)p->ranks);
	}
	p->rtr = sim_chance(60);
}

static bool asleep(int rank)
{
	return sim.rank[rank].dead || sim.rank[rank].frozen_until_ns > sim.now_ns;
}

/* What fate has in store for this call of the application. */
static void fate(void)
{
	const struct sim_plan *p = &sim.plan;

	/* With one-sided traffic not in the middle of a call: its stores would go on after its death. */
	if (p->victim >= 0 &&
	    (sim.rma ? sim.calls >= p->kill_at && !sim.depth && !sim.rank[p->victim].dead
		     : sim.calls == p->kill_at)) {
		SIM_SAY("%d dies", p->victim);
		sim_cover(SIM_KILLED);
		if (sim.rma)
			sim_rma_dies(p->victim);
		sim.rank[p->victim].dead = true;
		for (int i = 0; i < p->ranks; i++)
			if (i != p->victim)
				sim_net_break(p->victim, i);
	}
	if (p->cut_a >= 0 && sim.calls == p->kill_at) {
		SIM_SAY("the link of %d and %d breaks", p->cut_a, p->cut_b);
		sim_cover(SIM_CUT);
		sim_net_break(p->cut_a, p->cut_b);
	}
	if (p->frozen >= 0 && sim.calls == p->freeze_at) {
		sim_cover(SIM_FROZEN);
		sim.rank[p->frozen].frozen_until_ns = sim.now_ns + MINUTE_NS;
	}
	if (sim_chance(p->cuts))
		sim_rails_fate();
	sim.calls++;
}

static int poll_rank(int rank)
{
	struct sim_rank *k = &sim.rank[rank];
	int n = 0;
	for (int i = 0; i < k->core->nrails; i++) {
		struct weft_rail *rail = &k->core->rail[i];
		if (k->at_poll[i])
			continue;
		for (int p = 0; p < sim.plan.ranks; p++)
			if (k->posting[p])
				sim_cover(SIM_POLL_IN_POST);
		k->at_poll[i] = true;
		n += weft_comm_rail_poll(rail);
		k->at_poll[i] = false;
	}
	return n;
}

/* The engine belongs to all ranks: a poll of it runs the copies of all. */
static int poll_engine(void)
{
	int n = sim.plan.tasks && !sim.polling_engine;
	/* Copies post: not under a lock of a bundle. */
	for (int r = 0; r < sim.plan.ranks; r++)
		n = n && !sim.rank[r].locked;
	if (!n)
		return 0;
	sim.polling_engine = true;
	n = weft_engine_poll();
	sim.polling_engine = false;
	if (n)
		sim_cover(SIM_TASK_COPY);
	return n;
}

/* What one side has counted, the other has counted before. */
static void check_credit(const struct weft_gate *from, const struct weft_gate *to)
{
	/* Relaxed, all: one thread. */
	uint64_t spent = atomic_load_explicit(&from->x_credit_spent, memory_order_relaxed);
	uint64_t got = atomic_load_explicit(&from->x_credit_got, memory_order_relaxed);
	uint64_t returned = atomic_load_explicit(&to->x_returned, memory_order_relaxed);
	CHECK(to->recv_eager <= spent);
	CHECK(got <= returned);
}

/* Between two moves no call is under way: a core keeps its promises, alone and with its
 * peers. */
static void check_core(int r)
{
	struct weft_core *core = sim.rank[r].core;
	weft_comm_core_check(core);
	for (int p = 0; p < sim.plan.ranks; p++) {
		if (p != r)
			check_credit(&core->gate[p], &sim.rank[p].core->gate[r]);
	}
}

void sim_move(void)
{
	int rank = (int)sim_pick((unsigned)sim.plan.ranks);

	sim.now_ns += sim_pick(2000);
	if (sim.plan.bundle && sim_pick(16) == 0)
		sim.now_ns += sim_pick(sim_pick(8) ? 20000000 : 1000000000);
	if (asleep(rank) || sim.rank[rank].locked)
		return;
	if (sim_pick(8) == 0)
		(void)poll_engine();
	if (sim.calls < sim.plan.ops && sim_chance(40)) {
		fate();
		if (asleep(rank))
			return;
		for (int p = 0; p < sim.plan.ranks; p++)
			if (sim.rank[rank].posting[p])
				sim_cover(SIM_CALL_IN_POST);
		if (sim.rma && sim_chance(85))
			sim_rma_call(rank);
		else
			sim_traffic_call(rank);
	} else {
		(void)poll_rank(rank);
	}
}

/* When something happens by itself: an arrival, news of a death, a rank that wakes. */
static uint64_t next_moment(void)
{
	uint64_t next = UINT64_MAX;
	for (int r = 0; r < sim.plan.ranks; r++) {
		const struct sim_rank *k = &sim.rank[r];
		uint64_t at = UINT64_MAX;
		if (k->dead)
			continue;
		if (asleep(r))
			at = k->frozen_until_ns;
		else if (sim.plan.bundle)
			at = sim_rails_next(r);
		else
			for (int i = 0; i < sim.plan.rails; i++)
				if (sim_net_next(k->net[i]) < at)
					at = sim_net_next(k->net[i]);
		next = at < next ? at : next;
	}
	return next;
}

/* A rank sleeps under a bundle after its last poll; a rank that has not polled yet has to. */
static bool all_asleep(void)
{
	for (int r = 0; sim.plan.bundle && r < sim.plan.ranks; r++)
		if (!asleep(r) && !sim.rank[r].armed)
			return false;
	return true;
}

/* Lets everything run out: until no rank has anything to do and nothing is on its way. */
static void settle(void)
{
	unsigned calm = 0;
	/* Ends: traffic is finite; a network that never calms down is a finding. */
	for (unsigned rounds = 0;; rounds++) {
		int n = poll_engine();
		CHECK(rounds < 1000000);
		for (int r = 0; r < sim.plan.ranks; r++)
			if (!asleep(r))
				n += poll_rank(r) + (sim.rma ? sim_rma_step(r) : 0);
		calm = n ? 0 : calm + 1;
		uint64_t next = calm > 1 ? next_moment() : 0;
		if (next <= sim.now_ns || !all_asleep())
			continue;
		if (next == UINT64_MAX)
			return;
		sim.now_ns = next;
	}
}

void sim_say_post(int rank, int peer, const struct weft_wire *h, size_t len, enum weft_post p)
{
	SIM_SAY("%d->%d post kind %d seq %u tag %d length %llu payload %zu: %s", rank, peer,
		h->kind, h->sequence, h->tag, (unsigned long long)h->length, len,
		(const char *[]){"done", "kept", "full", "down"}[p]);
}

void sim_tell_down(const struct weft_net_events *ev, int rank, int peer, weft_err err,
		   const char *why)
{
	unsigned since = sim_traffic_now();
	SIM_SAY("%d learns that %d is gone", rank, peer);
	ev->down(ev->arg, peer, err, why);
	sim_traffic_down(rank, peer, since);
}

static void on_down(struct weft_core *core, int peer, weft_err err, const char *why)
{
	SIM_SAY("the core has lost %d: %s", peer, why);
	if (sim.rma)
		sim_rma_lost(core, peer);
	/* Here no rank lies. */
	CHECK_EQ(err, WEFT_ERR_PEER);
}

static void cores_make(void)
{
	for (int r = 0; r < sim.plan.ranks; r++) {
		struct weft_net_job job = {.rank = r, .size = sim.plan.ranks, .jobid = "sim"};
		struct weft_core **core = &sim.rank[r].core;
		CHECK(!weft_comm_core_create(r, sim.plan.ranks, core));
		(*core)->down_hook = on_down;
		(*core)->offer = sim.plan.offer;
		(*core)->rtr = sim.plan.rtr;
		(*core)->share_min = sim.plan.share ? 1 : 0;
		(*core)->credit = sim.plan.credit;
		(*core)->background = sim.plan.tasks;
		(*core)->strategy = sim.plan.strategy;
		(*core)->hold = sim_strategy_hold;
		for (int i = 0; i < (sim.plan.bundle ? 1 : sim.plan.rails); i++)
			CHECK(!weft_comm_core_rail_add(
				*core, sim.plan.bundle ? &sim_driver_rails : &sim_driver, &job));
		for (int p = 0; p < sim.plan.ranks; p++)
			if (p != r)
				weft_comm_core_gate_set(*core, p,
							sim.plan.bundle ? 0 : sim_rail_of(r, p));
	}
}

/* What a dead rank's drivers still hold goes back to its core, which is about to end. */
static void bury(int rank)
{
	if (sim.plan.bundle) {
		sim_rails_bury(rank);
		return;
	}
	for (int i = 0; i < sim.plan.rails; i++)
		for (int p = 0; p < sim.plan.ranks; p++)
			sim_link_bury(sim.rank[rank].net[i], p);
}

void sim_run(uint64_t seed)
{
	bool verbose = sim.verbose, fifo = sim.fifo, one_sided = sim.rma;

	memset(&sim, 0, sizeof sim);
	sim.verbose = verbose;
	sim.fifo = fifo;
	sim.rma = one_sided;
	sim.seed = sim.rnd = seed;
	draw_plan(&sim.plan);
	if (sim.rma)
		sim_rma_draw(&sim.plan);
	sim_strategy_draw(seed);
	/* Not drawn: schedules that were kept stay what they are. */
	sim.plan.rdma = !sim.plan.bundle && (seed * 0x9e3779b97f4a7c15u) >> 62 == 0;
	sim_lanes_begin();
	cores_make();
	sim_traffic_begin();
	if (sim.rma)
		sim_rma_begin();
	uint64_t used = weft_counter_sum(WEFT_CNT_EARLY_USED);
	uint64_t stale = weft_counter_sum(WEFT_CNT_EARLY_STALE);
	/* Ends: a call is made in two of five moves of a rank that is not asleep; a rank that sleeps
	 * wakes, and at most one dies. */
	for (unsigned i = 0; sim.calls < sim.plan.ops; i++) {
		sim_move();
		check_core(
			(int)(i % (unsigned)sim.plan.ranks)); /* each in turn: all take too long */
		if (i % 16 == 0)
			sim_traffic_look();
		if (sim.plan.frozen >= 0 && sim.plan.ranks == 2 && i % 64 == 0)
			sim.now_ns += MINUTE_NS / 8;
	}
	settle();
	/* Ends: each round receives, closes or cancels something. */
	do {
		settle();
		sim_traffic_look();
	} while (sim_traffic_finish() || (sim.rma && sim_rma_finish()));
	for (int r = 0; r < sim.plan.ranks; r++)
		check_core(r);
	if (sim.rma)
		sim_rma_end();
	sim_traffic_end();
	if (weft_counter_sum(WEFT_CNT_EARLY_USED) != used)
		sim_cover(SIM_EARLY_USED);
	if (weft_counter_sum(WEFT_CNT_EARLY_STALE) != stale)
		sim_cover(SIM_EARLY_STALE);
	if (sim.plan.bundle)
		sim_rails_end();
	sim.ending = true;
	for (int r = 0; r < sim.plan.ranks; r++)
		if (sim.rank[r].dead) {
			bury(r);
			if (sim.rma)
				sim_rma_bury(r);
		}
	for (int r = 0; r < sim.plan.ranks; r++)
		weft_comm_core_destroy(sim.rank[r].core);
	sim_lanes_end();
	sim_traffic_free();
}
