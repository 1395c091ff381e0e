! SPDX-License-Identifier: BSD-3-Clause
! main_in_c.f90 - C's main (main_in_c_c.c) starts and ends MPI, and calls this: what MPI_INTEGER and LOGICAL are is known all the
! same, and Fortran's profile sees its own calls.  ranks: 2
subroutine fortran_part(comm) bind(C)
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  integer(c_int), value :: comm
  type(MPI_Comm) :: c
  integer :: rank, peer, bytes, x(10), y(10), i
  logical :: all_true, some
  c%MPI_VAL = comm
  call MPI_Comm_rank(c, rank)
  peer = 1 - rank
  call MPI_Type_size(MPI_INTEGER, bytes)
  call expect(bytes == storage_size(i) / 8, 'the size of an INTEGER')
  x = [(100 * rank + i, i=1, 10)]
  y = 0
  call MPI_Sendrecv(x(1:9:2), 5, MPI_INTEGER, peer, 1, y(10:2:-2), 5, MPI_INTEGER, peer, 1, c, MPI_STATUS_IGNORE)
  call expect(all(y(10:2:-2) == [(100 * peer + i, i=1, 9, 2)]) .and. all(y(1:9:2) == 0), 'a section')
  call PMPI_Sendrecv(x, 10, MPI_INTEGER, peer, 2, y, 10, MPI_INTEGER, peer, 2, c, MPI_STATUS_IGNORE)
  call expect(all(y == [(100 * peer + i, i=1, 10)]), 'PMPI_ of mpi_f08')
  some = rank == 0
  call MPI_Allreduce(some, all_true, 1, MPI_LOGICAL, MPI_LAND, c)
  call expect(.not. all_true, 'and of LOGICALs')
  call MPI_Allreduce(some, all_true, 1, MPI_LOGICAL, MPI_LOR, c)
  call expect(all_true .eqv. .true., 'or of LOGICALs')
end subroutine
