/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fast.h - what the entry points of one-sided calls try first: a target that is locked and whose memory is
 * mapped here, predefined datatypes without holes, and little data.
 *
 * False means "go the usual way", with all its checks and messages; nothing has happened then.
 *
 * Cost      no call but for memcpy; see doc/rma.md.
 */
#ifndef WEFT_MPI_RMA_FAST_H
#define WEFT_MPI_RMA_FAST_H

#include <string.h>

#include "mpi/coll/op.h"
#include "mpi/entry.h"
#include "mpi/rma/win.h"

#define WEFT_MPI_RMA_FAST_MOST 2048 /* bytes: a copy of more hides what the usual way costs */

/* The window, if the target is locked and mapped; *d_p: the target. */
static inline struct weft_mpi_win *
weft_mpi_fast_win(MPI_Win h, int rank, const struct weft_rma_direct **d_p, char **map_p)
{
	struct weft_mpi_win *w = (struct weft_mpi_win *)weft_mpi_object_find_dynamic(
		(uint64_t)(uintptr_t)h, WEFT_MPI_WIN);
	if (weft_unlikely(!w || (unsigned)rank >= (unsigned)w->members || weft_mpi_hooked() ||
			  !weft_mpi_running()))
		return NULL;
	/* Acquire: TAKEN (win_sync.c). */
	if (weft_unlikely(atomic_load_explicit(&w->x_held[rank], memory_order_acquire) <=
			  WEFT_MPI_TAKING))
		return NULL;
	*d_p = &w->direct[rank];
	/* Relaxed: it does not move while the window lives; NULL once the rank is gone. */
	*map_p = atomic_load_explicit(&(*d_p)->x_map, memory_order_relaxed);
	return weft_likely(*map_p != NULL) ? w : NULL;
}

/* `bytes` bytes of the target at that displacement; NULL: not all of it lies in its memory. */
static inline char *weft_mpi_fast_there(const struct weft_rma_direct *d, char *map, MPI_Aint disp,
					size_t bytes)
{
	uint64_t at;
	if (weft_unlikely(__builtin_mul_overflow((uint64_t)disp, (uint64_t)d->unit, &at) ||
			  at > d->len || bytes > d->len - at))
		return NULL;
	return map + at;
}

static inline void weft_mpi_fast_copy(char *to, const char *from, size_t bytes)
{
	if (weft_likely(bytes == 8))
		memcpy(to, from, 8);
	else if (bytes == 4)
		memcpy(to, from, 4);
	else
		memcpy(to, from, bytes);
}

/* The target's bytes of a put or get with the same datatype on both sides. */
static inline char *weft_mpi_fast_both(const void *addr, int count, MPI_Datatype type, int rank,
				       MPI_Aint disp, int there_count, MPI_Datatype there_type,
				       MPI_Win win, size_t *bytes_p)
{
	const struct weft_rma_direct *d;
	char *map;
	uint64_t t = (uint64_t)(uintptr_t)type;

	if (weft_unlikely(type != there_type || count != there_count || count <= 0 || !addr ||
			  t >= WEFT_MPI_PREDEFINED_END))
		return NULL;
	*bytes_p = (size_t)count * weft_mpi_type_bytes[t];
	if (weft_unlikely(!*bytes_p || *bytes_p > WEFT_MPI_RMA_FAST_MOST) ||
	    !weft_mpi_fast_win(win, rank, &d, &map))
		return NULL;
	return weft_mpi_fast_there(d, map, disp, *bytes_p);
}

static inline bool weft_mpi_fast_Put(const void *addr, int count, MPI_Datatype type, int rank,
				     MPI_Aint disp, int there_count, MPI_Datatype there_type,
				     MPI_Win win)
{
	size_t bytes;
	char *there = weft_mpi_fast_both(addr, count, type, rank, disp, there_count, there_type,
					 win, &bytes);
	if (weft_unlikely(!there))
		return false;
	weft_mpi_fast_copy(there, addr, bytes);
	return true;
}

static inline bool weft_mpi_fast_Get(void *addr, int count, MPI_Datatype type, int rank,
				     MPI_Aint disp, int there_count, MPI_Datatype there_type,
				     MPI_Win win)
{
	size_t bytes;
	char *there = weft_mpi_fast_both(addr, count, type, rank, disp, there_count, there_type,
					 win, &bytes);
	if (weft_unlikely(!there))
		return false;
	weft_mpi_fast_copy(addr, there, bytes);
	return true;
}

/* ---- one element, changed by the processor ------------------------------------------------- */

/* The target's word of 4 or 8 bytes, of an integer type, entered; NULL: the usual way. */
static inline void *weft_mpi_fast_word(MPI_Datatype type, int rank, MPI_Aint disp, MPI_Win win,
				       size_t *bytes_p, const struct weft_rma_direct **d_p)
{
	char *map;
	uint64_t t = (uint64_t)(uintptr_t)type;

	if (weft_unlikely(t >= WEFT_MPI_PREDEFINED_END))
		return NULL;
	size_t bytes = weft_mpi_type_bytes[t];
	if (weft_unlikely(bytes != 8 && bytes != 4))
		return NULL;
	unsigned elem = weft_mpi_type_of(type)->layout->elem;
	if (weft_unlikely(elem >= WEFT_BASIC_COUNT) ||
	    weft_unlikely(weft_data_basic_info[elem].cls != WEFT_CLASS_INT &&
			  weft_data_basic_info[elem].cls != WEFT_CLASS_UINT))
		return NULL;
	if (!weft_mpi_fast_win(win, rank, d_p, &map) || !(*d_p)->atomics)
		return NULL;
	char *there = weft_mpi_fast_there(*d_p, map, disp, bytes);
	if (weft_unlikely(!there || (uintptr_t)there % bytes) || !weft_rma_direct_enter(*d_p))
		return NULL;
	*bytes_p = bytes;
	return there;
}

/* seq_cst, as all atomics of windows (rma/acc.c). */
static inline bool weft_mpi_fast_Fetch_and_op(const void *addr, void *result, MPI_Datatype type,
					      int rank, MPI_Aint disp, MPI_Op op, MPI_Win win)
{
	const struct weft_rma_direct *d;
	size_t bytes;
	bool reads = op == MPI_NO_OP;

	if (weft_unlikely((op != MPI_SUM && op != MPI_REPLACE && !reads) || !result ||
			  (!addr && !reads)))
		return false;
	void *there = weft_mpi_fast_word(type, rank, disp, win, &bytes, &d);
	if (weft_unlikely(!there))
		return false;
	if (bytes == 8) {
		uint64_t in = 0, was;
		if (!reads)
			memcpy(&in, addr, 8);
		was = op == MPI_SUM ? __atomic_fetch_add((uint64_t *)there, in, __ATOMIC_SEQ_CST)
		      : reads       ? __atomic_load_n((uint64_t *)there, __ATOMIC_SEQ_CST)
				    : __atomic_exchange_n((uint64_t *)there, in, __ATOMIC_SEQ_CST);
		memcpy(result, &was, 8);
	} else {
		uint32_t in = 0, was;
		if (!reads)
			memcpy(&in, addr, 4);
		was = op == MPI_SUM ? __atomic_fetch_add((uint32_t *)there, in, __ATOMIC_SEQ_CST)
		      : reads       ? __atomic_load_n((uint32_t *)there, __ATOMIC_SEQ_CST)
				    : __atomic_exchange_n((uint32_t *)there, in, __ATOMIC_SEQ_CST);
		memcpy(result, &was, 4);
	}
	weft_rma_direct_leave(d);
	return true;
}

static inline bool weft_mpi_fast_Accumulate(const void *addr, int count, MPI_Datatype type,
					    int rank, MPI_Aint disp, int there_count,
					    MPI_Datatype there_type, MPI_Op op, MPI_Win win)
{
	uint64_t was;

	return count == 1 && there_count == 1 && type == there_type && op != MPI_NO_OP &&
	       weft_mpi_fast_Fetch_and_op(addr, &was, type, rank, disp, op, win);
}

static inline bool weft_mpi_fast_Compare_and_swap(const void *addr, const void *compare,
						  void *result, MPI_Datatype type, int rank,
						  MPI_Aint disp, MPI_Win win)
{
	const struct weft_rma_direct *d;
	size_t bytes;

	if (weft_unlikely(!addr || !compare || !result))
		return false;
	void *there = weft_mpi_fast_word(type, rank, disp, win, &bytes, &d);
	if (weft_unlikely(!there))
		return false;
	if (bytes == 8) {
		uint64_t was, next;
		memcpy(&was, compare, 8);
		memcpy(&next, addr, 8);
		(void)__atomic_compare_exchange_n((uint64_t *)there, &was, next, false,
						  __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		memcpy(result, &was, 8);
	} else {
		uint32_t was, next;
		memcpy(&was, compare, 4);
		memcpy(&next, addr, 4);
		(void)__atomic_compare_exchange_n((uint32_t *)there, &was, next, false,
						  __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		memcpy(result, &was, 4);
	}
	weft_rma_direct_leave(d);
	return true;
}

/* Of mapped memory nothing is ever under way. */
static inline bool weft_mpi_fast_Win_flush(int rank, MPI_Win win)
{
	const struct weft_rma_direct *d;
	char *map;

	if (!weft_mpi_fast_win(win, rank, &d, &map))
		return false;
	/* seq_cst: stores to mapped memory are there before what the caller does next. */
	atomic_thread_fence(memory_order_seq_cst);
	return true;
}

static inline bool weft_mpi_fast_Win_flush_local(int rank, MPI_Win win)
{
	const struct weft_rma_direct *d;
	char *map;

	return weft_mpi_fast_win(win, rank, &d, &map) != NULL;
}

#endif
