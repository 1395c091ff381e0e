/* SPDX-License-Identifier: BSD-3-Clause */
/* lobby_dial.c - outgoing connections: dial, prove ourselves, back off, give up. */
#include "net/lobby_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/log.h"
#include "base/settings.h"

#define BACKOFF_MIN_NS 1000000u
#define BACKOFF_MAX_NS 200000000u
#define ATTEMPT_NS 3000000000u /* for connect() to answer, then the next address */
/* The port is closed.  A process listens before it publishes its address, so this peer has ended;
 * the few attempts more are for a host that lacks something for a moment. */
#define REFUSED_NS 300000000u
#define CROSSED_NS 1000000000u /* the other's connection should come at once */
/* Attempts that a live peer may end: with dozens of ranks to a core a handshake takes longer than
 * the other waits for it, again and again. */
#define ANSWERED_MAX 40u
/* A peer that lives and sends what a receive waits for has mostly connected by then. */
#define EXPECTED_NS 150000000u
/* One that was linked, and rests for want of descriptors: to dial it costs another its connection.  Doubled with each dial that
 * brought nothing to send. */
#define RESTED_NS 1000000000u
#define RESTED_DOUBLINGS 6
#define LACK_NS                                                                                    \
	10000000u /* a connection that shall make room does so within some rounds of its peer's */
#define ADDRESS_NS 2000000u /* between looks for an address that the launcher has been asked for */

static bool is_dialing(const struct weft_lobby_peer *p)
{
	return p->state == WEFT_LOBBY_DIALING || p->state == WEFT_LOBBY_WAITING;
}

void weft_net_lobby_hang_up(struct weft_lobby *l, int peer, enum weft_lobby_state state)
{
	struct weft_lobby_peer *p = &l->peers[peer];
	if (is_dialing(p))
		l->n_dials--;
	if (p->state == WEFT_LOBBY_EXPECTED)
		l->n_expected--;
	if (state == WEFT_LOBBY_WAITING || state == WEFT_LOBBY_DIALING)
		l->n_dials++;
	if (state == WEFT_LOBBY_EXPECTED)
		l->n_expected++;
	if (p->fd >= 0) {
		weft_net_hub_remove(l->hub, p->fd);
		close(p->fd);
		p->fd = -1;
	}
	if (p->auth) {
		explicit_bzero(p->auth, sizeof *p->auth);
		free(p->auth);
		p->auth = NULL;
	}
	p->connected = false;
	p->state = (uint8_t)state;
}

void weft_net_lobby_forget(struct weft_lobby *l, int peer)
{
	weft_net_lobby_hang_up(l, peer, WEFT_LOBBY_GONE);
}

void weft_net_lobby_revive(struct weft_lobby *l, int peer)
{
	struct weft_lobby_peer *p = &l->peers[peer];
	if (p->state != WEFT_LOBBY_GONE)
		return;
	p->state = WEFT_LOBBY_IDLE;
	p->attempts = 0;
	p->answered = 0;
	p->refused = false;
	p->began_ns = 0;
	p->dialed = false;
	p->revived = true;
	p->lacked = false;
	if (p->heard_expected) {
		p->heard_expected = false;
		/* Relaxed: a receive that still sees it set is found by the scan that follows (weft_comm_core_peer_rests). */
		atomic_store_explicit(&p->x_expected, false, memory_order_relaxed);
	}
	if (p->heard) {
		p->heard = false;
		/* Relaxed: no post is under way. */
		atomic_store_explicit(&p->x_wanted, false, memory_order_relaxed);
	}
}

bool weft_net_lobby_want(struct weft_lobby *l, int peer)
{
	/* Relaxed: the count below publishes it. */
	if (atomic_load_explicit(&l->peers[peer].x_wanted, memory_order_relaxed) ||
	    atomic_exchange_explicit(&l->peers[peer].x_wanted, true, memory_order_relaxed))
		return false;
	/* WANT -> SEE (weft_net_lobby_wanted).  Carries: x_wanted.  seq_cst because the caller reads
	 * `armed` next: without it both sides could miss each other. */
	atomic_fetch_add_explicit(&l->x_wants, 1, memory_order_seq_cst);
	return true;
}

bool weft_net_lobby_expect(struct weft_lobby *l, int peer)
{
	/* Relaxed: the count below publishes it. */
	if (atomic_exchange_explicit(&l->peers[peer].x_expected, true, memory_order_relaxed))
		return false;
	/* WANT -> SEE (weft_net_lobby_wanted).  Carries: x_expected.  seq_cst: as in want. */
	atomic_fetch_add_explicit(&l->x_wants, 1, memory_order_seq_cst);
	return true;
}

bool weft_net_lobby_died(struct weft_lobby *l, int peer)
{
	/* Relaxed: the wish publishes it; a peer that is being dialed is looked at again soon. */
	atomic_store_explicit(&l->peers[peer].x_died, true, memory_order_relaxed);
	return weft_net_lobby_want(l, peer);
}

static uint64_t backoff_ns(const struct weft_lobby_peer *p)
{
	unsigned shift = p->attempts < 10 ? p->attempts : 10;
	uint64_t ns = (uint64_t)BACKOFF_MIN_NS << shift;
	return ns < BACKOFF_MAX_NS ? ns : BACKOFF_MAX_NS;
}

static void lose_peer(struct weft_lobby *l, int peer, weft_err err)
{
	struct weft_lobby_peer *p = &l->peers[peer];
	char text[256];
	snprintf(text, sizeof text, "cannot connect to rank %d at %s: %s", peer,
		 p->where[0] ? p->where : "(no address)", p->why);
	weft_net_lobby_hang_up(l, peer, WEFT_LOBBY_GONE);
	l->upcalls++;
	l->ops->lost(l->arg, peer, err, text);
}

/*
 * An attempt came to nothing: again later, or never.  `alive`: the other side took the connection
 * and ended it; such attempts are counted, since time passes without any while we get no core.
 */
static void attempt_failed(struct weft_lobby *l, int peer, uint64_t wait_ns, bool refused,
			   bool alive)
{
	struct weft_lobby_peer *p = &l->peers[peer];
	uint64_t now = weft_clock_ns();
	uint64_t allowed = (uint64_t)weft_setting_int(WEFT_SET_CONNECT_TIMEOUT) * 1000000000u;
	if (refused && allowed > REFUSED_NS)
		allowed = REFUSED_NS;
	if (now - p->began_ns >= allowed && (!alive || p->answered >= ANSWERED_MAX)) {
		p->refused = refused;
		lose_peer(l, peer, WEFT_ERR_PEER);
		return;
	}
	weft_debug("%s: rank %d at %s: %s; trying again", l->ops->driver, peer, p->where, p->why);
	weft_net_lobby_hang_up(l, peer, WEFT_LOBBY_WAITING);
	p->next_ns = now + wait_ns;
}

static bool is_lack(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

static void attempt_errno(struct weft_lobby *l, int peer, int error)
{
	struct weft_lobby_peer *p = &l->peers[peer];
	snprintf(p->why, sizeof p->why, "%s%s", strerror(error),
		 error == EMFILE ? " (raise ulimit -n)" : "");
	/* For lack of something here, which says nothing of the peer: the same address again, and another one that refuses (a
	 * process may listen on some of its addresses only) is no end of it. */
	if (is_lack(error)) {
		p->lacked = true;
		p->attempts -= p->attempts > 0;
		attempt_failed(l, peer, LACK_NS, false, false);
		return;
	}
	attempt_failed(l, peer, backoff_ns(p), error == ECONNREFUSED && !p->lacked, false);
}

static void dial_step(struct weft_lobby *l, int peer)
{
	struct weft_lobby_peer *p = &l->peers[peer];
	int fd = p->fd;
	weft_assert(p->connected && p->auth && fd >= 0);
	weft_err err = weft_net_auth_step(p->auth, p->why, sizeof p->why);
	switch (err) {
	case WEFT_OK:
		/* The descriptor lives on, with the driver. */
		weft_net_hub_remove(l->hub, fd);
		p->fd = -1;
		weft_net_lobby_hang_up(l, peer, WEFT_LOBBY_LINKED);
		p->dialed = true;
		p->linked_ns = weft_clock_ns();
		l->upcalls++;
		l->ops->linked(l->arg, peer, fd);
		break;
	case WEFT_AGAIN:
		weft_net_hub_change(l->hub, fd,
				    EPOLLIN | (weft_net_auth_wants_write(p->auth) ? EPOLLOUT : 0u),
				    weft_net_hub_data(WEFT_HUB_DIAL, (uint64_t)peer));
		break;
	case WEFT_ERR_STATE:
		snprintf(p->why, sizeof p->why, "waiting for its own connection");
		p->answered++;
		attempt_failed(l, peer, CROSSED_NS, false, true);
		break;
	case WEFT_ERR_PEER:
		p->answered++;
		attempt_failed(l, peer, backoff_ns(p), false, true);
		break;
	default:
		weft_net_auth_refused(l->ops->driver, p->why);
		lose_peer(l, peer, err);
		break;
	}
}

static void dial_peer(struct weft_lobby *l, int peer)
{
	struct weft_lobby_peer *p = &l->peers[peer];
	weft_assert(peer != l->job->rank);
	weft_assert(p->state == WEFT_LOBBY_IDLE || p->state == WEFT_LOBBY_WAITING ||
		    p->state == WEFT_LOBBY_EXPECTED);
	uint64_t now = weft_clock_ns();

	/* Relaxed: see weft_net_lobby_died. */
	if (atomic_load_explicit(&p->x_died, memory_order_relaxed)) {
		snprintf(p->why, sizeof p->why, "the launcher reports its end");
		lose_peer(l, peer, WEFT_ERR_PEER);
		return;
	}
	if (!p->began_ns)
		p->began_ns = now;
	weft_net_lobby_hang_up(l, peer, WEFT_LOBBY_DIALING);
	p->next_ns = now + ATTEMPT_NS;
	int fd = l->ops->dial(l->arg, peer, p->attempts++, p->where, sizeof p->where);
	if (fd < 0 && errno == EINPROGRESS) {
		p->began_ns = 0;
		p->attempts = 0;
		weft_net_lobby_hang_up(l, peer, WEFT_LOBBY_WAITING);
		p->next_ns = now + ADDRESS_NS;
		return;
	}
	if (fd < 0) {
		attempt_errno(l, peer, errno);
		return;
	}
	p->auth = malloc(sizeof *p->auth);
	if (!p->auth || weft_net_hub_add(l->hub, fd, EPOLLIN | EPOLLOUT,
					 weft_net_hub_data(WEFT_HUB_DIAL, (uint64_t)peer))) {
		close(fd);
		attempt_errno(l, peer, ENOMEM);
		return;
	}
	p->fd = fd;
	weft_net_auth_init(p->auth, l->job, fd, true, peer);
	/* It may be through already: then our hello is there before the other side looks. */
	weft_net_lobby_dial_event(l, peer);
}

/*
 * To connect to a port of this host on which no process listens any more may end at our own socket,
 * when the kernel gives it that very port (simultaneous open, RFC 9293, 3.5).  It would hear
 * nothing but its own hello, and wait for ever.
 */
static bool is_own_end(int fd, const struct sockaddr_storage *theirs, socklen_t their_len)
{
	struct sockaddr_storage mine;
	socklen_t len = sizeof mine;
	return theirs->ss_family != AF_UNIX &&
	       getsockname(fd, (struct sockaddr *)&mine, &len) == 0 && len == their_len &&
	       memcmp(&mine, theirs, len) == 0;
}

void weft_net_lobby_dial_event(struct weft_lobby *l, int peer)
{
	struct weft_lobby_peer *p = &l->peers[peer];
	if (p->fd < 0)
		return;
	if (!p->connected) {
		int error = 0;
		socklen_t len = sizeof error;
		if (getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
			error = errno;
		if (error) {
			attempt_errno(l, peer, error);
			return;
		}
		struct sockaddr_storage name;
		len = sizeof name;
		if (getpeername(p->fd, (struct sockaddr *)&name, &len) != 0)
			return; /* not connected yet */
		if (is_own_end(p->fd, &name, len)) {
			attempt_errno(l, peer, ECONNREFUSED);
			return;
		}
		p->connected = true;
	}
	dial_step(l, peer);
}

/* After which time an expected peer is dialed. */
static uint64_t expected_ns(const struct weft_lobby_peer *p)
{
	if (!p->revived)
		return EXPECTED_NS;
	return (uint64_t)RESTED_NS << (p->probes < RESTED_DOUBLINGS ? p->probes : RESTED_DOUBLINGS);
}

static void take_expected(struct weft_lobby *l, int peer)
{
	struct weft_lobby_peer *p = &l->peers[peer];
	/* Relaxed, both: as in weft_net_lobby_take_wishes. */
	if (p->heard_expected || !atomic_load_explicit(&p->x_expected, memory_order_relaxed))
		return;
	p->heard_expected = true;
	atomic_fetch_sub_explicit(&l->x_wants, 1, memory_order_relaxed);
	if (p->state != WEFT_LOBBY_IDLE)
		return;
	if (!l->n_expected)
		l->expected_ns = UINT64_MAX;
	weft_net_lobby_hang_up(l, peer, WEFT_LOBBY_EXPECTED);
	p->next_ns = weft_clock_ns() + expected_ns(p);
	if (p->next_ns < l->expected_ns)
		l->expected_ns = p->next_ns;
}

void weft_net_lobby_take_wishes(struct weft_lobby *l)
{
	/* One pass: wishes that come meanwhile keep the count above zero. */
	for (int i = 0; i < l->job->size; i++) {
		struct weft_lobby_peer *p = &l->peers[i];
		take_expected(l, i);
		/* Relaxed: the acquire load of x_wants came first. */
		if (p->heard || !atomic_load_explicit(&p->x_wanted, memory_order_relaxed))
			continue;
		p->heard = true;
		atomic_fetch_sub_explicit(&l->x_wants, 1, memory_order_relaxed);
		p->probes = 0;
		if (p->state == WEFT_LOBBY_IDLE || p->state == WEFT_LOBBY_EXPECTED)
			dial_peer(l, i);
	}
}

void weft_net_lobby_dial_timers(struct weft_lobby *l, uint64_t now)
{
	if (!l->n_dials && now < l->expected_ns)
		return;
	l->expected_ns = UINT64_MAX;
	for (int i = 0; i < l->job->size; i++) {
		struct weft_lobby_peer *p = &l->peers[i];
		if (p->state == WEFT_LOBBY_EXPECTED && now < p->next_ns &&
		    p->next_ns < l->expected_ns)
			l->expected_ns = p->next_ns;
		if ((!is_dialing(p) && p->state != WEFT_LOBBY_EXPECTED) || now < p->next_ns)
			continue;
		if (p->state == WEFT_LOBBY_EXPECTED && p->probes < RESTED_DOUBLINGS)
			p->probes++;
		if (p->state != WEFT_LOBBY_DIALING) {
			dial_peer(l, i);
			continue;
		}
		/* It may have been reached while we did not run, or did not come to look. */
		if (!p->connected)
			weft_net_lobby_dial_event(l, i);
		if (p->state == WEFT_LOBBY_DIALING && !p->connected) {
			snprintf(p->why, sizeof p->why, "no answer");
			attempt_failed(l, i, BACKOFF_MIN_NS, false, false);
		}
	}
}
