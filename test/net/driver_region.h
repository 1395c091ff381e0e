/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * driver_region.h - for driver_suite.c: regions, transfers, atomics and flushes (net/region.h).
 *
 * A driver without regions, or a peer whose regions it cannot reach, passes with a line that says
 * so.
 */
#ifndef WEFT_TEST_NET_DRIVER_REGION_H
#define WEFT_TEST_NET_DRIVER_REGION_H

#include "driver_node.h"

#define REGION_EDGE 64
#define REGION_PIECES 40

static unsigned region_access(struct node *n, int peer)
{
	unsigned access = n->driver->card(n->net, peer)->access;
	if (!access)
		fprintf(stderr, "%s: no regions here\n", n->driver->name);
	return access;
}

/* Opens base[0..len) and shows the ticket on the board; all have met behind it. */
static void region_show(struct node *n, int peer, void *base, size_t len, unsigned access,
			struct weft_net_region *region)
{
	CHECK_EQ(n->driver->region_open(n->net, peer, base, len, access, region), WEFT_OK);
	n->board->ticket[n->rank] = region->ticket;
	meet_polling(n);
}

/* One attempt at a transfer, an atomic, or, with neither, a flush. */
static enum weft_post region_try(struct node *n, int peer, const struct weft_net_transfer *t,
				 const struct weft_net_atomic *a)
{
	n->outstanding++;
	enum weft_post p = t   ? n->driver->transfer(n->net, peer, t)
			   : a ? n->driver->atomic(n->net, peer, a)
			       : n->driver->flush(n->net, peer, NULL);
	if (p != WEFT_POST_ACCEPTED)
		n->outstanding--;
	return p;
}

/* The same until there is room. */
static enum weft_post region_do(struct node *n, int peer, const struct weft_net_transfer *t,
				const struct weft_net_atomic *a)
{
	for (;;) { /* ends, or alarm() ends it */
		int before = n->ready[peer];
		enum weft_post p = region_try(n, peer, t, a);
		if (p != WEFT_POST_FULL)
			return p;
		while (n->ready[peer] == before && !n->down[peer])
			poll_once(n);
	}
}

/* All that was accepted is over. */
static void region_wait(struct node *n)
{
	while (n->outstanding)
		poll_once(n);
}

static void region_flush(struct node *n, int peer)
{
	enum weft_post p = region_do(n, peer, NULL, NULL);
	CHECK(p == WEFT_POST_DONE || p == WEFT_POST_ACCEPTED);
	region_wait(n);
}

/* One piece each. */
static enum weft_post region_plain(struct node *n, int peer, const struct weft_net_ticket *there,
				   bool write, uint64_t at, void *data, size_t len)
{
	const struct weft_net_span span = {at, len};
	const struct iovec piece = {data, len};
	return region_do(n, peer,
			 &(struct weft_net_transfer){.write = write,
						     .there = there,
						     .span = &span,
						     .n_spans = 1,
						     .piece = &piece,
						     .n_pieces = 1},
			 NULL);
}

/* Cuts [0, len) into spans and pieces of random lengths, some of them empty. */
struct region_cuts {
	struct weft_net_span span[REGION_PIECES];
	struct iovec piece[REGION_PIECES];
	unsigned n_spans, n_pieces;
};

static size_t region_cut_next(uint64_t *seed, size_t left, bool last)
{
	size_t most = weft_rand_next(seed) % 4 ? left / 4 : 80;
	size_t len = weft_rand_next(seed) % (most + 1);
	return last || len > left ? left : len;
}

static void region_cut(struct region_cuts *c, uint64_t *seed, unsigned char *data, size_t len)
{
	size_t at = 0;
	memset(c, 0, sizeof *c);
	for (; at < len || !c->n_spans; at += c->span[c->n_spans++].len)
		c->span[c->n_spans] = (struct weft_net_span){
			at, region_cut_next(seed, len - at, c->n_spans == REGION_PIECES - 1)};
	at = 0;
	for (; at < len || !c->n_pieces; at += c->piece[c->n_pieces++].iov_len)
		c->piece[c->n_pieces] = (struct iovec){
			data + at,
			region_cut_next(seed, len - at, c->n_pieces == REGION_PIECES - 1)};
	/* The spans' order is the origin's to choose. */
	for (unsigned i = 0; i + 1 < c->n_spans; i += 2)
		if (c->span[i].len == c->span[i + 1].len) {
			struct weft_net_span s = c->span[i];
			c->span[i] = c->span[i + 1];
			c->span[i + 1] = s;
		}
}

/* The region as the cuts leave it. */
static void region_cut_lay(const struct region_cuts *c, const unsigned char *data,
			   unsigned char *region)
{
	for (unsigned i = 0; i < c->n_spans; i++) {
		memcpy(region + c->span[i].at, data, c->span[i].len);
		data += c->span[i].len;
	}
}

/*
 * Each writes into the region of the next rank, in many pieces on both sides, reads it back in
 * others, and then says so: with what it says all bytes are there, and none beside them changed.
 */
static void case_regions(struct node *n)
{
	enum { BYTES = 1000000, ROUNDS = 30 };
	static unsigned char memory[REGION_EDGE + BYTES + REGION_EDGE], data[BYTES], back[BYTES];
	static unsigned char written[BYTES], read[BYTES];
	static struct region_cuts out, in;
	int to = next_of(n), from = prev_of(n);
	uint64_t seed = 7 + (uint64_t)n->rank;
	meet_neighbours(n);
	unsigned access = region_access(n, to);
	if (!(access & WEFT_NET_WRITE))
		return;
	for (uint64_t round = 0; round < ROUNDS / (suite_fewer > 1 ? 3 : 1); round++) {
		size_t len = 1 + weft_rand_next(&seed) % (round % 3 ? 5000 : BYTES);
		struct weft_net_region region;
		uint64_t before = n->got_n[from];
		memset(memory, 0x5a, sizeof memory);
		region_show(n, round % 2 ? WEFT_NET_ANY_PEER : from, memory + REGION_EDGE, len,
			    access & (WEFT_NET_READ | WEFT_NET_WRITE), &region);
		struct weft_net_ticket there = n->board->ticket[to];
		payload_fill(data, there.len, round * 16 + (uint64_t)n->rank);
		region_cut(&out, &seed, data, there.len);
		struct weft_net_transfer t = {.write = true,
					      .there = &there,
					      .span = out.span,
					      .n_spans = out.n_spans,
					      .piece = out.piece,
					      .n_pieces = out.n_pieces};
		enum weft_post p = region_do(n, to, &t, NULL);
		CHECK(p == WEFT_POST_DONE || p == WEFT_POST_ACCEPTED);
		memset(out.piece, 0xff, sizeof out.piece); /* read during the call only */
		if (p == WEFT_POST_DONE)
			memset(data, 0, there.len);
		send_packet(n, to, 8);
		while (n->got_n[from] == before)
			poll_once(n);
		for (int i = 0; i < REGION_EDGE; i++)
			CHECK(memory[i] == 0x5a && memory[REGION_EDGE + len + (size_t)i] == 0x5a);
		region_wait(n);
		meet_polling(n);
		if (access & WEFT_NET_READ) {
			memset(back, 0, sizeof back);
			region_cut(&in, &seed, back, there.len);
			t.write = false;
			t.span = in.span;
			t.n_spans = in.n_spans;
			t.piece = in.piece;
			t.n_pieces = in.n_pieces;
			CHECK(region_do(n, to, &t, NULL) <= WEFT_POST_ACCEPTED);
			region_wait(n);
			payload_fill(data, there.len, round * 16 + (uint64_t)n->rank);
			region_cut_lay(&out, data, written);
			region_cut_lay(&in, back, read);
			CHECK(!memcmp(read, written, there.len));
		}
		meet_polling(n);
		n->driver->region_close(n->net, &region);
		meet_polling(n);
	}
}

/* After a flush the bytes are in the peer's memory, which then looks without a poll. */
static void case_flush(struct node *n)
{
	enum { BYTES = 40000, ROUNDS = 100 };
	static unsigned char memory[BYTES], data[BYTES];
	int to = next_of(n), from = prev_of(n);
	struct weft_net_region region;
	meet_neighbours(n);
	if (!(region_access(n, to) & WEFT_NET_WRITE))
		return;
	region_show(n, WEFT_NET_ANY_PEER, memory, sizeof memory, WEFT_NET_WRITE, &region);
	struct weft_net_ticket there = n->board->ticket[to];
	region_flush(n, to); /* nothing was written */
	for (uint64_t round = 0; round < ROUNDS; round++) {
		/* Short ones go from a copy on some networks. */
		size_t len = round % 3 ? 1 + round % 200 : BYTES;
		payload_fill(data, len, round * 16 + (uint64_t)n->rank);
		CHECK(region_plain(n, to, &there, true, 0, data, len) <= WEFT_POST_ACCEPTED);
		region_flush(n, to);
		meet_polling(n);
		CHECK_EQ(payload_wrong(memory, len, round * 16 + (uint64_t)from), len);
		meet_polling(n);
	}
	n->driver->region_close(n->net, &region);
}

/* An access beyond the region's bytes is refused, whatever overflows. */
static void case_bounds(struct node *n)
{
	enum { BYTES = 1000 };
	static unsigned char memory[REGION_EDGE + BYTES + REGION_EDGE], data[4 * BYTES];
	int to = next_of(n);
	struct weft_net_region region;
	meet_neighbours(n);
	unsigned access = region_access(n, to);
	if (!access)
		return;
	memset(memory, 0x5a, sizeof memory);
	memset(data, 1, sizeof data);
	region_show(n, WEFT_NET_ANY_PEER, memory + REGION_EDGE, BYTES, access, &region);
	struct weft_net_ticket there = n->board->ticket[to];
	static const struct weft_net_span bad[] = {
		{BYTES, 1},      {0, BYTES + 1},
		{UINT64_MAX, 1}, {1, BYTES},
		{UINT64_MAX, 2}, {BYTES + 1, 0},
		{BYTES - 1, 2},  {8, UINT64_MAX},
		{1, UINT64_MAX}, {UINT64_MAX / 2, UINT64_MAX / 2 + 2}};
	for (size_t i = 0; i < weft_countof(bad); i++)
		for (int write = 0; write < 2; write++) {
			const struct weft_net_span span[2] = {{0, 1}, bad[i]};
			const struct iovec piece = {data, 1 + (size_t)bad[i].len};
			const struct weft_net_transfer t = {.write = write,
							    .there = &there,
							    .span = span,
							    .n_spans = 2,
							    .piece = &piece,
							    .n_pieces = 1};
			CHECK_EQ(region_try(n, to, &t, NULL), WEFT_POST_REFUSED);
		}
	/* As many bytes on both sides. */
	const struct weft_net_span span = {0, 10};
	const struct iovec piece = {data, 11};
	const struct weft_net_transfer t = {.write = true,
					    .there = &there,
					    .span = &span,
					    .n_spans = 1,
					    .piece = &piece,
					    .n_pieces = 1};
	CHECK_EQ(region_try(n, to, &t, NULL), WEFT_POST_REFUSED);
	for (unsigned bytes = 1; access & WEFT_NET_ATOMIC && bytes <= 8; bytes *= 2) {
		static const uint64_t beyond[] = {BYTES, UINT64_MAX - 7, 1ull << 63};
		uint64_t result = 77;
		for (size_t i = 0; i < weft_countof(beyond); i++) {
			const struct weft_net_atomic a = {.bytes = bytes,
							  .there = &there,
							  .at = beyond[i],
							  .operand = 1,
							  .result = &result};
			CHECK_EQ(region_try(n, to, NULL, &a), WEFT_POST_REFUSED);
		}
		CHECK_EQ(result, 77);
	}
	/* Nothing at all is within any bounds. */
	CHECK_EQ(region_plain(n, to, &there, !(access & WEFT_NET_READ), BYTES, data, 0),
		 WEFT_POST_DONE);
	meet_polling(n);
	for (size_t i = 0; i < sizeof memory; i++)
		CHECK_EQ(memory[i], 0x5a);
	n->driver->region_close(n->net, &region);
}

/* On networks that copy: an access that the region is not open for, or to one that is closed. */
static void case_region_closed(struct node *n)
{
	static unsigned char memory[4096], data[4096];
	int to = next_of(n);
	struct weft_net_region region, again;
	meet_neighbours(n);
	if (!region_access(n, to) || !n->driver->card(n->net, to)->copies)
		return;
	memset(data, 1, sizeof data);
	region_show(n, WEFT_NET_ANY_PEER, memory, sizeof memory, WEFT_NET_READ, &region);
	struct weft_net_ticket there = n->board->ticket[to];
	CHECK_EQ(region_plain(n, to, &there, true, 0, data, 100), WEFT_POST_REFUSED);
	CHECK_EQ(region_plain(n, to, &there, false, 0, data + 100, 100), WEFT_POST_DONE);
	meet_polling(n);
	n->driver->region_close(n->net, &region);
	meet_polling(n);
	CHECK_EQ(region_plain(n, to, &there, false, 0, data, 100), WEFT_POST_REFUSED);
	CHECK_EQ(data[0], 1);
	/* Its place in the table is used again: the old ticket stays closed. */
	region_show(n, WEFT_NET_ANY_PEER, memory, sizeof memory, WEFT_NET_READ | WEFT_NET_WRITE,
		    &again);
	struct weft_net_ticket now = n->board->ticket[to];
	CHECK_EQ(region_plain(n, to, &there, true, 0, data, 100), WEFT_POST_REFUSED);
	CHECK_EQ(region_plain(n, to, &now, true, 0, data, 100), WEFT_POST_DONE);
	meet_polling(n);
	CHECK(memory[0] == 1 && memory[99] == 1 && memory[100] == 0);
	n->driver->region_close(n->net, &again);
	/* As many as there are: the next open fails, and none is lost. */
	static struct weft_net_region many[5000];
	for (int round = 0; round < 3; round++) {
		unsigned opened = 0;
		while (opened < weft_countof(many) &&
		       !n->driver->region_open(n->net, WEFT_NET_ANY_PEER, memory, 1, WEFT_NET_READ,
					       &many[opened]))
			opened++;
		CHECK(opened >= 1000);
		while (opened)
			n->driver->region_close(n->net, &many[--opened]);
	}
}

/* Many at once, without a poll between them: FULL ends in ready(), each accepted one in sent(). */
static void case_regions_full(struct node *n)
{
	enum { BYTES = 1 << 20, COUNT = 2000 };
	static unsigned char memory[BYTES], data[BYTES];
	int to = next_of(n), from = prev_of(n);
	struct weft_net_region region;
	meet_neighbours(n);
	unsigned access = region_access(n, to);
	if (!(access & WEFT_NET_WRITE))
		return;
	uint64_t before = n->got_n[from]; /* the sender may be faster than the meeting */
	region_show(n, from, memory, sizeof memory, access & 3u, &region);
	struct weft_net_ticket there = n->board->ticket[to];
	payload_fill(data, sizeof data, (uint64_t)n->rank);
	uint64_t seed = 3;
	for (unsigned i = 0; i < COUNT / suite_fewer; i++) {
		size_t at = weft_rand_next(&seed) % BYTES;
		size_t len = weft_rand_next(&seed) % (i % 16 ? 2000 : BYTES) % (BYTES - at) + 1;
		CHECK(region_plain(n, to, &there, true, at, data + at, len) <= WEFT_POST_ACCEPTED);
		if (i % 100 == 0 && access & WEFT_NET_READ) {
			static unsigned char back[1000];
			CHECK(region_plain(n, to, &there, false, 0, back, sizeof back) <=
			      WEFT_POST_ACCEPTED);
		}
	}
	CHECK(region_plain(n, to, &there, true, 0, data, sizeof data) <= WEFT_POST_ACCEPTED);
	send_packet(n, to, 8);
	while (n->got_n[from] == before)
		poll_once(n);
	CHECK_EQ(payload_wrong(memory, sizeof memory, (uint64_t)from), sizeof memory);
	region_wait(n);
	CHECK_EQ(n->failed_sends, 0);
	meet_polling(n);
	n->driver->region_close(n->net, &region);
}

/* The words that all ranks of a case work on, in rank 0's region. */
struct atomic_words {
	uint64_t sum, swapped, compared, narrow;
};

/* Three words of 1, 2 and 4 bytes lie in `narrow`. */
static uint64_t narrow_at(unsigned bytes)
{
	return offsetof(struct atomic_words, narrow) + 8 - 2 * bytes;
}

static uint64_t atomic_do(struct node *n, struct weft_net_atomic a)
{
	uint64_t result = 0;
	a.there = &n->board->ticket[0];
	a.result = &result;
	CHECK(region_do(n, 0, NULL, &a) <= WEFT_POST_ACCEPTED);
	region_wait(n);
	return result;
}

/* All add, swap and compare on the same words of one rank: no step is lost. */
static void case_atomics(struct node *n)
{
	enum { ROUNDS = 300 };
	static struct atomic_words words;
	struct weft_net_region region;
	uint64_t taken = 0, rounds = ROUNDS / suite_fewer;
	bool owner = n->rank == 0;
	meet_neighbours(n);
	if (n->size > 1 && !owner) {
		send_packet(n, 0, 8);
	} else if (n->size > 1) {
		for (int p = 1; p < n->size; p++)
			while (n->got_n[p] < 1 + (p == prev_of(n)))
				poll_once(n);
	}
	meet_polling(n);
	int peer = n->size == 1 ? 0 : owner ? 1 : 0;
	const struct weft_net_card *card = n->driver->card(n->net, peer);
	if (!(region_access(n, peer) & WEFT_NET_ATOMIC))
		return;
	CHECK_EQ(card->atomic_sizes & ~15u, 0);
	CHECK(card->atomic_sizes & 8);
	if (owner)
		region_show(n, WEFT_NET_ANY_PEER, &words, sizeof words, WEFT_NET_ATOMIC, &region);
	else
		meet_polling(n);
	for (uint64_t i = 1; i <= rounds && (n->size == 1 || !owner); i++) {
		(void)atomic_do(n,
				(struct weft_net_atomic){.op = WEFT_NET_FETCH_ADD,
							 .bytes = 8,
							 .at = offsetof(struct atomic_words, sum),
							 .operand = i});
		/* What each puts in another, or the end, takes out. */
		taken += atomic_do(
			n, (struct weft_net_atomic){.op = WEFT_NET_SWAP,
						    .bytes = 8,
						    .at = offsetof(struct atomic_words, swapped),
						    .operand = i});
		for (unsigned bytes = 1; bytes <= 4; bytes *= 2)
			if (card->atomic_sizes & bytes)
				(void)atomic_do(n,
						(struct weft_net_atomic){.op = WEFT_NET_FETCH_ADD,
									 .bytes = bytes,
									 .at = narrow_at(bytes),
									 .operand = 1});
		uint64_t seen = 0, found;
		while ((found = atomic_do(n, (struct weft_net_atomic){
						     .op = WEFT_NET_COMPARE_SWAP,
						     .bytes = 8,
						     .at = offsetof(struct atomic_words, compared),
						     .compare = seen,
						     .operand = seen + 1})) != seen)
			seen = found; /* ends: another's step has counted */
	}
	atomic_store(&n->board->x_word[n->rank], taken);
	meet_polling(n);
	if (owner) {
		uint64_t all = 0, workers = n->size == 1 ? 1 : (uint64_t)n->size - 1;
		uint64_t each = rounds * (rounds + 1) / 2;
		for (int p = 0; p < n->size; p++)
			all += atomic_load(&n->board->x_word[p]);
		CHECK_EQ(words.sum, workers * each);
		CHECK_EQ(all + words.swapped, workers * each);
		CHECK_EQ(words.compared, workers * rounds);
		for (unsigned bytes = 1; bytes <= 4; bytes *= 2) {
			uint64_t found = 0, mask = (1ull << 8 * bytes) - 1;
			memcpy(&found, (char *)&words + narrow_at(bytes), bytes);
			if (card->atomic_sizes & bytes)
				CHECK_EQ(found, workers * rounds & mask);
		}
		n->driver->region_close(n->net, &region);
	}
}

/* The owner is killed: what was accepted ends, before down(); then there is nothing but DOWN. */
static void case_killed_owner(struct node *n)
{
	static unsigned char memory[100000], data[100000];
	struct weft_net_region region;
	atomic_store(&n->board->x_pid[n->rank], getpid());
	meet_neighbours(n);
	if (!(region_access(n, next_of(n)) & WEFT_NET_WRITE))
		return;
	region_show(n, WEFT_NET_ANY_PEER, memory, sizeof memory, WEFT_NET_WRITE, &region);
	if (n->rank == 0) {
		for (;;)
			pause();
	}
	struct weft_net_ticket there = n->board->ticket[0];
	const struct weft_net_span span = {0, sizeof data};
	const struct iovec piece = {data, sizeof data};
	const struct weft_net_transfer t = {.write = true,
					    .there = &there,
					    .span = &span,
					    .n_spans = 1,
					    .piece = &piece,
					    .n_pieces = 1};
	for (int i = 0; i < 100; i++)
		CHECK(region_try(n, 0, &t, NULL) <= WEFT_POST_FULL);
	CHECK(kill(atomic_load(&n->board->x_pid[0]), SIGKILL) == 0);
	while (!n->down[0]) {
		enum weft_post p = region_try(n, 0, &t, NULL);
		CHECK(p != WEFT_POST_REFUSED);
		(void)region_try(n, 0, NULL, NULL);
		sleep_once(n);
	}
	CHECK_EQ(n->outstanding, 0); /* down() is the last that is heard of a peer */
	CHECK_EQ(region_try(n, 0, &t, NULL), WEFT_POST_DOWN);
	CHECK_EQ(region_try(n, 0, NULL, NULL), WEFT_POST_DOWN);
	n->driver->region_close(n->net, &region);
	n->driver->close(n->net);
	exit(0);
}

#endif
