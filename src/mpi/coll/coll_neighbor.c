/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_neighbor.c - arguments of neighbourhood collectives, on communicators with a topology. */
#include "mpi/coll/coll_call.h"
#include "mpi/topo/topo.h"

/* The ranks of the neighbours, from the topology. */
static int take_neighbors(struct weft_mpi_coll_call *k)
{
	const struct weft_mpi_topo *t = k->comm->topo;
	if (!t)
		return weft_mpi_err(MPI_ERR_TOPOLOGY, "the communicator has no topology");
	k->a.sources = t->sources_n;
	k->a.source = t->sources;
	k->a.destinations = t->destinations_n;
	k->a.destination = t->destinations;
	k->a.mirrored = t->kind == MPI_CART;
	return MPI_SUCCESS;
}

/* The block, or the first of the blocks, that this rank sends. */
static int take_send_block(struct weft_mpi_coll_call *k, const void *buf, MPI_Count count,
			   MPI_Datatype type)
{
	k->a.sbuf = buf;
	k->a.scount = (size_t)count;
	return weft_mpi_coll_buf("sendbuf", buf, k->a.destinations ? count : 0, type, &k->a.stype);
}

static int take_recv_places(struct weft_mpi_coll_call *k, void *buf, MPI_Count count,
			    MPI_Datatype type)
{
	k->a.rbuf = buf;
	k->a.rcount = (size_t)count;
	return weft_mpi_coll_buf("recvbuf", buf, k->a.sources ? count : 0, type, &k->a.rtype);
}

int weft_mpi_Neighbor_allgather_args(struct weft_mpi_coll_call *k, const void *sendbuf,
				     MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
				     MPI_Count recvcount, MPI_Datatype recvtype)
{
	int err = take_neighbors(k);
	if (err)
		return err;
	err = take_send_block(k, sendbuf, sendcount, sendtype);
	return err ? err : take_recv_places(k, recvbuf, recvcount, recvtype);
}

int weft_mpi_Neighbor_allgatherv_args(struct weft_mpi_coll_call *k, const void *sendbuf,
				      MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
				      const MPI_Count recvcounts[], const MPI_Aint displs[],
				      MPI_Datatype recvtype)
{
	int err = take_neighbors(k);
	if (err)
		return err;
	err = take_send_block(k, sendbuf, sendcount, sendtype);
	k->a.rbuf = recvbuf;
	k->a.rcounts = recvcounts;
	k->a.rdispls = displs;
	return err ? err
		   : weft_mpi_coll_bufs("recvbuf", recvbuf, recvcounts, k->a.rdispls, k->a.sources,
					recvtype, &k->a.rtype);
}

int weft_mpi_Neighbor_alltoall_args(struct weft_mpi_coll_call *k, const void *sendbuf,
				    MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
				    MPI_Count recvcount, MPI_Datatype recvtype)
{
	int err = take_neighbors(k);
	if (err)
		return err;
	err = take_send_block(k, sendbuf, sendcount, sendtype);
	return err ? err : take_recv_places(k, recvbuf, recvcount, recvtype);
}

int weft_mpi_Neighbor_alltoallv_args(struct weft_mpi_coll_call *k, const void *sendbuf,
				     const MPI_Count sendcounts[], const MPI_Aint sdispls[],
				     MPI_Datatype sendtype, void *recvbuf,
				     const MPI_Count recvcounts[], const MPI_Aint rdispls[],
				     MPI_Datatype recvtype)
{
	int err = take_neighbors(k);
	if (err)
		return err;
	k->a.sbuf = sendbuf;
	k->a.scounts = sendcounts;
	k->a.sdispls = sdispls;
	k->a.rbuf = recvbuf;
	k->a.rcounts = recvcounts;
	k->a.rdispls = rdispls;
	err = weft_mpi_coll_bufs("sendbuf", sendbuf, sendcounts, k->a.sdispls, k->a.destinations,
				 sendtype, &k->a.stype);
	return err ? err
		   : weft_mpi_coll_bufs("recvbuf", recvbuf, recvcounts, k->a.rdispls, k->a.sources,
					recvtype, &k->a.rtype);
}

int weft_mpi_Neighbor_alltoallw_args(struct weft_mpi_coll_call *k, const void *sendbuf,
				     const MPI_Count sendcounts[], const MPI_Aint sdispls[],
				     const MPI_Datatype sendtypes[], void *recvbuf,
				     const MPI_Count recvcounts[], const MPI_Aint rdispls[],
				     const MPI_Datatype recvtypes[])
{
	int err = take_neighbors(k);
	if (err)
		return err;
	k->a.sbuf = sendbuf;
	k->a.scounts = sendcounts;
	k->a.sdispls = sdispls;
	k->a.rbuf = recvbuf;
	k->a.rcounts = recvcounts;
	k->a.rdispls = rdispls;
	err = weft_mpi_coll_bufs_w(k, true, sendbuf, sendcounts, sdispls, sendtypes,
				   k->a.destinations);
	return err ? err
		   : weft_mpi_coll_bufs_w(k, false, recvbuf, recvcounts, rdispls, recvtypes,
					  k->a.sources);
}
