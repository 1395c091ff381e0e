/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet ring: content and order hold under two threads, small packets in a row share slots and
 * can each be taken at once, room comes back to the last byte, and what a forging peer writes into
 * its words is noticed.
 */
#include "net/ring.h"
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include "check.h"

#define MAX 1024u
static const struct weft_ring_shape shape = {.slots = 16, .data = 4096};

static void *new_memory(void)
{
	size_t bytes = weft_align_up(weft_ring_bytes(shape), 64);
	void *m = aligned_alloc(64, bytes);
	CHECK(m);
	memset(m, 0, bytes);
	return m;
}

static bool put(struct weft_ring_tx *tx, uint64_t number, uint32_t len)
{
	uint8_t data[MAX];
	uint64_t head[3] = {number << 32, number / 64, len};
	struct iovec iov[2] = {{data, len / 2}, {data + len / 2, len - len / 2}};
	if (!weft_ring_room(tx, len)) {
		CHECK(weft_ring_refresh(tx));
		if (!weft_ring_room(tx, len))
			return false;
	}
	for (uint32_t i = 0; i < len; i++)
		data[i] = (uint8_t)(number + i);
	if (number / 16 % 3 == 2 || len > WEFT_RING_INLINE)
		weft_ring_publish(tx, head, iov, 2, len, number % 2);
	else if (!weft_ring_add_inline(tx, head[0], head[1], data, len))
		weft_ring_publish_inline(tx, head[0], head[1], data, len);
	return true;
}

static bool take(struct weft_ring_rx *rx, uint64_t number)
{
	struct weft_ring_packet p;
	uint64_t head[3];
	if (!weft_ring_peek(rx))
		return false;
	uint32_t len = 0, n = 0;
	const struct weft_ring_slot *s = weft_ring_peek_inline(rx, &len, &n);
	CHECK_EQ(weft_ring_take(rx, &p), WEFT_OK);
	memcpy(head, p.head, sizeof head);
	CHECK_EQ(head[0], number << 32);
	CHECK_EQ(head[1], number / 64);
	CHECK_EQ(head[2], p.len);
	for (uint32_t i = 0; i < p.len; i++)
		CHECK_EQ(p.payload[i], (uint8_t)(number + i));
	/* The short way sees the same packet, if it is a short one. */
	CHECK_EQ(s != NULL, p.len <= WEFT_RING_INLINE);
	CHECK(!s || (weft_ring_open(rx, s, head) == p.payload && len == p.len));
	CHECK(!s || (n && (n == 1 || len <= WEFT_RING_CELL)));
	if (s && number % 2)
		(void)weft_ring_consume_inline(rx, len, 1);
	else
		(void)weft_ring_consume(rx, &p);
	return true;
}

static void fills_and_empties(void)
{
	void *m = new_memory();
	struct weft_ring_tx tx;
	struct weft_ring_rx rx;
	uint64_t in = 0, out = 0, seed = 1;
	weft_ring_tx_attach(&tx, m, shape);
	weft_ring_rx_attach(&rx, m, shape, MAX);
	for (int round = 0; round < 2000; round++) {
		/* Whatever was in it: after it ran empty, the longest packet fits. */
		CHECK(put(&tx, in, MAX));
		in++;
		while (put(&tx, in, (uint32_t)(weft_rand_next(&seed) % (MAX + 1))))
			in++;
		while (take(&rx, out))
			out++;
		CHECK_EQ(in, out);
	}
	free(m);
}

/* Two slots hold 2 x CELLS small packets, whether they are taken one by one or all at the end. */
static void shares_slots(bool at_once)
{
	void *m = new_memory();
	struct weft_ring_tx tx;
	struct weft_ring_rx rx;
	weft_ring_tx_attach(&tx, m, shape);
	weft_ring_rx_attach(&rx, m, shape, MAX);
	uint64_t out = 0;
	for (uint64_t in = 0; in < 2ul * WEFT_RING_CELLS;) {
		CHECK(put(&tx, in++, 8));
		if (at_once)
			CHECK(take(&rx, out++) && !take(&rx, out));
	}
	CHECK_EQ(tx.put, 2);
	while (take(&rx, out))
		out++;
	CHECK_EQ(out, 2ul * WEFT_RING_CELLS);
	/* What is longer, or shorter, or otherwise put, begins another one; so does what follows.
	 */
	const uint32_t each[] = {8, 8, 7, 9, 9, 8, 8};
	for (size_t i = 0; i < weft_countof(each); i++)
		CHECK(put(&tx, out + i, each[i]));
	CHECK_EQ(tx.put, 2 + 5);
	while (take(&rx, out))
		out++;
	CHECK_EQ(out, 2ul * WEFT_RING_CELLS + weft_countof(each));
	free(m);
}

struct pair {
	struct weft_ring_tx tx;
	struct weft_ring_rx rx;
	uint64_t count;
};

static void *producer(void *arg)
{
	struct pair *p = arg;
	uint64_t seed = 2;
	for (uint64_t i = 0; i < p->count; i++) {
		uint64_t r = weft_rand_next(&seed);
		uint32_t len = (uint32_t)(r % 4 ? (r >> 8) % 40 : (r >> 8) % (MAX + 1));
		/* Now and then some of one length, which share slots. */
		if (i / 16 % 2)
			len = i / 32 % 2 ? 8 : 3;
		while (!put(&p->tx, i, len))
			sched_yield();
	}
	return NULL;
}

static void two_threads(void)
{
	struct pair p = {.count = 100000};
	void *m = new_memory();
	pthread_t t;
	weft_ring_tx_attach(&p.tx, m, shape);
	weft_ring_rx_attach(&p.rx, m, shape, MAX);
	CHECK_EQ(pthread_create(&t, NULL, producer, &p), 0);
	for (uint64_t i = 0; i < p.count;) {
		if (take(&p.rx, i))
			i++;
		else
			sched_yield();
	}
	CHECK_EQ(pthread_join(t, NULL), 0);
	free(m);
}

static void forged(void)
{
	void *m = new_memory();
	struct weft_ring_tx tx;
	struct weft_ring_rx rx;
	struct weft_ring_packet p;
	uint32_t len, n;
	weft_ring_tx_attach(&tx, m, shape);
	weft_ring_rx_attach(&rx, m, shape, MAX);

	/* A length beyond every packet. */
	CHECK(put(&tx, 0, 100));
	atomic_store(&tx.slot[0].x_word, weft_ring_make_word(1, MAX + 1, 0));
	CHECK_EQ(weft_ring_take(&rx, &p), WEFT_ERR_PROTO);
	atomic_store(&tx.slot[0].x_word, (uint64_t)0xfffffffe << 32 | 1);
	CHECK_EQ(weft_ring_take(&rx, &p), WEFT_ERR_PROTO);
	atomic_store(&tx.slot[0].x_word, (uint64_t)WEFT_RING_BYE << 32 | 1);
	CHECK_EQ(weft_ring_take(&rx, &p), WEFT_AGAIN);
	/* A slot that has grown, and then holds longer ones, or more than fit. */
	atomic_store(&tx.slot[0].x_word, weft_ring_make_word(1, 8, 255));
	for (unsigned i = 0; i < WEFT_RING_CELLS - 1; i++) {
		CHECK_EQ(weft_ring_take(&rx, &p), WEFT_OK);
		CHECK(p.payload == tx.slot[0].data + i * (size_t)WEFT_RING_CELL);
		(void)weft_ring_consume(&rx, &p);
	}
	atomic_store(&tx.slot[0].x_word, weft_ring_make_word(1, 9, 255));
	CHECK_EQ(weft_ring_take(&rx, &p), WEFT_ERR_PROTO);
	CHECK(!weft_ring_peek_inline(&rx, &len, &n));
	atomic_store(&tx.slot[0].x_word, weft_ring_make_word(1, 8, 255));
	CHECK_EQ(weft_ring_take(&rx, &p), WEFT_OK);
	(void)weft_ring_consume(&rx, &p);
	CHECK(rx.take == 1 && !weft_ring_peek(&rx));
	/* A receiver that claims to have seen what was never sent. */
	atomic_store(&tx.control->x_seen, (uint64_t)2 << 32);
	CHECK(!weft_ring_refresh(&tx));
	atomic_store(&tx.control->x_seen, (uint64_t)1 << 32 | 1u << 20);
	CHECK(!weft_ring_refresh(&tx));
	atomic_store(&tx.control->x_seen, (uint64_t)1 << 32 | 128);
	CHECK(weft_ring_refresh(&tx));
	/* And one that goes back. */
	atomic_store(&tx.control->x_seen, 0);
	CHECK(!weft_ring_refresh(&tx));
	free(m);

	CHECK(!weft_ring_shape_ok((struct weft_ring_shape){.slots = 100, .data = 4096}, MAX));
	CHECK(!weft_ring_shape_ok((struct weft_ring_shape){.slots = 64, .data = 2048}, MAX));
	CHECK(!weft_ring_shape_ok((struct weft_ring_shape){.slots = 0, .data = 4096}, MAX));
	CHECK(!weft_ring_shape_ok((struct weft_ring_shape){.slots = 64, .data = 0x80000000u}, MAX));
	CHECK(weft_ring_shape_ok(shape, MAX));
}

int main(void)
{
	fills_and_empties();
	shares_slots(true);
	shares_slots(false);
	two_threads();
	forged();
	return 0;
}
