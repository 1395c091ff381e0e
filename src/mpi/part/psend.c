/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * psend.c - the sending side of partitioned communication.
 *
 * MPI_Pready sets a bit.  The thread that sets the first of a word, or has made enough data ready,
 * sees to it that the holder of a mask posts what is ready: itself, or a task that the next poller runs.
 */
#include "mpi/part/part.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/backoff.h"
#include "mpi/error.h"
#include "mpi/p2p/request.h"
#include "queue/mask.h"
#include "queue/ready_bits.h"
#include "task/task.h"

#define SLOTS 8u          /* DATA messages under way at once */
#define PROMPT_BYTES 4096 /* that much ready data is posted at once, not left to a task */

struct psend;

/* A DATA message that is under way. */
struct slot {
	struct weft_req req;
	struct psend *p;
};

struct psend {
	struct weft_mpi_part s; /* first */
	struct weft_ready_bits ready;
	void *ready_room; /* I */
	/* So many neighbours are worth a post: a power of two up to a word, or some whole words. */
	uint32_t prompt, prompt_words;

	alignas(WEFT_CACHELINE) struct weft_mask mask;
	_Atomic bool x_go;        /* the receiver has started this round */
	_Atomic uint32_t x_slots; /* a bit for each free one */
	/* Under the mask: */
	struct weft_mpi_part_go go;
	uint32_t run_max; /* partitions of a run */
	uint32_t posted;  /* partitions */
	bool closed;      /* all are posted, or the round has failed */
	uint32_t items, staged;
	struct weft_mpi_part_item item[WEFT_MPI_PART_ITEMS];
	char *stage; /* I: room for a HEAD, and its data behind that */

	struct slot *slot; /* I */
	struct weft_req go_req;
	struct weft_task task;
};

static struct psend *psend_of(struct weft_mpi_part *s)
{
	return (struct psend *)(void *)s;
}

static enum weft_task_verdict run_task(struct weft_task *t, void *arg);

static bool psend_make(struct weft_mpi_part *s)
{
	struct psend *p = psend_of(s);

	p->ready_room = malloc(weft_ready_bits_bytes(s->most));
	p->stage = malloc(WEFT_MPI_PART_HEAD_MAX + WEFT_MPI_PART_INLINE);
	p->slot = calloc(SLOTS, sizeof(*p->slot));
	if (!p->ready_room || !p->stage || !p->slot) {
		free(p->ready_room);
		free(p->stage);
		free(p->slot);
		return false;
	}
	weft_ready_bits_init(&p->ready, s->most, p->ready_room);
	weft_mask_init(&p->mask);
	for (uint32_t i = 0; i < SLOTS; i++)
		p->slot[i].p = p;
	atomic_store_explicit(&p->x_slots, (1u << SLOTS) - 1, memory_order_relaxed);
	weft_task_init(&p->task, "partitions", run_task, p, 0);
	return true;
}

static void psend_unmake(struct weft_mpi_part *s)
{
	struct psend *p = psend_of(s);

	/* A thread that was late out of MPI_Pready may have submitted it. */
	(void)weft_task_cancel_wait(&p->task);
	free(p->ready_room);
	free(p->stage);
	free(p->slot);
}

static struct weft_mpi_part_pool pool = {
	.bytes = sizeof(struct psend), .make = psend_make, .unmake = psend_unmake};

void weft_mpi_psends_fini(void)
{
	weft_mpi_part_pool_empty(&pool);
}

/* ---- messages ----------------------------------------------------------------------------- */

/* Sends the HEAD of what is staged. */
static void flush_locked(struct psend *p, bool follows)
{
	weft_assert_held(weft_mask, &p->mask);
	size_t len = sizeof(struct weft_mpi_part_head) + p->items * sizeof(p->item[0]);
	char *at = p->stage + WEFT_MPI_PART_HEAD_MAX - len;
	struct weft_mpi_part_head head = {.items = p->items, .follows = follows};

	if (!p->items)
		return;
	memcpy(at, &head, sizeof(head));
	memcpy(at + sizeof(head), p->item, p->items * sizeof(p->item[0]));
	len += p->staged;
	p->items = p->staged = 0;
	weft_err err = weft_mpi_part_send(&p->s, p->go.chan, at, len);
	if (err)
		weft_mpi_part_fail(&p->s, err);
}

static void stage_locked(struct psend *p, uint32_t first, uint32_t n, size_t bytes)
{
	weft_assert_held(weft_mask, &p->mask);
	if (p->items == WEFT_MPI_PART_ITEMS || p->staged + bytes > WEFT_MPI_PART_INLINE)
		flush_locked(p, false);
	struct weft_buf run = weft_mpi_part_run(&p->s.d, first, n);
	weft_data_pack(&run, 0, p->stage + WEFT_MPI_PART_HEAD_MAX + p->staged, bytes);
	p->item[p->items++] = (struct weft_mpi_part_item){.first = first, .n = n};
	p->staged += (uint32_t)bytes;
}

static void pump_ready(struct psend *p);

static void data_over(struct weft_req *req, void *arg)
{
	struct slot *slot = arg;
	struct psend *p = slot->p;

	if (req->status.err)
		weft_mpi_part_fail(&p->s, req->status.err);
	/* Release: the core is done with the request, partner TAKEN in post_large_locked. */
	atomic_fetch_or_explicit(&p->x_slots, 1u << (slot - p->slot), memory_order_release);
	pump_ready(p);
	weft_mpi_part_drop(&p->s);
}

/* A run with a message of its own; a slot is free. */
static void post_large_locked(struct psend *p, uint32_t first, uint32_t n)
{
	weft_assert_held(weft_mask, &p->mask);
	/* TAKEN <- FREED (data_over): see there. */
	uint32_t i =
		(uint32_t)__builtin_ctz(atomic_load_explicit(&p->x_slots, memory_order_acquire));
	struct slot *slot = &p->slot[i];
	struct weft_buf run = weft_mpi_part_run(&p->s.d, first, n);

	flush_locked(p, false);
	p->item[p->items++] = (struct weft_mpi_part_item){.first = first, .n = n};
	flush_locked(p, true);
	if (weft_mpi_part_failed(&p->s))
		return;
	/* Relaxed: holders alone take slots. */
	atomic_fetch_and_explicit(&p->x_slots, ~(1u << i), memory_order_relaxed);
	weft_comm_req_init(&slot->req, data_over, slot);
	weft_mpi_part_add(&p->s);
	weft_err err =
		weft_comm_core_isend(&slot->req, p->s.ctx, p->s.peer,
				     weft_mpi_part_tag_data(p->go.chan), &run, WEFT_SEND_STANDARD);
	if (err) {
		weft_mpi_part_fail(&p->s, err);
		atomic_fetch_or_explicit(&p->x_slots, 1u << i, memory_order_relaxed);
		weft_mpi_part_drop(&p->s);
	}
}

/* ---- the pump ----------------------------------------------------------------------------- */

static void post_locked(struct psend *p)
{
	weft_assert_held(weft_mask, &p->mask);
	struct weft_mpi_part *s = &p->s;
	uint32_t first, n;

	weft_ready_bits_gather(&p->ready);
	/* Ends: each round takes a run out.  Acquire: as TAKEN. */
	while (!weft_mpi_part_failed(s) &&
	       atomic_load_explicit(&p->x_slots, memory_order_acquire) &&
	       (n = weft_ready_bits_run(&p->ready, p->run_max, &first))) {
		size_t bytes = n * s->d.bytes;
		if (bytes > WEFT_MPI_PART_INLINE)
			post_large_locked(p, first, n);
		else
			stage_locked(p, first, n, bytes);
		p->posted += n;
	}
	flush_locked(p, false);
	if (p->posted == s->d.parts || weft_mpi_part_failed(s)) {
		p->closed = true;
		weft_mpi_part_drop(s);
	}
}

/* Posts what is ready, or leaves it to the thread that is doing so. */
static void pump_ready(struct psend *p)
{
	if (!weft_mask_try(&p->mask))
		return;
	do
		/* SEEN <- GO (go_comes).  Carries: the receiver's number. */
		if (atomic_load_explicit(&p->x_go, memory_order_acquire) && !p->closed)
			post_locked(p);
	while (!weft_mask_done(&p->mask));
}

static enum weft_task_verdict run_task(struct weft_task *t, void *arg)
{
	(void)t;
	pump_ready(arg);
	return WEFT_TASK_DONE;
}

/* ---- rounds ------------------------------------------------------------------------------- */

static void go_comes(struct weft_req *req, void *arg);

static weft_err go_await(struct psend *p)
{
	struct weft_buf buf = weft_data_buf_flat(&p->go, sizeof(p->go));

	weft_comm_req_init(&p->go_req, go_comes, p);
	return weft_comm_core_irecv(&p->go_req, p->s.ctx, p->s.peer, weft_mpi_part_tag(p->s.chan),
				    &buf);
}

static void go_comes(struct weft_req *req, void *arg)
{
	struct psend *p = arg;
	weft_err err = req->status.err;

	if (!err && p->go.serial != p->s.serial) { /* for a side that was freed before this one */
		err = go_await(p);
		if (!err)
			return;
	}
	if (!err)
		err = p->go.err;
	if (err)
		weft_mpi_part_fail(&p->s, err);
	/* GO -> SEEN (pump).  Carries: p->go.  Without it a run could go to a number of no side. */
	atomic_store_explicit(&p->x_go, true, memory_order_release);
	pump_ready(p);
}

static int psend_start(struct weft_mpi_request *r)
{
	struct psend *p = r->impl;
	unsigned turns = 0;

	weft_mpi_part_open(&p->s);
	/* Ends: a holder is a thread that finds nothing to post. */
	while (!weft_mask_try(&p->mask))
		weft_backoff(&turns);
	atomic_store_explicit(&p->x_go, false, memory_order_relaxed);
	weft_ready_bits_reset(&p->ready, p->s.d.parts);
	p->posted = p->items = p->staged = 0;
	p->closed = p->s.peer < 0;
	while (!weft_mask_done(&p->mask)) /* ends: nothing is posted before the receiver says so */
		;
	if (p->s.peer < 0) {
		weft_mpi_part_drop(&p->s);
		return MPI_SUCCESS;
	}
	weft_err err = go_await(p);
	if (err)
		return weft_mpi_err_peer(err, p->s.peer);
	weft_task_engine_pending();
	return MPI_SUCCESS;
}

static int psend_finish(struct weft_mpi_request *r, MPI_Status *st)
{
	struct psend *p = r->impl;

	weft_mpi_status_set(st, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, false);
	return weft_mpi_part_result(&p->s);
}

static void psend_free(struct weft_mpi_request *r)
{
	struct psend *p = r->impl;

	/* It may still be queued for a round that is over; the engine must let go of it. */
	(void)weft_task_cancel_wait(&p->task);
	weft_mpi_part_unref(&pool, &p->s);
}

static const struct weft_mpi_request_ops psend_ops = {
	.name = "partitioned send",
	.wait_on = weft_mpi_part_wait_on,
	.finish = psend_finish,
	.start = psend_start,
	.free = psend_free,
};

static void match_sent(struct weft_req *req, void *arg)
{
	/* A lost peer shows at the start, which waits for a message of its. */
	(void)req;
	weft_mpi_part_unref(&pool, arg);
}

/* How much of what is ready is posted by the thread that made it so. */
static void prompt_set(struct psend *p)
{
	size_t bytes = p->s.d.bytes ? p->s.d.bytes : 1;
	uint32_t n = 1;

	while (n < WEFT_READY_WORD && n * bytes < PROMPT_BYTES)
		n *= 2;
	p->prompt = n;
	p->prompt_words = 1;
	if (n == WEFT_READY_WORD)
		p->prompt_words = (uint32_t)(PROMPT_BYTES / (n * bytes));
	if (!p->prompt_words)
		p->prompt_words = 1;
	size_t run = WEFT_MPI_PART_RUN / bytes;
	p->run_max = run ? (uint32_t)run : 1;
}

int weft_mpi_Psend_init(const void *buf, int partitions, MPI_Count count, MPI_Datatype datatype,
			int dest, int tag, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	struct weft_mpi_part_args a = {.buf = buf,
				       .partitions = partitions,
				       .count = count,
				       .type = datatype,
				       .rank = dest,
				       .tag = tag,
				       .comm = weft_mpi_comm_of(comm)};
	struct weft_mpi_part *s;
	struct weft_mpi_request *r;

	(void)info; /* no key means anything */
	int err = weft_mpi_part_make(&pool, &a, &psend_ops, &s, &r);
	if (err)
		return err;
	prompt_set(psend_of(s));
	if (s->peer >= 0) {
		s->match = (struct weft_mpi_part_match){.chan = s->chan,
							.serial = s->serial,
							.parts = s->d.parts,
							.sign = s->sign,
							.part_bytes = s->d.bytes};
		struct weft_buf msg = weft_data_buf_flat(&s->match, sizeof(s->match));
		weft_comm_req_init(&s->match_req, match_sent, s);
		weft_err core = weft_comm_core_isend(&s->match_req, s->match_ctx, s->peer, tag,
						     &msg, WEFT_SEND_STANDARD);
		if (core) {
			err = weft_mpi_err_peer(core, s->peer);
			weft_mpi_part_unref(&pool, s);
			weft_mpi_request_delete(r);
			return err;
		}
	}
	*request = weft_mpi_request_handle(r);
	return MPI_SUCCESS;
}

/* ---- partitions become ready -------------------------------------------------------------- */

static int psend_named(MPI_Request request, struct weft_mpi_request **r_p)
{
	struct weft_mpi_request *r;
	int err = weft_mpi_request_named(request, &r);

	if (err)
		return err;
	if (r->ops != &psend_ops)
		err = weft_mpi_err(MPI_ERR_REQUEST, "not a partitioned send: it is a %s request",
				   r->ops->name);
	else if (!r->active)
		err = weft_mpi_err(
			MPI_ERR_REQUEST,
			"the request is not active: start it before a partition is ready");
	if (err)
		weft_mpi_blame(r->comm);
	*r_p = r;
	return err;
}

static int bad_partition(struct weft_mpi_request *r, int64_t partition)
{
	weft_mpi_blame(r->comm);
	return weft_mpi_err(MPI_ERR_ARG, "invalid partition %lld (the request has %u)",
			    (long long)partition, ((struct psend *)r->impl)->s.d.parts);
}

static int ready_twice(struct weft_mpi_request *r)
{
	weft_mpi_blame(r->comm);
	return weft_mpi_err(MPI_ERR_ARG, "a partition was ready before in this round");
}

/* Is there enough around `item` for a post? */
static inline bool enough_credit(const struct psend *p, uint32_t item, uint64_t after)
{
	uint32_t word = item / WEFT_READY_WORD, bit = item % WEFT_READY_WORD;
	uint64_t full = weft_ready_full(&p->ready, word);

	if (p->prompt < WEFT_READY_WORD) {
		uint64_t group = ((UINT64_C(1) << p->prompt) - 1) << (bit & ~(p->prompt - 1));
		return !(~after & group & full);
	}
	return after == full && ((word + 1) % p->prompt_words == 0 || word + 1 == p->ready.words);
}

static void tell_ready(struct psend *p, enum weft_ready what, bool post)
{
	if (p->s.peer < 0)
		return;
	if (post)
		pump_ready(p);
	else if (what == WEFT_READY_FIRST)
		(void)weft_task_submit_later(&p->task);
}

int weft_mpi_Pready(int partition, MPI_Request request)
{
	struct weft_mpi_request *r = (struct weft_mpi_request *)weft_mpi_object_find_dynamic(
		(uint64_t)(uintptr_t)request, WEFT_MPI_REQUEST);
	uint64_t after;

	if (weft_unlikely(!r || r->ops != &psend_ops || !r->active))
		return psend_named(request, &r);
	struct psend *p = r->impl;
	if (weft_unlikely((uint32_t)partition >= p->s.d.parts))
		return bad_partition(r, partition);
	enum weft_ready what = weft_ready_bits_set(&p->ready, (uint32_t)partition, &after);
	if (weft_unlikely(what == WEFT_READY_TWICE))
		return ready_twice(r);
	bool post = enough_credit(p, (uint32_t)partition, after);
	if (weft_unlikely(post || what == WEFT_READY_FIRST))
		tell_ready(p, what, post);
	return MPI_SUCCESS;
}

int weft_mpi_Pready_range(int partition_low, int partition_high, MPI_Request request)
{
	struct weft_mpi_request *r;
	uint64_t after = 0;
	int err = psend_named(request, &r);

	if (err)
		return err;
	struct psend *p = r->impl;
	if (partition_low < 0 || (uint32_t)partition_low >= p->s.d.parts)
		return bad_partition(r, partition_low);
	if ((uint32_t)partition_high >= p->s.d.parts)
		return bad_partition(r, partition_high);
	if (partition_low > partition_high) {
		weft_mpi_blame(r->comm);
		return weft_mpi_err(MPI_ERR_ARG, "the first partition, %d, is beyond the last, %d",
				    partition_low, partition_high);
	}
	uint32_t low = (uint32_t)partition_low, high = (uint32_t)partition_high;
	bool twice = false;
	for (uint32_t w = low / WEFT_READY_WORD; w <= high / WEFT_READY_WORD; w++) {
		uint64_t bits = ~UINT64_C(0);
		if (w == low / WEFT_READY_WORD)
			bits &= ~UINT64_C(0) << low % WEFT_READY_WORD;
		if (w == high / WEFT_READY_WORD)
			bits &= ~UINT64_C(0) >> (WEFT_READY_WORD - 1 - high % WEFT_READY_WORD);
		twice |= weft_ready_bits_set_mask(&p->ready, w, bits, &after) == WEFT_READY_TWICE;
	}
	bool post =
		(high - low + 1) * p->s.d.bytes >= PROMPT_BYTES || enough_credit(p, high, after);
	tell_ready(p, WEFT_READY_FIRST, post);
	return twice ? ready_twice(r) : MPI_SUCCESS;
}

int weft_mpi_Pready_list(int length, const int array_of_partitions[], MPI_Request request)
{
	struct weft_mpi_request *r;
	int err = psend_named(request, &r);

	if (err)
		return err;
	if (length < 0 || (length && !array_of_partitions)) {
		weft_mpi_blame(r->comm);
		return length < 0
			       ? weft_mpi_err(MPI_ERR_ARG, "length is negative (%d)", length)
			       : weft_mpi_err(MPI_ERR_ARG, "array_of_partitions is a null pointer");
	}
	struct psend *p = r->impl;
	for (int i = 0; i < length; i++)
		if ((uint32_t)array_of_partitions[i] >= p->s.d.parts)
			return bad_partition(r, array_of_partitions[i]);
	for (int i = 0; i < length && !err; i++)
		err = weft_mpi_Pready(array_of_partitions[i], request);
	return err;
}
