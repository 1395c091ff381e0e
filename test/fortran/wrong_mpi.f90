! SPDX-License-Identifier: BSD-3-Clause
! wrong_mpi.f90 - erroneous calls through use mpi: their classes.  ranks: 1
program wrong_mpi
  use mpi
  implicit none
  integer :: comm, req, datatype, group, group2, win, info, file
  include 'wrong.inc'
end program
