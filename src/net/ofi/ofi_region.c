/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ofi_region.c - regions: memory that libfabric registers for peers; and the end of a peer that
 * may still write to some, or whose transfers are under way.
 *
 * Ends      such a peer is reported when its transfers are over and what it had sent before has
 *           had time to arrive: until then the network may still write, or read, there.
 * Locks     x_region_lock guards the lists of regions and transfers: any thread adds, the poller
 *           removes transfers, a region's owner removes the region.
 */
#include "net/ofi/ofi_int.h"

#if __has_include(<rdma/fabric.h>)

#include <rdma/fi_rma.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/backoff.h"

/* In driver_private. */
struct registered {
	struct weft_net_region *next; /* L x_region_lock */
	struct fid_mr *mr;            /* L: NULL: of no bytes, or its peer is down */
	int peer;                     /* I */
	unsigned access;              /* I */
} __attribute__((may_alias));
static_assert(sizeof(struct registered) <= sizeof(((struct weft_net_region *)0)->driver_private),
	      "grow driver_private");

/* How a peer ended that is not reported yet. */
struct weft_ofi_region_end {
	uint64_t until_ns;
	bool regions; /* it could write to some */
	weft_err err;
	char why[200];
};

void weft_net_ofi_region_lock(struct weft_ofi *o)
{
	unsigned turns = 0;
	/* LOCK <- UNLOCK.  Carries: the lists.  Ends: held for a few instructions. */
	while (atomic_exchange_explicit(&o->x_region_lock, true, memory_order_acquire))
		weft_backoff(&turns);
}

void weft_net_ofi_region_unlock(struct weft_ofi *o)
{
	/* UNLOCK -> LOCK. */
	atomic_store_explicit(&o->x_region_lock, false, memory_order_release);
}

static struct registered *registered_of(struct weft_net_region *r)
{
	return (struct registered *)(void *)r->driver_private;
}

static uint64_t rights_of(unsigned access)
{
	uint64_t rights = 0;
	if (access & (WEFT_NET_READ | WEFT_NET_ATOMIC))
		rights |= FI_REMOTE_READ;
	if (access & (WEFT_NET_WRITE | WEFT_NET_ATOMIC))
		rights |= FI_REMOTE_WRITE;
	return rights;
}

weft_err weft_net_ofi_region_open(struct weft_net *net, int peer, void *base, size_t len,
				  unsigned access, struct weft_net_region *region)
{
	struct weft_ofi *o = (struct weft_ofi *)net;
	if (access & ~o->card.access ||
	    (peer != WEFT_NET_ANY_PEER && !weft_net_ofi_is_reached(&o->peer[peer])))
		return WEFT_ERR_UNSUPPORTED;
	struct registered *r = registered_of(region);
	*r = (struct registered){.peer = peer, .access = access};
	region->ticket = (struct weft_net_ticket){.len = len};
	/* Relaxed: a number that no other memory has. */
	uint64_t key = atomic_fetch_add_explicit(&o->x_key, 1, memory_order_relaxed);
	if (len) {
		if (fi_mr_reg(o->domain, base, len, rights_of(access), 0, key, 0, &r->mr, NULL))
			return WEFT_ERR_NOMEM;
		if (o->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)
			region->ticket.addr = (uint64_t)(uintptr_t)base;
		region->ticket.key = fi_mr_key(r->mr);
	}
	weft_net_ofi_region_lock(o);
	r->next = o->region;
	o->region = region;
	weft_net_ofi_region_unlock(o);
	return WEFT_OK;
}

void weft_net_ofi_region_close(struct weft_net *net, struct weft_net_region *region)
{
	struct weft_ofi *o = (struct weft_ofi *)net;
	struct registered *r = registered_of(region);
	weft_net_ofi_region_lock(o);
	struct weft_net_region **at = &o->region;
	while (*at != region) /* ends: it is in the list */
		at = &registered_of(*at)->next;
	weft_assert(*at == region);
	*at = r->next;
	weft_net_ofi_region_unlock(o);
	if (r->mr)
		fi_close(&r->mr->fid);
}

/* The peer's own regions are closed to it: no access begins.  Could it write to any region? */
static bool shut_regions(struct weft_ofi *o, int peer)
{
	bool any = false;
	for (;;) { /* ends: each round shuts one */
		struct fid_mr *mr = NULL;
		weft_net_ofi_region_lock(o);
		for (struct weft_net_region *at = o->region; at && !mr;
		     at = registered_of(at)->next) {
			struct registered *r = registered_of(at);
			any |= r->mr && (r->peer == peer || r->peer == WEFT_NET_ANY_PEER) &&
			       r->access & ~(unsigned)WEFT_NET_READ;
			if (r->peer == peer) {
				mr = r->mr;
				r->mr = NULL;
			}
		}
		weft_net_ofi_region_unlock(o);
		if (!mr)
			return any;
		fi_close(&mr->fid);
	}
}

/* The peer is down.  True: its down() is told later, by weft_net_ofi_region_again. */
bool weft_net_ofi_region_down(struct weft_ofi *o, int peer, weft_err err, const char *why)
{
	struct weft_ofi_peer *p = &o->peer[peer];
	bool regions = shut_regions(o, peer);
	weft_net_ofi_region_lock(o);
	bool transfers = p->transfer;
	weft_net_ofi_region_unlock(o);
	/* A peer that left in order has written what it had to. */
	if (!transfers && (!regions || !err))
		return false;
	struct weft_ofi_region_end *e = calloc(1, sizeof *e);
	if (!e)
		return false;
	e->until_ns =
		weft_clock_ns() + (p->dead_already ? WEFT_OFI_LET_GO_ENDED_NS : WEFT_OFI_LET_GO_NS);
	e->regions = regions;
	e->err = err;
	snprintf(e->why, sizeof e->why, "%s", why);
	p->region_end = e;
	o->owes = true;
	if (o->armed)
		weft_net_hub_ring(&o->hub); /* a poll must look at the time */
	return true;
}

bool weft_net_ofi_region_ends(const struct weft_ofi_peer *p)
{
	return p->region_end;
}

void weft_net_ofi_region_again(struct weft_ofi *o, int peer)
{
	struct weft_ofi_peer *p = &o->peer[peer];
	struct weft_ofi_region_end *e = p->region_end;
	if (!e)
		return;
	weft_net_ofi_region_lock(o);
	bool wait = p->transfer || e->regions;
	weft_net_ofi_region_unlock(o);
	if (wait && weft_clock_ns() < e->until_ns) {
		o->owes = true;
		return;
	}
	weft_net_ofi_transfers_give_up(o, peer);
	p->region_end = NULL;
	if (!weft_net_ofi_reads(p)) /* else the read's end tells */
		o->events.down(o->events.arg, peer, e->err, e->why);
	free(e);
}

/* Before the network is closed; no upcall is made. */
void weft_net_ofi_regions_end(struct weft_ofi *o)
{
	for (struct weft_net_region *at = o->region; at; at = registered_of(at)->next) {
		struct registered *r = registered_of(at);
		if (r->mr)
			fi_close(&r->mr->fid);
		r->mr = NULL;
	}
	o->region = NULL;
	weft_net_ofi_transfers_end(o);
}

/* Behind it. */
void weft_net_ofi_regions_close(struct weft_ofi *o)
{
	weft_net_ofi_transfers_close(o);
	for (int i = 0; o->peer && i < o->job.size; i++)
		free(o->peer[i].region_end);
}

#endif
