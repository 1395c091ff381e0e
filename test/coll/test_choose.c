/* SPDX-License-Identifier: BSD-3-Clause */
/* Which way a blocking collective takes, as a table: by kind, ranks, size, and what the group has
 * agreed on. */
#include <string.h>

#include "check.h"
#include "coll/blocking.h"
#include "coll/shm/shm.h"

#define KIB ((size_t)1024)
#define NONE 0u
#define RING WEFT_COLL_SHM_RING
#define STAGE (RING | WEFT_COLL_SHM_STAGE)
#define READ (RING | WEFT_COLL_SHM_READ)
#define ALL WEFT_COLL_SHM_ALL

enum { FREE, CROWDED, FAR };            /* a core for each rank? and a network in between */
enum { MOVES, COMBINES, IN_PLACE = 2 }; /* what it does; a predefined operation, no holes */

struct row {
	enum weft_coll_kind kind;
	int cores, n;
	size_t count, size; /* elements, and bytes of one */
	int how;
	unsigned have;
	const char *way; /* NULL: a schedule */
};

static const struct row rows[] = {
	/* With a core for each rank: messages, in steps while they are small. */
	{WEFT_COLL_BARRIER, FREE, 2, 0, 0, MOVES, NONE, "steps"},
	{WEFT_COLL_BARRIER, FREE, 100, 0, 0, MOVES, NONE, "steps"},
	{WEFT_COLL_BCAST, FREE, 4, 4096, 1, MOVES, ALL, "steps"},
	{WEFT_COLL_BCAST, FREE, 4, 4097, 1, MOVES, ALL, NULL},
	{WEFT_COLL_BCAST, FREE, 4, 0, 1, MOVES, ALL, "steps"},
	{WEFT_COLL_ALLREDUCE, FREE, 4, 8, 8, COMBINES, NONE, "steps"},
	{WEFT_COLL_ALLREDUCE, FREE, 4, 9, 8, COMBINES, NONE, NULL},
	{WEFT_COLL_ALLREDUCE, FREE, 5, 8, 8, COMBINES, ALL, "steps"},
	{WEFT_COLL_ALLREDUCE, FREE, 5, 9, 8, COMBINES, ALL, NULL},
	{WEFT_COLL_ALLREDUCE, FREE, 4, 0, 8, COMBINES, ALL, NULL},
	{WEFT_COLL_ALLREDUCE, FREE, 4, 8, 8, MOVES, ALL, NULL},
	{WEFT_COLL_REDUCE, FREE, 4, 1, 8, COMBINES, NONE, NULL},
	{WEFT_COLL_ALLGATHER, FREE, 4, 1, 8, MOVES, NONE, NULL},

	/* A barrier on one host: by signs; and reductions that a schedule would share out on stages. */
	{WEFT_COLL_BARRIER, FREE, 16, 0, 0, MOVES, ALL, "ring"},
	{WEFT_COLL_BARRIER, FAR, 16, 0, 0, MOVES, ALL, "steps"},
	{WEFT_COLL_ALLREDUCE, FREE, 16, 2 * KIB - 1, 8, COMBINES, ALL, NULL},
	{WEFT_COLL_ALLREDUCE, FREE, 16, 2 * KIB, 8, COMBINES, ALL, "stage"},
	{WEFT_COLL_ALLREDUCE, FREE, 16, 2 * KIB, 8, COMBINES, RING, NULL},
	{WEFT_COLL_ALLREDUCE, FREE, 16, 2 * KIB, 8, MOVES, ALL, NULL},
	{WEFT_COLL_ALLREDUCE, FREE, 16, 15, 2 * KIB, COMBINES, ALL, NULL},
	{WEFT_COLL_ALLREDUCE, FREE, 16, 64 * KIB, 8, COMBINES, ALL, "stage"},
	{WEFT_COLL_ALLREDUCE, FREE, 16, 64 * KIB + 1, 8, COMBINES, ALL, NULL},
	{WEFT_COLL_ALLREDUCE, FAR, 16, 64 * KIB, 8, COMBINES, ALL, NULL},

	/* What goes up to a root, or is collected, on one host: through the ring while it is small. */
	{WEFT_COLL_REDUCE, FREE, 2, 12, 8, COMBINES, ALL, "ring"},
	{WEFT_COLL_REDUCE, FREE, 2, 12, 8, MOVES, ALL, NULL},
	{WEFT_COLL_REDUCE, FREE, 3, 1, 8, COMBINES, ALL, NULL},
	{WEFT_COLL_REDUCE, FREE, 4, 12, 8, COMBINES, ALL, NULL},
	{WEFT_COLL_GATHER, FREE, 4, 96, 1, MOVES, ALL, "ring"},
	{WEFT_COLL_GATHER, FREE, 4, 97, 1, MOVES, ALL, NULL},
	{WEFT_COLL_ALLGATHER, FREE, 8, 512, 1, MOVES, ALL, "shown"},
	{WEFT_COLL_ALLGATHER, FREE, 8, 513, 1, MOVES, ALL, NULL},
	{WEFT_COLL_BCAST, FREE, 4, 100, 1, MOVES, ALL, "steps"},
	{WEFT_COLL_SCATTER, FREE, 4, 1, 8, MOVES, ALL, NULL},
	{WEFT_COLL_ALLTOALL, FREE, 4, 256, 1, MOVES, ALL, "shown"},
	{WEFT_COLL_ALLTOALL, FREE, 4, 257, 1, MOVES, ALL, NULL},
	{WEFT_COLL_ALLTOALL, FAR, 4, 1, 8, MOVES, ALL, NULL},
	{WEFT_COLL_ALLREDUCE, FREE, 2, 256, 8, COMBINES, ALL, "shown"},
	{WEFT_COLL_ALLREDUCE, FREE, 2, 257, 8, COMBINES, ALL, NULL},
	{WEFT_COLL_ALLREDUCE, FREE, 4, 128, 8, COMBINES, ALL, "shown"},
	{WEFT_COLL_ALLREDUCE, FREE, 4, 128, 8, MOVES, ALL, NULL},
	{WEFT_COLL_REDUCE, FAR, 2, 1, 8, COMBINES, ALL, NULL},
	{WEFT_COLL_GATHER, FAR, 4, 1, 8, MOVES, ALL, NULL},
	{WEFT_COLL_ALLGATHER, FAR, 4, 1, 8, MOVES, ALL, NULL},

	/* More ranks than cores, nothing agreed: the same steps, where a root serves all. */
	{WEFT_COLL_BARRIER, CROWDED, 32, 0, 0, MOVES, NONE, "flat steps"},
	{WEFT_COLL_BARRIER, CROWDED, 33, 0, 0, MOVES, NONE, NULL},
	{WEFT_COLL_BCAST, CROWDED, 4, 100, 1, MOVES, NONE, "steps"},
	{WEFT_COLL_REDUCE, CROWDED, 4, 8, 8, COMBINES, NONE, "flat steps"},
	{WEFT_COLL_REDUCE, CROWDED, 4, 9, 8, COMBINES, NONE, NULL},
	{WEFT_COLL_REDUCE, CROWDED, 33, 1, 8, COMBINES, NONE, NULL},
	{WEFT_COLL_ALLREDUCE, CROWDED, 4, 8, 8, COMBINES, NONE, "steps"},
	{WEFT_COLL_ALLREDUCE, CROWDED, 4, 9, 8, COMBINES, NONE, NULL},
	{WEFT_COLL_GATHER, CROWDED, 4, 1, 8, MOVES, NONE, NULL},

	/* The ring: as much as there is room for. */
	{WEFT_COLL_BARRIER, CROWDED, 4, 0, 0, MOVES, RING, "ring"},
	{WEFT_COLL_BCAST, CROWDED, 4, 1024, 1, MOVES, RING, "ring"},
	{WEFT_COLL_BCAST, CROWDED, 4, 1025, 1, MOVES, RING, "steps"},
	{WEFT_COLL_BCAST, CROWDED, 4, 0, 8, MOVES, RING, "steps"},
	{WEFT_COLL_SCATTER, CROWDED, 4, 108, 1, MOVES, RING, "ring"},
	{WEFT_COLL_SCATTER, CROWDED, 4, 109, 1, MOVES, RING, NULL},
	{WEFT_COLL_GATHER, CROWDED, 4, 96, 1, MOVES, RING, "ring"},
	{WEFT_COLL_GATHER, CROWDED, 4, 97, 1, MOVES, RING, NULL},
	{WEFT_COLL_GATHER, CROWDED, 32, 1, 1, MOVES, RING, NULL},
	{WEFT_COLL_REDUCE, CROWDED, 4, 12, 8, COMBINES, RING, "ring"},
	{WEFT_COLL_REDUCE, CROWDED, 16, 8, 8, COMBINES, RING, "flat steps"},
	{WEFT_COLL_REDUCE, CROWDED, 4, 1, 8, MOVES, RING, NULL},
	{WEFT_COLL_ALLREDUCE, CROWDED, 4, 128, 8, COMBINES, ALL, "ring"},
	{WEFT_COLL_ALLREDUCE, CROWDED, 16, 32, 8, COMBINES, ALL, "ring"},
	{WEFT_COLL_ALLREDUCE, CROWDED, 4, 1, 8, MOVES, ALL, NULL},
	{WEFT_COLL_ALLGATHER, CROWDED, 8, 512, 1, MOVES, ALL, "ring"},
	{WEFT_COLL_ALLTOALL, CROWDED, 8, 64, 1, MOVES, ALL, "ring"},

	/* Beyond: stages, then reads; each only if agreed. */
	{WEFT_COLL_ALLREDUCE, CROWDED, 4, 129, 8, COMBINES, STAGE, "stage"},
	{WEFT_COLL_ALLREDUCE, CROWDED, 4, 129, 8, COMBINES, RING, NULL},
	{WEFT_COLL_ALLREDUCE, CROWDED, 4, 129, 8, MOVES, ALL, NULL},
	{WEFT_COLL_ALLREDUCE, CROWDED, 4, 16 * KIB, 8, COMBINES, ALL, "stage"},
	{WEFT_COLL_ALLREDUCE, CROWDED, 4, 16 * KIB, 8, COMBINES, READ, NULL},
	{WEFT_COLL_ALLREDUCE, CROWDED, 4, 16 * KIB + 1, 8, COMBINES, ALL, "read"},
	{WEFT_COLL_ALLREDUCE, CROWDED, 4, 16 * KIB + 1, 8, COMBINES, STAGE, NULL},
	{WEFT_COLL_ALLREDUCE, CROWDED, 4, 128 * KIB, 8, COMBINES, ALL, "read"},
	{WEFT_COLL_ALLREDUCE, CROWDED, 4, 128 * KIB + 1, 8, COMBINES, ALL, NULL},
	{WEFT_COLL_ALLGATHER, CROWDED, 4, 1025, 1, MOVES, ALL, "stage"},
	{WEFT_COLL_ALLGATHER, CROWDED, 4, 256 * KIB, 1, MOVES, ALL, "stage"},
	{WEFT_COLL_ALLGATHER, CROWDED, 4, 256 * KIB + 1, 1, MOVES, ALL, NULL},
	{WEFT_COLL_ALLTOALL, CROWDED, 4, 257, 1, MOVES, ALL, "stage"},
	{WEFT_COLL_ALLTOALL, CROWDED, 4, 16 * KIB, 1, MOVES, ALL, "stage"},
	{WEFT_COLL_ALLTOALL, CROWDED, 4, 16 * KIB, 1, MOVES, READ, "read"},
	{WEFT_COLL_ALLTOALL, CROWDED, 4, 16 * KIB + 1, 1, MOVES, ALL, "read"},
	{WEFT_COLL_ALLTOALL, CROWDED, 8, 8 * KIB + 1, 1, MOVES, ALL, NULL},
	{WEFT_COLL_ALLTOALL, CROWDED, 8, 16 * KIB, 1, MOVES, ALL, "read"},
	{WEFT_COLL_ALLTOALL, CROWDED, 8, 16 * KIB, 1, IN_PLACE, ALL, NULL},
	{WEFT_COLL_ALLTOALL, CROWDED, 8, 128 * KIB + 1, 1, MOVES, ALL, NULL},

	/* Products that do not fit into a size are large, and other kinds are schedules. */
	{WEFT_COLL_BCAST, CROWDED, 4, SIZE_MAX, SIZE_MAX, MOVES, ALL, NULL},
	{WEFT_COLL_GATHERV, CROWDED, 4, 1, 1, MOVES, ALL, NULL},
	{WEFT_COLL_SCAN, CROWDED, 4, 1, 1, COMBINES, ALL, NULL},
};

static struct weft_coll_case case_of(const struct row *r, const struct weft_coll_group *g)
{
	return (struct weft_coll_case){.g = g,
				       .kind = r->kind,
				       .count = r->count,
				       .bytes = r->size == SIZE_MAX ? SIZE_MAX : r->count * r->size,
				       .combines = r->how & COMBINES,
				       .in_place = r->how & IN_PLACE};
}

static void test_rows(void)
{
	for (size_t i = 0; i < weft_countof(rows); i++) {
		struct weft_coll_group g = {.size = rows[i].n,
					    .crowded = rows[i].cores == CROWDED,
					    .apart = rows[i].cores == FAR};
		struct weft_coll_case c = case_of(&rows[i], &g);
		const struct weft_coll_way *w = weft_coll_choose(&c, rows[i].have);
		const char *name = w ? w->name : "a schedule", *want = rows[i].way;
		if (strcmp(name, want ? want : "a schedule") != 0) {
			fprintf(stderr, "row %zu: %s, not %s\n", i, name,
				want ? want : "a schedule");
			CHECK(false);
		}
		CHECK(!w || !(w->needs & ~rows[i].have));
	}
}

/* With less agreed a call never gets a way that needs what is missing, and what a group has in
 * addition never takes a way away. */
static void test_masks(void)
{
	for (size_t i = 0; i < weft_countof(rows); i++) {
		struct weft_coll_group g = {.size = rows[i].n,
					    .crowded = rows[i].cores == CROWDED,
					    .apart = rows[i].cores == FAR};
		struct weft_coll_case c = case_of(&rows[i], &g);
		for (unsigned have = 0; have <= ALL; have++) {
			const struct weft_coll_way *w = weft_coll_choose(&c, have);
			CHECK(!w || !(w->needs & ~have));
			for (unsigned more = 0; w && more <= ALL; more++)
				CHECK(weft_coll_choose(&c, have | more) != NULL);
		}
	}
}

int main(void)
{
	test_rows();
	test_masks();
	return 0;
}
