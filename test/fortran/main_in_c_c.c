/* SPDX-License-Identifier: BSD-3-Clause */
/* main_in_c_c.c - main() of a program whose other part is Fortran; also a tool that counts MPI_Sendrecv. */
#include <mpi.h>
#include <stdlib.h>

void fortran_part(int comm);

static int calls;

int MPI_Sendrecv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag,
		 void *recvbuf, int recvcount, MPI_Datatype recvtype, int source, int recvtag,
		 MPI_Comm comm, MPI_Status *status)
{
	calls++;
	return PMPI_Sendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount,
			     recvtype, source, recvtag, comm, status);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	fortran_part(MPI_Comm_toint(MPI_COMM_WORLD));
	if (calls != 1) /* MPI_Sendrecv of Fortran, but not its PMPI_Sendrecv */
		abort();
	MPI_Finalize();
	return 0;
}
