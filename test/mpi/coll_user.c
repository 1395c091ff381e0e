/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 3 4 7 13 16 */
/*
 * User's operations: called on an application thread inside an MPI call only, in rank order where
 * they do not commute; intercommunicators; neighbourhoods; errors of arguments.
 */
#include <pthread.h>

#include "mpitest.h"

static pthread_t main_thread;
static int calls, inside; /* inside: the main thread is in an MPI call */

struct mat {
	unsigned m[4];
};

static void mul(void *in, void *inout, int *len, MPI_Datatype *type)
{
	struct mat *a = in, *b = inout;
	CHECK(pthread_equal(pthread_self(), main_thread));
	CHECK(inside);
	CHECK(*type != MPI_DATATYPE_NULL);
	calls++;
	for (int k = 0; k < *len; k++) {
		struct mat r = {{a[k].m[0] * b[k].m[0] + a[k].m[1] * b[k].m[2],
				 a[k].m[0] * b[k].m[1] + a[k].m[1] * b[k].m[3],
				 a[k].m[2] * b[k].m[0] + a[k].m[3] * b[k].m[2],
				 a[k].m[2] * b[k].m[1] + a[k].m[3] * b[k].m[3]}};
		b[k] = r;
	}
}

static void mul_c(void *in, void *inout, MPI_Count *len, MPI_Datatype *type)
{
	int n = (int)*len;
	mul(in, inout, &n, type);
}

static struct mat mat_of(int r, int i)
{
	return (struct mat){{(unsigned)(r + 1), (unsigned)i + 2, 3, (unsigned)(r * i + 1)}};
}

static struct mat product(int lo, int hi, int i)
{
	struct mat p = mat_of(hi, i), a;
	int one = 1;
	MPI_Datatype t = MPI_BYTE;
	inside = 1;
	for (int r = hi - 1; r >= lo; r--) {
		a = mat_of(r, i);
		mul(&a, &p, &one, &t);
	}
	inside = 0;
	return p;
}

#define N 700

static void test_user(MPI_Op op)
{
	MPI_Datatype type;
	struct mat *in = calloc(N, sizeof *in), *out = calloc(N, sizeof *out);
	OK(MPI_Type_contiguous(4, MPI_UNSIGNED, &type));
	OK(MPI_Type_commit(&type));
	for (int i = 0; i < N; i++)
		in[i] = mat_of(rank, i);
	static const int counts[] = {1, 50, N};
	for (int k = 0; k < 3; k++) {
		int n = counts[k];
		inside = 1;
		OK(MPI_Allreduce(in, out, n, type, op, MPI_COMM_WORLD));
		inside = 0;
		for (int i = 0; i < n; i++) {
			struct mat want = product(0, size - 1, i);
			CHECK(!memcmp(&want, &out[i], sizeof want));
		}
		MPI_Request req;
		inside = 1;
		OK(MPI_Iscan(in, out, n, type, op, MPI_COMM_WORLD, &req));
		inside = 0;
		/* Messages move now; the operation must not. */
		for (volatile int w = 0; w < 2000000; w++)
			;
		int flag = 0;
		while (!flag) {
			inside = 1;
			OK(MPI_Test(&req, &flag, MPI_STATUS_IGNORE));
			inside = 0;
		}
		for (int i = 0; i < n; i++) {
			struct mat want = product(0, rank, i);
			CHECK(!memcmp(&want, &out[i], sizeof want));
		}
		inside = 1;
		OK(MPI_Reduce(in, out, n, type, op, size - 1, MPI_COMM_WORLD));
		inside = 0;
		for (int i = 0; i < n && rank == size - 1; i++) {
			struct mat want = product(0, size - 1, i);
			CHECK(!memcmp(&want, &out[i], sizeof want));
		}
		/* The operation may be freed while it is still in use. */
		MPI_Op copy;
		OK(MPI_Op_create(mul, 0, &copy));
		inside = 1;
		OK(MPI_Ireduce_scatter_block(in, out, n / size, type, copy, MPI_COMM_WORLD, &req));
		OK(MPI_Op_free(&copy));
		OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
		inside = 0;
		for (int i = 0; i < n / size; i++) {
			struct mat want = product(0, size - 1, rank * (n / size) + i);
			CHECK(!memcmp(&want, &out[i], sizeof want));
		}
	}
	OK(MPI_Type_free(&type));
	free(in);
	free(out);
}

/* ---- intercommunicators ------------------------------------------------------------------- */

static void test_inter(void)
{
	MPI_Comm half, inter;
	int mine, far, me, low = rank < size / 2;
	if (size < 2)
		return;
	OK(MPI_Comm_split(MPI_COMM_WORLD, low, rank, &half));
	OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, low ? size / 2 : 0, 5, &inter));
	OK(MPI_Comm_size(inter, &mine));
	OK(MPI_Comm_remote_size(inter, &far));
	OK(MPI_Comm_rank(inter, &me));
	OK(MPI_Barrier(inter));
	/* From the first of the low half to all of the other. */
	int root = low ? (me ? MPI_PROC_NULL : MPI_ROOT) : 0;
	int x[3] = {-1, -1, -1};
	if (root == MPI_ROOT)
		x[0] = 7, x[1] = 8, x[2] = 9;
	OK(MPI_Bcast(x, 3, MPI_INT, root, inter));
	CHECK(low || (x[0] == 7 && x[2] == 9));
	/* Each side gets the other side's sum. */
	int v = 10 * low + me, sum = -1;
	OK(MPI_Allreduce(&v, &sum, 1, MPI_INT, MPI_SUM, inter));
	CHECK_EQ(sum, far * (far - 1) / 2 + 10 * !low * far);
	sum = -1;
	OK(MPI_Reduce(&v, &sum, 1, MPI_INT, MPI_SUM, root, inter));
	if (root == MPI_ROOT)
		CHECK_EQ(sum, far * (far - 1) / 2);
	int all[64], to[64];
	OK(MPI_Allgather(&v, 1, MPI_INT, all, 1, MPI_INT, inter));
	for (int r = 0; r < far; r++)
		CHECK_EQ(all[r], 10 * !low + r);
	for (int r = 0; r < far; r++)
		to[r] = 100 * me + r;
	OK(MPI_Alltoall(to, 1, MPI_INT, all, 1, MPI_INT, inter));
	for (int r = 0; r < far; r++)
		CHECK_EQ(all[r], 100 * r + me);
	OK(MPI_Gather(&v, 1, MPI_INT, all, 1, MPI_INT, root, inter));
	for (int r = 0; r < far && root == MPI_ROOT; r++)
		CHECK_EQ(all[r], r);
	OK(MPI_Scatter(to, 1, MPI_INT, all, 1, MPI_INT, root, inter));
	if (!low)
		CHECK_EQ(all[0], me);
	/* Both groups' vectors have one length: as many blocks as both have processes. */
	static int big[64 * 64], counts[64], got[64 * 64];
	for (int i = 0; i < mine * far; i++)
		big[i] = i;
	for (int r = 0; r < mine; r++)
		counts[r] = far;
	OK(MPI_Reduce_scatter(big, got, counts, MPI_INT, MPI_SUM, inter));
	for (int i = 0; i < far; i++)
		CHECK_EQ(got[i], (me * far + i) * far);
	MPI_Request req;
	OK(MPI_Ireduce_scatter_block(big, got, far, MPI_INT, MPI_SUM, inter, &req));
	OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
	for (int i = 0; i < far; i++)
		CHECK_EQ(got[i], (me * far + i) * far);
	OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
	FAILS(MPI_Allreduce(MPI_IN_PLACE, &v, 1, MPI_INT, MPI_SUM, inter), MPI_ERR_BUFFER);
	FAILS(MPI_Scan(&v, &sum, 1, MPI_INT, MPI_SUM, inter), MPI_ERR_COMM);
	OK(MPI_Comm_free(&inter));
	OK(MPI_Comm_free(&half));
}

/* ---- neighbourhoods ----------------------------------------------------------------------- */

static void test_neighbors(void)
{
	MPI_Comm ring, graph;
	/* gcc takes the ABI's small constant for an array without elements, and warns. */
	int *volatile unweighted = MPI_UNWEIGHTED;
	int dims[1] = {size}, periods[1] = {1};
	int out[2] = {2 * rank, 2 * rank + 1}, in[2];
	OK(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &ring));
	int left = (rank - 1 + size) % size, right = (rank + 1) % size;
	/* What goes left arrives as coming from the right, also where both are one process. */
	OK(MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, ring));
	CHECK_EQ(in[0], 2 * left + 1);
	CHECK_EQ(in[1], 2 * right);
	int counts[2] = {1, 1}, displs[2] = {1, 0};
	MPI_Request req;
	OK(MPI_Ineighbor_alltoallv(out, counts, displs, MPI_INT, in, counts, displs, MPI_INT, ring,
				   &req));
	OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
	CHECK_EQ(in[1], 2 * left);
	CHECK_EQ(in[0], 2 * right + 1);
	MPI_Aint at[2] = {0, sizeof(int)};
	MPI_Datatype types[2] = {MPI_INT, MPI_INT};
	OK(MPI_Neighbor_alltoallw_init(out, counts, at, types, in, counts, at, types, ring,
				       MPI_INFO_NULL, &req));
	for (int k = 0; k < 3; k++) {
		in[0] = in[1] = -1;
		OK(MPI_Start(&req));
		OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
		CHECK_EQ(in[0], 2 * left + 1);
		CHECK_EQ(in[1], 2 * right);
	}
	OK(MPI_Request_free(&req));
	/* An open line: nothing comes from beyond the ends. */
	MPI_Comm line;
	periods[0] = 0;
	OK(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &line));
	in[0] = in[1] = -1;
	OK(MPI_Neighbor_allgather(out, 1, MPI_INT, in, 1, MPI_INT, line));
	CHECK_EQ(in[0], rank ? 2 * left : -1);
	CHECK_EQ(in[1], rank < size - 1 ? 2 * right : -1);
	/* Each rank to rank 0 and to the right: edges given by one process only. */
	int sources[64], degrees[64], targets[128];
	for (int r = 0; r < size; r++) {
		sources[r] = r;
		degrees[r] = 2;
		targets[2 * r] = 0;
		targets[2 * r + 1] = (r + 1) % size;
	}
	OK(MPI_Dist_graph_create(MPI_COMM_WORLD, rank == size - 1 ? size : 0, sources, degrees,
				 targets, unweighted, MPI_INFO_NULL, 0, &graph));
	int nin, nout, weighted, from[64], dest[64];
	OK(MPI_Dist_graph_neighbors_count(graph, &nin, &nout, &weighted));
	CHECK_EQ(nout, 2);
	CHECK_EQ(nin, rank ? 1 : size + 1);
	CHECK_EQ(weighted, 0);
	OK(MPI_Dist_graph_neighbors(graph, 64, from, unweighted, 64, dest, unweighted));
	int got[64];
	OK(MPI_Neighbor_allgather(&rank, 1, MPI_INT, got, 1, MPI_INT, graph));
	for (int i = 0; i < nin; i++)
		CHECK_EQ(got[i], from[i]);
	OK(MPI_Comm_free(&graph));
	OK(MPI_Comm_free(&line));
	OK(MPI_Comm_free(&ring));
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	FAILS(MPI_Neighbor_allgather(&rank, 1, MPI_INT, got, 1, MPI_INT, MPI_COMM_WORLD),
	      MPI_ERR_TOPOLOGY);
}

static void test_errors(void)
{
	int a = 1, b = 2;
	double d = 0;
	MPI_Datatype t;
	OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
	OK(MPI_Type_vector(2, 1, 2, MPI_INT, &t));
	MPI_Comm w = MPI_COMM_WORLD;
	FAILS(MPI_Bcast(&a, 1, MPI_INT, size, w), MPI_ERR_ROOT);
	FAILS(MPI_Bcast(&a, 1, MPI_INT, -1, w), MPI_ERR_ROOT);
	FAILS(MPI_Bcast(&a, -1, MPI_INT, 0, w), MPI_ERR_COUNT);
	FAILS(MPI_Bcast(&a, 1, t, 0, w), MPI_ERR_TYPE);
	FAILS(MPI_Bcast(&a, 1, MPI_DATATYPE_NULL, 0, w), MPI_ERR_TYPE);
	FAILS(MPI_Bcast(NULL, 1, MPI_INT, 0, w), MPI_ERR_BUFFER);
	FAILS(MPI_Bcast(&a, 1, MPI_INT, 0, MPI_COMM_NULL), MPI_ERR_COMM);
	FAILS(MPI_Allreduce(&d, &d, 1, MPI_DOUBLE, MPI_BAND, w), MPI_ERR_OP);
	FAILS(MPI_Allreduce(&d, &d, 1, MPI_DOUBLE, MPI_MAXLOC, w), MPI_ERR_OP);
	FAILS(MPI_Allreduce(&a, &b, 1, MPI_INT, MPI_OP_NULL, w), MPI_ERR_OP);
	FAILS(MPI_Allreduce(&a, &b, 1, MPI_INT, MPI_REPLACE, w), MPI_ERR_OP);
	FAILS(MPI_Allreduce(&a, &b, 1, MPI_WCHAR, MPI_SUM, w), MPI_ERR_OP);
	FAILS(MPI_Allreduce(&a, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, w), MPI_ERR_BUFFER);
	if (rank != 0)
		FAILS(MPI_Gather(MPI_IN_PLACE, 1, MPI_INT, &b, 1, MPI_INT, 0, w), MPI_ERR_BUFFER);
	int zero[64] = {0};
	FAILS(MPI_Allgatherv(&a, 0, MPI_INT, &b, NULL, zero, MPI_INT, w), MPI_ERR_ARG);
	FAILS(MPI_Allgatherv(&a, 0, MPI_INT, &b, zero, NULL, MPI_INT, w), MPI_ERR_ARG);
	FAILS(MPI_Reduce_scatter(&a, &b, NULL, MPI_INT, MPI_SUM, w), MPI_ERR_ARG);
	MPI_Op op = MPI_SUM;
	FAILS(MPI_Op_free(&op), MPI_ERR_OP);
	OK(MPI_Type_free(&t));
}

int main(int argc, char **argv)
{
	main_thread = pthread_self();
	test_start(&argc, &argv, MPI_THREAD_FUNNELED);
	MPI_Op op, op_c;
	int commutes = -1;
	OK(MPI_Op_create(mul, 0, &op));
	OK(MPI_Op_create_c(mul_c, 0, &op_c));
	OK(MPI_Op_commutative(op, &commutes));
	CHECK_EQ(commutes, 0);
	OK(MPI_Op_commutative(MPI_SUM, &commutes));
	CHECK_EQ(commutes, 1);
	test_user(op);
	test_user(op_c);
	CHECK(size == 1 || calls > 0);
	OK(MPI_Op_free(&op));
	OK(MPI_Op_free(&op_c));
	CHECK(op == MPI_OP_NULL);
	test_inter();
	test_neighbors();
	test_errors();
	return test_end();
}
