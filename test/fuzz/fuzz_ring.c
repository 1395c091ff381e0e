/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_ring.c - shared memory that a peer fills with anything: sequence numbers, lengths, indices.
 */
#include "fuzz.h"
#include "net/shm/ring.h"
#include "net/shm/ring_rx.h"
#include "net/shm/ring_tx.h"

#define SLOTS 16u
#define DATA 4096u
#define NARROW 512u
#define MOST 1024u

/* A word that we expect, but for what it says. */
static void forge(struct weft_ring_rx *rx, struct fuzz_input *in)
{
	uint32_t taking = weft_net_ring_taking(weft_net_ring_at(rx));
	uint64_t word = weft_net_ring_make_word(taking + 1, fuzz_byte(in) * 8u, fuzz_byte(in) % 16);
	uint8_t how = (uint8_t)fuzz_byte(in);
	if (how & 1)
		word |= WEFT_RING_AGAIN;
	if (how & 4)
		word |= WEFT_RING_IN_WIDE;
	word |= (uint64_t)(how / 8) << WEFT_RING_AT;
	atomic_store(
		(_Atomic uint64_t *)&(how & 2 ? rx->slot : weft_net_ring_slot(rx, taking))->x_word,
		word);
}

static bool within(const uint8_t *at, uint32_t len, const void *base, size_t size)
{
	const uint8_t *from = base;
	return at >= from && at + len <= from + size;
}

static unsigned sum_of(const uint8_t *at, uint32_t len)
{
	unsigned sum = 0;
	for (uint32_t k = 0; k < len; k++)
		sum += at[k];
	return sum;
}

/* As the driver takes what shares a slot.  False: nothing lies there. */
static bool take_run(struct weft_ring_rx *rx)
{
	uint8_t head[WEFT_NET_HEAD];
	uint64_t word;
	const struct weft_ring_slot *s = weft_net_ring_find(rx, &word);
	uint32_t n = s ? weft_net_ring_run(rx, word) : 0, len = weft_net_ring_word_len(word);
	if (!n)
		return false;
	CHECK(n <= WEFT_RING_CELLS && len <= WEFT_RING_INLINE);
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *at = weft_net_ring_open(rx, s, head);
		at += i * (size_t)WEFT_RING_CELL;
		CHECK(within(at, len, rx->slot, SLOTS * sizeof *rx->slot));
		(void)sum_of(at, len);
	}
	(void)weft_net_ring_consume_inline(rx, len, n);
	return true;
}

/* A packet of a few bytes, beside the one before if that is possible. */
static void publish_small(struct weft_ring_tx *tx, uint32_t len)
{
	static const uint8_t data[WEFT_RING_INLINE];
	if (len <= WEFT_RING_CELL && weft_net_ring_add_inline(tx, tx->next_w0, tx->w1, data, len))
		return;
	if (weft_net_ring_room(tx, len))
		weft_net_ring_publish_words(tx, 1, 2, data, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct weft_ring_shape shape = {.slots = SLOTS, .data = DATA, .narrow = NARROW};
	size_t bytes = weft_net_ring_bytes(shape);
	struct fuzz_input in = {data, size};
	struct weft_ring_rx rx;
	struct weft_ring_tx tx;
	uint8_t *memory = aligned_alloc(WEFT_CACHELINE, bytes);

	CHECK(memory && weft_net_ring_shape_ok(shape, MOST));
	memset(memory, 0, bytes);
	weft_net_ring_rx_attach(&rx, memory, shape, MOST);
	/* What it says of what it has received comes with what it sends. */
	weft_net_ring_tx_attach(&tx, memory, shape, &rx.back);
	/* Ends with the input: each round uses some of it up. */
	while (in.left) {
		/* The peer writes somewhere. */
		size_t at = fuzz_byte(&in) * 64u % bytes + fuzz_byte(&in) % 64;
		size_t n = fuzz_byte(&in) % 64;
		if (at + n <= bytes)
			fuzz_take(&in, memory + at, n);
		/* It may also know where we are. */
		if (fuzz_byte(&in) & 1)
			/* The slot's number, and two more of the word's bytes. */
			forge(&rx, &in);
		for (int i = 0; i < 20 && weft_net_ring_peek(&rx); i++) {
			struct weft_ring_packet p;
			if (size & 1 && take_run(&rx))
				continue;
			if (weft_net_ring_take(&rx, &p))
				break;
			CHECK(p.len <= MOST);
			CHECK(within(p.payload, p.len, rx.slot, SLOTS * sizeof *rx.slot) ||
			      within(p.payload, p.len, p.lane->data, p.lane->size));
			(void)sum_of(p.payload, p.len);
			(void)weft_net_ring_consume(&rx, &p);
		}
		(void)weft_net_ring_refresh(&tx);
		uint8_t payload[MOST] = {0};
		struct iovec iov = {payload, fuzz_byte(&in) * 4u};
		if (size & 2 && iov.iov_len <= WEFT_RING_INLINE) {
			publish_small(&tx, (uint32_t)iov.iov_len);
			continue;
		}
		if (weft_net_ring_room(&tx, (uint32_t)iov.iov_len)) {
			uint8_t head[WEFT_NET_HEAD] = {0};
			weft_net_ring_publish(&tx, head, &iov, 1, (uint32_t)iov.iov_len, true);
		}
	}
	free(memory);
	return 0;
}
