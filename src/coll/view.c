/* SPDX-License-Identifier: BSD-3-Clause */
/* view.c - the places of blocks that arguments describe, scratch memory, and the step that copies. */
#include "coll/alg.h"

struct weft_view weft_coll_view_scratch(struct weft_coll *c, size_t count,
					const struct weft_type *t)
{
	ptrdiff_t first;
	size_t span = weft_data_type_span(t, count, &first);
	char *mem = weft_coll_sched_scratch(c, span + t->align);
	return weft_coll_view(mem - first, count, t);
}

int weft_coll_alg_copy(struct weft_coll *c, struct weft_view to, struct weft_view from, int after)
{
	if (!weft_coll_view_bytes(from) || (to.base == from.base && to.t == from.t))
		return after;
	return weft_coll_sched_copy(c, weft_coll_view_buf(to), weft_coll_view_buf(from), after);
}

struct weft_view weft_coll_args_sblock(const struct weft_coll_args *a, int i)
{
	const char *base = a->sbuf;
	if (a->stypes)
		return weft_coll_view(base + a->sdispls[i], (size_t)a->scounts[i], a->stypes[i]);
	if (a->scounts)
		return weft_coll_view(base + a->sdispls[i] * weft_data_type_extent(a->stype),
				      (size_t)a->scounts[i], a->stype);
	return weft_coll_view(base + (ptrdiff_t)a->scount * i * weft_data_type_extent(a->stype),
			      a->scount, a->stype);
}

struct weft_view weft_coll_args_rblock(const struct weft_coll_args *a, int i)
{
	const char *base = a->rbuf;
	if (a->rtypes)
		return weft_coll_view(base + a->rdispls[i], (size_t)a->rcounts[i], a->rtypes[i]);
	if (a->rcounts)
		return weft_coll_view(base + a->rdispls[i] * weft_data_type_extent(a->rtype),
				      (size_t)a->rcounts[i], a->rtype);
	return weft_coll_view(base + (ptrdiff_t)a->rcount * i * weft_data_type_extent(a->rtype),
			      a->rcount, a->rtype);
}
