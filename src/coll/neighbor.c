/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * neighbor.c - neighbourhood collectives: a message per edge.
 *
 * Several edges may join the same two ranks.  Then the k-th message sent meets the k-th receive
 * posted.  On a Cartesian topology what goes out in one direction comes in from the opposite one,
 * so receives are posted with the two directions of each dimension exchanged.
 */
#include "coll/alg.h"

void weft_coll_build_neighbor(struct weft_coll *c, const struct weft_coll_group *g,
			      const struct weft_coll_args *a)
{
	bool same =
		a->kind == WEFT_COLL_NEIGHBOR_ALLGATHER || a->kind == WEFT_COLL_NEIGHBOR_ALLGATHERV;
	for (int k = 0; k < a->sources; k++) {
		int i = a->mirrored ? k ^ 1 : k;
		struct weft_view v = weft_coll_args_rblock(a, i);
		if (a->source[i] >= 0 && weft_coll_view_bytes(v))
			weft_coll_alg_recv(c, g, a->source[i], WEFT_TAG_EDGE, weft_coll_view_buf(v),
					   -1);
	}
	for (int k = 0; k < a->destinations; k++) {
		struct weft_view v = same ? weft_coll_view(a->sbuf, a->scount, a->stype)
					  : weft_coll_args_sblock(a, k);
		if (a->destination[k] >= 0 && weft_coll_view_bytes(v))
			weft_coll_alg_send(c, g, a->destination[k], WEFT_TAG_EDGE,
					   weft_coll_view_buf(v), -1);
	}
}
