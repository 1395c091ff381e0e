! SPDX-License-Identifier: BSD-3-Clause
! section_types.f90 - use mpi_f08: derived datatypes over array sections keep their basic elements: external32, what a tool
! sees of the datatype, one-sided, partitioned.  ranks: 1
program section_types
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  interface
    ! section_types_c.c: a tool that packs by what MPI_Type_get_contents says.  How many calls it has compared, how
    ! many of their elements were MPI_BYTE.
    subroutine c_seen(compared, bytes) bind(C)
      import c_int
      integer(c_int) :: compared, bytes
    end subroutine
  end interface
  type, bind(C) :: body
    integer(c_int32_t) :: id
    real(c_double) :: x
  end type
  type(body) :: these(12), other(12)
  integer(4) :: a(40), b(40)
  complex(4) :: z(10)
  type(MPI_Datatype) :: t, u
  integer :: i, calls
  calls = 0
  call MPI_Init()
  a = [(i, i=1, 40)]
  z = [(cmplx(i, -i), i=1, 10)]
  do i = 1, 12
    these(i) = body(i, 0.5d0 * i)
  end do
  ! with a gap
  call MPI_Type_vector(2, 1, 2, MPI_INTEGER4, t)
  call MPI_Type_commit(t)
  call integers(a(1:39:3), 2, t, [1, 7, 10, 16], 'a vector over every third element')
  call integers(a(40:1:-4), 2, t, [40, 32, 28, 20], 'a vector over every fourth, backwards')
  call MPI_Type_free(t)
  ! more than an element without a gap
  call MPI_Type_contiguous(3, MPI_INTEGER4, t)
  call MPI_Type_commit(t)
  call integers(a(2:40:5), 2, t, [2, 7, 12, 17, 22, 27], 'three in a row over every fifth')
  ! of a predefined size that is no multiple
  call MPI_Type_create_resized(t, 0_MPI_ADDRESS_KIND, 16_MPI_ADDRESS_KIND, u)
  call MPI_Type_commit(u)
  call integers(a(40:1:-1), 2, u, [40, 39, 38, 36, 35, 34], 'three of four, backwards')
  call MPI_Type_free(t)
  call MPI_Type_free(u)
  ! behind its address
  call MPI_Type_create_indexed_block(2, 1, [3, 1], MPI_INTEGER4, t)
  call MPI_Type_commit(t)
  call integers(a(1:40:2), 1, t, [7, 3], 'two out of order')
  call MPI_Type_free(t)
  call reals()
  call bodies()
  call one_sided()
  call partitioned()
  call tool()
  call MPI_Finalize()
contains
  subroutine integers(x, n, t, want, what)
    integer(4) :: x(:)
    integer, intent(in) :: n, want(:)
    type(MPI_Datatype), intent(in) :: t
    character(len=*), intent(in) :: what
    integer(1) :: text(200)
    integer(4) :: back(size(x)), i
    integer(MPI_ADDRESS_KIND) :: pos
    pos = 0
    text = -1
    call MPI_Pack_external('external32', x, n, t, text, 200_MPI_ADDRESS_KIND, pos)
    calls = calls + 1
    call expect(pos == 4 * size(want), what)
    do i = 1, size(want)
      call expect(all(text(4 * i - 3:4 * i) == [0, 0, 0, want(i)]), what)
    end do
    back = x
    x = 0
    pos = 0
    call MPI_Unpack_external('external32', text, 200_MPI_ADDRESS_KIND, pos, x, n, t)
    call expect(count(x /= 0) == size(want) .and. all(x == back .or. x == 0), what // ', unpacked')
    x = back
  end subroutine
  ! Three numbers of which two fill an element.
  subroutine reals()
    integer(1) :: text(200)
    integer(MPI_ADDRESS_KIND) :: pos
    integer :: i
    pos = 0
    call MPI_Pack_external('external32', z(1:10:2), 5, MPI_REAL4, text, 200_MPI_ADDRESS_KIND, pos)
    calls = calls + 1
    call expect(pos == 20, 'parts of complex numbers')
    do i = 1, 5
      call expect(number(text(4 * i - 3:4 * i)) == merge(-1, 1, mod(i, 2) == 0) * (2 * ((i + 1) / 2) - 1), 'part of a complex')
    end do
  end subroutine
  real(4) function number(big)
    integer(1), intent(in) :: big(4)
    number = transfer(big(4:1:-1), 0.0_4)
  end function
  subroutine make_body(t)
    type(MPI_Datatype), intent(out) :: t
    type(MPI_Datatype) :: loose
    integer(MPI_ADDRESS_KIND) :: bytes
    bytes = storage_size(these) / 8
    call MPI_Type_create_struct(2, [1, 1], [0_MPI_ADDRESS_KIND, 8_MPI_ADDRESS_KIND], [MPI_INTEGER4, MPI_REAL8], loose)
    call MPI_Type_create_resized(loose, 0_MPI_ADDRESS_KIND, bytes, t)
    call MPI_Type_commit(t)
    call MPI_Type_free(loose)
  end subroutine
  subroutine bodies()
    integer(1) :: text(200)
    integer(MPI_ADDRESS_KIND) :: pos
    type(MPI_Request) :: r
    call make_body(t)
    pos = 0
    call MPI_Pack_external('external32', these(11:1:-2), 6, t, text, 200_MPI_ADDRESS_KIND, pos)
    calls = calls + 1
    call expect(pos == 72, 'bodies')
    do i = 1, 6
      call expect(text(12 * i - 8) == 13 - 2 * i, 'the number of a body')
      call expect(transfer(text(12 * i:12 * i - 7:-1), 0.0_8) == 0.5d0 * (13 - 2 * i), 'the place of a body')
    end do
    other = body(0, 0)
    pos = 0
    call MPI_Unpack_external('external32', text, 200_MPI_ADDRESS_KIND, pos, other(1:12:2), 6, t)
    call expect(all(other(1:11:2)%id == these(11:1:-2)%id .and. other(1:11:2)%x == these(11:1:-2)%x), 'bodies again')
    call expect(all(other(2:12:2)%id == 0 .and. other(2:12:2)%x == 0), 'beside them')
    call MPI_Isend(these(2:12:5), 3, t, 0, 1, MPI_COMM_WORLD, r)
    call MPI_Recv(other(12:1:-4), 3, t, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Wait(r, MPI_STATUS_IGNORE)
    call expect(all(other(12:1:-4)%id == [2, 7, 12]), 'bodies sent')
    call MPI_Type_free(t)
  end subroutine
  subroutine one_sided()
    type(MPI_Win) :: w
    integer(4), asynchronous :: s(8)
    call MPI_Type_vector(2, 1, 2, MPI_INTEGER4, t)
    call MPI_Type_commit(t)
    call MPI_Win_create(s, 32_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, w)
    s = 100
    call MPI_Win_fence(0, w)
    call MPI_Accumulate(a(1:39:3), 2, t, 0, 1_MPI_ADDRESS_KIND, 4, MPI_INTEGER4, MPI_SUM, w)
    call MPI_Win_fence(0, w)
    call expect(all(s == [100, 101, 107, 110, 116, 100, 100, 100]), 'accumulate')
    call MPI_Win_free(w)
    call MPI_Type_free(t)
  end subroutine
  subroutine partitioned()
    type(MPI_Request) :: r(2)
    call make_body(t)
    other = body(0, 0)
    call MPI_Psend_init(these(1:10:3), 2, 2_MPI_COUNT_KIND, t, 0, 3, MPI_COMM_WORLD, MPI_INFO_NULL, r(1))
    call MPI_Precv_init(other(12:1:-3), 1, 4_MPI_COUNT_KIND, t, 0, 3, MPI_COMM_WORLD, MPI_INFO_NULL, r(2))
    call MPI_Startall(2, r)
    call MPI_Pready(1, r(1))
    call MPI_Pready(0, r(1))
    call MPI_Waitall(2, r, MPI_STATUSES_IGNORE)
    call expect(all(other(12:1:-3)%id == [1, 4, 7, 10]) .and. count(other%id /= 0) == 4, 'partitions of bodies')
    call MPI_Request_free(r(1))
    call MPI_Request_free(r(2))
    call MPI_Type_free(t)
  end subroutine
  subroutine tool()
    integer(c_int) :: compared, bytes
    call c_seen(compared, bytes)
    call expect(compared == calls, 'the tool has seen the calls')
    call expect(bytes == 0, 'and their elements')
  end subroutine
end program
