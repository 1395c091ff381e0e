/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 4 6 */
/* Topologies: grids of processes, their pieces and neighbours, graphs, and the most balanced grid.
 */
#include "mpitest.h"

static void dims_are(int nodes, int n, const int *given, const int *want)
{
	int d[8];
	for (int i = 0; i < n; i++)
		d[i] = given ? given[i] : 0;
	OK(MPI_Dims_create(nodes, n, d));
	for (int i = 0; i < n; i++)
		CHECK_EQ(d[i], want[i]);
}

static void test_dims(void)
{
	int d[3] = {0, 3, 0};
	dims_are(6, 2, NULL, (int[]){3, 2});
	dims_are(7, 1, NULL, (int[]){7});
	dims_are(7, 2, NULL, (int[]){7, 1});
	dims_are(12, 2, NULL, (int[]){4, 3});
	dims_are(16, 3, NULL, (int[]){4, 2, 2});
	dims_are(36, 2, NULL, (int[]){6, 6});
	dims_are(1000, 3, NULL, (int[]){10, 10, 10});
	dims_are(1, 3, NULL, (int[]){1, 1, 1});
	dims_are(6, 3, d, (int[]){2, 3, 1});
	/* The largest and the smallest as close as can be. */
	dims_are(7488, 3, NULL, (int[]){26, 18, 16});
	dims_are(19008, 3, NULL, (int[]){33, 24, 24});
	/* Of several such grids the one whose small dimensions are larger. */
	dims_are(5616, 4, NULL, (int[]){13, 9, 8, 6});
	dims_are(98784, 5, NULL, (int[]){14, 14, 9, 8, 7});
	dims_are(2147483647, 2, NULL, (int[]){2147483647, 1}); /* prime: still at once */
	/* Many divisors: still at once. */
	int large[4] = {0}, most[2] = {0};
	OK(MPI_Dims_create(2095133040, 2, most)); /* the number with the most divisors */
	CHECK_EQ((long long)most[0] * most[1], 2095133040);
	OK(MPI_Dims_create(1396755360, 4, large));
	CHECK_EQ((long long)large[0] * large[1] * large[2] * large[3], 1396755360);
	CHECK(large[0] >= large[1] && large[1] >= large[2] && large[2] >= large[3]);
	CHECK(large[0] < 2 * large[3]);
}

static void test_dims_errors(void)
{
	int d[3] = {0, 3, 0}, bad[2] = {-1, 0}, full[2] = {2, 3};
	OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	FAILS(MPI_Dims_create(7, 3, d), MPI_ERR_DIMS);
	FAILS(MPI_Dims_create(4, 2, bad), MPI_ERR_DIMS);
	FAILS(MPI_Dims_create(7, 2, full), MPI_ERR_DIMS);
	OK(MPI_Dims_create(6, 2, full));
}

static void test_cart(void)
{
	int dims[2] = {0, 0}, periods[2] = {0, 1}, d[2], p[2], c[2], n, kind;
	MPI_Comm cart, row, none;
	OK(MPI_Dims_create(size, 2, dims));
	OK(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &cart));
	OK(MPI_Topo_test(cart, &kind));
	CHECK_EQ(kind, MPI_CART);
	OK(MPI_Topo_test(MPI_COMM_WORLD, &kind));
	CHECK_EQ(kind, MPI_UNDEFINED);
	OK(MPI_Cartdim_get(cart, &n));
	CHECK_EQ(n, 2);
	OK(MPI_Cart_get(cart, 2, d, p, c));
	CHECK(d[0] == dims[0] && d[1] == dims[1] && p[0] == 0 && p[1] == 1);
	int me, r, up, down, left, right;
	OK(MPI_Comm_rank(cart, &me));
	CHECK_EQ(c[0] * dims[1] + c[1], me);
	for (int i = 0; i < size; i++) {
		OK(MPI_Cart_coords(cart, i, 2, c));
		OK(MPI_Cart_rank(cart, c, &r));
		CHECK_EQ(r, i);
		c[1] += 3 * dims[1];
		OK(MPI_Cart_rank(cart, c, &r));
		CHECK_EQ(r, i);
		c[0] = -1;
		OK(MPI_Comm_set_errhandler(cart, MPI_ERRORS_RETURN));
		FAILS(MPI_Cart_rank(cart, c, &r), MPI_ERR_ARG);
	}
	OK(MPI_Cart_coords(cart, me, 2, c));
	OK(MPI_Cart_shift(cart, 0, 1, &up, &down));
	CHECK_EQ(up, c[0] ? me - dims[1] : MPI_PROC_NULL);
	CHECK_EQ(down, c[0] < dims[0] - 1 ? me + dims[1] : MPI_PROC_NULL);
	OK(MPI_Cart_shift(cart, 1, -1, &right, &left));
	CHECK_EQ(left, c[0] * dims[1] + (c[1] - 1 + dims[1]) % dims[1]);
	CHECK_EQ(right, c[0] * dims[1] + (c[1] + 1) % dims[1]);
	/* Rows. */
	int remain[2] = {0, 1}, size_row;
	OK(MPI_Cart_sub(cart, remain, &row));
	OK(MPI_Comm_size(row, &size_row));
	CHECK_EQ(size_row, dims[1]);
	OK(MPI_Cart_get(row, 1, d, p, &n));
	CHECK(d[0] == dims[1] && p[0] == 1 && n == c[1]);
	int sum = 0;
	OK(MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, row));
	CHECK_EQ(sum, dims[1] * c[0] * dims[1] + dims[1] * (dims[1] - 1) / 2);
	/* A copy keeps the topology. */
	MPI_Comm copy;
	OK(MPI_Comm_dup(cart, &copy));
	OK(MPI_Cart_get(copy, 2, d, p, c));
	OK(MPI_Topo_test(copy, &kind));
	CHECK_EQ(kind, MPI_CART);
	OK(MPI_Comm_free(&copy));
	/* Smaller than the communicator; none at all; too large. */
	int one[1] = {1}, zero[1] = {0}, big[1] = {size + 1};
	OK(MPI_Cart_create(MPI_COMM_WORLD, 1, one, zero, 0, &none));
	CHECK((none == MPI_COMM_NULL) == (rank != 0));
	if (none != MPI_COMM_NULL)
		OK(MPI_Comm_free(&none));
	OK(MPI_Cart_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &none));
	if (none != MPI_COMM_NULL)
		OK(MPI_Comm_free(&none));
	FAILS(MPI_Cart_create(MPI_COMM_WORLD, 1, big, zero, 0, &none), MPI_ERR_DIMS);
	FAILS(MPI_Cartdim_get(MPI_COMM_WORLD, &n), MPI_ERR_TOPOLOGY);
	int where;
	OK(MPI_Cart_map(MPI_COMM_WORLD, 1, one, zero, &where));
	CHECK_EQ(where, rank ? MPI_UNDEFINED : 0);
	OK(MPI_Comm_free(&row));
	OK(MPI_Comm_free(&cart));
}

/* A star: node 0 with all others. */
static void test_graph(void)
{
	int index[64], edges[128], n = 0, nodes, count, got[64], kind;
	MPI_Comm star;
	for (int r = 1; r < size; r++)
		edges[n++] = r;
	index[0] = n;
	for (int r = 1; r < size; r++) {
		edges[n++] = 0;
		index[r] = n;
	}
	OK(MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &star));
	OK(MPI_Topo_test(star, &kind));
	CHECK_EQ(kind, MPI_GRAPH);
	OK(MPI_Graphdims_get(star, &nodes, &count));
	CHECK(nodes == size && count == n);
	OK(MPI_Graph_neighbors_count(star, 0, &count));
	CHECK_EQ(count, size - 1);
	OK(MPI_Graph_neighbors(star, 0, 64, got));
	for (int i = 0; i < count; i++)
		CHECK_EQ(got[i], i + 1);
	int index2[64], edges2[128];
	OK(MPI_Graph_get(star, 64, 128, index2, edges2));
	CHECK(!memcmp(index, index2, sizeof(int) * (size_t)size));
	CHECK(!memcmp(edges, edges2, sizeof(int) * (size_t)n));
	OK(MPI_Neighbor_allgather(&rank, 1, MPI_INT, got, 1, MPI_INT, star));
	for (int i = 0; i < size - 1 && !rank; i++)
		CHECK_EQ(got[i], i + 1);
	CHECK(!rank || got[0] == 0);
	OK(MPI_Comm_free(&star));
	/* The same by each one's own edges, with weights. */
	int w[64], sw[64], dw[64], src[64], dst[64];
	for (int i = 0; i < 64; i++)
		w[i] = 10 * rank + i;
	int zero = 0, deg = rank ? 1 : size - 1;
	int *list = rank ? &zero : edges;
	OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, deg, list, w, deg, list, w, MPI_INFO_NULL,
					  0, &star));
	int in, out, weighted;
	OK(MPI_Dist_graph_neighbors_count(star, &in, &out, &weighted));
	CHECK(in == deg && out == deg && weighted);
	OK(MPI_Dist_graph_neighbors(star, in, src, sw, out, dst, dw));
	for (int i = 0; i < deg; i++)
		CHECK(src[i] == list[i] && sw[i] == w[i] && dst[i] == list[i] && dw[i] == w[i]);
	OK(MPI_Comm_free(&star));
}

/* No edges: the arrays of edges have no element, and may be null pointers. */
static void test_dist_empty(void)
{
	int none = 0, in = -1, out = -1, weighted = -1, kind;
	int *volatile nowhere = NULL; /* the compiler would warn */
	MPI_Comm c;
	OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &none, nowhere, MPI_UNWEIGHTED,
				 MPI_INFO_NULL, 0, &c));
	OK(MPI_Topo_test(c, &kind));
	CHECK_EQ(kind, MPI_DIST_GRAPH);
	OK(MPI_Dist_graph_neighbors_count(c, &in, &out, &weighted));
	CHECK(!in && !out && !weighted);
	OK(MPI_Comm_free(&c));
	OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 0, nowhere, nowhere, nowhere, MPI_WEIGHTS_EMPTY,
				 MPI_INFO_NULL, 0, &c));
	OK(MPI_Comm_free(&c));
	none = 1;
	OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	CHECK_EQ(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &none, nowhere, MPI_UNWEIGHTED,
				       MPI_INFO_NULL, 0, &c),
		 MPI_ERR_ARG);
	OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
}

int main(int argc, char **argv)
{
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	test_dims();
	test_dims_errors();
	test_cart();
	test_graph();
	test_dist_empty();
	return test_end();
}
