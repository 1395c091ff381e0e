/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hub.h - the one descriptor that a driver sleeps on: an epoll set with a bell and a timer in it.
 *
 * Callers   ring: any thread of this process (and each process that got wake_fd).  The rest: the
 *           thread that polls the driver.
 * Blocking  never.
 * Cost      look() is a system call; drivers call it only when armed, or when weft_net_hub_due() says
 *           that it is time, which is a decrement 63 times out of 64.
 */
#ifndef WEFT_HUB_H
#define WEFT_HUB_H

#include <sys/epoll.h>
#include "base/assert.h"
#include "base/base.h"

/* What an event is about: the upper byte of epoll's data. */
enum weft_hub_kind {
	WEFT_HUB_TIMER = 1,
	WEFT_HUB_WAKE,
	WEFT_HUB_LISTENER, /* lobby.c */
	WEFT_HUB_GUEST,
	WEFT_HUB_DIAL,
	WEFT_HUB_DRIVER, /* this and above: the driver's own */
};

#define WEFT_HUB_POLLS 64 /* between looks at the clock */

struct weft_hub {
	int epfd, timer_fd, wake_fd;
	unsigned tick_ms;    /* 0: no timer runs */
	int countdown;       /* polls until the clock is read */
	uint64_t next_cycle; /* when to look at the descriptors again */
	uint64_t every_busy, every_calm;
};

weft_err weft_net_hub_open(struct weft_hub *hub) weft_must_use;
void weft_net_hub_close(struct weft_hub *hub);

static inline uint64_t weft_net_hub_data(unsigned kind, uint64_t index)
{
	weft_assert(kind && kind < 256 && index >> 32 == 0);
	return (uint64_t)kind << 56 | index;
}

static inline unsigned weft_net_hub_kind(uint64_t data)
{
	return (unsigned)(data >> 56);
}

static inline int weft_net_hub_index(uint64_t data)
{
	return (int)(data & 0xffffffff);
}

weft_err weft_net_hub_add(struct weft_hub *hub, int fd, uint32_t events,
			  uint64_t data) weft_must_use;
void weft_net_hub_change(struct weft_hub *hub, int fd, uint32_t events, uint64_t data);
void weft_net_hub_remove(struct weft_hub *hub, int fd);

/* Can `above` epoll sets be stacked above fd?  False: the kernel finds that too deep. */
bool weft_net_hub_nests(int fd, unsigned above);

/* The events that are there now; at most max. */
int weft_net_hub_look(struct weft_hub *hub, struct epoll_event *ev, int max);

/* Makes the set readable; any thread. */
void weft_net_hub_ring(struct weft_hub *hub);
/* Takes back what ring() did. */
void weft_net_hub_quiet(struct weft_hub *hub);

/* The set becomes readable every ms milliseconds, for deadlines and back-off; 0: no more. */
#define WEFT_HUB_TICK_MS 20
void weft_net_hub_tick(struct weft_hub *hub, unsigned ms);
void weft_net_hub_ticked(struct weft_hub *hub);

/*
 * Is it time to look at the descriptors?  busy: something is being set up, look every 30 us, else
 * every 500 us, which bounds how late the death of a peer is seen by a thread that polls.
 */
static inline bool weft_net_hub_due(struct weft_hub *hub, bool busy)
{
	weft_assert(hub->epfd >= 0 && hub->countdown <= WEFT_HUB_POLLS);
	if (weft_likely(--hub->countdown > 0))
		return false;
	hub->countdown = WEFT_HUB_POLLS;
	uint64_t now = weft_cycles();
	if (now < hub->next_cycle)
		return false;
	hub->next_cycle = now + (busy ? hub->every_busy : hub->every_calm);
	return true;
}

/* weft_net_hub_due() says yes within WEFT_HUB_POLLS polls: a thread that finds what it polls for sooner
 * makes no system call. */
static inline void weft_net_hub_soon(struct weft_hub *hub)
{
	hub->next_cycle = 0;
}

/* The next weft_net_hub_due() says yes. */
static inline void weft_net_hub_hurry(struct weft_hub *hub)
{
	hub->countdown = 0;
	hub->next_cycle = 0;
}

#endif
