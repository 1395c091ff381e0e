/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * two_phase.c - data between members and aggregators, and between aggregators and the file.
 *
 * The access's range of the file is cut into domains, one per aggregator, and these into windows.  Since data
 * grows with the offset, a member's data of a window is one stretch of its positions: both sides work it out from
 * the member's view, and a message holds data alone.
 *
 * Lanes move windows, each lane every LANES-th one, one after the other.
 *   member     one message per window that it has data in: pack, send; or receive, unpack
 *   aggregator all members' data of a window: receive, put in place, write; or read, take out, send
 * A lane's messages have its own tag, so that they meet in the order of the windows.  A side that has failed goes
 * on with empty messages, so that no other waits for it.
 */
#include "file/team.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "file/io.h"
#include "task/task.h"

enum { TAG_DATA = 4 }; /* + the lane */
#define LANES 2
/* A lane keeps memory of this length, twice: two lanes with four windows of a domain of 16 MiB. */
#define KEPT_MAX ((size_t)4 << 20)
#define DEPTH_MAX 8
/* More than so much is not copied in a handler: about 10 us. */
#define HANDLER_BYTES 65536

/* A member's data of a window. */
struct part {
	uint64_t pos, bytes; /* positions of the member's view */
	uint64_t good;       /* of bytes: those that are there */
	size_t in;           /* where its message lies in the lane's memory */
};

struct weft_file_lane2 {
	struct weft_file_all *a;
	bool serves;                             /* an aggregator's */
	int domain, which;                       /* of which domain, of LANES */
	unsigned round;                          /* the window */
	uint64_t from, to;                       /* of the file: the window */
	void (*work)(struct weft_file_lane2 *l); /* what the task does */
	struct weft_task task;
	/* A member's. */
	struct part mine;
	struct weft_req req;
	/* An aggregator's. */
	struct part *part;     /* by rank */
	struct weft_req *reqs; /* by rank */
	_Atomic int x_left;
	uint64_t lo, hi; /* in the window, first to last byte of data */
	uint64_t at;     /* how far the window has been written */
	struct weft_file_io io;
	uint64_t *covered; /* a bit for each byte of the window */
	char *window;
	size_t window_room;
	/* Both. */
	char *stage; /* messages */
	size_t stage_room;
};

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static const struct weft_file_view *view_of(const struct weft_file_all *a, int r)
{
	return r == a->team->rank ? a->op->view : &a->team->view[r].view;
}

/* Member r's data between two offsets. */
static struct part part_between(const struct weft_file_all *a, int r, uint64_t from, uint64_t to)
{
	const struct weft_file_info *i = &a->team->info[r];
	if (!i->bytes || i->hi <= from || i->lo >= to)
		return (struct part){.pos = 0};
	const struct weft_file_view *v = view_of(a, r);
	uint64_t end = i->pos + i->bytes;
	uint64_t p = i->lo >= from ? i->pos : weft_file_view_position(v, from);
	uint64_t q = i->hi <= to ? end : weft_file_view_position(v, to);
	p = p < i->pos ? i->pos : min_u64(p, end);
	q = min_u64(q, end);
	return (struct part){.pos = p, .bytes = q > p ? q - p : 0};
}

static void lane_do(struct weft_file_lane2 *l, void (*work)(struct weft_file_lane2 *),
		    uint64_t copies);
static void lane_next(struct weft_file_lane2 *l);

/* The lane's next window, whatever lies in it; false: there is none. */
static bool window_next(struct weft_file_lane2 *l)
{
	const struct weft_file_all *a = l->a;
	uint64_t base = a->lo + (uint64_t)l->domain * a->domain;
	uint64_t end = min_u64(base + a->domain, a->hi);
	l->from = base + l->round * a->window;
	l->to = min_u64(l->from + a->window, end);
	l->round += LANES;
	return l->from < end;
}

static bool stage_for(struct weft_file_lane2 *l, size_t bytes)
{
	if (bytes <= l->stage_room)
		return true;
	if (bytes < l->a->window &&
	    l->serves) /* the next window's messages may be a little longer */
		bytes = l->a->window;
	free(l->stage);
	l->stage = malloc(bytes);
	l->stage_room = l->stage ? bytes : 0;
	return l->stage != NULL;
}

/*
 * The access whose caller is in a task of it, and has nothing else to do: it may make the system's calls
 * itself, which copy to or from the cache, and need not hear of them from another thread.
 */
static _Thread_local const struct weft_file_all *own_time;

static bool calls_itself(const struct weft_file_all *a)
{
	return a->waits && a->op->file->fs.local;
}

static enum weft_task_verdict lane_task(struct weft_task *t, void *arg)
{
	(void)t;
	struct weft_file_lane2 *l = arg;
	if (calls_itself(l->a) && pthread_equal(l->a->caller, pthread_self()))
		own_time = l->a;
	l->work(l);
	own_time = NULL;
	return WEFT_TASK_GONE; /* the access may be over, and freed */
}

/*
 * The lane's range of the file, in the background: by the caller, which waits and may wait for the system too, where its domain has no
 * other window that it could go on with, else by the source.
 */
static void io_begin(struct weft_file_lane2 *l)
{
	struct weft_file_all *a = l->a;
	if (!a->lends || a->domain > a->window || a->op->file->fs.local) {
		weft_file_io_start(&l->io);
		return;
	}
	a->call = &l->io;
	weft_wait_completion_signal(&a->turn);
}

/* Does work, which copies so much: as a task where the thread is a handler, and it is much. */
static void lane_do(struct weft_file_lane2 *l, void (*work)(struct weft_file_lane2 *),
		    uint64_t copies)
{
	if (copies > HANDLER_BYTES && weft_engine_in_handler() && own_time != l->a) {
		l->work = work;
		weft_task_init(&l->task, "collective file copy", lane_task, l, 0);
		weft_task_submit(&l->task);
		return;
	}
	work(l);
}

/* Memory is kept for the next access: to touch new pages takes as long as to copy into them. */
static void lane_trim(struct weft_file_lane2 *l, size_t most)
{
	if (l->stage_room > most) {
		free(l->stage);
		l->stage = NULL;
		l->stage_room = 0;
	}
	if (l->window_room > most) {
		free(l->window);
		free(l->covered);
		l->window = NULL;
		l->covered = NULL;
		l->window_room = 0;
	}
}

static void all_lanes_over(struct weft_file_all *a)
{
	struct weft_file_team *t = a->team;
	for (unsigned i = 0; i < t->lanes; i++)
		lane_trim(&t->lane[i], KEPT_MAX);
	a->moved(a);
}

static void lane_over(struct weft_file_all *a)
{
	/* The last lane sees what the others have done. */
	if (atomic_fetch_sub_explicit(&a->x_left, 1, memory_order_acq_rel) == 1)
		all_lanes_over(a);
}

static bool all_failed(struct weft_file_all *a)
{
	pthread_mutex_lock(&a->lock);
	bool failed = a->err != 0;
	pthread_mutex_unlock(&a->lock);
	return failed;
}

/* A read has no data from position pos of the own view on. */
static void ends_at(struct weft_file_all *a, uint64_t pos)
{
	uint64_t data = pos - a->op->pos;
	pthread_mutex_lock(&a->lock);
	if (data < a->end)
		a->end = data;
	pthread_mutex_unlock(&a->lock);
}

/* ---- a member's lane ---------------------------------------------------------------------- */

static int lane_tag(const struct weft_file_lane2 *l)
{
	return l->a->tag + TAG_DATA + l->which;
}

static void member_sent(struct weft_req *req, void *arg)
{
	struct weft_file_lane2 *l = arg;
	if (req->status.err)
		weft_file_all_fail(l->a, EOWNERDEAD, l->from);
	lane_next(l);
}

static void member_send(struct weft_file_lane2 *l)
{
	struct weft_file_all *a = l->a;
	const struct weft_file_op *op = a->op;
	struct weft_buf out = {.base = NULL};
	uint64_t data = l->mine.pos - op->pos;
	if (!op->buf.type) {
		out = weft_data_buf_flat((char *)op->buf.base + data, l->mine.bytes);
	} else if (stage_for(l, l->mine.bytes)) {
		weft_data_pack(&op->buf, data, l->stage, l->mine.bytes);
		out = weft_data_buf_flat(l->stage, l->mine.bytes);
	} else {
		weft_file_all_fail(a, ENOMEM, l->from); /* the message is empty */
	}
	int to = weft_file_team_process(a->team, a->team->aggregator[l->domain]);
	weft_comm_req_init(&l->req, member_sent, l);
	if (!weft_comm_core_isend(&l->req, a->team->ctx, to, lane_tag(l), &out, WEFT_SEND_STANDARD))
		return;
	weft_file_all_fail(a, EOWNERDEAD, l->from);
	lane_next(l);
}

static void member_unpack(struct weft_file_lane2 *l)
{
	struct weft_file_all *a = l->a;
	if (a->op->buf.type)
		weft_data_unpack(&a->op->buf, l->mine.pos - a->op->pos, l->stage, l->mine.good);
	lane_next(l);
}

static void member_received(struct weft_req *req, void *arg)
{
	struct weft_file_lane2 *l = arg;
	if (req->status.err)
		weft_file_all_fail(l->a, EOWNERDEAD, l->from);
	l->mine.good = req->status.err ? 0 : req->status.bytes;
	if (l->mine.good < l->mine.bytes)
		ends_at(l->a, l->mine.pos + l->mine.good);
	lane_do(l, member_unpack, l->a->op->buf.type ? l->mine.good : 0);
}

static void member_receive(struct weft_file_lane2 *l)
{
	struct weft_file_all *a = l->a;
	struct weft_buf in;
	weft_err err = WEFT_ERR_NOMEM;
	if (!a->op->buf.type)
		in = weft_data_buf_flat((char *)a->op->buf.base + (l->mine.pos - a->op->pos),
					l->mine.bytes);
	else if (stage_for(l, l->mine.bytes))
		in = weft_data_buf_flat(l->stage, l->mine.bytes);
	else
		in = weft_data_buf_flat(NULL, 0); /* the message is dropped */
	int from = weft_file_team_process(a->team, a->team->aggregator[l->domain]);
	weft_comm_req_init(&l->req, member_received, l);
	err = weft_file_all_irecv(a, &l->req, from, lane_tag(l), &in);
	if (!err)
		return;
	weft_file_all_fail(a, EOWNERDEAD, l->from);
	lane_next(l);
}

static void member_next(struct weft_file_lane2 *l)
{
	struct weft_file_all *a = l->a;
	do { /* ends: data, or the last window */
		if (!window_next(l)) {
			lane_over(a);
			return;
		}
		l->mine = part_between(a, a->team->rank, l->from, l->to);
	} while (!l->mine.bytes);
	if (a->op->write)
		lane_do(l, member_send, a->op->buf.type ? l->mine.bytes : 0);
	else
		member_receive(l);
}

/* ---- an aggregator's lane: what both directions share ------------------------------------- */

/* Calls fn for each range of the first `bytes` of part p of member r, with how much data comes before. */
static uint64_t each_range(struct weft_file_lane2 *l, int r, const struct part *p,
			   bool (*fn)(struct weft_file_lane2 *l, int r, const struct part *p,
				      struct weft_file_range range, uint64_t data))
{
	uint64_t done = 0;
	while (done < p->bytes) { /* ends: each turn lists data */
		struct weft_file_range range[WEFT_FILE_OP_RANGES];
		unsigned n = WEFT_FILE_OP_RANGES;
		uint64_t held = weft_file_view_ranges(view_of(l->a, r), p->pos + done,
						      p->bytes - done, range, &n);
		if (!held)
			break;
		for (unsigned i = 0; i < n; i++) {
			/* A view that does not grow, where no look at it noticed. */
			if (range[i].at < l->from || range[i].at + range[i].len > l->to) {
				weft_file_all_fail(l->a, EINVAL, l->from);
				return done;
			}
			if (!fn(l, r, p, range[i], done))
				return done;
			done += range[i].len;
		}
	}
	return done;
}

/* Each member's data of the window, and where its message goes; returns the room for all messages. */
static uint64_t parts_make(struct weft_file_lane2 *l)
{
	struct weft_file_all *a = l->a;
	uint64_t room = 0;
	for (int r = 0; r < a->team->size; r++) {
		l->part[r] = part_between(a, r, l->from, l->to);
		l->part[r].in = room;
		if (r != a->team->rank)
			room += (l->part[r].bytes + 63) & ~(uint64_t)63;
	}
	l->lo = l->to;
	l->hi = l->from;
	for (int r = 0; r < a->team->size; r++) {
		const struct part *p = &l->part[r];
		if (!p->bytes)
			continue;
		uint64_t first = weft_file_view_offset(view_of(a, r), p->pos);
		uint64_t last = weft_file_view_offset(view_of(a, r), p->pos + p->bytes - 1) + 1;
		l->lo = min_u64(l->lo, first);
		l->hi = last > l->hi ? last : l->hi;
	}
	return room;
}

/* The lane's memory for the window that it has; false: there is none. */
static bool window_room(struct weft_file_lane2 *l, uint64_t stage)
{
	size_t bytes = l->a->window;
	if (l->window_room < bytes) {
		lane_trim(l, 0);
		/* As the file's pages lie: FUSE makes three requests of 512 KiB elsewhere in a page, not two. */
		l->window = aligned_alloc(4096, bytes);
		l->covered = malloc((bytes + 63) / 64 * sizeof *l->covered);
		l->window_room = bytes;
		if (!l->window || !l->covered)
			lane_trim(l, 0);
	}
	return l->window && stage_for(l, stage);
}

/* ---- an aggregator that writes ------------------------------------------------------------ */

static void window_cover(uint64_t *bits, uint64_t from, uint64_t to)
{
	uint64_t first = from / 64, last = (to - 1) / 64;
	uint64_t head = ~0ull << from % 64, tail = ~0ull >> (63 - (to - 1) % 64);
	if (first == last) {
		bits[first] |= head & tail;
		return;
	}
	bits[first] |= head;
	for (uint64_t i = first + 1; i < last; i++)
		bits[i] = ~0ull;
	bits[last] |= tail;
}

/* The first place in [at, end) that is covered, or is not; end: there is none. */
static uint64_t window_find(const uint64_t *bits, uint64_t at, uint64_t end, bool covered)
{
	while (at < end) { /* ends: at grows */
		uint64_t word = covered ? bits[at / 64] : ~bits[at / 64];
		word >>= at % 64;
		if (word)
			return min_u64(end, at + (uint64_t)__builtin_ctzll(word));
		at = (at / 64 + 1) * 64;
	}
	return end;
}

static bool put_range(struct weft_file_lane2 *l, int r, const struct part *p,
		      struct weft_file_range range, uint64_t data)
{
	char *to = l->window + (range.at - l->from);
	if (r == l->a->team->rank)
		weft_data_pack(&l->a->op->buf, p->pos - l->a->op->pos + data, to, range.len);
	else
		memcpy(to, l->stage + p->in + data, range.len);
	window_cover(l->covered, range.at - l->from, range.at - l->from + range.len);
	return true;
}

/* The next stretch of the window that holds data, or false. */
static bool write_prepare(struct weft_file_lane2 *l)
{
	struct weft_file_all *a = l->a;
	uint64_t end = l->hi > l->from ? l->hi - l->from : 0;
	uint64_t from = window_find(l->covered, l->at, end, true);
	if (from == end || all_failed(a))
		return false;
	uint64_t to = window_find(l->covered, from, end, false);
	l->at = to;
	l->io.file = a->op->file;
	l->io.write = true;
	l->io.base = l->window + from;
	l->io.at = l->from + from;
	l->io.bytes = to - from;
	l->io.n_iov = 0;
	return true;
}

static void write_next(struct weft_file_lane2 *l)
{
	while (write_prepare(l)) { /* ends: at the window's end */
		if (own_time != l->a) {
			io_begin(l);
			return;
		}
		weft_file_io_now(&l->io);
		if (l->io.err)
			weft_file_all_fail(l->a, l->io.err, l->io.at + l->io.done);
	}
	lane_next(l);
}

static void write_over(struct weft_file_io *io)
{
	struct weft_file_lane2 *l = io->arg;
	if (io->err)
		weft_file_all_fail(l->a, io->err, io->at + io->done);
	write_next(l);
}

static void write_place(struct weft_file_lane2 *l)
{
	struct weft_file_all *a = l->a;
	l->at = 0;
	memset(l->covered, 0, (a->window + 63) / 64 * sizeof *l->covered);
	for (int r = 0; r < a->team->size; r++)
		if (l->part[r].good == l->part[r].bytes)
			(void)each_range(l, r, &l->part[r], put_range);
	write_next(l);
}

static void write_part_over(struct weft_file_lane2 *l)
{
	/* The last one sees what the others received. */
	if (atomic_fetch_sub_explicit(&l->x_left, 1, memory_order_acq_rel) == 1)
		lane_do(l, write_place, l->hi > l->lo ? l->hi - l->lo : 0);
}

static void write_received(struct weft_req *req, void *arg)
{
	struct weft_file_lane2 *l = arg;
	struct part *p = &l->part[req - l->reqs];
	p->good = req->status.err ? 0 : req->status.bytes;
	if (p->good != p->bytes)
		weft_file_all_fail(l->a, req->status.err ? EOWNERDEAD : ENOMEM, l->from);
	write_part_over(l);
}

static void write_window(struct weft_file_lane2 *l)
{
	struct weft_file_all *a = l->a;
	const struct weft_file_team *t = a->team;
	bool room = window_room(l, parts_make(l));
	int n = 1;
	if (!room)
		weft_file_all_fail(a, ENOMEM, l->from);
	for (int r = 0; r < t->size; r++)
		n += l->part[r].bytes && r != t->rank;
	l->part[t->rank].good = l->part[t->rank].bytes;
	/* Relaxed: the requests order. */
	atomic_store_explicit(&l->x_left, n, memory_order_relaxed);
	for (int r = 0; r < t->size; r++) {
		struct part *p = &l->part[r];
		if (!p->bytes || r == t->rank)
			continue;
		/* Without room the data is dropped. */
		struct weft_buf in =
			weft_data_buf_flat(room ? l->stage + p->in : NULL, room ? p->bytes : 0);
		weft_comm_req_init(&l->reqs[r], write_received, l);
		if (weft_file_all_irecv(a, &l->reqs[r], weft_file_team_process(t, r), lane_tag(l),
					&in)) {
			p->good = 0;
			weft_file_all_fail(a, EOWNERDEAD, l->from);
			write_part_over(l);
		}
	}
	write_part_over(l);
}

/* ---- an aggregator that reads ------------------------------------------------------------- */

/* Stops where the file ended. */
static bool take_range(struct weft_file_lane2 *l, int r, const struct part *p,
		       struct weft_file_range range, uint64_t data)
{
	uint64_t there = l->lo + l->io.done;
	uint64_t len = range.at >= there ? 0 : min_u64(range.len, there - range.at);
	const char *from = l->window + (range.at - l->from);
	if (r == l->a->team->rank)
		weft_data_unpack(&l->a->op->buf, p->pos - l->a->op->pos + data, from, len);
	else
		memcpy(l->stage + p->in + data, from, len);
	l->part[r].good += len;
	return len == range.len;
}

static void read_part_over(struct weft_file_lane2 *l)
{
	/* The last one: the memory is free again. */
	if (atomic_fetch_sub_explicit(&l->x_left, 1, memory_order_acq_rel) == 1)
		lane_next(l);
}

static void read_sent(struct weft_req *req, void *arg)
{
	struct weft_file_lane2 *l = arg;
	if (req->status.err)
		weft_file_all_fail(l->a, EOWNERDEAD, l->from);
	read_part_over(l);
}

static void read_send(struct weft_file_lane2 *l)
{
	struct weft_file_all *a = l->a;
	const struct weft_file_team *t = a->team;
	int n = 1;
	if (l->io.err)
		weft_file_all_fail(a, l->io.err, l->io.at + l->io.done);
	for (int r = 0; r < t->size; r++) {
		if (l->window)
			(void)each_range(l, r, &l->part[r], take_range);
		n += l->part[r].bytes && r != t->rank;
	}
	struct part *own = &l->part[t->rank];
	if (own->good < own->bytes)
		ends_at(a, own->pos + own->good);
	/* Relaxed: the requests order. */
	atomic_store_explicit(&l->x_left, n, memory_order_relaxed);
	for (int r = 0; r < t->size; r++) {
		const struct part *p = &l->part[r];
		if (!p->bytes || r == t->rank)
			continue;
		struct weft_buf out = weft_data_buf_flat(l->stage + p->in, p->good);
		weft_comm_req_init(&l->reqs[r], read_sent, l);
		if (weft_comm_core_isend(&l->reqs[r], t->ctx, weft_file_team_process(t, r),
					 lane_tag(l), &out, WEFT_SEND_STANDARD)) {
			weft_file_all_fail(a, EOWNERDEAD, l->from);
			read_part_over(l);
		}
	}
	read_part_over(l);
}

static void read_over(struct weft_file_io *io)
{
	struct weft_file_lane2 *l = io->arg;
	lane_do(l, read_send, io->done);
}

static void read_here(struct weft_file_lane2 *l)
{
	if (own_time != l->a) {
		io_begin(l);
		return;
	}
	weft_file_io_now(&l->io);
	read_send(l);
}

static void read_window(struct weft_file_lane2 *l)
{
	struct weft_file_all *a = l->a;
	bool room = window_room(l, parts_make(l));
	l->io.done = 0;
	l->io.err = 0;
	if (!room || l->hi <= l->lo) {
		if (!room)
			weft_file_all_fail(a, ENOMEM, l->from);
		read_send(l);
		return;
	}
	l->io.file = a->op->file;
	l->io.write = false;
	l->io.base = l->window + (l->lo - l->from);
	l->io.at = l->lo;
	l->io.bytes = l->hi - l->lo;
	l->io.n_iov = 0;
	lane_do(l, read_here, calls_itself(a) ? l->io.bytes : 0);
}

/* ---- lanes -------------------------------------------------------------------------------- */

static void lane_step(struct weft_file_lane2 *l)
{
	if (!l->serves) {
		member_next(l);
		return;
	}
	if (!window_next(l)) {
		lane_over(l->a);
		return;
	}
	if (l->a->op->write)
		write_window(l);
	else
		read_window(l);
}

/* Messages may be over before the call that starts them returns: the stack is not for all windows. */
static void lane_next(struct weft_file_lane2 *l)
{
	static _Thread_local unsigned depth;
	if (depth >= DEPTH_MAX) {
		l->work = lane_step;
		weft_task_init(&l->task, "collective file access", lane_task, l, 0);
		weft_task_submit(&l->task);
		return;
	}
	depth++;
	lane_step(l);
	depth--;
}

static void cut_domains(struct weft_file_all *a)
{
	const uint64_t block = 4096;
	uint64_t n = (uint64_t)a->team->aggregators;
	a->lo -= a->lo % block;
	a->domain = ((a->hi - a->lo + n - 1) / n + block - 1) / block * block;
	/* Then the last aggregators have nothing. */
	if (a->domain < a->domain_min)
		a->domain = a->domain_min;
	/* Small enough that exchange and file work at the same time; each window is a request, which may take long. */
	uint64_t share = (a->domain / 4 + block - 1) / block * block;
	uint64_t least = a->domain_min > 256 << 10 ? a->domain_min : 256 << 10;
	if (share < least)
		share = least;
	a->window = min_u64(a->window, min_u64(share, a->domain));
	a->window = a->window < block ? block : a->window / block * block;
}

static void lane_init(struct weft_file_lane2 *l, struct weft_file_all *a)
{
	l->a = a;
	l->round = (unsigned)l->which;
	l->io.fn = a->op->write ? write_over : read_over;
	l->io.arg = l;
}

int weft_file_lanes_open(struct weft_file_team *t)
{
	size_t n = (size_t)t->size;
	t->lane = calloc((size_t)t->aggregators * LANES, sizeof *t->lane);
	if (!t->lane)
		return t->aggregators ? ENOMEM : 0;
	t->lanes = (unsigned)t->aggregators * LANES;
	for (unsigned i = 0; i < t->lanes; i++) {
		struct weft_file_lane2 *l = &t->lane[i];
		l->domain = (int)(i / LANES);
		l->which = (int)(i % LANES);
		l->serves = t->aggregator[l->domain] == t->rank;
		if (!l->serves)
			continue;
		l->part = calloc(n, sizeof *l->part);
		l->reqs = calloc(n, sizeof *l->reqs);
		if (!l->part || !l->reqs)
			return ENOMEM;
	}
	return 0;
}

void weft_file_lanes_drop(struct weft_file_team *t)
{
	for (unsigned i = 0; i < t->lanes; i++) {
		lane_trim(&t->lane[i], 0);
		free(t->lane[i].part);
		free(t->lane[i].reqs);
	}
	free(t->lane);
	t->lane = NULL;
	t->lanes = 0;
}

void weft_file_two_phase(struct weft_file_all *a)
{
	struct weft_file_team *t = a->team;
	cut_domains(a);
	for (unsigned i = 0; i < t->lanes; i++)
		lane_init(&t->lane[i], a);
	/* Relaxed: the requests order.  One more, so that the access is not over meanwhile. */
	atomic_store_explicit(&a->x_left, (int)t->lanes + 1, memory_order_relaxed);
	for (unsigned i = 0; i < t->lanes; i++)
		lane_next(&t->lane[i]);
	lane_over(a);
}
