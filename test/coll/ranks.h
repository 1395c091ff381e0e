/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ranks.h - for test_schedule.c: many ranks in one process, and the network between them.
 *
 * It delivers in random order (but in order between two ranks with one tag), and completes sends at
 * random: now, soon, or at the match.  Tasks run later, at random too.
 */
#ifndef WEFT_TEST_COLL_RANKS_H
#define WEFT_TEST_COLL_RANKS_H

#include <string.h>

#include "base/base.h"
#include "check.h"
#include "coll/coll.h"
#include "task/queue/weft_task.h"

/* ---- the network -------------------------------------------------------------------------- */

#define MAX_RANKS 40

struct weft_ctx {
	int rank;
};

struct packet {
	struct packet *next;
	int from, to, tag;
	size_t len;
	struct weft_req *req; /* completes when delivered; NULL: completed already */
	char data[];
};

struct posted {
	struct posted *next;
	int from, to, tag;
	struct weft_req *req;
	struct weft_buf buf;
};

static struct packet *packets; /* in order of sending */
static struct posted *receives;
static uint64_t seed;
static int fail_rank = -1; /* its messages all fail */

static uint64_t rnd(uint64_t n)
{
	return weft_rand_next(&seed) % n;
}

static void complete(struct weft_req *req, weft_err err, size_t bytes)
{
	req->status = (struct weft_status){.err = err, .bytes = bytes};
	req->then(req, req->then_arg);
}

static void push(struct weft_ctx *ctx, int peer, int tag, const struct weft_buf *buf,
		 struct weft_req *req)
{
	struct packet *p = malloc(sizeof *p + buf->bytes);
	*p = (struct packet){
		.from = ctx->rank, .to = peer, .tag = tag, .len = buf->bytes, .req = req};
	weft_data_pack(buf, 0, p->data, buf->bytes);
	struct packet **end = &packets;
	while (*end)
		end = &(*end)->next;
	*end = p;
}

weft_err weft_comm_send_now(struct weft_ctx *ctx, int peer, int tag, const struct weft_buf *buf)
{
	if (rnd(2))
		return WEFT_AGAIN;
	if (ctx->rank == fail_rank)
		return WEFT_ERR_PEER;
	push(ctx, peer, tag, buf, NULL);
	return WEFT_OK;
}

weft_err weft_comm_core_isend(struct weft_req *req, struct weft_ctx *ctx, int peer, int tag,
			      const struct weft_buf *buf, enum weft_send_mode mode)
{
	bool soon = rnd(2);
	if (ctx->rank == fail_rank)
		return WEFT_ERR_PEER;
	push(ctx, peer, tag, buf, soon ? NULL : req);
	if (soon)
		complete(req, WEFT_OK, buf->bytes);
	return WEFT_OK;
}

weft_err weft_comm_core_irecv(struct weft_req *req, struct weft_ctx *ctx, int peer, int tag,
			      const struct weft_buf *buf)
{
	struct posted *p = malloc(sizeof *p);
	*p = (struct posted){.from = peer, .to = ctx->rank, .tag = tag, .req = req, .buf = *buf};
	struct posted **end = &receives;
	while (*end)
		end = &(*end)->next;
	*end = p;
	return WEFT_OK;
}

/* ---- tasks: run later, in no handler ---- */

static struct weft_task *tasks[MAX_RANKS * 4];
static size_t tasks_n, tasks_run;

void weft_task_init(struct weft_task *t, const char *name,
		    enum weft_task_verdict (*fn)(struct weft_task *t, void *arg), void *arg,
		    unsigned options)
{
	*t = (struct weft_task){.fn = fn, .arg = arg, .name = name, .options = options};
}

bool weft_task_submit(struct weft_task *t)
{
	CHECK(tasks_n < weft_countof(tasks));
	for (size_t i = 0; i < tasks_n; i++)
		CHECK(tasks[i] != t);
	tasks[tasks_n++] = t;
	return true;
}

static void run_task(void)
{
	if (!tasks_n)
		return;
	size_t i = rnd(tasks_n);
	struct weft_task *t = tasks[i];
	tasks[i] = tasks[--tasks_n];
	tasks_run++;
	CHECK_EQ(t->fn(t, t->arg), WEFT_TASK_GONE);
}

int weft_comm_size(void)
{
	return 1;
}

/* No member asks another: none waits. */
bool weft_comm_ctx_peer_down(const struct weft_ctx *ctx, int peer)
{
	(void)ctx;
	(void)peer;
	return false;
}

struct weft_comm_ear *weft_comm_ctx_ear(const struct weft_ctx *ctx)
{
	(void)ctx;
	return NULL;
}

struct weft_comm_ear *weft_comm_ctx_set_ear(struct weft_ctx *ctx, struct weft_comm_ear *ear)
{
	(void)ctx;
	return ear;
}

void weft_comm_ctx_end(struct weft_ctx *ctx, const struct weft_comm_tags *tags)
{
	(void)ctx;
	(void)tags;
}

uint32_t weft_comm_ctx_id(const struct weft_ctx *ctx)
{
	return (uint32_t)ctx->rank;
}

void weft_comm_ctx_name(struct weft_ctx *ctx, char *text, size_t size)
{
	(void)ctx, (void)size;
	text[0] = 0;
}

struct weft_core *weft_comm_ctx_core(const struct weft_ctx *ctx)
{
	(void)ctx;
	return NULL;
}

bool weft_comm_can_read(struct weft_core *core, int peer)
{
	(void)core;
	(void)peer;
	return false;
}

weft_err weft_comm_read(struct weft_core *core, int peer, uint64_t from, void *to, size_t len)
{
	(void)core;
	(void)peer;
	(void)from;
	(void)to;
	(void)len;
	return WEFT_ERR_UNSUPPORTED;
}

bool weft_comm_same_host(const struct weft_core *core, int peer)
{
	(void)core;
	(void)peer;
	return true;
}

static struct posted **find_posted(int from, int to, int tag)
{
	for (struct posted **p = &receives; *p; p = &(*p)->next)
		if ((*p)->from == from && (*p)->to == to && (*p)->tag == tag)
			return p;
	return NULL;
}

/* Is it the first of its kind, and is there a receive for it? */
static struct posted **deliverable(struct packet *k)
{
	for (struct packet *e = packets; e != k; e = e->next)
		if (e->from == k->from && e->to == k->to && e->tag == k->tag)
			return NULL;
	return find_posted(k->from, k->to, k->tag);
}

/* Delivers one message; false: there is none. */
static bool deliver(void)
{
	size_t n = 0;
	for (struct packet *k = packets; k; k = k->next)
		n++;
	if (!n)
		return false;
	size_t start = rnd(n);
	for (size_t i = 0; i < n; i++) {
		struct packet **kp = &packets;
		for (size_t j = (start + i) % n; j; j--)
			kp = &(*kp)->next;
		struct packet *k = *kp;
		struct posted **pp = deliverable(k);
		if (!pp)
			continue;
		struct posted *p = *pp;
		*kp = k->next;
		*pp = p->next;
		size_t len = k->len < p->buf.bytes ? k->len : p->buf.bytes;
		weft_data_unpack(&p->buf, 0, k->data, len);
		weft_err err = k->len > p->buf.bytes ? WEFT_ERR_TRUNC : WEFT_OK;
		bool sender_first = rnd(2);
		if (sender_first && k->req)
			complete(k->req, WEFT_OK, k->len);
		complete(p->req, err, len);
		if (!sender_first && k->req)
			complete(k->req, WEFT_OK, k->len);
		free(k);
		free(p);
		return true;
	}
	return false;
}

/* ---- running all ranks -------------------------------------------------------------------- */

static struct weft_ctx ctxs[MAX_RANKS];
static struct weft_coll *colls[MAX_RANKS];
static int calls_in_advance;
static bool may_call_user;

static void run_all(int n)
{
	bool left = true;
	int started = 0;
	while (left) {
		if (started < n && rnd(2)) {
			may_call_user = true;
			weft_coll_start(colls[started++]);
			may_call_user = false;
		}
		bool moved = tasks_n > 0;
		if (rnd(2))
			run_task();
		moved = deliver() || moved;
		left = started < n;
		for (int r = 0; r < started; r++) {
			may_call_user = true;
			bool over = weft_coll_advance(colls[r]);
			may_call_user = false;
			left = left || !over;
		}
		/* Without a message under way and nothing started, no schedule would ever finish. */
		if (!moved && started == n && left) {
			bool any = false;
			for (int r = 0; r < n; r++)
				any = any || weft_wait_completion_done(weft_coll_wait_on(colls[r]));
			CHECK(any || packets || tasks_n);
		}
	}
	CHECK(!packets && !receives);
}

#endif
