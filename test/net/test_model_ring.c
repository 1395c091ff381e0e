/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet ring in every order: packets that share a slot come once each and in order, with their
 * payload, whether the receiver takes them one by one or a run at once; a sender that found no
 * room sleeps only if it is told, and writes only where the receiver has read; and so does one that
 * begins again because a packet of the other ring says that the receiver has everything, and one
 * that goes round the narrow ring of data lines.
 */
#include "model/explore.h"
/* The production source, compiled against the explorer's atomics. */
#include "net/shm/ring.c"

enum { SLOTS = 4, PACKETS = 6, NARROW_LINES = 2, LINES = 6 };

static alignas(WEFT_CACHELINE)
	uint8_t memory[sizeof(struct weft_ring_control) + SLOTS * sizeof(struct weft_ring_slot) +
		       LINES * WEFT_CACHELINE];
static alignas(WEFT_CACHELINE) uint8_t memory_back[sizeof memory];
static struct weft_ring_tx tx, tx_back;
static struct weft_ring_rx rx, rx_back;
static int payload[PACKETS]; /* stands for the bytes of each packet */
static int place[SLOTS];     /* and for those of each slot */
static int line[LINES];      /* and of each data line */
static bool told;

static void setup(void)
{
	const struct weft_ring_shape shape = {.slots = SLOTS, .data = 0};
	memset(memory, 0, sizeof memory);
	memset(memory_back, 0, sizeof memory_back);
	memset(payload, 0, sizeof payload);
	memset(place, 0, sizeof place);
	weft_net_ring_tx_attach(&tx, memory, shape, NULL);
	weft_net_ring_rx_attach(&rx, memory, shape, WEFT_RING_INLINE);
	told = false;
}

static void setup_talk(void)
{
	const struct weft_ring_shape shape = {.slots = SLOTS, .data = 0};
	setup();
	weft_net_ring_tx_attach(&tx, memory, shape, &rx_back.back);
	weft_net_ring_tx_attach(&tx_back, memory_back, shape, &rx.back);
	weft_net_ring_rx_attach(&rx_back, memory_back, shape, WEFT_RING_INLINE);
}

static bool not_told(void *arg)
{
	return !told;
}

/* As net/shm does: asks to be told, looks once more, sleeps. */
static void wait_for_room(void)
{
	while (!weft_net_ring_room(&tx, 0)) {
		MODEL_CHECK(weft_net_ring_refresh(&tx));
		if (weft_net_ring_room(&tx, 0))
			return;
		weft_net_ring_wait(tx.control);
		if (weft_net_ring_word(tx.control) != weft_net_ring_known(&tx))
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
	if (weft_net_ring_add_inline(&tx, w0, 5, data, len))
		return;
	wait_for_room();
	model_write(&place[tx.put % SLOTS], i + 1);
	weft_net_ring_publish_words(&tx, w0, 5, data, (uint32_t)len);
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
	weft_net_ring_publish(&tx, head, &iov, 1, 8, false);
	model_write(&payload[1], 2);
	head[0] = WEFT_RING_STEP;
	data = 1;
	weft_net_ring_publish(&tx, head, &iov, 1, 8, true);
}

static uint64_t word_now(const struct weft_ring_slot *s)
{
	uint64_t word;
	memcpy(&word, (const void *)&s->x_word, sizeof word);
	return word;
}

static uint64_t at_now(const struct weft_ring_rx *r)
{
	uint64_t at;
	memcpy(&at, (const void *)&r->back.x_at, sizeof at);
	return at;
}

static bool none(void *arg)
{
	const struct weft_ring_rx *r = arg;
	uint64_t at = at_now(r);
	uint32_t taking = weft_net_ring_taking(at), next = taking + (weft_net_ring_part(at) != 0);
	return !weft_net_ring_has_news(word_now(weft_net_ring_slot(r, taking)), at) &&
	       !weft_net_ring_word_is(word_now(weft_net_ring_slot(r, next)), next + 1) &&
	       !weft_net_ring_word_is(word_now(&r->slot[0]), next + 1);
}

/* Until there is a packet. */
static void wait_for_packet(struct weft_ring_rx *r)
{
	model_block(none, r);
	uint32_t taking = weft_net_ring_taking(at_now(r));
	for (uint32_t k = 0; k < 2; k++)
		model_fresh((void *)&weft_net_ring_slot(r, taking + k)->x_word, sizeof(uint64_t));
	model_fresh((void *)&r->slot[0].x_word, sizeof(uint64_t));
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
		uint64_t word;
		const struct weft_ring_slot *s = weft_net_ring_find(&rx, &word);
		if (!s) {
			wait_for_packet(&rx);
			continue;
		}
		uint32_t there = weft_net_ring_run(&rx, word), len = weft_net_ring_word_len(word);
		const uint8_t *data = weft_net_ring_open(&rx, s, head);
		uint32_t some = at_once ? there : 1;
		(void)model_read(&place[s - rx.slot]);
		for (uint32_t k = 0; k < some; k++) {
			uint64_t w0;
			memcpy(&w0, head, sizeof w0);
			w0 += k * WEFT_RING_STEP;
			read_one(i++, &w0, data + (size_t)k * WEFT_RING_CELL);
		}
		if (weft_net_ring_consume_inline(&rx, len, some))
			told = true;
	}
	MODEL_CHECK(!weft_net_ring_peek(&rx));
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
		uint64_t at = at_now(&rx);
		uint64_t word =
			weft_net_ring_load(weft_net_ring_slot(&rx, weft_net_ring_taking(at)));
		if (!weft_net_ring_has_news(word, at)) {
			wait_for_packet(&rx);
			continue;
		}
		i += 1 + (int)weft_net_ring_word_more(word);
		weft_net_ring_go(&rx, at + WEFT_RING_CELLS);
		MODEL_CHECK(i == PACKETS - 1 || i == WEFT_RING_CELLS);
	}
}

/* ---- the narrow ring ---------------------------------------------------------------------- */

enum { LONG = 4 };

static void setup_lines(void)
{
	const struct weft_ring_shape shape = {.slots = SLOTS,
					      .data = (LINES - NARROW_LINES) * WEFT_CACHELINE,
					      .narrow = NARROW_LINES * WEFT_CACHELINE};
	setup();
	memset(line, 0, sizeof line);
	weft_net_ring_tx_attach(&tx, memory, shape, NULL);
	weft_net_ring_rx_attach(&rx, memory, shape, WEFT_RING_INLINE);
	tx.all = 1; /* never begins again */
}

/* The payload is a line and stands for itself; its place goes with a short packet. */
static void puts_lines(void)
{
	for (int i = 0; i < LONG; i++) {
		uint64_t word = 0, data[2];
		uint8_t *at = weft_net_ring_data_place(&tx, WEFT_CACHELINE, &word);
		data[0] = (uint64_t)(at - tx.lane[WEFT_RING_NARROW].data) / WEFT_CACHELINE;
		data[1] = word;
		MODEL_CHECK((data[0] >= NARROW_LINES) == (word == WEFT_RING_IN_WIDE));
		model_write(&line[data[0]], i + 1);
		weft_net_ring_publish_words(&tx, (uint64_t)i * WEFT_RING_STEP, 5, data,
					    sizeof data);
	}
}

static void takes_lines(void)
{
	for (int i = 0; i < LONG;) {
		uint8_t head[WEFT_NET_HEAD];
		uint64_t word, data[2];
		const struct weft_ring_slot *s = weft_net_ring_find(&rx, &word);
		if (!s) {
			wait_for_packet(&rx);
			continue;
		}
		memcpy(data, weft_net_ring_open(&rx, s, head), sizeof data);
		MODEL_CHECK(model_read(&line[data[0]]) == ++i);
		const struct weft_ring_packet p = {
			.len = sizeof data, .lane = &rx.lane[data[1] != 0], .size = WEFT_CACHELINE};
		(void)weft_net_ring_consume(&rx, &p);
	}
}

/* ---- beginning again ---------------------------------------------------------------------- */

enum { QUESTIONS = 2 };

/* Writes into the first slot again, if it may, else into the next one. */
static void ask(int i)
{
	static const struct weft_ring_back silent;
	const struct weft_ring_back *back = tx.back;
	uint64_t data[2] = {(uint64_t)i};
	if (!weft_net_ring_begin(&tx))
		tx.back = &silent; /* nor later, so that we know where it goes */
	model_write(&place[(tx.put - tx.base) % SLOTS], i + 1);
	model_write(&payload[i], i + 1);
	weft_net_ring_publish_words(&tx, (uint64_t)i * WEFT_RING_STEP, 5, data, 16);
	tx.back = back;
}

static void asks(void)
{
	for (int i = 0; i < QUESTIONS; i++)
		ask(i);
}

static void answer(void)
{
	uint64_t data[2] = {0};
	weft_net_ring_publish_words(&tx_back, 0, 6, data, 16);
}

static void hear_question(int i)
{
	uint64_t word;
	const struct weft_ring_slot *s;
	uint8_t head[WEFT_NET_HEAD];
	while (!(s = weft_net_ring_find(&rx, &word)))
		wait_for_packet(&rx);
	const uint8_t *data = weft_net_ring_open(&rx, s, head);
	MODEL_CHECK(model_read(&place[s - rx.slot]) == i + 1);
	read_one(i, head, data);
	(void)weft_net_ring_consume_inline(&rx, 16, 1);
}

static bool hear_answer(void)
{
	uint64_t word;
	if (!weft_net_ring_find(&rx_back, &word))
		return false;
	(void)weft_net_ring_consume_inline(&rx_back, 16, 1);
	return true;
}

static void hears_and_answers(void)
{
	for (int i = 0; i < QUESTIONS; i++) {
		hear_question(i);
		answer();
	}
}

/* The asker's poller. */
static void hears_answers(void)
{
	for (int i = 0; i < QUESTIONS;)
		if (hear_answer())
			i++;
		else
			wait_for_packet(&rx_back);
}

static void hears_questions(void)
{
	for (int i = 0; i < QUESTIONS; i++)
		hear_question(i);
}

/* Says something of its own, and with it how far its poller is. */
static void speaks(void)
{
	answer();
}

static void asks_and_hears(void)
{
	for (int i = 0; i < QUESTIONS; i++) {
		ask(i);
		(void)hear_answer();
	}
}

/* Believes every answer, whatever it has heard. */
static void asks_hastily(void)
{
	for (int i = 0; i < QUESTIONS; i++) {
		ask(i);
		if (hear_answer())
			tx.base = tx.put;
	}
}

int main(void)
{
	/* One preemption more takes seconds and finds no more. */
	const int more = getenv("WEFT_LONG") != NULL;
	const struct model models[] = {
		{"shared slots, one by one",
		 setup,
		 {puts_small, takes},
		 NULL,
		 1 + more,
		 .must = {"weft_net_ring_load l", "weft_net_ring_add_inline s",
			  "weft_net_ring_publish_words s"}},
		{"shared slots, runs", setup, {puts_small, takes_runs}, NULL, 1 + more},
		{"an exchange, a store",
		 setup,
		 {puts_by_exchange, takes_two},
		 NULL,
		 2 + more,
		 .must = {"weft_net_ring_publish x", "weft_net_ring_publish s"}},
		{"full",
		 setup,
		 {puts_large, takes},
		 NULL,
		 2 + more,
		 .must = {"weft_net_ring_tell x", "weft_net_ring_tell l", "weft_net_ring_wait x",
			  "weft_net_ring_refresh l", "weft_net_ring_word l"}},
		{"hasty", setup, {puts_small, takes_hastily}, NULL, 2, .broken = true},
		{"narrow ring",
		 setup_lines,
		 {puts_lines, takes_lines},
		 NULL,
		 2 + more,
		 .must = {"weft_net_ring_refresh l", "weft_net_ring_tell x"}},
		{"again, two askers",
		 setup_talk,
		 {asks, hears_and_answers, hears_answers},
		 NULL,
		 2 + more,
		 .must = {"weft_net_ring_heard s", "weft_net_ring_begin l"}},
		{"again, two answerers",
		 setup_talk,
		 {asks_and_hears, hears_questions, speaks},
		 NULL,
		 1 + more,
		 .must = {"weft_net_ring_go s", "weft_net_ring_carried l"}},
		{"again, hasty",
		 setup_talk,
		 {asks_hastily, hears_questions, speaks},
		 NULL,
		 1,
		 .broken = true},
	};
	return explore_all(models, weft_countof(models));
}
