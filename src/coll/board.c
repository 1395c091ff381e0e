/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * board.c - barrier and small allreduce, allgather and alltoall where many ranks share few cores:
 * all meet on a board in the memory of the group's first member (board.h says how and why).
 *
 * A group agrees on its board by messages, in its BOARD_FROM-th small collective: groups that live
 * shorter do not pay for it.  Who waits looks at the board, yielding, for as long as any waiter of
 * this process polls; then it sleeps in a receive for a message from whoever ends the turn.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cancel.h"
#include "base/counters.h"
#include "base/log.h"
#include "coll/alg.h"
#include "coll/board.h"
#include "task/task.h"

#define BOARD_FROM 4
#define POLL_EVERY_MASK 3   /* looks with a yield, between polls, less 1 */
#define SPIN_EVERY_MASK 127 /* and looks without */
_Static_assert(sizeof(struct weft_board_memory) == WEFT_COMM_BOARD_BYTES, "comm/ has room for it");

/* What a member keeps. */
struct keep {
	struct weft_board_slot *slot; /* NULL: none (yet) */
	unsigned uses;
	uint32_t turn;
	int size;
	struct weft_stages *stages; /* of stage.c; NULL: none */
	struct weft_req req;        /* under way, one at a time; here, as stacks may be small */
};

/* One meeting of one member. */
struct meeting {
	const struct weft_coll_group *g;
	struct keep *keep;
	weft_reduce_fn *fn;
	size_t count, bytes;
	bool mine;  /* we ended the turn */
	bool wrong; /* the members' calls do not match, and we said so */
};

/* ---- messages ----------------------------------------------------------------------------- */

static weft_err board_send(const struct weft_coll_group *g, int rank, int tag, const void *data,
			   size_t bytes)
{
	struct weft_buf buf = weft_buf_flat(data, bytes);
	int peer = weft_coll_process(g, rank);
	weft_err err = weft_send_now(g->ctx, peer, g->tag + tag, &buf);
	if (err != WEFT_AGAIN)
		return err;
	struct weft_req *req = &((struct keep *)*g->keep_p)->req;
	weft_req_init(req, NULL, NULL);
	err = weft_isend(req, g->ctx, peer, g->tag + tag, &buf, WEFT_SEND_STANDARD);
	if (err)
		return err;
	weft_engine_wait(&req->done);
	return req->status.err;
}

static weft_err board_recv(const struct weft_coll_group *g, int peer, int tag, void *data,
			   size_t bytes)
{
	struct weft_buf buf = weft_buf_flat(data, bytes);
	struct weft_req *req = &((struct keep *)*g->keep_p)->req;
	weft_req_init(req, NULL, NULL);
	weft_err err = weft_irecv(req, g->ctx, peer, g->tag + tag, &buf);
	if (err)
		return err;
	weft_engine_wait(&req->done);
	err = req->status.err;
	return !err && req->status.bytes != bytes ? WEFT_ERR_PEER : err;
}

/* ---- making one --------------------------------------------------------------------------- */

/* The same answer on every member. */
static bool may_have_board(const struct weft_coll_group *g)
{
	if (!g->crowded || g->size < 2 || g->size > WEFT_BOARD_MEMBERS)
		return false;
	for (int r = 0; r < g->size; r++)
		if (!weft_comm_same_host(weft_coll_process(g, r)))
			return false;
	return true;
}

static struct weft_board_slot *slot_at(int owner, int index)
{
	struct weft_board_memory *m = weft_comm_board(owner);
	return m && index >= 0 && index < WEFT_BOARD_SLOTS ? &m->slot[index] : NULL;
}

/* A free slot of our own; -1: none. */
static int slot_take(int self)
{
	for (int i = 0; i < WEFT_BOARD_SLOTS; i++) {
		struct weft_board_slot *s = slot_at(self, i);
		uint32_t none = 0;
		/* TAKE <- GIVE (weft_coll_keep_free).  Carries: nobody of the last group looks at
		 * the slot any more. */
		if (!s || !atomic_compare_exchange_strong_explicit(
				  &s->x_used, &none, 1, memory_order_acquire, memory_order_relaxed))
			continue;
		/* Relaxed: the message with the index publishes them. */
		atomic_store_explicit(&s->x_left, 0, memory_order_relaxed);
		atomic_store_explicit(&s->x_count, 0, memory_order_relaxed);
		atomic_store_explicit(&s->x_turn, 0, memory_order_relaxed);
		atomic_store_explicit(&s->x_asleep[0], 0, memory_order_relaxed);
		atomic_store_explicit(&s->x_asleep[1], 0, memory_order_relaxed);
		for (int r = 0; r < WEFT_BOARD_MEMBERS; r++)
			atomic_store_explicit(&s->cell[r].x_note, 0, memory_order_relaxed);
		return i;
	}
	return -1;
}

/* The first member offers a slot, hears whether all can reach it, and says so. */
static weft_err agree_first(const struct weft_coll_group *g, struct keep *k)
{
	int self = weft_coll_process(g, 0), index = slot_take(self);
	char yes = index >= 0, answer;
	weft_err err = WEFT_OK;
	for (int r = 1; r < g->size && !err; r++)
		err = board_send(g, r, WEFT_TAG_BOARD, &index, sizeof index);
	for (int r = 1; r < g->size && !err; r++) {
		err = board_recv(g, weft_coll_process(g, r), WEFT_TAG_BOARD, &answer, 1);
		yes = yes && answer;
	}
	for (int r = 1; r < g->size && !err; r++)
		err = board_send(g, r, WEFT_TAG_BOARD, &yes, 1);
	if (!err && yes)
		k->slot = slot_at(self, index);
	else if (!err && index >= 0)
		/* Relaxed: nobody else has used it. */
		atomic_store_explicit(&slot_at(self, index)->x_used, 0, memory_order_relaxed);
	return err;
}

static weft_err agree_other(const struct weft_coll_group *g, struct keep *k)
{
	int first = weft_coll_process(g, 0), index;
	char yes;
	weft_err err = board_recv(g, first, WEFT_TAG_BOARD, &index, sizeof index);
	if (err)
		return err;
	struct weft_board_slot *slot = slot_at(first, index);
	yes = slot != NULL;
	err = board_send(g, 0, WEFT_TAG_BOARD, &yes, 1);
	if (!err)
		err = board_recv(g, first, WEFT_TAG_BOARD, &yes, 1);
	if (!err && yes)
		k->slot = slot;
	return err;
}

weft_err weft_board_connect(const struct weft_coll_group *g)
{
	char byte = 0;
	weft_err err = WEFT_OK;
	for (int k = 1; k < g->size && !err; k++)
		err = board_send(g, (g->rank + k) % g->size, WEFT_TAG_BOARD, &byte, 1);
	for (int k = 1; k < g->size && !err; k++)
		err = board_recv(g, weft_coll_process(g, (g->rank + g->size - k) % g->size),
				 WEFT_TAG_BOARD, &byte, 1);
	return err;
}

bool weft_board_open(const struct weft_coll_group *g, weft_err *err_p)
{
	if (!g->crowded || !g->keep_p)
		return false;
	struct keep *k = *g->keep_p;
	if (weft_unlikely(!k)) {
		k = calloc(1, sizeof *k);
		if (!k) {
			*err_p = WEFT_ERR_NOMEM;
			return false;
		}
		k->size = g->size;
		*g->keep_p = k;
	}
	if (weft_likely(k->slot != NULL))
		return true;
	if (k->uses > BOARD_FROM)
		return false;
	if (k->uses++ < BOARD_FROM || !may_have_board(g))
		return false;
	*err_p = g->rank ? agree_other(g, k) : agree_first(g, k);
	return k->slot != NULL;
}

void weft_coll_keep_free(void *keep)
{
	struct keep *k = keep;
	if (!k)
		return;
	/* GIVE -> TAKE (slot_take).  Carries: we, and by the count all others, look no more. */
	bool last =
		k->slot && atomic_fetch_add_explicit(&k->slot->x_left, 1, memory_order_acq_rel) ==
				   (uint32_t)k->size - 1;
	weft_stages_free(k->stages, last);
	if (last)
		atomic_store_explicit(&k->slot->x_used, 0, memory_order_release);
	free(k);
}

/* ---- calls that do not match --------------------------------------------------------------- */

/*
 * Members that call different collectives would wait for each other for ever.  Each notes in its
 * cell which one it is in, by number and kind, and looks at the others' notes before it waits where
 * the board does not help: before messages, and before it sleeps here.  seq_cst, both: of two whose
 * calls do not match, one sees the other.
 */
#define NOTE_LATER 0x80u /* nonblocking or persistent: another kind */

static uint32_t note_of(const struct weft_coll_group *g, enum weft_coll_kind kind, bool later)
{
	uint32_t number = (uint32_t)g->tag / WEFT_COLL_TAGS & 0x7fffff;
	return number << 8 | (later ? NOTE_LATER : 0) | ((uint32_t)kind + 1);
}

static const char *name_of(uint32_t note)
{
	return weft_coll_kind_name((note & (NOTE_LATER - 1)) - 1);
}

/* Is another in a different collective of the same number, or (ahead) past mine?  Fails the turn
 * and says so; false: all is well, or another has found it. */
static bool mismatch(const struct weft_coll_group *g, struct keep *k, bool ahead)
{
	struct weft_board_slot *s = k->slot;
	uint32_t mine = atomic_load_explicit(&s->cell[g->rank].x_note, memory_order_relaxed);
	for (int r = 0; r < g->size; r++) {
		uint32_t theirs = atomic_load_explicit(&s->cell[r].x_note, memory_order_seq_cst);
		/* The distance of two numbers of 23 bits. */
		int32_t apart = (int32_t)((theirs & ~0xffu) - (mine & ~0xffu)) << 1;
		if (!theirs || theirs == mine || apart < 0 || (apart > 0 && !ahead))
			continue;
		/* False also when the turn has ended meanwhile, and the other went on. */
		if (!weft_board_fail(s, k->turn))
			return false;
		weft_error("collectives that do not match: rank %d of the communicator is in %s%s, "
			   "rank %d in %s%s",
			   g->rank, name_of(mine), mine & NOTE_LATER ? " (nonblocking)" : "", r,
			   name_of(theirs), theirs & NOTE_LATER ? " (nonblocking)" : "");
		return true;
	}
	return false;
}

static void wake_sleepers(const struct weft_coll_group *g, const struct keep *k);

static struct keep *keep_with_slot(const struct weft_coll_group *g)
{
	struct keep *k = g->keep_p ? *g->keep_p : NULL;
	return k && k->slot && k->turn != WEFT_BOARD_FAILED ? k : NULL;
}

void weft_board_note(const struct weft_coll_group *g, enum weft_coll_kind kind)
{
	struct keep *k = keep_with_slot(g);
	/* Relaxed: who waits on the board notes it again before it sleeps. */
	if (k)
		atomic_store_explicit(&k->slot->cell[g->rank].x_note, note_of(g, kind, false),
				      memory_order_relaxed);
}

weft_err weft_coll_note(const struct weft_coll_group *g, enum weft_coll_kind kind, bool later)
{
	struct keep *k = keep_with_slot(g);
	if (weft_likely(!k))
		return WEFT_OK;
	/* NOTE -> NOTE (mismatch).  Carries: nothing but itself.  seq_cst on both: of two who note
	 * different calls at least the later one sees the other's. */
	atomic_exchange_explicit(&k->slot->cell[g->rank].x_note, note_of(g, kind, later),
				 memory_order_seq_cst);
	if (weft_likely(!mismatch(g, k, false)))
		return WEFT_OK;
	wake_sleepers(g, k);
	k->turn = WEFT_BOARD_FAILED;
	return WEFT_ERR_TRUNC;
}

/* ---- meeting ------------------------------------------------------------------------------ */

/* We have ended the turn: messages for those who sleep. */
static void wake_sleepers(const struct weft_coll_group *g, const struct keep *k)
{
	uint32_t mask = weft_board_sleepers(k->slot, k->turn);
	for (int r = 0; r < g->size && mask; r++, mask >>= 1)
		if (mask & 1)
			(void)board_send(g, r, WEFT_TAG_WAKE, NULL, 0);
}

/* Where member r's data of this meeting lies. */
static char *data_of(const struct meeting *m, int r)
{
	struct weft_board_slot *s = m->keep->slot;
	return m->bytes <= WEFT_BOARD_DATA
		       ? s->cell[r].data
		       : weft_board_at(s, m->keep->turn, (unsigned)m->g->size, (unsigned)r);
}

/* And where they are combined: the last member's share, if they lie in shares. */
static char *result_of(const struct meeting *m)
{
	return m->bytes <= WEFT_BOARD_DATA ? m->keep->slot->result.data
					   : data_of(m, m->g->size - 1);
}

/* All cells are there: as reduce_flat() in now.c, from the last rank to the first. */
static void combine_cells(const struct meeting *m, uint32_t what)
{
	struct weft_board_slot *s = m->keep->slot;
	int last = m->g->size - 1;
	char *acc = result_of(m);
	for (int r = 0; r <= last; r++)
		if (s->cell[r].what != what)
			what = 0;
	if (m->bytes <= WEFT_BOARD_DATA)
		memcpy(acc, s->cell[last].data, m->bytes);
	for (int r = last - 1; r >= 0 && what && m->bytes; r--)
		m->fn(data_of(m, r), acc, m->count);
	s->result.what = what;
}

static bool member_lost(const struct weft_coll_group *g)
{
	for (int r = 0; r < g->size; r++)
		if (weft_comm_lost(weft_coll_process(g, r)))
			return true;
	return false;
}

/* Looks at the board for a while. */
static bool look(const struct meeting *m)
{
	bool yield;
	uint64_t patience = weft_engine_patience(&yield), begun = weft_cycles();
	struct weft_board_slot *s = m->keep->slot;
	unsigned mask = yield ? POLL_EVERY_MASK : SPIN_EVERY_MASK;
	for (unsigned i = 1;; i++) { /* ends: over, or patience is */
		if (weft_board_over(s, m->keep->turn))
			return true;
		if ((i & mask) == 0) {
			(void)weft_engine_poll();
			if (weft_cycles() - begun > patience)
				return weft_board_over(s, m->keep->turn);
		}
		if (!patience)
			return false;
		if (yield)
			sched_yield();
		else
			weft_cpu_relax();
	}
}

/* With a process of the job lost a receive from anybody fails at once: short naps instead. */
static void nap(void)
{
	struct timespec ts = {.tv_nsec = 1000000};
	(void)weft_engine_poll();
	int was = weft_cancel_off();
	nanosleep(&ts, NULL);
	weft_cancel_back(was);
}

/* Sleeps until the turn is over, or fails it. */
static void sleep_there(struct meeting *m)
{
	struct weft_board_slot *s = m->keep->slot;
	unsigned me = (unsigned)m->g->rank;
	_Atomic uint32_t *x_note = &s->cell[me].x_note;
	/* The same once more, in the order that mismatch() needs. */
	(void)atomic_exchange_explicit(x_note, atomic_load_explicit(x_note, memory_order_relaxed),
				       memory_order_seq_cst);
	/* Each round ends with news: the turn, or a lost process. */
	while (!weft_board_over(s, m->keep->turn)) {
		if (weft_unlikely(member_lost(m->g))) {
			m->mine = weft_board_fail(s, m->keep->turn);
			continue;
		}
		if (weft_unlikely(mismatch(m->g, m->keep, true))) {
			m->mine = m->wrong = true;
			continue;
		}
		bool sleeps = weft_board_doze(s, me, m->keep->turn);
		if (!sleeps && !weft_board_undoze(s, me, m->keep->turn))
			return;
		weft_count(WEFT_CNT_COLL_BOARD_SLEEPS, 1);
		if (board_recv(m->g, WEFT_ANY_PEER, WEFT_TAG_WAKE, NULL, 0)) {
			(void)weft_board_undoze(s, me, m->keep->turn);
			if (!member_lost(m->g))
				nap();
		}
	}
}

/* My cell's data is written.  All come, and mean the same `what`. */
static weft_err meet(struct meeting *m, uint32_t what)
{
	const struct weft_coll_group *g = m->g;
	struct keep *k = m->keep;
	struct weft_board_slot *s = k->slot;

	weft_count(WEFT_CNT_COLL_BOARDS, 1);
	s->cell[g->rank].what = what;
	if (weft_board_arrive(s, (unsigned)g->size)) {
		combine_cells(m, what);
		m->mine = weft_board_finish(s, k->turn);
	} else if (!look(m)) {
		sleep_there(m);
	}
	if (m->mine)
		wake_sleepers(g, k);
	if (weft_unlikely(weft_board_failed(s, k->turn))) {
		k->turn = WEFT_BOARD_FAILED;
		return m->wrong ? WEFT_ERR_TRUNC : WEFT_ERR_PEER;
	}
	k->turn = weft_board_next(k->turn);
	return weft_unlikely(s->result.what != what) ? WEFT_ERR_TRUNC : WEFT_OK;
}

weft_err weft_board_meet(const struct weft_coll_group *g, weft_reduce_fn *fn, const void *from,
			 void *to, size_t count, size_t bytes)
{
	struct meeting m = {.g = g, .keep = *g->keep_p, .fn = fn, .count = count, .bytes = bytes};

	if (weft_unlikely(m.keep->turn == WEFT_BOARD_FAILED))
		return WEFT_ERR_PEER;
	if (bytes)
		memcpy(data_of(&m, g->rank), from, bytes);
	const char *result = result_of(&m);
	weft_err err = meet(&m, 1 + (uint32_t)bytes);
	if (bytes && !err)
		memcpy(to, result, bytes);
	return err;
}

weft_err weft_board_turn(const struct weft_coll_group *g, uint32_t what)
{
	struct meeting m = {.g = g, .keep = *g->keep_p};
	return weft_unlikely(m.keep->turn == WEFT_BOARD_FAILED) ? WEFT_ERR_PEER : meet(&m, what);
}

unsigned weft_board_parity(const struct weft_coll_group *g)
{
	return ((struct keep *)*g->keep_p)->turn & 1;
}

struct weft_stages **weft_board_stages(const struct weft_coll_group *g)
{
	return &((struct keep *)*g->keep_p)->stages;
}

size_t weft_board_room(const struct weft_coll_group *g)
{
	return g->size > WEFT_BOARD_MEMBERS ? 0 : weft_board_share((unsigned)g->size);
}

weft_err weft_board_show(const struct weft_coll_group *g, enum weft_coll_kind kind,
			 const struct weft_buf *from, size_t bytes)
{
	struct meeting m = {.g = g, .keep = *g->keep_p};
	struct keep *k = m.keep;

	if (weft_unlikely(k->turn == WEFT_BOARD_FAILED))
		return WEFT_ERR_PEER;
	/* Who has not what the others expect says so to all. */
	bool as_expected = from->bytes == bytes;
	if (weft_likely(as_expected))
		weft_pack(from, 0,
			  weft_board_at(k->slot, k->turn, (unsigned)g->size, (unsigned)g->rank),
			  bytes);
	weft_err err = meet(&m, as_expected ? ((uint32_t)kind + 1) << 16 | (uint32_t)bytes : 0);
	return weft_unlikely(!err && !as_expected) ? WEFT_ERR_TRUNC : err;
}

const char *weft_board_shown(const struct weft_coll_group *g, int r)
{
	struct keep *k = *g->keep_p;
	/* The turn that is over: parity is all that counts. */
	return weft_board_at(k->slot, k->turn ^ 1u, (unsigned)g->size, (unsigned)r);
}
