/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_int.h - the shm driver's own structures.
 *
 * Each process owns memory that others write to: one inbox (bell and board) for all, and one ring
 * per connected peer.  Both are sealed memfds, handed over once per connection, together with the
 * bell's eventfd, on the unix socket that stays open as a sign of life.  A process that dies leaves
 * nothing behind, and what it had published stays readable for the receiver, which owns the memory.
 *
 *   link    none -> greeting (socket proven, ours sent) -> up -> down
 */
#ifndef WEFT_SHM_INT_H
#define WEFT_SHM_INT_H

#include <sys/types.h>
#include "base/assert.h"
#include "net/shm/bell.h"
#include "net/driver.h"
#include "net/host.h"
#include "net/hub.h"
#include "net/lobby.h"
#include "net/shm/delayed_ring.h"
#include "net/region_table.h"
#include "net/shm/ring.h"
#include "net/shm/ring_rx.h"
#include "net/shm/ring_tx.h"

#define WEFT_SHM_MAX_PAYLOAD 16384u
#define WEFT_SHM_HOT 8
#define WEFT_SHM_NAME_MAX 48

enum { WEFT_SHM_EV_SOCKET = WEFT_HUB_DRIVER, WEFT_SHM_EV_PID };

enum weft_shm_state {
	WEFT_SHM_NONE,
	WEFT_SHM_GREETING,
	WEFT_SHM_UP,
	WEFT_SHM_DOWN,
};

struct weft_shm_word {
	alignas(WEFT_CACHELINE) _Atomic uint64_t x_word;
};

/* What each process shows to all: its bell, a board and words for the layers above. */
struct weft_shm_inbox {
	struct weft_bell bell;
	alignas(WEFT_CACHELINE) char board[WEFT_NET_BOARD_BYTES];
	struct weft_shm_word word[WEFT_NET_WORDS];
	alignas(WEFT_CACHELINE) struct weft_region_shown regions;
};
_Static_assert(sizeof(struct weft_shm_inbox) <= 79 * 4096, "an inbox is 79 pages");

struct weft_shm_link {
	/* Read by posters. */
	alignas(WEFT_CACHELINE) _Atomic int x_state; /* poller writes */
	bool plain;                                  /* I: before UP */
	int bell_fd;                                 /* I: the peer's */
	struct weft_bell *bell;                      /* I: the peer's inbox */
	_Atomic bool x_blocked;                 /* poster sets, poller clears: owes a ready() */
	struct weft_net_delayed_ring_note owed; /* a ring that waits a moment */
	_Atomic uint64_t x_blocked_word; /* poster: the receiver's word when there was no room */
	struct weft_ring_tx tx;          /* poster, under the gate's mask */

	/* The poller's. */
	alignas(WEFT_CACHELINE) struct weft_ring_rx rx;
	int peer;
	bool reachable, bye_sent;
	bool offers_plain; /* what our greeting said */
	bool can_copy;     /* I: before UP: from and to its memory */
	int fd, pid_fd;
	pid_t pid;
	void *rx_memory, *tx_memory, *tx_inbox;
	size_t rx_bytes, tx_bytes;
	struct weft_ring_shape rx_shape;
	char name[WEFT_SHM_NAME_MAX]; /* abstract socket */
};

struct weft_shm {
	struct weft_net net;
	struct weft_net_events events;
	struct weft_net_job job;
	struct weft_hub hub;
	struct weft_lobby lobby;
	struct weft_shm_inbox *inbox;
	int inbox_fd;
	bool registered; /* for membarrier */
	bool fence;      /* some link is plain: arming for all needs the membarrier */
	bool listening;
	enum weft_arm_level level; /* as armed last; a ring takes it from the bell, not from here */
	int n_local;               /* processes of this job on this host, we included */
	int n_up, n_greeting;
	_Atomic int x_blocked;             /* links with x_blocked */
	struct weft_net_delayed_ring owed; /* rings that wait a moment */
	_Atomic uint64_t x_owed_due;       /* until then, in cycles; 0: not said yet */
	/* Links that are up: the first n_hot are looked at in each poll, the others in turn. */
	int *scan;
	int n_scan, next_cold, next_victim;
	uint8_t nonce[16]; /* what peers read to see whether they may read our memory */
	struct weft_net_card card_plain, card_copy;
	struct weft_region_table regions;
	char host_key[WEFT_HOST_KEY_MAX];
	char name[WEFT_SHM_NAME_MAX];
	struct weft_shm_link *link;
};

/* Switches for tests: what a kernel or a container may lack. */
struct weft_shm_lacks {
	bool membarrier, cma, memfd, pidfd;
};
/* shm_memory.c */
extern struct weft_shm_lacks weft_net_shm_lacks;
/* A sealed memfd of bytes, zero, all pages there, mapped.  WEFT_ERR_UNSUPPORTED: no memfd here, or
 * of no use under `ulimit -f`. */
weft_err weft_net_shm_memory_create(size_t bytes, int *fd_p, void **map_p) weft_must_use;
/* Maps what a peer sent, if it is sealed and of that size. */
weft_err weft_net_shm_memory_map(int fd, size_t bytes, void **map_p) weft_must_use;
void weft_net_shm_memory_unmap(void *map, size_t bytes);

/* shm_link.c */
/* A proven socket to peer: sends the greeting. */
void weft_net_shm_link_greet(struct weft_shm *s, int peer, int fd);
/* The socket or the pidfd has something: the greeting, or the end. */
void weft_net_shm_link_event(struct weft_shm *s, int peer, unsigned kind);
void weft_net_shm_link_down(struct weft_shm *s, struct weft_shm_link *k, weft_err err,
			    const char *why);
void weft_net_shm_link_free(struct weft_shm_link *k);
/* After its end: as if there had been none. */
void weft_net_shm_link_reset(struct weft_shm *s, struct weft_shm_link *k);
/* Tells a blocked poster that it may try again. */
void weft_net_shm_link_ready(struct weft_shm *s, struct weft_shm_link *k);
/* Takes packets out of k's ring, at most max; returns how many. */
int weft_net_shm_link_take(struct weft_shm *s, struct weft_shm_link *k, int max);

static inline bool weft_net_shm_is_up(struct weft_shm_link *k)
{
	/* USE <- UP (link_up).  Carries: pid, can_copy, the peer's inbox. */
	return atomic_load_explicit(&k->x_state, memory_order_acquire) == WEFT_SHM_UP;
}

/* The poller's, between two upcalls: which links are looked at, and how many. */
static inline void weft_net_shm_check(const struct weft_shm *s)
{
	weft_assert(s->n_up >= 0 && s->n_greeting >= 0 && s->n_up + s->n_greeting < s->job.size);
	weft_assert(s->n_scan == s->n_up && s->level <= WEFT_ARM_ALL);
	weft_assert(s->n_local >= 1 && s->n_local <= s->job.size);
}

/* shm_out.c: the driver's */
void weft_net_shm_died(struct weft_net *net, int peer);
void weft_net_shm_expect(struct weft_net *net, int peer);
enum weft_post weft_net_shm_post(struct weft_net *net, int peer, const void *head,
				 const struct iovec *iov, unsigned n, size_t len, void *cookie);
bool weft_net_shm_urge(struct weft_net *net, int peer, bool late);
/* Rings for peers that had just gone to compute and are not back; the poller. */
void weft_net_shm_ring_owed(struct weft_shm *s);
/* When a ring that begins to wait now is due, in cycles. */
uint64_t weft_net_shm_owed_until(void);
enum weft_post weft_net_shm_post_plain(struct weft_net *net, int peer, uint64_t w0, uint64_t w1,
				       const void *data, size_t len);

/* shm_poll.c: the driver's */
int weft_net_shm_poll(struct weft_net *net);
int weft_net_shm_spin(struct weft_net *net, unsigned turns);
weft_err weft_net_shm_arm(struct weft_net *net, enum weft_arm_level level);

/* shm_cma.c: the driver's; the first looks whether transfers will work */
bool weft_net_shm_cma_probe(struct weft_shm *s, struct weft_shm_link *k, uint64_t remote,
			    const uint8_t nonce[16]);
weft_err weft_net_shm_region_open(struct weft_net *net, int peer, void *base, size_t len,
				  unsigned access, struct weft_net_region *region) weft_must_use;
void weft_net_shm_region_close(struct weft_net *net, struct weft_net_region *region);
enum weft_post weft_net_shm_transfer(struct weft_net *net, int peer,
				     const struct weft_net_transfer *t);
enum weft_post weft_net_shm_flush(struct weft_net *net, int peer, void *cookie);

/* shm_socket.c */
int weft_net_shm_socket_listen(struct weft_shm *s);
int weft_net_shm_socket_dial(void *arg, int peer, unsigned n, char *where, size_t size);
bool weft_net_shm_socket_screen(void *arg, int fd, char *why, size_t size);
/* The process at the other end; false: another user's, or not to be known. */
bool weft_net_shm_socket_owner(int fd, pid_t *pid_p);

#endif
