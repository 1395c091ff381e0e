/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shared.c - what the members of a file share: the shared pointer, a counter in a window of rank 0, and the
 * locks of the atomic mode, one per stripe of the file.
 *
 * Nothing lies beside the file.  With one member there is no window: the counter is a word of its own.
 */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "mpi/comm/comm_int.h"
#include "mpi/error.h"
#include "mpi/file/mpi_file.h"
#include "mpi/rma/win.h"
#include "task/task.h"

/* A stripe's lock is that of rank (stripe mod size): accesses of up to this length take one or two. */
#define STRIPE ((uint64_t)1 << 20)

struct turn {
	struct turn *next;
	struct weft_completion go;
};

struct weft_mpi_shared {
	MPI_Win win;
	struct weft_rma_win *rma; /* NULL: one member */
	_Atomic int64_t x_own;    /* the counter of one member */
	/* Threads of this process that take the atomic mode's locks, in the order that they came. */
	pthread_mutex_t lock; /* of what follows */
	bool taken;
	struct turn *first, **last;
};

int weft_mpi_shared_make(struct weft_mpi_file *f)
{
	struct weft_mpi_shared *s = calloc(1, sizeof *s);
	if (s) {
		pthread_mutex_init(&s->lock, NULL);
		s->last = &s->first;
		s->win = MPI_WIN_NULL;
	}
	f->shared = s;
	int err = s ? MPI_SUCCESS : weft_mpi_err(MPI_ERR_NO_MEM, "no memory for a file");
	if (f->comm->size == 1)
		return err;
	err = weft_mpi_file_agree(f, err);
	void *base = NULL;
	if (!err)
		err = weft_mpi_Win_allocate(sizeof(int64_t), 1, MPI_INFO_NULL, f->comm_handle,
					    &base, &s->win);
	if (err)
		return err;
	memset(base, 0, sizeof(int64_t));
	s->rma = weft_mpi_window(s->win)->rma;
	return weft_mpi_file_agree(f, MPI_SUCCESS); /* no member counts before the zero is there */
}

void weft_mpi_shared_free(struct weft_mpi_file *f)
{
	struct weft_mpi_shared *s = f->shared;
	if (!s)
		return;
	/* Its members have agreed that the file is closed, unless one is gone. */
	if (s->win != MPI_WIN_NULL && weft_mpi_Win_free(&s->win))
		weft_mpi_win_discard(s->win);
	pthread_mutex_destroy(&s->lock);
	free(s);
	f->shared = NULL;
}

MPI_Comm weft_mpi_shared_comm(const struct weft_mpi_file *f)
{
	return f->shared && f->shared->win != MPI_WIN_NULL
		       ? weft_mpi_window(f->shared->win)->comm_handle
		       : f->comm_handle;
}

/* ---- the pointer -------------------------------------------------------------------------- */

static int counter_fetch(struct weft_mpi_file *f, enum weft_op what, int64_t value,
			 int64_t *before_p)
{
	struct weft_rma_op op;
	int64_t before = 0;
	struct weft_buf from = weft_data_buf_flat(&value, sizeof value);
	struct weft_buf result = weft_data_buf_flat(&before, sizeof before);
	struct weft_rma_there there = {.rank = 0, .count = sizeof value, .bytes = sizeof value};
	struct weft_rma_reduction red = {.op = what, .elem = WEFT_B_I64};
	weft_rma_op_init(&op);
	weft_err err = weft_rma_accumulate(f->shared->rma, &from, &result, &there, red, &op);
	weft_rma_op_started(&op);
	if (!err) {
		weft_task_engine_wait(&op.done);
		/* Relaxed: ordered by the completion. */
		err = (weft_err)atomic_load_explicit(&op.x_err, memory_order_relaxed);
	}
	*before_p = before;
	return err ? weft_mpi_err_peer(err, weft_mpi_comm_peer(f->comm, 0)) : MPI_SUCCESS;
}

int weft_mpi_shared_add(struct weft_mpi_file *f, int64_t etypes, int64_t *before_p)
{
	/* Relaxed: a number; what lies at that place of the file is ordered by the file. */
	if (f->shared->rma)
		return counter_fetch(f, etypes ? WEFT_OP_SUM : WEFT_OP_NO_OP, etypes, before_p);
	*before_p = atomic_fetch_add_explicit(&f->shared->x_own, etypes, memory_order_relaxed);
	return MPI_SUCCESS;
}

int weft_mpi_shared_set(struct weft_mpi_file *f, int64_t etypes)
{
	int64_t before;
	if (f->shared->rma)
		return counter_fetch(f, WEFT_OP_REPLACE, etypes, &before);
	/* Relaxed: as above. */
	atomic_store_explicit(&f->shared->x_own, etypes, memory_order_relaxed);
	return MPI_SUCCESS;
}

int weft_mpi_shared_turn(struct weft_mpi_file *f, int64_t etypes, int64_t *begin_p)
{
	int n = f->comm->size;
	if (n == 1)
		return weft_mpi_shared_add(f, etypes, begin_p);
	int64_t *all = f->words, base[2] = {0, 0}, mine = 0, sum = 0;
	int err = weft_mpi_file_gather(f, WEFT_MPI_TALK_TURN, &etypes, 1);
	for (int r = 0; !err && r < n; r++) {
		if (r == f->comm->rank)
			mine = sum;
		sum += all[r];
	}
	/* Rank 0 speaks in every case: others may have gone on to wait for it. */
	if (!f->comm->rank)
		base[1] = err ? err : weft_mpi_shared_add(f, sum, &base[0]);
	int told = weft_mpi_Bcast(base, sizeof base, MPI_BYTE, 0, f->comm_handle);
	*begin_p = base[0] + mine;
	return err ? err : told ? told : (int)base[1];
}

/* ---- the atomic mode's locks -------------------------------------------------------------- */

/* Threads of this process take turns, readers too: the window's lock and a record lock know processes, and what
 * one thread gives back no other thread of the process holds any more. */
static void own_lock(struct weft_mpi_shared *s)
{
	struct turn t = {.next = NULL};
	pthread_mutex_lock(&s->lock);
	bool now = !s->taken;
	if (now) {
		s->taken = true;
	} else {
		weft_wait_completion_init(&t.go);
		*s->last = &t;
		s->last = &t.next;
	}
	pthread_mutex_unlock(&s->lock);
	if (!now)
		weft_task_engine_wait(&t.go);
}

/* The next thread has it, if one waits. */
static void own_unlock(struct weft_mpi_shared *s)
{
	pthread_mutex_lock(&s->lock);
	weft_assert(s->taken);
	struct turn *t = s->first;
	if (t) {
		s->first = t->next;
		if (!s->first)
			s->last = &s->first;
		weft_wait_completion_signal(&t->go);
	} else {
		s->taken = false;
	}
	pthread_mutex_unlock(&s->lock);
}

/* Is rank's lock one of those of [from, to)? */
static bool stripe_is_of(uint64_t from, uint64_t to, int rank, int size)
{
	uint64_t first = from / STRIPE, last = to > from ? (to - 1) / STRIPE : first;
	if (last - first + 1 >= (uint64_t)size)
		return true;
	uint64_t at = (first / (uint64_t)size) * (uint64_t)size + (uint64_t)rank;
	if (at < first)
		at += (uint64_t)size;
	return at <= last;
}

/* With the lock comes what others have written before. */
static int record_lock(struct weft_mpi_file *f, bool exclusive, uint64_t from, uint64_t to)
{
	int err = weft_file_lock(f->file, exclusive, from, to - from);
	if (err)
		return weft_mpi_file_err(err, "cannot lock a range of", f->name);
	if (exclusive || f->file->fs.lock_refreshes)
		return MPI_SUCCESS;
	err = weft_file_refresh(f->file);
	if (err)
		(void)weft_file_unlock(f->file, from, to - from); /* the error before counts */
	return weft_mpi_file_err(err, "cannot open again", f->name);
}

int weft_mpi_shared_lock(struct weft_mpi_file *f, bool exclusive, uint64_t from, uint64_t to)
{
	struct weft_mpi_shared *s = f->shared;
	int size = f->comm->size;
	own_lock(s);
	int err = MPI_SUCCESS;
	if (f->locks)
		err = record_lock(f, exclusive, from, to);
	/* By rank: no two members wait for each other. */
	for (int r = 0; !err && s->rma && !f->locks && r < size; r++) {
		if (!stripe_is_of(from, to, r, size))
			continue;
		weft_err e = weft_rma_lock(s->rma, r, exclusive);
		if (!e)
			continue;
		err = weft_mpi_err_peer(e, weft_mpi_comm_peer(f->comm, r));
		while (--r >= 0)
			if (stripe_is_of(from, to, r, size))
				weft_rma_unlock(s->rma, r, exclusive);
		break;
	}
	if (err)
		own_unlock(s);
	return err;
}

void weft_mpi_shared_unlock(struct weft_mpi_file *f, bool exclusive, uint64_t from, uint64_t to)
{
	struct weft_mpi_shared *s = f->shared;
	if (f->locks)
		(void)weft_file_unlock(f->file, from, to - from); /* a range that we have locked */
	for (int r = f->comm->size - 1; s->rma && !f->locks && r >= 0; r--)
		if (stripe_is_of(from, to, r, f->comm->size))
			weft_rma_unlock(s->rma, r, exclusive);
	own_unlock(s);
}
