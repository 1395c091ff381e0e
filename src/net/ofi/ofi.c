/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ofi.c - the ofi driver: its table, open and close, polling and arming.
 *
 * One connectionless endpoint of libfabric carries all peers: ofi_int.h has the frame and the
 * fields.  Peers are in ofi_peer.c, links that come back in ofi_epoch.c, transfers in ofi_out.c and
 * ofi_in.c, over the buffers of ofi_buf.c, or as reads in ofi_large.c and ofi_rma.c, or as
 * transfers of regions in ofi_transfer.c and ofi_region.c; libfabric itself is loaded by ofi_lib.c.
 */
#include "base/cancel.h"
#include "net/driver.h"
#include "net/ofi/ofi.h"

#if __has_include(<rdma/fabric.h>)

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"
#include "net/ofi/ofi_int.h"

#define BLIND_MS 1u /* no event tells that the network has room again, or it has no descriptor */
#define ARM_TRIES 16
#define SETS_ABOVE 3 /* the engine's watch set, the descriptor for other loops, another loop */

static void ofi_close(struct weft_net *net)
{
	struct weft_ofi *o = (struct weft_ofi *)net;
	weft_net_ofi_regions_end(o);
	weft_net_ofi_rma_end(o);
	weft_net_ofi_lib_close(o);
	weft_net_ofi_rma_close(o);
	weft_net_ofi_regions_close(o);
	for (int i = 0; o->peer && i < o->job.size; i++)
		if (o->peer[i].pid_fd >= 0)
			close(o->peer[i].pid_fd);
	weft_net_hub_close(&o->hub);
	free(o->slab);
	free(o->peer);
	free(o);
}

static weft_err ofi_open(const struct weft_net_job *job, const struct weft_net_events *events,
			 struct weft_net **net_p)
{
	struct weft_ofi *o = calloc(1, sizeof *o);
	if (!o || sodium_init() < 0) {
		free(o);
		return WEFT_ERR_NOMEM;
	}
	o->net.driver = &weft_net_driver_ofi;
	o->events = *events;
	o->job = *job;
	o->cq_fd = -1;
	if (weft_net_host_key(o->host_key, sizeof o->host_key))
		strcpy(o->host_key, "unknown");
	weft_err err = weft_net_hub_open(&o->hub);
	if (err) {
		free(o);
		return err;
	}
	o->peer = calloc((size_t)job->size, sizeof *o->peer);
	err = o->peer ? weft_net_ofi_slab_make(o) : WEFT_ERR_NOMEM;
	for (int i = 0; o->peer && i < job->size; i++)
		o->peer[i].pid_fd = -1;
	if (!err)
		err = weft_net_ofi_lib_open(o);
	if (!err && o->cq_fd >= 0 && !weft_net_hub_nests(o->cq_fd, SETS_ABOVE)) {
		weft_info("ofi: libfabric nests its descriptors too deep; a timer polls");
		o->cq_fd = -1;
	}
	if (err) {
		ofi_close(&o->net);
		return err;
	}
	weft_net_ofi_rx_post(o);
	o->card = (struct weft_net_card){
		.max_payload = o->rma ? WEFT_OFI_MAX_LARGE : WEFT_OFI_MAX_PAYLOAD,
		.streams = o->rma,
		.access = (o->rma ? WEFT_NET_READ : 0u) | (o->put ? WEFT_NET_WRITE : 0u),
		.inline_max = WEFT_OFI_MAX_PAYLOAD,
		.eager_max = WEFT_OFI_MAX_PAYLOAD,
		.latency_us = 6,
		.bandwidth_mbs = 2000,
	};
	if (o->atomics && (o->card.atomic_sizes = weft_net_ofi_atomic_sizes(o)))
		o->card.access |= WEFT_NET_ATOMIC;
	weft_debug("ofi: provider %s%s%s", o->provider, o->cq_fd < 0 ? ", no descriptor" : "",
		   o->put   ? ", reads and writes"
		   : o->rma ? ", reads"
			    : "");
	*net_p = &o->net;
	return WEFT_OK;
}

/* Line   ofi2 PROVIDER HOST-KEY PID NAME-IN-HEX */
static weft_err ofi_address(struct weft_net *net, char *buf, size_t size)
{
	struct weft_ofi *o = (struct weft_ofi *)net;
	uint8_t name[WEFT_OFI_NAME_MAX];
	char hex[2 * WEFT_OFI_NAME_MAX + 1];
	size_t len = sizeof name;
	int code = fi_getname(&o->ep->fid, name, &len);
	if (code) {
		weft_error("ofi: the endpoint has no name: %s", weft_net_ofi_lib_error(code));
		return WEFT_ERR_SYS;
	}
	sodium_bin2hex(hex, sizeof hex, name, len);
	int n = snprintf(buf, size, "ofi2 %s %s %d %s", o->provider, o->host_key, (int)getpid(),
			 hex);
	return n > 0 && (size_t)n < size ? WEFT_OK : WEFT_ERR_LIMIT;
}

static int look_at_hub(struct weft_ofi *o)
{
	struct epoll_event ev[16];
	int n = 0, got = weft_net_hub_look(&o->hub, ev, weft_countof(ev));
	for (int i = 0; i < got; i++) {
		switch (weft_net_hub_kind(ev[i].data.u64)) {
		case WEFT_HUB_TIMER:
			weft_net_hub_ticked(&o->hub);
			break;
		case WEFT_HUB_WAKE:
			weft_net_hub_quiet(&o->hub);
			break;
		case WEFT_OFI_EV_PID:
			n += weft_net_ofi_on_pid(o, weft_net_hub_index(ev[i].data.u64));
			break;
		}
	}
	weft_net_ofi_ping(o);
	uint64_t now = weft_clock_ns();
	for (int i = 0; i < o->job.size; i++)
		if (o->peer[i].dead_already && (!o->peer[i].gone || now > o->peer[i].gone_ns))
			weft_net_ofi_peer_down(o, i, WEFT_ERR_PEER, "its process has ended");
	return n;
}

static int poll_once(struct weft_ofi *o, bool *found_p)
{
	int n = weft_net_ofi_take(o, found_p);
	n += weft_net_ofi_answer_byes(o);
	if (weft_unlikely(o->owes))
		weft_net_ofi_answer_strays(o);
	/* Relaxed: a hint; arm() orders. */
	if (weft_unlikely(atomic_load_explicit(&o->x_partials, memory_order_relaxed)))
		n += weft_net_ofi_transfers_go_on(o);
	if (weft_unlikely(o->revived))
		n += weft_net_ofi_deliver_revived(o);
	/* Relaxed: a hint; arm() orders. */
	if (weft_unlikely(atomic_load_explicit(&o->x_blocked, memory_order_relaxed)))
		n += weft_net_ofi_tell_ready(o);
	return n;
}

/* How often a poll is due although nothing rings. */
static unsigned tick_ms(struct weft_ofi *o)
{
	if (o->cq_fd < 0 || o->rx_idle || o->owes || o->n_gone ||
	    atomic_load_explicit(&o->x_partials, memory_order_seq_cst) ||
	    atomic_load_explicit(&o->x_blocked, memory_order_seq_cst))
		return BLIND_MS;
	return o->n_remote ? WEFT_OFI_PING_MS : 0;
}

/* May we sleep, as far as libfabric knows? */
static bool may_sleep(struct weft_ofi *o)
{
	struct fid *fids[] = {&o->cq->fid};
	if (o->revived)
		return false;
	return o->cq_fd < 0 || fi_trywait(o->fabric, fids, 1) == FI_SUCCESS;
}

/* Polled while armed: stays armed, whatever has rung. */
static int poll_armed(struct weft_ofi *o)
{
	int n = look_at_hub(o);
	/* ARM -> RING (nudge), before the look at the flags. */
	(void)atomic_exchange_explicit(&o->x_armed, true, memory_order_seq_cst);
	for (int i = 0; i < ARM_TRIES; i++) {
		bool found = false;
		n += poll_once(o, &found);
		if (!found && may_sleep(o)) {
			weft_net_hub_tick(&o->hub, tick_ms(o));
			return n;
		}
	}
	/* There is more than one poll takes: a thread must poll again. */
	weft_net_hub_ring(&o->hub);
	return n;
}

static int look_for_all(struct weft_ofi *o)
{
	bool found = false;
	if (weft_unlikely(o->armed))
		return poll_armed(o);
	int n = poll_once(o, &found);
	if (weft_unlikely(weft_net_hub_due(&o->hub, false)))
		n += look_at_hub(o);
	return n;
}

static int ofi_poll(struct weft_net *net)
{
	int was = weft_cancel_off(); /* what a provider calls is its own affair */
	int n = look_for_all((struct weft_ofi *)net);
	weft_cancel_back(was);
	return n;
}

static void disarm_ofi(struct weft_ofi *o)
{
	o->armed = false;
	/* Relaxed: a late ring costs one wake-up. */
	atomic_store_explicit(&o->x_armed, false, memory_order_relaxed);
}

static weft_err ofi_arm(struct weft_net *net, enum weft_arm_level level)
{
	struct weft_ofi *o = (struct weft_ofi *)net;
	if (level == WEFT_ARM_OFF) {
		disarm_ofi(o);
		weft_net_hub_hurry(&o->hub);
		return WEFT_OK;
	}
	weft_net_hub_tick(&o->hub, tick_ms(o));
	/* ARM -> RING (nudge): exchange before the look at the flags. */
	(void)atomic_exchange_explicit(&o->x_armed, true, memory_order_seq_cst);
	if (may_sleep(o)) {
		/* A poster that was FULL before it could see us armed counts on the timer. */
		weft_net_hub_tick(&o->hub, tick_ms(o));
		o->armed = true;
		return WEFT_OK;
	}
	disarm_ofi(o);
	return WEFT_AGAIN;
}

static unsigned ofi_fds(struct weft_net *net, int fd[WEFT_NET_FDS])
{
	struct weft_ofi *o = (struct weft_ofi *)net;
	fd[0] = o->hub.epfd;
	if (o->cq_fd >= 0)
		fd[1] = o->cq_fd;
	return o->cq_fd >= 0 ? 2 : 1;
}

static const struct weft_net_card *ofi_card(struct weft_net *net, int peer)
{
	return &((struct weft_ofi *)net)->card;
}

static void ofi_upcalls(struct weft_net *net, const struct weft_net_events *events)
{
	weft_net_events_take(&((struct weft_ofi *)net)->events, events);
}

const struct weft_driver weft_net_driver_ofi = {
	.name = "ofi",
	.open = ofi_open,
	.close = ofi_close,
	.upcalls = ofi_upcalls,
	.address = ofi_address,
	.reach = weft_net_ofi_reach,
	.post = weft_net_ofi_post,
	.poll = ofi_poll,
	.arm = ofi_arm,
	.fds = ofi_fds,
	.region_open = weft_net_ofi_region_open,
	.region_close = weft_net_ofi_region_close,
	.transfer = weft_net_ofi_transfer,
	.atomic = weft_net_ofi_atomic,
	.flush = weft_net_ofi_flush,
	.drain = weft_net_ofi_drain,
	.card = ofi_card,
	.drop = weft_net_ofi_drop,
	.revive = weft_net_ofi_revive,
	.ended = weft_net_ofi_ended,
};

#else

static weft_err no_ofi(const struct weft_net_job *job, const struct weft_net_events *events,
		       struct weft_net **net_p)
{
	return WEFT_ERR_UNSUPPORTED;
}

/* Built where libfabric's headers were missing: never opens, so nothing else is called. */
const struct weft_driver weft_net_driver_ofi = {.name = "ofi", .open = no_ofi};

#endif
