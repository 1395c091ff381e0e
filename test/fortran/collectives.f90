! SPDX-License-Identifier: BSD-3-Clause
! collectives.f90 - use mpi: collectives with lists, operations of the program, MPI_IN_PLACE.  ranks: 2
module operation
  implicit none
contains
  ! Does not commute: keeps the sum and the order.
  subroutine chain(in, inout, n, datatype)
    integer :: n, datatype
    integer :: in(2, n), inout(2, n)
    integer :: k
    do k = 1, n
      inout(1, k) = in(1, k) + inout(1, k)
      inout(2, k) = in(2, k) * 10 + inout(2, k)
    end do
    if (datatype == 0) inout = -1
  end subroutine
end module

program collectives
  use mpi
  use operation
  implicit none
  integer :: ierr, rank, n, k, pair, op, req
  integer :: a(4), b(8), counts(2), displs(2), types(2), two(2), got(2), zero(2)
  logical :: l, flag
  real :: loc(2), out(2)
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, n, ierr)
  a = [(rank * 4 + k, k=1, 4)]
  call MPI_Allgather(a, 4, MPI_INTEGER, b, 4, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  call expect(all(b == [(k, k=1, 8)]), 'allgather')
  counts = [1, 3]
  displs = [4, 0]
  b = 0
  call MPI_Allgatherv(a, counts(rank + 1), MPI_INTEGER, b, counts, displs, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  call expect(all(b(1:5) == [5, 6, 7, 0, 1]), 'allgatherv')
  b = 100 * rank + [(k, k=1, 8)]
  call MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, 4, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  call expect(b(1) == 4 * rank + 1 .and. b(5) == 100 + 4 * rank + 1, 'alltoall in place')
  types = MPI_INTEGER
  counts = 1
  displs = [0, storage_size(a) / 8]
  call MPI_Alltoallw(a, counts, displs, types, two, counts, displs, types, MPI_COMM_WORLD, ierr)
  call expect(all(two == [rank + 1, 4 + rank + 1]), 'alltoallw')
  two = -1
  call MPI_Ialltoallw(a, counts, displs, types, two, counts, displs, types, MPI_COMM_WORLD, req, ierr)
  types = 0
  call MPI_Wait(req, MPI_STATUS_IGNORE, ierr)
  call expect(all(two == [rank + 1, 4 + rank + 1]), 'ialltoallw')
  l = rank == 0
  call MPI_Allreduce(MPI_IN_PLACE, l, 1, MPI_LOGICAL, MPI_LOR, MPI_COMM_WORLD, ierr)
  call expect(l, 'or')
  call MPI_Allreduce(rank == 0, l, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, ierr)
  call expect(.not. l, 'and')
  loc = [real(10 - rank), real(rank)]
  call MPI_Allreduce(loc, out, 1, MPI_2REAL, MPI_MINLOC, MPI_COMM_WORLD, ierr)
  call expect(out(2) == n - 1, 'minloc')
  two = [rank, 7]
  call MPI_Allreduce(two, got, 1, MPI_2INTEGER, MPI_MAXLOC, MPI_COMM_WORLD, ierr)
  call expect(got(1) == n - 1 .and. got(2) == 7, 'maxloc')
  call MPI_Type_contiguous(2, MPI_INTEGER, pair, ierr)
  call MPI_Type_commit(pair, ierr)
  call MPI_Op_create(chain, .false., op, ierr)
  call MPI_Op_commutative(op, flag, ierr)
  call expect(.not. flag, 'does not commute')
  two = [1, rank + 1]
  call MPI_Allreduce(two, got, 1, pair, op, MPI_COMM_WORLD, ierr)
  call expect(all(got == [2, 12]), 'an operation of the program')
  call MPI_Iallreduce(two, zero, 1, pair, op, MPI_COMM_WORLD, req, ierr)
  call MPI_Wait(req, MPI_STATUS_IGNORE, ierr)
  call expect(all(zero == [2, 12]), 'the same, not blocking')
  call MPI_Reduce_local(two, got, 1, pair, op, ierr)
  call MPI_Op_free(op, ierr)
  call expect(op == MPI_OP_NULL, 'freed')
  call MPI_Reduce_scatter(a, b, counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  call expect(b(1) == 4 + 2 * (rank + 1), 'reduce_scatter')
  call MPI_Finalize(ierr)
end program
