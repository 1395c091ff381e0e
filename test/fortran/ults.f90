! SPDX-License-Identifier: BSD-3-Clause
! ults.f90 - Fortran on user-level threads: many of them block in a receive while others run, on few workers.  C starts them
! (ults_c.c) and calls Fortran; before that a C function that Fortran calls has called MPI.  ranks: 2
module work
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  integer, parameter :: threads = 64, n = 5
  integer :: rank, peer, x(n, threads), y(threads, n)
contains
  recursive subroutine ult_receive(k) bind(C)
    integer(c_int), value :: k
    integer :: token
    call MPI_Recv(y(k, :), n, MPI_INTEGER, peer, int(k), MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    token = y(k, 1)
    call MPI_Ssend(token, 1, MPI_INTEGER, peer, 1000 + int(k), MPI_COMM_WORLD)
  end subroutine
  ! From the last on: the receiver that was first waits for the longest.
  recursive subroutine ult_send(k) bind(C)
    integer(c_int), value :: k
    integer :: token, i
    type(MPI_Request) :: r
    if (k /= 1) return
    do i = threads, 1, -1
      x(:, i) = [i, i + 1, i + 2, i + 3, i + 4]
      call MPI_Isend(x(:, i), n, MPI_INTEGER, peer, i, MPI_COMM_WORLD, r)
      call MPI_Wait(r, MPI_STATUS_IGNORE)
      call MPI_Recv(token, 1, MPI_INTEGER, peer, 1000 + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
      call expect(token == i, 'an answer')
    end do
  end subroutine
end module
program ults
  use work
  implicit none
  interface
    subroutine c_on_threads(fn, n) bind(C)
      import c_funptr, c_int
      type(c_funptr), value :: fn
      integer(c_int), value :: n
    end subroutine
    function c_rank(comm) bind(C)
      import c_int
      integer(c_int), value :: comm
      integer(c_int) :: c_rank
    end function
  end interface
  integer :: provided, i
  call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided)
  call expect(provided == MPI_THREAD_MULTIPLE, 'threads may call')
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call expect(c_rank(int(MPI_COMM_WORLD%MPI_VAL, c_int)) == rank, 'C knows the communicator')
  peer = 1 - rank
  y = 0
  if (rank == 0) then
    call c_on_threads(c_funloc(ult_receive), int(threads, c_int))
    do i = 1, threads
      call expect(all(y(i, :) == [i, i + 1, i + 2, i + 3, i + 4]), 'a row for each thread')
    end do
  else
    call c_on_threads(c_funloc(ult_send), int(threads, c_int))
  end if
  call MPI_Finalize()
end program
