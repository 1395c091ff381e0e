/* SPDX-License-Identifier: BSD-3-Clause */
/* win.c - windows: how they are made and freed, and what one can ask them. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"
#include "base/membarrier.h"
#include "base/settings.h"
#include "rma/memory.h"
#include "rma/pending.h"
#include "rma/win_int.h"

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct weft_rma_win *list;

/* What a peer must be able to read to prove that it can; not a secret from those that can. */
static const uint64_t canary = 0x77656674726d6121u;

static bool is_on_this_host(const struct weft_rma_win *win, int rank)
{
	return rank == win->rank || weft_comm_same_host(win->core, weft_rma_process(win, rank));
}

static bool is_ours(enum weft_rma_flavor f)
{
	return f == WEFT_RMA_ALLOCATE || f == WEFT_RMA_SHARED;
}

/* Does our memory lie in the host's shared memory? */
static bool is_shared(const struct weft_rma_win *win)
{
	return is_ours(win->flavor) && win->maps;
}

/* ---- making ------------------------------------------------------------------------------- */

static void paths_allowed(struct weft_rma_win *win)
{
	const char *path = weft_setting_str(WEFT_SET_RMA_PATH);
	win->maps = win->flavor == WEFT_RMA_SHARED || strcmp(path, "auto") == 0;
	win->copies = win->maps || strcmp(path, "copy") == 0;
}

/* Memory of a window that we allocate and that is not shared. */
static weft_err own_memory(struct weft_rma_win *win, uint64_t len)
{
	win->base = len ? aligned_alloc(4096, weft_align_up(len, 4096)) : NULL;
	return len && !win->base ? WEFT_ERR_NOMEM : WEFT_OK;
}

static weft_err ranks_by_process(struct weft_rma_win *win)
{
	for (int r = 0; r < win->size; r++)
		if (weft_rma_process(win, r) >= win->processes)
			win->processes = weft_rma_process(win, r) + 1;
	win->rank_of = malloc((size_t)win->processes * sizeof *win->rank_of);
	if (!win->rank_of)
		return WEFT_ERR_NOMEM;
	for (int p = 0; p < win->processes; p++)
		win->rank_of[p] = -1;
	for (int r = 0; r < win->size; r++)
		win->rank_of[weft_rma_process(win, r)] = r;
	return WEFT_OK;
}

static void list_window(struct weft_rma_win *win)
{
	pthread_mutex_lock(&list_lock);
	win->next = list;
	win->prev_p = &list;
	if (list)
		list->prev_p = &win->next;
	list = win;
	pthread_mutex_unlock(&list_lock);
}

static void unlist_window(struct weft_rma_win *win)
{
	pthread_mutex_lock(&list_lock);
	while (win->visitors) { /* ends: each is out of its calls soon */
		pthread_mutex_unlock(&list_lock);
		sched_yield();
		pthread_mutex_lock(&list_lock);
	}
	if (win->prev_p) {
		*win->prev_p = win->next;
		if (win->next)
			win->next->prev_p = win->prev_p;
	}
	pthread_mutex_unlock(&list_lock);
}

weft_err weft_rma_win_new(const struct weft_rma_conf *conf, struct weft_rma_win **win_p,
			  struct weft_rma_offer *mine)
{
	struct weft_rma_win *win = aligned_alloc(WEFT_CACHELINE, sizeof *win);
	*mine = (struct weft_rma_offer){.base = (uintptr_t)conf->base,
					.len = conf->len,
					.unit = conf->unit,
					.canary_at = (uintptr_t)&canary,
					.canary = canary,
					.pid = getpid(),
					.contiguous = conf->contiguous,
					.bulk = weft_membarrier_global_register()};
	if (!win)
		return WEFT_ERR_NOMEM;
	memset(win, 0, sizeof *win);
	win->am = conf->am;
	win->core = weft_comm_ctx_core(conf->am);
	win->data = conf->data;
	win->rank = conf->rank;
	win->size = conf->size;
	win->peer = conf->peer;
	win->flavor = conf->flavor;
	win->contiguous = conf->contiguous;
	win->threads = conf->threads;
	win->base = conf->base;
	win->page.fd = -1;
	win->locks_last = &win->locks;
	win->target = calloc((size_t)win->size, sizeof *win->target);
	win->direct = calloc((size_t)win->size, sizeof *win->direct);
	win->notes = calloc(WEFT_RMA_NOTES, sizeof *win->notes);
	for (int r = 0; win->target && r < win->size; r++)
		win->target[r].place = -1;
	paths_allowed(win);
	weft_rma_pending_numbers(win);
	weft_err err =
		win->target && win->direct && win->notes ? ranks_by_process(win) : WEFT_ERR_NOMEM;
	if (!err && is_ours(win->flavor) && !win->maps) {
		err = own_memory(win, conf->len);
		mine->base = (uintptr_t)win->base;
	}
	if (err) {
		weft_rma_win_free(win);
		return err;
	}
	list_window(win);
	*win_p = win;
	return WEFT_OK;
}

/*
 * The page: the locks of the host's members, bytes of each for its lock's holders and as an origin, what the
 * others tell each, notifications, quanta of locks, fences, memory.
 */
static size_t slot_at(int i)
{
	return (size_t)i * sizeof(struct weft_rma_slot);
}

static size_t shared_at(int i, int members)
{
	return slot_at(members) + (size_t)i * weft_align_up((size_t)members, WEFT_CACHELINE);
}

/* For each member as an origin: how often it is inside of each target (direct.h). */
static size_t inside_at(int origin, int members)
{
	size_t row = (size_t)members * sizeof(uint32_t);
	return shared_at(members, members) + (size_t)origin * weft_align_up(row, WEFT_CACHELINE);
}

/* For each member: what each other one has told it (told.h). */
static size_t told_at(int member, int members)
{
	size_t row = (size_t)members * sizeof(struct weft_rma_told);
	return inside_at(members, members) + (size_t)member * weft_align_up(row, WEFT_CACHELINE);
}

/* The notifications of each member. */
static size_t notes_at(int member, int members)
{
	return told_at(members, members) +
	       (size_t)member * WEFT_RMA_NOTES * sizeof(_Atomic uint64_t);
}

/* For each member: the quanta of each at its lock (quantum.h). */
static size_t quanta_at(int member, int members)
{
	return notes_at(members, members) +
	       (size_t)member * (size_t)members * sizeof(struct weft_rma_quanta);
}

static size_t meet_at(int members)
{
	return quanta_at(members, members);
}

static size_t memory_at(int members)
{
	return weft_align_up(meet_at(members) + sizeof(struct weft_rma_meet), 4096);
}

/* Where `rank`'s part lies in the host's memory (DYNAMIC: its table of ranges); rank == size: where the last one ends. */
static size_t part_at(const struct weft_rma_win *win, int rank)
{
	bool dense = win->flavor == WEFT_RMA_SHARED && win->offer[win->rank].contiguous;
	int members = 0;
	size_t at = 0;
	for (int r = 0; r < win->size; r++) {
		if (!is_on_this_host(win, r))
			continue;
		members++;
		if (r < rank && is_shared(win))
			at += dense ? win->offer[r].len : weft_align_up(win->offer[r].len, 4096);
		else if (r < rank && win->flavor == WEFT_RMA_DYNAMIC)
			at += sizeof(struct weft_rma_attached);
	}
	return memory_at(members) + at;
}

static int first_here(const struct weft_rma_win *win)
{
	int r = 0;
	while (!is_on_this_host(win, r)) /* ends: this member is on its own host */
		r++;
	return r;
}

static int members_before(const struct weft_rma_win *win, int rank)
{
	int n = 0;
	for (int r = 0; r < rank; r++)
		n += is_on_this_host(win, r);
	return n;
}

void weft_rma_win_share(struct weft_rma_win *win, const struct weft_rma_offer *all,
			struct weft_rma_ticket *mine)
{
	*mine = (struct weft_rma_ticket){.pid = getpid(), .fd = -1};
	win->offer = all;
	if (first_here(win) != win->rank || !win->copies)
		return;
	mine->bytes = weft_align_up(part_at(win, win->size), 4096);
	if (!weft_rma_page_make(&win->page, mine->bytes))
		mine->fd = win->page.fd;
}

bool weft_rma_win_map(struct weft_rma_win *win, const struct weft_rma_ticket *all)
{
	int first = first_here(win);
	const struct weft_rma_ticket *t = &all[first];
	if (t->fd < 0)
		return false;
	return first == win->rank || !weft_rma_page_map(&win->page, t->pid, t->fd, t->bytes);
}

static void target_fill(struct weft_rma_win *win, int rank, bool paged)
{
	struct weft_rma_target *t = &win->target[rank];
	const struct weft_rma_offer *o = &win->offer[rank];
	t->base = o->base;
	t->len = o->len;
	t->unit = o->unit;
	t->path = WEFT_RMA_OWED;
	t->place = -1;
	t->told = &t->told_apart;
	if (rank == win->rank) {
		t->tells = &t->told_apart;
		t->path = WEFT_RMA_MAPPED;
		t->map = win->base;
		t->slot = &win->alone;
		t->x_shared = &win->x_alone_shared;
		t->x_notes = win->notes;
		t->place = 0;
	}
	if (!paged || !is_on_this_host(win, rank))
		return;
	t->place = members_before(win, rank);
	t->slot = (void *)((char *)win->page.map + slot_at(t->place));
	t->x_shared = (void *)((char *)win->page.map + shared_at(t->place, win->places));
	t->x_notes = (void *)((char *)win->page.map + notes_at(t->place, win->places));
	int me = members_before(win, win->rank);
	struct weft_rma_told *to_us = (void *)((char *)win->page.map + told_at(me, win->places));
	struct weft_rma_told *to_it =
		(void *)((char *)win->page.map + told_at(t->place, win->places));
	t->queue.x_marked = &t->slot->x_marked;
	t->queue.quanta = (void *)((char *)win->page.map + quanta_at(t->place, win->places));
	t->queue.me = me;
	t->queue.places = win->places;
	t->told = to_us + t->place;
	t->tells = to_it + me;
	if (is_shared(win)) {
		t->path = WEFT_RMA_MAPPED;
		t->map = (char *)win->page.map + part_at(win, rank);
		return;
	}
	if (win->flavor == WEFT_RMA_DYNAMIC)
		t->attached = (void *)((char *)win->page.map + part_at(win, rank));
	if (rank != win->rank && weft_rma_memory_probe(o->pid, o->canary_at, o->canary)) {
		t->path = WEFT_RMA_COPY;
		t->pid = o->pid;
	}
}

/* After target_fill, of all. */
static void direct_fill(struct weft_rma_win *win, int rank)
{
	const struct weft_rma_target *t = &win->target[rank];
	struct weft_rma_direct *d = &win->direct[rank];
	int place = win->target[win->rank].place;
	d->len = t->len;
	d->unit = t->unit;
	d->atomics = win->cpu_atomics;
	if (t->path != WEFT_RMA_MAPPED || win->flavor == WEFT_RMA_DYNAMIC)
		return;
	if (win->bulk) {
		win->inside = (void *)((char *)win->page.map + inside_at(0, win->places));
		win->inside_stride = (inside_at(1, win->places) - inside_at(0, win->places)) /
				     sizeof *win->inside;
		d->counted = win->threads;
		d->x_inside = weft_rma_inside(win, place, rank);
		d->x_acc = &t->slot->x_acc;
	}
	/* Relaxed: the window is not in use. */
	atomic_store_explicit(&d->x_map, t->map, memory_order_relaxed);
}

weft_err weft_rma_win_ready(struct weft_rma_win *win, const int32_t *mapped)
{
	bool paged = true, one_host = true;
	weft_err err = WEFT_OK;
	for (int r = 0; r < win->size; r++) {
		one_host &= is_on_this_host(win, r);
		paged &= !is_on_this_host(win, r) || mapped[r];
	}
	if (!paged)
		weft_rma_page_unmap(&win->page);
	weft_rma_page_close_fd(&win->page);
	if (win->flavor == WEFT_RMA_SHARED && !(paged && one_host))
		return WEFT_ERR_UNSUPPORTED;
	if (is_shared(win) && paged)
		win->base = (char *)win->page.map + part_at(win, win->rank);
	else if (is_shared(win))
		err = own_memory(win, win->offer[win->rank].len);
	win->places = paged ? members_before(win, win->size) : 1;
	if (paged && one_host)
		win->meet = (void *)((char *)win->page.map + meet_at(win->places));
	for (int r = 0; r < win->size; r++)
		target_fill(win, r, paged);
	struct weft_rma_slot *mine = win->target[win->rank].slot;
	mine->pid = getpid();
	mine->start = weft_rma_process_start(mine->pid);
	/* All on one host and mapped: every access finds the processor's atomics. */
	win->cpu_atomics = is_shared(win) && paged && one_host;
	win->bulk = win->cpu_atomics;
	for (int r = 0; r < win->size; r++)
		win->bulk &= win->offer[r].bulk != 0;
	for (int r = 0; r < win->size; r++)
		direct_fill(win, r);
	win->offer = NULL;
	return err ? err : weft_rma_inbox_open(win);
}

void weft_rma_win_free(struct weft_rma_win *win)
{
	if (!win)
		return;
	weft_rma_inbox_close(win);
	unlist_window(win);
	weft_rma_lock_end(win);
	if (is_ours(win->flavor) && !(win->page.map && is_shared(win)))
		free(win->base);
	weft_rma_page_unmap(&win->page);
	while (win->range) {
		struct weft_rma_range *r = win->range;
		win->range = r->next;
		free(r);
	}
	for (int r = 0; win->target && r < win->size; r++)
		free(win->target[r].flush);
	free(win->target);
	free(win->direct);
	free(win->notes);
	/* Relaxed: no access is under way. */
	free(atomic_load_explicit(&win->x_scratch, memory_order_relaxed));
	free(win->rank_of);
	free(win);
}

void weft_rma_end(void)
{
	/* No other thread is in the library. */
	for (struct weft_rma_win *win = list; win; win = win->next)
		weft_rma_inbox_close(win);
}

/* The peer's number in win, or -1. */
static int rank_of_peer(const struct weft_rma_win *win, const struct weft_core *core, int peer)
{
	return win->core == core && peer < win->processes ? win->rank_of[peer] : -1;
}

bool weft_rma_peer_known(struct weft_core *core, int peer)
{
	bool known = false;
	pthread_mutex_lock(&list_lock);
	for (struct weft_rma_win *win = list; win && !known; win = win->next)
		known = rank_of_peer(win, core, peer) >= 0;
	pthread_mutex_unlock(&list_lock);
	return known;
}

static void member_lost(struct weft_rma_win *win, int rank)
{
	/* LOST -> flush, lock, is_lost.  Carries nothing: what comes later is refused. */
	atomic_store_explicit(&win->target[rank].x_lost, true, memory_order_release);
	/* Relaxed: the same. */
	atomic_store_explicit(&win->direct[rank].x_map, NULL, memory_order_relaxed);
	weft_rma_pending_end(win, rank);
	weft_rma_lock_recover(win, rank);
	weft_rma_notify(win);
}

void weft_rma_peer_down(struct weft_core *core, int peer)
{
	pthread_mutex_lock(&list_lock);
	for (struct weft_rma_win *win = list; win; win = win->next) {
		int rank = rank_of_peer(win, core, peer);
		if (rank < 0)
			continue;
		/* Not under the lock: it sends, and within a post another peer may be found gone. */
		win->visitors++;
		pthread_mutex_unlock(&list_lock);
		member_lost(win, rank);
		pthread_mutex_lock(&list_lock);
		win->visitors--;
	}
	pthread_mutex_unlock(&list_lock);
}

/* ---- asking ------------------------------------------------------------------------------- */

void *weft_rma_base(const struct weft_rma_win *win)
{
	return win->base;
}

uint64_t weft_rma_len(const struct weft_rma_win *win, int rank)
{
	return win->target[rank].len;
}

int64_t weft_rma_unit(const struct weft_rma_win *win, int rank)
{
	return win->target[rank].unit;
}

enum weft_rma_path weft_rma_path(const struct weft_rma_win *win, int rank)
{
	return win->target[rank].path;
}

void *weft_rma_mapped(const struct weft_rma_win *win, int rank)
{
	return win->target[rank].path == WEFT_RMA_MAPPED ? win->target[rank].map : NULL;
}

const struct weft_rma_direct *weft_rma_direct(const struct weft_rma_win *win)
{
	return win->direct;
}

bool weft_rma_cpu_atomics(const struct weft_rma_win *win)
{
	return win->cpu_atomics;
}
