/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ofi.c - the ofi driver: its table, post, poll, arming, over a connectionless endpoint.
 *
 * Who is there?  Nothing is connected, so nobody tells that a peer has ended.  On this host a pidfd
 * tells.  A peer elsewhere is sent a ping every second while nothing else is under way: the network
 * then either fails it, or, having lost its connection, does not take it; after three seconds of
 * that the peer counts as dead.  A process that is merely stopped keeps its connection.
 *
 * A link that broke may be taken up again (revive): see Epochs in ofi_int.h.
 *
 * Leaving.  Closing the endpoint may lose what the network still holds, so a process that leaves
 * says BYE, and waits until each peer has answered that it heard.
 */
#include "net/driver.h"
#include "net/ofi.h"

struct weft_ofi_lacks weft_ofi_lacks;

#if __has_include(<rdma/fabric.h>)

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/counters.h"
#include "base/log.h"
#include "base/settings.h"
#include "net/ofi_int.h"
#include "net/ring.h"

#define TAKES_PER_POLL 64
#define PING_MS 1000u
#define GONE_NS 1500000000u
#define REFUSED_NS 3000000000u
#define BLIND_MS 1u /* nobody tells when the network has room again, or has no descriptor */
#define ARM_TRIES 16

/* ---- buffers ------------------------------------------------------------------------------ */

static size_t buf_bytes(size_t payload)
{
	return weft_align_up(sizeof(struct weft_ofi_buf) + payload, WEFT_CACHELINE);
}

static void free_lock(struct weft_ofi *o)
{
	/* LOCK <- UNLOCK.  Carries: the two lists.  Ends: held for a few instructions. */
	while (atomic_exchange_explicit(&o->x_free_lock, true, memory_order_acquire))
		weft_cpu_relax();
}

static void free_unlock(struct weft_ofi *o)
{
	/* UNLOCK -> LOCK. */
	atomic_store_explicit(&o->x_free_lock, false, memory_order_release);
}

static struct weft_ofi_buf *buf_take(struct weft_ofi *o, size_t len)
{
	free_lock(o);
	struct weft_ofi_buf **list = &o->free_large;
	if (len <= WEFT_OFI_SMALL && o->free_small)
		list = &o->free_small;
	struct weft_ofi_buf *b = *list;
	if (b)
		*list = b->next;
	free_unlock(o);
	return b;
}

static void buf_give(struct weft_ofi *o, struct weft_ofi_buf *b)
{
	free_lock(o);
	struct weft_ofi_buf **list = b->is_small ? &o->free_small : &o->free_large;
	b->next = *list;
	*list = b;
	free_unlock(o);
}

static weft_err slab_make(struct weft_ofi *o)
{
	const struct {
		unsigned n;
		size_t payload;
		struct weft_ofi_buf **list;
	} kind[] = {{WEFT_OFI_N_SMALL, WEFT_OFI_SMALL, &o->free_small},
		    {WEFT_OFI_N_LARGE, WEFT_OFI_MAX_PAYLOAD, &o->free_large},
		    {WEFT_OFI_N_RX, WEFT_OFI_MAX_PAYLOAD, &o->rx_idle}};
	for (size_t k = 0; k < weft_countof(kind); k++)
		o->slab_bytes += kind[k].n * buf_bytes(kind[k].payload);
	o->slab_bytes = weft_align_up(o->slab_bytes, 4096);
	o->slab = aligned_alloc(4096, o->slab_bytes);
	if (!o->slab)
		return WEFT_ERR_NOMEM;
	uint8_t *at = o->slab;
	for (size_t k = 0; k < weft_countof(kind); k++)
		for (unsigned i = 0; i < kind[k].n; i++) {
			struct weft_ofi_buf *b = (struct weft_ofi_buf *)at;
			memset(b, 0, sizeof *b);
			b->is_small = k == 0;
			b->is_rx = k == 2;
			b->next = *kind[k].list;
			*kind[k].list = b;
			at += buf_bytes(kind[k].payload);
		}
	return WEFT_OK;
}

/* Gives the receive buffers that are idle to the network. */
static void rx_post(struct weft_ofi *o)
{
	while (o->rx_idle) {
		struct weft_ofi_buf *b = o->rx_idle;
		o->rx_idle = b->next;
		if (fi_recv(o->ep, &b->frame, sizeof b->frame + WEFT_OFI_MAX_PAYLOAD, o->desc,
			    FI_ADDR_UNSPEC, b) == 0)
			continue;
		b->next = o->rx_idle; /* tried again with the next poll */
		o->rx_idle = b;
		return;
	}
}

/* ---- life --------------------------------------------------------------------------------- */

/* What proves packets from one rank to another. */
static uint64_t token_for(const struct weft_net_job *job, int from, int to)
{
	char text[256];
	uint8_t out[crypto_generichash_BYTES_MIN];
	uint64_t token;
	snprintf(text, sizeof text, "weft ofi %d %d %s", from, to, job->jobid);
	crypto_generichash(out, sizeof out, (const uint8_t *)text, strlen(text), job->secret,
			   crypto_generichash_KEYBYTES);
	memcpy(&token, out, sizeof token);
	return token;
}

static void ofi_close(struct weft_net *net)
{
	struct weft_ofi *o = (struct weft_ofi *)net;
	weft_ofi_lib_close(o);
	for (int i = 0; o->peer && i < o->job.size; i++)
		if (o->peer[i].pid_fd >= 0)
			close(o->peer[i].pid_fd);
	weft_hub_close(&o->hub);
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
	o->net.driver = &weft_driver_ofi;
	o->events = *events;
	o->job = *job;
	o->cq_fd = -1;
	if (weft_net_host_key(o->host_key, sizeof o->host_key))
		strcpy(o->host_key, "unknown");
	weft_err err = weft_hub_open(&o->hub);
	if (err) {
		free(o);
		return err;
	}
	o->peer = calloc((size_t)job->size, sizeof *o->peer);
	err = o->peer ? slab_make(o) : WEFT_ERR_NOMEM;
	for (int i = 0; o->peer && i < job->size; i++)
		o->peer[i].pid_fd = -1;
	if (!err)
		err = weft_ofi_lib_open(o);
	if (!err && o->cq_fd >= 0)
		err = weft_hub_add(&o->hub, o->cq_fd, EPOLLIN, weft_hub_data(WEFT_OFI_EV_CQ, 0));
	if (err) {
		ofi_close(&o->net);
		return err;
	}
	rx_post(o);
	o->card = (struct weft_net_card){
		.max_payload = WEFT_OFI_MAX_PAYLOAD,
		.inline_max = WEFT_OFI_MAX_PAYLOAD,
		.eager_max = WEFT_OFI_MAX_PAYLOAD,
		.latency_us = 6,
		.bandwidth_mbs = 2000,
	};
	weft_debug("ofi: provider %s%s", o->provider, o->cq_fd < 0 ? ", no descriptor" : "");
	*net_p = &o->net;
	return WEFT_OK;
}

/* Line   ofi1 PROVIDER HOST-KEY PID NAME-IN-HEX */
static weft_err ofi_address(struct weft_net *net, char *buf, size_t size)
{
	struct weft_ofi *o = (struct weft_ofi *)net;
	uint8_t name[WEFT_OFI_NAME_MAX];
	char hex[2 * WEFT_OFI_NAME_MAX + 1];
	size_t len = sizeof name;
	int code = fi_getname(&o->ep->fid, name, &len);
	if (code) {
		weft_error("ofi: the endpoint has no name: %s", weft_ofi_lib_error(code));
		return WEFT_ERR_SYS;
	}
	sodium_bin2hex(hex, sizeof hex, name, len);
	int n = snprintf(buf, size, "ofi1 %s %s %d %s", o->provider, o->host_key, (int)getpid(),
			 hex);
	return n > 0 && (size_t)n < size ? WEFT_OK : WEFT_ERR_LIMIT;
}

/* Watches a process of this host, so that its end is seen. */
static void watch_process(struct weft_ofi *o, int peer, const char *host, int pid)
{
	struct weft_ofi_peer *p = &o->peer[peer];
	p->remote = true;
	if (strcmp(host, o->host_key) == 0 && !weft_ofi_lacks.pidfd) {
		p->pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
		p->dead_already = p->pid_fd < 0 && errno == ESRCH;
		if (p->pid_fd >= 0 && !weft_hub_add(&o->hub, p->pid_fd, EPOLLIN,
						    weft_hub_data(WEFT_OFI_EV_PID, (uint64_t)peer)))
			p->remote = false;
	}
	o->n_remote += p->remote;
}

static weft_err ofi_reach(struct weft_net *net, int peer, const char *address)
{
	struct weft_ofi *o = (struct weft_ofi *)net;
	char provider[64], host[WEFT_HOST_KEY_MAX], hex[2 * WEFT_OFI_NAME_MAX + 1];
	uint8_t name[WEFT_OFI_NAME_MAX];
	size_t len;
	int pid;
	if (peer == o->job.rank || !address || strncmp(address, "ofi1 ", 5) != 0)
		return WEFT_ERR_UNSUPPORTED;
	if (sscanf(address, "ofi1 %63s %127s %d %256s", provider, host, &pid, hex) != 4 ||
	    sodium_hex2bin(name, sizeof name, hex, strlen(hex), NULL, &len, NULL)) {
		weft_error("ofi: rank %d published an address that makes no sense", peer);
		return WEFT_ERR_PROTO;
	}
	if (strcmp(provider, o->provider) != 0) {
		weft_warn("ofi: rank %d uses the provider %s, we use %s", peer, provider,
			  o->provider);
		return WEFT_ERR_UNSUPPORTED;
	}
	struct weft_ofi_peer *p = &o->peer[peer];
	int code = fi_av_insert(o->av, name, 1, &p->addr, 0, NULL);
	if (code != 1) {
		weft_warn("ofi: the address of rank %d is of no use here", peer);
		return WEFT_ERR_UNSUPPORTED;
	}
	p->token_out = token_for(&o->job, o->job.rank, peer);
	p->token_in = token_for(&o->job, peer, o->job.rank);
	watch_process(o, peer, host, pid);
	/* REACHED -> USE (posters).  Carries: addr, the tokens. */
	atomic_store_explicit(&p->x_state, WEFT_OFI_REACHED, memory_order_release);
	return WEFT_OK;
}

/* ---- the way out -------------------------------------------------------------------------- */

static void nudge(struct weft_ofi *o)
{
	/* RING <- ARM (ofi_arm, poll_armed): the caller's flag was stored seq_cst before. */
	if (atomic_load_explicit(&o->x_armed, memory_order_seq_cst) &&
	    atomic_exchange_explicit(&o->x_armed, false, memory_order_seq_cst))
		weft_hub_ring(&o->hub);
}

static void set_blocked(struct weft_ofi *o, struct weft_ofi_peer *p)
{
	/* BLOCK -> READY (tell_ready). */
	if (!atomic_exchange_explicit(&p->x_blocked, true, memory_order_seq_cst))
		atomic_fetch_add_explicit(&o->x_blocked, 1, memory_order_seq_cst);
}

/* Sends one frame; false: not now. */
static bool send_in_epoch(struct weft_ofi *o, int peer, enum weft_ofi_kind kind, uint32_t epoch,
			  const void *head, const struct iovec *iov, unsigned n, size_t len)
{
	struct weft_ofi_peer *p = &o->peer[peer];
	struct weft_ofi_buf *b = buf_take(o, len);
	if (!b)
		return false;
	b->peer = peer;
	b->frame = (struct weft_ofi_frame){.token = p->token_out,
					   .rank = (uint32_t)o->job.rank,
					   .sequence = p->out_sequence,
					   .len = (uint32_t)len,
					   .kind = kind | epoch << WEFT_OFI_EPOCH_SHIFT};
	if (head)
		memcpy(b->frame.head, head, WEFT_NET_HEAD);
	if (len)
		weft_ring_gather(b->payload, iov, n, len);
	/* Relaxed: counts; the poller takes them back after the network has ordered it. */
	atomic_fetch_add_explicit(&p->x_under, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&o->x_under, 1, memory_order_relaxed);
	if (weft_likely(fi_send(o->ep, &b->frame, sizeof b->frame + len, o->desc, p->addr, b) ==
			0)) {
		p->out_sequence += kind == WEFT_OFI_PACKET;
		return true;
	}
	/* Queues are full, or the connection below is still being made; an error that stays shows
	 * with the next completion. */
	atomic_fetch_sub_explicit(&p->x_under, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&o->x_under, 1, memory_order_relaxed);
	buf_give(o, b);
	return false;
}

static bool send_frame(struct weft_ofi *o, int peer, enum weft_ofi_kind kind, const void *head,
		       const struct iovec *iov, unsigned n, size_t len)
{
	return send_in_epoch(o, peer, kind, o->peer[peer].epoch, head, iov, n, len);
}

static enum weft_post ofi_post(struct weft_net *net, int peer, const void *head,
			       const struct iovec *iov, unsigned n, size_t len, void *cookie)
{
	struct weft_ofi *o = (struct weft_ofi *)net;
	struct weft_ofi_peer *p = &o->peer[peer];
	/* USE <- REACHED. */
	if (weft_unlikely(atomic_load_explicit(&p->x_state, memory_order_acquire) !=
			  WEFT_OFI_REACHED))
		return WEFT_POST_DOWN;
	/* Relaxed: our own count, and the poller's that may be late. */
	bool room = atomic_load_explicit(&p->x_under, memory_order_relaxed) < WEFT_OFI_SHARE &&
		    !p->gone;
	if (weft_likely(room && send_frame(o, peer, WEFT_OFI_PACKET, head, iov, n, len)))
		return WEFT_POST_DONE;
	set_blocked(o, p);
	if (atomic_load_explicit(&p->x_state, memory_order_seq_cst) != WEFT_OFI_REACHED)
		return WEFT_POST_DOWN;
	nudge(o);
	return WEFT_POST_FULL;
}

/* ---- the way in --------------------------------------------------------------------------- */

static void rx_idle(struct weft_ofi *o, struct weft_ofi_buf *b)
{
	b->next = o->rx_idle;
	o->rx_idle = b;
}

static void drop_early(struct weft_ofi *o, struct weft_ofi_peer *p)
{
	while (p->early) {
		struct weft_ofi_buf *b = p->early;
		p->early = b->next;
		rx_idle(o, b);
	}
}

static void peer_down(struct weft_ofi *o, int peer, weft_err err, const char *why)
{
	struct weft_ofi_peer *p = &o->peer[peer];
	char text[256];
	/* Relaxed: only the poller, we, writes it. */
	if (atomic_load_explicit(&p->x_state, memory_order_relaxed) == WEFT_OFI_DOWN)
		return;
	/* seq_cst: a poster sees DOWN, or we see its x_blocked. */
	atomic_store_explicit(&p->x_state, WEFT_OFI_DOWN, memory_order_seq_cst);
	if (atomic_exchange_explicit(&p->x_blocked, false, memory_order_seq_cst))
		atomic_fetch_sub_explicit(&o->x_blocked, 1, memory_order_relaxed);
	if (p->pid_fd >= 0)
		weft_hub_remove(&o->hub, p->pid_fd);
	o->n_remote -= p->remote;
	o->n_gone -= p->gone;
	drop_early(o, p);
	if (err)
		snprintf(text, sizeof text, "lost rank %d (ofi): %s", peer, why);
	else
		snprintf(text, sizeof text, "rank %d left (ofi)", peer);
	o->events.down(o->events.arg, peer, err, text);
}

/* Messages are matched in order, but a long one may be complete after a short one behind it. */
static void keep_early(struct weft_ofi_peer *p, struct weft_ofi_buf *b)
{
	struct weft_ofi_buf **at = &p->early;
	while (*at && (int32_t)((*at)->frame.sequence - b->frame.sequence) < 0)
		at = &(*at)->next;
	b->next = *at;
	*at = b;
}

/* What was early and is in turn now. */
static int deliver_early(struct weft_ofi *o, int peer)
{
	struct weft_ofi_peer *p = &o->peer[peer];
	int n = 0;
	while (p->early && p->early->frame.sequence == p->in_sequence) {
		struct weft_ofi_buf *b = p->early;
		p->early = b->next;
		o->events.packet(o->events.arg, peer, b->frame.head, b->payload, b->frame.len);
		p->in_sequence++;
		rx_idle(o, b);
		n++;
	}
	return n;
}

static int deliver(struct weft_ofi *o, struct weft_ofi_buf *b)
{
	int peer = (int)b->frame.rank;
	struct weft_ofi_peer *p = &o->peer[peer];
	o->events.packet(o->events.arg, peer, b->frame.head, b->payload, b->frame.len);
	p->in_sequence++;
	rx_idle(o, b);
	return 1 + deliver_early(o, peer);
}

/* The links that were taken up again. */
static int deliver_revived(struct weft_ofi *o)
{
	int n = 0;
	o->revived = false;
	for (int i = 0; i < o->job.size; i++)
		if (atomic_load_explicit(&o->peer[i].x_state, memory_order_relaxed) ==
		    WEFT_OFI_REACHED)
			n += deliver_early(o, i);
	return n;
}

/* A message that does not belong to the link as it is: of another epoch, or the link is down. */
static int on_other_epoch(struct weft_ofi *o, struct weft_ofi_buf *b, bool whole)
{
	const struct weft_ofi_frame *f = &b->frame;
	int peer = (int)f->rank, n = 0;
	struct weft_ofi_peer *p = &o->peer[peer];
	uint32_t epoch = weft_ofi_epoch(f);
	bool fresh = epoch > p->epoch;
	if (fresh && atomic_load_explicit(&p->x_state, memory_order_relaxed) == WEFT_OFI_REACHED) {
		peer_down(o, peer, WEFT_ERR_PEER, "it took the link up anew");
		n = 1;
	}
	if (weft_ofi_kind(f) == WEFT_OFI_BYE) {
		p->owes_heard = o->owes = true; /* it leaves, and nothing of it will be delivered */
		p->owes_epoch = epoch;
	}
	if (fresh && epoch > p->epoch_next) {
		drop_early(o, p);
		p->epoch_next = epoch;
	}
	/* Until the link is taken up. */
	if (fresh && epoch == p->epoch_next && whole && f->sequence < WEFT_OFI_SHARE)
		keep_early(p, b);
	else
		rx_idle(o, b);
	return n;
}

/* A message that is complete; returns the upcalls made. */
static int on_message(struct weft_ofi *o, struct weft_ofi_buf *b, size_t bytes)
{
	const struct weft_ofi_frame *f = &b->frame;
	int peer = (int)f->rank, n = 0;
	if (bytes < sizeof *f || f->rank >= (uint32_t)o->job.size ||
	    sodium_memcmp(&f->token, &o->peer[peer].token_in, sizeof f->token) != 0) {
		weft_count(WEFT_CNT_AUTH_REFUSED, 1);
		rx_idle(o, b);
		return 0;
	}
	struct weft_ofi_peer *p = &o->peer[peer];
	uint32_t ahead = f->sequence - p->in_sequence;
	bool whole = weft_ofi_kind(f) == WEFT_OFI_PACKET && f->len == bytes - sizeof *f;
	/* Relaxed: only the poller, we, writes it. */
	if (weft_unlikely(atomic_load_explicit(&p->x_state, memory_order_relaxed) !=
				  WEFT_OFI_REACHED ||
			  weft_ofi_epoch(f) != p->epoch))
		return on_other_epoch(o, b, whole);
	p->heard = true;
	if (whole && ahead < WEFT_OFI_N_RX) {
		if (!ahead)
			return deliver(o, b);
		keep_early(p, b);
		return 0;
	}
	if (weft_ofi_kind(f) == WEFT_OFI_BYE) {
		p->bye_got = true;
		p->bye_sequence = f->sequence;
	} else if (weft_ofi_kind(f) == WEFT_OFI_HEARD) {
		p->bye_heard = true;
	} else if (weft_ofi_kind(f) != WEFT_OFI_PING) {
		peer_down(o, peer, WEFT_ERR_PROTO, "a packet of impossible length or order");
		n = 1;
	}
	rx_idle(o, b);
	return n;
}

/* The answer to a BYE; when it is out, the peer is gone for us. */
static int answer_byes(struct weft_ofi *o)
{
	int n = 0;
	for (int i = 0; i < o->job.size; i++) {
		struct weft_ofi_peer *p = &o->peer[i];
		if (!p->bye_got || p->bye_answered || p->bye_sequence != p->in_sequence)
			continue;
		if (!send_frame(o, i, WEFT_OFI_HEARD, NULL, NULL, 0, 0)) {
			set_blocked(o, p); /* so that somebody looks again soon */
			continue;
		}
		p->bye_answered = true;
		peer_down(o, i, WEFT_OK, "");
		n++;
	}
	return n;
}

/* BYEs that belong to no link of ours: the peer waits for the answer all the same. */
static void answer_strays(struct weft_ofi *o)
{
	o->owes = false;
	for (int i = 0; i < o->job.size; i++) {
		struct weft_ofi_peer *p = &o->peer[i];
		if (p->owes_heard)
			p->owes_heard = !send_in_epoch(o, i, WEFT_OFI_HEARD, p->owes_epoch, NULL,
						       NULL, 0, 0);
		o->owes |= p->owes_heard;
	}
}

static int send_over(struct weft_ofi *o, struct weft_ofi_buf *b, int code)
{
	int peer = b->peer, n = 0;
	struct weft_ofi_peer *p = &o->peer[peer];
	bool last_words = weft_ofi_kind(&b->frame) == WEFT_OFI_HEARD ||
			  weft_ofi_kind(&b->frame) == WEFT_OFI_BYE;
	bool old = weft_ofi_epoch(&b->frame) != p->epoch;
	atomic_fetch_sub_explicit(&p->x_under, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&o->x_under, 1, memory_order_relaxed);
	buf_give(o, b);
	if (old)
		return 0; /* that link has ended already */
	if (code && !p->bye_got && !last_words) {
		peer_down(o, peer, WEFT_ERR_PEER, weft_ofi_lib_error(code));
		n++;
	} else if (code) {
		p->bye_heard = true; /* nobody is left to answer */
	}
	return n;
}

/* Takes a failed operation out of the queue. */
static int take_error(struct weft_ofi *o)
{
	struct fi_cq_err_entry e;
	memset(&e, 0, sizeof e);
	if (fi_cq_readerr(o->cq, &e, 0) <= 0 || !e.op_context)
		return 0;
	struct weft_ofi_buf *b = e.op_context;
	if (!b->is_rx)
		return send_over(o, b, e.err ? e.err : FI_EIO);
	rx_idle(o, b);
	return 0;
}

/* Takes completions; *found_p: were there any? */
static int take_some(struct weft_ofi *o, bool *found_p)
{
	int n = 0;
	for (int round = 0; round < TAKES_PER_POLL / 16; round++) {
		struct fi_cq_msg_entry e[16];
		ssize_t got = fi_cq_read(o->cq, e, weft_countof(e));
		if (got == -FI_EAVAIL) {
			*found_p = true;
			n += take_error(o);
			continue;
		}
		if (got <= 0)
			break;
		*found_p = true;
		for (ssize_t i = 0; i < got; i++) {
			struct weft_ofi_buf *b = e[i].op_context;
			if (!b->is_rx) {
				n += send_over(o, b, 0);
				continue;
			}
			n += on_message(o, b, e[i].len);
		}
		if (got < (ssize_t)weft_countof(e))
			break;
	}
	if (o->rx_idle)
		rx_post(o);
	return n;
}

/* Posters that found no room may try again. */
static int tell_ready(struct weft_ofi *o)
{
	int n = 0;
	for (int i = 0; i < o->job.size; i++) {
		struct weft_ofi_peer *p = &o->peer[i];
		/* READY <- BLOCK (set_blocked). */
		if (!atomic_load_explicit(&p->x_blocked, memory_order_seq_cst) ||
		    atomic_load_explicit(&p->x_under, memory_order_relaxed) > WEFT_OFI_SHARE / 2 ||
		    !atomic_exchange_explicit(&p->x_blocked, false, memory_order_seq_cst))
			continue;
		atomic_fetch_sub_explicit(&o->x_blocked, 1, memory_order_relaxed);
		o->events.ready(o->events.arg, i);
		n++;
	}
	return n;
}

/* A process of this host has ended: what it had sent before comes first. */
static int on_pid(struct weft_ofi *o, int peer)
{
	int n = 0, quiet = 0;
	while (quiet < 3) { /* ends: nobody sends any more */
		bool found = false;
		n += take_some(o, &found);
		quiet = found ? 0 : quiet + 1;
	}
	if (o->peer[peer].bye_got)
		n += answer_byes(o);
	o->peer[peer].bye_heard = true;
	o->peer[peer].dead_already = true;
	peer_down(o, peer, WEFT_ERR_PEER, "its process ended without leaving the job");
	return n + 1;
}

/* Lets the network find out who is gone. */
static void ping(struct weft_ofi *o)
{
	uint64_t now = weft_clock_ns();
	if (!o->n_remote || now < o->ping_ns)
		return;
	o->ping_ns = now + PING_MS * 1000000ull;
	for (int i = 0; i < o->job.size; i++) {
		struct weft_ofi_peer *p = &o->peer[i];
		if (!p->remote || !p->heard || p->bye_got ||
		    atomic_load_explicit(&p->x_under, memory_order_relaxed) ||
		    atomic_load_explicit(&p->x_state, memory_order_relaxed) != WEFT_OFI_REACHED)
			continue;
		if (send_frame(o, i, WEFT_OFI_PING, NULL, NULL, 0, 0))
			p->refused_ns = 0;
		else if (!p->refused_ns)
			p->refused_ns = now;
		else if (now - p->refused_ns >= REFUSED_NS)
			peer_down(o, i, WEFT_ERR_PEER, "its connection is lost");
	}
}

static int look(struct weft_ofi *o)
{
	struct epoll_event ev[16];
	int n = 0, got = weft_hub_look(&o->hub, ev, weft_countof(ev));
	for (int i = 0; i < got; i++) {
		switch (weft_hub_kind(ev[i].data.u64)) {
		case WEFT_HUB_TIMER:
			weft_hub_ticked(&o->hub);
			break;
		case WEFT_HUB_WAKE:
			weft_hub_quiet(&o->hub);
			break;
		case WEFT_OFI_EV_PID:
			n += on_pid(o, weft_hub_index(ev[i].data.u64));
			break;
		}
	}
	ping(o);
	uint64_t now = weft_clock_ns();
	for (int i = 0; i < o->job.size; i++)
		if (o->peer[i].dead_already && (!o->peer[i].gone || now > o->peer[i].gone_ns))
			peer_down(o, i, WEFT_ERR_PEER, "its process has ended");
	return n;
}

/* ---- polling and arming ------------------------------------------------------------------- */

static int poll_once(struct weft_ofi *o, bool *found_p)
{
	int n = take_some(o, found_p);
	n += answer_byes(o);
	if (weft_unlikely(o->owes))
		answer_strays(o);
	if (weft_unlikely(o->revived))
		n += deliver_revived(o);
	/* Relaxed: a hint; arm() orders. */
	if (weft_unlikely(atomic_load_explicit(&o->x_blocked, memory_order_relaxed)))
		n += tell_ready(o);
	return n;
}

/* How often somebody must look although nothing rings. */
static unsigned tick_ms(struct weft_ofi *o)
{
	if (o->cq_fd < 0 || o->rx_idle || o->owes || o->n_gone ||
	    atomic_load_explicit(&o->x_blocked, memory_order_seq_cst))
		return BLIND_MS;
	return o->n_remote ? PING_MS : 0;
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
	int n = look(o);
	/* ARM -> RING (nudge), before the look at the flags. */
	(void)atomic_exchange_explicit(&o->x_armed, true, memory_order_seq_cst);
	for (int i = 0; i < ARM_TRIES; i++) {
		bool found = false;
		n += poll_once(o, &found);
		if (!found && may_sleep(o)) {
			weft_hub_tick(&o->hub, tick_ms(o));
			return n;
		}
	}
	/* There is more than one poll takes: somebody must come again. */
	weft_hub_ring(&o->hub);
	return n;
}

static int ofi_poll(struct weft_net *net)
{
	struct weft_ofi *o = (struct weft_ofi *)net;
	bool found = false;
	if (weft_unlikely(o->armed))
		return poll_armed(o);
	int n = poll_once(o, &found);
	if (weft_unlikely(weft_hub_due(&o->hub, false)))
		n += look(o);
	return n;
}

static weft_err ofi_arm(struct weft_net *net)
{
	struct weft_ofi *o = (struct weft_ofi *)net;
	weft_hub_tick(&o->hub, tick_ms(o));
	/* ARM -> RING (nudge): exchange before the look at the flags. */
	(void)atomic_exchange_explicit(&o->x_armed, true, memory_order_seq_cst);
	if (may_sleep(o)) {
		/* A poster that was FULL before it could see us armed counts on the timer. */
		weft_hub_tick(&o->hub, tick_ms(o));
		o->armed = true;
		return WEFT_OK;
	}
	atomic_store_explicit(&o->x_armed, false, memory_order_relaxed);
	return WEFT_AGAIN;
}

static void ofi_disarm(struct weft_net *net)
{
	struct weft_ofi *o = (struct weft_ofi *)net;
	o->armed = false;
	/* Relaxed: a late ring costs one wake-up. */
	atomic_store_explicit(&o->x_armed, false, memory_order_relaxed);
	weft_hub_hurry(&o->hub);
}

static int ofi_fd(struct weft_net *net)
{
	return ((struct weft_ofi *)net)->hub.epfd;
}

static weft_err ofi_copy(struct weft_net *net, int peer, uint64_t remote, const struct iovec *iov,
			 unsigned n, size_t len)
{
	return WEFT_ERR_UNSUPPORTED;
}

static weft_err ofi_drain(struct weft_net *net)
{
	struct weft_ofi *o = (struct weft_ofi *)net;
	weft_err err = WEFT_OK;
	for (int i = 0; i < o->job.size; i++) {
		struct weft_ofi_peer *p = &o->peer[i];
		bool talked = p->heard || p->out_sequence;
		if (!talked ||
		    atomic_load_explicit(&p->x_state, memory_order_relaxed) != WEFT_OFI_REACHED)
			continue;
		bool sent = atomic_load_explicit(&p->x_bye_sent, memory_order_relaxed);
		if (!sent && send_frame(o, i, WEFT_OFI_BYE, NULL, NULL, 0, 0)) {
			atomic_store_explicit(&p->x_bye_sent, true, memory_order_relaxed);
			sent = true;
		}
		/* A peer that leaves, too, has got all of ours when it answers. */
		if (!sent || !p->bye_heard)
			err = WEFT_AGAIN;
	}
	return atomic_load_explicit(&o->x_under, memory_order_relaxed) ? WEFT_AGAIN : err;
}

/* ---- a link that comes back ------------------------------------------------------------------ */

static void ofi_drop(struct weft_net *net, int peer, const char *why)
{
	struct weft_ofi *o = (struct weft_ofi *)net;
	struct weft_ofi_peer *p = &o->peer[peer];
	if (atomic_load_explicit(&p->x_state, memory_order_relaxed) == WEFT_OFI_REACHED)
		peer_down(o, peer, WEFT_ERR_PEER, why);
}

/* The peer learns of it by the first frame of the new epoch.  A process that has ended is tried for
 * a while, as a network would. */
static void ofi_revive(struct weft_net *net, int peer)
{
	struct weft_ofi *o = (struct weft_ofi *)net;
	struct weft_ofi_peer *p = &o->peer[peer];
	if (atomic_load_explicit(&p->x_state, memory_order_relaxed) != WEFT_OFI_DOWN)
		return;
	p->epoch = p->epoch_next > p->epoch ? p->epoch_next : p->epoch + 1;
	p->epoch_next = p->epoch;
	p->in_sequence = p->out_sequence = 0;
	p->heard = p->bye_got = p->bye_answered = p->bye_heard = false;
	atomic_store_explicit(&p->x_bye_sent, false, memory_order_relaxed);
	p->refused_ns = 0;
	p->gone = p->dead_already;
	p->gone_ns = weft_clock_ns() + GONE_NS;
	o->n_gone += p->gone;
	o->n_remote += p->remote;
	if (p->pid_fd >= 0 && !p->gone && !p->remote &&
	    weft_hub_add(&o->hub, p->pid_fd, EPOLLIN,
			 weft_hub_data(WEFT_OFI_EV_PID, (uint64_t)peer))) {
		p->remote = true; /* then pings tell */
		o->n_remote++;
	}
	o->revived = true;
	/* REACHED -> USE (posters).  Carries: the epoch. */
	atomic_store_explicit(&p->x_state, WEFT_OFI_REACHED, memory_order_release);
}

static const struct weft_net_card *ofi_card(struct weft_net *net, int peer)
{
	return &((struct weft_ofi *)net)->card;
}

const struct weft_driver weft_driver_ofi = {
	.name = "ofi",
	.open = ofi_open,
	.close = ofi_close,
	.address = ofi_address,
	.reach = ofi_reach,
	.post = ofi_post,
	.poll = ofi_poll,
	.arm = ofi_arm,
	.disarm = ofi_disarm,
	.fd = ofi_fd,
	.get = ofi_copy,
	.put = ofi_copy,
	.drain = ofi_drain,
	.card = ofi_card,
	.drop = ofi_drop,
	.revive = ofi_revive,
};

#else

static weft_err no_ofi(const struct weft_net_job *job, const struct weft_net_events *events,
		       struct weft_net **net_p)
{
	return WEFT_ERR_UNSUPPORTED;
}

/* Built where libfabric's headers were missing: never opens, so nothing else is called. */
const struct weft_driver weft_driver_ofi = {.name = "ofi", .open = no_ofi};

#endif
