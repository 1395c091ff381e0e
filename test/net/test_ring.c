/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet ring: content and order hold under two threads, small packets in a row share slots and
 * can each be taken at once, room comes back to the last byte, and what a forging peer writes into
 * its words is noticed.
 */
#ifndef WEFT_CHECKED
#define WEFT_CHECKED /* for ring_check.h */
#endif
#include "net/shm/ring_check.h"
#include "net/shm/ring.h"
#include "net/shm/ring_rx.h"
#include "net/shm/ring_tx.h"
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include "check.h"

#define MAX 1024u
static const struct weft_ring_shape shape = {.slots = 16, .data = 4096, .narrow = 1024};

static void *new_memory(void)
{
	size_t bytes = weft_align_up(weft_net_ring_bytes(shape), 64);
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
	if (!weft_net_ring_room(tx, len)) {
		CHECK(weft_net_ring_refresh(tx));
		if (!weft_net_ring_room(tx, len))
			return false;
	}
	for (uint32_t i = 0; i < len; i++)
		data[i] = (uint8_t)(number + i);
	if (number / 16 % 3 == 2 || len > WEFT_RING_INLINE)
		weft_net_ring_publish(tx, head, iov, 2, len, number % 2);
	else if (!weft_net_ring_add_inline(tx, head[0], head[1], data, len))
		weft_net_ring_publish_words(tx, head[0], head[1], data, len);
	weft_net_ring_tx_check(tx);
	return true;
}

static bool take(struct weft_ring_rx *rx, uint64_t number)
{
	struct weft_ring_packet p;
	uint64_t head[3], word;
	bool there = weft_net_ring_peek(rx);
	const struct weft_ring_slot *s = weft_net_ring_find(rx, &word);
	CHECK(s || !there);
	if (!s)
		return false;
	uint32_t len = weft_net_ring_word_len(word), n = weft_net_ring_run(rx, word);
	CHECK_EQ(weft_net_ring_take_found(rx, &p, s, word), WEFT_OK);
	memcpy(head, p.head, sizeof head);
	CHECK_EQ(head[0], number << 32);
	CHECK_EQ(head[1], number / 64);
	CHECK_EQ(head[2], p.len);
	for (uint32_t i = 0; i < p.len; i++)
		CHECK_EQ(p.payload[i], (uint8_t)(number + i));
	/* The short way sees the same packet, if it is a short one. */
	CHECK_EQ(n != 0, p.len <= WEFT_RING_INLINE);
	CHECK(!n || (weft_net_ring_open(rx, s, head) == p.payload && len == p.len));
	CHECK(n <= 1 || len <= WEFT_RING_CELL);
	if (n && number % 2)
		(void)weft_net_ring_consume_inline(rx, len, 1);
	else
		(void)weft_net_ring_consume(rx, &p);
	weft_net_ring_rx_check(rx);
	return true;
}

static void fills_and_empties(void)
{
	void *m = new_memory();
	struct weft_ring_tx tx;
	struct weft_ring_rx rx;
	uint64_t in = 0, out = 0, seed = 1;
	weft_net_ring_tx_attach(&tx, m, shape, NULL);
	weft_net_ring_rx_attach(&rx, m, shape, MAX);
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
	weft_net_ring_tx_attach(&tx, m, shape, NULL);
	weft_net_ring_rx_attach(&rx, m, shape, MAX);
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

/* Two rings, one each way. */
struct talk {
	struct weft_ring_tx tx[2];
	struct weft_ring_rx rx[2];
	uint64_t in[2], out[2];
};

static void talk_begin(struct talk *t)
{
	memset(t, 0, sizeof *t);
	for (int i = 0; i < 2; i++) {
		void *m = new_memory();
		weft_net_ring_tx_attach(&t->tx[i], m, shape, &t->rx[!i].back);
		weft_net_ring_rx_attach(&t->rx[i], m, shape, MAX);
	}
}

static void talk_end(struct talk *t)
{
	for (int i = 0; i < 2; i++)
		free(t->tx[i].control);
}

static void says(struct talk *t, int way, uint32_t len)
{
	CHECK(put(&t->tx[way], t->in[way], len));
	t->in[way]++;
}

static void hears(struct talk *t, int way)
{
	CHECK(take(&t->rx[way], t->out[way]));
	t->out[way]++;
}

/* Question and answer stay on the first lines, of whatever length they are. */
static void begins_again(void)
{
	const uint32_t len[] = {9, 8, 8, 8, 8, 8, 100, 1024, 0, 3, 3, 33, 32};
	struct talk t;
	talk_begin(&t);
	for (uint64_t i = 0; i < 500; i++)
		for (int way = 0; way < 2; way++) {
			says(&t, way, len[(i + (uint64_t)way) % weft_countof(len)]);
			CHECK(t.tx[way].put - t.tx[way].base <= 2);
			for (int k = 0; k < WEFT_RING_LANES; k++)
				CHECK(t.tx[way].lane[k].put - t.tx[way].lane[k].base <= 1024);
			hears(&t, way);
		}
	/* Not while the other side has not said that it has everything. */
	says(&t, 0, 40);
	uint32_t base = t.tx[0].base;
	says(&t, 0, 40);
	says(&t, 0, 40);
	says(&t, 1, 40);
	hears(&t, 1);
	says(&t, 0, 40);
	CHECK_EQ(t.tx[0].base, base);
	for (int i = 0; i < 4; i++)
		hears(&t, 0);
	CHECK(!weft_net_ring_peek(&t.rx[0]));
	talk_end(&t);
}

/* Either side sends as much as fits, whatever has been received, in any order: nothing is lost. */
static void talks(void)
{
	struct talk t;
	uint64_t seed = 3;
	talk_begin(&t);
	for (int i = 0; i < 40000; i++) {
		uint64_t r = weft_rand_next(&seed);
		int way = (int)(r & 1), n = (int)(r >> 8 & (r >> 4 & 1 ? 15 : 1));
		uint32_t len = (uint32_t)(r >> 32 & 1 ? (r >> 40) % 12 : (r >> 40) % (MAX + 1));
		for (; n >= 0 && r & 2; n--)
			if (put(&t.tx[way], t.in[way], len))
				t.in[way]++;
		for (; n >= 0 && !(r & 2); n--)
			if (take(&t.rx[way], t.out[way]))
				t.out[way]++;
	}
	CHECK(t.tx[0].base && t.tx[1].base);
	for (int way = 0; way < 2; way++) {
		while (take(&t.rx[way], t.out[way]))
			t.out[way]++;
		CHECK_EQ(t.in[way], t.out[way]);
	}
	talk_end(&t);
}

/* What was heard 2^20 slots ago looks like what would be heard now, and is not believed. */
static void believes_no_old_word(void)
{
	struct talk t;
	talk_begin(&t);
	says(&t, 0, 9);
	hears(&t, 0);
	says(&t, 1, 9);
	hears(&t, 1);
	uint32_t base = t.tx[0].base;
	/* Most of the lap by hand, the rest as a stream of which the other side says nothing. */
	const uint32_t far = 7u << 17;
	t.tx[0].put += far;
	t.tx[0].seen += far;
	t.tx[0].all += far * WEFT_RING_CELLS;
	t.rx[0].told += far;
	atomic_fetch_add(&t.rx[0].back.x_at, (uint64_t)far * WEFT_RING_CELLS);
	t.in[0] = t.out[0] += far;
	while (t.in[0] != 1u << 20) {
		says(&t, 0, 9);
		hears(&t, 0);
	}
	says(&t, 0, 9);
	says(&t, 0, 9);
	CHECK(t.tx[0].base < 20 && t.tx[0].base >= base);
	hears(&t, 0);
	hears(&t, 0);
	/* Once as many have come as may have been on their way, it begins again. */
	for (uint32_t i = 0; i <= WEFT_RING_SLOTS_MAX; i++) {
		says(&t, 1, 9);
		hears(&t, 1);
	}
	says(&t, 0, 9);
	CHECK_EQ(t.tx[0].put - t.tx[0].base, 1);
	hears(&t, 0);
	talk_end(&t);
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
	weft_net_ring_tx_attach(&p.tx, m, shape, NULL);
	weft_net_ring_rx_attach(&p.rx, m, shape, MAX);
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
	weft_net_ring_tx_attach(&tx, m, shape, NULL);
	weft_net_ring_rx_attach(&rx, m, shape, MAX);

	/* A length beyond every packet. */
	CHECK(put(&tx, 0, 100));
	atomic_store(&tx.slot[0].x_word, weft_net_ring_make_word(1, MAX + 1, 0));
	CHECK_EQ(weft_net_ring_take(&rx, &p), WEFT_ERR_PROTO);
	atomic_store(&tx.slot[0].x_word, weft_net_ring_make_word(1, WEFT_RING_BYE - 1, 0));
	CHECK_EQ(weft_net_ring_take(&rx, &p), WEFT_ERR_PROTO);
	atomic_store(&tx.slot[0].x_word, weft_net_ring_make_word(1, WEFT_RING_BYE, 0));
	CHECK_EQ(weft_net_ring_take(&rx, &p), WEFT_AGAIN);
	/* One that the narrow ring cannot hold. */
	rx.lane[WEFT_RING_NARROW].size = 64;
	atomic_store(&tx.slot[0].x_word, weft_net_ring_make_word(1, 100, 0));
	CHECK_EQ(weft_net_ring_take(&rx, &p), WEFT_ERR_PROTO);
	/* A slot that has grown, and then holds longer ones, or more than fit. */
	atomic_store(&tx.slot[0].x_word, weft_net_ring_make_word(1, 8, 15));
	for (unsigned i = 0; i < WEFT_RING_CELLS - 1; i++) {
		CHECK_EQ(weft_net_ring_take(&rx, &p), WEFT_OK);
		CHECK(p.payload == tx.slot[0].data + i * (size_t)WEFT_RING_CELL);
		(void)weft_net_ring_consume(&rx, &p);
	}
	atomic_store(&tx.slot[0].x_word, weft_net_ring_make_word(1, 9, 15));
	CHECK_EQ(weft_net_ring_take(&rx, &p), WEFT_ERR_PROTO);
	CHECK(!weft_net_ring_run(&rx, weft_net_ring_make_word(1, 9, 15)));
	atomic_store(&tx.slot[0].x_word, weft_net_ring_make_word(1, 8, 15));
	CHECK_EQ(weft_net_ring_take(&rx, &p), WEFT_OK);
	(void)weft_net_ring_consume(&rx, &p);
	CHECK(weft_net_ring_taking(weft_net_ring_at(&rx)) == 1 && !weft_net_ring_peek(&rx));
	/* A receiver that claims to have seen what was never sent. */
	atomic_store(&tx.control->x_seen, weft_net_ring_make_seen(2, 0, 0));
	CHECK(!weft_net_ring_refresh(&tx));
	atomic_store(&tx.control->x_seen, weft_net_ring_make_seen(1, 1u << 20, 0));
	CHECK(!weft_net_ring_refresh(&tx));
	atomic_store(&tx.control->x_seen, weft_net_ring_make_seen(1, 0, 192));
	CHECK(!weft_net_ring_refresh(&tx));
	atomic_store(&tx.control->x_seen, weft_net_ring_make_seen(1, 0, 128));
	CHECK(weft_net_ring_refresh(&tx));
	/* What is older than what we know says nothing; half of it cannot be older. */
	atomic_store(&tx.control->x_seen, 0);
	CHECK(weft_net_ring_refresh(&tx) && tx.seen == 1 && tx.lane[WEFT_RING_NARROW].seen == 128);
	atomic_store(&tx.control->x_seen, weft_net_ring_make_seen(0, 0, 192));
	CHECK(!weft_net_ring_refresh(&tx));
	free(m);

	CHECK(!weft_net_ring_shape_ok((struct weft_ring_shape){.slots = 100, .data = 4096}, MAX));
	CHECK(!weft_net_ring_shape_ok((struct weft_ring_shape){.slots = 64, .data = 2048}, MAX));
	CHECK(!weft_net_ring_shape_ok((struct weft_ring_shape){.slots = 0, .data = 4096}, MAX));
	CHECK(!weft_net_ring_shape_ok((struct weft_ring_shape){.slots = 64, .data = 0x80000000u},
				      MAX));
	CHECK(weft_net_ring_shape_ok(shape, MAX));
}

int main(void)
{
	fills_and_empties();
	shares_slots(true);
	shares_slots(false);
	begins_again();
	talks();
	believes_no_old_word();
	two_threads();
	forged();
	return 0;
}
