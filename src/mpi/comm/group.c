/* SPDX-License-Identifier: BSD-3-Clause */
/* group.c - groups: ordered sets of processes.  Immutable once made, so no locks. */
#include "mpi/comm/group.h"
#include "mpi/session/session.h"

#include <stdlib.h>
#include <string.h>

#include "mpi/comm/domain.h"

static struct weft_mpi_group empty = {.size = 0, .rank = MPI_UNDEFINED};

void weft_mpi_groups_init(void)
{
	weft_mpi_object_predefine(&empty.head, WEFT_MPI_GROUP, MPI_GROUP_EMPTY);
}

struct weft_mpi_group *weft_mpi_group_make_in(struct weft_mpi_domain *domain, int size,
					      const int *world)
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
	g->domain = domain;
	weft_mpi_domain_ref(domain);
	int self = domain->rank;
	for (int i = 0; i < size; i++) {
		g->world[i] = world[i];
		if (world[i] == self)
			g->rank = i;
	}
	atomic_init(&g->head.x_refs, 1);
	g->head.kind = WEFT_MPI_GROUP;
	return g;
}

struct weft_mpi_group *weft_mpi_group_make(int size, const int *world)
{
	return weft_mpi_group_make_in(weft_mpi_home, size, world);
}

void weft_mpi_group_unref(struct weft_mpi_group *g)
{
	if (!g || !weft_mpi_object_unref(&g->head))
		return;
	/* Relaxed: the last reference. */
	free(atomic_load_explicit(&g->x_inverse, memory_order_relaxed));
	weft_mpi_domain_unref(g->domain);
	free(g->world);
	weft_mpi_session_unref(g->session);
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
static const int *ranks_by_process(struct weft_mpi_group *g)
{
	/* SEE-INVERSE: partner PUB-INVERSE below.  Carries: the filled table. */
	int *table = atomic_load_explicit(&g->x_inverse, memory_order_acquire);
	if (table)
		return table;
	int n = g->domain->size;
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
	const int *table = ranks_by_process(g);
	if (table)
		return world >= 0 && world < g->domain->size ? table[world] : MPI_UNDEFINED;
	for (int r = 0; r < g->size; r++)
		if (g->world[r] == world)
			return r;
	return MPI_UNDEFINED;
}

/* ---- between domains ---------------------------------------------------------------------- */

static bool one_domain(const struct weft_mpi_group *a, const struct weft_mpi_group *b)
{
	return a->domain == b->domain || !a->size || !b->size;
}

struct weft_mpi_group *weft_mpi_group_in(struct weft_mpi_group *g, struct weft_mpi_domain *domain)
{
	if (g->domain == domain || !g->size)
		return weft_mpi_group_ref(g);
	int *world = malloc((size_t)g->size * sizeof(*world));
	bool there = world != NULL;
	for (int r = 0; r < g->size && there; r++) {
		world[r] = weft_mpi_domain_find(domain, &g->domain->process[g->world[r]]);
		there = world[r] >= 0;
	}
	struct weft_mpi_group *in = there ? weft_mpi_group_make_in(domain, g->size, world) : NULL;
	free(world);
	return in;
}

/* A domain without a core that has the processes of both. */
static struct weft_mpi_domain *domain_of_both(const struct weft_mpi_group *a,
					      const struct weft_mpi_group *b)
{
	struct weft_mpi_process *p = malloc((size_t)(a->size + b->size) * sizeof(*p));
	int n = 0;

	for (int r = 0; p && r < a->size; r++)
		p[n++] = a->domain->process[a->world[r]];
	for (int r = 0; p && r < b->size; r++)
		p[n++] = b->domain->process[b->world[r]];
	struct weft_mpi_domain *d = p ? weft_mpi_domain_make(NULL, n, p) : NULL;
	/* We are the same process in each. */
	const struct weft_mpi_domain *h = weft_mpi_home;
	if (d && h)
		d->rank = weft_mpi_domain_find(d, &h->process[h->rank]);
	free(p);
	return d;
}

/* Both in the numbers of one domain, with a reference each; false: no memory. */
static bool align_domains(struct weft_mpi_group **a_p, struct weft_mpi_group **b_p)
{
	struct weft_mpi_group *a = *a_p, *b = *b_p, *in = NULL;

	if (one_domain(a, b)) {
		weft_mpi_group_ref(a);
		weft_mpi_group_ref(b);
		return true;
	}
	if ((in = weft_mpi_group_in(b, a->domain)) != NULL) {
		weft_mpi_group_ref(a);
		*b_p = in;
		return true;
	}
	if ((in = weft_mpi_group_in(a, b->domain)) != NULL) {
		weft_mpi_group_ref(b);
		*a_p = in;
		return true;
	}
	struct weft_mpi_domain *d = domain_of_both(a, b);
	if (!d)
		return false;
	*a_p = weft_mpi_group_in(a, d);
	*b_p = weft_mpi_group_in(b, d);
	weft_mpi_domain_unref(d);
	if (*a_p && *b_p)
		return true;
	weft_mpi_group_unref(*a_p);
	weft_mpi_group_unref(*b_p);
	return false;
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

/* The rank in b of a's rank r, or MPI_UNDEFINED. */
static int rank_in(struct weft_mpi_group *b, const struct weft_mpi_group *a, int r)
{
	if (one_domain(a, b))
		return weft_mpi_group_rank_of(b, a->world[r]);
	int world = weft_mpi_domain_find(b->domain, &a->domain->process[a->world[r]]);
	return world < 0 ? MPI_UNDEFINED : weft_mpi_group_rank_of(b, world);
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
		ranks2[i] = rank_in(b, a, ranks1[i]);
	}
	return MPI_SUCCESS;
}

int weft_mpi_group_compare(struct weft_mpi_group *a, struct weft_mpi_group *b)
{
	if (a->size != b->size)
		return MPI_UNEQUAL;
	int result = MPI_IDENT;
	for (int r = 0; r < a->size; r++) {
		int there = rank_in(b, a, r);
		if (there == MPI_UNDEFINED)
			return MPI_UNEQUAL;
		if (there != r)
			result = MPI_SIMILAR;
	}
	return result;
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

static struct weft_mpi_group *inherit_session(struct weft_mpi_group *g, struct weft_mpi_session *s)
{
	if (g)
		g->session = weft_mpi_session_ref(s);
	return g;
}

enum set { IN_BOTH, IN_EITHER, IN_FIRST };

static int combine_groups(MPI_Group group1, MPI_Group group2, enum set what, MPI_Group *newgroup)
{
	struct weft_mpi_group *a = weft_mpi_group_of(group1), *b = weft_mpi_group_of(group2);
	int *world = malloc((size_t)(a->size + b->size + 1) * sizeof(*world)), n = 0;

	if (!world || !align_domains(&a, &b)) {
		free(world);
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	}
	for (int r = 0; r < a->size; r++) {
		bool other = weft_mpi_group_rank_of(b, a->world[r]) != MPI_UNDEFINED;
		if (what == IN_EITHER || other == (what == IN_BOTH))
			world[n++] = a->world[r];
	}
	for (int r = 0; what == IN_EITHER && r < b->size; r++)
		if (weft_mpi_group_rank_of(a, b->world[r]) == MPI_UNDEFINED)
			world[n++] = b->world[r];
	int err = weft_mpi_group_name(
		inherit_session(weft_mpi_group_make_in(a->size ? a->domain : b->domain, n, world),
				a->session ? a->session : b->session),
		newgroup);
	weft_mpi_group_unref(a);
	weft_mpi_group_unref(b);
	free(world);
	return err;
}

int weft_mpi_Group_union(MPI_Group group1, MPI_Group group2, MPI_Group *newgroup)
{
	return combine_groups(group1, group2, IN_EITHER, newgroup);
}

int weft_mpi_Group_intersection(MPI_Group group1, MPI_Group group2, MPI_Group *newgroup)
{
	return combine_groups(group1, group2, IN_BOTH, newgroup);
}

int weft_mpi_Group_difference(MPI_Group group1, MPI_Group group2, MPI_Group *newgroup)
{
	return combine_groups(group1, group2, IN_FIRST, newgroup);
}

/* Marks the n ranks as seen; a rank out of range or named twice is an error. */
static int mark_ranks(const struct weft_mpi_group *g, int n, const int ranks[], char *seen)
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

static int choose_ranks(MPI_Group group, int n, const int ranks[], bool keep, MPI_Group *newgroup)
{
	struct weft_mpi_group *g = weft_mpi_group_of(group);

	if (n < 0)
		return weft_mpi_err(MPI_ERR_ARG, "n is negative (%d)", n);
	if (n && !ranks)
		return weft_mpi_err(MPI_ERR_ARG, "ranks is a null pointer");
	char *seen = calloc((size_t)g->size + 1, 1);
	int *world = malloc((size_t)(g->size + 1) * sizeof(*world));
	int err = seen && world ? mark_ranks(g, n, ranks, seen)
				: weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	if (!err) {
		int m = 0;
		for (int i = 0; keep && i < n; i++)
			world[m++] = g->world[ranks[i]];
		for (int r = 0; !keep && r < g->size; r++)
			if (!seen[r])
				world[m++] = g->world[r];
		err = weft_mpi_group_name(
			inherit_session(weft_mpi_group_make_in(g->domain, m, world), g->session),
			newgroup);
	}
	free(world);
	free(seen);
	return err;
}

int weft_mpi_Group_incl(MPI_Group group, int n, const int ranks[], MPI_Group *newgroup)
{
	return choose_ranks(group, n, ranks, true, newgroup);
}

int weft_mpi_Group_excl(MPI_Group group, int n, const int ranks[], MPI_Group *newgroup)
{
	return choose_ranks(group, n, ranks, false, newgroup);
}

/* Writes the ranks of the triplets to a new list; every rank of the group at most once. */
static int expand_ranges(const struct weft_mpi_group *g, int n, int ranges[][3], int **ranks_p,
			 int *n_p)
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
	int err = expand_ranges(weft_mpi_group_of(group), n, ranges, &ranks, &m);
	if (!err)
		err = choose_ranks(group, m, ranks, keep, newgroup);
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
