! SPDX-License-Identifier: BSD-3-Clause
! tools.f90 - a tool in C sees the program's calls, a profile in Fortran calls PMPI_; old names.  ranks: 1
subroutine MPI_Barrier(comm, ierror)
  implicit none
  integer :: comm, ierror
  integer :: calls
  common /profile/ calls
  calls = calls + 1
  call PMPI_Barrier(comm, ierror)
end subroutine

program tools
  use, intrinsic :: iso_c_binding
  implicit none
  include 'mpif.h'
  integer :: calls
  common /profile/ calls
  interface
    function c_saw() bind(C) ! tools_c.c
      import c_int
      integer(c_int) :: c_saw
    end function
  end interface
  external MPI_Type_extent
  integer :: ierr, a, b, size
  calls = 0
  call MPI_Init(ierr)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call expect(calls == 1, 'the profile is called')
  a = 4
  call MPI_Sendrecv(a, 1, MPI_INTEGER, 0, 0, b, 1, MPI_INTEGER, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  call expect(b == 4 .and. c_saw() == 1, 'the tool in C sees the call')
  call PMPI_Sendrecv(a, 1, MPI_INTEGER, 0, 0, b, 1, MPI_INTEGER, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  call expect(c_saw() == 1, 'but not that of PMPI_')
  call MPI_Type_extent(MPI_REAL, size, ierr)
  call expect(size == storage_size(1.0) / 8, 'a name that MPI-3.0 deleted')
  call MPI_Finalize(ierr)
end program
