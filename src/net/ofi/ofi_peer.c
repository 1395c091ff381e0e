/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ofi_peer.c - peers: how one is reached, how its end is seen, and how one leaves in order.
 *
 * Which peers live?  Nothing is connected, so no end of a connection says so.  On this host a pidfd
 * tells.  A peer elsewhere is sent a ping every second while nothing else is under way: the network
 * then either fails it, or, having lost its connection, does not take it; after three seconds of
 * that the peer counts as dead.  A process that is merely stopped keeps its connection.
 *
 * Leaving.  Closing the endpoint may lose what the network still holds, so a process that leaves
 * says BYE, and waits until each peer has answered that it heard.
 */
#include "net/ofi/ofi_int.h"

#if __has_include(<rdma/fabric.h>)

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/log.h"

#define REFUSED_NS 3000000000u

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

/* Watches a process of this host, so that its end is seen. */
static void watch_process(struct weft_ofi *o, int peer, const char *host, int pid)
{
	struct weft_ofi_peer *p = &o->peer[peer];
	p->remote = true;
	if (strcmp(host, o->host_key) == 0 && !weft_net_ofi_lacks.pidfd) {
		p->pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
		p->dead_already = p->pid_fd < 0 && errno == ESRCH;
		if (p->pid_fd >= 0 &&
		    !weft_net_hub_add(&o->hub, p->pid_fd, EPOLLIN,
				      weft_net_hub_data(WEFT_OFI_EV_PID, (uint64_t)peer)))
			p->remote = false;
	}
	o->n_remote += p->remote;
}

weft_err weft_net_ofi_reach(struct weft_net *net, int peer, const char *address)
{
	struct weft_ofi *o = (struct weft_ofi *)net;
	char provider[64], host[WEFT_HOST_KEY_MAX], hex[2 * WEFT_OFI_NAME_MAX + 1];
	uint8_t name[WEFT_OFI_NAME_MAX];
	size_t len;
	int pid;
	if (peer == o->job.rank || !address || strncmp(address, "ofi2 ", 5) != 0)
		return WEFT_ERR_UNSUPPORTED;
	if (sscanf(address, "ofi2 %63s %127s %d %256s", provider, host, &pid, hex) != 4 ||
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

void weft_net_ofi_peer_down(struct weft_ofi *o, int peer, weft_err err, const char *why)
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
		weft_net_hub_remove(&o->hub, p->pid_fd);
	o->n_remote -= p->remote;
	o->n_gone -= p->gone;
	weft_net_ofi_drop_early(o, p);
	p->broke = err != WEFT_OK;
	if (err && !p->dead_already && !p->end_got)
		weft_net_ofi_owe_end(o, peer);
	if (err)
		snprintf(text, sizeof text, "lost rank %d (ofi): %s", peer, why);
	else
		snprintf(text, sizeof text, "rank %d left (ofi)", peer);
	p->owes_flushed = false;
	weft_net_ofi_flushes_fail(o, peer);
	bool later = weft_net_ofi_region_down(o, peer, err, text);
	if (weft_net_ofi_rma_down(o, peer, err, text) || later)
		return;
	o->events.down(o->events.arg, peer, err, text);
}

/* The answer to a BYE; when it is out, the peer is gone for us. */
int weft_net_ofi_answer_byes(struct weft_ofi *o)
{
	int n = 0;
	for (int i = 0; i < o->job.size; i++) {
		struct weft_ofi_peer *p = &o->peer[i];
		if (!p->bye_got || p->bye_answered || p->bye_sequence != p->in_sequence)
			continue;
		if (!weft_net_ofi_send(o, i, WEFT_OFI_HEARD, NULL, NULL, 0, 0)) {
			weft_net_ofi_set_blocked(o, p); /* so that a poll is due soon */
			continue;
		}
		p->bye_answered = true;
		weft_net_ofi_peer_down(o, i, WEFT_OK, "");
		n++;
	}
	return n;
}

/* A process of this host has ended: what it had sent before comes first. */
int weft_net_ofi_on_pid(struct weft_ofi *o, int peer)
{
	int n = 0, quiet = 0;
	while (quiet < 3) { /* ends: the process sends no more */
		bool found = false;
		n += weft_net_ofi_take(o, &found);
		quiet = found ? 0 : quiet + 1;
	}
	if (o->peer[peer].bye_got)
		n += weft_net_ofi_answer_byes(o);
	o->peer[peer].bye_heard = true;
	o->peer[peer].dead_already = true;
	weft_net_ofi_peer_down(o, peer, WEFT_ERR_PEER, "its process ended without leaving the job");
	return n + 1;
}

/* Lets the network find out which peers are gone. */
void weft_net_ofi_ping(struct weft_ofi *o)
{
	uint64_t now = weft_clock_ns();
	if (!o->n_remote || now < o->ping_ns)
		return;
	o->ping_ns = now + WEFT_OFI_PING_MS * 1000000ull;
	for (int i = 0; i < o->job.size; i++) {
		struct weft_ofi_peer *p = &o->peer[i];
		if (!p->remote || !p->heard || p->bye_got ||
		    atomic_load_explicit(&p->x_under, memory_order_relaxed) ||
		    atomic_load_explicit(&p->x_state, memory_order_relaxed) != WEFT_OFI_REACHED)
			continue;
		if (weft_net_ofi_send(o, i, WEFT_OFI_PING, NULL, NULL, 0, 0))
			p->refused_ns = 0;
		else if (!p->refused_ns)
			p->refused_ns = now;
		else if (now - p->refused_ns >= REFUSED_NS)
			weft_net_ofi_peer_down(o, i, WEFT_ERR_PEER, "its connection is lost");
	}
}

weft_err weft_net_ofi_drain(struct weft_net *net)
{
	struct weft_ofi *o = (struct weft_ofi *)net;
	weft_err err = WEFT_OK;
	for (int i = 0; i < o->job.size; i++) {
		struct weft_ofi_peer *p = &o->peer[i];
		bool talked = p->heard || p->out_sequence;
		/* A lost peer takes nothing any more, perhaps not even the frame that says so. */
		if (!p->broke &&
		    (atomic_load_explicit(&p->x_under, memory_order_relaxed) ||
		     atomic_load_explicit(&p->x_larges, memory_order_relaxed) || p->owes_done))
			err = WEFT_AGAIN;
		if (weft_net_ofi_reads(p) || weft_net_ofi_region_ends(p))
			err = WEFT_AGAIN;
		if (!talked ||
		    atomic_load_explicit(&p->x_state, memory_order_relaxed) != WEFT_OFI_REACHED)
			continue;
		bool sent = atomic_load_explicit(&p->x_bye_sent, memory_order_relaxed);
		if (!sent && weft_net_ofi_send(o, i, WEFT_OFI_BYE, NULL, NULL, 0, 0)) {
			atomic_store_explicit(&p->x_bye_sent, true, memory_order_relaxed);
			sent = true;
		}
		/* A peer that leaves, too, has got all of ours when it answers. */
		if (!sent || !p->bye_heard)
			err = WEFT_AGAIN;
	}
	return err;
}

#endif
