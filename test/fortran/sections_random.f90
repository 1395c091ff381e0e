! SPDX-License-Identifier: BSD-3-Clause
! sections_random.f90 - use mpi_f08: random sections of arrays of one to four dimensions, as both buffers of a routine drawn at
! random, against the same done by assignments.  ranks: 2
!
! sections_random [SEED [ROUNDS]]
module draw
  implicit none
  integer(8) :: state = 1
contains
  ! 1 to n
  integer function pick(n)
    integer, intent(in) :: n
    state = mod(state * 48271_8, 2147483647_8)
    pick = int(mod(state / 7, int(n, 8))) + 1
  end function
  ! A range within 1 to n that holds m elements: first and step.
  subroutine range(n, m, first, step)
    integer, intent(in) :: n, m
    integer, intent(out) :: first, step
    integer :: most
    most = 1
    if (m > 1) most = (n - 1) / (m - 1)
    step = pick(most)
    first = pick(n - (m - 1) * step)
    if (pick(2) == 1) then
      first = first + (m - 1) * step
      step = -step
    end if
  end subroutine
end module
program sections_random
  use mpi_f08
  use draw
  implicit none
  integer, parameter :: n = 7, kinds = 12
  integer :: rank, peer, rounds, round, kind_of, m(4), f(4), s(4), g(4), t(4), d, total, how
  integer :: a(n, n, n, n), b(n, n, n, n), want(n, n, n, n)
  character(len=32) :: text
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  peer = 1 - rank
  rounds = 400
  if (command_argument_count() > 0) then
    call get_command_argument(1, text)
    read (text, *) state
  end if
  if (command_argument_count() > 1) then
    call get_command_argument(2, text)
    read (text, *) rounds
  end if
  if (state == 1) state = 20161123
  if (rank == 0) print *, 'seed', state
  do d = 1, 20
    how = pick(2)
  end do
  do round = 1, rounds
    how = pick(4)
    kind_of = pick(kinds)
    m = 1; f = 1; s = 1; g = 1; t = 1
    do d = 1, how
      m(d) = pick(n)
      call range(n, m(d), f(d), s(d))
      call range(n, m(d), g(d), t(d))
    end do
    total = product(m)
    call fill(a, rank * 100000)
    call fill(b, -100000)
    call reference()
    select case (how)
    case (1)
      call one(a(to(1, .true.):last(1, .true.):s(1), f(2), f(3), f(4)), b(to(1, .false.):last(1, .false.):t(1), g(2), g(3), g(4)))
    case (2)
      call two(a(f(1):last(1, .true.):s(1), f(2):last(2, .true.):s(2), f(3), f(4)), &
               b(g(1):last(1, .false.):t(1), g(2):last(2, .false.):t(2), g(3), g(4)))
    case (3)
      call three(a(f(1):last(1, .true.):s(1), f(2):last(2, .true.):s(2), f(3):last(3, .true.):s(3), f(4)), &
                 b(g(1):last(1, .false.):t(1), g(2):last(2, .false.):t(2), g(3):last(3, .false.):t(3), g(4)))
    case (4)
      call four(a(f(1):last(1, .true.):s(1), f(2):last(2, .true.):s(2), f(3):last(3, .true.):s(3), f(4):last(4, .true.):s(4)), &
                b(g(1):last(1, .false.):t(1), g(2):last(2, .false.):t(2), g(3):last(3, .false.):t(3), g(4):last(4, .false.):t(4)))
    end select
    if (any(b /= want)) then
      print *, 'round', round, 'dimensions', how, 'routine', kind_of, 'elements', m, 'rank', rank
      call expect(.false., 'the section that was received')
    end if
  end do
  call MPI_Finalize()
contains
  integer function to(dim, sending)
    integer, intent(in) :: dim
    logical, intent(in) :: sending
    to = merge(f(dim), g(dim), sending)
  end function
  integer function last(dim, sending)
    integer, intent(in) :: dim
    logical, intent(in) :: sending
    last = merge(f(dim) + (m(dim) - 1) * s(dim), g(dim) + (m(dim) - 1) * t(dim), sending)
  end function
  subroutine fill(x, base)
    integer, intent(out) :: x(n, n, n, n)
    integer, intent(in) :: base
    integer :: i, j, k, l
    do l = 1, n
      do k = 1, n
        do j = 1, n
          do i = 1, n
            x(i, j, k, l) = base + i + 8 * (j + 8 * (k + 8 * l))
          end do
        end do
      end do
    end do
  end subroutine
  ! What b becomes, element by element.
  subroutine reference()
    integer :: other(n, n, n, n), i, j, k, l, v
    want = b
    call fill(other, merge(peer, 0, kind_of /= 6) * 100000)
    do l = 1, m(4)
      do k = 1, m(3)
        do j = 1, m(2)
          do i = 1, m(1)
            v = other(f(1) + (i - 1) * s(1), f(2) + (j - 1) * s(2), f(3) + (k - 1) * s(3), f(4) + (l - 1) * s(4))
            if (kind_of == 4 .or. kind_of == 5 .or. kind_of == 10) v = v + v + (rank - peer) * 100000
            want(g(1) + (i - 1) * t(1), g(2) + (j - 1) * t(2), g(3) + (k - 1) * t(3), g(4) + (l - 1) * t(4)) = v
          end do
        end do
      end do
    end do
  end subroutine
  subroutine one(x, y)
    integer :: x(:), y(:)
    call exchange(x, y)
  end subroutine
  subroutine two(x, y)
    integer :: x(:, :), y(:, :)
    call exchange(x, y)
  end subroutine
  subroutine three(x, y)
    integer :: x(:, :, :), y(:, :, :)
    call exchange(x, y)
  end subroutine
  subroutine four(x, y)
    integer :: x(:, :, :, :), y(:, :, :, :)
    call exchange(x, y)
  end subroutine
  subroutine exchange(x, y)
    type(*), dimension(..), asynchronous :: x, y
    type(MPI_Request) :: r(2)
    integer :: counts(0:1), displs(0:1), zero(0:1)
    counts = 0
    counts(peer) = total
    displs = 0
    zero = 0
    select case (kind_of)
    case (1)
      call MPI_Sendrecv(x, total, MPI_INTEGER, peer, 1, y, total, MPI_INTEGER, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    case (2)
      call MPI_Irecv(y, total, MPI_INTEGER, peer, 2, MPI_COMM_WORLD, r(1))
      call MPI_Isend(x, total, MPI_INTEGER, peer, 2, MPI_COMM_WORLD, r(2))
      call MPI_Waitall(2, r, MPI_STATUSES_IGNORE)
    case (3)
      call MPI_Recv_init(y, total, MPI_INTEGER, peer, 3, MPI_COMM_WORLD, r(1))
      call MPI_Send_init(x, total, MPI_INTEGER, peer, 3, MPI_COMM_WORLD, r(2))
      call MPI_Startall(2, r)
      call MPI_Waitall(2, r, MPI_STATUSES_IGNORE)
      call MPI_Request_free(r(1))
      call MPI_Request_free(r(2))
    case (4)
      call MPI_Allreduce(x, y, total, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    case (5)
      call MPI_Iallreduce(x, y, total, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, r(1))
      call MPI_Wait(r(1), MPI_STATUS_IGNORE)
    case (6)
      ! Rank 0's data to both, through a gather of nothing else.
      counts = [total, 0]
      call MPI_Allgatherv(x, counts(rank), MPI_INTEGER, y, counts, displs, MPI_INTEGER, MPI_COMM_WORLD)
    case (7)
      call MPI_Alltoallv(x, counts, displs, MPI_INTEGER, y, counts, displs, MPI_INTEGER, MPI_COMM_WORLD)
    case (8)
      call MPI_Ialltoallv(x, counts, displs, MPI_INTEGER, y, counts, displs, MPI_INTEGER, MPI_COMM_WORLD, r(1))
      call MPI_Wait(r(1), MPI_STATUS_IGNORE)
    case (9)
      call put(x, y)
    case (10)
      call MPI_Allreduce_init(x, y, total, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, r(1))
      call MPI_Start(r(1))
      call MPI_Wait(r(1), MPI_STATUS_IGNORE)
      call MPI_Request_free(r(1))
    case (11)
      call MPI_Ssend_init(x, total, MPI_INTEGER, peer, 4, MPI_COMM_WORLD, r(1))
      call MPI_Start(r(1))
      call MPI_Recv(y, total, MPI_INTEGER, peer, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
      call MPI_Wait(r(1), MPI_STATUS_IGNORE)
      call MPI_Request_free(r(1))
    case (12)
      call packed(x, y)
    end select
  end subroutine
  ! To the peer's memory, and from there into the section.
  subroutine put(x, y)
    type(*), dimension(..), asynchronous :: x, y
    integer, asynchronous :: middle(n**4)
    type(MPI_Win) :: w
    integer(MPI_ADDRESS_KIND) :: bytes
    middle = 0
    bytes = storage_size(middle) / 8 * size(middle)
    call MPI_Win_create(middle, bytes, storage_size(middle) / 8, MPI_INFO_NULL, MPI_COMM_WORLD, w)
    call MPI_Win_fence(0, w)
    call MPI_Put(x, total, MPI_INTEGER, peer, 3_MPI_ADDRESS_KIND, total, MPI_INTEGER, w)
    call MPI_Win_fence(0, w)
    call MPI_Get(y, total, MPI_INTEGER, rank, 3_MPI_ADDRESS_KIND, total, MPI_INTEGER, w)
    call MPI_Win_fence(0, w)
    call MPI_Win_free(w)
  end subroutine
  subroutine packed(x, y)
    type(*), dimension(..), asynchronous :: x, y
    integer :: text(2 * n**4), got(2 * n**4), pos, most
    most = storage_size(text) / 8 * size(text)
    pos = 0
    call MPI_Pack(x, total, MPI_INTEGER, text, most, pos, MPI_COMM_WORLD)
    call MPI_Sendrecv(text, pos, MPI_PACKED, peer, 5, got, most, MPI_PACKED, peer, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    pos = 0
    call MPI_Unpack(got, most, pos, y, total, MPI_INTEGER, MPI_COMM_WORLD)
  end subroutine
end program
