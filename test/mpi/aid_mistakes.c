/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aid_mistakes.c - mistakes of a program, for test/cmd/test_aids.sh: with WEFT_CHECK=1 each is named; a program
 * without one is not.
 */
/* ranks: 2 3 */
#include <string.h>
#include <unistd.h>
#include "mpitest.h"

static MPI_Comm named(const char *name)
{
	MPI_Comm c;
	OK(MPI_Comm_dup(MPI_COMM_WORLD, &c));
	OK(MPI_Comm_set_name(c, name));
	return c;
}

/* Nothing is wrong here, though much is going on. */
static void right(void)
{
	int in[4] = {0}, out[4] = {1, 2, 3, 4}, sum = 0, next = (rank + 1) % size,
	    last = (rank + size - 1) % size;
	MPI_Request r[4];
	MPI_Comm c = named("right");
	MPI_Datatype t;
	OK(MPI_Type_vector(2, 1, 2, MPI_INT, &t));
	OK(MPI_Type_commit(&t));
	OK(MPI_Irecv(&in[0], 1, t, last, 1, c, &r[0]));
	OK(MPI_Irecv(&in[1], 1, t, last, 2, c, &r[1]));
	OK(MPI_Isend(out, 1, t, next, 1, c, &r[2]));
	OK(MPI_Isend(out + 1, 1, t, next, 2, c, &r[3]));
	OK(MPI_Waitall(4, r, MPI_STATUSES_IGNORE));
	CHECK_EQ(in[3], 4);
	for (int i = 0; i < 50; i++) {
		int root = i % size;
		OK(MPI_Bcast(&root, 1, MPI_INT, root, i % 2 ? c : MPI_COMM_WORLD));
		OK(MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, c));
		CHECK_EQ(sum, i * size);
		OK(MPI_Gather(&i, 1, MPI_INT, rank ? NULL : out, rank ? 0 : 1, MPI_INT, 0, c));
		OK(MPI_Ibarrier(c, r));
		OK(MPI_Wait(r, MPI_STATUS_IGNORE));
	}
	OK(MPI_Recv_init(&in[0], 1, t, last, 3, c, &r[0]));
	OK(MPI_Send_init(out, 1, t, next, 3, c, &r[1]));
	OK(MPI_Allreduce_init(out, &sum, 1, MPI_INT, MPI_SUM, c, MPI_INFO_NULL, &r[2]));
	for (int i = 0; i < 3; i++) {
		OK(MPI_Startall(3, r));
		OK(MPI_Waitall(3, r, MPI_STATUSES_IGNORE));
	}
	for (int i = 0; i < 3; i++)
		OK(MPI_Request_free(&r[i]));
	OK(MPI_Type_free(&t));
	OK(MPI_Comm_free(&c));
}

/* The members of c in two halves. */
static MPI_Comm halves(const char *name, MPI_Comm *half_p)
{
	MPI_Comm inter;
	int low = rank < size / 2;
	OK(MPI_Comm_split(MPI_COMM_WORLD, low, rank, half_p));
	OK(MPI_Intercomm_create(*half_p, 0, MPI_COMM_WORLD, low ? size / 2 : 0, 1, &inter));
	OK(MPI_Comm_set_name(inter, name));
	return inter;
}

enum { MOST = 80 };
static int to_all[2 * MOST], of_all[2 * MOST], counts[MOST], places[MOST], bytes[MOST];
static MPI_Datatype ints[MOST];

/* Blocks of a count for each rank; half of them as pairs on the one side, and as numbers on the other. */
static void blocks_right(void)
{
	MPI_Comm c = named("blocks"), half, inter = halves("both sides", &half), ring;
	MPI_Datatype two;
	MPI_Request r;
	int periodic[2] = {1, 1}, dims[2] = {size, 1}, low = rank < size / 2;
	OK(MPI_Type_contiguous(2, MPI_INT, &two));
	OK(MPI_Type_commit(&two));
	for (int i = 0; i < size; i++) {
		counts[i] = 2 * (i % 2);
		places[i] = 2 * i;
		bytes[i] = 8 * i;
		ints[i] = MPI_INT;
	}
	for (int i = 0; i < 3; i++) {
		OK(MPI_Gatherv(to_all, rank % 2, two, of_all, counts, places, MPI_INT, i % 2, c));
		OK(MPI_Scatterv(to_all, counts, places, MPI_INT, of_all, rank % 2, two, i % 2, c));
		OK(MPI_Scatterv(to_all, counts, places, MPI_INT, rank ? of_all : MPI_IN_PLACE,
				counts[rank], MPI_INT, 0, c));
		OK(MPI_Iallgatherv(to_all, rank % 2, two, of_all, counts, places, MPI_INT, c, &r));
		OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
		OK(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, of_all, counts, places,
				  MPI_INT, c));
		for (int k = 0; k < size; k++)
			counts[k] = 2;
		OK(MPI_Alltoallw(to_all, counts, bytes, ints, of_all, counts, bytes, ints, c));
		OK(MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_INT, of_all, counts, places, MPI_INT,
				 c));
		OK(MPI_Allgather(to_all, 1, two, of_all, 2, MPI_INT, c));
		OK(MPI_Reduce_scatter(to_all, of_all, counts, MPI_INT, MPI_SUM, c));
		for (int k = 0; k < size; k++)
			counts[k] = 2 * (k % 2);
		int root = low ? rank ? MPI_PROC_NULL : MPI_ROOT : 0;
		OK(MPI_Bcast(to_all, 1, two, root, inter));
		OK(MPI_Gather(to_all, 1, two, of_all, 2, MPI_INT, root, inter));
		OK(MPI_Allgather(to_all, low + 1, MPI_INT, of_all, !low + 1, MPI_INT, inter));
		OK(MPI_Reduce(to_all, of_all, 1, MPI_INT, MPI_SUM, root, inter));
		OK(MPI_Barrier(inter));
	}
	OK(MPI_Cart_create(c, 2, dims, periodic, 0, &ring));
	OK(MPI_Neighbor_allgather(to_all, 1, two, of_all, 2, MPI_INT, ring));
	for (int i = 0; i < 4; i++)
		counts[i] = 1 + i / 2; /* more along the dimension of length one */
	OK(MPI_Neighbor_alltoallv(to_all, counts, places, MPI_INT, of_all, counts, places, MPI_INT,
				  ring));
	OK(MPI_Comm_free(&ring));
	OK(MPI_Comm_free(&inter));
	OK(MPI_Comm_free(&half));
	OK(MPI_Type_free(&two));
	OK(MPI_Comm_free(&c));
}

/* Rank 1 gives and takes floats, of the same size, where the others expect numbers. */
static void blocks_types(void)
{
	MPI_Comm c = named("blocks"), ring;
	MPI_Datatype mine = rank == 1 ? MPI_FLOAT : MPI_INT;
	int periodic = 1;
	for (int i = 0; i < size; i++) {
		counts[i] = 1;
		places[i] = i;
		bytes[i] = 4 * i;
		ints[i] = MPI_INT;
	}
	OK(MPI_Gather(to_all, 1, mine, of_all, 1, MPI_INT, 0, c));
	OK(MPI_Gatherv(to_all, 1, mine, of_all, counts, places, MPI_INT, 0, c));
	OK(MPI_Scatterv(to_all, counts, places, MPI_INT, of_all, 1, mine, 0, c));
	OK(MPI_Allgather(to_all, 1, mine, of_all, 1, MPI_INT, c));
	if (rank == 1)
		ints[0] = MPI_FLOAT; /* to rank 0, and from it */
	OK(MPI_Alltoallw(to_all, counts, bytes, ints, of_all, counts, bytes, ints, c));
	OK(MPI_Cart_create(c, 1, &size, &periodic, 0, &ring));
	OK(MPI_Comm_set_name(ring, "the ring"));
	OK(MPI_Neighbor_allgather(to_all, 1, mine, of_all, 1, mine, ring));
	OK(MPI_Comm_free(&ring));
	OK(MPI_Comm_free(&c));
}

/* Another amount for the root than it expects, or in the array of counts; the calls may fail. */
static void blocks_amounts(void)
{
	MPI_Comm c = named("blocks"), half, inter = halves("both sides", &half);
	int low = rank < size / 2;
	OK(MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN));
	OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
	for (int i = 0; i < size; i++) {
		counts[i] = 2;
		places[i] = 2 * i;
	}
	(void)MPI_Gatherv(to_all, rank == 1 ? 1 : 2, MPI_INT, of_all, counts, places, MPI_INT, 0,
			  c);
	if (rank == 1) {
		counts[0] = 1;
		counts[1] = 3;
	}
	(void)MPI_Reduce_scatter(to_all, of_all, counts, MPI_INT, MPI_SUM, c);
	(void)MPI_Bcast(to_all, 2 - !low, MPI_INT, low ? rank ? MPI_PROC_NULL : MPI_ROOT : 0,
			inter);
	OK(MPI_Comm_free(&inter));
	OK(MPI_Comm_free(&half));
	OK(MPI_Comm_free(&c));
}

/* Of two sides of an intercommunicator one gathers, and one scatters. */
static void blocks_order(void)
{
	MPI_Comm half, inter = halves("both sides", &half);
	if (rank < size / 2)
		MPI_Barrier(inter);
	else
		MPI_Allreduce(to_all, of_all, 1, MPI_INT, MPI_SUM, inter);
	MPI_Barrier(inter);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void partitions(void)
{
	MPI_Request r;
	for (int i = 0; i < 2 && rank < 2; i++) { /* right, then as floats */
		if (rank == 0)
			OK(MPI_Psend_init(to_all, 4, 2, i ? MPI_FLOAT : MPI_INT, 1, 6,
					  MPI_COMM_WORLD, MPI_INFO_NULL, &r));
		else
			OK(MPI_Precv_init(of_all, 2, 4, MPI_INT, 0, 6, MPI_COMM_WORLD,
					  MPI_INFO_NULL, &r));
		OK(MPI_Start(&r));
		if (rank == 0)
			OK(MPI_Pready_range(0, 3, r));
		OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
		OK(MPI_Request_free(&r));
	}
}

static void nothing(void *in, void *inout, int *n, MPI_Datatype *t)
{
	(void)in, (void)inout, (void)n, (void)t;
}

static void leaks(void)
{
	MPI_Datatype t;
	MPI_Request r;
	MPI_Op op;
	int x;
	(void)named("left");
	OK(MPI_Op_create(nothing, 1, &op));
	OK(MPI_Type_contiguous(3, MPI_INT, &t));
	OK(MPI_Recv_init(&x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &r));
}

/* Rank 1 leaves messages where they are. */
static void lost(void)
{
	int x[3] = {0}, y;
	MPI_Comm c = named("left behind");
	if (rank == 0) {
		OK(MPI_Send(x, 1, MPI_INT, 1, 4, MPI_COMM_WORLD));
		OK(MPI_Send(x, 3, MPI_INT, 1, 6, c));
		OK(MPI_Send(x, 1, MPI_INT, 1, 7, c));
	} else if (rank == 1) {
		OK(MPI_Recv(&y, 1, MPI_INT, 0, 7, c, MPI_STATUS_IGNORE));
	}
	OK(MPI_Comm_free(&c));
}

static void freed(void)
{
	MPI_Comm c = named("gone"), stale = c;
	OK(MPI_Comm_free(&c));
	OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
	if (rank == 0)
		MPI_Barrier(stale);
}

static void overlap(void)
{
	int in[8] = {0}, out = 5, peer = !rank;
	MPI_Request r[2];
	if (rank > 1)
		return;
	OK(MPI_Irecv(in, 4, MPI_INT, peer, 1, MPI_COMM_WORLD, &r[0]));
	OK(MPI_Irecv(in + 3, 4, MPI_INT, peer, 2, MPI_COMM_WORLD, &r[1]));
	OK(MPI_Send(&out, 1, MPI_INT, peer, 1, MPI_COMM_WORLD));
	OK(MPI_Send(&out, 1, MPI_INT, peer, 2, MPI_COMM_WORLD));
	OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
}

/* An element of another type; then a structure of another order, and one that is only begun. */
static void types(void)
{
	struct {
		int i;
		float f;
	} x = {1, 2}, y;
	float f = 1;
	int i;
	MPI_Datatype one, other, kind[2] = {MPI_INT, MPI_FLOAT}, swapped[2] = {MPI_FLOAT, MPI_INT};
	MPI_Aint at[2] = {0, 4};
	int length[2] = {1, 1};
	MPI_Request r;
	MPI_Comm c = named("types");
	OK(MPI_Type_create_struct(2, length, at, kind, &one));
	OK(MPI_Type_create_struct(2, length, at, swapped, &other));
	OK(MPI_Type_commit(&one));
	OK(MPI_Type_commit(&other));
	if (rank == 0) {
		OK(MPI_Send(&f, 1, MPI_FLOAT, 1, 1, c));
		OK(MPI_Send(&x, 1, one, 1, 2, c));
		OK(MPI_Ssend(&x, 1, one, 1, 3, c));
		OK(MPI_Send(&i, 1, MPI_INT, 1, 4, c)); /* right: the beginning */
		OK(MPI_Send_init(&f, 1, MPI_FLOAT, 1, 5, c, &r));
		OK(MPI_Start(&r));
		OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
		OK(MPI_Request_free(&r));
	} else if (rank == 1) {
		OK(MPI_Recv(&i, 1, MPI_INT, 0, 1, c, MPI_STATUS_IGNORE));
		OK(MPI_Irecv(&y, 1, other, 0, 2, c, &r));
		OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
		OK(MPI_Recv(&y, 1, one, MPI_ANY_SOURCE, MPI_ANY_TAG, c, MPI_STATUS_IGNORE));
		OK(MPI_Recv(&y, 1, one, 0, 4, c, MPI_STATUS_IGNORE));
		OK(MPI_Recv_init(&i, 1, MPI_INT, 0, 5, c, &r));
		OK(MPI_Start(&r));
		OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
		OK(MPI_Request_free(&r));
	}
	OK(MPI_Type_free(&one));
	OK(MPI_Type_free(&other));
	OK(MPI_Comm_free(&c));
}

static void changed(void)
{
	int in, out = 5;
	MPI_Request r;
	if (rank == 0) {
		OK(MPI_Isend(&out, 1, MPI_INT, 1, 9, MPI_COMM_WORLD, &r));
		out = 6;
		OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
	} else if (rank == 1) {
		OK(MPI_Recv(&in, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	}
}

/* Another root; then another operation; then another order, which never ends. */
static void roots(void)
{
	int x = 0;
	OK(MPI_Bcast(&x, 1, MPI_INT, rank == 0 ? 1 : 0, named("roots")));
}

static void operations(void)
{
	int x = 1, y;
	MPI_Request r;
	MPI_Comm c = named("operations");
	OK(MPI_Allreduce(&x, &y, 1, MPI_INT, rank ? MPI_SUM : MPI_MAX, c));
	OK(MPI_Allreduce_init(&x, &y, 1, rank ? MPI_INT : MPI_FLOAT, MPI_MAX, c, MPI_INFO_NULL,
			      &r));
	OK(MPI_Request_free(&r));
}

static void order(void)
{
	int x = 1, y;
	MPI_Comm c = named("order");
	if (rank == 0)
		OK(MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, c));
	else
		OK(MPI_Barrier(c));
	OK(MPI_Barrier(c));
	OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* The same two calls in another order; errors are returned, and the program goes on to its end. */
static void crossed(void)
{
	int x = 1, y = 0;
	MPI_Request r;
	MPI_Comm c = named("crossed");
	OK(MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN));
	if (rank)
		(void)MPI_Barrier(c);
	(void)MPI_Iallreduce(&x, &y, 1, MPI_INT, MPI_BAND, c, &r);
	if (!rank)
		(void)MPI_Barrier(c);
	(void)MPI_Wait(&r, MPI_STATUS_IGNORE);
	OK(MPI_Comm_free(&c));
}

/* A constructor where the others are in a collective, or in another constructor; these do not end. */
static void makes(void)
{
	MPI_Comm c = named("makes"), made;
	if (rank == 0)
		OK(MPI_Comm_split(c, 0, 0, &made));
	else
		OK(MPI_Barrier(c));
	OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void makes_window(void)
{
	MPI_Comm c = named("makes"), made;
	MPI_Win win;
	MPI_Request r;
	if (rank == 0)
		OK(MPI_Win_create_dynamic(MPI_INFO_NULL, c, &win));
	else
		OK(MPI_Comm_idup(c, &made, &r));
	OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* Each constructor, on a communicator and on the world beside collectives: nothing is wrong. */
static void makes_right(void)
{
	MPI_Comm c = named("right"), made[8], half, inter = halves("both sides", &half);
	int periodic = 1, remain = 1, next = (rank + 1) % size, degree = 1, n = 0;
	MPI_Request r;
	MPI_Win win;
	MPI_Group all;
	MPI_Info info;
	OK(MPI_Comm_free(&half));
	OK(MPI_Comm_group(c, &all));
	OK(MPI_Info_create(&info));
	for (int i = 0; i < 3; i++, n = 0) {
		OK(MPI_Barrier(c));
		OK(MPI_Comm_idup_with_info(c, info, &made[n++], &r));
		OK(MPI_Comm_split(c, rank % 2, 0, &made[n++]));
		OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
		OK(MPI_Comm_split_type(c, MPI_COMM_TYPE_SHARED, 0, info, &made[n++]));
		OK(MPI_Comm_create(c, all, &made[n++]));
		OK(MPI_Cart_create(c, 1, &size, &periodic, 1, &made[n++]));
		OK(MPI_Cart_sub(made[n - 1], &remain, &made[n]));
		n++;
		OK(MPI_Dist_graph_create(c, 1, &rank, &degree, &next, MPI_UNWEIGHTED, info, 0,
					 &made[n++]));
		OK(MPI_Intercomm_merge(inter, rank < size / 2, &made[n++]));
		OK(MPI_Win_create_dynamic(info, c, &win));
		OK(MPI_Win_free(&win));
		OK(MPI_Comm_dup(inter, &half));
		OK(MPI_Comm_free(&half));
		while (n)
			OK(MPI_Comm_free(&made[--n]));
	}
	OK(MPI_Info_free(&info));
	OK(MPI_Group_free(&all));
	OK(MPI_Comm_disconnect(&inter));
	OK(MPI_Comm_free(&c));
}

/* ---- for weft doctor -------------------------------------------------------------------------- */

static void ring(void)
{
	int x;
	MPI_Recv(&x, 1, MPI_INT, (rank + 1) % size, 7, named("the ring"), MPI_STATUS_IGNORE);
}

static void absent(void)
{
	int x;
	if (rank == 0)
		MPI_Barrier(MPI_COMM_WORLD);
	else
		MPI_Recv(&x, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Rank 0 computes until it is told to go on: no deadlock. */
/* Each rank waits for a message of one of the others, or of its left neighbour on another communicator. */
static void any_ring(void)
{
	MPI_Request r[3] = {MPI_REQUEST_NULL};
	int x[2], which;
	MPI_Comm c = named("the ring");
	OK(MPI_Irecv(&x[0], 1, MPI_INT, (rank + 1) % size, 7, c, &r[1]));
	OK(MPI_Irecv(&x[1], 1, MPI_INT, (rank + size - 1) % size, 8, MPI_COMM_WORLD, &r[2]));
	OK(MPI_Waitany(3, r, &which, MPI_STATUS_IGNORE));
}

/* The same, but rank 1 has a request that rank 0, which reads, will complete: the others follow. */
static void any_late(void)
{
	MPI_Request r[2];
	MPI_Status st[2];
	char c;
	int x[2], which[2], n;
	if (rank == 0)
		CHECK(read(0, &c, 1) >= 0);
	OK(MPI_Irecv(&x[0], 1, MPI_INT, (rank + size - 1) % size, 7, MPI_COMM_WORLD, &r[0]));
	OK(MPI_Irecv(&x[1], 1, MPI_INT, rank == 1 ? 0 : 1, 8, MPI_COMM_WORLD, &r[1]));
	if (rank == 0)
		OK(MPI_Send(&rank, 1, MPI_INT, 1, 8, MPI_COMM_WORLD));
	OK(MPI_Waitsome(2, r, &n, which, st));
	for (int i = 0; rank == 1 && i < size; i++)
		if (i != rank)
			OK(MPI_Send(&rank, 1, MPI_INT, i, 8, MPI_COMM_WORLD));
	OK(MPI_Send(&rank, 1, MPI_INT, (rank + 1) % size, 7, MPI_COMM_WORLD));
	OK(MPI_Waitall(2, r, st));
}

static void late(void)
{
	char c;
	int x = 0;
	if (rank == 0)
		CHECK(read(0, &c, 1) >= 0);
	OK(MPI_Bcast(&x, 1, MPI_INT, 0, MPI_COMM_WORLD));
}

/* The same, while a rank that has done its part of a collective waits in the next one. */
static void passed(void)
{
	char c;
	int x = 1, sum;
	if (rank == 0)
		CHECK(read(0, &c, 1) >= 0);
	OK(MPI_Reduce(&x, &sum, 1, MPI_INT, MPI_SUM, 1, MPI_COMM_WORLD));
	OK(MPI_Barrier(MPI_COMM_WORLD));
}

static MPI_Win window(const char *name, int **base_p)
{
	MPI_Win win;
	OK(MPI_Win_allocate(100 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, base_p,
			    &win));
	OK(MPI_Win_set_name(win, name));
	return win;
}

/* Much is accessed at once here, and nothing conflicts. */
static void window_right(void)
{
	int *base, v[100] = {0}, one = 1, next = (rank + 1) % size;
	MPI_Win win = window("fine", &base);
	MPI_Datatype odd;
	OK(MPI_Type_vector(10, 1, size, MPI_INT, &odd));
	OK(MPI_Type_commit(&odd));
	for (int i = 0; i < 3; i++) {
		OK(MPI_Win_fence(0, win));
		for (int r = 0; r < size; r++) /* the ranks' elements lie between each other */
			OK(MPI_Put(v, 10, MPI_INT, r, rank, 1, odd, win));
		OK(MPI_Accumulate(&one, 1, MPI_INT, next, 99, 1, MPI_INT, MPI_SUM, win));
		OK(MPI_Accumulate(&one, 1, MPI_INT, 0, 98, 1, MPI_INT, MPI_SUM, win));
		OK(MPI_Fetch_and_op(NULL, v, MPI_INT, 0, 98, MPI_NO_OP, win));
		OK(MPI_Win_fence(0, win));
		OK(MPI_Get(v, 50, MPI_INT, next, 0, 50, MPI_INT, win));
		OK(MPI_Get(v + 50, 50, MPI_INT, next, 20, 50, MPI_INT, win));
	}
	OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
	OK(MPI_Win_lock_all(0, win));
	for (int i = 0; i < 3; i++) {
		OK(MPI_Put(v, 1, MPI_INT, next, 0, 1, MPI_INT, win));
		OK(MPI_Win_flush(next, win));
		OK(MPI_Get(v, 1, MPI_INT, next, 0, 1, MPI_INT, win));
		OK(MPI_Win_flush_local(next, win));
		OK(MPI_Compare_and_swap(&one, v, v + 1, MPI_INT, 0, 98, win));
		OK(MPI_Accumulate(&one, 1, MPI_INT, 0, 98, 1, MPI_INT, MPI_SUM, win));
	}
	OK(MPI_Win_unlock_all(win));
	OK(MPI_Type_free(&odd));
	OK(MPI_Win_free(&win));
}

/* Ranks 0 and 1 at the same bytes of rank 1 between two fences; then with two operations on one element. */
static void window_fence(void)
{
	int *base, v[20] = {0};
	MPI_Win win = window("table", &base);
	OK(MPI_Win_fence(0, win));
	if (rank == 0)
		OK(MPI_Put(v, 10, MPI_INT, 1, 0, 10, MPI_INT, win));
	else if (rank == 1)
		OK(MPI_Get(v, 5, MPI_INT, 1, 8, 5, MPI_INT, win));
	OK(MPI_Win_fence(0, win));
	OK(MPI_Accumulate(v, 1, MPI_INT, 0, 50, 1, MPI_INT, rank ? MPI_SUM : MPI_PROD, win));
	OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
	OK(MPI_Win_free(&win));
}

/* Two origins put to one element of rank 0, and to their own ones. */
static void window_start(void)
{
	int *base, v[2] = {0};
	MPI_Win win = window("posted", &base);
	MPI_Group all;
	OK(MPI_Win_get_group(win, &all));
	for (int i = 0; i < 2; i++) {
		OK(MPI_Win_post(all, 0, win));
		OK(MPI_Win_start(all, 0, win));
		for (int r = 0; r < size; r++)
			OK(MPI_Put(v, 1, MPI_INT, r, 10 + rank, 1, MPI_INT, win));
		if (i)
			OK(MPI_Put(v, 1, MPI_INT, 0, 60, 1, MPI_INT, win));
		OK(MPI_Win_complete(win));
		int over = 0;
		while (i && !over)
			OK(MPI_Win_test(win, &over));
		if (!i)
			OK(MPI_Win_wait(win));
	}
	OK(MPI_Group_free(&all));
	OK(MPI_Win_free(&win));
}

static void window_lock(void)
{
	int *base, v[20] = {0};
	MPI_Win win = window("", &base);
	if (rank == 1) {
		OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
		OK(MPI_Put(v, 4, MPI_INT, 0, 10, 4, MPI_INT, win));
		OK(MPI_Accumulate(v, 1, MPI_INT, 0, 13, 1, MPI_INT, MPI_SUM, win));
		OK(MPI_Win_unlock(0, win));
	}
	OK(MPI_Win_free(&win));
}

/* Rank 0 in a fence, the others elsewhere. */
static void window_absent(void)
{
	int *base;
	MPI_Win win = window("table", &base);
	if (rank == 0)
		OK(MPI_Win_fence(0, win));
	else
		OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* The holder of a lock waits for those that want it. */
static void window_held(void)
{
	int *base;
	MPI_Win win = window("table", &base);
	if (rank == 0)
		OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win));
	OK(MPI_Barrier(MPI_COMM_WORLD));
	if (rank == 0) {
		OK(MPI_Barrier(MPI_COMM_WORLD));
		OK(MPI_Win_unlock(1, win));
	} else {
		OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win));
		OK(MPI_Put(base, 1, MPI_INT, 1, 0, 1, MPI_INT, win));
		OK(MPI_Win_unlock(1, win));
		OK(MPI_Barrier(MPI_COMM_WORLD));
	}
	OK(MPI_Win_free(&win));
}

/* Ranks 0 and 1 each hold the lock that the other one wants, of two windows. */
static void window_crossed(void)
{
	int *base;
	MPI_Win a = window("left", &base), b = window("right", &base);
	if (rank < 2) {
		OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, rank ? b : a));
		OK(MPI_Sendrecv(&rank, 0, MPI_INT, !rank, 1, &size, 0, MPI_INT, !rank, 1,
				MPI_COMM_WORLD, MPI_STATUS_IGNORE));
		OK(MPI_Win_lock(rank ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, 0, 0, rank ? a : b));
	}
	OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* Blocks without elements match, whatever their datatypes. */
static void empty_blocks(void)
{
	MPI_Comm c = named("empty");
	MPI_Datatype none;
	int one[MOST], zero[MOST] = {0};
	OK(MPI_Type_contiguous(0, MPI_DOUBLE, &none));
	OK(MPI_Type_commit(&none));
	for (int i = 0; i < size; i++)
		one[i] = 1;
	OK(MPI_Alltoallv(to_all, one, zero, none, of_all, zero, zero, MPI_INT, c));
	OK(MPI_Alltoallv(to_all, zero, zero, MPI_INT, of_all, one, zero, none, c));
	OK(MPI_Gather(to_all, 1, none, of_all, 0, MPI_FLOAT, 0, c));
	OK(MPI_Type_free(&none));
	OK(MPI_Comm_free(&c));
}

/* Rank 1 calls a collective that ends without rank 0, which does not call it. */
static void one_more(void)
{
	int v = 1;
	if (rank == 1)
		OK(MPI_Bcast(&v, 1, MPI_INT, 1, MPI_COMM_WORLD));
}

/* Rank 0 waits for the others in a collective, and they are in MPI_Finalize. */
static void one_waits(void)
{
	int v = 1;
	if (rank == 0)
		OK(MPI_Bcast(&v, 1, MPI_INT, 1, MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} all[] = {{"right", right},
		   {"blocks_right", blocks_right},
		   {"blocks_types", blocks_types},
		   {"blocks_amounts", blocks_amounts},
		   {"blocks_order", blocks_order},
		   {"partitions", partitions},
		   {"leaks", leaks},
		   {"lost", lost},
		   {"freed", freed},
		   {"overlap", overlap},
		   {"changed", changed},
		   {"types", types},
		   {"roots", roots},
		   {"order", order},
		   {"ring", ring},
		   {"operations", operations},
		   {"absent", absent},
		   {"late", late},
		   {"any_ring", any_ring},
		   {"any_late", any_late},
		   {"crossed", crossed},
		   {"makes", makes},
		   {"makes_window", makes_window},
		   {"makes_right", makes_right},
		   {"window_right", window_right},
		   {"window_fence", window_fence},
		   {"window_lock", window_lock},
		   {"window_start", window_start},
		   {"window_absent", window_absent},
		   {"window_held", window_held},
		   {"window_crossed", window_crossed},
		   {"empty_blocks", empty_blocks},
		   {"one_more", one_more},
		   {"one_waits", one_waits},
		   {"passed", passed}};
	const char *name = argc > 1 ? argv[1] : "right";
	test_start(&argc, &argv, MPI_THREAD_SINGLE);
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		if (strcmp(all[i].name, name) == 0)
			all[i].run();
	return test_end();
}
