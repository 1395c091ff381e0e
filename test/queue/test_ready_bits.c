/* SPDX-License-Identifier: BSD-3-Clause */
/* Ready items come out once each, as the longest runs that there are, whatever the order they were set in. */
#include "check.h"
#include "queue/ready_bits.h"

#define MOST 9000u

static _Alignas(8) char memory[MOST];
static unsigned char seen[MOST];

static uint64_t rnd_state;

static uint32_t rnd(uint32_t n)
{
	rnd_state = rnd_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(rnd_state >> 33) % n;
}

static void in_random_order(uint32_t n, uint32_t most)
{
	struct weft_ready_bits b;
	uint64_t after;
	uint32_t first, left = n, *order = malloc((n + 1) * sizeof *order);

	CHECK(order && weft_ready_bits_bytes(n) <= sizeof memory);
	weft_ready_bits_init(&b, n, memory);
	weft_ready_bits_reset(&b, n);
	for (int round = 0; round < 2; round++, left = n) {
		memset(seen, 0, sizeof seen);
		for (uint32_t i = 0; i < n; i++)
			order[i] = i;
		for (uint32_t i = 0; i < n; i++) {
			uint32_t j = i + rnd(n - i), x = order[j];
			order[j] = order[i];
			order[i] = x;
			CHECK(weft_ready_bits_set(&b, x, &after) != WEFT_READY_TWICE);
			CHECK(after >> x % 64 & 1);
			if (rnd(10) == 0)
				CHECK_EQ(weft_ready_bits_set(&b, x, &after), WEFT_READY_TWICE);
			if (rnd(30) && i + 1 < n)
				continue;
			weft_ready_bits_gather(&b);
			for (uint32_t got; (got = weft_ready_bits_run(&b, most, &first));
			     left -= got) {
				CHECK(got <= most && first + got <= n);
				for (uint32_t k = first; k < first + got; k++)
					CHECK(!seen[k]++);
			}
			CHECK_EQ(weft_ready_bits_set(&b, x, &after), WEFT_READY_TWICE);
		}
		CHECK_EQ(left, 0);
		weft_ready_bits_reset(&b, n);
	}
	free(order);
}

/* Runs cross words, and are as long as asked for. */
static void long_runs(void)
{
	struct weft_ready_bits b;
	uint64_t after;
	uint32_t first;

	weft_ready_bits_init(&b, 2000, memory);
	weft_ready_bits_reset(&b, 1000);
	for (uint32_t w = 0; w < b.words; w++)
		CHECK_EQ(weft_ready_bits_set_mask(&b, w, weft_ready_full(&b, w), &after),
			 WEFT_READY_FIRST);
	CHECK_EQ(after, weft_ready_full(&b, b.words - 1));
	weft_ready_bits_gather(&b);
	CHECK_EQ(weft_ready_bits_run(&b, 100, &first), 100);
	CHECK_EQ(first, 0);
	CHECK_EQ(weft_ready_bits_run(&b, 10, &first), 10);
	CHECK_EQ(first, 100);
	CHECK_EQ(weft_ready_bits_run(&b, 5000, &first), 890);
	CHECK_EQ(first, 110);
	CHECK_EQ(weft_ready_bits_run(&b, 5000, &first), 0);
}

int main(int argc, char **argv)
{
	rnd_state = test_seed(argc, argv);
	static const uint32_t sizes[] = {1, 63, 64, 65, 200, 4096, 4097};
	for (size_t i = 0; i < weft_countof(sizes); i++)
		for (uint32_t most = 1; most < 5000; most = most * 7 + 1)
			in_random_order(sizes[i], most);
	long_runs();
	return 0;
}
