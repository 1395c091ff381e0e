! SPDX-License-Identifier: BSD-3-Clause
! objects.f90 - topologies, datatypes, windows by C pointer, generalized requests.  ranks: 2
module request_functions
  use mpi
  implicit none
  integer :: freed = 0, asked = 0
contains
  subroutine query(extra, status, ierr)
    integer(kind=MPI_ADDRESS_KIND) :: extra
    integer :: status(MPI_STATUS_SIZE), ierr
    asked = asked + 1
    call MPI_Status_set_elements(status, MPI_INTEGER, int(extra), ierr)
    call MPI_Status_set_cancelled(status, .false., ierr)
    status(MPI_SOURCE) = MPI_UNDEFINED
    status(MPI_TAG) = 17
  end subroutine
  subroutine release(extra, ierr)
    integer(kind=MPI_ADDRESS_KIND) :: extra
    integer :: ierr
    freed = freed + int(extra)
    ierr = MPI_SUCCESS
  end subroutine
  subroutine cancel(extra, complete, ierr)
    integer(kind=MPI_ADDRESS_KIND) :: extra
    logical :: complete
    integer :: ierr
    ierr = MPI_SUCCESS
    if (complete .and. extra < 0) ierr = MPI_ERR_OTHER
  end subroutine
end module

program objects
  use, intrinsic :: iso_c_binding, only : c_ptr, c_f_pointer
  use request_functions
  implicit none
  integer :: ierr, rank, n
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, n, ierr)
  call grids
  call graphs
  call types
  call windows
  call requests
  call MPI_Finalize(ierr)
contains
  subroutine grids
    integer :: cart, sub, dims(2), coords(2), me, a, b
    logical :: periods(2), got(2), keep(2)
    dims = 0
    call MPI_Dims_create(n, 2, dims, ierr)
    call expect(product(dims) == n, 'dims')
    periods = [.true., .false.]
    call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, .false., cart, ierr)
    call MPI_Cart_get(cart, 2, dims, got, coords, ierr)
    call expect(all(got .eqv. periods), 'periods')
    call MPI_Cart_rank(cart, coords, me, ierr)
    call expect(me == rank, 'rank of coordinates')
    call MPI_Cart_shift(cart, 0, 1, a, b, ierr)
    call expect(a == b, 'neighbours in a ring of two')
    keep = [.true., .false.]
    call MPI_Cart_sub(cart, keep, sub, ierr)
    call MPI_Comm_size(sub, me, ierr)
    call expect(me == dims(1), 'a row')
    call MPI_Comm_free(sub, ierr)
    call MPI_Comm_free(cart, ierr)
  end subroutine

  subroutine graphs
    integer :: graph, index(2), edges(2), k, in, out, peer(1), weight(1), w(1)
    logical :: weighted
    call MPI_Graph_create(MPI_COMM_WORLD, 2, [1, 2], [1, 0], .false., graph, ierr)
    call MPI_Graph_get(graph, 2, 2, index, edges, ierr)
    call expect(all(index == [1, 2]) .and. all(edges == [1, 0]), 'graph')
    call MPI_Comm_free(graph, ierr)
    peer = 1 - rank
    weight = 5 + rank
    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, peer, weight, 1, peer, weight, MPI_INFO_NULL, .false., graph, ierr)
    call MPI_Dist_graph_neighbors_count(graph, in, out, weighted, ierr)
    call expect(in == 1 .and. out == 1 .and. weighted, 'weights')
    call MPI_Dist_graph_neighbors(graph, 1, peer, weight, 1, peer, w, ierr)
    call expect(weight(1) == 5 + rank .and. w(1) == 5 + rank, 'the weights')
    k = rank
    call MPI_Neighbor_allgather(k, 1, MPI_INTEGER, in, 1, MPI_INTEGER, graph, ierr)
    call expect(in == 1 - rank, 'from the neighbour')
    call MPI_Comm_free(graph, ierr)
    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, peer, MPI_UNWEIGHTED, 1, peer, MPI_UNWEIGHTED, MPI_INFO_NULL, &
      .false., graph, ierr)
    call MPI_Dist_graph_neighbors_count(graph, in, out, weighted, ierr)
    call expect(.not. weighted, 'no weights')
    call MPI_Comm_free(graph, ierr)
  end subroutine

  subroutine types
    integer :: t, u, size, sizeof, i(2), d(1), ni, na, nd, combiner, a(4, 4), b(2, 2)
    integer(kind=MPI_ADDRESS_KIND) :: lb, extent, at(1)
    double precision :: x
    call MPI_Type_size(MPI_DOUBLE_PRECISION, size, ierr)
    call MPI_Sizeof(x, sizeof, ierr)
    call expect(size == sizeof, 'size of a double')
    call MPI_Type_size(MPI_INTEGER, size, ierr)
    call MPI_Sizeof(i, sizeof, ierr)
    call expect(size == sizeof .and. size == storage_size(i) / 8, 'size of an integer')
    call MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, t, ierr)
    call MPI_Type_size(t, size, ierr)
    call expect(size == 8, 'match')
    call MPI_Type_create_subarray(2, [4, 4], [2, 2], [1, 1], MPI_ORDER_FORTRAN, MPI_INTEGER, t, ierr)
    call MPI_Type_commit(t, ierr)
    a = reshape([(size, size=1, 16)], [4, 4])
    call MPI_Sendrecv(a, 1, t, rank, 0, b, 4, MPI_INTEGER, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    call expect(all(b == a(2:3, 2:3)), 'a part of an array')
    call MPI_Type_free(t, ierr)
    call MPI_Type_vector(2, 1, 3, MPI_REAL, t, ierr)
    call MPI_Type_get_envelope(t, ni, na, nd, combiner, ierr)
    call expect(ni == 3 .and. na == 0 .and. nd == 1 .and. combiner == MPI_COMBINER_VECTOR, 'envelope')
    call contents(t)
    call MPI_Type_create_resized(t, 4_MPI_ADDRESS_KIND, 64_MPI_ADDRESS_KIND, u, ierr)
    call MPI_Type_get_extent(u, lb, extent, ierr)
    call expect(lb == 4 .and. extent == 64, 'resized')
    call MPI_Type_get_contents(u, 0, 2, 1, i, at2(), d, ierr)
    call MPI_Type_free(t, ierr)
    call MPI_Type_free(u, ierr)
    at = 0
  end subroutine

  function at2() result(at)
    integer(kind=MPI_ADDRESS_KIND) :: at(2)
    at = 0
  end function

  subroutine contents(t)
    integer, intent(in) :: t
    integer :: i(3), d(1)
    integer(kind=MPI_ADDRESS_KIND) :: at(1)
    call MPI_Type_get_contents(t, 3, 0, 1, i, at, d, ierr)
    call expect(all(i == [2, 1, 3]) .and. d(1) == MPI_REAL, 'contents')
  end subroutine

  subroutine windows
    type(c_ptr) :: p, q
    integer :: win, unit
    integer(kind=MPI_ADDRESS_KIND) :: size
    integer, pointer :: mine(:), theirs(:)
    call MPI_Win_allocate_shared(32_MPI_ADDRESS_KIND, 1, MPI_INFO_NULL, MPI_COMM_WORLD, p, win, ierr)
    call c_f_pointer(p, mine, [4])
    call MPI_Win_fence(0, win, ierr)
    mine = 50 + rank
    call MPI_Win_fence(0, win, ierr)
    call MPI_Win_shared_query(win, 1 - rank, size, unit, q, ierr)
    call c_f_pointer(q, theirs, [4])
    call expect(size == 32 .and. unit == 1 .and. theirs(2) == 51 - rank, 'shared')
    call MPI_Win_fence(0, win, ierr)
    call MPI_Put(rank + 9, 1, MPI_INTEGER, 1 - rank, 0_MPI_ADDRESS_KIND, 1, MPI_INTEGER, win, ierr)
    call MPI_Win_fence(0, win, ierr)
    call expect(mine(1) == 1 - rank + 9, 'put')
    call MPI_Win_free(win, ierr)
    call MPI_Alloc_mem(64_MPI_ADDRESS_KIND, MPI_INFO_NULL, p, ierr)
    call c_f_pointer(p, mine, [4])
    mine = 1
    call MPI_Free_mem(mine, ierr)
  end subroutine

  subroutine requests
    integer :: req, s(MPI_STATUS_SIZE), count
    logical :: flag
    call MPI_Grequest_start(query, release, cancel, 6_MPI_ADDRESS_KIND, req, ierr)
    call MPI_Test(req, flag, s, ierr)
    call expect(.not. flag, 'not yet complete')
    call MPI_Cancel(req, ierr)
    call MPI_Grequest_complete(req, ierr)
    call MPI_Wait(req, s, ierr)
    call MPI_Get_elements(s, MPI_INTEGER, count, ierr)
    call expect(count == 6 .and. s(MPI_TAG) == 17 .and. asked >= 1 .and. freed == 6, 'generalized request')
  end subroutine
end program
