/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet ring in every order: packets that share a slot come once each and in order, with their
 * payload, whether the receiver takes them one by one or a run at once; and a sender that found no
 * room sleeps only if it is told, and writes only where the receiver has read.
 */
#include "model/explore.h"
/* The production source, compiled against the explorer's atomics. */
#include "net/ring.c"

enum { SLOTS = 4, PACKETS = 7 };

static alignas(WEFT_CACHELINE)
	uint8_t memory[sizeof(struct weft_ring_control) + SLOTS * sizeof(struct weft_ring_slot)];
static struct weft_ring_tx tx;
static struct weft_ring_rx rx;
static int payload[PACKETS]; /* stands for the bytes of each packet */
static int place[SLOTS];     /* and for those of each slot */
static bool told;

static void setup(void)
{
	const struct weft_ring_shape shape = {.slots = SLOTS, .data = 0};
	memset(memory, 0, sizeof memory);
	memset(payload, 0, sizeof payload);
	memset(place, 0, sizeof place);
	weft_ring_tx_attach(&tx, memory, shape);
	weft_ring_rx_attach(&rx, memory, shape, WEFT_RING_INLINE);
	told = false;
}

static bool not_told(void *arg)
{
	return !told;
}

/* As net/shm does: asks to be told, looks once more, sleeps. */
static void wait_for_room(void)
{
	while (!weft_ring_room(&tx, 0)) {
		MODEL_CHECK(weft_ring_refresh(&tx));
		if (weft_ring_room(&tx, 0))
			return;
		weft_ring_wait(tx.control);
		if (weft_ring_word(tx.control) != weft_ring_known(&tx))
			continue;
		model_block(not_told, NULL);
		told = false;
		model_fresh((void *)&tx.control->x_seen, sizeof tx.control->x_seen);
	}
}

static void put(int i, size_t len)
{
	uint64_t data[WEFT_RING_INLINE / 8] = {(uint64_t)i};
	uint64_t w0 = (uint64_t)i * WEFT_RING_STEP;
	model_write(&payload[i], i + 1);
	if (weft_ring_add_inline(&tx, w0, 5, data, len))
		return;
	wait_for_room();
	model_write(&place[tx.put % SLOTS], i + 1);
	weft_ring_publish_inline(&tx, w0, 5, data, (uint32_t)len);
}

static void puts_small(void)
{
	for (int i = 0; i < PACKETS - 1; i++)
		put(i, 8);
	put(PACKETS - 1, 16);
}

static void puts_large(void)
{
	for (int i = 0; i < PACKETS; i++)
		put(i, 16);
}

static void puts_by_exchange(void)
{
	uint64_t head[3] = {0, 5, 8}, data = 0;
	struct iovec iov = {&data, 8};
	model_write(&payload[0], 1);
	weft_ring_publish(&tx, head, &iov, 1, 8, false);
	model_write(&payload[1], 2);
	head[0] = WEFT_RING_STEP;
	data = 1;
	weft_ring_publish(&tx, head, &iov, 1, 8, true);
}

static uint64_t word_now(uint32_t number)
{
	uint64_t word;
	memcpy(&word, (void *)&rx.slot[number % SLOTS].x_word, sizeof word);
	return word;
}

static bool none(void *arg)
{
	uint64_t word = word_now(rx.take);
	if (!rx.part)
		return (uint32_t)word != rx.take + 1;
	return weft_ring_word_more(word) < rx.part &&
	       (uint32_t)word_now(rx.take + 1) != rx.take + 2;
}

/* Until there is a packet. */
static void wait_for_packet(void)
{
	model_block(none, NULL);
	for (uint32_t k = 0; k < 2; k++)
		model_fresh((void *)&rx.slot[(rx.take + k) % SLOTS].x_word, sizeof(uint64_t));
}

static void read_one(int i, const void *head, const void *data)
{
	uint64_t w0, number;
	memcpy(&w0, head, sizeof w0);
	memcpy(&number, data, sizeof number);
	MODEL_CHECK(w0 == (uint64_t)i * WEFT_RING_STEP);
	MODEL_CHECK(number == (uint64_t)i);
	MODEL_CHECK(model_read(&payload[i]) == i + 1);
}

/* Takes n packets; at_once: as many as lie in a slot. */
static void take(int n, bool at_once)
{
	for (int i = 0; i < n;) {
		uint8_t head[WEFT_NET_HEAD];
		uint32_t len, there;
		const struct weft_ring_slot *s = weft_ring_peek_inline(&rx, &len, &there);
		if (!s) {
			wait_for_packet();
			continue;
		}
		const uint8_t *data = weft_ring_open(&rx, s, head);
		uint32_t some = at_once ? there : 1;
		(void)model_read(&place[rx.take % SLOTS]);
		for (uint32_t k = 0; k < some; k++) {
			uint64_t w0;
			memcpy(&w0, head, sizeof w0);
			w0 += k * WEFT_RING_STEP;
			read_one(i++, &w0, data + (size_t)k * WEFT_RING_CELL);
		}
		if (weft_ring_consume_inline(&rx, len, some))
			told = true;
	}
	MODEL_CHECK(!weft_ring_peek(&rx));
}

static void takes(void)
{
	take(PACKETS, false);
}

static void takes_runs(void)
{
	take(PACKETS, true);
}

static void takes_two(void)
{
	take(2, true);
}

/* Believes a slot that it has left, as if the last look at it were not needed. */
static void takes_hastily(void)
{
	for (int i = 0; i < PACKETS - 1;) {
		uint64_t word = weft_ring_load(&rx, rx.take);
		if ((uint32_t)word != rx.take + 1) {
			wait_for_packet();
			continue;
		}
		i += 1 + (int)weft_ring_word_more(word);
		rx.take++;
		MODEL_CHECK(i == PACKETS - 1 || i == WEFT_RING_CELLS);
	}
}

int main(void)
{
	static const struct model models[] = {
		{"shared slots, one by one",
		 setup,
		 {puts_small, takes},
		 NULL,
		 3,
		 .must = {"weft_ring_load l", "weft_ring_add_inline s",
			  "weft_ring_publish_inline s"}},
		{"shared slots, runs", setup, {puts_small, takes_runs}, NULL, 3},
		{"an exchange, a store",
		 setup,
		 {puts_by_exchange, takes_two},
		 NULL,
		 6,
		 .must = {"weft_ring_publish x", "weft_ring_publish s"}},
		{"full",
		 setup,
		 {puts_large, takes},
		 NULL,
		 3,
		 .must = {"weft_ring_tell x", "weft_ring_tell l", "weft_ring_wait x",
			  "weft_ring_refresh l", "weft_ring_word l"}},
		{"hasty", setup, {puts_small, takes_hastily}, NULL, 3, .broken = true},
	};
	return explore_all(models, weft_countof(models));
}
