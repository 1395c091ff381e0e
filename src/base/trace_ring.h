/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace_ring.h - the file of a trace, and the ring in it that one kernel thread writes.
 *
 * The writer has the file mapped, so what was written is there whatever ends the process.
 * Head, texts, then rings; each of these a multiple of WEFT_TRACE_PAGE.  Numbers are the machine's.
 *
 * Callers   put: the ring's owner, outside signal handlers.  copy: any thread of any process.
 * Order     a record that copy() returns is whole; records are in the order of their puts.
 * Progress  wait-free, both.
 * Full      put() overwrites the oldest.
 *
 * The owner stores the words of record i, then position i + 1.  A reader loads the position, the
 * words, and the position again: what may have been overwritten meanwhile it drops.  Record i
 * overwrites record i - cap before the position says so, thus one more is dropped.
 */
#ifndef WEFT_TRACE_RING_H
#define WEFT_TRACE_RING_H

#include "base/base.h"

#define WEFT_TRACE_MAGIC 0x3165636172746677u /* "wftrace1" */
#define WEFT_TRACE_VERSION 1u
#define WEFT_TRACE_PAGE 4096u
#define WEFT_TRACE_KINDS 64u /* names in the head */
#define WEFT_TRACE_KIND_BYTES 16u
#define WEFT_TRACE_TEXTS 1024u
#define WEFT_TRACE_TEXT_BYTES 64u

#ifndef WEFT_TRACE_WORDS
#define WEFT_TRACE_WORDS 4
#endif

/* The same moment by two clocks. */
struct weft_trace_pair {
	uint64_t cycles, ns;
};

struct weft_trace_head {
	uint64_t magic;
	uint32_t version, head_bytes; /* head_bytes: from the start to the texts */
	uint32_t texts, text_bytes;
	uint32_t records, record_bytes; /* of each ring */
	uint64_t ring_bytes;            /* from one ring to the next */
	uint64_t rings_at;
	int32_t pid, rank, size;         /* rank -1: not in a job */
	uint32_t clock;                  /* 0: times are ns, 1: cycles */
	struct weft_trace_pair from, to; /* to: 0 until the process has ended in order */
	uint64_t from_real_ns;           /* CLOCK_REALTIME then */
	_Atomic uint32_t x_rings;        /* made */
	_Atomic uint32_t x_texts;        /* made; text 0 is none */
	_Atomic uint64_t x_lost;         /* records of threads that got no ring */
	char host[64], boot[40], program[64];
	char kind[WEFT_TRACE_KINDS][WEFT_TRACE_KIND_BYTES];
};
_Static_assert(sizeof(struct weft_trace_head) <= WEFT_TRACE_PAGE, "a page");

/* One page; the records follow. */
struct weft_trace_ring {
	_Atomic uint64_t x_pos;     /* records written so far */
	_Atomic uint64_t x_thread;  /* whose it is now */
	_Atomic uint64_t x_name[2]; /* its letters */
};

/* Record: word 0 time | kind, small << 16, id << 32 | a | b. */
static inline uint64_t weft_trace_what(unsigned kind, unsigned small, uint32_t id)
{
	return (uint64_t)kind | (uint64_t)(small & 0xffff) << 16 | (uint64_t)id << 32;
}

static inline uint64_t weft_trace_ring_put(struct weft_trace_ring *r, _Atomic uint64_t *x_words,
					   uint64_t mask, const uint64_t w[WEFT_TRACE_WORDS])
{
	/* Relaxed: ours. */
	uint64_t pos = atomic_load_explicit(&r->x_pos, memory_order_relaxed);
	_Atomic uint64_t *at = x_words + (pos & mask) * WEFT_TRACE_WORDS;
	for (int i = 0; i < WEFT_TRACE_WORDS; i++)
		/* WORD -> LOOK.  Carries: the position of all records before.  Without it a reader
		 * could see a word of this record and yet believe its place to be the old one's. */
		atomic_store_explicit(&at[i], w[i], memory_order_release);
	/* WRITTEN -> SEEN.  Carries: the words.  Without it a reader could take what was in their
	 * place. */
	atomic_store_explicit(&r->x_pos, pos + 1, memory_order_release);
	return pos + 1;
}

/*
 * Copies what is in the ring into out[], which has room for mask + 1 records.  Returns how many;
 * *first_p: the number of the first, of all that were ever written.
 */
static inline uint64_t weft_trace_ring_copy(struct weft_trace_ring *r, _Atomic uint64_t *x_words,
					    uint64_t mask, uint64_t *out, uint64_t *first_p)
{
	/* SEEN <- WRITTEN. */
	uint64_t end = atomic_load_explicit(&r->x_pos, memory_order_acquire);
	uint64_t first = end > mask + 1 ? end - mask - 1 : 0;
	for (uint64_t i = first; i < end; i++)
		for (unsigned w = 0; w < WEFT_TRACE_WORDS; w++)
			/* LOOK <- WORD: comes before our second look at the position. */
			out[(i - first) * WEFT_TRACE_WORDS + w] = atomic_load_explicit(
				&x_words[(i & mask) * WEFT_TRACE_WORDS + w], memory_order_acquire);
	/* Relaxed: at least what came with the words. */
	uint64_t now = atomic_load_explicit(&r->x_pos, memory_order_relaxed);
	uint64_t whole = now > mask ? now - mask : 0;
	*first_p = whole > first ? whole : first;
	if (*first_p > end)
		*first_p = end;
	uint64_t n = end - *first_p;
	for (uint64_t i = 0; whole > first && i < n * WEFT_TRACE_WORDS; i++)
		out[i] = out[i + (*first_p - first) * WEFT_TRACE_WORDS];
	return n;
}

#endif
