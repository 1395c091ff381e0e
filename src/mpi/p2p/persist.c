/* SPDX-License-Identifier: BSD-3-Clause */
/* persist.c - persistent sends and receives: the arguments are kept, start does the rest; and
 * start for all that is persistent. */
#include "mpi/aid/check.h"
#include "mpi/error.h"
#include "mpi/p2p/p2p.h"
#include "mpi/p2p/request.h"

static int init_persistent(const void *base, MPI_Count count, MPI_Datatype datatype, int rank,
			   int tag, MPI_Comm comm, enum weft_mpi_mode mode, MPI_Request *request)
{
	struct weft_mpi_comm *c = weft_mpi_comm_of(comm);
	struct weft_buf buf;
	int err = weft_mpi_p2p_buf(base, count, datatype, &buf);

	if (err)
		return err;
	struct weft_mpi_request *r = weft_mpi_request_new(&weft_mpi_p2p_ops, c, NULL, true);
	if (!r)
		return weft_mpi_err(MPI_ERR_NO_MEM, "out of memory");
	r->peer = rank;
	r->tag = tag;
	r->mode = (uint8_t)mode;
	r->buf = buf;
	weft_mpi_p2p_hold(r, &buf, datatype);
	r->sign = 0;
	if (weft_unlikely(weft_mpi_checking))
		weft_mpi_check_message_keep(r);
	*request = weft_mpi_request_handle(r);
	return MPI_SUCCESS;
}

int weft_mpi_Send_init(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
		       MPI_Comm comm, MPI_Request *request)
{
	return init_persistent(buf, count, datatype, dest, tag, comm, WEFT_MPI_MODE_STANDARD,
			       request);
}

int weft_mpi_Ssend_init(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
			MPI_Comm comm, MPI_Request *request)
{
	return init_persistent(buf, count, datatype, dest, tag, comm, WEFT_MPI_MODE_SYNC, request);
}

int weft_mpi_Rsend_init(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
			MPI_Comm comm, MPI_Request *request)
{
	return init_persistent(buf, count, datatype, dest, tag, comm, WEFT_MPI_MODE_READY, request);
}

int weft_mpi_Bsend_init(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
			MPI_Comm comm, MPI_Request *request)
{
	return init_persistent(buf, count, datatype, dest, tag, comm, WEFT_MPI_MODE_BUFFERED,
			       request);
}

int weft_mpi_Recv_init(void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag,
		       MPI_Comm comm, MPI_Request *request)
{
	return init_persistent(buf, count, datatype, source, tag, comm, WEFT_MPI_MODE_RECV,
			       request);
}

/* ---- starting, whatever it is ------------------------------------------------------------- */

int weft_mpi_Start(MPI_Request *request)
{
	struct weft_mpi_request *r;
	int err = weft_mpi_request_named(*request, &r);

	if (err)
		return err;
	if (!r->persistent || !r->ops->start)
		return weft_mpi_err(MPI_ERR_REQUEST, "the request is not persistent");
	if (r->active)
		return weft_mpi_err(MPI_ERR_REQUEST, "the request is active already");
	if (weft_unlikely(weft_mpi_checking))
		weft_mpi_check_message_start(r);
	err = r->ops->start(r);
	if (err)
		weft_mpi_blame(r->comm);
	else
		r->active = true;
	return err;
}

int weft_mpi_Startall(int count, MPI_Request array_of_requests[])
{
	int err = MPI_SUCCESS;

	if (count < 0)
		return weft_mpi_err(MPI_ERR_COUNT, "count is negative (%d)", count);
	for (int i = 0; i < count && !err; i++)
		err = weft_mpi_Start(&array_of_requests[i]);
	return err;
}
