/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lobby.h - makes connections: accepts, dials, lets each prove itself, settles which one stays when
 * both sides dial at once.  Used by shm (unix sockets) and tcp alike.
 *
 * A peer's way:   idle -> dialing -> linked -> gone
 *                   ^        |  ^
 *                   |        v  |        crossed or failed: wait, then dial again
 *                   +----- waiting
 *
 * Both dial at once: the connection that the lower rank dialed wins.  The lower rank, once its
 * own connect() is through, answers the other's proven connection with "crossed"; before that it
 * has not said a word, so it drops its attempt and takes the other's.  The higher rank
 * drops its own when the lower one's has proven itself.  A linked peer's second connection is
 * refused and the first one stays untouched.  So there is exactly one, whatever the timing.
 *
 * Callers   want(): any thread.  The rest: the thread that polls the driver.
 * Blocking  never.
 * Patience  a peer that does not answer is lost after `connect_timeout` seconds.  One that takes
 *           the connection and ends it again is alive: it, or we, did not run in time, and only
 *           forty such attempts lose it, however long they took.
 *           A guest has `handshake_timeout` seconds to prove itself, and on a machine that is
 *           slow more: four times what the slowest took that did prove itself, and twelve times
 *           the setting once its hello has come, as long as no other guest needs its place.
 * Limits    64 guests that have not proven themselves; when a 65th comes, the oldest silent one
 *           goes, or else the oldest that has had its `handshake_timeout`.
 * Cost      a guest that is gone when we accept it costs the accept, a read and the close.  A guest
 *           that stays has us look closely eight times after each word it says.
 */
#ifndef WEFT_LOBBY_H
#define WEFT_LOBBY_H

#include "base/base.h"
#include "net/auth.h"
#include "net/driver.h"
#include "net/hub.h"

#define WEFT_LOBBY_GUESTS 64
#define WEFT_LOBBY_LISTENERS 16

struct weft_lobby_ops {
	const char *driver;
	/* May the other end of a fresh incoming connection talk to us at all? */
	bool (*screen)(void *arg, int fd, char *why, size_t size);
	/*
	 * Starts attempt n to reach peer: a non-blocking, connecting socket, or -1 with errno set.
	 * Names the target in `where`.  EINPROGRESS: the address is not known yet; asked again soon,
	 * and the time for attempts does not run.
	 */
	int (*dial)(void *arg, int peer, unsigned n, char *where, size_t size);
	/* Connected and proven: fd is the driver's now. */
	void (*linked)(void *arg, int peer, int fd);
	/*
	 * May be NULL.  A linked peer stands at the door again: its end of our connection is gone.
	 * The driver may end ours and revive the peer; it will come once more.
	 */
	void (*stale)(void *arg, int peer);
	/*
	 * May be NULL.  A linked peer stands at the door: have both agreed to end the connection for a while?  True: the
	 * driver has asked for it; it ends its side now, by forget(), revive() and show_out(), if the peer has agreed.
	 */
	bool (*resting)(void *arg, int peer);
	/* There will be no connection to peer. */
	void (*lost)(void *arg, int peer, weft_err err, const char *why);
};

struct weft_lobby_guest {
	int fd;       /* -1: free */
	bool watched; /* by the hub */
	uint64_t since_ns;
	struct weft_auth auth;
};

enum weft_lobby_state {
	WEFT_LOBBY_IDLE,
	WEFT_LOBBY_EXPECTED, /* dialed at next_ns, unless it connects before */
	WEFT_LOBBY_DIALING,
	WEFT_LOBBY_WAITING,
	WEFT_LOBBY_LINKED,
	WEFT_LOBBY_GONE,
};

struct weft_lobby_peer {
	_Atomic bool x_wanted;   /* set once, by the first poster */
	_Atomic bool x_expected; /* set by the first receive since the last revive() */
	bool heard_expected;     /* the poller has acted on x_expected */
	_Atomic bool x_died;     /* set once, when the launcher says that its process has ended */
	bool heard;              /* the poller has acted on x_wanted */
	bool dialed;             /* LINKED by our own attempt */
	bool revived;            /* it has been linked before */
	bool lacked;             /* an attempt has failed for want of descriptors or memory here */
	uint8_t probes;          /* dials since a poster wanted it last, of an expected peer */
	bool refused;            /* GONE because no process listens there any more */
	bool connected; /* the socket's connect() is through: now the peer may take its time */
	uint8_t state;
	unsigned attempts;
	unsigned answered; /* attempts that the other side ended after connect() was through */
	int fd;
	uint64_t linked_ns;
	uint64_t began_ns; /* first attempt; 0: none yet */
	uint64_t next_ns;  /* WAITING: dial again then; DIALING: give up this attempt then */
	struct weft_auth *auth;
	char where[72];
	char why[96];
};

struct weft_lobby {
	const struct weft_lobby_ops *ops;
	void *arg;
	const struct weft_net_job *job;
	struct weft_hub *hub;
	_Atomic unsigned x_wants;
	int listeners[WEFT_LOBBY_LISTENERS];
	unsigned n_listeners, n_guests, n_dials; /* n_dials: peers DIALING or WAITING */
	unsigned n_expected;                     /* peers EXPECTED */
	uint64_t expected_ns;                    /* no EXPECTED peer is due before */
	bool paused, pause_said;
	uint64_t resume_ns;
	unsigned eager;      /* looks that are still to follow closely on a guest's arrival */
	uint64_t slowest_ns; /* of the guests that proved themselves */
	int upcalls;         /* since the last take */
	struct weft_lobby_guest *guests;
	struct weft_lobby_peer *peers;
};

weft_err weft_net_lobby_open(struct weft_lobby *l, const struct weft_lobby_ops *ops, void *arg,
			     const struct weft_net_job *job, struct weft_hub *hub) weft_must_use;
void weft_net_lobby_close(struct weft_lobby *l);

/* Accepts from fd, a listening non-blocking socket, from now on and owns it. */
weft_err weft_net_lobby_listen(struct weft_lobby *l, int fd) weft_must_use;

/* Stops listening on the n-th of them. */
void weft_net_lobby_unlisten(struct weft_lobby *l, unsigned n);

/* Asks for a connection to peer.  True: this call was the first; the poller may need waking. */
bool weft_net_lobby_want(struct weft_lobby *l, int peer);

/* A receive waits for peer: dials in a while unless it connects before, so that its end is noticed.  Any thread; the
 * answer is that of want. */
bool weft_net_lobby_expect(struct weft_lobby *l, int peer);

/* The launcher says that peer's process has ended: a peer that is not linked is lost.  Any thread; the answer is
 * that of want. */
bool weft_net_lobby_died(struct weft_lobby *l, int peer);

/* Handles an event of one of the lobby's kinds. */
void weft_net_lobby_event(struct weft_lobby *l, uint64_t data, uint32_t events);
/* Handles wishes and deadlines; call after the events, now and then. */
void weft_net_lobby_work(struct weft_lobby *l);
/* The driver lost a linked peer: no further connection with it. */
void weft_net_lobby_forget(struct weft_lobby *l, int peer);

/* After forget(): a connection may be made again, by either side. */
void weft_net_lobby_revive(struct weft_lobby *l, int peer);

/*
 * A connection with peer has just ended by agreement: guests that say they are peer go.  One of them may be the peer's own
 * attempt from when both sides dialed, which it gave up as that connection came through; else it dials again.
 */
void weft_net_lobby_show_out(struct weft_lobby *l, int peer);

/* In a forked child: closes the sockets, touches nothing else. */
void weft_net_lobby_let_go(const struct weft_lobby *l);

static inline bool weft_net_lobby_wanted(struct weft_lobby *l)
{
	/* SEE <- WANT (weft_net_lobby_want).  Carries: peers[].x_wanted.  Without it a wish might be
	 * counted but not found in this round; it would be found in the next. */
	return atomic_load_explicit(&l->x_wants, memory_order_acquire) != 0;
}

/* Has the peer's host taken our connection?  Then a process listens there. */
static inline bool weft_net_lobby_taken(const struct weft_lobby *l, int peer)
{
	const struct weft_lobby_peer *p = &l->peers[peer];
	return p->connected || p->state == WEFT_LOBBY_LINKED;
}

/* For weft_assert: the counts are what guests and peers say.  Asked between two events. */
static inline bool weft_net_lobby_counts_right(const struct weft_lobby *l)
{
	unsigned guests = 0, dials = 0, expected = 0;
	for (int i = 0; i < WEFT_LOBBY_GUESTS; i++)
		guests += l->guests[i].fd >= 0;
	for (int i = 0; i < l->job->size; i++) {
		dials += l->peers[i].state == WEFT_LOBBY_DIALING ||
			 l->peers[i].state == WEFT_LOBBY_WAITING;
		expected += l->peers[i].state == WEFT_LOBBY_EXPECTED;
	}
	return guests == l->n_guests && dials == l->n_dials && expected == l->n_expected;
}

/* How often something that is under way must be looked at, even if nothing happens; 0: not at all. */
unsigned weft_net_lobby_tick_ms(const struct weft_lobby *l);

/* Is something under way that should be over soon?  Not what strangers can make last. */
static inline bool weft_net_lobby_busy(struct weft_lobby *l)
{
	return (l->n_guests && l->eager) || l->n_dials || l->paused || weft_net_lobby_wanted(l);
}

#endif
