/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * board_wait.c - waiting for a word in shared memory (word.h), and telling members whose calls do
 * not match.
 *
 * Who waits looks at the word, yielding, for as long as any waiter of this process polls; then it
 * sleeps in a receive for a message from whoever posts the word.
 */
#include <sched.h>
#include <time.h>

#include "base/cancel.h"
#include "base/counters.h"
#include "base/log.h"
#include "coll/shm/board_int.h"
#include "task/task.h"

#define POLL_EVERY_MASK 3   /* looks with a yield, between polls, less 1 */
#define SPIN_EVERY_MASK 127 /* and looks without */

/* ---- calls that do not match --------------------------------------------------------------- */

/*
 * Members that call different collectives would wait for each other for ever.  Each notes in its
 * cell which one it is in, by number and kind, and looks at the others' notes before it waits where
 * the board does not help: before messages, and before it sleeps here.  seq_cst, both: of two whose
 * calls do not match, one sees the other.  Who is ahead also remembers what it has called itself
 * under the number that another is in.
 */
#define NOTE_LATER 0x80u /* nonblocking or persistent: another kind */
#define NOTE_FED 0x40u   /* takes a turn in the feed, as its size asks for: another kind, too */
_Static_assert(WEFT_COLL_KIND_COUNT < NOTE_FED, "kinds have 6 bits");

/* And remembers it. */
static uint32_t note_of(const struct weft_coll_group *g, enum weft_coll_kind kind, uint32_t how)
{
	uint32_t number = weft_coll_board_number(g);
	uint32_t note = number << 8 | how | ((uint32_t)kind + 1);
	weft_coll_keep_of(g)->noted[number % WEFT_KEEP_NOTES] = note;
	return note;
}

/* What we have called under the number of theirs; 0: it is too long ago, or to come. */
static uint32_t noted(const struct weft_coll_group *g, uint32_t theirs)
{
	uint32_t ours = weft_coll_keep_of(g)->noted[(theirs >> 8) % WEFT_KEEP_NOTES];
	return (ours ^ theirs) >> 8 ? 0 : ours;
}

static const char *name_of(uint32_t note)
{
	return weft_coll_kind_name((note & (NOTE_FED - 1)) - 1);
}

static const char *how_of(uint32_t note)
{
	return note & NOTE_LATER ? " (nonblocking)" : note & NOTE_FED ? " (small)" : "";
}

/* What a member waits for. */
struct spot {
	const struct weft_coll_group *g;
	_Atomic uint64_t *x_word;
	uint32_t number;
	bool ahead; /* nobody gets past our collective before `number` is posted */
};

void weft_coll_board_give_up(const struct weft_coll_group *g, uint32_t sleepers)
{
	struct weft_keep *k = weft_coll_keep_of(g);
	struct weft_feed *f = &k->slot->feed;
	sleepers |= weft_coll_shared_word_break(&k->slot->x_turn) |
		    weft_coll_shared_word_break(&f->x_head) |
		    weft_coll_shared_word_break(&f->x_floor);
	for (unsigned t = 0; t < WEFT_FEED_TURNS; t++)
		sleepers |= weft_coll_shared_word_break(&f->turn[t].x_came);
	k->turn = WEFT_BOARD_FAILED;
	weft_coll_board_wake(g, sleepers);
}

/* Is another in a different collective than I was under the same number, or (ahead) past mine?
 * Gives up, and says so; false: all is well, or another has found it. */
static bool mismatch(const struct spot *at)
{
	const struct weft_coll_group *g = at->g;
	struct weft_board_slot *s = weft_coll_keep_of(g)->slot;
	/* Relaxed: our own. */
	uint32_t mine = atomic_load_explicit(&s->cell[g->rank].x_note, memory_order_relaxed);
	for (int r = 0; r < g->size; r++) {
		/* NOTE <- NOTE (weft_coll_note, weft_coll_board_note).  Carries: what its member saw
		 * posted or posted before, so that the exchange in weft_coll_shared_word_fail sees it, too. */
		uint32_t theirs = atomic_load_explicit(&s->cell[r].x_note, memory_order_seq_cst);
		uint32_t sleepers, ours = mine;
		/* The distance of two numbers of 23 bits. */
		int32_t apart = (int32_t)((theirs & ~0xffu) - (mine & ~0xffu)) << 1;
		if (apart < 0)
			ours = noted(g, theirs);
		if (!theirs || !ours || theirs == ours || (apart > 0 && !at->ahead))
			continue;
		/* False also when it is posted meanwhile, and the other went on. */
		if (!weft_coll_shared_word_fail(at->x_word, at->number, &sleepers))
			return false;
		weft_error("collectives that do not match: rank %d of the communicator %s in %s%s, "
			   "rank %d in %s%s",
			   g->rank, apart < 0 ? "was" : "is", name_of(ours), how_of(ours), r,
			   name_of(theirs), how_of(theirs));
		weft_coll_board_give_up(g, sleepers);
		return true;
	}
	return false;
}

/* Has a root handed out in a turn of the feed what we are about to wait for by messages?  Else it
 * comes later, and looks at our note when it sleeps.  Gives up, and says so. */
static bool missed(const struct spot *at)
{
	const struct weft_coll_group *g = at->g;
	struct weft_keep *k = weft_coll_keep_of(g);
	struct weft_feed *f = &k->slot->feed;
	uint32_t sleepers, next = weft_coll_feed_next(k->feed_down);
	if (weft_likely(!weft_coll_shared_word_over(&f->x_head, next)) ||
	    weft_coll_shared_word_failed(&f->x_head) ||
	    weft_coll_feed_at(f, k->feed_turn)->number != weft_coll_board_number(g) ||
	    !weft_coll_shared_word_fail(at->x_word, at->number, &sleepers))
		return false;
	weft_error("collectives that do not match: rank %d of the communicator is in %s, and its "
		   "root in one (small)",
		   g->rank, name_of(noted(g, weft_coll_board_number(g) << 8)));
	weft_coll_board_give_up(g, sleepers);
	return true;
}

static struct weft_keep *keep_with_slot(const struct weft_coll_group *g)
{
	struct weft_keep *k = g->keep_p ? *g->keep_p : NULL;
	return k && k->slot && k->turn != WEFT_BOARD_FAILED ? k : NULL;
}

static void board_note(const struct weft_coll_group *g, enum weft_coll_kind kind, uint32_t how)
{
	struct weft_keep *k = keep_with_slot(g);
	/* NOTE -> NOTE (mismatch).  Carries: what we have seen posted.  Not seq_cst: who waits on
	 * a word notes it again before it sleeps. */
	if (k)
		atomic_store_explicit(&k->slot->cell[g->rank].x_note, note_of(g, kind, how),
				      memory_order_release);
}

void weft_coll_board_note(const struct weft_coll_group *g, enum weft_coll_kind kind)
{
	board_note(g, kind, 0);
}

void weft_coll_board_note_fed(const struct weft_coll_group *g, enum weft_coll_kind kind)
{
	board_note(g, kind, NOTE_FED);
}

weft_err weft_coll_note(const struct weft_coll_group *g, enum weft_coll_kind kind, bool later)
{
	struct weft_keep *k = keep_with_slot(g);
	if (weft_likely(!k))
		return WEFT_OK;
	/* NOTE -> NOTE (mismatch).  Carries: nothing but itself.  seq_cst on both: of two who note
	 * different calls at least the later one sees the other's. */
	atomic_exchange_explicit(&k->slot->cell[g->rank].x_note,
				 note_of(g, kind, later ? NOTE_LATER : 0), memory_order_seq_cst);
	struct spot at = {g, &k->slot->x_turn, weft_coll_board_next(k->turn), false};
	return weft_unlikely(mismatch(&at) || missed(&at)) ? WEFT_ERR_TRUNC : WEFT_OK;
}

/* ---- waiting ------------------------------------------------------------------------------- */

void weft_coll_board_wake(const struct weft_coll_group *g, uint32_t sleepers)
{
	for (int r = 0; r < g->size && sleepers; r++, sleepers >>= 1)
		if (sleepers & 1)
			(void)weft_coll_board_send(g, r, WEFT_TAG_WAKE, NULL, 0);
}

static bool member_lost(const struct weft_coll_group *g)
{
	for (int r = 0; r < g->size; r++)
		if (weft_comm_lost(weft_coll_process(g, r)))
			return true;
	return false;
}

/* Looks at the word for a while. */
static bool look(const struct spot *at)
{
	bool yield;
	uint64_t patience = weft_task_engine_patience(&yield), begun = weft_cycles();
	unsigned mask = yield ? POLL_EVERY_MASK : SPIN_EVERY_MASK;
	for (unsigned i = 1;; i++) { /* ends: over, or patience is */
		if (weft_coll_shared_word_over(at->x_word, at->number))
			return true;
		if ((i & mask) == 0) {
			(void)weft_engine_poll();
			if (weft_cycles() - begun > patience)
				return weft_coll_shared_word_over(at->x_word, at->number);
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

/* Sleeps until it is over, or fails it. */
static weft_err sleep_there(const struct spot *at)
{
	unsigned me = (unsigned)at->g->rank;
	uint32_t sleepers;
	_Atomic uint32_t *x_note = &weft_coll_keep_of(at->g)->slot->cell[me].x_note;
	/* The same once more.  NOTE -> NOTE (mismatch), as in weft_coll_note.  Relaxed: our own. */
	(void)atomic_exchange_explicit(x_note, atomic_load_explicit(x_note, memory_order_relaxed),
				       memory_order_seq_cst);
	/* Each round ends with news: the word, or a lost process. */
	while (!weft_coll_shared_word_over(at->x_word, at->number)) {
		if (weft_unlikely(member_lost(at->g))) {
			if (weft_coll_shared_word_fail(at->x_word, at->number, &sleepers))
				weft_coll_board_give_up(at->g, sleepers);
			continue;
		}
		if (weft_unlikely(mismatch(at)))
			return WEFT_ERR_TRUNC;
		bool sleeps = weft_coll_shared_word_doze(at->x_word, me, at->number);
		if (!sleeps && !weft_coll_shared_word_undoze(at->x_word, me))
			break;
		weft_count(WEFT_CNT_COLL_BOARD_SLEEPS, 1);
		if (weft_coll_board_recv(at->g, WEFT_ANY_PEER, WEFT_TAG_WAKE, NULL, 0)) {
			(void)weft_coll_shared_word_undoze(at->x_word, me);
			if (!member_lost(at->g))
				nap();
		}
	}
	return WEFT_OK;
}

weft_err weft_coll_board_wait_for(const struct weft_coll_group *g, _Atomic uint64_t *x_word,
				  uint32_t number, bool ahead)
{
	struct spot at = {g, x_word, number, ahead};
	weft_err err = look(&at) ? WEFT_OK : sleep_there(&at);
	if (weft_likely(!err && !weft_coll_shared_word_failed(x_word)))
		return WEFT_OK;
	weft_coll_keep_of(g)->turn = WEFT_BOARD_FAILED;
	return err ? err : WEFT_ERR_PEER;
}
