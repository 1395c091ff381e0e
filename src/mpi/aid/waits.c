/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * waits.c - completes the notes of waiting calls (wait/note.h): which process, which communicator; and has members
 * that wait, or poll, long in a collective ask the others which one they are in (coll/calls.h).
 */
#include "boot/boot.h"
#include "coll/calls.h"
#include "mpi/aid/aid.h"
#include "mpi/aid/check.h"
#include "mpi/comm/domain.h"
#include "mpi/p2p/request.h"
#include "mpi/rma/win.h"
#include "wait/note.h"

#define ASKS_AFTER_NS 150000000u
#define ASKS_AFTER_CHECK_NS 2000000000u /* with WEFT_CHECK, whose notes name more */
#define ASKS_MOST 5                     /* the wait doubles so often */
#define VAIN_POLLS 16                   /* between looks at the clock; a power of two */

static uint64_t asks_after_ns(void)
{
	return weft_mpi_checking ? ASKS_AFTER_CHECK_NS : ASKS_AFTER_NS;
}

/* Not in MPI_Comm_disconnect: members that have left would count as dead. */
static bool may_ask(struct weft_mpi_comm *c)
{
	/* Relaxed: set by the thread that waits, or a hint. */
	return c->calls && !atomic_load_explicit(&c->x_parting, memory_order_relaxed);
}

static void note_comm(struct weft_wait_note *n, struct weft_mpi_comm *c)
{
	if (!c)
		return;
	n->name = c->name;
	n->id = c->id;
	/* Relaxed: a count for an observer. */
	n->collected = atomic_load_explicit(&c->x_coll_tag, memory_order_relaxed);
	if (n->form == WEFT_WAIT_ALL && may_ask(c))
		n->patience_ns = asks_after_ns();
	/* Of processes of other jobs nothing is known. */
	if (c->group->domain != weft_mpi_home && c->group->domain)
		return;
	n->size = c->peers;
	n->member = c->peer;
	if (n->form != WEFT_WAIT_ALL && n->rank >= 0 && n->rank < c->peers)
		n->process = weft_mpi_comm_peer(c, n->rank);
}

static void note_request(struct weft_wait_note *n, struct weft_mpi_request *r)
{
	if (r->ops->by_core) {
		n->form = r->mode == WEFT_MPI_MODE_RECV ? WEFT_WAIT_RECV : WEFT_WAIT_SEND;
		n->rank = r->peer;
		n->tag = r->tag;
	} else {
		n->form = r->comm ? WEFT_WAIT_ALL : WEFT_WAIT_OTHER;
		n->rank = -1;
	}
	note_comm(n, r->comm);
	/* Of others no member keeps a number, and a sleep with an end takes more of a small stack. */
	if (!r->ops->collective)
		n->patience_ns = 0;
}

/* Whether the holder is of this job, note_comm has found: then its number is known. */
static void note_lock(struct weft_wait_note *n, const struct weft_mpi_win *w)
{
	if (!n->call->lock || !n->size || n->rank < 0 || n->rank >= w->members)
		return;
	n->holder = weft_rma_lock_word(w->rma, n->rank);
	if (n->holder)
		n->form = WEFT_WAIT_LOCK;
}

/* No member counts what it does at a window, so none is asked. */
static void note_window(struct weft_wait_note *n)
{
	struct weft_mpi_win *w = weft_mpi_window((MPI_Win)(uintptr_t)n->object);
	bool fence = n->form == WEFT_WAIT_FENCE;
	n->form = WEFT_WAIT_OTHER;
	if (!w || !w->comm)
		return;
	note_comm(n, w->comm);
	n->name = w->name[0] ? w->name : "a window without a name";
	if (fence)
		n->form = WEFT_WAIT_ALL;
	else
		note_lock(n, w);
}

/* Enters the processes that request r waits for.  False: they are not known, or too many. */
static bool enter_peers(struct weft_wait_note *n, int *few, const struct weft_mpi_request *r)
{
	struct weft_mpi_comm *c = r->comm;
	bool one = r->peer >= 0;
	if (one && r->peer >= c->peers)
		return false;
	for (int i = one ? r->peer : 0; i < (one ? r->peer + 1 : c->peers); i++) {
		int k = 0, process = weft_mpi_comm_peer(c, i);
		while (k < *few && n->few[k] != process)
			k++;
		if (k == WEFT_WAIT_FEW)
			return false;
		n->few[k] = process;
		*few += k == *few;
	}
	return true;
}

/* One of several requests is enough, and r is the first that is not over: all ranks that one of them waits for. */
static void note_any(struct weft_wait_note *n, struct weft_mpi_request *r, int count)
{
	const MPI_Request *q = n->object;
	struct weft_mpi_comm *c = r->comm;
	int few = 0, pending = 0;
	bool fits = true, same = true;
	for (int i = 0; i < count; i++) {
		r = (struct weft_mpi_request *)weft_mpi_object_find_dynamic(
			(uint64_t)(uintptr_t)q[i], WEFT_MPI_REQUEST);
		if (!r || !r->active || (r->ops->by_core && weft_mpi_request_done(r)))
			continue;
		pending++;
		if (!r->ops->by_core || !r->comm ||
		    (r->comm->group->domain && r->comm->group->domain != weft_mpi_home)) {
			n->hope = true;
			continue;
		}
		fits = fits && enter_peers(n, &few, r);
		same = same && r->comm == c;
	}
	n->others = pending - 1;
	/* More ranks than fit: all members of the communicator, if it is the same for all. */
	n->hope = n->others > 0 && (n->hope || (!fits && !same));
	if (n->hope || n->others < 1)
		return;
	if (fits) {
		n->member = n->few;
		n->size = few;
	}
	n->process = -1;
}

/* Returns the communicator whose members may be asked; NULL: none. */
static struct weft_mpi_comm *complete_for(struct weft_wait_note *n)
{
	const MPI_Request *q = n->object;
	int count = n->tag;
	n->form = n->call->form;
	n->process = -1;
	n->size = 0;
	n->member = NULL;
	n->name = NULL;
	n->id = n->collected = 0;
	n->hope = false;
	n->others = 0;
	n->holder = NULL;
	if (n->form == WEFT_WAIT_FENCE || n->form == WEFT_WAIT_WINDOW) {
		note_window(n);
		return NULL;
	}
	if (n->form != WEFT_WAIT_REQUESTS) {
		struct weft_mpi_comm *c = weft_mpi_comm_of((MPI_Comm)(uintptr_t)n->object);
		note_comm(n, c);
		return c;
	}
	for (int i = 0; i < count; i++) {
		struct weft_mpi_request *r =
			(struct weft_mpi_request *)weft_mpi_object_find_dynamic(
				(uint64_t)(uintptr_t)q[i], WEFT_MPI_REQUEST);
		if (!r || !r->active || (r->ops->by_core && weft_mpi_request_done(r)))
			continue;
		note_request(n, r);
		if (n->call->any)
			note_any(n, r, count);
		return r->comm;
	}
	n->form = WEFT_WAIT_OTHER;
	return NULL;
}

static void complete_note(struct weft_wait_note *n)
{
	(void)complete_for(n);
}

static void ask_members(struct weft_mpi_comm *c, unsigned round)
{
	struct weft_coll_group g = {.rank = c->rank,
				    .size = c->size,
				    .peer = c->inter ? c->group->world : c->peer,
				    .remote_size = c->inter ? c->peers : 0,
				    .remote = c->inter ? c->peer : NULL,
				    .ctx = c->coll};
	weft_coll_ask(&g, round);
}

void weft_mpi_aid_polled(struct weft_mpi_request *r)
{
	if (++r->vain & (VAIN_POLLS - 1) || !r->comm || !r->comm->calls)
		return;
	uint64_t now = weft_clock_ns();
	if (r->vain == VAIN_POLLS) {
		r->asks = 0;
		r->ask_ns = now + asks_after_ns();
	}
	if (now < r->ask_ns)
		return;
	ask_members(r->comm, r->asks);
	unsigned doubled = r->asks < ASKS_MOST ? r->asks : ASKS_MOST;
	r->ask_ns = now + (asks_after_ns() << doubled);
	r->asks++;
}

void weft_mpi_aid_waits(struct weft_mpi_comm *c, uint64_t since_ns, unsigned *asks_p)
{
	unsigned doubled = *asks_p < ASKS_MOST ? *asks_p : ASKS_MOST;
	/* As long again as before, so that questions get rare. */
	if (!c->calls || weft_clock_ns() - since_ns < asks_after_ns() << doubled)
		return;
	ask_members(c, (*asks_p)++);
}

/* Of several requests another may be the first by now that is not over. */
static void waited_long(struct weft_wait_note *n)
{
	struct weft_mpi_comm *c = complete_for(n);
	if (c && n->form == WEFT_WAIT_ALL && may_ask(c))
		ask_members(c, n->alarms);
}

void weft_mpi_aid_notes_init(const struct weft_boot_info *boot)
{
	weft_wait_note_set_hooks(complete_note, waited_long);
	weft_wait_note_show(boot->jobid, boot->rank, boot->size);
}
