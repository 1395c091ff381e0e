/* SPDX-License-Identifier: BSD-3-Clause */
/* acc.c - accumulates: under the target's lock, or by atomics of the processor. */
#include "rma/acc.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include "base/assert.h"
#include "base/log.h"
#include "base/membarrier.h"

#define ACC_BLOCK 32768   /* bytes: the lock is held for some 10 us */
#define SMALL 256         /* bytes that go through the stack */
#define LOOKS_BEFORE 1000 /* at a lock, before its holder is looked for */
#define CPU_BLOCK 4096    /* bytes: a member is inside for some 5 us */
#define BULK_LEAST 512    /* elements: from here on a membarrier pays */
#define BULK_BLOCK 262144 /* bytes: others wait for some 30 us */
#define DRAIN_LOOKS 2000  /* at a member that is inside: stopped, or dead */

/* ---- elements ----------------------------------------------------------------------------- */

/* A pair as C lays it out, and as data: the value, then the index. */
struct pair {
	uint8_t value, index, index_at, size;
};

#define WEFT_PAIR(id, v, vt, i, it)                                                                \
	[WEFT_B_##id - WEFT_PAIR_FIRST] = {sizeof(vt), sizeof(it),                                 \
					   offsetof(struct weft_pair_##id, index),                 \
					   sizeof(struct weft_pair_##id)},
static const struct pair pairs[] = {
#include "data/pair_table.h"
};
#undef WEFT_PAIR

size_t weft_rma_elem_bytes(unsigned elem)
{
	weft_assert(weft_data_is_elem(elem));
	if (elem < WEFT_BASIC_COUNT)
		return weft_data_basic_info[elem].size;
	const struct pair *p = &pairs[elem - WEFT_PAIR_FIRST];
	return (size_t)p->value + p->index;
}

static void pair_load(const struct pair *p, char *to, const char *data)
{
	memcpy(to, data, p->value);
	memcpy(to + p->index_at, data + p->value, p->index);
}

static void pair_store(const struct pair *p, char *data, const char *from)
{
	memcpy(data, from, p->value);
	memcpy(data + p->value, from + p->index_at, p->index);
}

/* inout = in op inout, on data of whole elements.  Both are aligned for any element. */
static void combine_elements(weft_reduce_fn *fn, unsigned elem, const char *in, char *inout,
			     size_t bytes)
{
	size_t size = weft_rma_elem_bytes(elem);
	weft_assert(bytes % size == 0);
	if (elem < WEFT_BASIC_COUNT) {
		fn(in, inout, bytes / size);
		return;
	}
	const struct pair *p = &pairs[elem - WEFT_PAIR_FIRST];
	alignas(16) char a[32], b[32];
	for (size_t at = 0; at < bytes; at += size) {
		pair_load(p, a, in + at);
		pair_load(p, b, inout + at);
		fn(a, b, 1);
		pair_store(p, inout + at, b);
	}
}

/* ---- the lock ----------------------------------------------------------------------------- */

static bool acc_try(struct weft_rma_slot *s, int32_t me)
{
	int32_t none = 0;
	/* TAKE <- GIVE.  Carries: the elements. */
	return atomic_compare_exchange_strong_explicit(&s->x_acc, &none, me, memory_order_acquire,
						       memory_order_relaxed);
}

/* Takes the lock over from a holder that is no more. */
static bool acc_inherit(const struct weft_rma_target *t, int32_t me)
{
	struct weft_rma_slot *s = t->slot;
	/* Relaxed: the exchange decides. */
	int32_t holder = atomic_load_explicit(&s->x_acc, memory_order_relaxed);
	if (holder <= 0 || holder == me)
		return false;
	/* The slots of a host follow each other. */
	const struct weft_rma_slot *its = s - t->place + (holder - 1);
	if (weft_rma_process_start(its->pid) == its->start)
		return false;
	/* TAKE <- GIVE: what a dead holder wrote, the kernel has made visible. */
	if (!atomic_compare_exchange_strong_explicit(&s->x_acc, &holder, me, memory_order_acquire,
						     memory_order_relaxed))
		return false;
	weft_warn("window: process %d died while it changed memory under a lock; that memory may "
		  "be half written",
		  its->pid);
	return true;
}

static void acc_lock(const struct weft_rma_win *win, int rank)
{
	const struct weft_rma_target *t = &win->target[rank];
	int32_t me = win->target[win->rank].place + 1;
	/* Ends when the holder gives it up, which it does without waiting, or is dead. */
	for (unsigned looks = 1; !acc_try(t->slot, me); looks++) {
		if (looks % LOOKS_BEFORE == 0 && acc_inherit(t, me))
			return;
		if (looks % 16 == 0)
			sched_yield(); /* the holder may need this core */
	}
}

static void acc_unlock(const struct weft_rma_win *win, int rank)
{
	/* GIVE -> TAKE.  Carries: the elements. */
	atomic_store_explicit(&win->target[rank].slot->x_acc, 0, memory_order_release);
}

/* ---- by the processor --------------------------------------------------------------------- */

/* SEQ: the one order of all atomics of a window; also what a caller's own loads are ordered by. */
static inline uint64_t cpu_load(void *at, size_t size)
{
	switch (size) {
	case 1:
		return __atomic_load_n((uint8_t *)at, __ATOMIC_SEQ_CST);
	case 2:
		return __atomic_load_n((uint16_t *)at, __ATOMIC_SEQ_CST);
	case 4:
		return __atomic_load_n((uint32_t *)at, __ATOMIC_SEQ_CST);
	default:
		return __atomic_load_n((uint64_t *)at, __ATOMIC_SEQ_CST);
	}
}

/* *was_p is updated where the memory differs from it. */
static inline bool cpu_swap(void *at, size_t size, uint64_t *was_p, uint64_t value)
{
	uint8_t was1 = (uint8_t)*was_p;
	uint16_t was2 = (uint16_t)*was_p;
	uint32_t was4 = (uint32_t)*was_p;
	bool done;
	switch (size) {
	case 1:
		done = __atomic_compare_exchange_n((uint8_t *)at, &was1, (uint8_t)value, false,
						   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		*was_p = was1;
		return done;
	case 2:
		done = __atomic_compare_exchange_n((uint16_t *)at, &was2, (uint16_t)value, false,
						   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		*was_p = was2;
		return done;
	case 4:
		done = __atomic_compare_exchange_n((uint32_t *)at, &was4, (uint32_t)value, false,
						   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		*was_p = was4;
		return done;
	default:
		return __atomic_compare_exchange_n((uint64_t *)at, was_p, value, false,
						   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	}
}

/* What was there before. */
static inline uint64_t cpu_apply(const struct weft_rma_reduction *red, weft_reduce_fn *fn, void *at,
				 size_t size, uint64_t operand)
{
	uint8_t cls = weft_data_basic_info[red->elem].cls;
	bool whole = cls == WEFT_CLASS_INT || cls == WEFT_CLASS_UINT;
	if (red->op == WEFT_OP_NO_OP)
		return cpu_load(at, size);
	if (red->op == WEFT_OP_SUM && whole && size == 8)
		return __atomic_fetch_add((uint64_t *)at, operand, __ATOMIC_SEQ_CST);
	if (red->op == WEFT_OP_SUM && whole && size == 4)
		return __atomic_fetch_add((uint32_t *)at, (uint32_t)operand, __ATOMIC_SEQ_CST);
	if (red->op == WEFT_OP_REPLACE && size == 8)
		return __atomic_exchange_n((uint64_t *)at, operand, __ATOMIC_SEQ_CST);
	uint64_t was = cpu_load(at, size), next;
	do { /* ends: another processor's success is progress */
		next = was;
		fn(&operand, &next, 1);
	} while (!cpu_swap(at, size, &was, next));
	return was;
}

static bool fits_cpu(const void *at, size_t len, size_t size)
{
	return len % size == 0 && (uintptr_t)at % size == 0;
}

/* Data bytes from `at` on where a buffer has them in one piece, else NULL. */
static char *flat_at(const struct weft_buf *b, size_t at)
{
	return b && !b->type ? (char *)b->base + at : NULL;
}

/* One element between a buffer and a word. */
static void word_load(const struct weft_buf *b, const char *flat, size_t at, uint64_t *word,
		      size_t size)
{
	if (weft_likely(flat != NULL))
		memcpy(word, flat, size);
	else if (b)
		weft_data_pack(b, at, word, size);
}

static void word_store(const struct weft_buf *b, char *flat, size_t at, const uint64_t *word,
		       size_t size)
{
	if (weft_likely(flat != NULL))
		memcpy(flat, word, size);
	else if (b)
		weft_data_unpack(b, at, word, size);
}

/* Before changes by the processor; then direct_leave.  Waits for a bulk to end. */
static void single_enter(const struct weft_rma_win *win, int rank)
{
	/* Ends when the bulk does, or its holder is dead. */
	for (unsigned looks = 1; !weft_rma_direct_enter(&win->direct[rank]); looks++) {
		sched_yield();
		if (looks % LOOKS_BEFORE == 0 &&
		    acc_inherit(&win->target[rank], win->target[win->rank].place + 1))
			acc_unlock(win, rank);
	}
}

/* The elements of one piece, data bytes [at, at + len) of the access; size is a number for the compiler. */
static inline __attribute__((always_inline)) void cpu_elements(const struct weft_rma_acc *a,
							       weft_reduce_fn *fn, char *piece,
							       size_t at, size_t len, size_t size)
{
	const char *in = flat_at(a->from, a->from_at + at);
	char *out = flat_at(a->result, a->result_at + at);
	for (size_t i = 0; i < len; i += size) {
		uint64_t operand = 0;
		word_load(a->from, in ? in + i : NULL, a->from_at + at + i, &operand, size);
		uint64_t was = cpu_apply(&a->red, fn, piece + i, size, operand);
		word_store(a->result, out ? out + i : NULL, a->result_at + at + i, &was, size);
	}
}

static void cpu_some(const struct weft_rma_acc *a, weft_reduce_fn *fn, char *piece, size_t at,
		     size_t len)
{
	switch (weft_rma_elem_bytes(a->red.elem)) {
	case 8:
		cpu_elements(a, fn, piece, at, len, 8);
		break;
	case 4:
		cpu_elements(a, fn, piece, at, len, 4);
		break;
	case 2:
		cpu_elements(a, fn, piece, at, len, 2);
		break;
	default:
		cpu_elements(a, fn, piece, at, len, 1);
	}
}

static void cpu_piece(const struct weft_rma_acc *a, weft_reduce_fn *fn, char *piece, size_t at,
		      size_t len)
{
	/* A bulk that waits meanwhile waits for one turn. */
	for (size_t done = 0; done < len; done += CPU_BLOCK) {
		size_t now = len - done < CPU_BLOCK ? len - done : CPU_BLOCK;
		single_enter(a->win, a->rank);
		cpu_some(a, fn, piece + done, at + done, now);
		weft_rma_direct_leave(&a->win->direct[a->rank]);
	}
}

/* ---- scratch memory ------------------------------------------------------------------------- */

/* Room for an operand and for what was there, 2 * ACC_BLOCK bytes: the window keeps one of them.  NULL: no memory. */
static char *scratch_take(struct weft_rma_win *win)
{
	/* TAKEN <- GIVEN.  Carries nothing of worth: that its last user has done with it. */
	char *kept = atomic_exchange_explicit(&win->x_scratch, NULL, memory_order_acquire);
	return kept ? kept : aligned_alloc(16, 2 * ACC_BLOCK);
}

static void scratch_give(struct weft_rma_win *win, char *scratch)
{
	char *none = NULL;
	/* GIVEN -> TAKEN.  Without it, the next user's bytes could come before our last look. */
	if (scratch &&
	    !atomic_compare_exchange_strong_explicit(&win->x_scratch, &none, scratch,
						     memory_order_release, memory_order_relaxed))
		free(scratch); /* another thread's is kept */
}

/* ---- in bulk: direct.h says why --------------------------------------------------------------- */

/* Waits until no member is inside of the target, nor another thread of this one.  False: one does not come out. */
static bool drain_target(const struct weft_rma_win *win, int rank)
{
	if (win->places == 1 && !win->threads)
		return true;
	weft_membarrier_global();
	for (int i = 0; i < win->places; i++) {
		unsigned looks = 0;
		/* DRAIN <- OUT.  Carries: the elements.  Ends: it comes out, or it takes too long. */
		while (atomic_load_explicit(weft_rma_inside(win, i, rank), memory_order_acquire)) {
			if (++looks == DRAIN_LOOKS)
				return false;
			sched_yield();
		}
	}
	return true;
}

/* Data bytes [at, at + len), in a flat piece of memory; under x_acc. */
static void bulk_piece(const struct weft_rma_acc *a, weft_reduce_fn *fn, char *piece, size_t at,
		       size_t len, char *room)
{
	size_t size = weft_rma_elem_bytes(a->red.elem);
	if (a->result)
		weft_data_unpack(a->result, a->result_at + at, piece, len);
	if (a->red.op == WEFT_OP_NO_OP)
		return;
	const char *in = flat_at(a->from, a->from_at + at);
	if (in && fits_cpu(in, len, size)) {
		fn(in, piece, len / size);
		return;
	}
	for (size_t done = 0; done < len; done += ACC_BLOCK) {
		size_t now = len - done < ACC_BLOCK ? len - done : ACC_BLOCK;
		weft_data_pack(a->from, a->from_at + at + done, room, now);
		fn(room, piece + done, now / size);
	}
}

/* True: done.  False: element by element, then; nothing has been changed. */
static bool in_bulk(const struct weft_rma_acc *a, weft_reduce_fn *fn, char *piece, size_t at,
		    size_t len)
{
	const char *in = flat_at(a->from, a->from_at + at);
	bool packs = a->from && !(in && fits_cpu(in, len, weft_rma_elem_bytes(a->red.elem)));
	char *room = packs ? scratch_take(a->win) : NULL;
	bool done = false;
	if (packs && !room)
		return false;
	acc_lock(a->win, a->rank);
	done = drain_target(a->win, a->rank);
	if (done)
		bulk_piece(a, fn, piece, at, len, room);
	acc_unlock(a->win, a->rank);
	scratch_give(a->win, room);
	return done;
}

/* Data bytes [at, at + len), which lie flat. */
static void flat_piece(const struct weft_rma_acc *a, weft_reduce_fn *fn, char *piece, size_t at,
		       size_t len)
{
	size_t size = weft_rma_elem_bytes(a->red.elem);
	bool bulk = a->win->bulk && len >= BULK_LEAST * size;
	for (size_t done = 0, now; done < len; done += now) {
		now = bulk && len - done > BULK_BLOCK ? BULK_BLOCK : len - done;
		bulk = bulk && in_bulk(a, fn, piece + done, at + done, now);
		if (!bulk) {
			now = len - done;
			cpu_piece(a, fn, piece + done, at + done, now);
		}
	}
}

/* ---- the whole ---------------------------------------------------------------------------- */

static weft_err locked_block(const struct weft_rma_acc *a, weft_reduce_fn *fn, size_t at,
			     size_t len, char *old, char *operand)
{
	/* What was there does not matter to a REPLACE. */
	bool reads = a->result || a->red.op != WEFT_OP_REPLACE;
	weft_err err = reads ? weft_rma_memory_read(&a->there, at, old, len) : WEFT_OK;
	if (!err && a->result)
		weft_data_unpack(a->result, a->result_at + at, old, len);
	if (err || a->red.op == WEFT_OP_NO_OP)
		return err;
	const char *in = flat_at(a->from, a->from_at + at);
	if (a->red.op == WEFT_OP_REPLACE && in)
		return weft_rma_memory_write(&a->there, at, in, len);
	weft_data_pack(a->from, a->from_at + at, operand, len);
	if (a->red.op == WEFT_OP_REPLACE)
		return weft_rma_memory_write(&a->there, at, operand, len);
	combine_elements(fn, a->red.elem, operand, old, len);
	return weft_rma_memory_write(&a->there, at, old, len);
}

/* Data bytes [at, at + len), block by block. */
static weft_err by_lock(const struct weft_rma_acc *a, weft_reduce_fn *fn, size_t at, size_t len)
{
	alignas(16) char small[2 * SMALL];
	size_t size = weft_rma_elem_bytes(a->red.elem);
	size_t block = ACC_BLOCK / size * size;
	char *scratch = len > SMALL ? scratch_take(a->win) : NULL;
	char *old = scratch ? scratch : small;
	char *operand = scratch ? scratch + ACC_BLOCK : small + SMALL;
	if (!scratch && len > SMALL)
		block = SMALL / size * size; /* no memory: slower */
	weft_err err = WEFT_OK;
	for (size_t end = at + len; at < end && !err;) {
		size_t now = end - at < block ? end - at : block;
		acc_lock(a->win, a->rank);
		err = locked_block(a, fn, at, now, old, operand);
		acc_unlock(a->win, a->rank);
		at += now;
	}
	scratch_give(a->win, scratch);
	return err;
}

static weft_err by_cpu(const struct weft_rma_acc *a, weft_reduce_fn *fn)
{
	size_t size = weft_rma_elem_bytes(a->red.elem);
	for (size_t at = 0; at < a->bytes;) {
		struct iovec piece;
		unsigned n = 1;
		size_t len = weft_data_iov(&a->there.buf, at, &piece, &n);
		weft_assert(len);
		len = len < a->bytes - at ? len : a->bytes - at;
		if (!fits_cpu(piece.iov_base, len, size))
			return by_lock(a, fn, at, a->bytes - at);
		flat_piece(a, fn, piece.iov_base, at, len);
		at += len;
	}
	return WEFT_OK;
}

weft_err weft_rma_acc(const struct weft_rma_acc *a)
{
	weft_reduce_fn *fn = weft_data_reduce_find(a->red.op, a->red.elem);
	size_t size = weft_rma_elem_bytes(a->red.elem);
	if (!fn && a->red.op != WEFT_OP_NO_OP)
		return WEFT_ERR_ARG;
	weft_assert(a->bytes % size == 0);
	bool cpu = a->win->cpu_atomics && !a->there.n_pieces && a->red.elem < WEFT_BASIC_COUNT &&
		   size <= 8 && !(size & (size - 1));
	weft_assert(!cpu || !a->there.pid);
	return cpu ? by_cpu(a, fn) : by_lock(a, fn, 0, a->bytes);
}

weft_err weft_rma_acc_swap(struct weft_rma_win *win, int rank, const struct weft_rma_memory *there,
			   unsigned elem, const void *compare, const void *value, void *result)
{
	size_t size = weft_rma_elem_bytes(elem);
	char *at = there->buf.base;
	weft_assert(size <= 16);
	if (win->cpu_atomics && size <= 8 && !(size & (size - 1)) && !there->pid &&
	    fits_cpu(at, size, size)) {
		uint64_t was = 0, next = 0;
		memcpy(&was, compare, size);
		memcpy(&next, value, size);
		single_enter(win, rank);
		(void)cpu_swap(at, size, &was, next);
		weft_rma_direct_leave(&win->direct[rank]);
		memcpy(result, &was, size);
		return WEFT_OK;
	}
	alignas(16) char old[16], next[16];
	memcpy(next, value, size);
	acc_lock(win, rank);
	weft_err err = weft_rma_memory_read(there, 0, old, size);
	if (!err && memcmp(old, compare, size) == 0)
		err = weft_rma_memory_write(there, 0, next, size);
	acc_unlock(win, rank);
	if (!err)
		memcpy(result, old, size);
	return err;
}
