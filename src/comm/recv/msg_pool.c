/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * msg_pool.c - memory for unexpected messages: three sizes kept ready, larger ones from malloc.
 */
#include <stdlib.h>
#include "base/counters.h"
#include "comm/core.h"
#include "comm/recv/msg_pool.h"
#include "comm/send/credit.h"

/* Payload rooms.  The first holds what most control traffic needs, the last a full eager message
 * of shm; each class keeps about half a megabyte at most for all cores, and a pair of batches for
 * each. */
static const size_t pool_room[WEFT_POOL_CLASSES] = {64, 1024, 8192};
static const unsigned pool_keep[WEFT_POOL_CLASSES] = {2048, 512, 64};
static const unsigned pool_batch[WEFT_POOL_CLASSES] = {32, 16, 4};

struct weft_msg *weft_comm_msg_alloc(struct weft_core *core, size_t payload)
{
	unsigned c = 0;
	while (c < WEFT_POOL_CLASSES && payload > pool_room[c])
		c++;
	struct weft_msg *m = NULL;
	size_t room = payload;
	if (c < WEFT_POOL_CLASSES) {
		struct weft_comm_packet_pool_item *i = weft_comm_packet_pool_take(&core->pool[c]);
		m = i ? weft_container_of(i, struct weft_msg, stashed) : NULL;
		room = pool_room[c];
	}
	if (!m) {
		weft_count(WEFT_CNT_POOL_MADE, c < WEFT_POOL_CLASSES);
		if (room > SIZE_MAX - sizeof *m - WEFT_CACHELINE)
			return NULL;
		m = aligned_alloc(WEFT_CACHELINE, weft_align_up(sizeof *m + room, WEFT_CACHELINE));
		if (!m)
			return NULL;
	}
	m->core = core;
	m->pool_class = (uint8_t)c;
	m->id = 0;
	m->charge = 0;
	m->addr = 0;
	m->send = NULL;
	return m;
}

static void free_items(struct weft_comm_packet_pool_item *i)
{
	while (i) {
		struct weft_comm_packet_pool_item *next = i->next;
		free(weft_container_of(i, struct weft_msg, stashed));
		i = next;
	}
}

void weft_comm_msg_free(struct weft_msg *m)
{
	if (m->charge)
		weft_comm_credit_used_late(&m->core->gate[m->node.peer], m->charge);
	if (m->pool_class < WEFT_POOL_CLASSES)
		free_items(weft_comm_packet_pool_give(&m->core->pool[m->pool_class], &m->stashed));
	else
		free(m);
}

/* ---- life --------------------------------------------------------------------------------- */

weft_err weft_comm_msg_pool_init(struct weft_core *core)
{
	for (int c = 0; c < WEFT_POOL_CLASSES; c++)
		if (weft_comm_packet_pool_init(&core->pool[c], pool_batch[c], pool_keep[c]))
			return WEFT_ERR_NOMEM;
	return WEFT_OK;
}

void weft_comm_msg_pool_fini(struct weft_core *core)
{
	for (int c = 0; c < WEFT_POOL_CLASSES; c++)
		free_items(weft_comm_packet_pool_fini(&core->pool[c]));
}
