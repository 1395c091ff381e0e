/* SPDX-License-Identifier: BSD-3-Clause */
/* win.c - windows: how they are made and freed, and what one can ask them. */
#include "mpi/rma/win.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/aid/check.h"
#include "mpi/comm/comm_int.h"
#include "mpi/error.h"
#include "mpi/info.h"
#include "mpi/session/session.h"

/* ---- making ------------------------------------------------------------------------------- */

static void win_drop(struct weft_mpi_win *w)
{
	weft_rma_win_free(w->rma);
	if (w->comm) {
		weft_mpi_object_retire(&w->comm->head);
		weft_mpi_comm_unref(w->comm);
	}
	weft_mpi_info_free(w->info);
	weft_mpi_errhandler_unref(w->errhandler);
	pthread_mutex_destroy(&w->lock);
	free(w->x_held);
	free(w->may);
	free(w->started);
	free(w->posted);
	free(w->paths);
	weft_mpi_check_win_free(w);
	free(w);
}

static int comm_for(struct weft_mpi_comm *parent, struct weft_mpi_win *w)
{
	struct weft_mpi_comm *c = NULL;
	int err = weft_mpi_comm_make_all(parent, &c);
	if (!err)
		err = weft_mpi_comm_name(c, &w->comm_handle);
	if (err)
		return err;
	w->comm = c;
	snprintf(c->name, sizeof c->name, "of a window");
	w->x_held = calloc((size_t)c->size, sizeof *w->x_held);
	w->may = calloc((size_t)c->size, sizeof *w->may);
	return w->x_held && w->may ? MPI_SUCCESS : weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
}

static struct weft_mpi_win *win_new(MPI_Info info)
{
	struct weft_mpi_win *w = calloc(1, sizeof *w);
	if (!w)
		return NULL;
	pthread_mutex_init(&w->lock, NULL);
	w->errhandler = weft_mpi_errhandler_ref(weft_mpi_errhandler_fatal());
	w->model = MPI_WIN_UNIFIED;
	w->info = weft_mpi_info_copy(weft_mpi_info_of(info));
	return w;
}

/* Tells every member what each has to say; all: size * len bytes.  A member that failed says so. */
static int tell_all(struct weft_mpi_win *w, const void *mine, void *all, size_t len)
{
	struct weft_mpi_talk t = weft_mpi_talk_all(w->comm);
	return weft_mpi_talk_allgather(&t, mine, all, len);
}

/* What each step of rma.h says, by rank. */
struct told {
	struct weft_rma_offer *offer;
	struct weft_rma_ticket *ticket;
	int32_t *mapped;
};

static int exchange_tickets(struct weft_mpi_win *w, const struct weft_rma_conf *conf,
			    struct told *t)
{
	struct weft_rma_offer offer;
	struct weft_rma_ticket ticket;
	weft_err err = weft_rma_win_new(conf, &w->rma, &offer);
	if (err)
		return weft_mpi_err(MPI_ERR_NO_MEM, "no memory for a window");
	int code = tell_all(w, &offer, t->offer, sizeof offer);
	if (code)
		return code;
	weft_rma_win_share(w->rma, t->offer, &ticket);
	code = tell_all(w, &ticket, t->ticket, sizeof ticket);
	if (code)
		return code;
	int32_t mapped = weft_rma_win_map(w->rma, t->ticket);
	code = tell_all(w, &mapped, t->mapped, sizeof mapped);
	if (code)
		return code;
	err = weft_rma_win_ready(w->rma, t->mapped);
	/* The last step, too, succeeds or fails on all. */
	int32_t fine = err ? 0 : weft_mpi_checking ? 2 : 1;
	bool all_check = weft_mpi_checking;
	code = tell_all(w, &fine, t->mapped, sizeof fine);
	for (int r = 0; !code && r < w->comm->size; r++)
		all_check &= t->mapped[r] == 2;
	if (weft_unlikely(all_check))
		weft_mpi_check_win_made(w);
	for (int r = 0; !code && r < w->comm->size; r++)
		if (!t->mapped[r] && conf->flavor == WEFT_RMA_SHARED)
			code = weft_mpi_err(MPI_ERR_RMA_SHARED,
					    "the members cannot share memory: they are on several "
					    "hosts, or the system forbids it");
		else if (!t->mapped[r])
			code = weft_mpi_err(MPI_ERR_NO_MEM, "rank %d has no memory for the window",
					    r);
	return code;
}

static int make_rma_win(struct weft_mpi_win *w, struct weft_rma_conf *conf)
{
	struct weft_mpi_comm *c = w->comm;
	size_t n = (size_t)c->size;
	struct told t = {.offer = malloc(n * sizeof *t.offer),
			 .ticket = malloc(n * sizeof *t.ticket),
			 .mapped = malloc(n * sizeof *t.mapped)};
	int err = MPI_SUCCESS;
	conf->am = c->p2p;
	conf->data = c->coll;
	conf->rank = c->rank;
	conf->size = c->size;
	conf->peer = c->peer;
	conf->threads = weft_mpi_several_threads();
	if (!t.offer || !t.ticket || !t.mapped)
		err = weft_mpi_err(MPI_ERR_NO_MEM, "no memory for a window");
	if (!err)
		err = exchange_tickets(w, conf, &t);
	free(t.offer);
	free(t.ticket);
	free(t.mapped);
	return err;
}

static int win_make(struct weft_rma_conf *conf, int flavor, MPI_Info info, MPI_Comm comm,
		    MPI_Win *win)
{
	struct weft_mpi_comm *parent = weft_mpi_comm_of(comm);
	if (parent->inter)
		return weft_mpi_err(MPI_ERR_COMM, "the communicator is an intercommunicator");
	struct weft_mpi_win *w = win_new(info);
	if (!w)
		return weft_mpi_err(MPI_ERR_NO_MEM, "no memory for a window");
	int err = comm_for(parent, w);
	if (!err)
		err = make_rma_win(w, conf);
	w->members = w->comm ? w->comm->size : 0;
	if (!err && !weft_mpi_win_paths_fill(w))
		err = weft_mpi_err(MPI_ERR_NO_MEM, "no memory for a window");
	if (!err && weft_mpi_object_new(&w->head, WEFT_MPI_WIN))
		err = weft_mpi_err(MPI_ERR_NO_MEM, "out of handles");
	if (err) {
		win_drop(w);
		return err;
	}
	w->direct = weft_rma_direct(w->rma);
	w->base = flavor == MPI_WIN_FLAVOR_DYNAMIC ? MPI_BOTTOM : weft_rma_base(w->rma);
	w->size = (MPI_Aint)conf->len;
	w->disp_unit = (int)conf->unit;
	w->flavor = flavor;
	*win = (MPI_Win)(uintptr_t)w->head.handle;
	w->comm->win = *win;
	return MPI_SUCCESS;
}

static int size_wrong(MPI_Aint size, MPI_Aint disp_unit)
{
	if (size < 0)
		return weft_mpi_err(MPI_ERR_SIZE, "the window's size is negative (%lld)",
				    (long long)size);
	if (disp_unit <= 0)
		return weft_mpi_err(MPI_ERR_DISP, "the displacement unit is %lld: give at least 1",
				    (long long)disp_unit);
	return MPI_SUCCESS;
}

int weft_mpi_Win_create(void *base, MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm,
			MPI_Win *win)
{
	struct weft_rma_conf conf = {
		.flavor = WEFT_RMA_CREATE, .base = base, .len = (uint64_t)size, .unit = disp_unit};
	int err = size_wrong(size, disp_unit);
	if (!err && !base && size)
		err = weft_mpi_err(MPI_ERR_BASE, "the window's base is a null pointer");
	return err ? err : win_make(&conf, MPI_WIN_FLAVOR_CREATE, info, comm, win);
}

static int win_allocate(enum weft_rma_flavor kind, int flavor, MPI_Aint size, MPI_Aint disp_unit,
			MPI_Info info, MPI_Comm comm, void *baseptr, MPI_Win *win)
{
	char noncontig[8] = "false";
	weft_mpi_info_look(weft_mpi_info_of(info), "alloc_shared_noncontig", noncontig,
			   sizeof noncontig);
	struct weft_rma_conf conf = {.flavor = kind,
				     .len = (uint64_t)size,
				     .unit = disp_unit,
				     .contiguous = strcmp(noncontig, "true") != 0};
	int err = size_wrong(size, disp_unit);
	if (!err)
		err = win_make(&conf, flavor, info, comm, win);
	if (!err)
		*(void **)baseptr = weft_mpi_window(*win)->base;
	return err;
}

int weft_mpi_Win_allocate(MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm,
			  void *baseptr, MPI_Win *win)
{
	return win_allocate(WEFT_RMA_ALLOCATE, MPI_WIN_FLAVOR_ALLOCATE, size, disp_unit, info, comm,
			    baseptr, win);
}

int weft_mpi_Win_allocate_shared(MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm,
				 void *baseptr, MPI_Win *win)
{
	return win_allocate(WEFT_RMA_SHARED, MPI_WIN_FLAVOR_SHARED, size, disp_unit, info, comm,
			    baseptr, win);
}

int weft_mpi_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win *win)
{
	struct weft_rma_conf conf = {.flavor = WEFT_RMA_DYNAMIC, .unit = 1};
	return win_make(&conf, MPI_WIN_FLAVOR_DYNAMIC, info, comm, win);
}

int weft_mpi_Win_free(MPI_Win *win)
{
	struct weft_mpi_win *w = weft_mpi_window(*win);
	if (!w)
		return weft_mpi_err(MPI_ERR_WIN, "invalid window (null or freed)");
	if (w->n_locks || w->lock_all || w->started || w->posted)
		return weft_mpi_err(MPI_ERR_RMA_SYNC, "an epoch of the window is open");
	int err = weft_mpi_attrs_free(&w->head);
	if (err)
		return err;
	/* All accesses are over everywhere. */
	err = weft_mpi_win_err(w, -1, weft_rma_win_settle(w->rma));
	int met = weft_mpi_Barrier(w->comm_handle);
	if (err || met)
		return err ? err : met;
	weft_mpi_object_retire(&w->head);
	win_drop(w);
	*win = MPI_WIN_NULL;
	return MPI_SUCCESS;
}

void weft_mpi_win_discard(MPI_Win win)
{
	struct weft_mpi_win *w = weft_mpi_window(win);
	weft_mpi_object_retire(&w->head);
	win_drop(w);
}

/* ---- dynamic memory ----------------------------------------------------------------------- */

int weft_mpi_Win_attach(MPI_Win win, void *base, MPI_Aint size)
{
	struct weft_mpi_win *w = weft_mpi_window(win);
	if (w->flavor != MPI_WIN_FLAVOR_DYNAMIC)
		return weft_mpi_err(MPI_ERR_RMA_FLAVOR, "the window is not a dynamic one");
	if (size < 0)
		return weft_mpi_err(MPI_ERR_SIZE, "the size is negative (%lld)", (long long)size);
	if (!size)
		return MPI_SUCCESS;
	if (!base)
		return weft_mpi_err(MPI_ERR_BASE, "the memory's base is a null pointer");
	weft_err err = weft_rma_attach(w->rma, base, (uint64_t)size);
	if (err == WEFT_ERR_ARG)
		return weft_mpi_err(MPI_ERR_RMA_ATTACH,
				    "the memory overlaps memory that is attached already");
	return err ? weft_mpi_err_of(err) : MPI_SUCCESS;
}

int weft_mpi_Win_detach(MPI_Win win, const void *base)
{
	struct weft_mpi_win *w = weft_mpi_window(win);
	if (w->flavor != MPI_WIN_FLAVOR_DYNAMIC)
		return weft_mpi_err(MPI_ERR_RMA_FLAVOR, "the window is not a dynamic one");
	if (weft_rma_detach(w->rma, base))
		return weft_mpi_err(MPI_ERR_RMA_ATTACH, "no memory is attached at %p", base);
	return MPI_SUCCESS;
}

/* ---- questions ---------------------------------------------------------------------------- */

int weft_mpi_Win_shared_query(MPI_Win win, int rank, MPI_Aint *size, MPI_Aint *disp_unit,
			      void *baseptr)
{
	struct weft_mpi_win *w = weft_mpi_window(win);
	int n = w->comm->size;
	if (w->flavor == MPI_WIN_FLAVOR_DYNAMIC)
		return weft_mpi_err(MPI_ERR_RMA_FLAVOR, "a dynamic window has no shared memory");
	if (rank != MPI_PROC_NULL && (rank < 0 || rank >= n))
		return weft_mpi_err(MPI_ERR_RANK, "rank %d is not in a window of %d", rank, n);
	/* MPI_PROC_NULL: the first with memory that is shared with this process. */
	for (int r = 0; rank == MPI_PROC_NULL && r < n; r++)
		if (weft_rma_mapped(w->rma, r) && weft_rma_len(w->rma, r))
			rank = r;
	*size = 0;
	*disp_unit = rank < 0 ? 1 : (MPI_Aint)weft_rma_unit(w->rma, rank);
	*(void **)baseptr = NULL;
	if (rank >= 0 && weft_rma_mapped(w->rma, rank)) {
		*size = (MPI_Aint)weft_rma_len(w->rma, rank);
		*(void **)baseptr = *size ? weft_rma_mapped(w->rma, rank) : NULL;
	}
	return MPI_SUCCESS;
}

int weft_mpi_Win_get_group(MPI_Win win, MPI_Group *group)
{
	struct weft_mpi_group *g = weft_mpi_window(win)->comm->group;
	return weft_mpi_group_name(weft_mpi_group_make_in(g->domain, g->size, g->world), group);
}

int weft_mpi_Win_set_name(MPI_Win win, const char *win_name)
{
	struct weft_mpi_win *w = weft_mpi_window(win);
	pthread_mutex_lock(&w->lock);
	snprintf(w->name, sizeof w->name, "%s", win_name);
	pthread_mutex_unlock(&w->lock);
	return MPI_SUCCESS;
}

int weft_mpi_Win_get_name(MPI_Win win, char *win_name, int *resultlen)
{
	struct weft_mpi_win *w = weft_mpi_window(win);
	if (!w && win != MPI_WIN_NULL)
		return weft_mpi_err(MPI_ERR_WIN, "invalid window (wild or freed)");
	if (!w) {
		memcpy(win_name, "MPI_WIN_NULL", sizeof "MPI_WIN_NULL");
	} else {
		pthread_mutex_lock(&w->lock);
		memcpy(win_name, w->name, sizeof w->name);
		pthread_mutex_unlock(&w->lock);
	}
	*resultlen = (int)strlen(win_name);
	return MPI_SUCCESS;
}

/* ---- info --------------------------------------------------------------------------------- */

/* Hints of chapter 12, and what holds where the program says nothing.  The last is of SHARED alone. */
static const struct {
	const char *key, *value;
} hints[] = {{"no_locks", "false"},
	     {"accumulate_ordering", "rar,raw,war,waw"},
	     {"accumulate_ops", "same_op_no_op"},
	     {"same_size", "false"},
	     {"same_disp_unit", "false"},
	     {"mpi_accumulate_granularity", "0"},
	     {"alloc_shared_noncontig", "false"}};

int weft_mpi_Win_get_info(MPI_Win win, MPI_Info *info_used)
{
	struct weft_mpi_win *w = weft_mpi_window(win);
	struct weft_mpi_info *i = weft_mpi_info_make();
	char value[MPI_MAX_INFO_VAL + 1];
	int err = MPI_SUCCESS;
	pthread_mutex_lock(&w->lock);
	for (size_t k = 0; i && !err && k < weft_countof(hints); k++) {
		if (k == weft_countof(hints) - 1 && w->flavor != MPI_WIN_FLAVOR_SHARED)
			continue;
		bool given = weft_mpi_info_look(w->info, hints[k].key, value, sizeof value);
		err = weft_mpi_info_put(i, hints[k].key, given ? value : hints[k].value);
	}
	pthread_mutex_unlock(&w->lock);
	if (i && !err)
		err = weft_mpi_info_put_memory_kinds(i);
	if (i && !err)
		err = weft_mpi_win_paths_info(w, i);
	if (err) {
		weft_mpi_info_free(i);
		return err;
	}
	return weft_mpi_info_name(i, info_used);
}

int weft_mpi_Win_set_info(MPI_Win win, MPI_Info info)
{
	struct weft_mpi_win *w = weft_mpi_window(win);
	struct weft_mpi_info *given = weft_mpi_info_of(info);
	char value[MPI_MAX_INFO_VAL + 1];
	int err = MPI_SUCCESS;
	pthread_mutex_lock(&w->lock);
	/* What only counts when a window is made stays as it was then. */
	for (size_t k = 0; !err && k + 1 < weft_countof(hints); k++)
		if (weft_mpi_info_look(given, hints[k].key, value, sizeof value))
			err = weft_mpi_info_put(w->info, hints[k].key, value);
	pthread_mutex_unlock(&w->lock);
	return err;
}
