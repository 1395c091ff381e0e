! SPDX-License-Identifier: BSD-3-Clause
! A program's own procedures with names of the C library's are not what the library calls.  ranks: 2
module procedures
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: calls = 0
contains
  subroutine send() bind(C, name='send')
    calls = calls + 1
  end subroutine
  subroutine recv() bind(C, name='recv')
    calls = calls + 1
  end subroutine
  subroutine connect() bind(C, name='connect')
    calls = calls + 1
  end subroutine
  subroutine link() bind(C, name='link')
    calls = calls + 1
  end subroutine
  subroutine poll() bind(C, name='poll')
    calls = calls + 1
  end subroutine
end module
program own_names
  use mpi_f08
  use procedures
  implicit none
  integer :: rank, got(100000)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  if (rank == 0) got = 7
  call MPI_Bcast(got, size(got), MPI_INTEGER, 0, MPI_COMM_WORLD)
  call expect(all(got == 7), 'a broadcast')
  call expect(calls == 0, 'the library calls no procedure of the program')
  call send()
  call recv()
  call connect()
  call link()
  call poll()
  call expect(calls == 5, 'the program calls its own')
  call MPI_Finalize()
end program
