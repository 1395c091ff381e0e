/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring of the trace in every order, from the production header: what a reader beside the writer
 * gets are whole records, each the one that its number says, however often they were overwritten.
 */
#include "model/explore.h"
#define WEFT_TRACE_WORDS 2
/* The production sources, compiled against the explorer's atomics. */
#include "base/trace_ring.h"

#define MASK 1u
#define PUTS 4u

static struct weft_trace_ring ring;
static _Atomic uint64_t x_words[(MASK + 1) * WEFT_TRACE_WORDS];

static void setup(void)
{
	memset(&ring, 0, sizeof ring);
	memset(x_words, 0, sizeof x_words);
}

static void put_one(uint64_t i)
{
	const uint64_t w[WEFT_TRACE_WORDS] = {100 + i, 200 + i};
	(void)weft_trace_ring_put(&ring, x_words, MASK, w);
}

static void writer(void)
{
	for (uint64_t i = 0; i < PUTS; i++)
		put_one(i);
}

static void reader(void)
{
	uint64_t out[(MASK + 1) * WEFT_TRACE_WORDS], first;
	uint64_t n = weft_trace_ring_copy(&ring, x_words, MASK, out, &first);
	for (uint64_t i = 0; i < n; i++) {
		MODEL_CHECK(out[i * WEFT_TRACE_WORDS] == 100 + first + i);
		MODEL_CHECK(out[i * WEFT_TRACE_WORDS + 1] == 200 + first + i);
	}
}

/* Keeps the record whose place may be being overwritten. */
static void greedy(void)
{
	uint64_t end = atomic_load_explicit(&ring.x_pos, memory_order_acquire);
	if (end != MASK + 1)
		return;
	uint64_t a = atomic_load_explicit(&x_words[0], memory_order_acquire);
	uint64_t b = atomic_load_explicit(&x_words[1], memory_order_acquire);
	if (atomic_load_explicit(&ring.x_pos, memory_order_relaxed) == end)
		MODEL_CHECK(a == 100 && b == 200);
}

static void all_written(void)
{
	MODEL_CHECK(ring.x_pos == PUTS);
}

int main(void)
{
	static const struct model models[] = {
		{"ring",
		 setup,
		 {writer, reader},
		 all_written,
		 3,
		 .must = {"weft_trace_ring_put s", "weft_trace_ring_copy l"}},
		{"ring, a reader that keeps too much",
		 setup,
		 {writer, greedy},
		 NULL,
		 3,
		 .broken = true},
	};
	return explore_all(models, weft_countof(models));
}
