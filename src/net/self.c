/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * self.c - messages of a process to itself: a ring in private memory, regions by memcpy.
 *
 * Posts go through a ring and not straight to the upcall, because the poster may hold locks that
 * the upcall wants.
 */
#include <errno.h>
#include <stdlib.h>
#include "base/log.h"
#include "net/driver.h"
#include "net/hub.h"
#include "net/region_table.h"
#include "net/shm/ring_rx.h"
#include "net/shm/ring_tx.h"

#define MAX_PAYLOAD (64u * 1024)
#define TAKES_PER_POLL 64

static const struct weft_ring_shape shape = {.slots = 512, .data = 4 * MAX_PAYLOAD};

struct self {
	struct weft_net net;
	struct weft_net_events events;
	int rank;
	struct weft_hub hub;
	void *memory;
	struct weft_region_shown shown;
	struct weft_region_table regions;
	struct weft_ring_tx tx;             /* poster */
	_Atomic bool x_blocked;             /* poster sets, poller clears: owes a ready() */
	_Atomic bool x_armed;               /* poller sets, a ringing poster clears */
	bool armed;                         /* poller: between arm and disarm */
	alignas(64) struct weft_ring_rx rx; /* poller */
};

static const struct weft_net_card self_card = {
	.max_payload = MAX_PAYLOAD,
	.inline_max = MAX_PAYLOAD,
	.eager_max = 8192,
	.access = WEFT_NET_READ | WEFT_NET_WRITE | WEFT_NET_ATOMIC,
	.atomic_sizes = 1 | 2 | 4 | 8,
	.atomic_cpu = true,
	.copies = true,
	.latency_us = 0.05,
	.bandwidth_mbs = 12000,
};

static weft_err self_open(const struct weft_net_job *job, const struct weft_net_events *events,
			  struct weft_net **net_p)
{
	struct self *s = aligned_alloc(64, weft_align_up(sizeof *s, 64));
	if (!s)
		return WEFT_ERR_NOMEM;
	memset(s, 0, sizeof *s);
	s->net.driver = &weft_net_driver_self;
	s->events = *events;
	s->rank = job->rank;
	s->regions.shown = &s->shown;

	size_t bytes = weft_net_ring_bytes(shape);
	s->memory = aligned_alloc(64, weft_align_up(bytes, 64));
	weft_err err = s->memory ? weft_net_hub_open(&s->hub) : WEFT_ERR_NOMEM;
	if (err) {
		free(s->memory);
		free(s);
		return err;
	}
	memset(s->memory, 0, bytes);
	weft_net_ring_tx_attach(&s->tx, s->memory, shape, NULL);
	weft_net_ring_rx_attach(&s->rx, s->memory, shape, MAX_PAYLOAD);
	*net_p = &s->net;
	return WEFT_OK;
}

static void self_close(struct weft_net *net)
{
	struct self *s = (struct self *)net;
	weft_net_hub_close(&s->hub);
	free(s->memory);
	free(s);
}

static weft_err self_address(struct weft_net *net, char *buf, size_t size)
{
	if (!size)
		return WEFT_ERR_LIMIT;
	buf[0] = 0;
	return WEFT_OK;
}

static weft_err self_reach(struct weft_net *net, int peer, const char *address)
{
	return peer == ((struct self *)net)->rank ? WEFT_OK : WEFT_ERR_UNSUPPORTED;
}

static void wake_self(struct self *s)
{
	/* RING <- ARM (self_arm): the publishing exchange came before this load. */
	if (atomic_load_explicit(&s->x_armed, memory_order_seq_cst) &&
	    atomic_exchange_explicit(&s->x_armed, false, memory_order_seq_cst))
		weft_net_hub_ring(&s->hub);
}

static enum weft_post self_post(struct weft_net *net, int peer, const void *head,
				const struct iovec *iov, unsigned n, size_t len, void *cookie)
{
	struct self *s = (struct self *)net;
	weft_assert(peer == s->rank && len <= MAX_PAYLOAD);
	if (weft_unlikely(!weft_net_ring_room(&s->tx, (uint32_t)len))) {
		/* BLOCK -> READY (self_poll): seq_cst before the second look at the room, so that
		 * either we see it or the poller sees the flag. */
		atomic_store_explicit(&s->x_blocked, true, memory_order_seq_cst);
		(void)weft_net_ring_refresh(&s->tx);
		if (!weft_net_ring_room(&s->tx, (uint32_t)len)) {
			wake_self(s);
			return WEFT_POST_FULL;
		}
	}
	weft_net_ring_publish(&s->tx, head, iov, n, (uint32_t)len, false);
	wake_self(s);
	return WEFT_POST_DONE;
}

static int self_poll(struct weft_net *net)
{
	struct self *s = (struct self *)net;
	int n = 0;
	if (weft_unlikely(s->armed) && !atomic_load_explicit(&s->x_armed, memory_order_relaxed)) {
		/* A poster has rung.  Armed again before looking, as in self_arm(). */
		weft_net_hub_quiet(&s->hub);
		(void)atomic_exchange_explicit(&s->x_armed, true, memory_order_seq_cst);
	}
	/* Bounded, so that a chain of messages to oneself cannot hold the mask for ever. */
	while (n < TAKES_PER_POLL && weft_net_ring_peek(&s->rx)) {
		struct weft_ring_packet p;
		if (weft_net_ring_take(&s->rx, &p))
			weft_panic("self: the ring is damaged");
		s->events.packet(s->events.arg, s->rank, p.head, p.payload, p.len);
		(void)weft_net_ring_consume(&s->rx, &p);
		n++;
	}
	/* READY <- BLOCK (self_post).  Tell in full, so that a blocked poster finds all room. */
	if (weft_unlikely(atomic_load_explicit(&s->x_blocked, memory_order_seq_cst)) &&
	    !weft_net_ring_peek(&s->rx)) {
		(void)weft_net_ring_tell(&s->rx);
		if (atomic_exchange_explicit(&s->x_blocked, false, memory_order_seq_cst)) {
			s->events.ready(s->events.arg, s->rank);
			n++;
		}
	}
	return n;
}

/* A late ring of an earlier sleep may be what woke the poller: taken back, too. */
static void disarm_self(struct self *s)
{
	s->armed = false;
	/* DISARM -> RING (wake_self): a poster sees it, or rings for nothing, which quiet() takes back.
	 */
	(void)atomic_exchange_explicit(&s->x_armed, false, memory_order_seq_cst);
	weft_net_hub_quiet(&s->hub);
}

static weft_err self_arm(struct weft_net *net, enum weft_arm_level level)
{
	struct self *s = (struct self *)net;
	if (level == WEFT_ARM_OFF) {
		disarm_self(s);
		return WEFT_OK;
	}
	/* ARM -> RING (wake_self): exchange before the recheck; the poster publishes by exchange. */
	(void)atomic_exchange_explicit(&s->x_armed, true, memory_order_seq_cst);
	s->armed = !weft_net_ring_peek(&s->rx) &&
		   !atomic_load_explicit(&s->x_blocked, memory_order_seq_cst);
	if (s->armed)
		return WEFT_OK;
	(void)atomic_exchange_explicit(&s->x_armed, false, memory_order_seq_cst);
	return WEFT_AGAIN;
}

static unsigned self_fds(struct weft_net *net, int fd[WEFT_NET_FDS])
{
	fd[0] = ((struct self *)net)->hub.epfd;
	return 1;
}

static weft_err self_region_open(struct weft_net *net, int peer, void *base, size_t len,
				 unsigned access, struct weft_net_region *region)
{
	uint64_t key = weft_net_region_table_open(&((struct self *)net)->regions, access);
	if (!key)
		return WEFT_ERR_LIMIT;
	region->ticket = (struct weft_net_ticket){(uint64_t)(uintptr_t)base, len, key};
	return WEFT_OK;
}

static void self_region_close(struct weft_net *net, struct weft_net_region *region)
{
	weft_net_region_table_close(&((struct self *)net)->regions, region->ticket.key);
}

static bool is_open(struct self *s, const struct weft_net_ticket *t, enum weft_net_access access)
{
	return t->key == WEFT_NET_KEY_ANY || weft_net_region_shown_open(&s->shown, t->key, access);
}

static enum weft_post self_transfer(struct weft_net *net, int peer,
				    const struct weft_net_transfer *t)
{
	size_t bytes;
	if (!weft_net_transfer_fits(t, &bytes) ||
	    !is_open((struct self *)net, t->there, t->write ? WEFT_NET_WRITE : WEFT_NET_READ))
		return WEFT_POST_REFUSED;
	weft_net_transfer_mapped(t, (char *)(uintptr_t)t->there->addr);
	return WEFT_POST_DONE;
}

static enum weft_post self_atomic(struct weft_net *net, int peer, const struct weft_net_atomic *a)
{
	if (!weft_net_atomic_fits(a) || !is_open((struct self *)net, a->there, WEFT_NET_ATOMIC))
		return WEFT_POST_REFUSED;
	weft_net_atomic_mapped(a, (char *)(uintptr_t)a->there->addr + a->at);
	return WEFT_POST_DONE;
}

static enum weft_post self_flush(struct weft_net *net, int peer, void *cookie)
{
	return WEFT_POST_DONE;
}

static weft_err self_drain(struct weft_net *net)
{
	return WEFT_OK;
}

static const struct weft_net_card *self_get_card(struct weft_net *net, int peer)
{
	return &self_card;
}

const struct weft_driver weft_net_driver_self = {
	.name = "self",
	.open = self_open,
	.close = self_close,
	.address = self_address,
	.reach = self_reach,
	.post = self_post,
	.poll = self_poll,
	.arm = self_arm,
	.fds = self_fds,
	.region_open = self_region_open,
	.region_close = self_region_close,
	.transfer = self_transfer,
	.atomic = self_atomic,
	.flush = self_flush,
	.drain = self_drain,
	.card = self_get_card,
};
