/* SPDX-License-Identifier: BSD-3-Clause */
/* object.c - the table of handles. */
#include "base/assert.h"
#include "mpi/object.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

/* Filled before MPI_Init returns, then read only. */
struct weft_mpi_head *weft_mpi_predefined[WEFT_MPI_PREDEFINED_END];
_Atomic(struct weft_mpi_slot *) weft_mpi_x_chunks[WEFT_MPI_SLOT_CHUNKS];

#define NO_SLOT UINT32_MAX

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t free_first = NO_SLOT; /* under lock; taken from the front, returned at the end, */
static uint32_t free_last = NO_SLOT;  /* so that a slot rests long and stale handles stay stale */
static uint32_t slots_made;           /* under lock */

static struct weft_mpi_slot *slot_at(uint32_t i)
{
	/* Relaxed: the caller owns slot i, so it has seen the chunk. */
	return &atomic_load_explicit(&weft_mpi_x_chunks[i / WEFT_MPI_SLOT_CHUNK],
				     memory_order_relaxed)[i % WEFT_MPI_SLOT_CHUNK];
}

static void slot_append_locked(uint32_t i)
{
	weft_assert_held(weft_mutex, &lock);
	slot_at(i)->next_free = NO_SLOT;
	if (free_last == NO_SLOT)
		free_first = i;
	else
		slot_at(free_last)->next_free = i;
	free_last = i;
}

static weft_err chunk_add_locked(void)
{
	weft_assert_held(weft_mutex, &lock);
	uint32_t n = slots_made / WEFT_MPI_SLOT_CHUNK;

	if (n == WEFT_MPI_SLOT_CHUNKS)
		return WEFT_ERR_NOMEM;
	struct weft_mpi_slot *chunk = calloc(WEFT_MPI_SLOT_CHUNK, sizeof(*chunk));
	if (!chunk)
		return WEFT_ERR_NOMEM;
	/* PUB-CHUNK -> SEE-CHUNK (find).  Carries: the zeroed chunk.
	 * Without it, find() could read slots that are not yet zero. */
	atomic_store_explicit(&weft_mpi_x_chunks[n], chunk, memory_order_release);
	for (int i = 0; i < WEFT_MPI_SLOT_CHUNK; i++)
		slot_append_locked(slots_made++);
	return WEFT_OK;
}

static weft_err slot_take(uint32_t *slot_p)
{
	weft_err err = WEFT_OK;

	pthread_mutex_lock(&lock);
	if (free_first == NO_SLOT)
		err = chunk_add_locked();
	if (!err) {
		*slot_p = free_first;
		free_first = slot_at(free_first)->next_free;
		if (free_first == NO_SLOT)
			free_last = NO_SLOT;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

struct weft_mpi_head *weft_mpi_object_find_slow(uint64_t handle, enum weft_mpi_kind kind)
{
	return weft_mpi_object_find_dynamic(handle, kind);
}

weft_err weft_mpi_object_new(struct weft_mpi_head *head, enum weft_mpi_kind kind)
{
	weft_err err = slot_take(&head->slot);

	if (err)
		return err;
	head->at = slot_at(head->slot);
	head->kind = kind;
	head->permanent = false;
	/* Relaxed: ordered by the release that follows. */
	atomic_store_explicit(&head->at->x_head, head, memory_order_relaxed);
	weft_mpi_object_rename(head);
	return WEFT_OK;
}

void weft_mpi_object_retire(struct weft_mpi_head *head)
{
	weft_mpi_object_unname(head);
	pthread_mutex_lock(&lock);
	slot_append_locked(head->slot);
	pthread_mutex_unlock(&lock);
}

void weft_mpi_object_predefine(struct weft_mpi_head *head, enum weft_mpi_kind kind,
			       const void *handle)
{
	uint64_t h = (uint64_t)(uintptr_t)handle;

	head->handle = h;
	head->kind = kind;
	head->permanent = true;
	/* Relaxed: the starting thread; others come later. */
	atomic_store_explicit(&head->x_refs, 1, memory_order_relaxed);
	weft_mpi_predefined[h] = head;
}

/* Small integers stay; a dynamic handle is its slot, which knows the generation. */
int weft_mpi_handle_toint(const void *handle)
{
	uint64_t h = (uint64_t)(uintptr_t)handle;

	if (h < 4096)
		return (int)h;
	uint32_t slot = (uint32_t)h;
	return slot <= INT_MAX - 4096 ? (int)(slot + 4096) : -1;
}

void *weft_mpi_handle_fromint(int value)
{
	if (value >= 0 && value < 4096)
		return (void *)(uintptr_t)value;
	uint32_t slot = (uint32_t)value - 4096;
	if (value < 0 || slot >= WEFT_MPI_SLOT_CHUNKS * WEFT_MPI_SLOT_CHUNK)
		return NULL;
	/* SEE-CHUNK, SEE-HANDLE: as in weft_mpi_object_find_dynamic. */
	struct weft_mpi_slot *chunk = atomic_load_explicit(
		&weft_mpi_x_chunks[slot / WEFT_MPI_SLOT_CHUNK], memory_order_acquire);
	if (!chunk)
		return NULL;
	return (void *)(uintptr_t)atomic_load_explicit(&chunk[slot % WEFT_MPI_SLOT_CHUNK].x_handle,
						       memory_order_acquire);
}
