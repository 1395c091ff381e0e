/* SPDX-License-Identifier: BSD-3-Clause */
/* names.c - what collectives are called in messages to the user. */
#include "coll/alg.h"

static const char *const names[WEFT_COLL_KIND_COUNT] = {
	"barrier",
	"bcast",
	"gather",
	"gatherv",
	"scatter",
	"scatterv",
	"allgather",
	"allgatherv",
	"alltoall",
	"alltoallv",
	"alltoallw",
	"reduce",
	"allreduce",
	"reduce_scatter",
	"reduce_scatter_block",
	"scan",
	"exscan",
	"neighbor_allgather",
	"neighbor_allgatherv",
	"neighbor_alltoall",
	"neighbor_alltoallv",
	"neighbor_alltoallw",
	"blocking collective file access",
};

const char *weft_coll_kind_name(uint32_t kind)
{
	if (kind == WEFT_COLL_FILE || kind == WEFT_COLL_FILE_TOLD)
		return "collective file access";
	if (kind == WEFT_COLL_FILE_ALONE)
		return "collective file access on its own";
	return kind < WEFT_COLL_KIND_COUNT ? names[kind] : "something else";
}

const char *weft_coll_comm_name(struct weft_ctx *ctx)
{
	static _Thread_local char name[WEFT_COMM_NAME];
	weft_comm_ctx_name(ctx, name, sizeof name);
	return name[0] ? name : "an unnamed communicator";
}
