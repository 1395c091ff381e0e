/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks: 1 2 3 4 5 8 13 16 */
/* Collectives in their three forms give what MPI defines, over real messages. */
#include "mpitest.h"

#define MOST 40000
#define EACH 5000 /* of a rank, to and from each, at most */
#define RANKS 64

static int *sbuf, *rbuf;

static int value(int r, int to, int i)
{
	return r * 1000003 + to * 1009 + i * 7 + 1;
}

/* One collective in its three forms: starts what `form` says, waits for it. */
#define THREE(form, blocking, nonblocking, init)                                                   \
	do {                                                                                       \
		MPI_Request req_ = MPI_REQUEST_NULL;                                               \
		if (form == 0) {                                                                   \
			OK(blocking);                                                              \
		} else if (form == 1) {                                                            \
			OK(nonblocking);                                                           \
			OK(MPI_Wait(&req_, MPI_STATUS_IGNORE));                                    \
		} else {                                                                           \
			OK(init);                                                                  \
			OK(MPI_Start(&req_));                                                      \
			OK(MPI_Wait(&req_, MPI_STATUS_IGNORE));                                    \
			OK(MPI_Request_free(&req_));                                               \
		}                                                                                  \
	} while (0)
#define C MPI_COMM_WORLD
#define I MPI_INFO_NULL

static void test_barrier_forms(int form)
{
	THREE(form, MPI_Barrier(C), MPI_Ibarrier(C, &req_), MPI_Barrier_init(C, I, &req_));
}

static void test_bcast(int form, int n)
{
	for (int root = 0; root<size; root += size> 2 ? size - 1 : 1) {
		for (int i = 0; i < n; i++)
			rbuf[i] = rank == root ? value(root, 0, i) : -1;
		THREE(form, MPI_Bcast(rbuf, n, MPI_INT, root, C),
		      MPI_Ibcast(rbuf, n, MPI_INT, root, C, &req_),
		      MPI_Bcast_init(rbuf, n, MPI_INT, root, C, I, &req_));
		for (int i = 0; i < n; i++)
			CHECK_EQ(rbuf[i], value(root, 0, i));
	}
}

static void test_allreduce(int form, int n)
{
	for (int in_place = 0; in_place < 2; in_place++) {
		int *from = in_place ? rbuf : sbuf;
		for (int i = 0; i < n; i++)
			from[i] = value(rank, 0, i);
		void *s = in_place ? MPI_IN_PLACE : sbuf;
		THREE(form, MPI_Allreduce(s, rbuf, n, MPI_INT, MPI_SUM, C),
		      MPI_Iallreduce(s, rbuf, n, MPI_INT, MPI_SUM, C, &req_),
		      MPI_Allreduce_init(s, rbuf, n, MPI_INT, MPI_SUM, C, I, &req_));
		for (int i = 0; i < n; i++) {
			int sum = 0;
			for (int r = 0; r < size; r++)
				sum += value(r, 0, i);
			CHECK_EQ(rbuf[i], sum);
		}
	}
}

static void test_reduce(int form, int n)
{
	int root = size - 1;
	for (int i = 0; i < n; i++)
		sbuf[i] = value(rank, 0, i);
	THREE(form, MPI_Reduce(sbuf, rbuf, n, MPI_INT, MPI_MAX, root, C),
	      MPI_Ireduce(sbuf, rbuf, n, MPI_INT, MPI_MAX, root, C, &req_),
	      MPI_Reduce_init(sbuf, rbuf, n, MPI_INT, MPI_MAX, root, C, I, &req_));
	for (int i = 0; i < n && rank == root; i++)
		CHECK_EQ(rbuf[i], value(size - 1, 0, i));
	/* Reduce_scatter and its block form. */
	int each = n / size, counts[RANKS];
	for (int r = 0; r < size; r++)
		counts[r] = each;
	THREE(form, MPI_Reduce_scatter(sbuf, rbuf, counts, MPI_INT, MPI_MIN, C),
	      MPI_Ireduce_scatter(sbuf, rbuf, counts, MPI_INT, MPI_MIN, C, &req_),
	      MPI_Reduce_scatter_init(sbuf, rbuf, counts, MPI_INT, MPI_MIN, C, I, &req_));
	for (int i = 0; i < each; i++)
		CHECK_EQ(rbuf[i], value(0, 0, rank * each + i));
	THREE(form, MPI_Reduce_scatter_block(sbuf, rbuf, each, MPI_INT, MPI_MIN, C),
	      MPI_Ireduce_scatter_block(sbuf, rbuf, each, MPI_INT, MPI_MIN, C, &req_),
	      MPI_Reduce_scatter_block_init(sbuf, rbuf, each, MPI_INT, MPI_MIN, C, I, &req_));
	for (int i = 0; i < each; i++)
		CHECK_EQ(rbuf[i], value(0, 0, rank * each + i));
	/* Prefixes. */
	THREE(form, MPI_Scan(sbuf, rbuf, n, MPI_INT, MPI_SUM, C),
	      MPI_Iscan(sbuf, rbuf, n, MPI_INT, MPI_SUM, C, &req_),
	      MPI_Scan_init(sbuf, rbuf, n, MPI_INT, MPI_SUM, C, I, &req_));
	for (int i = 0; i < n; i++) {
		int sum = 0;
		for (int r = 0; r <= rank; r++)
			sum += value(r, 0, i);
		CHECK_EQ(rbuf[i], sum);
	}
	THREE(form, MPI_Exscan(sbuf, rbuf, n, MPI_INT, MPI_SUM, C),
	      MPI_Iexscan(sbuf, rbuf, n, MPI_INT, MPI_SUM, C, &req_),
	      MPI_Exscan_init(sbuf, rbuf, n, MPI_INT, MPI_SUM, C, I, &req_));
	for (int i = 0; i < n && rank; i++) {
		int sum = 0;
		for (int r = 0; r < rank; r++)
			sum += value(r, 0, i);
		CHECK_EQ(rbuf[i], sum);
	}
}

static void test_gather(int form, int n)
{
	int root = size / 2, counts[RANKS], displs[RANKS];
	for (int i = 0; i < n; i++)
		sbuf[i] = value(rank, 0, i);
	THREE(form, MPI_Gather(sbuf, n, MPI_INT, rbuf, n, MPI_INT, root, C),
	      MPI_Igather(sbuf, n, MPI_INT, rbuf, n, MPI_INT, root, C, &req_),
	      MPI_Gather_init(sbuf, n, MPI_INT, rbuf, n, MPI_INT, root, C, I, &req_));
	for (int k = 0; k < n * size && rank == root; k++)
		CHECK_EQ(rbuf[k], value(k / n, 0, k % n));
	THREE(form, MPI_Allgather(sbuf, n, MPI_INT, rbuf, n, MPI_INT, C),
	      MPI_Iallgather(sbuf, n, MPI_INT, rbuf, n, MPI_INT, C, &req_),
	      MPI_Allgather_init(sbuf, n, MPI_INT, rbuf, n, MPI_INT, C, I, &req_));
	for (int k = 0; k < n * size; k++)
		CHECK_EQ(rbuf[k], value(k / n, 0, k % n));
	/* Blocks that grow with the rank, in reverse order. */
	for (int r = 0; r < size; r++) {
		counts[r] = n * (r + 1) / size;
		displs[r] = (size - 1 - r) * n;
	}
	memset(rbuf, -1, sizeof(int) * (size_t)(n * size));
	THREE(form,
	      MPI_Gatherv(sbuf, counts[rank], MPI_INT, rbuf, counts, displs, MPI_INT, root, C),
	      MPI_Igatherv(sbuf, counts[rank], MPI_INT, rbuf, counts, displs, MPI_INT, root, C,
			   &req_),
	      MPI_Gatherv_init(sbuf, counts[rank], MPI_INT, rbuf, counts, displs, MPI_INT, root, C,
			       I, &req_));
	for (int r = 0; r < size && rank == root; r++)
		for (int i = 0; i < n; i++)
			CHECK_EQ(rbuf[displs[r] + i], i < counts[r] ? value(r, 0, i) : -1);
	memset(rbuf, -1, sizeof(int) * (size_t)(n * size));
	THREE(form, MPI_Allgatherv(sbuf, counts[rank], MPI_INT, rbuf, counts, displs, MPI_INT, C),
	      MPI_Iallgatherv(sbuf, counts[rank], MPI_INT, rbuf, counts, displs, MPI_INT, C, &req_),
	      MPI_Allgatherv_init(sbuf, counts[rank], MPI_INT, rbuf, counts, displs, MPI_INT, C, I,
				  &req_));
	for (int r = 0; r < size; r++)
		for (int i = 0; i < n; i++)
			CHECK_EQ(rbuf[displs[r] + i], i < counts[r] ? value(r, 0, i) : -1);
	/* The other way round. */
	for (int r = 0; r < size; r++)
		for (int i = 0; i < n; i++)
			sbuf[r * n + i] = value(rank, r, i);
	THREE(form, MPI_Scatter(sbuf, n, MPI_INT, rbuf, n, MPI_INT, root, C),
	      MPI_Iscatter(sbuf, n, MPI_INT, rbuf, n, MPI_INT, root, C, &req_),
	      MPI_Scatter_init(sbuf, n, MPI_INT, rbuf, n, MPI_INT, root, C, I, &req_));
	for (int i = 0; i < n; i++)
		CHECK_EQ(rbuf[i], value(root, rank, i));
	for (int r = 0; r < size; r++)
		displs[r] = r * n;
	THREE(form,
	      MPI_Scatterv(sbuf, counts, displs, MPI_INT, rbuf, counts[rank], MPI_INT, root, C),
	      MPI_Iscatterv(sbuf, counts, displs, MPI_INT, rbuf, counts[rank], MPI_INT, root, C,
			    &req_),
	      MPI_Scatterv_init(sbuf, counts, displs, MPI_INT, rbuf, counts[rank], MPI_INT, root, C,
				I, &req_));
	for (int i = 0; i < counts[rank]; i++)
		CHECK_EQ(rbuf[i], value(root, rank, i));
}

static void test_alltoall(int form, int n)
{
	int counts[RANKS], displs[RANKS], bytes[RANKS];
	MPI_Datatype types[RANKS];
	for (int r = 0; r < size; r++) {
		for (int i = 0; i < n; i++)
			sbuf[r * n + i] = value(rank, r, i);
		counts[r] = n;
		displs[r] = r * n;
		bytes[r] = r * n * (int)sizeof(int);
		types[r] = MPI_INT;
	}
	for (int kind = 0; kind < 4; kind++) {
		memset(rbuf, -1, sizeof(int) * (size_t)(n * size));
		if (kind == 0)
			THREE(form, MPI_Alltoall(sbuf, n, MPI_INT, rbuf, n, MPI_INT, C),
			      MPI_Ialltoall(sbuf, n, MPI_INT, rbuf, n, MPI_INT, C, &req_),
			      MPI_Alltoall_init(sbuf, n, MPI_INT, rbuf, n, MPI_INT, C, I, &req_));
		if (kind == 1)
			THREE(form,
			      MPI_Alltoallv(sbuf, counts, displs, MPI_INT, rbuf, counts, displs,
					    MPI_INT, C),
			      MPI_Ialltoallv(sbuf, counts, displs, MPI_INT, rbuf, counts, displs,
					     MPI_INT, C, &req_),
			      MPI_Alltoallv_init(sbuf, counts, displs, MPI_INT, rbuf, counts,
						 displs, MPI_INT, C, I, &req_));
		if (kind == 2)
			THREE(form,
			      MPI_Alltoallw(sbuf, counts, bytes, types, rbuf, counts, bytes, types,
					    C),
			      MPI_Ialltoallw(sbuf, counts, bytes, types, rbuf, counts, bytes, types,
					     C, &req_),
			      MPI_Alltoallw_init(sbuf, counts, bytes, types, rbuf, counts, bytes,
						 types, C, I, &req_));
		if (kind == 3) {
			memcpy(rbuf, sbuf, sizeof(int) * (size_t)(n * size));
			THREE(form,
			      MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, rbuf, n, MPI_INT, C),
			      MPI_Ialltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, rbuf, n, MPI_INT, C,
					    &req_),
			      MPI_Alltoall_init(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, rbuf, n,
						MPI_INT, C, I, &req_));
		}
		for (int k = 0; k < n * size; k++)
			CHECK_EQ(rbuf[k], value(k / n, rank, k % n));
	}
}

/* Several collectives open at once on one communicator, completed in another order. */
static void test_many(void)
{
	enum { N = 12 };
	MPI_Request req[N];
	int in[N], out[N];
	for (int i = 0; i < N; i++) {
		in[i] = rank + i;
		OK(MPI_Iallreduce(&in[i], &out[i], 1, MPI_INT, MPI_SUM, C, &req[i]));
	}
	for (int i = 0; i < N; i += 2)
		OK(MPI_Wait(&req[i], MPI_STATUS_IGNORE));
	OK(MPI_Waitall(N, req, MPI_STATUSES_IGNORE));
	for (int i = 0; i < N; i++)
		CHECK_EQ(out[i], size * (size - 1) / 2 + size * i);
}

/* A persistent collective, again and again. */
static void test_persistent(void)
{
	MPI_Request req;
	int in = 0, out = -1;
	OK(MPI_Allreduce_init(&in, &out, 1, MPI_INT, MPI_SUM, C, MPI_INFO_NULL, &req));
	for (int k = 0; k < 200; k++) {
		in = rank + k;
		OK(MPI_Start(&req));
		OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
		CHECK_EQ(out, size * (size - 1) / 2 + size * k);
	}
	OK(MPI_Request_free(&req));
}

int main(int argc, char **argv)
{
	static const int counts[] = {1, 5, 300, EACH};
	test_start(&argc, &argv, MPI_THREAD_MULTIPLE);
	CHECK(size <= RANKS);
	size_t most = EACH * size > MOST ? (size_t)(EACH * size) : MOST;
	sbuf = malloc(sizeof(int) * most);
	rbuf = malloc(sizeof(int) * most);
	for (int form = 0; form < 3; form++) {
		test_barrier_forms(form);
		for (int i = 0; i < 4; i++) {
			int n = counts[i];
			test_bcast(form, n * 8);
			test_allreduce(form, n * 8);
			test_reduce(form, n * 8);
			test_gather(form, n);
			test_alltoall(form, n);
		}
	}
	test_bcast(0, MOST);
	test_many();
	test_persistent();
	for (int k = 0; k < 500; k++)
		OK(MPI_Barrier(C));
	free(sbuf);
	free(rbuf);
	return test_end();
}
