/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * op.c - operations: pieces of a view, and the lanes that carry them.
 *
 * A piece is one range of the file.  How its memory is reached is decided when it is cut:
 *   FLAT     the data is one run in memory
 *   VECTOR   a few long runs: one vector
 *   STAGED   many short runs: packed to, or unpacked from, the lane's own memory
 *   SIEVED   many short ranges of the file, close together: all between is read, or read and written back
 *   MAPPED   many short ranges of a file that can be mapped: loads and stores
 */
#include "file/op.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/counters.h"
#include "base/mechanism.h"
#include "file/io.h"
#include "file/map.h"
#include "file/strategy.h"
#include "task/task.h"
#include "wait/park.h"

#define LANES 16
#define FLAT_LANES 2
#define FLAT_MAX ((uint64_t)64 << 20) /* a piece of one run */
#define STAGE ((uint64_t)512 << 10)   /* what a lane keeps for packing */
#define VECTOR 16                     /* runs of a vector */
/* Runs of this length on average go by a vector: to pack costs a copy, a run in a vector about 100 ns. */
#define VECTOR_RUN 2048
/* Ranges shorter than this, with holes no longer than this, are read together: a system call costs as much as
 * reading some 4 KiB from the cache. */
#define SIEVE_RANGE 16384
#define SIEVE_HOLE 4096
/* Data of a mapped piece: what a thread does at a time. */
#define MAPPED ((uint64_t)1 << 20)
/* An access that its caller makes even where it need not wait, on a local file system: it takes some 5 us, to hand it to
 * another thread and hear of it 10 to 100 us.  A write that took longer than SLOW_NS makes the next SHY go there. */
#define SMALL ((uint64_t)32 << 10)
#define SLOW_NS 200000u
#define SHY 64
/* A write of up to so much goes by the mapping where calls that write so little take long: 0.5 us on tmpfs, 6 us to 20 us on ext4 where
 * the file was written by long calls, since each walks the buffers of a large folio; a look at the size and a store 0.6 us. */
#define RECORD 4096u
#define RECORD_SLOW_NS 2000u
#define RECORD_SAMPLE 8u
/* More than so much is not packed in a handler; at 5 to 10 GB/s that is about 10 us. */
#define HANDLER_BYTES 65536

enum piece_kind { PIECE_FLAT, PIECE_VECTOR, PIECE_STAGED, PIECE_SIEVED, PIECE_MAPPED };

struct piece {
	enum piece_kind kind;
	uint64_t at, span; /* the range of the file */
	uint64_t data;     /* where its data begins in the op's */
	uint64_t bytes;    /* of data; as long as the range, unless SIEVED or MAPPED */
	unsigned n_iov;
	bool dense; /* MAPPED: each page of the range has data */
};

struct weft_file_lane {
	struct weft_file_io io;
	struct weft_file_op *op;
	struct piece p;
	bool filled; /* SIEVED write: the range has been read */
	char *stage; /* NULL: none yet */
	struct iovec iov[VECTOR];
	struct weft_task task;
};

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* ---- cutting ------------------------------------------------------------------------------ */

/* The range that comes next, at least one byte of data is left. */
static struct weft_file_range *next_range_locked(struct weft_file_op *op)
{
	weft_assert_held(weft_mutex, &op->lock);
	if (op->range_at == op->range_n) {
		op->range_at = 0;
		op->range_n = WEFT_FILE_OP_RANGES;
		(void)weft_file_view_ranges(op->view, op->pos + op->next, op->buf.bytes - op->next,
					    op->range, &op->range_n);
		weft_assert(op->range_n);
	}
	return &op->range[op->range_at];
}

static void take_locked(struct weft_file_op *op, struct weft_file_range *r, uint64_t len)
{
	weft_assert_held(weft_mutex, &op->lock);
	weft_assert(len && len <= r->len);
	r->at += len;
	r->len -= len;
	if (!r->len)
		op->range_at++;
	op->next += len;
}

/* Data grows with the offset: offsets cut it. */
static bool view_grows(const struct weft_file_view *v)
{
	return v->type && !v->goes_back &&
	       v->type->true_ub - v->type->true_lb <= weft_data_type_extent(v->type);
}

/* All that lies in the window of the next range, if ranges are short; false: they are not, or are not to be mapped. */
static bool map_locked(struct weft_file_op *op, struct piece *p)
{
	weft_assert_held(weft_mutex, &op->lock);
	uint64_t left = op->buf.bytes - op->next, listed = 0, pos = op->pos + op->next;
	const struct weft_file_range *r = next_range_locked(op);
	if (r->len >= SIEVE_RANGE || r->len == left || !weft_file_map_may(op->file) ||
	    !view_grows(op->view))
		return false;
	unsigned n = op->range_n - op->range_at;
	for (unsigned i = 0; i < n; i++)
		listed += r[i].len;
	if (listed / n >= SIEVE_RANGE)
		return false;
	*p = (struct piece){.kind = PIECE_MAPPED, .at = r->at, .data = op->next};
	uint64_t in_window = weft_file_view_position(op->view, weft_file_map_end(r->at)) - pos;
	p->bytes = min_u64(min_u64(left, in_window), MAPPED);
	p->span = weft_file_view_offset(op->view, pos + p->bytes - 1) + 1 - p->at;
	p->dense = (p->span - p->bytes) / (p->bytes * n / listed + 1) <= SIEVE_HOLE;
	op->next += p->bytes;
	op->range_at = op->range_n;
	return true;
}

uint64_t weft_file_op_map_ns(const struct weft_file_op *op, uint64_t ranges, uint64_t from,
			     uint64_t to, uint64_t *once_p)
{
	uint64_t bytes = op->buf.bytes, cold = 0;
	if (ranges < 2 || bytes / ranges >= SIEVE_RANGE || !weft_file_map_may(op->file) ||
	    !view_grows(op->view))
		return 0;
	if (op->write && (to - from - bytes) / ranges <= SIEVE_HOLE)
		cold = weft_file_map_cold(op->file, from, to);
	else if (op->write) /* a page or two each */
		cold = bytes + ranges * 4096;
	uint64_t warm = weft_file_strategy_map_ns(ranges, bytes, 0);
	uint64_t all = weft_file_strategy_map_ns(ranges, bytes, cold);
	*once_p = all - warm;
	return all;
}

/* Takes in the ranges that follow closely; false: the first one stands alone. */
static bool sieve_locked(struct weft_file_op *op, struct piece *p)
{
	weft_assert_held(weft_mutex, &op->lock);
	struct weft_file_range *r = next_range_locked(op);
	/* Its data must end in this range, and another one follow soon. */
	if (r->len >= SIEVE_RANGE || r->len == op->buf.bytes - op->next)
		return false;
	if (op->range_at + 1 < op->range_n && r[1].at - (r->at + r->len) > SIEVE_HOLE)
		return false;
	if (op->write && !(op->own_range && op->file->readable))
		return false;
	*p = (struct piece){.kind = PIECE_SIEVED, .at = r->at, .data = op->next};
	uint64_t end = r->at;
	while (op->next < op->buf.bytes) { /* ends: each turn takes data */
		r = next_range_locked(op);
		if (r->at < end || r->at - end > SIEVE_HOLE || r->at + r->len - p->at > STAGE)
			break;
		end = r->at + r->len;
		p->bytes += r->len;
		take_locked(op, r, r->len);
	}
	p->span = end - p->at;
	return p->bytes != 0;
}

/* How the data behind range r is reached in memory; cuts the piece to what fits. */
static void memory_of_piece(const struct weft_file_op *op, struct piece *p, struct iovec *iov)
{
	p->kind = PIECE_FLAT;
	p->n_iov = 1;
	if (!op->buf.type) {
		p->bytes = min_u64(p->bytes, FLAT_MAX);
		iov[0].iov_base = (char *)op->buf.base + p->data;
		return;
	}
	p->n_iov = VECTOR;
	uint64_t listed = weft_data_iov(&op->buf, p->data, iov, &p->n_iov);
	if (iov[0].iov_len >= p->bytes || iov[0].iov_len >= STAGE) {
		p->bytes = min_u64(p->bytes, iov[0].iov_len);
		p->bytes = min_u64(p->bytes, FLAT_MAX);
		p->n_iov = 1;
		return;
	}
	if (listed / p->n_iov < VECTOR_RUN) {
		p->kind = PIECE_STAGED;
		p->bytes = min_u64(p->bytes, STAGE);
		return;
	}
	p->kind = PIECE_VECTOR;
	p->bytes = min_u64(p->bytes, listed);
	uint64_t left = p->bytes;
	unsigned n = 0;
	for (; left; n++) { /* ends: the runs hold at least that much */
		iov[n].iov_len = min_u64(iov[n].iov_len, left);
		left -= iov[n].iov_len;
	}
	p->n_iov = n;
}

/* The next piece for a lane; false: there is none. */
static bool cut_piece(struct weft_file_op *op, struct weft_file_lane *l)
{
	bool some = false;
	pthread_mutex_lock(&op->lock);
	if (!op->err && !op->eof && op->next < op->buf.bytes) {
		some = true;
		if (!map_locked(op, &l->p) && !sieve_locked(op, &l->p)) {
			struct weft_file_range *r = next_range_locked(op);
			l->p = (struct piece){.at = r->at, .bytes = r->len, .data = op->next};
			memory_of_piece(op, &l->p, l->iov);
			l->p.span = l->p.bytes;
			take_locked(op, r, l->p.bytes);
		}
	}
	pthread_mutex_unlock(&op->lock);
	return some;
}

/* ---- moving ------------------------------------------------------------------------------- */

/* Between the piece's range, of which `got` bytes are at `base`, and the buffer; returns the data bytes of it. */
static uint64_t ranges_copy(struct weft_file_lane *l, char *base, uint64_t got)
{
	struct weft_file_op *op = l->op;
	uint64_t done = 0;
	while (done < l->p.bytes) { /* ends: each turn lists data */
		struct weft_file_range r[WEFT_FILE_OP_RANGES];
		unsigned n = WEFT_FILE_OP_RANGES;
		(void)weft_file_view_ranges(op->view, op->pos + l->p.data + done, l->p.bytes - done,
					    r, &n);
		for (unsigned i = 0; i < n; i++) {
			uint64_t from = r[i].at - l->p.at;
			uint64_t len = from >= got ? 0 : min_u64(r[i].len, got - from);
			if (op->write)
				weft_data_pack(&op->buf, l->p.data + done, base + from, len);
			else
				weft_data_unpack(&op->buf, l->p.data + done, base + from, len);
			done += len;
			if (len < r[i].len)
				return done;
		}
	}
	return done;
}

/* The last byte of the piece by a call: the file is long enough then, and has changed now. */
static bool write_last(struct weft_file_lane *l)
{
	struct weft_file_op *op = l->op;
	char last;
	weft_data_pack(&op->buf, l->p.data + l->p.bytes - 1, &last, 1);
	struct weft_file_io io = {.file = op->file,
				  .write = true,
				  .at = l->p.at + l->p.span - 1,
				  .bytes = 1,
				  .base = &last};
	weft_file_io_now(&io);
	if (!io.err)
		weft_file_map_touched(op->file);
	return !io.err;
}

/* False: nothing of it counts, calls must do it. */
static bool move_mapped(struct weft_file_lane *l)
{
	struct weft_file_op *op = l->op;
	struct weft_file_window *w;
	uint64_t size, end = l->p.at + l->p.span;
	if (weft_file_size(op->file, &size))
		return false;
	if (op->write && (size < end || weft_file_map_is_stale(op->file))) {
		if (!write_last(l))
			return false;
		size = end;
	}
	if (size <= l->p.at) /* a read behind the end */
		return true;
	uint64_t got = min_u64(size - l->p.at, l->p.span);
	char *base = weft_file_map_enter(op->file, op->write, l->p.at, got, l->p.dense, &w);
	if (!base)
		return false;
	uint64_t done = ranges_copy(l, base, got);
	if (!weft_file_map_leave(op->file, w))
		return false;
	l->io.done = done;
	return true;
}

/* One range of a mapped piece, by a call; false: it ended early. */
static bool call_range(struct weft_file_lane *l, struct weft_file_range r)
{
	struct weft_file_op *op = l->op;
	uint64_t data = l->p.data + l->io.done;
	bool packed = op->buf.type;
	struct weft_file_io io = {.file = op->file, .write = op->write, .at = r.at, .bytes = r.len};
	if (packed && !l->stage)
		l->stage = malloc(STAGE);
	io.base = packed ? l->stage : (char *)op->buf.base + data;
	if (!io.base) {
		l->io.err = ENOMEM;
		return false;
	}
	io.bytes = packed ? min_u64(r.len, STAGE) : r.len;
	if (packed && op->write)
		weft_data_pack(&op->buf, data, l->stage, io.bytes);
	weft_file_io_now(&io);
	if (packed && !op->write)
		weft_data_unpack(&op->buf, data, l->stage, io.done);
	l->io.done += io.done;
	l->io.err = io.err;
	return !io.err && io.done == io.bytes;
}

/* A mapped piece, by a thread that may wait. */
static void move_piece(struct weft_file_io *io)
{
	struct weft_file_lane *l = io->arg;
	const struct weft_file_op *op = l->op;
	if (move_mapped(l)) {
		weft_count(WEFT_CNT_FILE_MAPPED, 1);
		return;
	}
	weft_count(WEFT_CNT_FILE_UNMAPPED, 1);
	while (io->done < l->p.bytes) { /* ends: each turn moves data, or a call ends early */
		struct weft_file_range r;
		unsigned n = 1;
		(void)weft_file_view_ranges(op->view, op->pos + l->p.data + io->done,
					    l->p.bytes - io->done, &r, &n);
		if (!call_range(l, r))
			return;
	}
}

/* The lane's piece has been moved, or not. */
static void piece_account(struct weft_file_op *op, uint64_t data, uint64_t bytes, uint64_t wanted,
			  int err)
{
	pthread_mutex_lock(&op->lock);
	op->good += bytes;
	if (err && (!op->err || data + bytes < op->err_at)) {
		op->err = err;
		op->err_at = data + bytes;
	}
	if (!err && bytes < wanted)
		op->eof = true;
	pthread_mutex_unlock(&op->lock);
}

static bool lane_needs_stage(const struct weft_file_lane *l)
{
	return l->p.kind == PIECE_STAGED || l->p.kind == PIECE_SIEVED;
}

/* Fills in the io step for the lane's piece; 0 or ENOMEM. */
static int lane_prepare(struct weft_file_lane *l)
{
	struct weft_file_op *op = l->op;
	struct weft_file_io *io = &l->io;
	*io = (struct weft_file_io){.file = op->file,
				    .fn = io->fn,
				    .arg = l,
				    .write = op->write,
				    .at = l->p.at,
				    .bytes = l->p.span};
	l->filled = false;
	if (lane_needs_stage(l)) {
		if (!l->stage)
			l->stage = malloc(STAGE);
		if (!l->stage)
			return ENOMEM;
		io->base = l->stage;
		if (l->p.kind == PIECE_SIEVED)
			io->write = false;
		else if (op->write)
			weft_data_pack(&op->buf, l->p.data, l->stage, l->p.bytes);
	} else if (l->p.kind == PIECE_MAPPED) {
		io->base = NULL;
	} else if (l->p.kind == PIECE_FLAT) {
		io->base = l->iov[0].iov_base;
	} else {
		io->iov = l->iov;
		io->n_iov = l->p.n_iov;
	}
	return 0;
}

/* What follows the io step.  True: one more step (a sieved range goes back). */
static bool lane_after(struct weft_file_lane *l)
{
	struct weft_file_op *op = l->op;
	struct weft_file_io *io = &l->io;
	uint64_t bytes = io->done;
	if (l->p.kind == PIECE_SIEVED && op->write && !l->filled && !io->err) {
		/* Beyond the end of the file the holes are zero. */
		memset(l->stage + io->done, 0, l->p.span - io->done);
		(void)ranges_copy(l, l->stage, l->p.span);
		l->filled = true;
		io->write = true;
		return true;
	}
	if (l->p.kind == PIECE_SIEVED)
		bytes = op->write ? (io->err ? 0 : l->p.bytes) : ranges_copy(l, l->stage, io->done);
	else if (l->p.kind == PIECE_STAGED && !op->write)
		weft_data_unpack(&op->buf, l->p.data, l->stage, io->done);
	piece_account(op, l->p.data, bytes, l->p.bytes, io->err);
	return false;
}

static void op_result(struct weft_file_op *op)
{
	op->bytes = op->err ? min_u64(op->err_at, op->good) : op->good;
	for (unsigned i = 0; i < op->lanes; i++)
		free(op->lane[i].stage);
	free(op->lane);
	op->lane = NULL;
	pthread_mutex_destroy(&op->lock);
}

/* ---- in the background -------------------------------------------------------------------- */

static void op_over(struct weft_file_op *op)
{
	op_result(op);
	if (op->fn)
		op->fn(op);
	else
		weft_wait_completion_signal(&op->done);
}

/* A lane has nothing more to do. */
static void lane_leave(struct weft_file_lane *l)
{
	struct weft_file_op *op = l->op;
	pthread_mutex_lock(&op->lock);
	bool last = --op->busy == 0;
	pthread_mutex_unlock(&op->lock);
	if (last)
		op_over(op);
}

/* From piece to io step. */
static void lane_go(struct weft_file_lane *l)
{
	if (!cut_piece(l->op, l)) {
		lane_leave(l);
		return;
	}
	int err = lane_prepare(l);
	if (!err && l->p.kind == PIECE_MAPPED) {
		weft_file_io_call(&l->io, move_piece);
		return;
	}
	if (!err) {
		weft_file_io_start(&l->io);
		return;
	}
	piece_account(l->op, l->p.data, 0, l->p.bytes, err);
	lane_leave(l);
}

static void lane_continue(struct weft_file_lane *l)
{
	if (lane_after(l))
		weft_file_io_start(&l->io);
	else
		lane_go(l);
}

static enum weft_task_verdict lane_task(struct weft_task *t, void *arg)
{
	lane_continue(arg);
	return WEFT_TASK_GONE; /* the op may be over, and freed */
}

static void lane_io_over(struct weft_file_io *io)
{
	struct weft_file_lane *l = io->arg;
	/* A lane that copies much does it outside the source's mask. */
	if (l->stage && l->p.bytes > HANDLER_BYTES && weft_engine_in_handler()) {
		weft_task_init(&l->task, "file copy", lane_task, l, 0);
		weft_task_submit(&l->task);
		return;
	}
	lane_continue(l);
}

static void op_init(struct weft_file_op *op)
{
	weft_assert(op->file && op->view);
	op->err = 0;
	op->bytes = op->next = op->good = op->err_at = 0;
	op->eof = false;
	op->range_at = op->range_n = 0;
	op->lanes = op->busy = 0;
	op->lane = NULL;
	pthread_mutex_init(&op->lock, NULL);
	weft_wait_completion_init(&op->done);
}

static unsigned lanes_for(const struct weft_file_op *op)
{
	if (!op->view->type)
		return op->buf.bytes > FLAT_MAX ? FLAT_LANES : 1;
	struct weft_file_range r;
	unsigned n = 1;
	uint64_t first = weft_file_view_ranges(op->view, op->pos, op->buf.bytes, &r, &n);
	if (first == op->buf.bytes)
		return 1;
	uint64_t pieces = op->buf.bytes / first + 1;
	return (unsigned)min_u64(pieces, LANES);
}

/* A record by the mapping; false: nothing was done. */
static bool store_record(const struct weft_file_io *io)
{
	const struct weft_file *f = io->file;
	uint64_t size, end = io->at + io->bytes;
	struct weft_file_window *w;
	if (weft_file_map_end(io->at) < end || weft_file_map_is_stale(f) ||
	    weft_file_size(f, &size) || size < end)
		return false;
	char *to = weft_file_map_enter(f, true, io->at, io->bytes, false, &w);
	if (!to)
		return false;
	memcpy(to, io->base, io->bytes);
	return weft_file_map_leave(f, w);
}

static void record_by_call(struct weft_file_io *io, struct weft_file *f, uint32_t known)
{
	uint64_t begin = weft_clock_ns();
	weft_file_io_now(io);
	uint64_t took = weft_clock_ns() - begin, most = 2 * (uint64_t)known + 1000;
	/* One bad moment of the machine counts little. */
	took = took < most ? took : most;
	/* Relaxed: hints. */
	atomic_store_explicit(&f->x_small_ns, (uint32_t)((3 * (uint64_t)known + took) / 4 + 1),
			      memory_order_relaxed);
	if (!io->err)
		weft_file_map_touched(f);
}

/* By the caller: calls, or a store for a record where those are slow. */
static void flat_now(struct weft_file_io *io)
{
	if (!io->write || io->bytes > RECORD || !weft_file_map_may(io->file)) {
		weft_file_io_now(io);
		return;
	}
	struct weft_file *f = (struct weft_file *)(uintptr_t)io->file;
	/* Relaxed: hints. */
	uint32_t known = atomic_load_explicit(&f->x_small_ns, memory_order_relaxed);
	uint32_t n = atomic_load_explicit(&f->x_small, memory_order_relaxed);
	atomic_store_explicit(&f->x_small, n + 1, memory_order_relaxed);
	if (known > RECORD_SLOW_NS && store_record(io)) {
		io->done = io->bytes;
		io->err = 0;
	} else if (known > RECORD_SLOW_NS || n % RECORD_SAMPLE == 0) {
		record_by_call(io, f, known);
	} else {
		weft_file_io_now(io);
	}
}

/* Is it one small piece of flat memory?  Then r is where. */
static bool is_small(const struct weft_file_op *op, struct weft_file_range *r)
{
	unsigned n = 1;
	return op->buf.bytes <= SMALL && !op->buf.type && op->file->fs.local &&
	       weft_mechanism_on(WEFT_MECH_FILE_SMALL) && !weft_engine_in_handler() &&
	       weft_file_view_ranges(op->view, op->pos, op->buf.bytes, r, &n) == op->buf.bytes;
}

/*
 * A small access to the system's cache takes less time than to hand it to another thread: by the caller, unless it
 * would wait.  The system tells for reads, but not on tmpfs; of the rest only those that came before tell: where one took
 * long, the next ones go the other way.
 */
static bool start_small(struct weft_file_op *op)
{
	struct weft_file_range r;
	if (!is_small(op, &r))
		return false;
	struct weft_file *f = (struct weft_file *)(uintptr_t)op->file;
	struct weft_file_io io = {.file = f,
				  .write = op->write,
				  .at = r.at,
				  .bytes = op->buf.bytes,
				  .base = op->buf.base};
	/* Relaxed: a hint. */
	bool blind = op->write || atomic_load_explicit(&f->x_blind, memory_order_relaxed);
	if (!blind && !weft_file_io_cached(&io)) {
		if (io.err != EOPNOTSUPP)
			return false;
		atomic_store_explicit(&f->x_blind, true, memory_order_relaxed);
		blind = true;
	}
	if (blind) {
		/* Relaxed: a hint. */
		uint32_t shy = atomic_load_explicit(&f->x_shy, memory_order_relaxed);
		if (shy) {
			atomic_store_explicit(&f->x_shy, shy - 1, memory_order_relaxed);
			return false;
		}
		uint64_t begin = weft_clock_ns();
		flat_now(&io);
		if (weft_clock_ns() - begin > SLOW_NS)
			atomic_store_explicit(&f->x_shy, SHY, memory_order_relaxed);
	}
	op->bytes = io.done;
	op->err = io.err;
	return true;
}

/* The caller did it all. */
static void op_done_here(struct weft_file_op *op)
{
	if (op->fn)
		op->fn(op);
	else
		weft_wait_completion_init_done(&op->done);
}

int weft_file_op_start(struct weft_file_op *op)
{
	op->err = 0;
	op->bytes = 0;
	weft_wait_completion_init(&op->done);
	if (!op->buf.bytes || start_small(op)) {
		op_done_here(op);
		return 0;
	}
	op_init(op);
	unsigned n = lanes_for(op);
	op->lane = calloc(n, sizeof *op->lane);
	if (!op->lane) {
		pthread_mutex_destroy(&op->lock);
		return ENOMEM;
	}
	/* The op is not over before each lane has left: the loop reads nothing of it after the last. */
	op->lanes = op->busy = n;
	struct weft_file_lane *lane = op->lane;
	for (unsigned i = 0; i < n; i++) {
		lane[i].op = op;
		lane[i].io.fn = lane_io_over;
	}
	for (unsigned i = 0; i < n; i++)
		lane_go(&lane[i]);
	return 0;
}

/* ---- by the caller ------------------------------------------------------------------------ */

static void run_here(struct weft_file_op *op)
{
	struct weft_file_lane l = {.op = op};
	op_init(op);
	while (cut_piece(
		op,
		&l)) { /* ends: all data is handed out, or an error or the end of the file is met */
		int err = lane_prepare(&l);
		if (err) {
			piece_account(op, l.p.data, 0, l.p.bytes, err);
			break;
		}
		do /* ends: at most twice */
			if (l.p.kind == PIECE_MAPPED)
				move_piece(&l.io);
			else
				weft_file_io_now(&l.io);
		while (lane_after(&l));
	}
	free(l.stage);
	op_result(op);
}

/* One run of the file and of memory needs no pieces. */
static void run_flat(struct weft_file_op *op)
{
	struct weft_file_io io;
	io.file = op->file;
	io.write = op->write;
	io.at = op->view->disp + op->pos;
	io.bytes = op->buf.bytes;
	io.base = op->buf.base;
	flat_now(&io);
	op->bytes = io.done;
	op->err = io.err;
}

void weft_file_op_run(struct weft_file_op *op)
{
	/* A user-level thread would take its worker's core with it into the system call. */
	if (!weft_wait_parker_is_light(weft_wait_parker_self())) {
		if (!op->view->type && !op->buf.type)
			run_flat(op);
		else
			run_here(op);
		return;
	}
	void (*fn)(struct weft_file_op *) = op->fn;
	op->fn = NULL;
	int err = weft_file_op_start(op);
	if (err)
		op->err = err;
	else
		weft_task_engine_wait(&op->done);
	op->fn = fn;
}
