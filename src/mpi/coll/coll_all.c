/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_all.c - arguments of collectives without a root that move data: allgather, alltoall. */
#include "mpi/coll/coll_call.h"

/* The block, or the first of the blocks, that this rank gives. */
static int one_block(struct weft_mpi_coll_call *k, const void *buf, MPI_Count count,
		     MPI_Datatype type)
{
	int err = weft_mpi_coll_in_place(k, buf);
	if (err || k->a.in_place)
		return err;
	k->a.sbuf = buf;
	k->a.scount = (size_t)count;
	return weft_mpi_coll_buf("sendbuf", buf, count, type, &k->a.stype);
}

int weft_mpi_Allgather_args(struct weft_mpi_coll_call *k, const void *sendbuf, MPI_Count sendcount,
			    MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
			    MPI_Datatype recvtype)
{
	int err = one_block(k, sendbuf, sendcount, sendtype);
	k->a.rbuf = recvbuf;
	k->a.rcount = (size_t)recvcount;
	return err ? err : weft_mpi_coll_buf("recvbuf", recvbuf, recvcount, recvtype, &k->a.rtype);
}

int weft_mpi_Allgatherv_args(struct weft_mpi_coll_call *k, const void *sendbuf, MPI_Count sendcount,
			     MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[],
			     const MPI_Aint displs[], MPI_Datatype recvtype)
{
	int err = one_block(k, sendbuf, sendcount, sendtype);
	k->a.rbuf = recvbuf;
	k->a.rcounts = recvcounts;
	k->a.rdispls = displs;
	return err ? err
		   : weft_mpi_coll_bufs("recvbuf", recvbuf, recvcounts, k->a.rdispls,
					k->comm->peers, recvtype, &k->a.rtype);
}

int weft_mpi_Alltoall_args(struct weft_mpi_coll_call *k, const void *sendbuf, MPI_Count sendcount,
			   MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
			   MPI_Datatype recvtype)
{
	int err = one_block(k, sendbuf, sendcount, sendtype);
	k->a.rbuf = recvbuf;
	k->a.rcount = (size_t)recvcount;
	return err ? err : weft_mpi_coll_buf("recvbuf", recvbuf, recvcount, recvtype, &k->a.rtype);
}

int weft_mpi_Alltoallv_args(struct weft_mpi_coll_call *k, const void *sendbuf,
			    const MPI_Count sendcounts[], const MPI_Aint sdispls[],
			    MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[],
			    const MPI_Aint rdispls[], MPI_Datatype recvtype)
{
	int n = k->comm->peers;
	int err = weft_mpi_coll_in_place(k, sendbuf);
	if (!err && !k->a.in_place) {
		k->a.sbuf = sendbuf;
		k->a.scounts = sendcounts;
		k->a.sdispls = sdispls;
		err = weft_mpi_coll_bufs("sendbuf", sendbuf, sendcounts, k->a.sdispls, n, sendtype,
					 &k->a.stype);
	}
	k->a.rbuf = recvbuf;
	k->a.rcounts = recvcounts;
	k->a.rdispls = rdispls;
	return err ? err
		   : weft_mpi_coll_bufs("recvbuf", recvbuf, recvcounts, k->a.rdispls, n, recvtype,
					&k->a.rtype);
}

int weft_mpi_Alltoallw_args(struct weft_mpi_coll_call *k, const void *sendbuf,
			    const MPI_Count sendcounts[], const MPI_Aint sdispls[],
			    const MPI_Datatype sendtypes[], void *recvbuf,
			    const MPI_Count recvcounts[], const MPI_Aint rdispls[],
			    const MPI_Datatype recvtypes[])
{
	int n = k->comm->peers;
	int err = weft_mpi_coll_in_place(k, sendbuf);
	if (!err && !k->a.in_place) {
		k->a.sbuf = sendbuf;
		k->a.scounts = sendcounts;
		k->a.sdispls = sdispls;
		err = weft_mpi_coll_bufs_w(k, true, sendbuf, sendcounts, sdispls, sendtypes, n);
	}
	k->a.rbuf = recvbuf;
	k->a.rcounts = recvcounts;
	k->a.rdispls = rdispls;
	return err ? err
		   : weft_mpi_coll_bufs_w(k, false, recvbuf, recvcounts, rdispls, recvtypes, n);
}
