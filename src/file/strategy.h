/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * strategy.h - how the members of a collective access move their data: each its own, or in two phases.
 *
 * A pure function of what all members have told: every member comes to the same answer.  What a request costs is
 * the usual of the file system's kind (the largest that a member reports); each member measures by how much
 * accesses through its view have taken longer than that, or less (the largest that a member reports).
 *
 * Callers   any thread.
 */
#ifndef WEFT_FILE_STRATEGY_H
#define WEFT_FILE_STRATEGY_H

#include "base/base.h"

enum weft_file_strategy {
	WEFT_FILE_STRAIGHT,  /* each member its own part */
	WEFT_FILE_TWO_PHASE, /* aggregators move whole stretches, members exchange with them */
};

/* What is known of one access. */
struct weft_file_facts {
	int members, aggregators;
	bool write;
	uint64_t bytes;       /* of data, all members */
	uint64_t most_bytes;  /* of data, the member with most */
	uint64_t span;        /* of the file, first to last byte */
	uint64_t most_ranges; /* of the member with most ranges */
	uint64_t ranges;      /* all members */
	uint64_t window;      /* what an aggregator moves at once */
	uint64_t call_ns;     /* one request of the file system, its data left out */
	uint64_t
		map_ns; /* of the member that takes longest, each its own part by mapped pages; 0: not all can */
	uint32_t ratio[2]; /* by strategy: measured by expected, in 1/256; 0: not measured */
};

#define WEFT_FILE_SAMPLES 5

/* What accesses have taken by what was expected, in 1/256. */
struct weft_file_ratio {
	uint32_t usual; /* the median of the last ones; 0: not measured */
	uint32_t n;     /* of them, so far */
	uint32_t sample[WEFT_FILE_SAMPLES];
};

/* One member's, of one view, in one direction. */
struct weft_file_learned {
	struct weft_file_ratio way[2]; /* by strategy */
	struct weft_file_ratio map;    /* its part by mapped pages */
};

#define WEFT_FILE_RATIO_ONE 256u

/* cost[strategy], ns; with nothing to choose between both are 0, and the answer is STRAIGHT. */
enum weft_file_strategy weft_file_strategy_choose(const struct weft_file_facts *f,
						  uint64_t cost[2]);
/* An access that was to take cost_ns, not 0, took took_ns. */
void weft_file_strategy_learn(struct weft_file_learned *l, enum weft_file_strategy s,
			      uint64_t cost_ns, uint64_t took_ns);

/* By mapped pages: of that many short ranges, of which so many bytes of the file were not used for this before. */
uint64_t weft_file_strategy_map_ns(uint64_t ranges, uint64_t bytes, uint64_t cold);
/* Is that less than to give them to an aggregator?  Forgets a little of what was learned of the way that is not taken. */
bool weft_file_strategy_apart(struct weft_file_learned *l, uint64_t map_ns, uint64_t bytes,
			      uint64_t ranges);
/* Such a part was to take map_ns, and took took_ns. */
void weft_file_strategy_learn_map(struct weft_file_ratio *r, uint64_t map_ns, uint64_t took_ns);
/* At least so much of the file for each aggregator that takes part: where a request takes long, a second one for less costs more than
 * the copying that it takes over.  The kernel lets one write of a file through at a time, reads together. */
uint64_t weft_file_strategy_domain(uint64_t call_ns, bool write);
/* What a request costs on a file system of that name, before any was measured. */
uint64_t weft_file_strategy_call_ns(const char *fs_name);

#endif
