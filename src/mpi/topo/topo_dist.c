/* SPDX-License-Identifier: BSD-3-Clause */
/* topo_dist.c - distributed graphs: each process knows its own edges, or gives any it likes. */
#include <stdlib.h>

#include "mpi/topo/topo.h"
#include "mpi/topo/topo_map.h"

/* Copies weights; without any, all are 1. */
static int *weights_of(const int *weights, int n, bool weighted)
{
	int *p = weft_mpi_ints(weighted ? weights : NULL, weighted ? n : 0);
	if (p && !weighted) {
		free(p);
		p = malloc(((size_t)n + 1) * sizeof *p);
		for (int i = 0; p && i < n; i++)
			p[i] = 1;
	}
	return p;
}

static int check_ranks(const struct weft_mpi_comm *c, const char *what, const int *ranks, int n)
{
	for (int i = 0; i < n; i++)
		if (ranks[i] != MPI_PROC_NULL && (ranks[i] < 0 || ranks[i] >= c->size))
			return weft_mpi_err(MPI_ERR_RANK,
					    "%s[%d] is %d (communicator has %d ranks)", what, i,
					    ranks[i], c->size);
	return MPI_SUCCESS;
}

static bool has_weights(const int *weights)
{
	return weights != MPI_UNWEIGHTED && weights != MPI_WEIGHTS_EMPTY;
}

static bool is_whole(const struct weft_mpi_topo *t)
{
	return t && t->sources && t->destinations && t->source_weights && t->destination_weights;
}

/* ---- reordered ---------------------------------------------------------------------------- */

/* All ranks' edges: of rank r from first[r] to first[r + 1], its destinations before its sources. */
struct all_edges {
	int *first, *out; /* out: how many of them are destinations */
	int *edge, *weight;
};

static void all_edges_free(struct all_edges *a)
{
	free(a->first);
	free(a->out);
	free(a->edge);
	free(a->weight);
}

/* Two halves, one after the other. */
static int *join_lists(const int *a, int n, const int *b, int m)
{
	int *p = malloc(((size_t)n + (size_t)m + 1) * sizeof *p);
	for (int i = 0; p && i < n + m; i++)
		p[i] = i < n ? a[i] : b[i - n];
	return p;
}

static int gather_ints(MPI_Comm comm, const struct all_edges *a, int size, int *mine, int n,
		       int **to_p)
{
	MPI_Count *counts = calloc((size_t)size, sizeof *counts);
	MPI_Aint *displs = calloc((size_t)size, sizeof *displs);
	*to_p = malloc(((size_t)a->first[size] + 1) * sizeof **to_p);
	int err = MPI_SUCCESS;
	if (!counts || !displs || !*to_p || !mine)
		err = weft_mpi_err(MPI_ERR_NO_MEM, "no memory for a topology");
	for (int r = 0; r < size && !err; r++) {
		displs[r] = a->first[r];
		counts[r] = a->first[r + 1] - a->first[r];
	}
	if (!err)
		err = weft_mpi_Allgatherv(mine, n, MPI_INT, *to_p, counts, displs, MPI_INT, comm);
	free(counts);
	free(displs);
	free(mine);
	return err;
}

static int gather_edges(MPI_Comm comm, const struct weft_mpi_topo *t, int size, struct all_edges *a)
{
	int mine[2] = {t->destinations_n, t->sources_n}, n = mine[0] + mine[1];
	int *each = malloc(2 * (size_t)size * sizeof *each);
	a->first = malloc(((size_t)size + 1) * sizeof *a->first);
	a->out = malloc((size_t)size * sizeof *a->out);
	int err = each && a->first && a->out
			  ? weft_mpi_Allgather(mine, 2, MPI_INT, each, 2, MPI_INT, comm)
			  : weft_mpi_err(MPI_ERR_NO_MEM, "no memory for a topology");
	if (!err) {
		a->first[0] = 0;
		for (int r = 0; r < size; r++) {
			a->out[r] = each[2 * r];
			a->first[r + 1] = a->first[r] + each[2 * r] + each[2 * r + 1];
		}
		err = gather_ints(comm, a, size,
				  join_lists(t->destinations, mine[0], t->sources, mine[1]), n,
				  &a->edge);
	}
	if (!err)
		err = gather_ints(
			comm, a, size,
			join_lists(t->destination_weights, mine[0], t->source_weights, mine[1]), n,
			&a->weight);
	free(each);
	return err;
}

/* What node v sees, of all edges. */
static struct weft_mpi_topo *topo_of(const struct all_edges *a, int v, bool weighted)
{
	struct weft_mpi_topo *t = weft_mpi_topo_new(MPI_DIST_GRAPH);
	if (!t)
		return NULL;
	const int *edge = a->edge + a->first[v], *weight = a->weight + a->first[v];
	int out = a->out[v], in = a->first[v + 1] - a->first[v] - out;
	t->weighted = weighted;
	t->destinations_n = out;
	t->sources_n = in;
	t->destinations = weft_mpi_ints(edge, out);
	t->destination_weights = weft_mpi_ints(weight, out);
	t->sources = weft_mpi_ints(edge + out, in);
	t->source_weights = weft_mpi_ints(weight + out, in);
	return t;
}

/* Chooses the caller's node, and puts what that one sees in place of *t_p. */
static int reorder_ranks(MPI_Comm comm, struct weft_mpi_topo **t_p, int *node_p)
{
	struct weft_mpi_comm *c = weft_mpi_comm_of(comm);
	struct all_edges a = {0};
	if (c->size > WEFT_TOPO_MAP_MOST)
		return MPI_SUCCESS;
	int err = gather_edges(comm, *t_p, c->size, &a);
	struct weft_topo_graph g = {
		.n = c->size, .first = a.first, .edge = a.edge, .weight = a.weight};
	if (!err)
		err = weft_mpi_topo_map(c, &g, node_p);
	if (!err && *node_p != c->rank) {
		struct weft_mpi_topo *t = topo_of(&a, *node_p, (*t_p)->weighted);
		weft_mpi_topo_free(*t_p);
		*t_p = t;
	}
	all_edges_free(&a);
	return err;
}

/* Duplicates old and attaches t, which is taken over in every case. */
static int dist_end(MPI_Comm comm, bool reorder, struct weft_mpi_topo *t, MPI_Comm *comm_p)
{
	struct weft_mpi_comm *old = weft_mpi_comm_of(comm), *c;
	int node = old->rank, err = MPI_SUCCESS;
	if (reorder && is_whole(t))
		err = reorder_ranks(comm, &t, &node);
	if (!is_whole(t)) {
		weft_mpi_topo_free(t);
		return err ? err : weft_mpi_err(MPI_ERR_NO_MEM, "no memory for a topology");
	}
	if (!err)
		err = weft_mpi_comm_split(old, 0, node, &c);
	if (err) {
		weft_mpi_topo_free(t);
		return err;
	}
	return weft_mpi_topo_attach(c, t, comm_p);
}

int weft_mpi_Dist_graph_create_adjacent(MPI_Comm comm_old, int indegree, const int sources[],
					const int sourceweights[], int outdegree,
					const int destinations[], const int destweights[],
					MPI_Info info, int reorder, MPI_Comm *comm_dist_graph)
{
	struct weft_mpi_comm *old = weft_mpi_comm_of(comm_old);
	if (old->inter)
		return weft_mpi_err(MPI_ERR_COMM, "not defined for intercommunicators");
	if (indegree < 0 || outdegree < 0)
		return weft_mpi_err(MPI_ERR_ARG, "a degree is negative");
	if ((indegree && !sources) || (outdegree && !destinations))
		return weft_mpi_err(MPI_ERR_ARG, "sources or destinations is a null pointer");
	int err = check_ranks(old, "sources", sources, indegree);
	if (!err)
		err = check_ranks(old, "destinations", destinations, outdegree);
	if (err)
		return err;
	struct weft_mpi_topo *t = weft_mpi_topo_new(MPI_DIST_GRAPH);
	if (t) {
		/* An empty side says nothing about weights. */
		t->weighted = sourceweights != MPI_UNWEIGHTED && destweights != MPI_UNWEIGHTED;
		t->sources_n = indegree;
		t->destinations_n = outdegree;
		t->sources = weft_mpi_ints(sources, indegree);
		t->destinations = weft_mpi_ints(destinations, outdegree);
		t->source_weights = weights_of(sourceweights, indegree, has_weights(sourceweights));
		t->destination_weights =
			weights_of(destweights, outdegree, has_weights(destweights));
	}
	return dist_end(comm_old, reorder, t, comm_dist_graph);
}

/* ---- from edges given anywhere ------------------------------------------------------------ */

/* An edge as it is sent to its two ends: `out` to the source, else to the destination. */
struct edge {
	int other, weight;
	int out;
};

/* Edges to be sent, sorted by destination rank. */
struct outbox {
	MPI_Count *counts; /* [size]: ints for each rank */
	MPI_Aint *displs;
	struct edge *edges;
	size_t total;
};

struct edge_list {
	int n;
	const int *sources, *degrees, *destinations, *weights;
};

/* Calls put for both ends of each edge. */
static void each_end(const struct edge_list *l, struct outbox *o, bool fill)
{
	int k = 0;
	for (int i = 0; i < l->n; i++) {
		for (int j = 0; j < l->degrees[i]; j++, k++) {
			int s = l->sources[i], d = l->destinations[k];
			int w = l->weights ? l->weights[k] : 1;
			if (fill) {
				o->edges[(size_t)o->displs[s]++] =
					(struct edge){.other = d, .weight = w, .out = 1};
				o->edges[(size_t)o->displs[d]++] =
					(struct edge){.other = s, .weight = w, .out = 0};
			} else {
				o->counts[s]++;
				o->counts[d]++;
			}
		}
	}
}

/* counts and displs in edges become an outbox of ints; false: no memory. */
static bool outbox_fill(struct outbox *o, const struct edge_list *l, int size)
{
	o->counts = calloc(2 * (size_t)size, sizeof *o->counts);
	o->displs = calloc(2 * (size_t)size, sizeof *o->displs);
	if (!o->counts || !o->displs)
		return false;
	each_end(l, o, false);
	for (int r = 0; r < size; r++) {
		o->displs[r] = (MPI_Aint)o->total;
		o->total += (size_t)o->counts[r];
	}
	o->edges = malloc((o->total + 1) * sizeof *o->edges);
	if (!o->edges)
		return false;
	each_end(l, o, true);
	/* Filling moved the displacements to the ends. */
	for (int r = 0; r < size; r++)
		o->displs[r] -= o->counts[r];
	return true;
}

/* Sorts what arrived into the two neighbour lists. */
static struct weft_mpi_topo *dist_from(const struct edge *e, size_t n, bool weighted)
{
	struct weft_mpi_topo *t = weft_mpi_topo_new(MPI_DIST_GRAPH);
	if (!t)
		return NULL;
	int **lists[] = {&t->sources, &t->destinations, &t->source_weights,
			 &t->destination_weights};
	for (size_t i = 0; i < weft_countof(lists); i++)
		*lists[i] = malloc((n + 1) * sizeof(int));
	t->weighted = weighted;
	if (!t->sources || !t->destinations || !t->source_weights || !t->destination_weights)
		return t;
	for (size_t i = 0; i < n; i++) {
		if (e[i].out) {
			t->destinations[t->destinations_n] = e[i].other;
			t->destination_weights[t->destinations_n++] = e[i].weight;
		} else {
			t->sources[t->sources_n] = e[i].other;
			t->source_weights[t->sources_n++] = e[i].weight;
		}
	}
	return t;
}

/* Sends every edge to both its ends; *in_p: what this rank got, freed by the caller. */
static int edges_exchange(MPI_Comm comm, struct outbox *o, int size, struct edge **in_p,
			  size_t *n_p)
{
	MPI_Count *counts = o->counts + size;
	MPI_Aint *displs = o->displs + size;
	int err = weft_mpi_Alltoall(o->counts, 1, MPI_COUNT, counts, 1, MPI_COUNT, comm);
	size_t n = 0;
	for (int r = 0; r < size && !err; r++)
		n += (size_t)counts[r];
	struct edge *in = err ? NULL : malloc((n + 1) * sizeof *in);
	if (!in)
		return err ? err : weft_mpi_err(MPI_ERR_NO_MEM, "no memory for a topology");
	MPI_Aint at = 0;
	for (int r = 0; r < size; r++) {
		counts[r] *= (MPI_Count)sizeof *in;
		displs[r] = at;
		at += (MPI_Aint)counts[r];
		o->counts[r] *= (MPI_Count)sizeof *in;
		o->displs[r] *= (MPI_Aint)sizeof *in;
	}
	err = weft_mpi_Alltoallv(o->edges, o->counts, o->displs, MPI_BYTE, in, counts, displs,
				 MPI_BYTE, comm);
	if (err) {
		free(in);
		return err;
	}
	*in_p = in;
	*n_p = n;
	return MPI_SUCCESS;
}

int weft_mpi_Dist_graph_create(MPI_Comm comm_old, int n, const int sources[], const int degrees[],
			       const int destinations[], const int weights[], MPI_Info info,
			       int reorder, MPI_Comm *comm_dist_graph)
{
	struct weft_mpi_comm *old = weft_mpi_comm_of(comm_old);
	int64_t total = 0;
	if (old->inter)
		return weft_mpi_err(MPI_ERR_COMM, "not defined for intercommunicators");
	if (n < 0)
		return weft_mpi_err(MPI_ERR_ARG, "n is negative (%d)", n);
	if (n && (!sources || !degrees))
		return weft_mpi_err(MPI_ERR_ARG, "sources or degrees is a null pointer");
	for (int i = 0; i < n; i++) {
		if (degrees[i] < 0)
			return weft_mpi_err(MPI_ERR_ARG, "degrees[%d] is negative (%d)", i,
					    degrees[i]);
		if (sources[i] < 0 || sources[i] >= old->size)
			return weft_mpi_err(MPI_ERR_RANK,
					    "sources[%d] is %d (communicator has %d ranks)", i,
					    sources[i], old->size);
		total += degrees[i];
	}
	if (total && !destinations)
		return weft_mpi_err(MPI_ERR_ARG, "destinations is a null pointer");
	for (int64_t i = 0; i < total; i++)
		if (destinations[i] < 0 || destinations[i] >= old->size)
			return weft_mpi_err(MPI_ERR_RANK,
					    "destinations[%lld] is %d (communicator has %d ranks)",
					    (long long)i, destinations[i], old->size);
	struct edge_list l = {.n = n,
			      .sources = sources,
			      .degrees = degrees,
			      .destinations = destinations,
			      .weights = has_weights(weights) ? weights : NULL};
	struct outbox o = {0};
	struct edge *in = NULL;
	size_t got = 0;
	int err = outbox_fill(&o, &l, old->size)
			  ? edges_exchange(comm_old, &o, old->size, &in, &got)
			  : weft_mpi_err(MPI_ERR_NO_MEM, "no memory for a topology");
	free(o.counts);
	free(o.displs);
	free(o.edges);
	if (err)
		return err;
	struct weft_mpi_topo *t = dist_from(in, got, weights != MPI_UNWEIGHTED);
	free(in);
	return dist_end(comm_old, reorder, t, comm_dist_graph);
}

int weft_mpi_Dist_graph_neighbors_count(MPI_Comm comm, int *indegree, int *outdegree, int *weighted)
{
	const struct weft_mpi_topo *t = weft_mpi_topo_of(comm, MPI_DIST_GRAPH);
	if (!t)
		return MPI_ERR_TOPOLOGY;
	*indegree = t->sources_n;
	*outdegree = t->destinations_n;
	*weighted = t->weighted;
	return MPI_SUCCESS;
}

static void copy_some(int *to, const int *from, int n, int max)
{
	for (int i = 0; i < n && i < max; i++)
		to[i] = from[i];
}

int weft_mpi_Dist_graph_neighbors(MPI_Comm comm, int maxindegree, int sources[],
				  int sourceweights[], int maxoutdegree, int destinations[],
				  int destweights[])
{
	const struct weft_mpi_topo *t = weft_mpi_topo_of(comm, MPI_DIST_GRAPH);
	if (!t)
		return MPI_ERR_TOPOLOGY;
	if (maxindegree < 0 || maxoutdegree < 0)
		return weft_mpi_err(MPI_ERR_ARG, "the length of an array is negative");
	copy_some(sources, t->sources, t->sources_n, maxindegree);
	copy_some(destinations, t->destinations, t->destinations_n, maxoutdegree);
	if (t->weighted && has_weights(sourceweights))
		copy_some(sourceweights, t->source_weights, t->sources_n, maxindegree);
	if (t->weighted && has_weights(destweights))
		copy_some(destweights, t->destination_weights, t->destinations_n, maxoutdegree);
	return MPI_SUCCESS;
}
