/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_all.c - collectives without a root that move data: allgather(v), alltoall(v, w). */
#include "mpi/coll_call.h"

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

/* ---- MPI_Allgather ------------------------------------------------------------------------- */

static int allgather_args(struct weft_mpi_coll_call *k, const void *sendbuf, MPI_Count sendcount,
			  MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
			  MPI_Datatype recvtype, MPI_Comm comm)
{
	weft_mpi_coll_open(k, WEFT_COLL_ALLGATHER, comm);
	int err = one_block(k, sendbuf, sendcount, sendtype);
	k->a.rbuf = recvbuf;
	k->a.rcount = (size_t)recvcount;
	return err ? err : weft_mpi_coll_buf("recvbuf", recvbuf, recvcount, recvtype, &k->a.rtype);
}

int weft_mpi_Allgather(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
		       void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
	struct weft_mpi_coll_call k;
	int err = allgather_args(&k, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
				 comm);
	return err ? weft_mpi_coll_refuse(&k, err) : weft_mpi_coll_run(&k);
}

int weft_mpi_Iallgather(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
			void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm,
			MPI_Request *request)
{
	struct weft_mpi_coll_call k;
	int err = allgather_args(&k, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
				 comm);
	return err ? weft_mpi_coll_refuse(&k, err) : weft_mpi_coll_start(&k, request);
}

int weft_mpi_Allgather_init(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
			    void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
			    MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	struct weft_mpi_coll_call k;
	int err = allgather_args(&k, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
				 comm);
	return err ? weft_mpi_coll_refuse(&k, err) : weft_mpi_coll_init(&k, request);
}

/* ---- MPI_Allgatherv ------------------------------------------------------------------------ */

static int allgatherv_args(struct weft_mpi_coll_call *k, const void *sendbuf, MPI_Count sendcount,
			   MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[],
			   const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm)
{
	weft_mpi_coll_open(k, WEFT_COLL_ALLGATHERV, comm);
	int err = one_block(k, sendbuf, sendcount, sendtype);
	k->a.rbuf = recvbuf;
	k->a.rcounts = recvcounts;
	k->a.rdispls = displs;
	return err ? err
		   : weft_mpi_coll_bufs("recvbuf", recvbuf, recvcounts, k->comm->peers, recvtype,
					&k->a.rtype);
}

int weft_mpi_Allgatherv(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
			void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[],
			MPI_Datatype recvtype, MPI_Comm comm)
{
	struct weft_mpi_coll_call k;
	int err = allgatherv_args(&k, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs,
				  recvtype, comm);
	return err ? weft_mpi_coll_refuse(&k, err) : weft_mpi_coll_run(&k);
}

int weft_mpi_Iallgatherv(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
			 void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[],
			 MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request)
{
	struct weft_mpi_coll_call k;
	int err = allgatherv_args(&k, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs,
				  recvtype, comm);
	return err ? weft_mpi_coll_refuse(&k, err) : weft_mpi_coll_start(&k, request);
}

int weft_mpi_Allgatherv_init(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
			     void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[],
			     MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
			     MPI_Request *request)
{
	struct weft_mpi_coll_call k;
	int err = allgatherv_args(&k, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs,
				  recvtype, comm);
	return err ? weft_mpi_coll_refuse(&k, err) : weft_mpi_coll_init(&k, request);
}

/* ---- MPI_Alltoall -------------------------------------------------------------------------- */

static int alltoall_args(struct weft_mpi_coll_call *k, const void *sendbuf, MPI_Count sendcount,
			 MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
			 MPI_Datatype recvtype, MPI_Comm comm)
{
	weft_mpi_coll_open(k, WEFT_COLL_ALLTOALL, comm);
	int err = one_block(k, sendbuf, sendcount, sendtype);
	k->a.rbuf = recvbuf;
	k->a.rcount = (size_t)recvcount;
	return err ? err : weft_mpi_coll_buf("recvbuf", recvbuf, recvcount, recvtype, &k->a.rtype);
}

int weft_mpi_Alltoall(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
		      void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
	struct weft_mpi_coll_call k;
	int err =
		alltoall_args(&k, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
	return err ? weft_mpi_coll_refuse(&k, err) : weft_mpi_coll_run(&k);
}

int weft_mpi_Ialltoall(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
		       void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm,
		       MPI_Request *request)
{
	struct weft_mpi_coll_call k;
	int err =
		alltoall_args(&k, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
	return err ? weft_mpi_coll_refuse(&k, err) : weft_mpi_coll_start(&k, request);
}

int weft_mpi_Alltoall_init(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
			   void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm,
			   MPI_Info info, MPI_Request *request)
{
	struct weft_mpi_coll_call k;
	int err =
		alltoall_args(&k, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
	return err ? weft_mpi_coll_refuse(&k, err) : weft_mpi_coll_init(&k, request);
}

/* ---- MPI_Alltoallv ------------------------------------------------------------------------- */

static int alltoallv_args(struct weft_mpi_coll_call *k, const void *sendbuf,
			  const MPI_Count sendcounts[], const MPI_Aint sdispls[],
			  MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[],
			  const MPI_Aint rdispls[], MPI_Datatype recvtype, MPI_Comm comm)
{
	weft_mpi_coll_open(k, WEFT_COLL_ALLTOALLV, comm);
	int n = k->comm->peers;
	int err = weft_mpi_coll_in_place(k, sendbuf);
	if (!err && !k->a.in_place) {
		k->a.sbuf = sendbuf;
		k->a.scounts = sendcounts;
		k->a.sdispls = sdispls;
		err = weft_mpi_coll_bufs("sendbuf", sendbuf, sendcounts, n, sendtype, &k->a.stype);
	}
	k->a.rbuf = recvbuf;
	k->a.rcounts = recvcounts;
	k->a.rdispls = rdispls;
	return err ? err
		   : weft_mpi_coll_bufs("recvbuf", recvbuf, recvcounts, n, recvtype, &k->a.rtype);
}

int weft_mpi_Alltoallv(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
		       MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[],
		       const MPI_Aint rdispls[], MPI_Datatype recvtype, MPI_Comm comm)
{
	struct weft_mpi_coll_call k;
	int err = alltoallv_args(&k, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts,
				 rdispls, recvtype, comm);
	return err ? weft_mpi_coll_refuse(&k, err) : weft_mpi_coll_run(&k);
}

int weft_mpi_Ialltoallv(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
			MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[],
			const MPI_Aint rdispls[], MPI_Datatype recvtype, MPI_Comm comm,
			MPI_Request *request)
{
	struct weft_mpi_coll_call k;
	int err = alltoallv_args(&k, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts,
				 rdispls, recvtype, comm);
	return err ? weft_mpi_coll_refuse(&k, err) : weft_mpi_coll_start(&k, request);
}

int weft_mpi_Alltoallv_init(const void *sendbuf, const MPI_Count sendcounts[],
			    const MPI_Aint sdispls[], MPI_Datatype sendtype, void *recvbuf,
			    const MPI_Count recvcounts[], const MPI_Aint rdispls[],
			    MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
			    MPI_Request *request)
{
	struct weft_mpi_coll_call k;
	int err = alltoallv_args(&k, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts,
				 rdispls, recvtype, comm);
	return err ? weft_mpi_coll_refuse(&k, err) : weft_mpi_coll_init(&k, request);
}

/* ---- MPI_Alltoallw ------------------------------------------------------------------------- */

static int alltoallw_args(struct weft_mpi_coll_call *k, const void *sendbuf,
			  const MPI_Count sendcounts[], const MPI_Aint sdispls[],
			  const MPI_Datatype sendtypes[], void *recvbuf,
			  const MPI_Count recvcounts[], const MPI_Aint rdispls[],
			  const MPI_Datatype recvtypes[], MPI_Comm comm)
{
	weft_mpi_coll_open(k, WEFT_COLL_ALLTOALLW, comm);
	int n = k->comm->peers;
	int err = weft_mpi_coll_in_place(k, sendbuf);
	if (!err && !k->a.in_place) {
		k->a.sbuf = sendbuf;
		k->a.scounts = sendcounts;
		k->a.sdispls = sdispls;
		err = weft_mpi_coll_bufs_w(k, true, sendbuf, sendcounts, sendtypes, n);
	}
	k->a.rbuf = recvbuf;
	k->a.rcounts = recvcounts;
	k->a.rdispls = rdispls;
	return err ? err : weft_mpi_coll_bufs_w(k, false, recvbuf, recvcounts, recvtypes, n);
}

int weft_mpi_Alltoallw(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
		       const MPI_Datatype sendtypes[], void *recvbuf, const MPI_Count recvcounts[],
		       const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm)
{
	struct weft_mpi_coll_call k;
	int err = alltoallw_args(&k, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts,
				 rdispls, recvtypes, comm);
	return err ? weft_mpi_coll_refuse(&k, err) : weft_mpi_coll_run(&k);
}

int weft_mpi_Ialltoallw(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
			const MPI_Datatype sendtypes[], void *recvbuf, const MPI_Count recvcounts[],
			const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm,
			MPI_Request *request)
{
	struct weft_mpi_coll_call k;
	int err = alltoallw_args(&k, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts,
				 rdispls, recvtypes, comm);
	return err ? weft_mpi_coll_refuse(&k, err) : weft_mpi_coll_start(&k, request);
}

int weft_mpi_Alltoallw_init(const void *sendbuf, const MPI_Count sendcounts[],
			    const MPI_Aint sdispls[], const MPI_Datatype sendtypes[], void *recvbuf,
			    const MPI_Count recvcounts[], const MPI_Aint rdispls[],
			    const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info,
			    MPI_Request *request)
{
	struct weft_mpi_coll_call k;
	int err = alltoallw_args(&k, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts,
				 rdispls, recvtypes, comm);
	return err ? weft_mpi_coll_refuse(&k, err) : weft_mpi_coll_init(&k, request);
}
