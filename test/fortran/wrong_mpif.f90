! SPDX-License-Identifier: BSD-3-Clause
! wrong_mpif.f90 - erroneous calls through mpif.h: their classes.  ranks: 1
program wrong_mpif
  implicit none
  include 'mpif.h'
  integer :: comm, req, datatype, group, group2, win, info, file
  include 'wrong.inc'
end program
