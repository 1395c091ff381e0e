/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * object.h - handles: 64-bit values that name an object, and can be told from wild or stale ones.
 *
 * A predefined handle is a small integer of the ABI, found in a small table.  Any other handle is
 * kind << 56 | generation << 32 | slot: it is good only while its slot says exactly the same value,
 * so a freed or invented handle is an error and never a wild access.  Slots live in chunks that are
 * never given back.
 *
 * Callers   any thread.  find: no lock, three loads.  new, retire: one short lock.
 * Owner     the creator of the object; references (ref, unref) keep it alive beyond its handle.
 * Order     what was written to an object before new() is visible to a finder of its handle.
 */
#ifndef WEFT_MPI_OBJECT_H
#define WEFT_MPI_OBJECT_H

#include "base/base.h"

enum weft_mpi_kind {
	WEFT_MPI_NONE = 0,
	WEFT_MPI_COMM,
	WEFT_MPI_GROUP,
	WEFT_MPI_WIN,
	WEFT_MPI_FILE,
	WEFT_MPI_SESSION,
	WEFT_MPI_MESSAGE,
	WEFT_MPI_INFO,
	WEFT_MPI_ERRHANDLER,
	WEFT_MPI_REQUEST,
	WEFT_MPI_TYPE,
	WEFT_MPI_OP,
	WEFT_MPI_KIND_COUNT
};

struct weft_mpi_attrs; /* attr.c: cached attributes */
struct weft_mpi_slot;

/* First member of every object that has a handle. */
struct weft_mpi_head {
	uint64_t handle;    /* 0: has none */
	_Atomic int x_refs; /* 1 for the handle, and 1 per user of the object */
	uint32_t slot;      /* of the table; meaningless for predefined objects */
	enum weft_mpi_kind kind;
	bool permanent;               /* predefined: never freed, references are not counted */
	struct weft_mpi_slot *at;     /* the slot itself */
	struct weft_mpi_attrs *attrs; /* NULL: none; under attr.c's lock */
};

#define WEFT_MPI_PREDEFINED_END                                                                    \
	1024 /* the ABI's integers in use lie below; it reserves 0..4095                           \
	      */
#define WEFT_MPI_SLOT_CHUNK 1024
#define WEFT_MPI_SLOT_CHUNKS 65536
#define WEFT_MPI_KIND_SHIFT 56
#define WEFT_MPI_GENERATION_SHIFT 32
#define WEFT_MPI_GENERATION_MASK 0xffffffu

struct weft_mpi_slot {
	_Atomic uint64_t x_handle; /* the only value that is good for this slot; 0: none */
	_Atomic(struct weft_mpi_head *) x_head;
	uint32_t generation; /* of the last handle; owner of the slot */
	uint32_t next_free;  /* list of free slots, under the table's lock */
};

extern struct weft_mpi_head *weft_mpi_predefined[WEFT_MPI_PREDEFINED_END];
extern _Atomic(struct weft_mpi_slot *) weft_mpi_x_chunks[WEFT_MPI_SLOT_CHUNKS];

/* The slow half of find: dynamic handles. */
static inline struct weft_mpi_head *weft_mpi_object_find_dynamic(uint64_t handle,
								 enum weft_mpi_kind kind)
{
	uint32_t slot = (uint32_t)handle;

	if (handle >> WEFT_MPI_KIND_SHIFT != (uint64_t)kind ||
	    slot >= WEFT_MPI_SLOT_CHUNKS * WEFT_MPI_SLOT_CHUNK)
		return NULL;
	/* SEE-CHUNK: partner PUB-CHUNK in slot_take.  Carries: the zeroed chunk. */
	struct weft_mpi_slot *chunk = atomic_load_explicit(
		&weft_mpi_x_chunks[slot / WEFT_MPI_SLOT_CHUNK], memory_order_acquire);
	if (!chunk)
		return NULL;
	struct weft_mpi_slot *s = &chunk[slot % WEFT_MPI_SLOT_CHUNK];
	/* SEE-HANDLE: partner PUB-HANDLE in weft_mpi_object_new.  Carries: x_head and the object.
	 */
	if (atomic_load_explicit(&s->x_handle, memory_order_acquire) != handle)
		return NULL;
	/* Relaxed: ordered by SEE-HANDLE. */
	return atomic_load_explicit(&s->x_head, memory_order_relaxed);
}

/* The same by a call: entry points stay small. */
struct weft_mpi_head *weft_mpi_object_find_slow(uint64_t handle, enum weft_mpi_kind kind);

/* The object of that kind that handle names; NULL: there is none (null, freed, wild, other kind).
 */
static inline __attribute__((always_inline)) void *weft_mpi_object_find(const void *handle,
									enum weft_mpi_kind kind)
{
	uint64_t h = (uint64_t)(uintptr_t)handle;

	if (weft_likely(h < WEFT_MPI_PREDEFINED_END)) {
		struct weft_mpi_head *head = weft_mpi_predefined[h];
		return weft_likely(head && head->kind == kind) ? head : NULL;
	}
	return weft_mpi_object_find_slow(h, kind);
}

/* Gives the object a handle; the caller counts its references.  WEFT_ERR_NOMEM: no slot left. */
weft_err weft_mpi_object_new(struct weft_mpi_head *head, enum weft_mpi_kind kind) weft_must_use;
/* Makes head the object behind the ABI's integer.  Starting thread only. */
void weft_mpi_object_predefine(struct weft_mpi_head *head, enum weft_mpi_kind kind,
			       const void *handle);
/* Its handle is no longer good; the object itself stays until its last reference goes. */
void weft_mpi_object_retire(struct weft_mpi_head *head);

/* For pooled objects, which keep their slot: a new generation of the handle. */
static inline void weft_mpi_object_rename(struct weft_mpi_head *head)
{
	struct weft_mpi_slot *s = head->at;

	s->generation = (s->generation + 1) & WEFT_MPI_GENERATION_MASK;
	head->handle = (uint64_t)head->kind << WEFT_MPI_KIND_SHIFT |
		       (uint64_t)s->generation << WEFT_MPI_GENERATION_SHIFT | head->slot;
	/* PUB-HANDLE -> SEE-HANDLE (find).  Carries: x_head and the object's fields.
	 * Without it, find() could return an object that is not yet filled in. */
	atomic_store_explicit(&s->x_handle, head->handle, memory_order_release);
}

/* The same: no handle. */
static inline void weft_mpi_object_unname(struct weft_mpi_head *head)
{
	/* Relaxed: a program that uses a handle while another thread frees it breaks MPI's
	 * rules; this only makes later uses fail. */
	atomic_store_explicit(&head->at->x_handle, 0, memory_order_relaxed);
	head->handle = 0;
}

/* The value that names the object in 32 bits, and back; the converse of each other. */
int weft_mpi_handle_toint(const void *handle);
void *weft_mpi_handle_fromint(int value);

static inline void weft_mpi_object_ref(struct weft_mpi_head *head)
{
	/* Relaxed: the caller holds a reference or the handle, so the object cannot go away. */
	if (!head->permanent)
		atomic_fetch_add_explicit(&head->x_refs, 1, memory_order_relaxed);
}

/* True: that was the last reference, the caller frees the object. */
static inline bool weft_mpi_object_unref(struct weft_mpi_head *head)
{
	if (head->permanent)
		return false;
	/* LAST -> LAST.  Carries: every user's accesses to the object, to the one that frees it. */
	return atomic_fetch_sub_explicit(&head->x_refs, 1, memory_order_acq_rel) == 1;
}

#endif
