/* SPDX-License-Identifier: BSD-3-Clause */
/* strategy.c - the two costs compared. */
#include "file/strategy.h"

#include <string.h>

/*
 * Nanoseconds, rough: on tmpfs with two ranks the ways meet at ranges of about 2 KiB, and there the answer may be
 * wrong by a factor of two in time.  A copy of 1 KiB, by way of a message; a message; one piece put in its place in
 * a window; what the exchange of two phases takes at least.
 */
#define COPY_KIB_NS 300
#define MESSAGE_NS 3000
#define PIECE_NS 40
#define BEGIN_NS 20000
/* By mapped pages: a range, its data; the first use of a page by a process (0.2 us to 3 us, more where two do it). */
#define MAP_RANGE_NS 20
#define MAP_KIB_NS 60
#define MAP_PAGE_NS 2000
/* From here on a file system counts as slow. */
#define SLOW_NS 10000
/* Requests of one member that are under way together where each waits for the file system. */
#define AT_ONCE 4
/* Ranges of a read that lie close are read together, some 64 KiB by one request (op.c). */
#define SIEVE 65536
/* An eighth to 4,096 times, since a server behind the file system may cost what no table knows; one access in so many of the other way takes a sixty-fourth off what is known of this one. */
#define RATIO_MIN 32u
#define RATIO_MAX (1u << 20)
#define FORGET 64u
/* The first one may count so much, in 1/256. */
#define ONCE_MAX 512u

uint64_t weft_file_strategy_call_ns(const char *fs_name)
{
	if (!strcmp(fs_name, "tmpfs"))
		return 1200;
	if (!strcmp(fs_name, "nfs") || !strcmp(fs_name, "fuse") || !strcmp(fs_name, "ceph") ||
	    !strcmp(fs_name, "lustre"))
		return 50000;
	return 2500;
}

uint64_t weft_file_strategy_map_ns(uint64_t ranges, uint64_t bytes, uint64_t cold)
{
	return 1 + ranges * MAP_RANGE_NS + bytes / 1024 * MAP_KIB_NS + cold / 4096 * MAP_PAGE_NS;
}

static uint64_t cost_by_ratio(uint64_t cost, uint32_t ratio)
{
	return ratio ? cost / WEFT_FILE_RATIO_ONE * ratio : cost;
}

/* The lower median. */
static uint32_t samples_median(const uint32_t *sample, unsigned n)
{
	uint32_t sorted[WEFT_FILE_SAMPLES];
	for (unsigned i = 0; i < n; i++) {
		unsigned at = i;
		for (; at && sorted[at - 1] > sample[i]; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = sample[i];
	}
	return sorted[(n - 1) / 2];
}

/* Bad moments of the machine, fewer than the half, do not count. */
static void ratio_learn(struct weft_file_ratio *r, uint64_t cost_ns, uint64_t took_ns)
{
	uint64_t now = took_ns / (cost_ns / WEFT_FILE_RATIO_ONE + 1);
	now = now < RATIO_MIN ? RATIO_MIN : now > RATIO_MAX ? RATIO_MAX : now;
	r->sample[r->n++ % WEFT_FILE_SAMPLES] = (uint32_t)now;
	r->usual = samples_median(r->sample, r->n < WEFT_FILE_SAMPLES ? r->n : WEFT_FILE_SAMPLES);
	if (r->n == 1 && r->usual > ONCE_MAX)
		r->usual = ONCE_MAX;
	if (r->n == 2 * WEFT_FILE_SAMPLES) /* it does not wrap */
		r->n = WEFT_FILE_SAMPLES;
}

static uint32_t nearer_to_one(uint32_t ratio)
{
	return ratio - ratio / FORGET + WEFT_FILE_RATIO_ONE / FORGET;
}

/* What was measured once is forgotten: the other way is tried again. */
static void ratio_forget(struct weft_file_ratio *r)
{
	if (!r->n)
		return;
	for (unsigned i = 0; i < WEFT_FILE_SAMPLES; i++)
		r->sample[i] = nearer_to_one(r->sample[i]);
	r->usual = nearer_to_one(r->usual);
}

void weft_file_strategy_learn(struct weft_file_learned *l, enum weft_file_strategy s,
			      uint64_t cost_ns, uint64_t took_ns)
{
	ratio_learn(&l->way[s], cost_ns, took_ns);
	ratio_forget(&l->way[!s]);
}

bool weft_file_strategy_apart(struct weft_file_learned *l, uint64_t map_ns, uint64_t bytes,
			      uint64_t ranges)
{
	uint64_t two = BEGIN_NS + bytes / 1024 * COPY_KIB_NS + ranges * PIECE_NS;
	/* A machine on which all takes long makes no way better than the other. */
	bool yes = cost_by_ratio(map_ns, l->map.usual) <
		   cost_by_ratio(two, l->way[WEFT_FILE_TWO_PHASE].usual);
	ratio_forget(yes ? &l->way[WEFT_FILE_TWO_PHASE] : &l->map);
	return yes;
}

void weft_file_strategy_learn_map(struct weft_file_ratio *r, uint64_t map_ns, uint64_t took_ns)
{
	ratio_learn(r, map_ns, took_ns);
}

uint64_t weft_file_strategy_domain(uint64_t call_ns, bool write)
{
	return call_ns < SLOW_NS ? 4096 : write ? 1 << 20 : 256 << 10;
}

enum weft_file_strategy weft_file_strategy_choose(const struct weft_file_facts *f, uint64_t cost[2])
{
	cost[0] = cost[1] = 0;
	uint64_t requests = f->most_ranges, aggregators = (uint64_t)f->aggregators;
	if (f->members == 1 || requests <= 1 || !f->bytes || !aggregators)
		return WEFT_FILE_STRAIGHT;
	if (!f->write && f->span / SIEVE + 1 < requests)
		requests = f->span / SIEVE + 1;
	uint64_t most = f->span / weft_file_strategy_domain(f->call_ns, f->write) + 1;
	aggregators = aggregators < most ? aggregators : most;
	if (f->call_ns > SLOW_NS)
		requests = requests / AT_ONCE + 1;
	uint64_t straight = requests * f->call_ns;
	if (!f->write && requests != f->most_ranges) /* holes are read too, and data copied out */
		straight += f->span / 1024 * COPY_KIB_NS / 2;
	bool by_requests = !f->map_ns || f->map_ns >= straight;
	if (!by_requests)
		straight = f->map_ns;
	uint64_t windows = f->span / f->window + 1;
	uint64_t two = BEGIN_NS + f->bytes / 1024 * COPY_KIB_NS / aggregators +
		       f->ranges * PIECE_NS / aggregators +
		       windows * (f->call_ns + (uint64_t)f->members * MESSAGE_NS) / aggregators;
	/* Holes are read by the aggregators; where they are written each stretch between is a request. */
	if (!f->write)
		two += (f->span - (f->bytes < f->span ? f->bytes : f->span)) / 1024 * 100;
	cost[WEFT_FILE_STRAIGHT] = straight;
	cost[WEFT_FILE_TWO_PHASE] = two;
	/* Where requests have taken longer than was believed, those of two phases will do so, too, as long as none was tried. */
	if (!f->ratio[WEFT_FILE_TWO_PHASE] && by_requests &&
	    f->ratio[WEFT_FILE_STRAIGHT] > WEFT_FILE_RATIO_ONE)
		two += windows *
		       (cost_by_ratio(f->call_ns, f->ratio[WEFT_FILE_STRAIGHT]) - f->call_ns) /
		       aggregators;
	straight = cost_by_ratio(straight, f->ratio[WEFT_FILE_STRAIGHT]);
	two = cost_by_ratio(two, f->ratio[WEFT_FILE_TWO_PHASE]);
	return two < straight ? WEFT_FILE_TWO_PHASE : WEFT_FILE_STRAIGHT;
}
