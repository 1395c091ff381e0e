/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * leftover.c - MPI_Finalize ends, with success, whatever a program has left behind: receives that
 * find no message, messages without a receive, requests without a wait, objects that
 * are not freed.
 */
#include "../mpi/mpitest.h"

#define LARGE (1 << 20)

static char small[64], large[LARGE], in[4][LARGE];

static int keep(MPI_Comm comm, int key, void *extra, void *value, void *copy_p, int *flag)
{
	(void)comm, (void)key, (void)extra, (void)value, (void)copy_p;
	*flag = 1;
	return MPI_SUCCESS;
}

static void add(void *a, void *b, int *n, MPI_Datatype *type)
{
	(void)a, (void)b, (void)n, (void)type;
}

static void objects(void)
{
	MPI_Comm comm, half;
	MPI_Group group;
	MPI_Datatype type, pair;
	MPI_Info info;
	MPI_Op op;
	int key;

	OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
	OK(MPI_Comm_split(comm, rank & 1, 0, &half));
	OK(MPI_Comm_group(half, &group));
	OK(MPI_Type_vector(3, 1, 2, MPI_INT, &type));
	OK(MPI_Type_commit(&type));
	OK(MPI_Type_contiguous(2, type, &pair));
	OK(MPI_Info_create(&info));
	OK(MPI_Info_set(info, "key", "value"));
	OK(MPI_Op_create(add, 1, &op));
	OK(MPI_Comm_create_keyval(keep, MPI_COMM_NULL_DELETE_FN, &key, NULL));
	OK(MPI_Comm_set_attr(comm, key, small));
}

/* To the next rank, from the one before; each in a tag of its own. */
static void messages(MPI_Comm comm)
{
	int next = (rank + 1) % size, before = (rank + size - 1) % size, flag = 0;
	MPI_Request lost;
	MPI_Message message;

	/* Matched, never waited for. */
	OK(MPI_Irecv(in[0], LARGE, MPI_BYTE, before, 1, comm, &lost));
	OK(MPI_Irecv(in[1], 64, MPI_BYTE, before, 2, comm, &lost));
	OK(MPI_Isend(large, LARGE, MPI_BYTE, next, 1, comm, &lost));
	OK(MPI_Isend(small, 64, MPI_BYTE, next, 2, comm, &lost));
	/* Never received. */
	OK(MPI_Isend(small, 64, MPI_BYTE, next, 3, comm, &lost));
	OK(MPI_Isend(large, LARGE, MPI_BYTE, next, 4, comm, &lost));
	OK(MPI_Issend(small, 64, MPI_BYTE, next, 5, comm, &lost));
	/* Never sent. */
	OK(MPI_Irecv(in[2], LARGE, MPI_BYTE, before, 6, comm, &lost));
	OK(MPI_Irecv(in[2], LARGE, MPI_BYTE, MPI_ANY_SOURCE, 7, comm, &lost));
	OK(MPI_Irecv(in[2], LARGE, MPI_BYTE, before, 8, comm, &lost));
	OK(MPI_Request_free(&lost));
	/* Never started; started and never matched. */
	OK(MPI_Send_init(small, 64, MPI_BYTE, next, 9, comm, &lost));
	OK(MPI_Recv_init(in[2], 64, MPI_BYTE, before, 10, comm, &lost));
	OK(MPI_Start(&lost));
	/* Taken, never received. */
	OK(MPI_Isend(large, LARGE, MPI_BYTE, next, 11, comm, &lost));
	OK(MPI_Improbe(before, 11, comm, &flag, &message, MPI_STATUS_IGNORE));
	OK(MPI_Isend(small, 64, MPI_BYTE, next, 12, comm, &lost));
	OK(MPI_Mprobe(before, 12, comm, &message, MPI_STATUS_IGNORE));
}

int main(int argc, char **argv)
{
	MPI_Comm dup;

	OK(MPI_Init(&argc, &argv));
	OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
	OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
	objects();
	messages(MPI_COMM_WORLD);
	messages(dup);
	OK(MPI_Finalize());
	return 0;
}
