/* SPDX-License-Identifier: BSD-3-Clause */
/* group.c - groups: ordered sets of processes.  Immutable once made, so no locks. */
#include "mpi/comm/group.h"

#include <stdlib.h>
#include <string.h>

#include "comm/comm.h"

static struct weft_mpi_group empty = {.size = 0, .rank = MPI_UNDEFINED};

void weft_mpi_groups_init(void)
{
	weft_mpi_object_predefine(&empty.head, WEFT_MPI_GROUP, MPI_GROUP_EMPTY);
}

struct weft_mpi_group *weft_mpi_group_make(int size, const int *world)
{
	struct weft_mpi_group *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->world = malloc((size_t)(size ? size : 1) * sizeof(*g->world));
	if (!g->world) {
		free(g);
		return NULL;
	}
	g->size = size;
	g->rank = MPI_UNDEFINED;
	int self = weft_comm_rank();
	for (int i = 0; i < size; i++) {
		g->world[i] = world[i];
		if (world[i] == self)
			g->rank = i;
	}
	atomic_init(&g->head.x_refs, 1);
	g->head.kind = WEFT_MPI_GROUP;
	return g;
}

void weft_mpi_group_unref(struct weft_mpi_group *g)
{
	if (!g || !weft_mpi_object_unref(&g->head))
		return;
	/* Relaxed: the last reference. */
	free(atomic_load_explicit(&g->x_inverse, memory_order_relaxed));
	free(g->world);
	free(g);
}

int weft_mpi_group_name(struct weft_mpi_group *g, MPI_Group *handle_p)
{
	if (!g)
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	if (g->size == 0) {
		weft_mpi_group_unref(g);
		*handle_p = MPI_GROUP_EMPTY;
		return MPI_SUCCESS;
	}
	if (weft_mpi_object_new(&g->head, WEFT_MPI_GROUP)) {
		weft_mpi_group_unref(g);
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of handles");
	}
	*handle_p = (MPI_Group)(uintptr_t)g->head.handle;
	return MPI_SUCCESS;
}

/* The table from process to rank; made by the first caller that needs it. */
static const int *inverse(struct weft_mpi_group *g)
{
	/* SEE-INVERSE: partner PUB-INVERSE below.  Carries: the filled table. */
	int *table = atomic_load_explicit(&g->x_inverse, memory_order_acquire);
	if (table)
		return table;
	int n = weft_comm_size();
	table = malloc((size_t)n * sizeof(*table));
	if (!table)
		return NULL;
	for (int i = 0; i < n; i++)
		table[i] = MPI_UNDEFINED;
	for (int r = 0; r < g->size; r++)
		if (g->world[r] < n)
			table[g->world[r]] = r;
	int *other = NULL;
	/* PUB-INVERSE -> SEE-INVERSE.  Carries: the filled table.
	 * Without it, another thread could read ranks that are not yet written. */
	if (!atomic_compare_exchange_strong_explicit(&g->x_inverse, &other, table,
						     memory_order_acq_rel, memory_order_acquire)) {
		free(table);
		table = other;
	}
	return table;
}

int weft_mpi_group_rank_of(struct weft_mpi_group *g, int world)
{
	if (g->size == 0)
		return MPI_UNDEFINED;
	const int *table = inverse(g);
	if (table)
		return world >= 0 && world < weft_comm_size() ? table[world] : MPI_UNDEFINED;
	for (int r = 0; r < g->size; r++)
		if (g->world[r] == world)
			return r;
	return MPI_UNDEFINED;
}

/* ---- questions ---------------------------------------------------------------------------- */

int weft_mpi_Group_size(MPI_Group group, int *size)
{
	*size = weft_mpi_group_of(group)->size;
	return MPI_SUCCESS;
}

int weft_mpi_Group_rank(MPI_Group group, int *rank)
{
	*rank = weft_mpi_group_of(group)->rank;
	return MPI_SUCCESS;
}

int weft_mpi_Group_translate_ranks(MPI_Group group1, int n, const int ranks1[], MPI_Group group2,
				   int ranks2[])
{
	struct weft_mpi_group *a = weft_mpi_group_of(group1), *b = weft_mpi_group_of(group2);

	if (n < 0)
		return weft_mpi_err(MPI_ERR_ARG, "n is negative (%d)", n);
	if (n && (!ranks1 || !ranks2))
		return weft_mpi_err(MPI_ERR_ARG, "%s is a null pointer",
				    ranks1 ? "ranks2" : "ranks1");
	for (int i = 0; i < n; i++) {
		if (ranks1[i] == MPI_PROC_NULL) {
			ranks2[i] = MPI_PROC_NULL;
			continue;
		}
		if (ranks1[i] < 0 || ranks1[i] >= a->size)
			return weft_mpi_err(MPI_ERR_RANK,
					    "invalid rank %d (the group has %d processes)",
					    ranks1[i], a->size);
		ranks2[i] = weft_mpi_group_rank_of(b, a->world[ranks1[i]]);
	}
	return MPI_SUCCESS;
}

int weft_mpi_group_compare(struct weft_mpi_group *a, struct weft_mpi_group *b)
{
	if (a->size != b->size)
		return MPI_UNEQUAL;
	if (a->size == 0 || memcmp(a->world, b->world, (size_t)a->size * sizeof(int)) == 0)
		return MPI_IDENT;
	for (int r = 0; r < a->size; r++)
		if (weft_mpi_group_rank_of(b, a->world[r]) == MPI_UNDEFINED)
			return MPI_UNEQUAL;
	return MPI_SIMILAR;
}

int weft_mpi_Group_compare(MPI_Group group1, MPI_Group group2, int *result)
{
	*result = weft_mpi_group_compare(weft_mpi_group_of(group1), weft_mpi_group_of(group2));
	return MPI_SUCCESS;
}

int weft_mpi_Group_free(MPI_Group *group)
{
	struct weft_mpi_group *g = weft_mpi_group_of(*group);

	if (!g)
		return weft_mpi_err(MPI_ERR_GROUP, "invalid group (null or freed)");
	*group = MPI_GROUP_NULL;
	if (g->head.permanent)
		return MPI_SUCCESS;
	weft_mpi_object_retire(&g->head);
	weft_mpi_group_unref(g);
	return MPI_SUCCESS;
}

/* ---- new groups from old ------------------------------------------------------------------ */

enum set { IN_BOTH, IN_EITHER, IN_FIRST };

static int combine(MPI_Group group1, MPI_Group group2, enum set what, MPI_Group *newgroup)
{
	struct weft_mpi_group *a = weft_mpi_group_of(group1), *b = weft_mpi_group_of(group2);
	int *world = malloc((size_t)(a->size + b->size + 1) * sizeof(*world)), n = 0;

	if (!world)
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	for (int r = 0; r < a->size; r++) {
		bool other = weft_mpi_group_rank_of(b, a->world[r]) != MPI_UNDEFINED;
		if (what == IN_EITHER || other == (what == IN_BOTH))
			world[n++] = a->world[r];
	}
	for (int r = 0; what == IN_EITHER && r < b->size; r++)
		if (weft_mpi_group_rank_of(a, b->world[r]) == MPI_UNDEFINED)
			world[n++] = b->world[r];
	int err = weft_mpi_group_name(weft_mpi_group_make(n, world), newgroup);
	free(world);
	return err;
}

int weft_mpi_Group_union(MPI_Group group1, MPI_Group group2, MPI_Group *newgroup)
{
	return combine(group1, group2, IN_EITHER, newgroup);
}

int weft_mpi_Group_intersection(MPI_Group group1, MPI_Group group2, MPI_Group *newgroup)
{
	return combine(group1, group2, IN_BOTH, newgroup);
}

int weft_mpi_Group_difference(MPI_Group group1, MPI_Group group2, MPI_Group *newgroup)
{
	return combine(group1, group2, IN_FIRST, newgroup);
}

/* Marks the n ranks as seen; a rank out of range or named twice is an error. */
static int mark(const struct weft_mpi_group *g, int n, const int ranks[], char *seen)
{
	for (int i = 0; i < n; i++) {
		if (ranks[i] < 0 || ranks[i] >= g->size)
			return weft_mpi_err(MPI_ERR_RANK,
					    "invalid rank %d (the group has %d processes)",
					    ranks[i], g->size);
		if (seen[ranks[i]])
			return weft_mpi_err(MPI_ERR_RANK, "rank %d is named twice", ranks[i]);
		seen[ranks[i]] = 1;
	}
	return MPI_SUCCESS;
}

static int choose(MPI_Group group, int n, const int ranks[], bool keep, MPI_Group *newgroup)
{
	struct weft_mpi_group *g = weft_mpi_group_of(group);

	if (n < 0)
		return weft_mpi_err(MPI_ERR_ARG, "n is negative (%d)", n);
	if (n && !ranks)
		return weft_mpi_err(MPI_ERR_ARG, "ranks is a null pointer");
	char *seen = calloc((size_t)g->size + 1, 1);
	int *world = malloc((size_t)(g->size + 1) * sizeof(*world));
	int err = seen && world ? mark(g, n, ranks, seen)
				: weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	if (!err) {
		int m = 0;
		for (int i = 0; keep && i < n; i++)
			world[m++] = g->world[ranks[i]];
		for (int r = 0; !keep && r < g->size; r++)
			if (!seen[r])
				world[m++] = g->world[r];
		err = weft_mpi_group_name(weft_mpi_group_make(m, world), newgroup);
	}
	free(world);
	free(seen);
	return err;
}

int weft_mpi_Group_incl(MPI_Group group, int n, const int ranks[], MPI_Group *newgroup)
{
	return choose(group, n, ranks, true, newgroup);
}

int weft_mpi_Group_excl(MPI_Group group, int n, const int ranks[], MPI_Group *newgroup)
{
	return choose(group, n, ranks, false, newgroup);
}

/* Writes the ranks of the triplets to a new list; every rank of the group at most once. */
static int expand(const struct weft_mpi_group *g, int n, int ranges[][3], int **ranks_p, int *n_p)
{
	int *ranks = malloc((size_t)(g->size + 1) * sizeof(*ranks)), m = 0;

	if (!ranks)
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	for (int i = 0; i < n; i++) {
		int first = ranges[i][0], last = ranges[i][1], step = ranges[i][2];
		if (step == 0) {
			free(ranks);
			return weft_mpi_err(MPI_ERR_ARG, "range %d has stride 0", i);
		}
		for (long r = first; step > 0 ? r <= last : r >= last; r += step) {
			if (m >= g->size || r < 0 || r >= g->size) {
				free(ranks);
				return weft_mpi_err(MPI_ERR_RANK,
						    "range %d: rank %ld is invalid or named twice "
						    "(the group has %d processes)",
						    i, r, g->size);
			}
			ranks[m++] = (int)r;
		}
	}
	*ranks_p = ranks;
	*n_p = m;
	return MPI_SUCCESS;
}

static int choose_ranges(MPI_Group group, int n, int ranges[][3], bool keep, MPI_Group *newgroup)
{
	int *ranks = NULL, m = 0;

	if (n < 0)
		return weft_mpi_err(MPI_ERR_ARG, "n is negative (%d)", n);
	int err = expand(weft_mpi_group_of(group), n, ranges, &ranks, &m);
	if (!err)
		err = choose(group, m, ranks, keep, newgroup);
	free(ranks);
	return err;
}

int weft_mpi_Group_range_incl(MPI_Group group, int n, int ranges[][3], MPI_Group *newgroup)
{
	return choose_ranges(group, n, ranges, true, newgroup);
}

int weft_mpi_Group_range_excl(MPI_Group group, int n, int ranges[][3], MPI_Group *newgroup)
{
	return choose_ranges(group, n, ranges, false, newgroup);
}
