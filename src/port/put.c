/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * put.c - accesses to regions: an active message tells the target what is wanted, and an answer says that it
 * is over.  Little data of a put go with that message; more go as an ordinary message straight between the two
 * buffers (large ones: one copy).
 *
 *   put, small   origin: ACCESS and data     target: copies, then ACK
 *   put          origin: ACCESS, DATA        target: takes DATA into the region, then ACK
 *   get          origin: ACCESS              target: DATA from the region, ACK
 *   atomics      origin: ACCESS              target: the processor's atomic, ACK with what was there
 *
 * The target checks key, offset and length; if they are wrong nothing of its memory is touched.  It alone
 * changes its memory, so its own atomics and those of its peers are whole against each other.
 */
#include "port/put.h"
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "port/am.h"
#include "port/region.h"
#include "port/sleep.h"

enum kind { PUT, GET, ADD, SWAP, COMPARE_SWAP, KINDS };

#define NO_NOTE UINT32_MAX
#define SMALL 1024 /* bytes of a put that go with its active message */

struct access {
	uint64_t key, offset, bytes;
	uint64_t value, compare;
	uint32_t tag, kind, note, with_data;
};

struct answer {
	int32_t verdict;
	uint32_t reserved;
	uint64_t old;
};

_Static_assert(sizeof(struct access) + SMALL <= WEFT_COMM_AM_MAX, "a small put is one message");

static bool is_atomic(uint32_t kind)
{
	return kind >= ADD;
}

/* ---- the target --------------------------------------------------------------------------- */

struct served {
	struct weft_req data, ack;
	_Atomic int x_left;
	int peer, tag;
	uint64_t key;
	uint32_t note;
	struct answer answer; /* what the ACK carries */
};

static void served_drop(struct served *s)
{
	/* Acquire and release: the last reference frees what the other has used. */
	if (atomic_fetch_sub_explicit(&s->x_left, 1, memory_order_acq_rel) == 1)
		free(s);
}

static void ack_sent(struct weft_req *req, void *arg)
{
	(void)req;
	served_drop(arg);
}

static void send_ack(struct served *s)
{
	struct weft_buf b = weft_data_buf_flat(&s->answer, sizeof s->answer);
	weft_comm_req_init(&s->ack, ack_sent, s);
	if (weft_comm_core_isend(&s->ack, weft_port_ctx[WEFT_PORT_ACK], s->peer, s->tag, &b,
				 WEFT_SEND_STANDARD))
		served_drop(s); /* the peer is gone */
}

/* The data lie there, or the verdict says why not. */
static void put_over(struct served *s)
{
	if (!s->answer.verdict && s->note < WEFT_COMM_NOTES)
		weft_port_region_note(s->key, s->note);
	send_ack(s);
}

static void put_landed(struct weft_req *req, void *arg)
{
	struct served *s = arg;
	if (!s->answer.verdict && req->status.err)
		s->answer.verdict = req->status.err;
	put_over(s);
	served_drop(s);
}

static void get_left(struct weft_req *req, void *arg)
{
	(void)req;
	served_drop(arg);
}

/* seq_cst: the one order of all atomics on the region, the target's own included. */
static uint64_t atomic_of(const struct access *a, void *at)
{
	uint32_t was4 = (uint32_t)a->compare, value4 = (uint32_t)a->value;
	uint64_t was = a->compare;
	switch (a->kind) {
	case ADD:
		return a->bytes == 4
			       ? __atomic_fetch_add((uint32_t *)at, value4, __ATOMIC_SEQ_CST)
			       : __atomic_fetch_add((uint64_t *)at, a->value, __ATOMIC_SEQ_CST);
	case SWAP:
		return a->bytes == 4
			       ? __atomic_exchange_n((uint32_t *)at, value4, __ATOMIC_SEQ_CST)
			       : __atomic_exchange_n((uint64_t *)at, a->value, __ATOMIC_SEQ_CST);
	default:
		if (a->bytes == 4) {
			__atomic_compare_exchange_n((uint32_t *)at, &was4, value4, false,
						    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
			return was4;
		}
		__atomic_compare_exchange_n((uint64_t *)at, &was, a->value, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST);
		return was;
	}
}

/* May it be done?  *at_p: where, else NULL. */
static bool place_of(const struct access *a, char **at_p)
{
	bool inside = weft_port_region_at(a->key, a->offset, a->bytes, at_p);
	bool whole = (a->bytes == 4 || a->bytes == 8) && (uintptr_t)*at_p % a->bytes == 0;
	if (inside && (whole || !is_atomic(a->kind)))
		return true;
	*at_p = NULL;
	return false;
}

/* Data of their own follow, or leave. */
static void serve_apart(struct served *s, const struct access *a, char *at)
{
	struct weft_ctx *ctx = weft_port_ctx[WEFT_PORT_DATA];
	struct weft_buf b = weft_data_buf_flat(at, s->answer.verdict ? 0 : a->bytes);
	weft_err err;
	atomic_store_explicit(&s->x_left, 2, memory_order_relaxed);
	if (a->kind == PUT) {
		weft_comm_req_init(&s->data, put_landed, s);
		err = weft_comm_core_irecv(&s->data, ctx, s->peer, s->tag, &b);
	} else {
		weft_comm_req_init(&s->data, get_left, s);
		err = weft_comm_core_isend(&s->data, ctx, s->peer, s->tag, &b, WEFT_SEND_STANDARD);
		if (!err)
			send_ack(s);
	}
	if (err) /* the peer is gone */
		free(s);
}

static bool makes_sense(const struct access *a, size_t bytes)
{
	return bytes >= sizeof *a && a->kind < KINDS &&
	       bytes - sizeof *a == (a->kind == PUT && a->with_data ? a->bytes : 0);
}

static void serve_access(int peer, const void *data, size_t bytes, void *arg)
{
	struct access a = {.kind = KINDS};
	struct served *s = malloc(sizeof *s);
	(void)arg;
	if (bytes >= sizeof a)
		memcpy(&a, data, sizeof a);
	if (!s || !makes_sense(&a, bytes)) {
		/* An honest peer never sends nonsense; that it may not flood the log, it is no error. */
		if (s)
			weft_warn("rank %d: an access to a region makes no sense, and is dropped",
				  peer);
		else
			weft_error("rank %d: an access to a region finds no memory here", peer);
		free(s);
		return;
	}
	char *at;
	bool fits = place_of(&a, &at);
	s->peer = peer;
	s->tag = (int)(a.tag & 0x7fffffff);
	s->key = a.key;
	s->note = a.note;
	s->answer = (struct answer){.verdict = fits ? WEFT_OK : WEFT_ERR_ARG};
	if ((a.kind == PUT && !a.with_data) || (a.kind == GET && fits)) {
		serve_apart(s, &a, at);
		return;
	}
	/* Only the answer goes out. */
	atomic_store_explicit(&s->x_left, 1, memory_order_relaxed);
	if (fits && is_atomic(a.kind))
		s->answer.old = atomic_of(&a, at);
	else if (fits && a.bytes)
		memcpy(at, (const char *)data + sizeof a, a.bytes);
	if (a.kind == PUT)
		put_over(s);
	else
		send_ack(s);
}

/* ---- what is open per peer ------------------------------------------------------------------ */

struct peer {
	_Atomic uint32_t x_open; /* accesses that are not over */
	_Atomic int x_err;       /* the first failure since the last flush */
};

static struct peer *peers;

static void access_over(int peer, weft_err err)
{
	int none = WEFT_OK;
	/* Relaxed: ordered by the count. */
	if (err)
		(void)atomic_compare_exchange_strong_explicit(&peers[peer].x_err, &none, (int)err,
							      memory_order_relaxed,
							      memory_order_relaxed);
	/* OVER -> none_open.  Carries: the data, old. */
	atomic_fetch_sub_explicit(&peers[peer].x_open, 1, memory_order_acq_rel);
}

static bool none_open(void *arg)
{
	struct peer *p = arg;
	/* OVER <- access_over. */
	return atomic_load_explicit(&p->x_open, memory_order_acquire) == 0;
}

weft_err weft_comm_flush(int peer)
{
	if (!weft_port_is_open())
		return WEFT_ERR_STATE;
	if (peer < 0 || peer >= weft_comm_size())
		return WEFT_ERR_ARG;
	if (!none_open(&peers[peer])) {
		if (weft_port_in_handler())
			return WEFT_ERR_DEADLOCK;
		weft_port_sleep_until(none_open, &peers[peer]);
	}
	/* Relaxed: written before the end that was waited for. */
	return (weft_err)atomic_exchange_explicit(&peers[peer].x_err, WEFT_OK,
						  memory_order_relaxed);
}

weft_err weft_comm_flush_all(void)
{
	weft_err first = WEFT_OK;
	if (!weft_port_is_open())
		return WEFT_ERR_STATE;
	for (int p = 0; p < weft_comm_size(); p++) {
		weft_err err = weft_comm_flush(p);
		if (err == WEFT_ERR_DEADLOCK)
			return err;
		first = first ? first : err;
	}
	return first;
}

weft_err weft_port_put_start(void)
{
	peers = calloc((size_t)weft_comm_size(), sizeof *peers);
	weft_port_am_set(WEFT_PORT_AM_ACCESS, serve_access, NULL);
	return peers ? WEFT_OK : WEFT_ERR_NOMEM;
}

void weft_port_put_stop(void)
{
	weft_port_regions_end();
	free(peers);
	peers = NULL;
}

/* ---- the origin --------------------------------------------------------------------------- */

struct origin {
	struct weft_req data, ack;
	struct weft_req *user; /* NULL: flush tells */
	_Atomic int x_left;
	int peer;
	uint32_t kind;
	void *old;
	size_t old_bytes;
	struct answer answer;
};

static _Atomic uint32_t x_tags;

static void origin_drop(struct origin *o)
{
	/* The last reference ends the user's request; acquire: it sees what the other has found. */
	if (atomic_fetch_sub_explicit(&o->x_left, 1, memory_order_acq_rel) != 1)
		return;
	struct weft_req *user = o->user;
	weft_err err = (weft_err)o->answer.verdict;
	if (!err && !o->ack.status.cancelled)
		err = o->ack.status.err;
	if (!err && !o->data.status.cancelled)
		err = o->data.status.err;
	uint32_t old4 = (uint32_t)o->answer.old;
	if (!err && o->old)
		memcpy(o->old, o->old_bytes == 4 ? (void *)&old4 : &o->answer.old, o->old_bytes);
	if (user) {
		user->status.err = err;
		if (err)
			user->status.bytes = 0;
	}
	access_over(o->peer, user ? WEFT_OK : err);
	free(o);
	if (user)
		weft_wait_completion_signal(&user->done);
	weft_port_changed();
}

static void data_over(struct weft_req *req, void *arg)
{
	(void)req;
	origin_drop(arg);
}

static void ack_came(struct weft_req *req, void *arg)
{
	struct origin *o = arg;
	/* No data will come. */
	if (o->kind == GET && (req->status.err || o->answer.verdict))
		(void)weft_comm_recv_cancel(&o->data);
	origin_drop(o);
}

/* The active message, with what data it carries. */
static weft_err tell_access(int peer, const struct access *a, const void *buf)
{
	struct {
		struct access a;
		char data[SMALL];
	} m = {.a = *a};
	size_t data = a->with_data ? a->bytes : 0;
	if (data)
		memcpy(m.data, buf, data);
	return weft_port_am_send(peer, WEFT_PORT_AM_ACCESS, &m, sizeof *a + data);
}

/* All receives, then the message, then the data of a large put.  *apart_p: the DATA request was started. */
static weft_err origin_start(struct origin *o, const struct access *a, void *buf, bool *apart_p)
{
	struct weft_ctx *ctx = weft_port_ctx[WEFT_PORT_DATA];
	struct weft_buf b = weft_data_buf_flat(buf, a->bytes);
	int tag = (int)a->tag;
	weft_err err = WEFT_OK;
	if (a->kind == GET) {
		err = weft_comm_core_irecv(&o->data, ctx, o->peer, tag, &b);
		*apart_p = !err;
	}
	if (!err)
		err = tell_access(o->peer, a, buf);
	if (!err && a->kind == PUT && !a->with_data) {
		err = weft_comm_core_isend(&o->data, ctx, o->peer, tag, &b, WEFT_SEND_STANDARD);
		*apart_p = !err;
	}
	return err;
}

static struct origin *origin_new(weft_comm_request *req, int peer, const struct access *a)
{
	struct origin *o = calloc(1, sizeof *o);
	if (!o)
		return NULL;
	o->user = req ? weft_port_req(req) : NULL;
	o->peer = peer;
	o->kind = a->kind;
	bool apart = a->kind == GET || (a->kind == PUT && !a->with_data);
	/* This call's reference, until all is started; the answer's; the data's. */
	atomic_store_explicit(&o->x_left, apart ? 3 : 2, memory_order_relaxed);
	weft_comm_req_init(&o->ack, ack_came, o);
	weft_comm_req_init(&o->data, data_over, o);
	return o;
}

static weft_err start_access(weft_comm_request *req, int peer, struct access *a, void *buf,
			     void *old)
{
	if (!weft_port_is_open())
		return WEFT_ERR_STATE;
	if (peer < 0 || peer >= weft_comm_size())
		return WEFT_ERR_ARG;
	/* Relaxed: a number; it comes round after 2^31 operations. */
	a->tag = atomic_fetch_add_explicit(&x_tags, 1, memory_order_relaxed) & 0x7fffffff;
	a->with_data = a->kind == PUT && a->bytes <= SMALL;
	struct origin *o = origin_new(req, peer, a);
	if (!o)
		return WEFT_ERR_NOMEM;
	struct weft_buf to = weft_data_buf_flat(&o->answer, sizeof o->answer);
	bool apart = false, wants_apart = a->kind == GET || (a->kind == PUT && !a->with_data);
	o->old = old;
	o->old_bytes = old ? a->bytes : 0;
	if (o->user) {
		weft_comm_req_init(o->user, NULL, NULL);
		o->user->status = (struct weft_status){.peer = peer, .bytes = a->bytes};
	}
	weft_err err =
		weft_comm_core_irecv(&o->ack, weft_port_ctx[WEFT_PORT_ACK], peer, (int)a->tag, &to);
	if (err) {
		free(o);
		return err;
	}
	/* Relaxed: the caller's, until it is started. */
	atomic_fetch_add_explicit(&peers[peer].x_open, 1, memory_order_relaxed);
	err = origin_start(o, a, buf, &apart);
	if (err) {
		/* The peer is gone.  What was started ends or is taken back, and drops what it
		 * holds; the user's request completes with the reason. */
		o->answer.verdict = err;
		(void)weft_comm_recv_cancel(&o->ack);
		if (apart)
			(void)weft_comm_recv_cancel(&o->data);
		else if (wants_apart)
			origin_drop(o);
	}
	weft_task_engine_pending();
	origin_drop(o);
	/* An access to the own memory may be over here, so that no wait polls: a loop of them, on a lock that a
	 * peer holds, must let that peer in where no thread polls in the background. */
	if (peer == weft_comm_rank() && !weft_port_in_handler())
		(void)weft_task_engine_poll();
	return WEFT_OK;
}

static weft_err put_bytes(weft_comm_request *req, int peer, uint64_t key, size_t offset,
			  const void *buf, size_t bytes, uint32_t note)
{
	struct access a = {.key = key, .offset = offset, .bytes = bytes, .kind = PUT, .note = note};
	if (bytes && !buf)
		return WEFT_ERR_ARG;
	return start_access(req, peer, &a, (void *)(uintptr_t)buf, NULL);
}

weft_err weft_comm_put(weft_comm_request *req, int peer, uint64_t key, size_t offset,
		       const void *buf, size_t bytes)
{
	return put_bytes(req, peer, key, offset, buf, bytes, NO_NOTE);
}

weft_err weft_comm_put_notify(weft_comm_request *req, int peer, uint64_t key, size_t offset,
			      const void *buf, size_t bytes, unsigned note)
{
	if (note >= WEFT_COMM_NOTES)
		return WEFT_ERR_ARG;
	return put_bytes(req, peer, key, offset, buf, bytes, note);
}

weft_err weft_comm_get(weft_comm_request *req, int peer, uint64_t key, size_t offset, void *buf,
		       size_t bytes)
{
	struct access a = {
		.key = key, .offset = offset, .bytes = bytes, .kind = GET, .note = NO_NOTE};
	if (bytes && !buf)
		return WEFT_ERR_ARG;
	return start_access(req, peer, &a, buf, NULL);
}

static weft_err change_word(weft_comm_request *req, int peer, struct access *a, void *old)
{
	if (a->bytes != 4 && a->bytes != 8)
		return WEFT_ERR_ARG;
	a->note = NO_NOTE;
	return start_access(req, peer, a, NULL, old);
}

weft_err weft_comm_fetch_add(weft_comm_request *req, int peer, uint64_t key, size_t offset,
			     size_t bytes, uint64_t value, void *old)
{
	struct access a = {
		.key = key, .offset = offset, .bytes = bytes, .value = value, .kind = ADD};
	return change_word(req, peer, &a, old);
}

weft_err weft_comm_swap(weft_comm_request *req, int peer, uint64_t key, size_t offset, size_t bytes,
			uint64_t value, void *old)
{
	struct access a = {
		.key = key, .offset = offset, .bytes = bytes, .value = value, .kind = SWAP};
	return change_word(req, peer, &a, old);
}

weft_err weft_comm_compare_swap(weft_comm_request *req, int peer, uint64_t key, size_t offset,
				size_t bytes, uint64_t compare, uint64_t value, void *old)
{
	struct access a = {.key = key,
			   .offset = offset,
			   .bytes = bytes,
			   .value = value,
			   .compare = compare,
			   .kind = COMPARE_SWAP};
	return change_word(req, peer, &a, old);
}
