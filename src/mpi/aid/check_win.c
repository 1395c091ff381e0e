/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_win.c - accesses of one epoch that conflict: byte ranges of one target that overlap, where one access
 * changes what the other reads or changes.
 *
 * An origin keeps what it has started and not flushed, by target, and compares each access with those before.
 * At a fence the members tell each target what they did there, at MPI_Win_complete an origin its targets, and the target
 * compares the origins with each other.  Accumulates do not conflict with each other, unless their elements differ, or,
 * of different origins, their operations (MPI's accumulate_ops is same_op_no_op).
 *
 * Only in windows whose members all check.  Loads and stores of programs are not seen, nor are accesses of
 * different origins under locks, which messages of the program may order.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "boot/boot.h"
#include "mpi/aid/check.h"
#include "mpi/error.h"
#include "mpi/rma/win.h"
#include "task/task.h"

#define LOG_MAX 16384 /* pieces that are kept; what comes beyond is not compared */
#define PIECES_MAX 64 /* of one access; one with more is not compared */
#define TOLD_MAX 1024 /* pieces that an origin tells a target at MPI_Win_complete */
/* On the window's `data`, above the tags of collectives and below those of large accesses. */
#define TAG_TOLD 0x1b000000

/* One piece of an access; travels as it is. */
struct piece {
	uint64_t from, to; /* bytes of the target's window; DYNAMIC: addresses */
	int32_t origin, target;
	uint8_t kind, op;
	uint16_t elem;
	char call[28];
};

struct weft_mpi_check_win {
	pthread_mutex_t lock;
	unsigned n; /* under lock, as piece */
	struct piece piece[LOG_MAX];
};

void weft_mpi_check_win_made(struct weft_mpi_win *w)
{
	w->log = malloc(sizeof *w->log);
	if (!w->log)
		return;
	pthread_mutex_init(&w->log->lock, NULL);
	w->log->n = 0;
}

void weft_mpi_check_win_free(struct weft_mpi_win *w)
{
	if (!w->log)
		return;
	pthread_mutex_destroy(&w->log->lock);
	free(w->log);
}

/* ---- judging ---------------------------------------------------------------------------------- */

static bool ops_differ(const struct piece *a, const struct piece *b)
{
	return a->op != b->op && a->op != WEFT_OP_NO_OP && b->op != WEFT_OP_NO_OP;
}

static bool pieces_conflict(const struct piece *a, const struct piece *b)
{
	if (a->from >= b->to || b->from >= a->to ||
	    (a->kind == WEFT_MPI_CHECK_GET && b->kind == WEFT_MPI_CHECK_GET))
		return false;
	if (a->kind < WEFT_MPI_CHECK_ACC || b->kind < WEFT_MPI_CHECK_ACC)
		return true;
	if (a->kind == WEFT_MPI_CHECK_SWAP || b->kind == WEFT_MPI_CHECK_SWAP)
		return false;
	return a->elem != b->elem || (a->origin != b->origin && ops_differ(a, b));
}

static void report_conflict(struct weft_mpi_win *w, const struct piece *a, const struct piece *b)
{
	char name[MPI_MAX_OBJECT_NAME + 32];
	pthread_mutex_lock(&w->lock);
	snprintf(name, sizeof name, "%s%s", w->name[0] ? "window " : "a window without a name",
		 w->name);
	pthread_mutex_unlock(&w->lock);
	weft_mpi_check_report(
		"accesses that conflict in one epoch of %s: %s of rank %d, bytes %llu to %llu, and "
		"%s of rank %d, bytes %llu to %llu of rank %d",
		name, a->call, a->origin, (unsigned long long)a->from,
		(unsigned long long)a->to - 1, b->call, b->origin, (unsigned long long)b->from,
		(unsigned long long)b->to - 1, a->target);
}

static int by_start(const void *a, const void *b)
{
	const struct piece *p = a, *q = b;
	return p->from < q->from ? -1 : p->from > q->from;
}

/* Those of different origins; each pair of calls once. */
static void judge_all(struct weft_mpi_win *w, struct piece *p, unsigned n)
{
	unsigned said = 0;
	if (n)
		qsort(p, n, sizeof *p, by_start);
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = i + 1; k < n && p[k].from < p[i].to && said < 8; k++)
			if (p[i].origin != p[k].origin && pieces_conflict(&p[i], &p[k])) {
				bool first = p[i].origin < p[k].origin;
				report_conflict(w, first ? &p[i] : &p[k], first ? &p[k] : &p[i]);
				said++;
				break;
			}
}

/* ---- at the origin ------------------------------------------------------------------------------ */

/* The pieces of an access; how many, 0: too many. */
static unsigned pieces_of(const struct weft_rma_there *there, struct piece *like, struct piece *out)
{
	void *at = (void *)(uintptr_t)there->at;
	struct weft_buf b = there->type ? weft_data_buf_typed(at, there->count, there->type)
					: weft_data_buf_flat(at, there->bytes);
	unsigned n = 0;
	for (size_t done = 0; done < b.bytes;) {
		struct iovec iov;
		unsigned one = 1;
		if (n == PIECES_MAX)
			return 0;
		done += weft_data_iov(&b, done, &iov, &one);
		out[n] = *like;
		out[n].from = (uintptr_t)iov.iov_base;
		out[n].to = out[n].from + iov.iov_len;
		n++;
	}
	return n;
}

static void keep_pieces(struct weft_mpi_win *w, const struct piece *mine, unsigned n)
{
	struct weft_mpi_check_win *log = w->log;
	struct piece before = {0};
	unsigned at = 0;
	pthread_mutex_lock(&log->lock);
	bool found = false;
	for (unsigned i = 0; i < log->n && !found; i++)
		for (unsigned k = 0; k < n && !found; k++)
			if (log->piece[i].target == mine[k].target &&
			    pieces_conflict(&log->piece[i], &mine[k])) {
				before = log->piece[i];
				at = k;
				found = true;
			}
	for (unsigned k = 0; k < n && log->n < LOG_MAX; k++)
		log->piece[log->n++] = mine[k];
	pthread_mutex_unlock(&log->lock);
	if (found)
		report_conflict(w, &before, &mine[at]);
}

void weft_mpi_check_win_access(struct weft_mpi_win *w, const char *call,
			       enum weft_mpi_check_access kind, unsigned op, unsigned elem,
			       const struct weft_rma_there *there)
{
	struct piece like = {.origin = w->comm->rank,
			     .target = there->rank,
			     .kind = (uint8_t)kind,
			     .op = (uint8_t)op,
			     .elem = (uint16_t)elem};
	/* Not on a small stack. */
	struct piece *mine = malloc(PIECES_MAX * sizeof *mine);
	if (!mine)
		return;
	snprintf(like.call, sizeof like.call, "%s", call);
	keep_pieces(w, mine, pieces_of(there, &like, mine));
	free(mine);
}

void weft_mpi_check_win_flushed(struct weft_mpi_win *w, int rank, bool local)
{
	struct weft_mpi_check_win *log = w->log;
	unsigned left = 0;
	pthread_mutex_lock(&log->lock);
	for (unsigned i = 0; i < log->n; i++) {
		const struct piece *p = &log->piece[i];
		bool over = (rank < 0 || p->target == rank) &&
			    (!local || p->kind == WEFT_MPI_CHECK_GET);
		if (!over)
			log->piece[left++] = *p;
	}
	log->n = left;
	pthread_mutex_unlock(&log->lock);
}

/* ---- at a fence ------------------------------------------------------------------------------- */

struct exchange {
	MPI_Count *sends, *recvs; /* bytes, by rank */
	MPI_Aint *send_at, *recv_at;
	struct piece *out, *in;
};

static void exchange_free(struct exchange *x)
{
	free(x->sends);
	free(x->recvs);
	free(x->send_at);
	free(x->recv_at);
	free(x->out);
	free(x->in);
}

/* The log by target, in out. */
static bool exchange_fill(struct weft_mpi_win *w, struct exchange *x)
{
	size_t n = (size_t)w->members;
	struct weft_mpi_check_win *log = w->log;
	x->sends = calloc(n, sizeof *x->sends);
	x->recvs = calloc(n, sizeof *x->recvs);
	x->send_at = calloc(n, sizeof *x->send_at);
	x->recv_at = calloc(n, sizeof *x->recv_at);
	x->out = malloc((log->n + 1) * sizeof *x->out);
	if (!x->sends || !x->recvs || !x->send_at || !x->recv_at || !x->out)
		return false;
	unsigned at = 0;
	for (int r = 0; r < w->members; r++) {
		unsigned first = at;
		for (unsigned i = 0; i < log->n; i++)
			if (log->piece[i].target == r)
				x->out[at++] = log->piece[i];
		x->send_at[r] = (MPI_Aint)(first * sizeof *x->out);
		x->sends[r] = (MPI_Count)((at - first) * sizeof *x->out);
	}
	return true;
}

int weft_mpi_check_win_fence(struct weft_mpi_win *w)
{
	struct exchange x = {0};
	size_t bytes = 0;
	/* The others wait: without memory the job ends where the fence would. */
	int err = exchange_fill(w, &x) ? MPI_SUCCESS
				       : weft_mpi_err(MPI_ERR_NO_MEM, "no memory for WEFT_CHECK");
	if (!err)
		err = weft_mpi_Alltoall(x.sends, 1, MPI_COUNT, x.recvs, 1, MPI_COUNT,
					w->comm_handle);
	for (int r = 0; !err && r < w->members; r++) {
		x.recv_at[r] = (MPI_Aint)bytes;
		bytes += (size_t)x.recvs[r];
	}
	x.in = malloc(bytes + 1);
	if (!err && !x.in)
		err = weft_mpi_err(MPI_ERR_NO_MEM, "no memory for WEFT_CHECK");
	if (!err)
		err = weft_mpi_Alltoallv(x.out, x.sends, x.send_at, MPI_BYTE, x.in, x.recvs,
					 x.recv_at, MPI_BYTE, w->comm_handle);
	if (!err)
		judge_all(w, x.in, (unsigned)(bytes / sizeof *x.in));
	exchange_free(&x);
	weft_mpi_check_win_flushed(w, -1, false);
	return err;
}

/* ---- at complete and wait ----------------------------------------------------------------------- */

/* An origin's pieces on their way to a target. */
struct tidings {
	struct weft_req req;
	struct piece piece[];
};

static void tidings_sent(struct weft_req *req, void *arg)
{
	(void)req;
	free(arg);
}

void weft_mpi_check_win_complete(struct weft_mpi_win *w, int rank)
{
	struct weft_mpi_check_win *log = w->log;
	unsigned n = 0;
	struct tidings *t = malloc(sizeof *t + TOLD_MAX * sizeof t->piece[0]);
	if (!t) /* the target waits for it */
		weft_boot_abort(1, "no memory for WEFT_CHECK");
	pthread_mutex_lock(&log->lock);
	for (unsigned i = 0; i < log->n && n < TOLD_MAX; i++)
		if (log->piece[i].target == rank)
			t->piece[n++] = log->piece[i];
	pthread_mutex_unlock(&log->lock);
	struct weft_buf b = weft_data_buf_flat(t->piece, n * sizeof t->piece[0]);
	weft_comm_req_init(&t->req, tidings_sent, t);
	if (weft_comm_core_isend(&t->req, w->comm->coll, weft_mpi_comm_peer(w->comm, rank),
				 TAG_TOLD, &b, WEFT_SEND_STANDARD))
		free(t); /* the target is gone */
	else
		weft_task_engine_pending();
}

/* What one origin has told; how many pieces. */
static unsigned hear_origin(struct weft_mpi_win *w, int rank, struct piece *in)
{
	struct weft_req req;
	struct weft_completion *c = &req.done;
	struct weft_buf b = weft_data_buf_flat(in, TOLD_MAX * sizeof *in);
	weft_comm_req_init(&req, NULL, NULL);
	if (weft_comm_core_irecv(&req, w->comm->coll, weft_mpi_comm_peer(w->comm, rank), TAG_TOLD,
				 &b) ||
	    weft_task_engine_wait_all(&c, 1, WEFT_FOREVER) || req.status.err)
		return 0;
	return (unsigned)(req.status.bytes / sizeof *in);
}

void weft_mpi_check_win_wait(struct weft_mpi_win *w)
{
	unsigned n = 0;
	struct piece *in = malloc(((size_t)w->n_posted + 1) * TOLD_MAX * sizeof *in);
	if (!in)
		weft_boot_abort(1, "no memory for WEFT_CHECK");
	for (int i = 0; i < w->n_posted; i++)
		n += hear_origin(w, w->posted[i], in + n);
	judge_all(w, in, n);
	free(in);
}
