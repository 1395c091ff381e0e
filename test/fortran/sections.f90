! SPDX-License-Identifier: BSD-3-Clause
! sections.f90 - use mpi_f08: sections of arrays in every kind of call, in place and untouched beside.  ranks: 2
program sections
use mpi_f08
implicit none
integer :: rank, size, i, j, bad, total
integer, parameter :: n = 12
real(8) :: a(n, n), b(n, n), s(n), r(n)
integer :: ia(2 * n), ib(2 * n)
type(MPI_Status) :: st
type(MPI_Request) :: req(2)
type(MPI_Comm) :: c
bad = 0
call MPI_Init()
call MPI_Comm_rank(MPI_COMM_WORLD, rank)
call MPI_Comm_size(MPI_COMM_WORLD, size)
c = MPI_COMM_WORLD
if (c /= MPI_COMM_WORLD .or. .not. (c == MPI_COMM_WORLD)) call wrong(1)
do j = 1, n
  do i = 1, n
    a(i, j) = 100 * i + j
  end do
end do
b = -1
! rows of a matrix, there and back
if (rank == 0) then
  call MPI_Send(a(3, 1:n:2), n / 2, MPI_DOUBLE_PRECISION, 1, 5, MPI_COMM_WORLD)
  call MPI_Isend(a(2:9:3, n:1:-2), 18, MPI_DOUBLE_PRECISION, 1, 6, MPI_COMM_WORLD, req(1))
  call MPI_Wait(req(1), MPI_STATUS_IGNORE)
else if (rank == 1) then
  call MPI_Recv(b(4, 2:n:2), n / 2, MPI_DOUBLE_PRECISION, 0, 5, MPI_COMM_WORLD, st)
  do i = 1, n / 2
    if (b(4, 2 * i) /= 300 + 2 * i - 1) call wrong(2)
  end do
  b = -1
  call MPI_Irecv(b(1:3, 1:n:2), 18_MPI_COUNT_KIND, MPI_DOUBLE_PRECISION, 0, 6, MPI_COMM_WORLD, req(1))
  call MPI_Wait(req(1), st)
  do j = 1, n / 2
    do i = 1, 3
      if (b(i, 2 * j - 1) /= 100 * (2 + 3 * (i - 1)) + n - 2 * (j - 1)) call wrong(3)
    end do
    if (any(b(:, 2 * j) /= -1) .or. any(b(4:, 2 * j - 1) /= -1)) call wrong(4)
  end do
end if
! collectives
ia = 0; ib = -7
ia(1::2) = rank + 1
call MPI_Allreduce(ia(1::2), ib(2::2), n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
total = size * (size + 1) / 2
if (any(ib(2::2) /= total) .or. any(ib(1::2) /= -7)) call wrong(5)
ib = -7
call MPI_Iallreduce(ia(1::2), ib(2 * n:1:-2), n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, req(1))
call MPI_Wait(req(1), MPI_STATUS_IGNORE)
if (any(ib(2::2) /= total) .or. any(ib(1::2) /= -7)) call wrong(6)
ib = -7
call MPI_Bcast(a(5, :), n, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD)
ib(1::2) = -7
call MPI_Allgather(ia(1:3:2), 2, MPI_INTEGER, ib(1:4 * size:2), 2, MPI_INTEGER, MPI_COMM_WORLD)
do i = 1, size
  if (ib(4 * i - 3) /= i .or. ib(4 * i - 1) /= i) call wrong(7)
end do
! persistent collective, started twice
call MPI_Allreduce_init(ia(1::2), ib(2::2), n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, req(1))
do i = 1, 2
  ia(1::2) = i
  ib = 0
  call MPI_Start(req(1))
  call MPI_Wait(req(1), MPI_STATUS_IGNORE)
  if (any(ib(2::2) /= i * size) .or. any(ib(1::2) /= 0)) call wrong(8)
end do
call MPI_Request_free(req(1))
! pack
block
  character(len=200) :: buf
  integer :: pos
  pos = 0
  call MPI_Pack(a(2, 1:5:2), 3, MPI_DOUBLE_PRECISION, buf, 200, pos, MPI_COMM_SELF)
  pos = 0
  b = 0
  call MPI_Unpack(buf, 200, pos, b(1, 12:10:-1), 3, MPI_DOUBLE_PRECISION, MPI_COMM_SELF)
  if (b(1, 12) /= 201 .or. b(1, 11) /= 203 .or. b(1, 10) /= 205) call wrong(9)
end block
! the same, as external32; the representation is a text
block
  character(len=64) :: buf
  integer(MPI_ADDRESS_KIND) :: pos
  integer(4) :: x(6), y(6)
  x = [1, 2, 3, 4, 5, 6]
  y = 0
  pos = 0
  call MPI_Pack_external('external32', x(1:6:2), 3, MPI_INTEGER4, buf, 64_MPI_ADDRESS_KIND, pos)
  if (pos /= 12) call wrong(16)
  pos = 0
  call MPI_Unpack_external('external32  ', buf, 64_MPI_ADDRESS_KIND, pos, y(2:6:2), 3, MPI_INTEGER4)
  if (any(y /= [0, 1, 0, 3, 0, 5])) call wrong(17)
end block
! a derived type with gaps in a section
block
  type(MPI_Datatype) :: t
  call MPI_Type_vector(2, 1, 2, MPI_DOUBLE_PRECISION, t)
  call MPI_Type_commit(t)
  r = 0
  call MPI_Sendrecv(a(1:9:2, 3), 1, t, rank, 1, r, n, MPI_DOUBLE_PRECISION, rank, 1, MPI_COMM_WORLD, st)
  if (r(1) /= 103 .or. r(2) /= 503) call wrong(10)
  call MPI_Get_count(st, MPI_DOUBLE_PRECISION, i)
  if (i /= 2) call wrong(11)
  call MPI_Type_free(t)
end block
! a derived type without gaps that begins behind its address
block
  type(MPI_Datatype) :: t
  call MPI_Type_create_hindexed_block(1, 2, [8_MPI_ADDRESS_KIND], MPI_DOUBLE_PRECISION, t)
  call MPI_Type_commit(t)
  r = 0
  call MPI_Sendrecv(a(1:9:2, 3), 1, t, rank, 1, r, n, MPI_DOUBLE_PRECISION, rank, 1, MPI_COMM_WORLD, st)
  if (r(1) /= 303 .or. r(2) /= 503) call wrong(19)
  call MPI_Type_free(t)
end block
! one-sided
block
  type(MPI_Win) :: w
  call MPI_Win_create(s, int(8 * n, MPI_ADDRESS_KIND), 8, MPI_INFO_NULL, MPI_COMM_WORLD, w)
  s = 0
  call MPI_Win_fence(0, w)
  call MPI_Put(a(1, 1:7:2), 4, MPI_DOUBLE_PRECISION, rank, 2_MPI_ADDRESS_KIND, 4, MPI_DOUBLE_PRECISION, w)
  call MPI_Win_fence(0, w)
  if (any(s(3:6) /= [101, 103, 105, 107])) call wrong(12)
  call MPI_Accumulate(a(1, 1:7:2), 4, MPI_DOUBLE_PRECISION, rank, 2_MPI_ADDRESS_KIND, 4, MPI_DOUBLE_PRECISION, MPI_SUM, w)
  call MPI_Win_fence(0, w)
  if (any(s(3:6) /= 2 * [101, 103, 105, 107])) call wrong(13)
  call MPI_Win_free(w)
end block
! a count that the section does not hold
block
  integer :: e, cl
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
  call MPI_Send(a(1, 1:7:2), 5, MPI_DOUBLE_PRECISION, MPI_PROC_NULL, 0, MPI_COMM_SELF, e)
  call MPI_Error_class(e, cl)
  if (cl /= MPI_ERR_COUNT) call wrong(14)
end block
! a function of the user's
block
  type(MPI_Op) :: op
  call MPI_Op_create_c(thrice, .true., op)
  ia = 1
  call MPI_Allreduce(ia(1:6:2), ib(1:6:2), 3, MPI_INTEGER, op, MPI_COMM_WORLD)
  if (size == 2 .and. any(ib(1:6:2) /= 6)) call wrong(18)
  call MPI_Op_free(op)
  call MPI_Op_create(twice, .true., op)
  ia = 1
  call MPI_Allreduce(ia(1:6:2), ib(1:6:2), 3, MPI_INTEGER, op, MPI_COMM_WORLD)
  if (size == 2 .and. any(ib(1:6:2) /= 4)) call wrong(15)
  call MPI_Op_free(op)
end block
call expect(bad == 0, 'sections')
call MPI_Finalize()
contains
subroutine wrong(k)
integer, intent(in) :: k
print *, 'wrong', k, 'rank', rank
bad = bad + 1
end subroutine
subroutine twice(invec, inoutvec, len, datatype)
use, intrinsic :: iso_c_binding
type(c_ptr), value :: invec, inoutvec
integer :: len
type(MPI_Datatype) :: datatype
integer, pointer :: x(:), y(:)
call c_f_pointer(invec, x, [len])
call c_f_pointer(inoutvec, y, [len])
if (datatype /= MPI_INTEGER) stop 3
y = 2 * (x + y)
end subroutine
subroutine thrice(invec, inoutvec, len, datatype)
use, intrinsic :: iso_c_binding
type(c_ptr), value :: invec, inoutvec
integer(MPI_COUNT_KIND) :: len
type(MPI_Datatype) :: datatype
integer, pointer :: x(:), y(:)
call c_f_pointer(invec, x, [len])
call c_f_pointer(inoutvec, y, [len])
if (datatype /= MPI_INTEGER) stop 3
y = 3 * (x + y)
end subroutine
end program
