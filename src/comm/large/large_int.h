/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * large_int.h - what the files of comm/large share.  None calls one that stands above it:
 *
 *   large.c                        what the peers say, and what follows; chooses
 *   copy.c   share.c, share_help.c runs copies | a copy by both sides
 *   packets.c                      CTS and DATA packets
 *   pieces.c   rdma_write.c        copies a piece | writes of the network
 *   route.c   path_cost.c          the choice | what routes cost
 */
#ifndef WEFT_COMM_LARGE_INT_H
#define WEFT_COMM_LARGE_INT_H

#include "comm/request.h"

/* Bytes per call of the kernel: 25 us at hot-copy speed; fewer calls cost less, larger pieces leave
 * caches. */
#define WEFT_LARGE_PIECE ((size_t)256 * 1024)

/* Copied on the spot, by the thread that matched the message: at most 15 us, less than handing it
 * over costs when another thread must wake for it. */
#define WEFT_LARGE_ON_SPOT ((size_t)128 * 1024)

/* A DATA packet's share when either side has to pack or unpack aside. */
#define WEFT_LARGE_CHUNK ((size_t)64 * 1024)

static inline void weft_comm_large_recv_to(struct weft_core_req_recv *v,
					   enum weft_comm_large_state to)
{
	weft_assert(weft_comm_large_may_follow((enum weft_comm_large_state)v->state, to));
	v->state = (uint8_t)to;
}

static inline void weft_comm_large_recv_route(struct weft_core_req_recv *v, enum weft_comm_route to)
{
	weft_assert(v->route == to ||
		    weft_comm_route_may_follow((enum weft_comm_route)v->route, to));
	v->route = (uint8_t)to;
}

static inline void weft_comm_large_send_to(struct weft_core_req_send *s,
					   enum weft_comm_large_state to,
					   enum weft_comm_route route)
{
	weft_assert(weft_comm_large_may_follow((enum weft_comm_large_state)s->state, to));
	weft_assert(s->route == route ||
		    weft_comm_route_may_follow((enum weft_comm_route)s->route, route));
	s->state = (uint8_t)to;
	s->route = (uint8_t)route;
}

static inline bool weft_comm_large_shared(const struct weft_core_req_recv *v)
{
	return v->route == WEFT_ROUTE_BOTH || v->route == WEFT_ROUTE_REST;
}

#endif
