/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ofi_put.c - writes: a receiver opens its memory to one peer (a window), who writes into it.
 *
 * Order     packets that are posted behind a write come behind its bytes: the provider promises
 *           FI_ORDER_SAW, or there are no windows.
 * Ends      a peer that goes down while it has a window, or while we write, is reported when the
 *           writes are over and what it had sent before has had time to arrive: until then the
 *           network may still write, or read, there.
 * Locks     x_window_lock guards the lists of windows and writes: posters and receivers add, the
 *           poller removes writes, whoever has a window removes it.
 */
#include "net/ofi/ofi_int.h"

#if __has_include(<rdma/fabric.h>)

#include <rdma/fi_rma.h>
#include <stdlib.h>
#include <string.h>
#include "base/backoff.h"
#include "base/cancel.h"
#include "base/counters.h"
#include "base/log.h"

struct weft_net_window {
	struct weft_net_window *next;
	int peer;
	struct fid_mr *mr; /* NULL: the peer is down */
};

/* What a write's buffer has instead of a payload. */
struct writing {
	void *cookie;
	struct fid_mr *mr; /* of the data, where the network asks for that */
};
static_assert(offsetof(struct weft_ofi_buf, payload) % alignof(struct writing) == 0, "aligned");

/* How a peer ended that is not reported yet. */
struct weft_ofi_put_end {
	uint64_t until_ns;
	bool windows; /* it had some */
	weft_err err;
	char why[200];
};

static void lock(struct weft_ofi *o)
{
	unsigned turns = 0;
	/* LOCK <- UNLOCK.  Carries: the lists.  Ends: held for a few instructions. */
	while (atomic_exchange_explicit(&o->x_window_lock, true, memory_order_acquire))
		weft_backoff(&turns);
}

static void unlock(struct weft_ofi *o)
{
	/* UNLOCK -> LOCK. */
	atomic_store_explicit(&o->x_window_lock, false, memory_order_release);
}

static bool reached(const struct weft_ofi_peer *p)
{
	/* USE <- REACHED. */
	return atomic_load_explicit(&p->x_state, memory_order_acquire) == WEFT_OFI_REACHED;
}

/* ---- windows --------------------------------------------------------------------------------- */

weft_err weft_net_ofi_expose(struct weft_net *net, int peer, void *base, size_t len,
			     struct weft_net_ticket *ticket_p, struct weft_net_window **window_p)
{
	struct weft_ofi *o = (struct weft_ofi *)net;
	if (!o->put || !reached(&o->peer[peer]))
		return WEFT_ERR_UNSUPPORTED;
	struct weft_net_window *w = calloc(1, sizeof *w);
	/* Relaxed: a number that nobody else has. */
	uint64_t key = atomic_fetch_add_explicit(&o->x_key, 1, memory_order_relaxed);
	if (!w || fi_mr_reg(o->domain, base, len, FI_REMOTE_WRITE, 0, key, 0, &w->mr, NULL)) {
		free(w);
		return WEFT_ERR_NOMEM;
	}
	w->peer = peer;
	bool by_address = o->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
	*ticket_p = (struct weft_net_ticket){by_address ? (uint64_t)(uintptr_t)base : 0,
					     fi_mr_key(w->mr)};
	lock(o);
	w->next = o->window;
	o->window = w;
	unlock(o);
	*window_p = w;
	return WEFT_OK;
}

void weft_net_ofi_conceal(struct weft_net *net, struct weft_net_window *w)
{
	struct weft_ofi *o = (struct weft_ofi *)net;
	lock(o);
	struct weft_net_window **at = &o->window;
	while (*at != w) /* ends: it is in the list */
		at = &(*at)->next;
	*at = w->next;
	unlock(o);
	if (w->mr)
		fi_close(&w->mr->fid);
	free(w);
}

/* From now on nothing begins to be written into windows of that peer.  Were there any? */
static bool shut(struct weft_ofi *o, int peer)
{
	bool any = false;
	for (;;) { /* ends: each round shuts one */
		lock(o);
		struct weft_net_window *w = o->window;
		while (w && (w->peer != peer || !w->mr))
			w = w->next;
		struct fid_mr *mr = w ? w->mr : NULL;
		if (w)
			w->mr = NULL;
		unlock(o);
		if (!mr)
			return any;
		fi_close(&mr->fid);
		any = true;
	}
}

/* ---- writes ---------------------------------------------------------------------------------- */

static struct writing *writing_of(struct weft_ofi_buf *b)
{
	return (struct writing *)(void *)b->payload;
}

static void writing_free(struct weft_ofi_buf *b)
{
	if (writing_of(b)->mr)
		fi_close(&writing_of(b)->mr->fid);
	free(b);
}

static struct weft_ofi_buf *writing_make(struct weft_ofi *o, int peer, const void *data, size_t len,
					 void *cookie)
{
	struct weft_ofi_buf *b = calloc(1, sizeof *b + sizeof(struct writing));
	if (!b)
		return NULL;
	b->peer = peer;
	b->is_write = true;
	writing_of(b)->cookie = cookie;
	/* Relaxed: a number that nobody else has. */
	uint64_t key = atomic_fetch_add_explicit(&o->x_key, 1, memory_order_relaxed);
	if (o->info->domain_attr->mr_mode & FI_MR_LOCAL &&
	    fi_mr_reg(o->domain, data, len, FI_WRITE, 0, key, 0, &writing_of(b)->mr, NULL)) {
		free(b);
		return NULL;
	}
	return b;
}

/* Takes b out of the list; false: it was given up. */
static bool take_out(struct weft_ofi *o, struct weft_ofi_buf *b)
{
	lock(o);
	struct weft_ofi_buf **at = &o->peer[b->peer].write;
	while (*at && *at != b)
		at = &(*at)->next;
	bool found = *at;
	if (found)
		*at = b->next;
	unlock(o);
	return found;
}

static bool begin(struct weft_ofi *o, int peer, const struct weft_net_ticket *t, uint64_t at,
		  const void *data, size_t len, void *cookie)
{
	struct weft_ofi_peer *p = &o->peer[peer];
	struct weft_ofi_buf *b = writing_make(o, peer, data, len, cookie);
	if (!b)
		return false;
	/* In the list before it can be over. */
	lock(o);
	b->next = p->write;
	p->write = b;
	unlock(o);
	atomic_fetch_add_explicit(&p->x_under, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&p->x_writes, 1, memory_order_relaxed);
	struct fid_mr *mr = writing_of(b)->mr;
	/* seq_cst: the poller's DOWN is seen here, or it sees b in the list. */
	if (atomic_load_explicit(&p->x_state, memory_order_seq_cst) == WEFT_OFI_REACHED &&
	    fi_write(o->ep, data, len, mr ? fi_mr_desc(mr) : NULL, p->addr, t->addr + at, t->key,
		     b) == 0) {
		weft_count(WEFT_CNT_OFI_WRITES, 1);
		return true;
	}
	atomic_fetch_sub_explicit(&p->x_writes, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&p->x_under, 1, memory_order_relaxed);
	if (!take_out(o, b))
		return true; /* it was given up: its sent() was told, and b is in o->lost_write */
	writing_free(b);
	return false;
}

enum weft_post weft_net_ofi_write(struct weft_net *net, int peer, const struct weft_net_ticket *t,
				  uint64_t at, const void *data, size_t len, void *cookie)
{
	struct weft_ofi *o = (struct weft_ofi *)net;
	struct weft_ofi_peer *p = &o->peer[peer];
	if (!o->put || !reached(p))
		return WEFT_POST_DOWN;
	/* Relaxed: our own counts, and the poller's that may be late. */
	bool room = atomic_load_explicit(&p->x_writes, memory_order_relaxed) < WEFT_OFI_WRITES &&
		    !p->gone;
	int was = weft_cancel_off(); /* what a provider calls is its own affair */
	bool begun = room && begin(o, peer, t, at, data, len, cookie);
	weft_cancel_back(was);
	return begun ? WEFT_POST_ACCEPTED : weft_net_ofi_full(o, peer);
}

/* A write is over.  The upcalls made. */
int weft_net_ofi_write_over(struct weft_ofi *o, struct weft_ofi_buf *b, int code)
{
	int peer = b->peer;
	struct weft_ofi_peer *p = &o->peer[peer];
	if (!take_out(o, b))
		return 0; /* it was given up */
	void *cookie = writing_of(b)->cookie;
	atomic_fetch_sub_explicit(&p->x_writes, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&p->x_under, 1, memory_order_relaxed);
	writing_free(b);
	o->events.sent(o->events.arg, peer, cookie, code ? WEFT_ERR_PEER : WEFT_OK);
	if (code)
		weft_net_ofi_peer_down(o, peer, WEFT_ERR_PEER, weft_net_ofi_lib_error(code));
	return 1 + !!code;
}

/* ---- ends ------------------------------------------------------------------------------------ */

/* The peer is down.  True: its down() is told later, by weft_net_ofi_put_again. */
bool weft_net_ofi_put_down(struct weft_ofi *o, int peer, weft_err err, const char *why)
{
	struct weft_ofi_peer *p = &o->peer[peer];
	bool windows = shut(o, peer);
	lock(o);
	bool writes = p->write;
	unlock(o);
	/* One that left in order has written what it had to. */
	if (!writes && (!windows || !err))
		return false;
	struct weft_ofi_put_end *e = calloc(1, sizeof *e);
	if (!e)
		return false;
	e->until_ns =
		weft_clock_ns() + (p->dead_already ? WEFT_OFI_LET_GO_ENDED_NS : WEFT_OFI_LET_GO_NS);
	e->windows = windows;
	e->err = err;
	snprintf(e->why, sizeof e->why, "%s", why);
	p->put_end = e;
	o->owes = true;
	if (o->armed)
		weft_net_hub_ring(&o->hub); /* so that somebody looks at the time */
	return true;
}

bool weft_net_ofi_put_ends(const struct weft_ofi_peer *p)
{
	return p->put_end;
}

/* Writes that are not over; the network keeps their buffers until it is closed. */
static void give_up(struct weft_ofi *o, int peer)
{
	for (;;) { /* ends: each round takes one */
		lock(o);
		struct weft_ofi_buf *b = o->peer[peer].write;
		if (b) {
			o->peer[peer].write = b->next;
			b->next = o->lost_write;
			o->lost_write = b;
		}
		unlock(o);
		if (!b)
			return;
		weft_warn("ofi: the network still holds memory that is written to rank %d", peer);
		o->events.sent(o->events.arg, peer, writing_of(b)->cookie, WEFT_ERR_PEER);
	}
}

void weft_net_ofi_put_again(struct weft_ofi *o, int peer)
{
	struct weft_ofi_peer *p = &o->peer[peer];
	struct weft_ofi_put_end *e = p->put_end;
	if (!e)
		return;
	lock(o);
	bool wait = p->write || e->windows;
	unlock(o);
	if (wait && weft_clock_ns() < e->until_ns) {
		o->owes = true;
		return;
	}
	give_up(o, peer);
	p->put_end = NULL;
	if (!weft_net_ofi_reads(p)) /* else the read's end tells */
		o->events.down(o->events.arg, peer, e->err, e->why);
	free(e);
}

/* Before the network is closed: nobody is told. */
void weft_net_ofi_put_end(struct weft_ofi *o)
{
	for (struct weft_net_window *w = o->window; w; w = w->next) {
		if (w->mr)
			fi_close(&w->mr->fid);
		w->mr = NULL;
	}
	for (int i = 0; o->peer && i < o->job.size; i++)
		for (struct weft_ofi_buf *b; (b = o->peer[i].write);) {
			o->peer[i].write = b->next;
			b->next = o->lost_write;
			o->lost_write = b;
		}
	for (struct weft_ofi_buf *b = o->lost_write; b; b = b->next) {
		if (writing_of(b)->mr)
			fi_close(&writing_of(b)->mr->fid);
		writing_of(b)->mr = NULL;
	}
}

/* Behind it. */
void weft_net_ofi_put_close(struct weft_ofi *o)
{
	for (struct weft_net_window *w; (w = o->window);) {
		o->window = w->next;
		free(w);
	}
	for (struct weft_ofi_buf *b; (b = o->lost_write);) {
		o->lost_write = b->next;
		free(b);
	}
	for (int i = 0; o->peer && i < o->job.size; i++)
		free(o->peer[i].put_end);
}

#endif
