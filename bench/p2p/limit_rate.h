/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * limit_rate.h - how many small messages a second two cores pass through memory without any MPI.
 *
 * One way through the lines of weft's ring: a word, a head of 24 bytes and up to four messages of 8
 * bytes, each published at once; longer ones lie in 16 KiB beside it, whose receiver says once per
 * quarter how far it is.  A window of 64 begins at the first line, since the answer to the last one
 * said that all of it is free.
 */
#ifndef WEFT_BENCH_LIMIT_RATE_H
#define WEFT_BENCH_LIMIT_RATE_H

#include "bench.h"
#include <stdatomic.h>
#include <stdint.h>

#define RATE_WINDOW 64
#define RATE_CELL 8 /* messages of this size share a line */
#define RATE_CELLS 4
#define RATE_STREAM 16384

struct rate_line {
	_Alignas(64) _Atomic uint64_t x_word; /* messages so far, this one included */
	uint64_t head[3];
	char bytes[RATE_CELLS * RATE_CELL];
};

struct rate_shared {
	struct rate_line line[RATE_WINDOW];
	_Alignas(64) char stream[RATE_STREAM];
	_Alignas(64) _Atomic uint64_t x_taken; /* receiver: messages */
	_Alignas(64) _Atomic uint64_t x_ready; /* receiver: sizes that it is ready for */
};

/* Nothing has come: looking at once again would take the line from its writer. */
static inline void rate_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* The i-th of a window: its line, its place there or in the stream. */
static inline __attribute__((always_inline)) char *
rate_place(struct rate_shared *s, unsigned i, size_t bytes, struct rate_line **line_p)
{
	unsigned per = bytes == RATE_CELL ? RATE_CELLS : 1;
	*line_p = &s->line[i / per];
	return bytes == RATE_CELL ? (*line_p)->bytes + i % per * RATE_CELL
				  : s->stream + i * bytes % RATE_STREAM;
}

/* One window, `base` messages after the first. */
static inline __attribute__((always_inline)) void rate_put(struct rate_shared *s, uint64_t base,
							   const char *buf, size_t bytes)
{
	struct rate_line *line;
	for (unsigned i = 0; i < RATE_WINDOW; i++) {
		char *to = rate_place(s, i, bytes, &line);
		/* ROOM <- TAKEN (rate_get).  Carries: the receiver has read what lay there. */
		while (bytes > RATE_CELL && i >= RATE_STREAM / bytes &&
		       atomic_load_explicit(&s->x_taken, memory_order_acquire) <=
			       base + i - RATE_STREAM / bytes)
			rate_relax();
		memcpy(to, buf, bytes);
		if (bytes > RATE_CELL || i % RATE_CELLS == 0)
			for (int k = 0; k < 3; k++)
				line->head[k] = base + i;
		/* PUB -> SEE (rate_get).  Carries: the message. */
		atomic_store_explicit(&line->x_word, base + i + 1, memory_order_release);
	}
	/* ROOM <- TAKEN, all: the answer. */
	while (atomic_load_explicit(&s->x_taken, memory_order_acquire) != base + RATE_WINDOW)
		rate_relax();
}

static inline __attribute__((always_inline)) void rate_get(struct rate_shared *s, uint64_t base,
							   char *buf, size_t bytes)
{
	unsigned quarter = (unsigned)(RATE_STREAM / bytes / 4);
	struct rate_line *line;
	for (unsigned i = 0; i < RATE_WINDOW;) {
		char *from = rate_place(s, i, bytes, &line);
		/* SEE <- PUB (rate_put).  Ends when it has come. */
		while (atomic_load_explicit(&line->x_word, memory_order_acquire) <= base + i)
			rate_relax();
		memcpy(buf, from, bytes);
		i++;
		/* TAKEN -> ROOM (rate_put). */
		if (i == RATE_WINDOW || i % quarter == 0)
			atomic_store_explicit(&s->x_taken, base + i, memory_order_release);
	}
}

static inline void rate_windows(struct rate_shared *s, int sender, uint64_t *base_p, char *buf,
				int bytes, int n)
{
	for (int k = 0; k < n; k++, *base_p += RATE_WINDOW) {
		if (sender && bytes == RATE_CELL)
			rate_put(s, *base_p, buf, RATE_CELL);
		else if (sender && bytes == 64)
			rate_put(s, *base_p, buf, 64);
		else if (sender)
			rate_put(s, *base_p, buf, 1024);
		else if (bytes == RATE_CELL)
			rate_get(s, *base_p, buf, RATE_CELL);
		else if (bytes == 64)
			rate_get(s, *base_p, buf, 64);
		else
			rate_get(s, *base_p, buf, 1024);
	}
}

static inline void rate_run(struct rate_shared *s, int sender, int quick)
{
	static const int full[] = {8, 64, 1024, 0};
	static const int few[] = {8, 0};
	char *buf = bench_alloc(4096), text[32];
	double block[BENCH_BLOCKS_MAX];
	uint64_t base = 0, round = 0;

	for (const int *size = quick ? few : full; *size; size++) {
		int n = quick ? 100 : *size == 1024 ? 300 : 1500, blocks = quick ? 7 : 15;
		/* READY: the other side is there, and has begun this size. */
		round++;
		if (!sender)
			atomic_store_explicit(&s->x_ready, round, memory_order_release);
		while (atomic_load_explicit(&s->x_ready, memory_order_acquire) < round)
			rate_relax();
		rate_windows(s, sender, &base, buf, *size, n);
		for (int b = 0; b < blocks; b++) {
			double t = bench_now_us();
			rate_windows(s, sender, &base, buf, *size, n);
			block[b] = n * RATE_WINDOW / (bench_now_us() - t);
		}
		if (sender)
			bench_row(bench_size((size_t)*size, text, sizeof(text)), "rate", "M/s",
				  bench_median(block, blocks));
	}
	free(buf);
}

#endif
