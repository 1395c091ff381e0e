/* SPDX-License-Identifier: BSD-3-Clause */
/* route.c - the choice of route.h, without side effects. */
#include "comm/large/route.h"

enum weft_comm_route weft_comm_route_ask(const struct weft_comm_route_facts *f)
{
	if (f->flat && f->opens && f->bytes > f->one_packet)
		return WEFT_ROUTE_RDMA;
	return WEFT_ROUTE_PACKETS;
}

enum weft_comm_route weft_comm_route_choose(const struct weft_comm_route_facts *f)
{
	if (!f->bytes)
		return WEFT_ROUTE_NONE;
	if (f->offers && f->flat && f->writable)
		return WEFT_ROUTE_PUSH;
	if (!f->readable)
		return weft_comm_route_ask(f);
	if (!f->sender_waits)
		return f->may_help ? WEFT_ROUTE_BOTH : WEFT_ROUTE_FETCH;
	/* Into small pieces the kernel copies by way of a buffer, one after the other; the ring is that
	 * buffer, and both sides copy at once. */
	if (f->fine || f->sent_sooner)
		return WEFT_ROUTE_REST;
	return f->flat && f->bytes >= f->both_least ? WEFT_ROUTE_BOTH : WEFT_ROUTE_FETCH;
}

enum weft_comm_route_turn weft_comm_route_before_copy(const struct weft_comm_route_load *l)
{
	if (!l->behind)
		return WEFT_ROUTE_COPY;
	/* No core is left: a copy now would only take from both, and one by both, once they wait,
	 * takes half as long. */
	if (l->sender_computes)
		return l->no_core_spare && l->may_leave ? WEFT_ROUTE_LEAVE : WEFT_ROUTE_COPY;
	return l->may_offer ? WEFT_ROUTE_OFFER : WEFT_ROUTE_COPY;
}

#define TO(x) (1u << (x))

bool weft_comm_large_may_follow(enum weft_comm_large_state from, enum weft_comm_large_state to)
{
	static const unsigned after[WEFT_LARGE_STATES] = {
		[WEFT_LARGE_CHOOSING] = TO(WEFT_LARGE_COPYING) | TO(WEFT_LARGE_ASKED) |
					TO(WEFT_LARGE_POSTING) | TO(WEFT_LARGE_OVER),
		[WEFT_LARGE_COPYING] = TO(WEFT_LARGE_COPYING) | TO(WEFT_LARGE_ASKED) |
				       TO(WEFT_LARGE_CHOOSING) | TO(WEFT_LARGE_POSTING) |
				       TO(WEFT_LARGE_OVER),
		[WEFT_LARGE_ASKED] =
			TO(WEFT_LARGE_CHOOSING) | TO(WEFT_LARGE_POSTING) | TO(WEFT_LARGE_OVER),
		[WEFT_LARGE_POSTING] = TO(WEFT_LARGE_CHOOSING),
	};
	return after[from] & TO(to);
}

bool weft_comm_route_may_follow(enum weft_comm_route from, enum weft_comm_route to)
{
	static const unsigned ask = TO(WEFT_ROUTE_PACKETS) | TO(WEFT_ROUTE_RDMA),
			      copy = TO(WEFT_ROUTE_FETCH) | TO(WEFT_ROUTE_BOTH) |
				     TO(WEFT_ROUTE_REST);
	const unsigned after[WEFT_ROUTES] = {
		[WEFT_ROUTE_NONE] = ask | copy | TO(WEFT_ROUTE_PUSH),
		[WEFT_ROUTE_RDMA] = TO(WEFT_ROUTE_PACKETS), /* it could not be opened */
		[WEFT_ROUTE_FETCH] = ask | copy | TO(WEFT_ROUTE_PUSH),
		[WEFT_ROUTE_PUSH] = TO(WEFT_ROUTE_PACKETS), /* it could not be written */
		[WEFT_ROUTE_BOTH] = ask | TO(WEFT_ROUTE_FETCH) | TO(WEFT_ROUTE_NONE),
		[WEFT_ROUTE_REST] =
			ask | TO(WEFT_ROUTE_FETCH) | TO(WEFT_ROUTE_PUSH) | TO(WEFT_ROUTE_NONE),
	};
	return after[from] & TO(to);
}
