/* SPDX-License-Identifier: BSD-3-Clause */
/* tools_c.c - a tool: counts MPI_Sendrecv. */
#include <mpi.h>

static int calls;

int c_saw(void);

int c_saw(void)
{
	return calls;
}

int MPI_Sendrecv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag,
		 void *recvbuf, int recvcount, MPI_Datatype recvtype, int source, int recvtag,
		 MPI_Comm comm, MPI_Status *status)
{
	calls++;
	return PMPI_Sendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount,
			     recvtype, source, recvtag, comm, status);
}
