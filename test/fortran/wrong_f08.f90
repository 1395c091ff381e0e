! SPDX-License-Identifier: BSD-3-Clause
! wrong_f08.f90 - erroneous calls through use mpi_f08: their classes.  ranks: 1
program wrong_f08
  use mpi_f08
  implicit none
  type(MPI_Comm) :: comm
  type(MPI_Request) :: req
  type(MPI_Datatype) :: datatype
  type(MPI_Group) :: group, group2
  type(MPI_Win) :: win
  type(MPI_Info) :: info
  type(MPI_File) :: file
  include 'wrong.inc'
end program
