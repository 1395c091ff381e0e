/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rma.c - one-sided traffic: windows of the ranks, and threads that access them, lock, flush and wait as programs
 * do, in calls that block (co.h).  Messages of traffic.c go on beside.
 */
#include "rma.h"

#include <stdlib.h>
#include "comm/lost_peer.h"

struct rma rma;

bool __wrap_weft_comm_same_host(const struct weft_core *core, int peer);

/* All ranks are processes of their own on a host each, on one host, or on two. */
bool __wrap_weft_comm_same_host(const struct weft_core *core, int peer)
{
	return peer == core->rank || rma.hosts == 1 ||
	       (rma.hosts == 2 && ((core->rank ^ peer) & 1) == 0);
}

/* ---- where ---------------------------------------------------------------------------------- */

size_t rma_area_at(int rank, int thread)
{
	size_t words = weft_align_up(RMA_WORDS * sizeof(uint64_t), 64);
	return words + (size_t)rank * (2 * RMA_SMALL + RMA_LARGE) +
	       (thread ? RMA_SMALL + RMA_LARGE : 0);
}

size_t rma_bytes(void)
{
	return rma_area_at(sim.plan.ranks, 0);
}

bool rma_gone(int rank, int peer)
{
	return sim.rank[rank].dead || (rank != peer && sim_broken(rank, peer));
}

static struct weft_rma_there there(int to, size_t at, size_t bytes)
{
	int64_t base = rma.flavor == WEFT_RMA_DYNAMIC ? (int64_t)(uintptr_t)rma.memory[to] : 0;
	return (struct weft_rma_there){.rank = to, .at = base + (int64_t)at, .bytes = bytes};
}

static struct weft_rma_there there_word(int to, unsigned i)
{
	return there(to, i * sizeof(uint64_t), sizeof(uint64_t));
}

/* True: it went well.  Else the target is gone, and has to be. */
static bool went(int rank, int to, weft_err err)
{
	if (!err)
		return true;
	CHECK_EQ(err, WEFT_ERR_PEER);
	CHECK(rma_gone(rank, to));
	SIM_SAY("%d is told that %d is gone", rank, to);
	sim_cover(SIM_ONE_LOST);
	rma.lost[rank][to] = true;
	return false;
}

/* Between two steps of a thread others may move. */
static void pause(void)
{
	if (sim_chance(30))
		sim_co_yield();
}

/* ---- accesses ------------------------------------------------------------------------------- */

static struct weft_rma_op *op_of(struct rma_access *a, bool wanted)
{
	if (!wanted)
		return NULL;
	weft_rma_op_init(&a->op);
	return &a->op;
}

/* The call has returned err; waits for the operation, if it has one. */
static void called(struct rma_thread *t, struct rma_access *a, struct weft_rma_op *op, weft_err err)
{
	bool well = went(t->rank, a->to, err);
	if (op) {
		weft_rma_op_started(op);
		pause();
		weft_task_engine_wait(&op->done);
		/* Relaxed: it is done. */
		well = well &&
		       went(t->rank, a->to,
			    (weft_err)atomic_load_explicit(&op->x_err, memory_order_relaxed));
	}
	if (!well)
		a->kind = RMA_PUT; /* nothing is known of it */
	if (!well || op)
		rma_access_over(t, a);
}

static void random_bytes(char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (char)sim_pick(256);
}

static void put_small(struct rma_thread *t, int to)
{
	unsigned at = sim_pick(RMA_SMALL), n = 1 + sim_pick(RMA_SMALL - at);
	n = n > 64 && sim_chance(70) ? 1 + n % 64 : n;
	struct rma_access *a = rma_access_new(t, RMA_PUT, to, n);
	random_bytes(a->data, n);
	t->stamp++;
	rma_area_put(t, to, at, a->data, n);
	struct weft_buf from = weft_data_buf_flat(a->data, n);
	struct weft_rma_there where = there(to, rma_area_at(t->rank, t->number) + at, n);
	if (weft_rma_flush_expected(&rma.win[t->rank]->target[to]))
		sim_cover(SIM_ONE_ASKS);
	struct weft_rma_op *op = op_of(a, sim_chance(20));
	called(t, a, op, weft_rma_put(rma.win[t->rank], &from, &where, op));
}

/* Pieces of 8 bytes, every 16. */
static void put_pieces(struct rma_thread *t, int to)
{
	unsigned k = 1 + sim_pick(24), at = sim_pick(RMA_SMALL - 16 * k);
	struct rma_access *a = rma_access_new(t, RMA_PUT, to, (size_t)8 * k);
	const struct weft_type *type = NULL;
	CHECK(!weft_data_type_hvector(k, 8, 16, &weft_data_type_elem[WEFT_B_BYTE], &type));
	random_bytes(a->data, a->bytes);
	t->stamp++;
	for (unsigned i = 0; i < k; i++)
		rma_area_put(t, to, at + 16 * i, a->data + (size_t)8 * i, 8);
	struct weft_buf from = weft_data_buf_flat(a->data, a->bytes);
	struct weft_rma_there where = there(to, rma_area_at(t->rank, t->number) + at, a->bytes);
	where.type = type;
	where.count = 1;
	struct weft_rma_op *op = op_of(a, sim_chance(20));
	weft_err err = weft_rma_put(rma.win[t->rank], &from, &where, op);
	weft_data_type_unref(type);
	called(t, a, op, err);
}

static void get_small(struct rma_thread *t, int to)
{
	unsigned at = sim_pick(RMA_SMALL), n = 1 + sim_pick(RMA_SMALL - at);
	struct rma_access *a = rma_access_new(t, RMA_GET, to, n);
	a->at = at;
	struct weft_buf into = weft_data_buf_flat(a->data, n);
	struct weft_rma_there where = there(to, rma_area_at(t->rank, t->number) + at, n);
	struct weft_rma_op *op = op_of(a, sim_chance(30));
	called(t, a, op, weft_rma_get(rma.win[t->rank], &into, &where, op));
}

static void large(struct rma_thread *t, int to, bool get)
{
	struct rma_area *area = &t->area[to];
	if (t->number || (!get && area->large_stamp > area->settled))
		return; /* two of them have no order */
	struct rma_access *a = rma_access_new(t, get ? RMA_GET_LARGE : RMA_PUT, to, RMA_LARGE);
	struct weft_buf here = weft_data_buf_flat(a->data, RMA_LARGE);
	struct weft_rma_there where =
		there(to, rma_area_at(t->rank, 0) + RMA_SMALL, (size_t)RMA_LARGE);
	struct weft_rma_op *op = op_of(a, sim_chance(30));
	a->large = area->large;
	weft_err err;
	if (get) {
		err = weft_rma_get(rma.win[t->rank], &here, &where, op);
	} else {
		area->large = area->large_stamp = ++t->stamp;
		rma_fill_large(a->data, area->large);
		err = weft_rma_put(rma.win[t->rank], &here, &where, op);
	}
	called(t, a, op, err);
}

static void ticket(struct rma_thread *t, int to)
{
	struct rma_access *a = rma_access_new(t, RMA_TICKET, to, sizeof(uint64_t));
	struct weft_rma_there where = there_word(to, RMA_TICKETS);
	a->above = rma.target[to].highest;
	a->value = 1;
	rma.target[to].tickets++;
	struct weft_buf from = weft_data_buf_flat((char *)&a->value, sizeof a->value);
	struct weft_buf into = weft_data_buf_flat(a->data, sizeof(uint64_t));
	struct weft_rma_op *op = op_of(a, sim_chance(40));
	called(t, a, op,
	       weft_rma_accumulate(rma.win[t->rank], &from, &into, &where,
				   (struct weft_rma_reduction){WEFT_OP_SUM, WEFT_B_U64}, op));
}

static void swap(struct rma_thread *t, int to)
{
	struct rma_access *a = rma_access_new(t, RMA_SWAP, to, sizeof(uint64_t));
	struct weft_rma_there where = there_word(to, RMA_SWAPS);
	uint64_t value = rma.target[to].swaps_known + 1;
	a->compare = value - 1;
	rma.target[to].swaps++;
	called(t, a, NULL,
	       weft_rma_compare_swap(rma.win[t->rank], &value, &a->compare, a->data, WEFT_B_U64,
				     &where));
}

static void add(struct rma_thread *t, int to)
{
	struct rma_access *a = rma_access_new(t, RMA_ADD, to, RMA_SUMS * sizeof(uint64_t));
	struct weft_rma_there where = there(to, RMA_SUM * sizeof(uint64_t), a->bytes);
	a->value = 1 + sim_pick(1000);
	for (size_t i = 0; i < RMA_SUMS; i++)
		memcpy(a->data + i * sizeof a->value, &a->value, sizeof a->value);
	rma.target[to].sum += a->value;
	struct weft_buf from = weft_data_buf_flat(a->data, a->bytes);
	called(t, a, NULL,
	       weft_rma_accumulate(rma.win[t->rank], &from, NULL, &where,
				   (struct weft_rma_reduction){WEFT_OP_SUM, WEFT_B_U64}, NULL));
}

static bool flush(struct rma_thread *t, int to)
{
	bool well = went(t->rank, to, weft_rma_flush(rma.win[t->rank], to));
	rma_flushed(t, to, !well);
	return well;
}

static void flush_all(struct rma_thread *t)
{
	weft_err err = weft_rma_flush_all(rma.win[t->rank]);
	bool any = false;
	for (int to = 0; to < sim.plan.ranks; to++) {
		bool gone = rma_gone(t->rank, to) || rma.lost[t->rank][to];
		any = any || gone;
		rma_flushed(t, to, err && gone);
	}
	CHECK(!err || (err == WEFT_ERR_PEER && any));
}

/* What a flush has ended is there for the next access, though the data went by a message of its own. */
static void large_and_back(struct rma_thread *t, int to)
{
	large(t, to, false);
	if (!rma.lost[t->rank][to] && flush(t, to))
		large(t, to, true);
}

/* Outside of the window, or of what is attached: refused, here or there. */
static void outside(struct rma_thread *t, int to)
{
	struct weft_rma_win *win = rma.win[t->rank];
	char byte[8] = {0};
	struct weft_buf from = weft_data_buf_flat(byte, sizeof byte);
	struct weft_rma_there where = there(to, rma_bytes() - sim_pick(8), sizeof byte);
	sim_cover(SIM_ONE_REFUSED);
	if (rma.flavor != WEFT_RMA_DYNAMIC) {
		CHECK_EQ(weft_rma_put(win, &from, &where, NULL), WEFT_ERR_ARG);
		return;
	}
	/* Another thread's flush may be told instead. */
	if (rma.threads > 1 || !flush(t, to))
		return;
	weft_err err = weft_rma_put(win, &from, &where, NULL);
	weft_err late = weft_rma_flush(win, to);
	if (err != WEFT_ERR_ARG && late != WEFT_ERR_ARG)
		CHECK(!went(t->rank, to, err ? err : late));
}

static void access_some(struct rma_thread *t, int to)
{
	unsigned what = sim_pick(100);
	if (what < 30)
		put_small(t, to);
	else if (what < 38)
		put_pieces(t, to);
	else if (what < 58)
		get_small(t, to);
	else if (what < 68)
		ticket(t, to);
	else if (what < 78)
		swap(t, to);
	else if (what < 90)
		add(t, to);
	else if (what < 95)
		large(t, to, sim_chance(50));
	else if (what < 98)
		large_and_back(t, to);
	else
		outside(t, to);
}

static void accesses(struct rma_thread *t, int to)
{
	unsigned how = sim_pick(10);
	for (unsigned n = 1 + sim_pick(4); n && !rma.lost[t->rank][to]; n--) {
		access_some(t, to);
		pause();
	}
	if (how < 6)
		(void)flush(t, to);
	else if (how < 7)
		flush_all(t);
}

/* ---- locks ---------------------------------------------------------------------------------- */

static bool get_word(struct rma_thread *t, int to, uint64_t *word_p)
{
	struct weft_buf into = weft_data_buf_flat((char *)word_p, sizeof *word_p);
	struct weft_rma_there where = there_word(to, RMA_LOCKED);
	return went(t->rank, to, weft_rma_get(rma.win[t->rank], &into, &where, NULL)) &&
	       flush(t, to);
}

static void update_locked(struct rma_thread *t, int to)
{
	struct rma_target *p = &rma.target[to];
	uint64_t word = 0;
	struct weft_buf from = weft_data_buf_flat((char *)&word, sizeof word);
	struct weft_rma_there where = there_word(to, RMA_LOCKED);
	if (!get_word(t, to, &word))
		return;
	pause();
	CHECK(word >= p->locked_known && word <= p->locked);
	word++;
	p->locked++;
	if (went(t->rank, to, weft_rma_put(rma.win[t->rank], &from, &where, NULL)) && flush(t, to))
		p->locked_known++;
}

static void look_locked(struct rma_thread *t, int to)
{
	uint64_t first = 0, second = 0;
	if (!get_word(t, to, &first))
		return;
	pause();
	if (get_word(t, to, &second))
		CHECK_EQ(first, second);
}

static void lock(struct rma_thread *t, int to)
{
	bool exclusive = sim_chance(60);
	if (!went(t->rank, to, weft_rma_lock(rma.win[t->rank], to, exclusive)))
		return;
	SIM_SAY("%d has the lock of %d%s", t->rank, to, exclusive ? "" : ", shared");
	rma_lock_got(t->rank, to, exclusive);
	pause();
	if (exclusive)
		update_locked(t, to);
	else
		look_locked(t, to);
	SIM_SAY("%d gives up the lock of %d", t->rank, to);
	rma_lock_given(t->rank, to, exclusive);
	weft_rma_unlock(rma.win[t->rank], to, exclusive);
}

/* ---- notifications -------------------------------------------------------------------------- */

static void notify(struct rma_thread *t, int to)
{
	struct rma_access *a = rma_access_new(t, RMA_PUT, to, sizeof(uint64_t));
	struct weft_rma_there where = there_word(to, RMA_CELL + (unsigned)t->rank);
	struct weft_buf from = weft_data_buf_flat(a->data, sizeof(uint64_t));
	uint64_t *cell = &rma.cells[t->rank][to];
	++*cell;
	memcpy(a->data, cell, sizeof *cell);
	weft_err err = weft_rma_put(rma.win[t->rank], &from, &where, NULL);
	if (!err)
		err = weft_rma_note(rma.win[t->rank], to, (unsigned)t->rank);
	called(t, a, NULL, err);
}

static void take_notes(int rank)
{
	for (int q = 0; q < sim.plan.ranks; q++)
		while (weft_rma_note_test(rma.win[rank], (unsigned)q,
					  1)) { /* ends: so many were sent */
			sim_cover(SIM_ONE_NOTED);
			rma.noted[rank][q]++;
			CHECK(*rma_word(rank, RMA_CELL + (unsigned)q) >= rma.noted[rank][q]);
		}
}

/* ---- post and start, complete and wait; fences; a notification that is waited for -------------- */

/* False: a member is gone, and with it the epoch. */
static bool epoch_goes_on(int rank, weft_err err)
{
	bool any = false;
	for (int q = 0; q < sim.plan.ranks; q++)
		any = any || rma_gone(rank, q);
	if (!err)
		return true;
	CHECK(err == WEFT_ERR_PEER && any);
	sim_cover(SIM_ONE_EPOCH_LOST);
	rma.epochs_over[rank] = true;
	return false;
}

static bool put_epoch(struct rma_thread *t, int to)
{
	struct weft_rma_win *win = rma.win[t->rank];
	uint64_t word = rma.epochs[t->rank];
	struct weft_buf from = weft_data_buf_flat((char *)&word, sizeof word);
	struct weft_rma_there where = there_word(to, RMA_EPOCH + (unsigned)t->rank);
	weft_err err = weft_rma_put(win, &from, &where, NULL);
	pause();
	if (epoch_goes_on(t->rank, err) && !flush(t, to))
		rma.epochs_over[t->rank] = true;
	return !rma.epochs_over[t->rank] && epoch_goes_on(t->rank, weft_rma_complete(win, to));
}

/* Each member is origin and target of all others. */
static void epoch(struct rma_thread *t)
{
	struct weft_rma_win *win = rma.win[t->rank];
	int other[SIM_RANKS] = {0}, n = 0;
	rma.epochs[t->rank]++;
	if (rma.epochs[t->rank] > rma.epochs_most)
		rma.epochs_most = rma.epochs[t->rank];
	for (int q = 0; q < sim.plan.ranks; q++)
		if (q != t->rank)
			other[n++] = q;
	SIM_SAY("%d begins epoch %u", t->rank, rma.epochs[t->rank]);
	for (int i = 0; i < n; i++)
		if (!epoch_goes_on(t->rank, weft_rma_post(win, other[i])))
			return;
	if (!epoch_goes_on(t->rank, weft_rma_post_wait(win, other, n)))
		return;
	for (int i = 0; i < n; i++)
		if (!put_epoch(t, other[i]))
			return;
	if (!epoch_goes_on(t->rank, weft_rma_complete_wait(win, other, n)))
		return;
	for (int i = 0; i < n; i++)
		CHECK_EQ(*rma_word(t->rank, RMA_EPOCH + (unsigned)other[i]), rma.epochs[t->rank]);
	sim_cover(SIM_ONE_EPOCH);
	if (weft_rma_fences(win) && epoch_goes_on(t->rank, weft_rma_fence(win)))
		sim_cover(SIM_ONE_FENCE);
	/* A notification to the next member, and one from the member before. */
	if (rma.epochs_over[t->rank] || rma.lost[t->rank][other[0]])
		return;
	int next = (t->rank + 1) % sim.plan.ranks, prev = (t->rank + n) % sim.plan.ranks;
	unsigned note = (unsigned)(SIM_RANKS + t->rank);
	if (epoch_goes_on(t->rank, weft_rma_note(win, next, note)))
		(void)epoch_goes_on(t->rank, weft_rma_note_wait(win, (unsigned)(SIM_RANKS + prev),
								1, WEFT_ANY_PEER));
}

static bool may_epoch(void)
{
	/* A member that gives up because of a peer that only it has lost leaves the others waiting. */
	return sim.plan.cut_a < 0 && !sim.plan.bundle;
}

/* ---- threads -------------------------------------------------------------------------------- */

static void do_something(void *arg)
{
	struct rma_thread *t = arg;
	unsigned what = t->number ? 0 : sim_pick(100);
	int to = (int)sim_pick((unsigned)sim.plan.ranks);
	if (rma.lost[t->rank][to])
		to = t->rank;
	if (what < 55)
		accesses(t, to);
	else if (what < 75)
		lock(t, to);
	else if (what < 85)
		notify(t, to);
	else if (what < 92)
		take_notes(t->rank);
	else if (may_epoch() && !rma.epochs_over[t->rank])
		epoch(t);
}

static void do_epoch(void *arg)
{
	epoch(arg);
}

static void do_last(void *arg)
{
	struct rma_thread *t = arg;
	for (int to = 0; to < sim.plan.ranks; to++)
		if (!rma.lost[t->rank][to])
			(void)flush(t, to);
		else
			rma_flushed(t, to, true);
	flush_all(t);
}

static void look(int rank)
{
	const struct weft_rma_win *win = rma.win[rank];
	for (int q = 0; q < sim.plan.ranks; q++) {
		if (win->target[q].early)
			sim_cover(SIM_ONE_EARLY);
		if (win->target[q].n_flushes)
			sim_cover(SIM_ONE_BEHIND);
	}
	if (win->locks)
		sim_cover(SIM_ONE_LOCK_WAITS);
}

void sim_rma_call(int rank)
{
	struct rma_thread *t = &rma.thread[rank][sim_pick((unsigned)rma.threads)];
	if (sim.polling_engine)
		return; /* a handler may not wait */
	look(rank);
	if (t->co.state == SIM_CO_READY)
		sim_co_resume(&t->co);
	else if (t->co.state == SIM_CO_IDLE)
		sim_co_start(&t->co, do_something, t);
	else if (t->co.state == SIM_CO_PARKED)
		sim_cover(SIM_ONE_PARKED);
}

int sim_rma_step(int rank)
{
	int n = 0;
	for (int i = 0; i < rma.threads; i++)
		/* Ends: its call does. */
		for (; rma.thread[rank][i].co.state == SIM_CO_READY; n++)
			sim_co_resume(&rma.thread[rank][i].co);
	return n;
}

void sim_rma_dies(int rank)
{
	for (int q = 0; q < sim.plan.ranks; q++)
		if (rma.target[q].holder == rank || rma.target[q].holders >> rank & 1)
			sim_cover(SIM_ONE_DIES_LOCKED);
	for (int i = 0; i < rma.threads; i++)
		if (rma.thread[rank][i].co.state == SIM_CO_PARKED)
			sim_cover(SIM_ONE_DIES_PARKED);
}

void sim_rma_lost(struct weft_core *core, int peer)
{
	weft_rma_peer_down(core, peer);
}

static bool start_on(int rank, int thread, void (*body)(void *arg))
{
	struct rma_thread *t = &rma.thread[rank][thread];
	if (sim.rank[rank].dead || t->co.state != SIM_CO_IDLE)
		return false;
	sim_co_start(&t->co, body, t);
	return true;
}

bool sim_rma_finish(void)
{
	bool moved = false;
	for (int r = 0; r < sim.plan.ranks; r++)
		if (rma.epochs[r] < rma.epochs_most && !rma.epochs_over[r])
			moved |= start_on(r, 0, do_epoch);
	if (moved)
		return true;
	for (int r = 0; r < sim.plan.ranks; r++)
		for (int i = 0; i < rma.threads; i++)
			if (!rma.thread[r][i].settling && start_on(r, i, do_last))
				moved = rma.thread[r][i].settling = true;
	for (int r = 0; r < sim.plan.ranks && !moved; r++)
		for (int i = 0; i < rma.threads && !sim.rank[r].dead; i++)
			/* Nothing is under way that could wake it. */
			CHECK(rma.thread[r][i].co.state == SIM_CO_IDLE);
	return moved;
}

/* ---- windows -------------------------------------------------------------------------------- */

void sim_rma_draw(struct sim_plan *p)
{
	rma.threads = 1 + (int)sim_pick(RMA_THREADS);
	rma.hosts = sim_pick(2) ? 0 : 1 + (int)sim_pick(2);
	rma.flavor = (const enum weft_rma_flavor[]){WEFT_RMA_CREATE, WEFT_RMA_ALLOCATE,
						    WEFT_RMA_DYNAMIC}[sim_pick(3)];
	p->ops *= 3; /* a call on a thread that waits does nothing */
	if (rma.hosts) {
		/* On one host a process that lives is not taken for dead. */
		p->bundle = false;
		p->cuts = 0;
		p->cut_a = p->cut_b = -1;
	}
}

static void window_conf(int rank, struct weft_rma_offer *offer)
{
	struct weft_core *core = sim.rank[rank].core;
	bool ours = rma.flavor == WEFT_RMA_ALLOCATE;
	CHECK(!weft_comm_core_ctx_open(core, SIM_RMA_CTX, &rma.am[rank]));
	CHECK(!weft_comm_core_ctx_open(core, SIM_RMA_CTX | WEFT_CTX_COUNTED, &rma.data[rank]));
	struct weft_rma_conf conf = {.am = rma.am[rank],
				     .data = rma.data[rank],
				     .rank = rank,
				     .size = sim.plan.ranks,
				     .flavor = rma.flavor,
				     .unit = 1,
				     .threads = rma.threads > 1};
	rma.memory[rank] = ours ? NULL : aligned_alloc(64, weft_align_up(rma_bytes(), 64));
	CHECK(ours || rma.memory[rank]);
	if (rma.flavor == WEFT_RMA_CREATE)
		conf.base = rma.memory[rank];
	if (rma.flavor != WEFT_RMA_DYNAMIC)
		conf.len = rma_bytes();
	CHECK(!weft_rma_win_new(&conf, &rma.win[rank], offer));
}

static void windows_make(void)
{
	struct weft_rma_offer offer[SIM_RANKS];
	struct weft_rma_ticket ticket[SIM_RANKS];
	int32_t mapped[SIM_RANKS];
	int n = sim.plan.ranks;
	for (int r = 0; r < n; r++)
		window_conf(r, &offer[r]);
	for (int r = 0; r < n; r++)
		weft_rma_win_share(rma.win[r], offer, &ticket[r]);
	for (int r = 0; r < n; r++)
		mapped[r] = weft_rma_win_map(rma.win[r], ticket);
	for (int r = 0; r < n; r++)
		CHECK(!weft_rma_win_ready(rma.win[r], mapped));
	for (int r = 0; r < n; r++) {
		if (rma.flavor == WEFT_RMA_ALLOCATE)
			rma.memory[r] = weft_rma_base(rma.win[r]);
		memset(rma.memory[r], 0, rma_bytes());
		if (rma.flavor == WEFT_RMA_DYNAMIC)
			CHECK(!weft_rma_attach(rma.win[r], rma.memory[r], rma_bytes()));
		for (int q = 0; q < n; q++)
			sim_cover(SIM_ONE_MAPPED + (enum sim_state)weft_rma_path(rma.win[r], q));
	}
}

void sim_rma_begin(void)
{
	static struct sim_co co[SIM_RANKS][RMA_THREADS]; /* their stacks stay */
	struct rma drawn = {.threads = rma.threads, .hosts = rma.hosts, .flavor = rma.flavor};
	for (int r = 0; r < SIM_RANKS; r++)
		for (int i = 0; i < RMA_THREADS; i++)
			co[r][i] = rma.thread[r][i].co;
	memset(&rma, 0, sizeof rma);
	rma.threads = drawn.threads;
	rma.hosts = drawn.hosts;
	rma.flavor = drawn.flavor;
	for (int r = 0; r < SIM_RANKS; r++) {
		rma.target[r].holder = -1;
		rma.target[r].highest = -1;
		for (int i = 0; i < RMA_THREADS; i++) {
			rma.thread[r][i].co = co[r][i];
			rma.thread[r][i].rank = r;
			rma.thread[r][i].number = i;
			sim_co_make(&rma.thread[r][i].co);
		}
	}
	windows_make();
}

static void window_free(int rank)
{
	weft_rma_win_free(rma.win[rank]);
	/* What a dead member has sent may lie there. */
	weft_comm_ctx_close(rma.am[rank]);
	weft_comm_ctx_close(rma.data[rank]);
	if (rma.flavor != WEFT_RMA_ALLOCATE)
		free(rma.memory[rank]);
}

void sim_rma_end(void)
{
	for (int r = 0; r < sim.plan.ranks; r++)
		if (!sim.rank[r].dead)
			take_notes(r);
	for (int to = 0; to < sim.plan.ranks; to++)
		for (int q = 0; q < sim.plan.ranks; q++)
			if (!rma_gone(q, to) && !sim.rank[to].dead && !rma.lost[q][to])
				CHECK_EQ(rma.noted[to][q], rma.cells[q][to]);
	rma_check_all();
	for (int r = 0; r < sim.plan.ranks; r++)
		if (!sim.rank[r].dead)
			window_free(r);
}

void sim_rma_bury(int rank)
{
	for (int q = 0; q < sim.plan.ranks; q++)
		if (q != rank)
			weft_comm_core_peer_down(sim.rank[rank].core, q, WEFT_ERR_PEER, "the end");
	for (int i = 0; i < rma.threads; i++)
		rma_thread_drop(&rma.thread[rank][i]);
	struct weft_rma_win *win = rma.win[rank];
	/* Copies that are tasks end when the engine comes to them.  Relaxed: one thread. */
	for (int i = 0; i < 100 && atomic_load_explicit(&win->x_unsent, memory_order_relaxed); i++)
		(void)weft_engine_poll();
	if (!atomic_load_explicit(&win->x_unsent, memory_order_relaxed))
		window_free(rank);
	else
		win->core = NULL; /* what its driver never gave back stays with it */
}
