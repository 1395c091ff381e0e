/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_reduce.c - arguments of collectives that combine data: reduce, allreduce, reduce_scatter,
 * scan, exscan.
 */
#include "mpi/coll/coll_call.h"

/* What is combined, and how. */
static int take_operation(struct weft_mpi_coll_call *k, MPI_Op op, MPI_Count count,
			  MPI_Datatype datatype)
{
	struct weft_mpi_op *o = weft_mpi_op_of(op);
	k->a.rcount = (size_t)count;
	if (!o)
		return weft_mpi_err(MPI_ERR_OP, "invalid operation");
	if (!weft_mpi_type_of(datatype))
		return weft_mpi_err(MPI_ERR_TYPE, "invalid datatype");
	if (o->predefined && (o->op == WEFT_OP_REPLACE || o->op == WEFT_OP_NO_OP))
		return weft_mpi_err(MPI_ERR_OP, "%s is for one-sided operations only", o->name);
	int err = weft_mpi_op_for(op, datatype, &k->a.op);
	if (!err && !o->predefined) {
		k->op = o;
		k->op_type = weft_mpi_type_of(datatype);
	}
	if (!err)
		k->a.rtype = weft_mpi_type_of(datatype)->layout;
	return err;
}

static int take_result(struct weft_mpi_coll_call *k, void *recvbuf, MPI_Count count,
		       MPI_Datatype datatype)
{
	k->a.rbuf = recvbuf;
	return weft_mpi_coll_buf("recvbuf", recvbuf, count, datatype, &k->a.rtype);
}

static int plain_contribution(struct weft_mpi_coll_call *k, const void *sendbuf, MPI_Count count,
			      MPI_Datatype datatype)
{
	k->a.sbuf = sendbuf;
	return weft_mpi_coll_buf("sendbuf", sendbuf, count, datatype, &k->a.rtype);
}

/* The same where it may be in recvbuf. */
static int take_contribution(struct weft_mpi_coll_call *k, const void *sendbuf, MPI_Count count,
			     MPI_Datatype datatype)
{
	int err = weft_mpi_coll_in_place(k, sendbuf);
	if (err || k->a.in_place)
		return err;
	return plain_contribution(k, sendbuf, count, datatype);
}

int weft_mpi_Reduce_args(struct weft_mpi_coll_call *k, const void *sendbuf, void *recvbuf,
			 MPI_Count count, MPI_Datatype datatype, MPI_Op op, int root)
{
	k->a.root = root;
	if (root == MPI_PROC_NULL)
		return MPI_SUCCESS;
	bool here = root == (k->comm->inter ? MPI_ROOT : k->comm->rank);
	bool gives = !k->comm->inter || root != MPI_ROOT;
	int err = take_operation(k, op, count, datatype);
	if (!err && here)
		err = take_result(k, recvbuf, count, datatype);
	if (!err && gives && here)
		err = take_contribution(k, sendbuf, count, datatype);
	else if (!err && gives)
		err = plain_contribution(k, sendbuf, count, datatype);
	return err;
}

int weft_mpi_Allreduce_args(struct weft_mpi_coll_call *k, const void *sendbuf, void *recvbuf,
			    MPI_Count count, MPI_Datatype datatype, MPI_Op op)
{
	int err = take_operation(k, op, count, datatype);
	if (!err)
		err = take_result(k, recvbuf, count, datatype);
	return err ? err : take_contribution(k, sendbuf, count, datatype);
}

int weft_mpi_Reduce_scatter_args(struct weft_mpi_coll_call *k, const void *sendbuf, void *recvbuf,
				 const MPI_Count recvcounts[], MPI_Datatype datatype, MPI_Op op)
{
	MPI_Count total = 0;
	if (!recvcounts)
		return weft_mpi_err(MPI_ERR_ARG, "recvcounts is a null pointer");
	for (int r = 0; r < k->comm->size; r++) {
		if (recvcounts[r] < 0)
			return weft_mpi_err(MPI_ERR_COUNT, "recvcounts[%d] is negative (%lld)", r,
					    (long long)recvcounts[r]);
		if (__builtin_add_overflow(total, recvcounts[r], &total))
			return weft_mpi_err(MPI_ERR_COUNT, "recvcounts are too large");
	}
	int err = take_operation(k, op, total, datatype);
	if (!err)
		err = take_contribution(k, sendbuf, total, datatype);
	k->a.rcounts = recvcounts;
	return err ? err : take_result(k, recvbuf, recvcounts[k->comm->rank], datatype);
}

int weft_mpi_Reduce_scatter_block_args(struct weft_mpi_coll_call *k, const void *sendbuf,
				       void *recvbuf, MPI_Count recvcount, MPI_Datatype datatype,
				       MPI_Op op)
{
	int err = take_operation(k, op, recvcount, datatype);
	if (!err)
		err = take_result(k, recvbuf, recvcount, datatype);
	return err ? err : take_contribution(k, sendbuf, recvcount, datatype);
}

int weft_mpi_Scan_args(struct weft_mpi_coll_call *k, const void *sendbuf, void *recvbuf,
		       MPI_Count count, MPI_Datatype datatype, MPI_Op op)
{
	if (k->comm->inter)
		return weft_mpi_err(MPI_ERR_COMM, "not defined for intercommunicators");
	int err = take_operation(k, op, count, datatype);
	if (!err)
		err = take_result(k, recvbuf, count, datatype);
	return err ? err : take_contribution(k, sendbuf, count, datatype);
}

int weft_mpi_Exscan_args(struct weft_mpi_coll_call *k, const void *sendbuf, void *recvbuf,
			 MPI_Count count, MPI_Datatype datatype, MPI_Op op)
{
	if (k->comm->inter)
		return weft_mpi_err(MPI_ERR_COMM, "not defined for intercommunicators");
	int err = take_operation(k, op, count, datatype);
	if (!err && count && sendbuf == recvbuf && sendbuf)
		err = weft_mpi_coll_same_buffer();
	/* The first rank gets nothing, and may say so with a null pointer. */
	if (!err && (k->comm->rank || sendbuf == MPI_IN_PLACE))
		err = take_result(k, recvbuf, count, datatype);
	return err ? err : take_contribution(k, sendbuf, count, datatype);
}
