/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * put.c - put and get: an active message tells the target what is wanted, the data goes as an
 * ordinary message straight between the two buffers (large ones: one copy), and
 * an answer says that it is over.
 *
 *   put   origin: ACCESS, DATA            target: takes DATA into the region, then ACK
 *   get   origin: ACCESS                  target: DATA from the region, ACK
 *
 * The target checks key, offset and length; if they are wrong nothing of its memory is touched.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "port/am.h"
#include "port/put.h"

struct access {
	uint64_t key, offset, bytes;
	uint32_t tag;
	uint32_t put;
};

/* ---- regions ------------------------------------------------------------------------------ */

struct region {
	struct region *next;
	uint64_t key;
	char *base;
	size_t bytes;
};

static pthread_mutex_t regions_lock = PTHREAD_MUTEX_INITIALIZER;
static struct region *regions;
static uint64_t last_key;

weft_err weft_comm_expose(void *base, size_t bytes, uint64_t *key_p)
{
	if (!weft_port_is_open())
		return WEFT_ERR_STATE;
	struct region *r = malloc(sizeof *r);
	if (!r)
		return WEFT_ERR_NOMEM;
	pthread_mutex_lock(&regions_lock);
	*r = (struct region){.next = regions, .key = ++last_key, .base = base, .bytes = bytes};
	regions = r;
	*key_p = r->key;
	pthread_mutex_unlock(&regions_lock);
	return WEFT_OK;
}

weft_err weft_comm_hide(uint64_t key)
{
	pthread_mutex_lock(&regions_lock);
	struct region **link = &regions;
	while (*link && (*link)->key != key)
		link = &(*link)->next;
	struct region *r = *link;
	if (r)
		*link = r->next;
	pthread_mutex_unlock(&regions_lock);
	free(r);
	return r ? WEFT_OK : WEFT_ERR_NOENT;
}

/* The memory that a names, or NULL. */
static char *region_at(const struct access *a)
{
	char *at = NULL;
	pthread_mutex_lock(&regions_lock);
	for (struct region *r = regions; r; r = r->next)
		if (r->key == a->key && a->offset <= r->bytes && a->bytes <= r->bytes - a->offset)
			at = r->base + a->offset;
	pthread_mutex_unlock(&regions_lock);
	return at;
}

void weft_port_put_stop(void)
{
	while (regions) {
		struct region *r = regions;
		regions = r->next;
		free(r);
	}
}

/* ---- the target --------------------------------------------------------------------------- */

struct served {
	struct weft_req data, ack;
	_Atomic int x_left;
	int peer, tag;
	int32_t verdict; /* what the ACK carries */
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
	struct weft_buf b = weft_data_buf_flat(&s->verdict, sizeof s->verdict);
	weft_comm_req_init(&s->ack, ack_sent, s);
	if (weft_comm_core_isend(&s->ack, weft_port_ctx[WEFT_PORT_ACK], s->peer, s->tag, &b,
				 WEFT_SEND_STANDARD))
		served_drop(s); /* the peer is gone */
}

static void put_landed(struct weft_req *req, void *arg)
{
	struct served *s = arg;
	if (!s->verdict && req->status.err)
		s->verdict = req->status.err;
	send_ack(s);
	served_drop(s);
}

static void get_left(struct weft_req *req, void *arg)
{
	(void)req;
	served_drop(arg);
}

static void serve_access(int peer, const void *data, size_t bytes, void *arg)
{
	struct access a;
	struct served *s = malloc(sizeof *s);
	(void)arg;
	if (!s || bytes != sizeof a) {
		weft_error("rank %d: a put or get %s", peer,
			   s ? "that makes no sense" : "finds no memory here");
		free(s);
		return;
	}
	memcpy(&a, data, sizeof a);
	char *at = region_at(&a);
	s->peer = peer;
	s->tag = (int)a.tag;
	s->verdict = at ? WEFT_OK : WEFT_ERR_ARG;
	struct weft_ctx *ctx = weft_port_ctx[WEFT_PORT_DATA];
	if (!at && !a.put) { /* only the answer */
		atomic_store_explicit(&s->x_left, 1, memory_order_relaxed);
		send_ack(s);
		return;
	}
	struct weft_buf b = weft_data_buf_flat(at, at ? a.bytes : 0);
	weft_err err;
	atomic_store_explicit(&s->x_left, 2, memory_order_relaxed);
	if (a.put) {
		weft_comm_req_init(&s->data, put_landed, s);
		err = weft_comm_core_irecv(&s->data, ctx, peer, s->tag, &b);
	} else {
		weft_comm_req_init(&s->data, get_left, s);
		err = weft_comm_core_isend(&s->data, ctx, peer, s->tag, &b, WEFT_SEND_STANDARD);
		if (!err)
			send_ack(s);
	}
	if (err) /* the peer is gone */
		free(s);
}

void weft_port_put_start(void)
{
	weft_port_am_set(WEFT_PORT_AM_ACCESS, serve_access, NULL);
}

/* ---- the origin --------------------------------------------------------------------------- */

struct origin {
	struct weft_req data, ack;
	struct weft_req *user;
	_Atomic int x_left;
	int32_t verdict;
	bool put;
};

static _Atomic uint32_t x_tags;

static void origin_drop(struct origin *o)
{
	/* The last reference ends the user's request; acquire: it sees what the other has found. */
	if (atomic_fetch_sub_explicit(&o->x_left, 1, memory_order_acq_rel) != 1)
		return;
	struct weft_req *user = o->user;
	weft_err err = (weft_err)o->verdict;
	if (!err && !o->ack.status.cancelled)
		err = o->ack.status.err;
	if (!err && !o->data.status.cancelled)
		err = o->data.status.err;
	user->status.err = err;
	if (err)
		user->status.bytes = 0;
	free(o);
	weft_wait_completion_signal(&user->done);
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
	if (!o->put && (req->status.err || o->verdict))
		(void)weft_comm_recv_cancel(&o->data);
	origin_drop(o);
}

static weft_err start_access(weft_comm_request *req, int peer, uint64_t key, size_t offset,
			     void *buf, size_t bytes, bool put)
{
	struct weft_req *user = weft_port_req(req);
	if (!weft_port_is_open())
		return WEFT_ERR_STATE;
	if (peer < 0 || peer >= weft_comm_size() || (bytes && !buf))
		return WEFT_ERR_ARG;
	struct origin *o = calloc(1, sizeof *o);
	if (!o)
		return WEFT_ERR_NOMEM;
	/* Relaxed: a number; it comes round after 2^31 operations. */
	uint32_t tag = atomic_fetch_add_explicit(&x_tags, 1, memory_order_relaxed) & 0x7fffffff;
	struct access a = {.key = key, .offset = offset, .bytes = bytes, .tag = tag, .put = put};
	struct weft_buf to = weft_data_buf_flat(&o->verdict, sizeof o->verdict);
	struct weft_buf b = weft_data_buf_flat(buf, bytes);

	weft_comm_req_init(user, NULL, NULL);
	user->status = (struct weft_status){.peer = peer, .bytes = bytes};
	o->user = user;
	o->put = put;
	/* The third reference is this call's, until all is started. */
	atomic_store_explicit(&o->x_left, 3, memory_order_relaxed);
	weft_comm_req_init(&o->ack, ack_came, o);
	weft_comm_req_init(&o->data, data_over, o);
	bool data_started = false;
	weft_err err =
		weft_comm_core_irecv(&o->ack, weft_port_ctx[WEFT_PORT_ACK], peer, (int)tag, &to);
	if (err) {
		free(o);
		return err;
	}
	if (!put) {
		err = weft_comm_core_irecv(&o->data, weft_port_ctx[WEFT_PORT_DATA], peer, (int)tag,
					   &b);
		data_started = !err;
	}
	if (!err)
		err = weft_port_am_send(peer, WEFT_PORT_AM_ACCESS, &a, sizeof a);
	if (!err && put) {
		err = weft_comm_core_isend(&o->data, weft_port_ctx[WEFT_PORT_DATA], peer, (int)tag,
					   &b, WEFT_SEND_STANDARD);
		data_started = !err;
	}
	if (err) {
		/* The peer is gone.  What was started ends or is taken back, and drops what it
		 * holds; the user's request completes with the reason. */
		o->verdict = err;
		(void)weft_comm_recv_cancel(&o->ack);
		if (data_started)
			(void)weft_comm_recv_cancel(&o->data);
		else
			origin_drop(o);
	}
	weft_task_engine_pending();
	origin_drop(o);
	return WEFT_OK;
}

weft_err weft_comm_put(weft_comm_request *req, int peer, uint64_t key, size_t offset,
		       const void *buf, size_t bytes)
{
	return start_access(req, peer, key, offset, (void *)(uintptr_t)buf, bytes, true);
}

weft_err weft_comm_get(weft_comm_request *req, int peer, uint64_t key, size_t offset, void *buf,
		       size_t bytes)
{
	return start_access(req, peer, key, offset, buf, bytes, false);
}
