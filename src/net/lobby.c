/* SPDX-License-Identifier: BSD-3-Clause */
/* lobby.c - incoming connections: accept, screen, let them prove themselves, throw out the slow. */
#include "net/lobby_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/assert.h"
#include "base/log.h"
#include "base/settings.h"

#define ACCEPTS_PER_ROUND 16
#define PAUSE_NS 100000000u
#define CROSSING_NS 2000000000u
#define PATIENCE_MAX 12u
#define EAGER_LOOKS 8u
#define EXPECTED_TICK_MS 100u
#define RESTED_TICK_MS 1000u /* as long as no expected peer is due sooner */

weft_err weft_net_lobby_open(struct weft_lobby *l, const struct weft_lobby_ops *ops, void *arg,
			     const struct weft_net_job *job, struct weft_hub *hub)
{
	memset(l, 0, sizeof *l);
	l->ops = ops;
	l->arg = arg;
	l->job = job;
	l->hub = hub;
	l->guests = calloc(WEFT_LOBBY_GUESTS, sizeof *l->guests);
	l->peers = calloc((size_t)job->size, sizeof *l->peers);
	if (!l->guests || !l->peers) {
		free(l->guests);
		free(l->peers);
		l->guests = NULL;
		l->peers = NULL;
		return WEFT_ERR_NOMEM;
	}
	for (int i = 0; i < WEFT_LOBBY_GUESTS; i++)
		l->guests[i].fd = -1;
	for (int i = 0; i < job->size; i++)
		l->peers[i].fd = -1;
	return WEFT_OK;
}

static void guest_drop(struct weft_lobby *l, struct weft_lobby_guest *g, bool keep_fd)
{
	weft_assert(g->fd >= 0 && l->n_guests > 0);
	if (g->watched)
		weft_net_hub_remove(l->hub, g->fd);
	if (!keep_fd)
		close(g->fd);
	g->fd = -1;
	explicit_bzero(&g->auth, sizeof g->auth);
	l->n_guests--;
}

void weft_net_lobby_close(struct weft_lobby *l)
{
	for (unsigned i = 0; i < l->n_listeners; i++)
		if (l->listeners[i] >= 0)
			close(l->listeners[i]);
	l->n_listeners = 0;
	for (int i = 0; l->guests && i < WEFT_LOBBY_GUESTS; i++)
		if (l->guests[i].fd >= 0)
			guest_drop(l, &l->guests[i], false);
	for (int i = 0; l->peers && i < l->job->size; i++)
		weft_net_lobby_hang_up(l, i, WEFT_LOBBY_GONE);
	free(l->guests);
	free(l->peers);
	l->guests = NULL;
	l->peers = NULL;
}

void weft_net_lobby_let_go(const struct weft_lobby *l)
{
	for (unsigned i = 0; i < l->n_listeners; i++)
		if (l->listeners[i] >= 0)
			close(l->listeners[i]);
	for (int i = 0; i < WEFT_LOBBY_GUESTS; i++)
		if (l->guests[i].fd >= 0)
			close(l->guests[i].fd);
	for (int i = 0; i < l->job->size; i++)
		if (l->peers[i].fd >= 0)
			close(l->peers[i].fd);
}

weft_err weft_net_lobby_listen(struct weft_lobby *l, int fd)
{
	if (l->n_listeners == WEFT_LOBBY_LISTENERS)
		return WEFT_ERR_LIMIT;
	weft_err err = weft_net_hub_add(l->hub, fd, EPOLLIN,
					weft_net_hub_data(WEFT_HUB_LISTENER, l->n_listeners));
	if (err)
		return err;
	l->listeners[l->n_listeners++] = fd;
	return WEFT_OK;
}

void weft_net_lobby_unlisten(struct weft_lobby *l, unsigned n)
{
	weft_assert(n < l->n_listeners && l->listeners[n] >= 0);
	close(l->listeners[n]);
	l->listeners[n] = -1;
}

void weft_net_lobby_show_out(struct weft_lobby *l, int peer)
{
	for (int i = 0; l->n_guests && i < WEFT_LOBBY_GUESTS; i++)
		if (l->guests[i].fd >= 0 && weft_net_auth_claim(&l->guests[i].auth) == peer)
			guest_drop(l, &l->guests[i], false);
}

/* Stops or goes on watching the listeners; the kernel's backlog keeps what comes meanwhile. */
static void set_paused(struct weft_lobby *l, bool paused)
{
	if (l->paused == paused)
		return;
	l->paused = paused;
	l->resume_ns = weft_clock_ns() + PAUSE_NS;
	for (unsigned i = 0; i < l->n_listeners; i++)
		if (l->listeners[i] >= 0)
			weft_net_hub_change(l->hub, l->listeners[i], paused ? 0 : EPOLLIN,
					    weft_net_hub_data(WEFT_HUB_LISTENER, i));
}

/* How long a guest may take, see Patience in lobby.h. */
static uint64_t patience_ns(const struct weft_lobby *l, const struct weft_lobby_guest *g)
{
	uint64_t once = (uint64_t)weft_setting_int(WEFT_SET_HANDSHAKE_TIMEOUT) * 1000000000u;
	uint64_t most = PATIENCE_MAX * once;
	if (weft_net_auth_greeted(&g->auth))
		return most;
	uint64_t seen = 4 * l->slowest_ns;
	return seen < once ? once : seen < most ? seen : most;
}

/*
 * A place for a new guest.  When there is none, the oldest one that never said a word makes room,
 * or else the oldest that has had its time already.
 */
static struct weft_lobby_guest *guest_place(struct weft_lobby *l)
{
	struct weft_lobby_guest *silent = NULL, *late = NULL;
	uint64_t once = (uint64_t)weft_setting_int(WEFT_SET_HANDSHAKE_TIMEOUT) * 1000000000u;
	uint64_t now = weft_clock_ns();
	for (int i = 0; i < WEFT_LOBBY_GUESTS; i++) {
		struct weft_lobby_guest *g = &l->guests[i];
		if (g->fd < 0)
			return g;
		if (weft_net_auth_silent(&g->auth) && (!silent || g->since_ns < silent->since_ns))
			silent = g;
		if (now - g->since_ns >= once && (!late || g->since_ns < late->since_ns))
			late = g;
	}
	struct weft_lobby_guest *out = silent ? silent : late;
	if (out) {
		weft_net_auth_refused(l->ops->driver, silent ? "too many silent connections"
							     : "it did not prove itself in time");
		guest_drop(l, out, false);
	}
	return out;
}

static void guest_step(struct weft_lobby *l, struct weft_lobby_guest *g);

static void accept_one(struct weft_lobby *l, int fd)
{
	char why[96] = "";
	if (l->ops->screen && !l->ops->screen(l->arg, fd, why, sizeof why)) {
		weft_net_auth_refused(l->ops->driver, why);
		close(fd);
		return;
	}
	struct weft_lobby_guest *g = guest_place(l);
	if (!g) {
		close(fd);
		return;
	}
	weft_assert(g->fd < 0 && l->n_guests < WEFT_LOBBY_GUESTS);
	g->fd = fd;
	g->watched = false;
	g->since_ns = weft_clock_ns();
	weft_net_auth_init(&g->auth, l->job, fd, false, -1);
	l->n_guests++;
	/* A guest that has gone again, or talks nonsense, costs no more than this. */
	guest_step(l, g);
	if (g->fd >= 0 && !g->watched)
		guest_drop(l, g, false);
}

static void accept_some(struct weft_lobby *l, int listener)
{
	for (int i = 0; i < ACCEPTS_PER_ROUND; i++) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0) {
			l->pause_said = false;
			accept_one(l, fd);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			if (!l->pause_said && l->ops->resting) /* others make room */
				weft_debug("%s: cannot accept connections for now: %s",
					   l->ops->driver, strerror(errno));
			else if (!l->pause_said)
				weft_warn("%s: cannot accept connections for now: %s%s",
					  l->ops->driver, strerror(errno),
					  errno == EMFILE ? " (raise ulimit -n)" : "");
			l->pause_said = true;
			set_paused(l, true);
		}
		if (errno == EINTR || errno == ECONNABORTED)
			continue;
		return;
	}
}

/* Which connection wins when a peer has proven itself as a guest?  See lobby.h. */
static enum weft_auth_verdict judge_guest(struct weft_lobby *l, int peer)
{
	bool resting = l->peers[peer].state == WEFT_LOBBY_LINKED && l->ops->resting &&
		       l->ops->resting(l->arg, peer);
	switch (l->peers[peer].state) {
	case WEFT_LOBBY_LINKED:
		if (resting) /* its consent is still on the way: it comes again */
			return WEFT_AUTH_CROSSED;
		/* It had dialed before it saw that ours came through: the usual crossing. */
		return l->peers[peer].dialed ? WEFT_AUTH_CROSSED : WEFT_AUTH_REFUSE;
	case WEFT_LOBBY_GONE:
		return WEFT_AUTH_REFUSE;
	case WEFT_LOBBY_DIALING:
		return l->job->rank < peer && l->peers[peer].connected ? WEFT_AUTH_CROSSED
								       : WEFT_AUTH_ACCEPT;
	default:
		return WEFT_AUTH_ACCEPT;
	}
}

/* A crossing dial comes soon after; later, a peer that dials again has lost our connection. */
static bool is_stale(struct weft_lobby *l, int peer)
{
	struct weft_lobby_peer *p = &l->peers[peer];
	return l->ops->stale && p->state == WEFT_LOBBY_LINKED &&
	       (!p->dialed || weft_clock_ns() - p->linked_ns > CROSSING_NS);
}

/* The first number that no caller has; 0: none, and there is no connection to ourselves. */
static int free_number(const struct weft_lobby *l)
{
	for (int i = 1; i < l->job->size; i++)
		if (l->peers[i].state == WEFT_LOBBY_IDLE)
			return i;
	return 0;
}

static void guest_welcome(struct weft_lobby *l, struct weft_lobby_guest *g)
{
	int peer = l->job->callers ? free_number(l) : g->auth.peer, fd = g->fd;
	weft_assert(l->job->callers ||
		    (peer >= 0 && peer < l->job->size && peer != l->job->rank)); /* proven */
	char why[96];
	uint64_t took = weft_clock_ns() - g->since_ns;
	if (took > l->slowest_ns)
		l->slowest_ns = took;
	if (is_stale(l, peer)) {
		guest_drop(l, g, false);
		l->upcalls++;
		l->ops->stale(l->arg, peer);
		return;
	}
	bool full = l->job->callers && !peer;
	enum weft_auth_verdict verdict = full ? WEFT_AUTH_REFUSE : judge_guest(l, peer);
	if (g->fd < 0) /* shown out */
		return;

	weft_net_auth_answer(&g->auth, verdict);
	/* Eight bytes into a socket that holds none: they always fit. */
	weft_err err = weft_net_auth_step(&g->auth, why, sizeof why);
	/* A rank that has ended, or was lost, may have dialed before: that is no attack, and no second connection. */
	if (verdict == WEFT_AUTH_REFUSE && l->peers[peer].state == WEFT_LOBBY_GONE)
		weft_debug("%s: a connection of rank %d comes too late: it is gone here",
			   l->ops->driver, peer);
	else if (verdict == WEFT_AUTH_REFUSE && !full)
		weft_net_auth_refused(l->ops->driver, "a second connection of a rank that has one");
	if (err || verdict != WEFT_AUTH_ACCEPT) {
		guest_drop(l, g, false);
		return;
	}
	guest_drop(l, g, true);
	weft_assert(l->peers[peer].state != WEFT_LOBBY_LINKED); /* exactly one connection */
	weft_net_lobby_hang_up(l, peer, WEFT_LOBBY_LINKED);
	l->peers[peer].linked_ns = weft_clock_ns();
	l->upcalls++;
	l->ops->linked(l->arg, peer, fd);
}

/* Its next word, or room for ours, wakes us. */
static void guest_watch(struct weft_lobby *l, struct weft_lobby_guest *g)
{
	uint32_t events = EPOLLIN | (weft_net_auth_wants_write(&g->auth) ? EPOLLOUT : 0u);
	uint64_t data = weft_net_hub_data(WEFT_HUB_GUEST, (uint64_t)(g - l->guests));
	l->eager = EAGER_LOOKS;
	if (g->watched)
		weft_net_hub_change(l->hub, g->fd, events, data);
	else
		g->watched = weft_net_hub_add(l->hub, g->fd, events, data) == WEFT_OK;
}

static void guest_step(struct weft_lobby *l, struct weft_lobby_guest *g)
{
	char why[96] = "";
	weft_err err = weft_net_auth_step(&g->auth, why, sizeof why);
	if (err == WEFT_OK) {
		guest_welcome(l, g);
		return;
	}
	if (err == WEFT_AGAIN) {
		guest_watch(l, g);
		return;
	}
	if (err == WEFT_ERR_PEER)
		weft_debug("%s: a guest connected and %s", l->ops->driver, why);
	else
		weft_net_auth_refused(l->ops->driver, why);
	guest_drop(l, g, false);
}

static void expire_guests(struct weft_lobby *l, uint64_t now)
{
	for (int i = 0; l->n_guests && i < WEFT_LOBBY_GUESTS; i++) {
		struct weft_lobby_guest *g = &l->guests[i];
		if (g->fd < 0 || now - g->since_ns < patience_ns(l, g))
			continue;
		/* It may have answered while no thread polled here. */
		guest_step(l, g);
		if (g->fd < 0)
			continue;
		weft_net_auth_refused(l->ops->driver, "it did not prove itself in time");
		guest_drop(l, g, false);
	}
}

void weft_net_lobby_event(struct weft_lobby *l, uint64_t data, uint32_t events)
{
	int i = weft_net_hub_index(data);
	switch (weft_net_hub_kind(data)) {
	case WEFT_HUB_LISTENER:
		if (!l->paused && l->listeners[i] >= 0)
			accept_some(l, l->listeners[i]);
		break;
	case WEFT_HUB_GUEST:
		if (l->guests[i].fd >= 0)
			guest_step(l, &l->guests[i]);
		break;
	case WEFT_HUB_DIAL:
		weft_net_lobby_dial_event(l, i);
		break;
	}
}

void weft_net_lobby_work(struct weft_lobby *l)
{
	if (weft_net_lobby_wanted(l))
		weft_net_lobby_take_wishes(l);
	if (!l->n_guests && !l->n_dials && !l->n_expected && !l->paused)
		return;
	uint64_t now = weft_clock_ns();
	l->eager -= l->eager > 0;
	expire_guests(l, now);
	if (l->n_dials || l->n_expected)
		weft_net_lobby_dial_timers(l, now);
	if (l->paused && now >= l->resume_ns)
		set_paused(l, false);
	weft_assert(weft_net_lobby_counts_right(l));
}

static bool has_deadline(const struct weft_lobby *l)
{
	if (l->n_guests || l->paused)
		return true;
	/* A peer that our connect() has reached may take its time: it will answer when it polls. */
	for (int i = 0; l->n_dials && i < l->job->size; i++) {
		const struct weft_lobby_peer *p = &l->peers[i];
		if (p->state == WEFT_LOBBY_WAITING ||
		    (p->state == WEFT_LOBBY_DIALING && !p->connected))
			return true;
	}
	return false;
}

unsigned weft_net_lobby_tick_ms(const struct weft_lobby *l)
{
	if (has_deadline(l))
		return WEFT_HUB_TICK_MS;
	if (!l->n_expected)
		return 0;
	return l->expected_ns > weft_clock_ns() + RESTED_TICK_MS * 1000000u ? RESTED_TICK_MS
									    : EXPECTED_TICK_MS;
}
