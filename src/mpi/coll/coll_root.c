/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_root.c - arguments of collectives with a root that move data: bcast, gather(v), scatter(v);
 * and barrier.
 */
#include "mpi/coll/coll_call.h"

/* Is this rank the root, on either kind of communicator? */
static bool is_root(const struct weft_mpi_coll_call *k, int root)
{
	return root == (k->comm->inter ? MPI_ROOT : k->comm->rank);
}

/* The block that this rank gives to a gather / gets from a scatter. */
static int one_block(struct weft_mpi_coll_call *k, int root, const void *buf, MPI_Count count,
		     MPI_Datatype type)
{
	if (root == MPI_PROC_NULL || k->a.in_place || (k->comm->inter && root == MPI_ROOT))
		return MPI_SUCCESS;
	k->a.sbuf = buf;
	k->a.scount = (size_t)count;
	return weft_mpi_coll_buf("sendbuf", buf, count, type, &k->a.stype);
}

static int one_place(struct weft_mpi_coll_call *k, int root, void *buf, MPI_Count count,
		     MPI_Datatype type)
{
	if (root == MPI_PROC_NULL || k->a.in_place || (k->comm->inter && root == MPI_ROOT))
		return MPI_SUCCESS;
	k->a.rbuf = buf;
	k->a.rcount = (size_t)count;
	return weft_mpi_coll_buf("recvbuf", buf, count, type, &k->a.rtype);
}

int weft_mpi_Barrier_args(struct weft_mpi_coll_call *k)
{
	return MPI_SUCCESS;
}

int weft_mpi_Bcast_args(struct weft_mpi_coll_call *k, void *buffer, MPI_Count count,
			MPI_Datatype datatype, int root)
{
	k->a.root = root;
	k->a.rbuf = buffer;
	k->a.rcount = (size_t)count;
	if (root != MPI_PROC_NULL)
		return weft_mpi_coll_buf("buffer", buffer, count, datatype, &k->a.rtype);
	k->a.rtype = &weft_data_type_elem[WEFT_B_BYTE];
	k->a.rcount = 0;
	return MPI_SUCCESS;
}

int weft_mpi_Gather_args(struct weft_mpi_coll_call *k, const void *sendbuf, MPI_Count sendcount,
			 MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
			 MPI_Datatype recvtype, int root)
{
	k->a.root = root;
	int err = MPI_SUCCESS;
	if (is_root(k, root)) {
		k->a.rbuf = recvbuf;
		k->a.rcount = (size_t)recvcount;
		err = weft_mpi_coll_buf("recvbuf", recvbuf, recvcount, recvtype, &k->a.rtype);
		if (!err)
			err = weft_mpi_coll_in_place(k, sendbuf);
	}
	return err ? err : one_block(k, root, sendbuf, sendcount, sendtype);
}

int weft_mpi_Gatherv_args(struct weft_mpi_coll_call *k, const void *sendbuf, MPI_Count sendcount,
			  MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[],
			  const MPI_Aint displs[], MPI_Datatype recvtype, int root)
{
	k->a.root = root;
	int err = MPI_SUCCESS;
	if (is_root(k, root)) {
		k->a.rbuf = recvbuf;
		k->a.rcounts = recvcounts;
		k->a.rdispls = displs;
		err = weft_mpi_coll_bufs("recvbuf", recvbuf, recvcounts, k->a.rdispls,
					 k->comm->peers, recvtype, &k->a.rtype);
		if (!err)
			err = weft_mpi_coll_in_place(k, sendbuf);
	}
	return err ? err : one_block(k, root, sendbuf, sendcount, sendtype);
}

int weft_mpi_Scatter_args(struct weft_mpi_coll_call *k, const void *sendbuf, MPI_Count sendcount,
			  MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
			  MPI_Datatype recvtype, int root)
{
	k->a.root = root;
	int err = MPI_SUCCESS;
	if (is_root(k, root)) {
		k->a.sbuf = sendbuf;
		k->a.scount = (size_t)sendcount;
		err = weft_mpi_coll_buf("sendbuf", sendbuf, sendcount, sendtype, &k->a.stype);
		if (!err)
			err = weft_mpi_coll_in_place(k, recvbuf);
	}
	return err ? err : one_place(k, root, recvbuf, recvcount, recvtype);
}

int weft_mpi_Scatterv_args(struct weft_mpi_coll_call *k, const void *sendbuf,
			   const MPI_Count sendcounts[], const MPI_Aint displs[],
			   MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
			   MPI_Datatype recvtype, int root)
{
	k->a.root = root;
	int err = MPI_SUCCESS;
	if (is_root(k, root)) {
		k->a.sbuf = sendbuf;
		k->a.scounts = sendcounts;
		k->a.sdispls = displs;
		err = weft_mpi_coll_bufs("sendbuf", sendbuf, sendcounts, k->a.sdispls,
					 k->comm->peers, sendtype, &k->a.stype);
		if (!err)
			err = weft_mpi_coll_in_place(k, recvbuf);
	}
	return err ? err : one_place(k, root, recvbuf, recvcount, recvtype);
}
