/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_root.c - collectives with a root that move data: bcast, gather(v), scatter(v); and barrier.
 */
#include "mpi/coll_call.h"

/* Is this rank the root, on either kind of communicator? */
static bool roots(const struct weft_mpi_coll_call *k, int root)
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

/* ---- MPI_Barrier --------------------------------------------------------------------------- */

static int barrier_args(struct weft_mpi_coll_call *k, MPI_Comm comm)
{
	weft_mpi_coll_open(k, WEFT_COLL_BARRIER, comm);
	return MPI_SUCCESS;
}

int weft_mpi_Barrier(MPI_Comm comm)
{
	struct weft_mpi_coll_call k;
	int err = barrier_args(&k, comm);
	return err ? weft_mpi_coll_refuse(&k, err) : weft_mpi_coll_run(&k);
}

int weft_mpi_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
	struct weft_mpi_coll_call k;
	int err = barrier_args(&k, comm);
	return err ? weft_mpi_coll_refuse(&k, err) : weft_mpi_coll_start(&k, request);
}

int weft_mpi_Barrier_init(MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	struct weft_mpi_coll_call k;
	int err = barrier_args(&k, comm);
	return err ? weft_mpi_coll_refuse(&k, err) : weft_mpi_coll_init(&k, request);
}

/* ---- MPI_Bcast ----------------------------------------------------------------------------- */

static int bcast_args(struct weft_mpi_coll_call *k, void *buffer, MPI_Count count,
		      MPI_Datatype datatype, int root, MPI_Comm comm)
{
	weft_mpi_coll_open(k, WEFT_COLL_BCAST, comm);
	k->a.root = root;
	k->a.rbuf = buffer;
	k->a.rcount = (size_t)count;
	if (root != MPI_PROC_NULL)
		return weft_mpi_coll_buf("buffer", buffer, count, datatype, &k->a.rtype);
	k->a.rtype = &weft_type_elem[WEFT_B_BYTE];
	k->a.rcount = 0;
	return MPI_SUCCESS;
}

int weft_mpi_Bcast(void *buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
	struct weft_mpi_coll_call k;
	int err = bcast_args(&k, buffer, count, datatype, root, comm);
	return err ? weft_mpi_coll_refuse(&k, err) : weft_mpi_coll_run(&k);
}

int weft_mpi_Ibcast(void *buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm,
		    MPI_Request *request)
{
	struct weft_mpi_coll_call k;
	int err = bcast_args(&k, buffer, count, datatype, root, comm);
	return err ? weft_mpi_coll_refuse(&k, err) : weft_mpi_coll_start(&k, request);
}

int weft_mpi_Bcast_init(void *buffer, MPI_Count count, MPI_Datatype datatype, int root,
			MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	struct weft_mpi_coll_call k;
	int err = bcast_args(&k, buffer, count, datatype, root, comm);
	return err ? weft_mpi_coll_refuse(&k, err) : weft_mpi_coll_init(&k, request);
}

/* ---- MPI_Gather ---------------------------------------------------------------------------- */

static int gather_args(struct weft_mpi_coll_call *k, const void *sendbuf, MPI_Count sendcount,
		       MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		       MPI_Datatype recvtype, int root, MPI_Comm comm)
{
	weft_mpi_coll_open(k, WEFT_COLL_GATHER, comm);
	k->a.root = root;
	int err = MPI_SUCCESS;
	if (roots(k, root)) {
		k->a.rbuf = recvbuf;
		k->a.rcount = (size_t)recvcount;
		err = weft_mpi_coll_buf("recvbuf", recvbuf, recvcount, recvtype, &k->a.rtype);
		if (!err)
			err = weft_mpi_coll_in_place(k, sendbuf);
	}
	return err ? err : one_block(k, root, sendbuf, sendcount, sendtype);
}

int weft_mpi_Gather(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
		    MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
{
	struct weft_mpi_coll_call k;
	int err = gather_args(&k, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root,
			      comm);
	return err ? weft_mpi_coll_refuse(&k, err) : weft_mpi_coll_run(&k);
}

int weft_mpi_Igather(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
		     MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
		     MPI_Request *request)
{
	struct weft_mpi_coll_call k;
	int err = gather_args(&k, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root,
			      comm);
	return err ? weft_mpi_coll_refuse(&k, err) : weft_mpi_coll_start(&k, request);
}

int weft_mpi_Gather_init(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
			 void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root,
			 MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	struct weft_mpi_coll_call k;
	int err = gather_args(&k, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root,
			      comm);
	return err ? weft_mpi_coll_refuse(&k, err) : weft_mpi_coll_init(&k, request);
}

/* ---- MPI_Gatherv --------------------------------------------------------------------------- */

static int gatherv_args(struct weft_mpi_coll_call *k, const void *sendbuf, MPI_Count sendcount,
			MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[],
			const MPI_Aint displs[], MPI_Datatype recvtype, int root, MPI_Comm comm)
{
	weft_mpi_coll_open(k, WEFT_COLL_GATHERV, comm);
	k->a.root = root;
	int err = MPI_SUCCESS;
	if (roots(k, root)) {
		k->a.rbuf = recvbuf;
		k->a.rcounts = recvcounts;
		k->a.rdispls = displs;
		err = weft_mpi_coll_bufs("recvbuf", recvbuf, recvcounts, k->comm->peers, recvtype,
					 &k->a.rtype);
		if (!err)
			err = weft_mpi_coll_in_place(k, sendbuf);
	}
	return err ? err : one_block(k, root, sendbuf, sendcount, sendtype);
}

int weft_mpi_Gatherv(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
		     const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype,
		     int root, MPI_Comm comm)
{
	struct weft_mpi_coll_call k;
	int err = gatherv_args(&k, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs,
			       recvtype, root, comm);
	return err ? weft_mpi_coll_refuse(&k, err) : weft_mpi_coll_run(&k);
}

int weft_mpi_Igatherv(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
		      void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[],
		      MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request)
{
	struct weft_mpi_coll_call k;
	int err = gatherv_args(&k, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs,
			       recvtype, root, comm);
	return err ? weft_mpi_coll_refuse(&k, err) : weft_mpi_coll_start(&k, request);
}

int weft_mpi_Gatherv_init(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
			  void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[],
			  MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
			  MPI_Request *request)
{
	struct weft_mpi_coll_call k;
	int err = gatherv_args(&k, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs,
			       recvtype, root, comm);
	return err ? weft_mpi_coll_refuse(&k, err) : weft_mpi_coll_init(&k, request);
}

/* ---- MPI_Scatter --------------------------------------------------------------------------- */

static int scatter_args(struct weft_mpi_coll_call *k, const void *sendbuf, MPI_Count sendcount,
			MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
			MPI_Datatype recvtype, int root, MPI_Comm comm)
{
	weft_mpi_coll_open(k, WEFT_COLL_SCATTER, comm);
	k->a.root = root;
	int err = MPI_SUCCESS;
	if (roots(k, root)) {
		k->a.sbuf = sendbuf;
		k->a.scount = (size_t)sendcount;
		err = weft_mpi_coll_buf("sendbuf", sendbuf, sendcount, sendtype, &k->a.stype);
		if (!err)
			err = weft_mpi_coll_in_place(k, recvbuf);
	}
	return err ? err : one_place(k, root, recvbuf, recvcount, recvtype);
}

int weft_mpi_Scatter(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
		     MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
{
	struct weft_mpi_coll_call k;
	int err = scatter_args(&k, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root,
			       comm);
	return err ? weft_mpi_coll_refuse(&k, err) : weft_mpi_coll_run(&k);
}

int weft_mpi_Iscatter(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
		      void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root,
		      MPI_Comm comm, MPI_Request *request)
{
	struct weft_mpi_coll_call k;
	int err = scatter_args(&k, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root,
			       comm);
	return err ? weft_mpi_coll_refuse(&k, err) : weft_mpi_coll_start(&k, request);
}

int weft_mpi_Scatter_init(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
			  void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root,
			  MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	struct weft_mpi_coll_call k;
	int err = scatter_args(&k, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root,
			       comm);
	return err ? weft_mpi_coll_refuse(&k, err) : weft_mpi_coll_init(&k, request);
}

/* ---- MPI_Scatterv -------------------------------------------------------------------------- */

static int scatterv_args(struct weft_mpi_coll_call *k, const void *sendbuf,
			 const MPI_Count sendcounts[], const MPI_Aint displs[],
			 MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
			 MPI_Datatype recvtype, int root, MPI_Comm comm)
{
	weft_mpi_coll_open(k, WEFT_COLL_SCATTERV, comm);
	k->a.root = root;
	int err = MPI_SUCCESS;
	if (roots(k, root)) {
		k->a.sbuf = sendbuf;
		k->a.scounts = sendcounts;
		k->a.sdispls = displs;
		err = weft_mpi_coll_bufs("sendbuf", sendbuf, sendcounts, k->comm->peers, sendtype,
					 &k->a.stype);
		if (!err)
			err = weft_mpi_coll_in_place(k, recvbuf);
	}
	return err ? err : one_place(k, root, recvbuf, recvcount, recvtype);
}

int weft_mpi_Scatterv(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[],
		      MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		      MPI_Datatype recvtype, int root, MPI_Comm comm)
{
	struct weft_mpi_coll_call k;
	int err = scatterv_args(&k, sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount,
				recvtype, root, comm);
	return err ? weft_mpi_coll_refuse(&k, err) : weft_mpi_coll_run(&k);
}

int weft_mpi_Iscatterv(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[],
		       MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		       MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request)
{
	struct weft_mpi_coll_call k;
	int err = scatterv_args(&k, sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount,
				recvtype, root, comm);
	return err ? weft_mpi_coll_refuse(&k, err) : weft_mpi_coll_start(&k, request);
}

int weft_mpi_Scatterv_init(const void *sendbuf, const MPI_Count sendcounts[],
			   const MPI_Aint displs[], MPI_Datatype sendtype, void *recvbuf,
			   MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
			   MPI_Info info, MPI_Request *request)
{
	struct weft_mpi_coll_call k;
	int err = scatterv_args(&k, sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount,
				recvtype, root, comm);
	return err ? weft_mpi_coll_refuse(&k, err) : weft_mpi_coll_init(&k, request);
}
