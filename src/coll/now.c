/* SPDX-License-Identifier: BSD-3-Clause */
/* now.c - small blocking collectives without a schedule. */
#include "coll/coll.h"

weft_err weft_coll_now(const struct weft_coll_group *g, const struct weft_coll_args *a)
{
	if (g->size == 1 && !g->remote_size && a->kind == WEFT_COLL_BARRIER)
		return WEFT_OK;
	return WEFT_AGAIN;
}
