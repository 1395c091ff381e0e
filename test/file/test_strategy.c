/* SPDX-License-Identifier: BSD-3-Clause */
/* test_strategy.c - the way of a collective access follows from what all members have told. */
#include <string.h>
#include "check.h"
#include "file/strategy.h"

#define KIB ((uint64_t)1024)
#define MIB (KIB * 1024)

static const struct {
	const char *what;
	struct weft_file_facts f;
	enum weft_file_strategy want;
} table[] = {
	{"one member",
	 {1, 1, true, MIB, MIB, MIB, 1000, 1000, MIB, 1200, 0, {0, 0}},
	 WEFT_FILE_STRAIGHT},
	{"no data", {4, 2, true, 0, 0, 0, 0, 0, MIB, 1200, 0, {0, 0}}, WEFT_FILE_STRAIGHT},
	{"one run each",
	 {4, 2, true, 4 * MIB, MIB, 4 * MIB, 1, 4, MIB, 1200, 0, {0, 0}},
	 WEFT_FILE_STRAIGHT},
	{"long runs",
	 {4, 2, true, 64 * MIB, 16 * MIB, 64 * MIB, 16, 64, MIB, 1200, 0, {0, 0}},
	 WEFT_FILE_STRAIGHT},
	{"runs of 64 B, memory",
	 {4, 2, true, 4 * MIB, MIB, 4 * MIB, 16384, 65536, MIB, 1200, 0, {0, 0}},
	 WEFT_FILE_TWO_PHASE},
	{"runs of 4 KiB, each waits",
	 {4, 1, true, 4 * MIB, MIB, 4 * MIB, 256, 1024, 4 * MIB, 50000, 0, {0, 0}},
	 WEFT_FILE_TWO_PHASE},
	{"reads of a few runs",
	 {4, 2, false, 64 * KIB, 16 * KIB, 64 * KIB, 4, 16, MIB, 1200, 0, {0, 0}},
	 WEFT_FILE_STRAIGHT},
	{"reads of single bytes far apart",
	 {4, 2, false, 4000, 1000, 4096 * MIB, 1000, 4000, MIB, 1200, 0, {0, 0}},
	 WEFT_FILE_STRAIGHT},
	{"reads of close runs by one request each, which take eight times as long as was believed",
	 {2, 2, false, 32 * KIB, 16 * KIB, 32 * KIB, 512, 1024, 16 * MIB, 50000, 0, {2048, 0}},
	 WEFT_FILE_STRAIGHT},
	{"writes of far runs, each a request, which take eight times as long",
	 {2, 2, true, 32 * KIB, 16 * KIB, 32 * KIB, 512, 1024, 16 * MIB, 50000, 0, {2048, 0}},
	 WEFT_FILE_TWO_PHASE},
	{"runs of 64 B, by mapped pages",
	 {2, 2, true, MIB, MIB / 2, MIB, 8192, 16384, MIB, 1200, 200000, {0, 0}},
	 WEFT_FILE_STRAIGHT},
	{"the same, each page used for the first time",
	 {2, 2, true, MIB, MIB / 2, MIB, 8192, 16384, MIB, 1200, 900000, {0, 0}},
	 WEFT_FILE_TWO_PHASE},
};

/* Requests that take 30 times as long as was believed: the other way is taken, and the first tried again much later. */
static void learns(void)
{
	struct weft_file_facts f = {2,   2,   true, 4 * MIB, 2 * MIB, 4 * MIB,
				    128, 256, MIB,  1200,    0,       {0, 0}};
	struct weft_file_learned l = {.map = {0}};
	uint64_t cost[2];
	int turns = 0;
	CHECK_EQ(weft_file_strategy_choose(&f, cost), WEFT_FILE_STRAIGHT);
	CHECK(cost[WEFT_FILE_STRAIGHT] && cost[WEFT_FILE_TWO_PHASE]);
	do { /* ends: what it is believed to take approaches what it takes */
		weft_file_strategy_learn(&l, WEFT_FILE_STRAIGHT, cost[WEFT_FILE_STRAIGHT],
					 30 * cost[WEFT_FILE_STRAIGHT]);
		for (int k = 0; k < 2; k++)
			f.ratio[k] = l.way[k].usual;
		turns++;
	} while (weft_file_strategy_choose(&f, cost) == WEFT_FILE_STRAIGHT && turns < 10);
	CHECK_EQ(turns, 2); /* the first may have been a bad moment */
	for (turns = 0; weft_file_strategy_choose(&f, cost) == WEFT_FILE_TWO_PHASE && turns < 1000;
	     turns++) { /* ends: the first way's is forgotten */
		weft_file_strategy_learn(&l, WEFT_FILE_TWO_PHASE, cost[WEFT_FILE_TWO_PHASE],
					 cost[WEFT_FILE_TWO_PHASE]);
		for (int k = 0; k < 2; k++)
			f.ratio[k] = l.way[k].usual;
	}
	CHECK(turns > 50 && turns < 1000);
}

/* Mapped pages are left where they take long twice, not once, and taken again later. */
static void learns_map(void)
{
	struct weft_file_learned l = {.map = {0}};
	uint64_t bytes = 256 * KIB, ranges = 4096;
	uint64_t ns = weft_file_strategy_map_ns(ranges, bytes, 0);
	int turns = 0;
	CHECK(weft_file_strategy_apart(&l, ns, bytes, ranges));
	weft_file_strategy_learn_map(&l.map, ns, 1000 * ns);
	CHECK(weft_file_strategy_apart(&l, ns, bytes, ranges));
	weft_file_strategy_learn_map(&l.map, ns, ns);
	CHECK(weft_file_strategy_apart(&l, ns, bytes, ranges));
	weft_file_strategy_learn_map(&l.map, ns, 1000 * ns);
	CHECK(!weft_file_strategy_apart(&l, ns, bytes, ranges));
	while (!weft_file_strategy_apart(&l, ns, bytes, ranges) && turns < 2000)
		turns++; /* ends: what was learned is forgotten */
	CHECK(turns > 50 && turns < 2000);
	/* All of it for the first time. */
	CHECK(weft_file_strategy_map_ns(ranges, bytes, 2 * bytes) > 2 * ns);
}

/* Where a third of the accesses takes ten times as long, they go by mapped pages all the same. */
static void bears_bad_moments(void)
{
	struct weft_file_learned l = {.map = {0}};
	uint64_t bytes = 256 * KIB, ranges = 4096;
	uint64_t ns = weft_file_strategy_map_ns(ranges, bytes, 0);
	for (int i = 0; i < 1000; i++) {
		CHECK(weft_file_strategy_apart(&l, ns, bytes, ranges));
		weft_file_strategy_learn_map(&l.map, ns, i % 3 ? ns : 10 * ns);
	}
}

/* On a machine where all takes five times as long two phases are tried, and left again for a long time. */
static void bears_a_slow_machine(void)
{
	struct weft_file_learned l = {.map = {0}};
	uint64_t bytes = 256 * KIB, ranges = 4096;
	uint64_t ns = weft_file_strategy_map_ns(ranges, bytes, 0), two = 3 * ns;
	int tried = 0;
	for (int i = 0; i < 1000; i++) {
		if (weft_file_strategy_apart(&l, ns, bytes, ranges)) {
			weft_file_strategy_learn_map(&l.map, ns, 5 * ns);
			continue;
		}
		weft_file_strategy_learn(&l, WEFT_FILE_TWO_PHASE, two, 5 * two);
		tried++;
	}
	CHECK(tried > 0 && tried < 30);
}

/* Two phases over that many bytes, by so many aggregators. */
static uint64_t by_aggregators(int aggregators, uint64_t bytes, uint64_t call_ns, bool write)
{
	struct weft_file_facts f = {.members = 4,
				    .aggregators = aggregators,
				    .write = write,
				    .bytes = bytes,
				    .most_bytes = bytes / 4,
				    .span = bytes,
				    .most_ranges = bytes / 64,
				    .ranges = bytes / 16,
				    .window = 16 * MIB,
				    .call_ns = call_ns};
	uint64_t cost[2];
	(void)weft_file_strategy_choose(&f, cost); /* what it would be */
	return cost[WEFT_FILE_TWO_PHASE];
}

/* Where a request takes long, little data is one aggregator's. */
static void few_take_part(void)
{
	for (int write = 0; write < 2; write++) {
		CHECK_EQ(by_aggregators(4, 64 * KIB, 50000, write),
			 by_aggregators(1, 64 * KIB, 50000, write));
		CHECK(by_aggregators(4, 16 * MIB, 50000, write) <
		      by_aggregators(1, 16 * MIB, 50000, write));
		CHECK(by_aggregators(4, 64 * KIB, 1200, write) <
		      by_aggregators(1, 64 * KIB, 1200, write));
	}
	CHECK(weft_file_strategy_domain(50000, true) > weft_file_strategy_domain(50000, false));
}

int main(void)
{
	uint64_t cost[2];
	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
		if (weft_file_strategy_choose(&table[i].f, cost) != table[i].want)
			fprintf(stderr, "%s:\n", table[i].what);
		CHECK_EQ(weft_file_strategy_choose(&table[i].f, cost), table[i].want);
	}
	learns();
	learns_map();
	bears_bad_moments();
	bears_a_slow_machine();
	few_take_part();
	CHECK(weft_file_strategy_call_ns("tmpfs") < weft_file_strategy_call_ns("nfs"));
	return 0;
}
