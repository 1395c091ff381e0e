/* SPDX-License-Identifier: BSD-3-Clause */
/* extra.c - what C lacks: forms with a C pointer, MPI_F_sync_reg. */
#include "mpi/fortran/fort.h"

/* An address is one, as INTEGER(KIND=MPI_ADDRESS_KIND) and as TYPE(C_PTR). */
void ENTRY(alloc_mem_cptr)(const MPI_Aint *size, const I *info, void *baseptr, I *ierror)
{
	ENTRY(alloc_mem)(size, info, baseptr, ierror);
}

void ENTRY(win_allocate_cptr)(const MPI_Aint *size, const I *disp_unit, const I *info,
			      const I *comm, void *baseptr, I *win, I *ierror)
{
	ENTRY(win_allocate)(size, disp_unit, info, comm, baseptr, win, ierror);
}

void ENTRY(win_allocate_shared_cptr)(const MPI_Aint *size, const I *disp_unit, const I *info,
				     const I *comm, void *baseptr, I *win, I *ierror)
{
	ENTRY(win_allocate_shared)(size, disp_unit, info, comm, baseptr, win, ierror);
}

void ENTRY(win_shared_query_cptr)(const I *win, const I *rank, MPI_Aint *size, I *disp_unit,
				  void *baseptr, I *ierror)
{
	ENTRY(win_shared_query)(win, rank, size, disp_unit, baseptr, ierror);
}

/* Called for what a compiler must assume of an external procedure. */
void ENTRY(f_sync_reg)(void *buf)
{
	(void)buf;
}
