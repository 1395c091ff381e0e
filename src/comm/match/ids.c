/* SPDX-License-Identifier: BSD-3-Clause */
/* ids.c - the table behind the request ids on the wire. */
#include <stdlib.h>
#include "comm/match/ids.h"

#define CHUNK (1u << WEFT_IDS_CHUNK_BITS)
#define SLOT_MASK ((1u << WEFT_IDS_SLOT_BITS) - 1)

static struct weft_ids_slot *slot_find(struct weft_ids *t, uint32_t slot)
{
	/* SEE <- PUB (grow_locked).  Carries: the chunk's zeroed slots. */
	struct weft_ids_slot *c = atomic_load_explicit(&t->x_chunk[slot >> WEFT_IDS_CHUNK_BITS],
						       memory_order_acquire);
	return c ? &c[slot & (CHUNK - 1)] : NULL;
}

/* One more chunk of free slots; false: no memory, or the table is full. */
static bool grow_locked(struct weft_ids *t)
{
	weft_assert_held(weft_comm_spin, &t->lock);
	if (t->used + CHUNK > SLOT_MASK)
		return false;
	struct weft_ids_slot *c = calloc(CHUNK, sizeof *c);
	if (!c)
		return false;
	for (uint32_t i = 0; i < CHUNK; i++) {
		c[i].next_free = t->free_head;
		t->free_head = t->used + i + 1;
		/* Relaxed: published with the chunk.  Generation 1, so that no id is ever 0. */
		atomic_init(&c[i].x_id, (t->used + i) | (1u << WEFT_IDS_SLOT_BITS));
	}
	/* PUB -> SEE (slot_find).  Carries: the slots' contents.
	 * Without it, a lookup could read an id that is not written yet. */
	atomic_store_explicit(&t->x_chunk[t->used >> WEFT_IDS_CHUNK_BITS], c, memory_order_release);
	t->used += CHUNK;
	return true;
}

uint32_t weft_comm_ids_give(struct weft_ids *t, void *owner, int peer)
{
	weft_comm_spin_lock(&t->lock);
	if (!t->free_head && !grow_locked(t)) {
		weft_comm_spin_unlock(&t->lock);
		return 0;
	}
	uint32_t slot = t->free_head - 1;
	struct weft_ids_slot *s = slot_find(t, slot);
	t->free_head = s->next_free;
	weft_comm_spin_unlock(&t->lock);

	/* Relaxed: the slot is the caller's alone until x_owner is set. */
	uint32_t id = atomic_load_explicit(&s->x_id, memory_order_relaxed);
	atomic_store_explicit(&s->x_peer, peer, memory_order_relaxed);
	/* Relaxed: a statistic. */
	atomic_fetch_add_explicit(&t->x_live, 1, memory_order_relaxed);
	/* PUB -> SEE (peek, take).  Carries: x_peer and the request's fields.
	 * Without it, the answer's handler could read a request that is not filled in. */
	atomic_store_explicit(&s->x_owner, (uint64_t)(uintptr_t)owner, memory_order_release);
	return id;
}

void *weft_comm_ids_peek(struct weft_ids *t, uint32_t id, int peer)
{
	struct weft_ids_slot *s = slot_find(t, id & SLOT_MASK);
	if (!s)
		return NULL;
	/* SEE <- PUB (give).  Carries: x_peer and the request's fields. */
	uint64_t o = atomic_load_explicit(&s->x_owner, memory_order_acquire);
	/* Relaxed: constant while the owner is set. */
	if (!o || atomic_load_explicit(&s->x_id, memory_order_relaxed) != id ||
	    atomic_load_explicit(&s->x_peer, memory_order_relaxed) != peer)
		return NULL;
	return (void *)(uintptr_t)o;
}

/* Puts slot back with its next generation. */
static void slot_release(struct weft_ids *t, struct weft_ids_slot *s, uint32_t id)
{
	uint32_t next = id + (1u << WEFT_IDS_SLOT_BITS);
	if (!(next >> WEFT_IDS_SLOT_BITS)) /* wrapped: 0 is no generation */
		next += 1u << WEFT_IDS_SLOT_BITS;
	/* Relaxed: the slot is free; handed on under the lock. */
	atomic_store_explicit(&s->x_id, next, memory_order_relaxed);
	atomic_fetch_sub_explicit(&t->x_live, 1, memory_order_relaxed);
	weft_comm_spin_lock(&t->lock);
	s->next_free = t->free_head;
	t->free_head = (id & SLOT_MASK) + 1;
	weft_comm_spin_unlock(&t->lock);
}

void *weft_comm_ids_take(struct weft_ids *t, uint32_t id, int peer)
{
	void *owner = weft_comm_ids_peek(t, id, peer);
	if (!owner)
		return NULL;
	struct weft_ids_slot *s = slot_find(t, id & SLOT_MASK);
	uint64_t want = (uint64_t)(uintptr_t)owner;
	/* TAKE: the exchange decides between takers.  Acquire as in peek; the id was checked above,
	 * and only a take could have changed it, which also clears the owner.  That owner coming
	 * back under another id in between needs the same request to be completed and started
	 * again, which its holder can only do after the taker's completion. */
	if (!atomic_compare_exchange_strong_explicit(&s->x_owner, &want, 0, memory_order_acq_rel,
						     memory_order_relaxed))
		return NULL;
	slot_release(t, s, id);
	return owner;
}

bool weft_comm_ids_any(struct weft_ids *t, int peer)
{
	weft_comm_spin_lock(&t->lock);
	uint32_t used = t->used;
	weft_comm_spin_unlock(&t->lock);

	for (uint32_t i = 0; i < used; i++) {
		struct weft_ids_slot *s = slot_find(t, i);
		/* Relaxed: a candidate; peek checks. */
		if (weft_comm_ids_peek(t, atomic_load_explicit(&s->x_id, memory_order_relaxed),
				       peer))
			return true;
	}
	return false;
}

void *weft_comm_ids_take_any(struct weft_ids *t, int peer, uint32_t *from)
{
	weft_comm_spin_lock(&t->lock);
	uint32_t used = t->used;
	weft_comm_spin_unlock(&t->lock);

	/* Bound: the slots that exist. */
	while (*from < used) {
		struct weft_ids_slot *s = slot_find(t, (*from)++);
		/* Relaxed: a candidate; take checks. */
		uint32_t id = atomic_load_explicit(&s->x_id, memory_order_relaxed);
		void *owner = weft_comm_ids_take(t, id, peer);
		if (owner)
			return owner;
	}
	return NULL;
}

void weft_comm_ids_fini(struct weft_ids *t)
{
	/* Chunks are made in order: the table of them is 128 KiB, nearly all of it never touched. */
	for (uint32_t i = 0; i < t->used >> WEFT_IDS_CHUNK_BITS; i++) {
		/* Relaxed: no other thread uses the table any more. */
		free(atomic_load_explicit(&t->x_chunk[i], memory_order_relaxed));
		atomic_store_explicit(&t->x_chunk[i], NULL, memory_order_relaxed);
	}
	t->used = t->free_head = 0;
}

void weft_comm_ids_check(struct weft_ids *t)
{
	uint32_t free_slots = 0, live = 0;

	weft_assert(!weft_comm_spin_held(&t->lock));
	weft_assert(t->used % CHUNK == 0 && t->used <= SLOT_MASK);
	/* Bound: the slots that exist; a circle would be longer. */
	for (uint32_t at = t->free_head; at; at = slot_find(t, at - 1)->next_free) {
		weft_assert(at <= t->used && free_slots < t->used);
		weft_assert(!atomic_load_explicit(&slot_find(t, at - 1)->x_owner,
						  memory_order_relaxed));
		free_slots++;
	}
	for (uint32_t at = 0; at < t->used; at++) {
		struct weft_ids_slot *s = slot_find(t, at);
		/* Relaxed, all: no thread uses the table. */
		uint32_t id = atomic_load_explicit(&s->x_id, memory_order_relaxed);
		weft_assert((id & SLOT_MASK) == at && id >> WEFT_IDS_SLOT_BITS);
		live += atomic_load_explicit(&s->x_owner, memory_order_relaxed) != 0;
	}
	weft_assert(free_slots + live == t->used);
	weft_assert(live == atomic_load_explicit(&t->x_live, memory_order_relaxed));
}
