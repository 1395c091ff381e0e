/* SPDX-License-Identifier: BSD-3-Clause */
/* team.c - collective accesses: what members tell each other before and after, and which way is taken. */
#include "file/team.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/counters.h"
#include "base/log.h"
#include "file/io.h"
#include "task/task.h"
#include "wait/park.h"

enum { TAG_INFO, TAG_VIEW, TAG_VERDICT, TAG_CONFIRM = 6, TAG_VIEWS_CONFIRM };

/* Reads without a word after the first agreement, and after many: an exchange in so many costs little, and a member that finds its reads
 * better made together waits for that long. */
#define ALONE_MIN 3u
#define ALONE_MAX 255u
/* Ranges of this length on average are long: a call for each costs less than to give them to an aggregator. */
#define LONG_RANGE 16384

int weft_file_team_open(struct weft_file_team *t, const struct weft_coll_group *g, const bool *is,
			const struct weft_file *f)
{
	int rank = g->rank, size = g->size;
	*t = (struct weft_file_team){.group = *g,
				     .rank = rank,
				     .size = size,
				     .peer = g->peer,
				     .ctx = g->ctx,
				     .forced = -1};
	pthread_mutex_init(&t->lock, NULL);
	t->group.shm_p = &t->shm;
	t->last = &t->first;
	t->call_ns = weft_file_strategy_call_ns(f->fs.name);
	t->local = f->fs.local;
	t->alone_next = ALONE_MIN;
	t->aggregator = calloc((size_t)size, sizeof *t->aggregator);
	if (!t->aggregator)
		return ENOMEM;
	for (int r = 0; r < size; r++)
		if (is[r])
			t->aggregator[t->aggregators++] = r;
	size_t n = (size_t)size;
	if (is[rank])
		t->view = calloc(n, sizeof *t->view);
	t->info = calloc(n, sizeof *t->info);
	t->info_in = calloc(n, sizeof *t->info_in);
	t->verdict = calloc(n, sizeof *t->verdict);
	t->reqs = calloc(2 * n, sizeof *t->reqs);
	t->view_in = calloc(n, sizeof *t->view_in);
	if (weft_coll_shm_prepare(&t->group) || (is[rank] && !t->view) || !t->info || !t->info_in ||
	    !t->verdict || !t->reqs || !t->view_in)
		return ENOMEM;
	return weft_file_lanes_open(t);
}

static void forget_view_sent(struct weft_file_team *t)
{
	free(t->view_sent);
	t->view_sent = NULL;
	t->view_sent_bytes = 0;
}

void weft_file_team_drop(struct weft_file_team *t)
{
	weft_assert(!t->first);
	weft_file_lanes_drop(t);
	for (int r = 0; t->view && r < t->size; r++)
		weft_file_view_copy_drop(&t->view[r]);
	forget_view_sent(t);
	weft_coll_shm_free(t->shm);
	free(t->view);
	free(t->info);
	free(t->info_in);
	free(t->verdict);
	free(t->reqs);
	free(t->view_in);
	free(t->aggregator);
	pthread_mutex_destroy(&t->lock);
}

/* ---- the end ------------------------------------------------------------------------------ */

static void all_begin(struct weft_file_all *a);

static void all_free(struct weft_file_all *a)
{
	free(a->wire);
	a->wire = NULL;
	pthread_mutex_destroy(&a->lock);
}

/* The caller's memory again; the next access of the team begins. */
static void all_over(struct weft_file_all *a)
{
	struct weft_file_team *t = a->team;
	all_free(a);
	pthread_mutex_lock(&t->lock);
	weft_assert(t->first == a);
	struct weft_file_all *next = t->first = a->next;
	if (!next)
		t->last = &t->first;
	pthread_mutex_unlock(&t->lock);
	a->yours = a->tells = false;
	if (a->fn)
		a->fn(a);
	else
		weft_wait_completion_signal(&a->turn);
	if (next)
		all_begin(next);
}

/* How far data of this member is good that ends at `at` of the file. */
static uint64_t good_before(const struct weft_file_all *a, uint64_t at)
{
	const struct weft_file_op *op = a->op;
	uint64_t p = weft_file_view_position(op->view, at);
	if (p <= op->pos)
		return 0;
	return p - op->pos < op->buf.bytes ? p - op->pos : op->buf.bytes;
}

static void judge_access(struct weft_file_all *a)
{
	struct weft_file_op *op = a->op;
	struct weft_file_verdict worst = {0, UINT64_MAX, 1};
	for (int i = 0; i < a->team->size; i++)
		if (!a->team->verdict[i].said)
			worst = (struct weft_file_verdict){EOWNERDEAD, 0, 1};
		else if (a->team->verdict[i].err &&
			 (!worst.err || a->team->verdict[i].at < worst.at))
			worst = a->team->verdict[i];
	if (a->err && !worst.err) /* the messages themselves failed */
		worst = (struct weft_file_verdict){a->err, a->err_at, 1};
	if (a->strategy == WEFT_FILE_TWO_PHASE && !a->apart) {
		op->bytes = op->buf.bytes;
		if (!op->write && a->end < op->bytes)
			op->bytes = a->end;
		if (worst.err && worst.at != UINT64_MAX && good_before(a, worst.at) < op->bytes)
			op->bytes = good_before(a, worst.at);
		op->err = (int)worst.err;
	} else if (worst.err && !op->err) {
		op->err = (int)worst.err; /* its own part may be there; the call has failed */
	}
	if (a->failed)
		op->err = a->failed;
	if (worst.err) /* an aggregator may lack the view */
		forget_view_sent(a->team);
	all_over(a);
}

/* The access ends before any data was moved: a member has said why, or a message of it has failed. */
static void all_stopped(struct weft_file_all *a, int err)
{
	a->op->err = a->failed ? a->failed : err;
	a->op->bytes = 0;
	forget_view_sent(a->team);
	all_over(a);
}

/* What a member has said; 0: all that have said something are fine.  Those that are gone say nothing. */
static int error_said(const struct weft_file_all *a)
{
	const struct weft_file_verdict *v = a->team->verdict;
	for (int i = 0; i < a->team->size; i++)
		if (v[i].said && v[i].err)
			return (int)v[i].err;
	return 0;
}

/* How it has gone here, so far, to all. */
static void tell_verdict(struct weft_file_all *a, int tag, void (*then)(struct weft_file_all *))
{
	struct weft_file_team *t = a->team;
	memset(t->verdict, 0, (size_t)t->size * sizeof *t->verdict);
	pthread_mutex_lock(&a->lock);
	t->verdict[0] = (struct weft_file_verdict){a->err, a->err_at, 1};
	pthread_mutex_unlock(&a->lock);
	weft_file_tell(a, tag, t->verdict, sizeof *t->verdict, then);
}

/* The own part has failed: for all. */
static void fail_as_moved(struct weft_file_all *a)
{
	const struct weft_file_op *op = a->op;
	if ((a->strategy == WEFT_FILE_STRAIGHT || a->apart) && op->err)
		weft_file_all_fail(a, op->err,
				   weft_file_view_offset(op->view, op->pos + op->bytes));
}

static void all_moved(struct weft_file_all *a)
{
	struct weft_file_op *op = a->op;
	if (a->cost_ns)
		weft_file_strategy_learn(&a->team->learned[op->write], a->strategy, a->cost_ns,
					 weft_clock_ns() - a->begin_ns);
	fail_as_moved(a);
	/* A read of its own part fails alone. */
	if (a->strategy == WEFT_FILE_STRAIGHT && !op->write) {
		all_over(a);
		return;
	}
	/* What the others have written is there, but the call has failed on a member, so on all. */
	if (a->failed && op->write)
		weft_file_all_fail(a, a->failed, UINT64_MAX);
	tell_verdict(a, TAG_VERDICT, judge_access);
}

/* ---- straight ----------------------------------------------------------------------------- */

/* By the thread that waits, else by an operation, whose end calls over; missed: it could not begin. */
static void move_own_part(struct weft_file_all *a, void (*over)(struct weft_file_op *op),
			  void (*missed)(struct weft_file_all *a))
{
	struct weft_file_op *op = a->op;
	if (a->waits) {
		a->yours = true;
		weft_wait_completion_signal(&a->turn);
		return;
	}
	op->fn = over;
	op->arg = a;
	int err = weft_file_op_start(op);
	if (!err)
		return;
	op->err = err;
	op->bytes = 0;
	missed(a);
}

static void straight_over(struct weft_file_op *op)
{
	struct weft_file_all *a = op->arg;
	all_moved(a);
}

static void move_straight(struct weft_file_all *a)
{
	struct weft_file_op *op = a->op;
	if (a->apart) {
		all_moved(a);
		return;
	}
	if (a->failed) {
		op->bytes = 0;
		op->err = a->failed;
		all_moved(a);
		return;
	}
	move_own_part(a, straight_over, all_moved);
}

/* ---- views -------------------------------------------------------------------------------- */

static void views_confirmed(struct weft_file_all *a)
{
	int err = error_said(a);
	if (err)
		all_stopped(a, err);
	else
		weft_file_two_phase(a);
}

static void views_part_over(struct weft_file_all *a)
{
	/* The last part sees what the others received. */
	if (atomic_fetch_sub_explicit(&a->x_left, 1, memory_order_acq_rel) != 1)
		return;
	struct weft_file_team *t = a->team;
	bool some = false;
	for (int r = 0; r < t->size; r++)
		some |= t->info[r].view_bytes != 0;
	for (int r = 0; t->view && r < t->size; r++) {
		if (!t->view_in[r])
			continue;
		weft_file_view_copy_drop(&t->view[r]);
		if (weft_file_view_decode(t->view_in[r], t->info[r].view_bytes, &t->view[r]))
			weft_file_all_fail(a, ENOMEM, 0);
		free(t->view_in[r]);
		t->view_in[r] = NULL;
	}
	if (some)
		tell_verdict(a, TAG_VIEWS_CONFIRM, views_confirmed);
	else
		weft_file_two_phase(a);
}

/* Of a message that could not begin. */
static int errno_of(weft_err err)
{
	return err == WEFT_ERR_NOMEM ? ENOMEM : EOWNERDEAD;
}

static void view_over(struct weft_req *req, void *arg)
{
	struct weft_file_all *a = arg;
	if (req->status.err)
		weft_file_all_fail(a, EOWNERDEAD, 0);
	views_part_over(a);
}

static void view_receive(struct weft_file_all *a, int r, struct weft_req *req)
{
	struct weft_file_team *t = a->team;
	size_t bytes = t->info[r].view_bytes;
	t->view_in[r] = malloc(bytes);
	if (!t->view_in[r])
		weft_file_all_fail(a, ENOMEM, 0); /* the message is dropped */
	struct weft_buf buf = weft_data_buf_flat(t->view_in[r], t->view_in[r] ? bytes : 0);
	weft_comm_req_init(req, view_over, a);
	weft_err err =
		weft_file_all_irecv(a, req, weft_file_team_process(t, r), a->tag + TAG_VIEW, &buf);
	if (!err)
		return;
	weft_file_all_fail(a, errno_of(err), 0);
	views_part_over(a);
}

static void view_send(struct weft_file_all *a, int r, struct weft_req *req)
{
	struct weft_file_team *t = a->team;
	struct weft_buf buf = weft_data_buf_flat(t->view_sent, t->view_sent_bytes);
	weft_comm_req_init(req, view_over, a);
	weft_err err = weft_comm_core_isend(req, t->ctx, weft_file_team_process(t, r),
					    a->tag + TAG_VIEW, &buf, WEFT_SEND_STANDARD);
	if (!err)
		return;
	weft_file_all_fail(a, errno_of(err), 0);
	views_part_over(a);
}

/* The aggregators learn the views that they do not know yet. */
static void views_exchange(struct weft_file_all *a)
{
	struct weft_file_team *t = a->team;
	int n = 1, at = 0;
	for (int r = 0; t->view && r < t->size; r++)
		n += t->info[r].view_bytes && r != t->rank;
	for (int i = 0; t->info[t->rank].view_bytes && i < t->aggregators; i++)
		n += t->aggregator[i] != t->rank;
	/* Relaxed: the requests order. */
	atomic_store_explicit(&a->x_left, n, memory_order_relaxed);
	for (int r = 0; t->view && r < t->size; r++)
		if (t->info[r].view_bytes && r != t->rank)
			view_receive(a, r, &t->reqs[at++]);
	for (int i = 0; t->info[t->rank].view_bytes && i < t->aggregators; i++)
		if (t->aggregator[i] != t->rank)
			view_send(a, t->aggregator[i], &t->reqs[at++]);
	views_part_over(a);
}

/* ---- the beginning ------------------------------------------------------------------------ */

/* What was learned of another view is forgotten; one that is set anew is often the same. */
static void learned_of(struct weft_file_team *t, const char *wire, size_t bytes)
{
	uint64_t hash = 0xcbf29ce484222325u;
	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ (unsigned char)wire[i]) * 0x100000001b3u;
	if (hash != t->learned_view)
		memset(t->learned, 0, sizeof t->learned);
	t->learned_view = hash;
}

static void wire_make(struct weft_file_all *a)
{
	struct weft_file_team *t = a->team;
	a->wire_bytes = weft_file_view_encode(a->op->view, NULL);
	a->wire = malloc(a->wire_bytes);
	if (!a->wire) {
		a->failed = ENOMEM;
		a->op->buf.bytes = 0;
		return;
	}
	weft_file_view_encode(a->op->view, a->wire);
	learned_of(t, a->wire, a->wire_bytes);
	t->learned_number = a->view_number;
}

/* Together with the others: do the aggregators have the view? */
static void view_to_send(struct weft_file_all *a, struct weft_file_info *i)
{
	const struct weft_file_team *t = a->team;
	if (!i->bytes)
		return;
	if (!a->wire)
		wire_make(a);
	if (!a->wire) {
		*i = (struct weft_file_info){
			.window = t->window, .call_ns = t->call_ns, .write = i->write};
		return;
	}
	if (t->view_sent_bytes != a->wire_bytes ||
	    memcmp(t->view_sent, a->wire, a->wire_bytes) != 0)
		i->view_bytes = a->wire_bytes;
}

#define AGAIN 8 /* accesses for which a page is used, as far as is known */

/* What this member does, and which view it has. */
static void info_make(struct weft_file_all *a, struct weft_file_info *i)
{
	struct weft_file_op *op = a->op;
	struct weft_file_team *t = a->team;
	const struct weft_type *type = op->view->type;
	*i = (struct weft_file_info){
		.window = t->window, .call_ns = t->call_ns, .write = op->write};
	if (!a->failed && t->learned_number != a->view_number)
		wire_make(a);
	if (a->failed || !op->buf.bytes) {
		op->buf.bytes = 0;
		return;
	}
	for (int k = 0; k < 2; k++)
		i->ratio[k] = t->learned[op->write].way[k].usual;
	i->pos = op->pos;
	i->bytes = op->buf.bytes;
	i->lo = weft_file_view_offset(op->view, op->pos);
	i->hi = weft_file_view_offset(op->view, op->pos + op->buf.bytes - 1) + 1;
	i->odd = type && (op->view->goes_back ||
			  type->true_ub - type->true_lb > weft_data_type_extent(type));
	struct weft_file_range r[WEFT_FILE_OP_RANGES];
	unsigned n = WEFT_FILE_OP_RANGES;
	uint64_t held = weft_file_view_ranges(op->view, op->pos, op->buf.bytes, r, &n);
	i->ranges = held == op->buf.bytes ? n : op->buf.bytes / (held / n + 1) + 1;
	uint64_t once = 0;
	a->map_ns = i->map_ns = weft_file_op_map_ns(op, i->ranges, i->lo, i->hi, &once);
	if (2 * once > a->map_ns - once) /* nothing is learned from it of the next one */
		a->map_ns = 0;
	/* What is written again will be written more often: the first use of its pages pays. */
	if (i->map_ns && t->last_lo == i->lo && t->last_hi == i->hi)
		i->map_ns -= once - once / AGAIN;
	if (op->write) {
		t->last_lo = i->lo;
		t->last_hi = i->hi;
	}
}

static void learn_facts(struct weft_file_all *a, struct weft_file_facts *f, bool *odd_p)
{
	struct weft_file_team *t = a->team;
	uint64_t window = UINT64_MAX;
	bool mapped = true;
	*f = (struct weft_file_facts){
		.members = t->size, .aggregators = t->aggregators, .write = a->op->write};
	a->lo = UINT64_MAX;
	a->hi = 0;
	for (int r = 0; r < t->size; r++) {
		const struct weft_file_info *i = &t->info[r];
		window = i->window < window ? i->window : window;
		f->call_ns = i->call_ns > f->call_ns ? i->call_ns : f->call_ns;
		for (int k = 0; k < 2; k++)
			if (i->ratio[k] > f->ratio[k])
				f->ratio[k] = (uint32_t)i->ratio[k];
		if (!i->bytes)
			continue;
		a->lo = i->lo < a->lo ? i->lo : a->lo;
		a->hi = i->hi > a->hi ? i->hi : a->hi;
		f->bytes += i->bytes;
		mapped &= i->map_ns != 0;
		f->map_ns = i->map_ns > f->map_ns ? i->map_ns : f->map_ns;
		f->ranges += i->ranges;
		f->most_bytes = i->bytes > f->most_bytes ? i->bytes : f->most_bytes;
		f->most_ranges = i->ranges > f->most_ranges ? i->ranges : f->most_ranges;
		*odd_p |= i->odd != 0;
	}
	if (!mapped)
		f->map_ns = 0;
	f->span = a->hi > a->lo ? a->hi - a->lo : 0;
	f->window = a->window = window;
	a->domain_min = weft_file_strategy_domain(f->call_ns, f->write);
}

/* Each member has heard of all others. */
static void choose_way(struct weft_file_all *a)
{
	struct weft_file_team *t = a->team;
	struct weft_file_facts f;
	bool odd = false;
	int err = error_said(a);
	if (err) { /* what a member that is gone would do is not known to all */
		all_stopped(a, err);
		return;
	}
	learn_facts(a, &f, &odd);
	uint64_t cost[2] = {0, 0};
	a->strategy = odd ? WEFT_FILE_STRAIGHT : weft_file_strategy_choose(&f, cost);
	if (!odd && f.bytes && t->forced >= 0)
		a->strategy = (enum weft_file_strategy)t->forced;
	a->cost_ns = a->op->buf.bytes && !a->apart ? cost[a->strategy] : 0;
	a->begin_ns = weft_clock_ns();
	weft_count(a->strategy == WEFT_FILE_STRAIGHT ? WEFT_CNT_FILE_STRAIGHT
						     : WEFT_CNT_FILE_TWO_PHASE,
		   1);
	if (a->strategy == WEFT_FILE_STRAIGHT) {
		move_straight(a);
		return;
	}
	if (t->info[t->rank].view_bytes) {
		free(t->view_sent);
		t->view_sent = a->wire;
		t->view_sent_bytes = t->info[t->rank].view_bytes;
		a->wire = NULL;
	}
	views_exchange(a);
}

/* All parts went apart: need the next reads be told? */
static void agree_on_reads(struct weft_file_all *a)
{
	struct weft_file_team *t = a->team;
	bool alone = !a->op->write;
	for (int r = 0; r < t->size; r++)
		alone &= t->info[r].alone != 0;
	if (a->op->write)
		return;
	t->alone = alone ? t->alone_next : 0;
	t->strayed = false;
	t->alone_next = alone ? 4 * t->alone_next + 3 : ALONE_MIN;
	t->alone_next = t->alone_next < ALONE_MAX ? t->alone_next : ALONE_MAX;
}

/* All members have told, or are gone. */
static void info_told(struct weft_file_all *a)
{
	struct weft_file_team *t = a->team;
	bool here = true, done = true, same = true;
	for (int r = 0; r < t->size; r++) {
		t->info[r] = t->info_in[weft_file_team_place(t, r)];
		here &= t->info[r].window != 0; /* else it has not come from there */
		done &= t->info[r].done != 0;
		same &= t->info[r].write == a->op->write;
	}
	if (here && !same) { /* each member sees it */
		all_stopped(a, WEFT_FILE_MISMATCH);
		return;
	}
	if (!here)
		weft_file_all_fail(a, EOWNERDEAD, 0);
	if (!here || !done) {
		tell_verdict(a, TAG_CONFIRM, choose_way);
		return;
	}
	agree_on_reads(a);
	/* No member has anything to move together: each has said how its own part went. */
	a->strategy = WEFT_FILE_STRAIGHT;
	a->cost_ns = 0;
	weft_count(WEFT_CNT_FILE_STRAIGHT, 1);
	/* A read fails alone. */
	for (int i = 0; i < t->size; i++)
		t->verdict[i] = (struct weft_file_verdict){a->op->write ? t->info_in[i].err : 0,
							   t->info_in[i].at, 1};
	judge_access(a);
}

/* Where threads wait for the access, they tell each other without messages. */
static void tell_info(struct weft_file_all *a)
{
	if (a->waits) {
		a->tells = true;
		weft_wait_completion_signal(&a->turn);
		return;
	}
	weft_file_tell(a, TAG_INFO, a->team->info_in, sizeof *a->team->info_in, info_told);
}

static void tell_info_waiting(struct weft_file_all *a)
{
	if (weft_file_tell_waiting(a))
		info_told(a);
	else
		weft_file_tell(a, TAG_INFO, a->team->info_in, sizeof *a->team->info_in, info_told);
}

/* ---- apart -------------------------------------------------------------------------------- */

/* The own part is over: this member has nothing to move together with others. */
static void apart_over(struct weft_file_all *a)
{
	struct weft_file_team *t = a->team;
	const struct weft_file_op *op = a->op;
	struct weft_file_info *own = &t->info_in[0];
	if (a->map_ns)
		weft_file_strategy_learn_map(&t->learned[op->write].map, a->map_ns,
					     weft_clock_ns() - a->begin_ns);
	if (a->alone) {
		weft_count(WEFT_CNT_FILE_STRAIGHT, 1);
		all_over(a);
		return;
	}
	own->err = op->err;
	if (op->err)
		own->at = weft_file_view_offset(op->view, op->pos + op->bytes);
	tell_info(a);
}

static void apart_op_over(struct weft_file_op *op)
{
	apart_over(op->arg);
}

/* Does the own part cost less straight than to give it to an aggregator? */
static bool goes_apart(struct weft_file_all *a, const struct weft_file_info *i)
{
	struct weft_file_team *t = a->team;
	if (t->forced >= 0 || !i->bytes)
		return false;
	if (t->local && (i->ranges <= 1 || i->bytes / i->ranges >= LONG_RANGE))
		return true;
	return i->map_ns &&
	       weft_file_strategy_apart(&t->learned[a->op->write], i->map_ns, i->bytes, i->ranges);
}

/* Is the access a read that all members have agreed to make by themselves? */
static bool takes_alone(struct weft_file_all *a)
{
	struct weft_file_team *t = a->team;
	if (t->alone_view != a->view_number) {
		t->alone_view = a->view_number;
		t->alone = 0;
		t->alone_next = ALONE_MIN;
	}
	bool alone = !a->op->write && t->alone;
	t->alone -= alone;
	/* A member that waits for this one, since it is in another call, is to hear that. */
	weft_coll_call_is(t->ctx, a->tag,
			  alone      ? WEFT_COLL_FILE_ALONE
			  : a->waits ? WEFT_COLL_FILE_WAITS
				     : WEFT_COLL_FILE_TOLD);
	return alone;
}

static void all_begin(struct weft_file_all *a)
{
	struct weft_file_team *t = a->team;
	struct weft_file_info *own = &t->info_in[0];
	memset(t->info_in, 0, (size_t)t->size * sizeof *t->info_in);
	info_make(a, own);
	a->apart = goes_apart(a, own);
	if (!a->apart)
		view_to_send(a, own);
	own->refused = a->failed != 0;
	a->alone = takes_alone(a);
	if (a->alone && a->failed) {
		all_stopped(a, a->failed);
		return;
	}
	t->strayed |= a->alone && !a->apart && own->bytes;
	a->apart |= a->alone;
	if (a->apart)
		*own = (struct weft_file_info){
			.window = own->window, .call_ns = own->call_ns, .write = own->write};
	own->done = !own->bytes && !own->refused;
	own->alone = t->forced < 0 && !t->strayed;
	if (!a->apart) {
		tell_info(a);
		return;
	}
	a->begin_ns = weft_clock_ns();
	move_own_part(a, apart_op_over, apart_over);
}

void weft_file_all_start(struct weft_file_all *a)
{
	struct weft_file_team *t = a->team;
	a->next = NULL;
	a->err = 0;
	a->err_at = 0;
	a->end = UINT64_MAX;
	a->yours = a->tells = false;
	a->moved = all_moved;
	a->wire = NULL;
	a->op->err = 0;
	a->op->bytes = 0;
	pthread_mutex_init(&a->lock, NULL);
	weft_wait_completion_init(&a->turn);
	pthread_mutex_lock(&t->lock);
	bool runs = !t->first;
	*t->last = a;
	t->last = &a->next;
	pthread_mutex_unlock(&t->lock);
	if (runs)
		all_begin(a);
}

void weft_file_all_run(struct weft_file_all *a)
{
	a->waits = true;
	a->lends = !weft_wait_parker_is_light(weft_wait_parker_self());
	a->call = NULL;
	a->caller = pthread_self();
	a->fn = NULL;
	weft_file_all_start(a);
	for (;;) { /* ends: the access does */
		weft_task_engine_wait(&a->turn);
		struct weft_file_io *io = a->call;
		if (!io && !a->yours && !a->tells)
			return;
		weft_wait_completion_init(&a->turn);
		if (io) {
			a->call = NULL;
			weft_file_io_now(io);
			io->fn(io);
			continue;
		}
		if (a->tells) {
			a->tells = false;
			tell_info_waiting(a);
			continue;
		}
		a->yours = false;
		weft_file_op_run(a->op);
		if (a->apart)
			apart_over(a);
		else
			all_moved(a);
	}
}
