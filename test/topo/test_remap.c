/* SPDX-License-Identifier: BSD-3-Clause */
/* Neighbours of grids and graphs come near each other on machines of every shape: the count of edges between hosts, and between
 * packages of a host, is what can be had, and never more than in the order of the ranks. */
#include "topo/remap.h"
#include "check.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 1024

enum deal { BLOCKS, CYCLIC, RANDOM }; /* processes to hosts */

static int first[MOST + 1], edge[8 * MOST], weight[8 * MOST], node[MOST], process[MOST];
static struct weft_topo_place place[MOST];

static struct weft_topo_graph grid(int ndims, const int *dims, bool periodic)
{
	int n = 1, at = 0;

	for (int d = 0; d < ndims; d++)
		n *= dims[d];
	for (int v = 0; v < n; v++) {
		int stride = n;
		first[v] = at;
		for (int d = 0; d < ndims; d++) {
			int outer = stride;
			stride /= dims[d];
			int c = v % outer / stride;
			for (int to = c - 1; to <= c + 1; to += 2) {
				int x = periodic ? (to + dims[d]) % dims[d] : to;
				edge[at++] = x < 0 || x >= dims[d] ? -1 : v + (x - c) * stride;
			}
		}
	}
	first[n] = at;
	return (struct weft_topo_graph){
		.n = n, .first = first, .edge = edge, .ndims = ndims, .dims = dims};
}

static unsigned dice(void)
{
	static unsigned x = 7;
	return (x = x * 1664525u + 1013904223u) >> 8;
}

/* Each process on a core of its own, in the order of the ranks of its host. */
static void deal_out(int n, int hosts, enum deal deal)
{
	int on[64] = {0};

	for (int p = 0; p < n; p++) {
		int h = deal == BLOCKS   ? p * hosts / n
			: deal == CYCLIC ? p % hosts
					 : (int)(dice() % (unsigned)hosts);
		cpu_set_t cpu;
		CPU_ZERO(&cpu);
		CPU_SET((size_t)on[h]++, &cpu);
		place[p].host = h;
		weft_topo_resource_of(&cpu, place[p].at);
	}
}

struct crossing {
	int hosts, packages; /* edges between, both directions */
};

static struct crossing count(const struct weft_topo_graph *g, const int *on)
{
	struct crossing c = {0, 0};
	int kind = weft_topo_resource_find("Package");

	for (int v = 0; v < g->n; v++)
		for (int e = g->first[v]; e < g->first[v + 1]; e++) {
			if (g->edge[e] < 0)
				continue;
			const struct weft_topo_place *a = &place[on[v]],
						     *b = &place[on[g->edge[e]]];
			int w = g->weight ? g->weight[e] : 1;
			c.hosts += w * (a->host != b->host);
			c.packages +=
				w * (a->host == b->host && kind >= 0 && a->at[kind] != b->at[kind]);
		}
	return c;
}

/* A permutation, no worse than the ranks as they are. */
static struct crossing remap(const struct weft_topo_graph *g)
{
	static int same[MOST];

	CHECK_EQ(weft_topo_remap(g, place, node), WEFT_OK);
	memset(process, 0xff, sizeof process);
	for (int p = 0; p < g->n; p++) {
		CHECK(node[p] >= 0 && node[p] < g->n && process[node[p]] == -1);
		process[node[p]] = p;
		same[p] = p;
	}
	struct crossing before = count(g, same), after = count(g, process);
	CHECK(after.hosts <= before.hosts);
	return after;
}

/* machine: cores of each host, as hwloc has it; hosts and packages: edges that cross, both directions. */
static const struct row {
	const char *machine;
	int dims[4];
	bool periodic;
	int hosts;
	enum deal deal;
	int cross_hosts, cross_packages;
} rows[] = {
	/* A line, a ring: one edge for each border. */
	{"pack:2 core:8 pu:1", {64}, false, 4, CYCLIC, 2 * 3, 2 * 4},
	{"pack:2 core:8 pu:1", {64}, true, 4, CYCLIC, 2 * 4, 2 * 4},
	{"pack:1 core:4 pu:1", {4}, true, 1, BLOCKS, 0, 0},
	/* Squares, of which a package has one half. */
	{"pack:2 core:8 pu:1", {8, 8}, false, 4, BLOCKS, 2 * 16, 2 * 4 * 4},
	{"pack:2 core:8 pu:1", {8, 8}, false, 4, CYCLIC, 2 * 16, 2 * 4 * 4},
	{"pack:2 core:8 pu:1", {8, 8}, true, 4, BLOCKS, 2 * 32, 2 * 4 * 4},
	{"pack:2 core:9 pu:1", {12, 12}, false, 8, BLOCKS, 2 * 48, 2 * 8 * 3},
	{"pack:2 numa:2 l3:1 core:4 pu:2", {12, 12}, false, 9, CYCLIC, 2 * 48, 0},
	/* A long side first, whatever the order of the dimensions. */
	{"pack:2 core:8 pu:1", {2, 32}, false, 4, BLOCKS, 2 * 6, 2 * 4 * 2},
	{"pack:2 core:8 pu:1", {32, 2}, false, 4, BLOCKS, 2 * 6, 2 * 4 * 2},
	/* Cubes. */
	{"pack:2 core:4 pu:1", {4, 4, 4}, false, 8, BLOCKS, 2 * 48, 2 * 8 * 4},
	{"pack:4 numa:1 core:16 pu:1", {8, 8, 8}, false, 8, CYCLIC, 2 * 192, 2 * 8 * 32},
	{"pack:2 core:8 pu:1", {2, 2, 4, 4}, false, 4, BLOCKS, 2 * 32, 2 * 4 * 8},
	/* One host: packages alone. */
	{"pack:4 core:4 pu:1", {4, 4}, false, 1, BLOCKS, 0, 2 * 8},
};

static void try_row(const struct row *r)
{
	int ndims = 0;

	while (ndims < 4 && r->dims[ndims])
		ndims++;
	CHECK(setenv("HWLOC_SYNTHETIC", r->machine, 1) == 0);
	struct weft_topo_graph g = grid(ndims, r->dims, r->periodic);
	deal_out(g.n, r->hosts, r->deal);
	struct crossing c = remap(&g);
	CHECK_EQ(c.hosts, r->cross_hosts);
	CHECK(c.packages <= r->cross_packages);
	/* The same without knowing of the grid: good, though not as good. */
	g.ndims = 0;
	(void)remap(&g);
	/* Hosts of other sizes each, also in a grid that they do not divide. */
	for (int i = 0; i < 5; i++) {
		g.ndims = i % 2 ? ndims : 0;
		deal_out(g.n, 2 + i, RANDOM);
		(void)remap(&g);
	}
}

/* Pairs that are tied tightly, beside loose ties to all: each pair on a host. */
static void pairs(void)
{
	enum { N = 32 };
	int at = 0;

	for (int v = 0; v < N; v++) {
		first[v] = at;
		for (int u = 0; u < N; u++) {
			edge[at] = u == v ? -1 : u;
			weight[at++] = (u ^ v) == N / 2 ? 1000 : (u + v) % 2;
		}
	}
	first[N] = at;
	struct weft_topo_graph g = {.n = N, .first = first, .edge = edge, .weight = weight};
	deal_out(N, N / 2, BLOCKS);
	int loose = 0;
	for (int e = 0; e < at; e++)
		loose += edge[e] >= 0 && weight[e] < 1000 ? weight[e] : 0;
	CHECK(remap(&g).hosts <= loose);
	for (int v = 0; v < N; v++)
		CHECK_EQ(place[process[v]].host, place[process[v ^ (N / 2)]].host);
}

int main(void)
{
	/* The machine is read once in a process. */
	for (size_t i = 0; i < weft_countof(rows); i++) {
		int status;
		pid_t child = fork();
		CHECK(child >= 0);
		if (!child) {
			try_row(&rows[i]);
			_exit(0);
		}
		CHECK(waitpid(child, &status, 0) == child);
		if (status)
			fprintf(stderr, "row %zu failed\n", i);
		CHECK_EQ(status, 0);
	}
	pairs();
	return 0;
}
