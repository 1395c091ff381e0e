/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The word of a shared copy in every order: each piece is claimed once, by one side, and the
 * receiver knows how many the sender has; a sender that comes late gets nothing.
 */
#include "model/explore.h"
/* The production source, compiled against the explorer's atomics. */
#include "comm/large/share.h"

enum { PIECES = 3 };

static _Atomic uint64_t x_word;
static int by[PIECES]; /* 0: neither side, 1: the receiver, 2: the sender */
static int fetched, written, said;

static void setup(void)
{
	memset((void *)&x_word, 0, sizeof x_word);
	weft_comm_share_open(&x_word, 7, PIECES);
	memset(by, 0, sizeof by);
	fetched = written = 0;
	said = -1;
}

static void have(unsigned piece, int who)
{
	MODEL_CHECK(piece < PIECES && !by[piece]);
	by[piece] = who;
}

static void fetch(void)
{
	unsigned first, n;
	/* As production does: one, then two at a time. */
	while ((n = weft_comm_share_front(&x_word, 7, fetched ? 2 : 1, &first)) > 0) {
		MODEL_CHECK((int)first == fetched);
		for (unsigned i = 0; i < n; i++)
			have(first + i, 1);
		fetched += (int)n;
		weft_comm_share_check(&x_word, 7);
	}
	said = (int)weft_comm_share_close(&x_word, 7, PIECES);
	/* The word's next message. */
	weft_comm_share_open(&x_word, 8, PIECES);
}

static void write_back(void)
{
	unsigned piece;
	while (weft_comm_share_back(&x_word, 7, &piece)) {
		have(piece, 2);
		written++;
		weft_comm_share_check(&x_word, 7);
	}
}

static void write_rest(void)
{
	unsigned first, n = weft_comm_share_rest(&x_word, 7, &first);
	for (unsigned i = 0; i < n; i++)
		have(first + i, 2);
	written += (int)n;
}

/* The receiver gives up in the middle. */
static void fetch_one(void)
{
	unsigned first;
	if (weft_comm_share_front(&x_word, 7, 1, &first)) {
		have(first, 1);
		fetched++;
	}
	said = (int)weft_comm_share_close(&x_word, 7, PIECES);
}

static void all_once(void)
{
	MODEL_CHECK(fetched + written == PIECES);
	MODEL_CHECK(said == written);
	MODEL_CHECK(weft_comm_share_back_of(x_word) == PIECES && !weft_comm_share_front_of(x_word));
}

static void closed(void)
{
	MODEL_CHECK(said == written && fetched + written <= PIECES);
}

/* Claims without a compare-exchange. */
static void write_hasty(void)
{
	uint64_t w = atomic_load_explicit(&x_word, memory_order_relaxed);
	unsigned front = weft_comm_share_front_of(w), back = weft_comm_share_back_of(w);
	if (weft_comm_share_number(w) != 7 || front >= back)
		return;
	have(back - 1, 2);
	written++;
	atomic_store_explicit(&x_word, weft_comm_share_word(7, front, back - 1),
			      memory_order_relaxed);
}

/* The same for all that is left. */
static void write_rest_hasty(void)
{
	uint64_t w = atomic_load_explicit(&x_word, memory_order_relaxed);
	unsigned front = weft_comm_share_front_of(w), back = weft_comm_share_back_of(w);
	if (weft_comm_share_number(w) != 7)
		return;
	for (unsigned i = front; i < back; i++)
		have(i, 2);
	written += (int)(back - front);
	atomic_store_explicit(&x_word, weft_comm_share_word(7, front, front), memory_order_relaxed);
}

int main(void)
{
	static const struct model models[] = {
		{"share, both copy", setup, {fetch, write_back}, all_once, 4},
		{"share, the rest at once", setup, {fetch, write_rest}, all_once, 4},
		{"share, the rest, given up", setup, {fetch_one, write_rest}, closed, 4},
		{"share, given up in the middle", setup, {fetch_one, write_back}, closed, 4},
		{"share, the rest without an exchange",
		 setup,
		 {fetch, write_rest_hasty},
		 NULL,
		 4,
		 .broken = true},
		{"share, claimed without an exchange",
		 setup,
		 {fetch, write_hasty},
		 NULL,
		 4,
		 .broken = true},
	};
	return explore_all(models, weft_countof(models));
}
