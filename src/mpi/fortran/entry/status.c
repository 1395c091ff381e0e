/* SPDX-License-Identifier: BSD-3-Clause */
/* status.c - statuses of mpif.h and of mpi_f08: the same eight INTEGERs. */
#include "mpi/fortran/fort.h"

#include <string.h>

void ENTRY(status_f2f08)(const I *f_status, I *f08_status, I *ierror)
{
	WIDE(status_f2f08, ((void *)f_status, (void *)f08_status, (void *)ierror));
	memcpy(f08_status, f_status, 8 * sizeof(I));
	ERROR_OUT(ierror, MPI_SUCCESS);
}

void ENTRY(status_f082f)(const I *f08_status, I *f_status, I *ierror)
{
	WIDE(status_f082f, ((void *)f08_status, (void *)f_status, (void *)ierror));
	memcpy(f_status, f08_status, 8 * sizeof(I));
	ERROR_OUT(ierror, MPI_SUCCESS);
}
