/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * msg_pool.c - memory for unexpected messages: three sizes kept ready, larger ones from malloc.  One of
 * the largest class is held in reserve: a message for which there is no memory costs the peer, so a
 * single failure shall not.
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

#define LARGEST (WEFT_POOL_CLASSES - 1)

static struct weft_msg *make_msg(size_t room)
{
	if (room > SIZE_MAX - sizeof(struct weft_msg) - WEFT_CACHELINE)
		return NULL;
	return aligned_alloc(WEFT_CACHELINE,
			     weft_align_up(sizeof(struct weft_msg) + room, WEFT_CACHELINE));
}

static struct weft_msg *take_reserve(struct weft_core *core)
{
	/* TAKE <- KEEP (keep_reserve).  Carries: its last user is through with it. */
	return atomic_exchange_explicit(&core->x_msg_reserve, NULL, memory_order_acquire);
}

/* False: there is one. */
static bool keep_reserve(struct weft_core *core, struct weft_msg *m)
{
	struct weft_msg *none = NULL;
	/* Relaxed: a hint. */
	if (weft_likely(atomic_load_explicit(&core->x_msg_reserve, memory_order_relaxed) != NULL))
		return false;
	/* KEEP -> TAKE (take_reserve). */
	return atomic_compare_exchange_strong_explicit(&core->x_msg_reserve, &none, m,
						       memory_order_release, memory_order_relaxed);
}

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
		m = make_msg(room);
		if (weft_unlikely(!m) && c < WEFT_POOL_CLASSES) {
			m = take_reserve(core);
			c = LARGEST;
		}
		if (weft_unlikely(!m))
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
	if (m->pool_class == LARGEST && keep_reserve(m->core, m))
		return;
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
	struct weft_msg *m = make_msg(pool_room[LARGEST]);
	if (!m)
		return WEFT_ERR_NOMEM;
	m->pool_class = LARGEST;
	(void)keep_reserve(core, m);
	return WEFT_OK;
}

void weft_comm_msg_pool_fini(struct weft_core *core)
{
	free(take_reserve(core));
	for (int c = 0; c < WEFT_POOL_CLASSES; c++)
		free_items(weft_comm_packet_pool_fini(&core->pool[c]));
}
