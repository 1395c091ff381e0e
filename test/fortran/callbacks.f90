! SPDX-License-Identifier: BSD-3-Clause
! callbacks.f90 - use mpi_f08: what the program hands over to be called, and what C sees of it; how datatypes were made.  ranks: 2
module called
  use, intrinsic :: iso_c_binding
  use mpi_f08
  implicit none
  integer :: copies = 0, deletes = 0, handled = 0, class_seen = 0, converted = 0, freed = 0
  integer(kind=MPI_ADDRESS_KIND) :: extra_seen = 0
  integer(kind=MPI_COUNT_KIND) :: longest = 0
  interface
    function c_reads(what, object, key) bind(C) ! callbacks_c.c
      import c_int, c_intptr_t
      integer(c_int), value :: what, object, key
      integer(c_intptr_t) :: c_reads
    end function
    function c_raises(what, object, code) bind(C)
      import c_int
      integer(c_int), value :: what, object, code
      integer(c_int) :: c_raises
    end function
    function c_reduces(op, datatype, count) bind(C)
      import c_int
      integer(c_int), value :: op, datatype, count
      integer(c_int) :: c_reduces
    end function
  end interface
contains
  subroutine copied(out, in, extra, flag, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: out, in, extra
    logical :: flag
    integer :: ierror
    copies = copies + 1
    extra_seen = extra
    out = in + 1
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine
  subroutine comm_copy(oldcomm, comm_keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
    type(MPI_Comm) :: oldcomm
    integer :: comm_keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    call copied(attribute_val_out, attribute_val_in, extra_state, flag, ierror)
    if (oldcomm == MPI_COMM_NULL .or. comm_keyval == MPI_KEYVAL_INVALID) ierror = MPI_ERR_OTHER
  end subroutine
  subroutine type_copy(oldtype, type_keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
    type(MPI_Datatype) :: oldtype
    integer :: type_keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    call copied(attribute_val_out, attribute_val_in, extra_state, flag, ierror)
    if (oldtype == MPI_DATATYPE_NULL .or. type_keyval == MPI_KEYVAL_INVALID) ierror = MPI_ERR_OTHER
  end subroutine
  subroutine comm_drop(comm, comm_keyval, attribute_val, extra_state, ierror)
    type(MPI_Comm) :: comm
    integer :: comm_keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: attribute_val, extra_state
    deletes = deletes + 1
    ierror = MPI_SUCCESS
    if (comm == MPI_COMM_NULL .or. comm_keyval == MPI_KEYVAL_INVALID .or. attribute_val == extra_state) ierror = MPI_ERR_OTHER
  end subroutine
  subroutine win_drop(win, win_keyval, attribute_val, extra_state, ierror)
    type(MPI_Win) :: win
    integer :: win_keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: attribute_val, extra_state
    deletes = deletes + 1
    ierror = MPI_SUCCESS
    if (win == MPI_WIN_NULL .or. win_keyval == MPI_KEYVAL_INVALID .or. attribute_val == extra_state) ierror = MPI_ERR_OTHER
  end subroutine

  subroutine comm_error(comm, error_code)
    type(MPI_Comm) :: comm
    integer :: error_code
    if (comm /= MPI_COMM_NULL) call heard(error_code)
  end subroutine
  subroutine win_error(win, error_code)
    type(MPI_Win) :: win
    integer :: error_code
    if (win /= MPI_WIN_NULL) call heard(error_code)
  end subroutine
  subroutine file_error(file, error_code)
    type(MPI_File) :: file
    integer :: error_code
    if (file /= MPI_FILE_NULL) call heard(error_code)
  end subroutine
  subroutine session_error(session, error_code)
    type(MPI_Session) :: session
    integer :: error_code
    if (session /= MPI_SESSION_NULL) call heard(error_code)
  end subroutine
  subroutine heard(code)
    integer, intent(in) :: code
    handled = handled + 1
    call MPI_Error_class(code, class_seen)
  end subroutine

  ! Elements are pairs of a DOUBLE PRECISION and an INTEGER: the larger one, and the sum.
  subroutine pairs(invec, inoutvec, n, gap)
    type(c_ptr), intent(in) :: invec, inoutvec
    integer, intent(in) :: n
    integer(kind=MPI_ADDRESS_KIND), intent(in) :: gap
    real(8), pointer :: a(:), b(:)
    integer :: i, step
    step = int(gap) / 8
    call c_f_pointer(invec, a, [n * step])
    call c_f_pointer(inoutvec, b, [n * step])
    do i = 1, n * step, step
      b(i) = max(a(i), b(i))
      b(i + 1) = a(i + 1) + b(i + 1)
    end do
  end subroutine
  subroutine larger(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
    integer(kind=MPI_ADDRESS_KIND) :: lb, extent
    call MPI_Type_get_extent(datatype, lb, extent)
    call pairs(invec, inoutvec, len, extent)
    longest = max(longest, int(len, MPI_COUNT_KIND))
  end subroutine
  subroutine larger_c(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer(kind=MPI_COUNT_KIND) :: len
    type(MPI_Datatype) :: datatype
    integer(kind=MPI_ADDRESS_KIND) :: lb, extent
    call MPI_Type_get_extent(datatype, lb, extent)
    call pairs(invec, inoutvec, int(len), extent)
    longest = max(longest, len)
  end subroutine

  subroutine asked(extra_state, status, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    type(MPI_Status) :: status
    integer :: ierror
    call MPI_Status_set_elements(status, MPI_INTEGER, int(extra_state))
    call MPI_Status_set_cancelled(status, .false.)
    status%MPI_TAG = 17
    ierror = MPI_SUCCESS
  end subroutine
  subroutine released(extra_state, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    freed = freed + int(extra_state)
    ierror = MPI_SUCCESS
  end subroutine
  subroutine cancelled(extra_state, complete, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    logical :: complete
    integer :: ierror
    ierror = MPI_SUCCESS
    if (complete .or. extra_state /= 3) ierror = MPI_ERR_OTHER
  end subroutine

  ! In the file stands each INTEGER plus extra_state.
  subroutine move(to, from, n, plus)
    type(c_ptr), intent(in) :: to, from
    integer, intent(in) :: n
    integer, intent(in) :: plus
    integer, pointer :: t(:), f(:)
    call c_f_pointer(to, t, [n])
    call c_f_pointer(from, f, [n])
    t = f + plus
    converted = converted + n
  end subroutine
  subroutine reads(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    type(c_ptr), value :: userbuf, filebuf
    type(MPI_Datatype) :: datatype
    integer :: count, ierror
    integer(kind=MPI_OFFSET_KIND) :: position
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer, pointer :: u(:)
    call c_f_pointer(userbuf, u, [int(position) + count])
    call move(c_loc(u(int(position) + 1)), filebuf, count, -int(extra_state))
    ierror = MPI_SUCCESS
    if (datatype == MPI_DATATYPE_NULL) ierror = MPI_ERR_TYPE
  end subroutine
  subroutine writes(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    type(c_ptr), value :: userbuf, filebuf
    type(MPI_Datatype) :: datatype
    integer :: count, ierror
    integer(kind=MPI_OFFSET_KIND) :: position
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer, pointer :: u(:)
    call c_f_pointer(userbuf, u, [int(position) + count])
    call move(filebuf, c_loc(u(int(position) + 1)), count, int(extra_state))
    ierror = MPI_SUCCESS
    if (datatype == MPI_DATATYPE_NULL) ierror = MPI_ERR_TYPE
  end subroutine
  subroutine reads_c(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    type(c_ptr), value :: userbuf, filebuf
    type(MPI_Datatype) :: datatype
    integer(kind=MPI_COUNT_KIND) :: count
    integer(kind=MPI_OFFSET_KIND) :: position
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror, n
    n = int(count)
    call reads(userbuf, datatype, n, filebuf, position, extra_state, ierror)
  end subroutine
  subroutine writes_c(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    type(c_ptr), value :: userbuf, filebuf
    type(MPI_Datatype) :: datatype
    integer(kind=MPI_COUNT_KIND) :: count
    integer(kind=MPI_OFFSET_KIND) :: position
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror, n
    n = int(count)
    call writes(userbuf, datatype, n, filebuf, position, extra_state, ierror)
  end subroutine
  subroutine extent_of(datatype, extent, extra_state, ierror)
    type(MPI_Datatype) :: datatype
    integer(kind=MPI_ADDRESS_KIND) :: extent, extra_state
    integer :: ierror
    extent = storage_size(1) / 8
    ierror = MPI_SUCCESS
    if (datatype == MPI_DATATYPE_NULL .or. extra_state <= 0) ierror = MPI_ERR_TYPE
  end subroutine
end module

program callbacks
  use called
  implicit none
  integer :: rank, n
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, n)
  call attributes
  call handlers
  call operations
  call requests
  call representations
  call envelopes
  call MPI_Finalize()
contains
  subroutine attributes
    type(MPI_Comm) :: comm
    type(MPI_Datatype) :: datatype
    type(MPI_Win) :: win
    integer :: comm_key, type_key, win_key, memory(4)
    integer(kind=MPI_ADDRESS_KIND) :: extra, got
    logical :: flag
    extra = 1234567890123_MPI_ADDRESS_KIND
    call MPI_Comm_create_keyval(comm_copy, comm_drop, comm_key, extra)
    call MPI_Type_create_keyval(type_copy, MPI_TYPE_NULL_DELETE_FN, type_key, extra)
    call MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, win_drop, win_key, extra)
    call MPI_Comm_set_attr(MPI_COMM_WORLD, comm_key, -5000000000_MPI_ADDRESS_KIND)
    call MPI_Type_set_attr(MPI_INTEGER, type_key, -5000000001_MPI_ADDRESS_KIND)
    call MPI_Win_create(memory, 16_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win)
    call MPI_Win_set_attr(win, win_key, -5000000002_MPI_ADDRESS_KIND)
    ! C gets the address of each.
    call expect(c_reads(0_c_int, int(MPI_COMM_WORLD%MPI_VAL, c_int), int(comm_key, c_int)) == -5000000000_c_intptr_t, 'comm in C')
    call expect(c_reads(1_c_int, int(MPI_INTEGER%MPI_VAL, c_int), int(type_key, c_int)) == -5000000001_c_intptr_t, 'type in C')
    call expect(c_reads(2_c_int, int(win%MPI_VAL, c_int), int(win_key, c_int)) == -5000000002_c_intptr_t, 'win in C')
    call MPI_Comm_dup(MPI_COMM_WORLD, comm)
    call MPI_Comm_get_attr(comm, comm_key, got, flag)
    call expect(flag .and. got == -4999999999_MPI_ADDRESS_KIND .and. extra_seen == extra, 'copied for comm')
    call MPI_Type_dup(MPI_INTEGER, datatype)
    call MPI_Type_get_attr(datatype, type_key, got, flag)
    call expect(flag .and. got == -5000000000_MPI_ADDRESS_KIND .and. copies == 2, 'copied for type')
    call MPI_Win_get_attr(win, win_key, got, flag)
    call expect(flag .and. got == -5000000002_MPI_ADDRESS_KIND, 'win')
    call MPI_Comm_free(comm)
    call MPI_Type_free(datatype)
    call MPI_Win_free(win)
    call expect(deletes == 2, 'deleted with comm and win')
    call MPI_Comm_delete_attr(MPI_COMM_WORLD, comm_key)
    call MPI_Type_delete_attr(MPI_INTEGER, type_key)
    call expect(deletes == 3, 'deleted')
  end subroutine

  ! Each is called once by MPI and once by C.
  subroutine handlers
    type(MPI_Errhandler) :: h, back
    type(MPI_Comm) :: comm
    type(MPI_Win) :: win
    type(MPI_File) :: file
    type(MPI_Session) :: session
    integer :: x, memory(4), ierror
    character(len=60) :: name
    call MPI_Comm_dup(MPI_COMM_SELF, comm)
    call MPI_Comm_create_errhandler(comm_error, h)
    call MPI_Comm_set_errhandler(comm, h)
    call MPI_Comm_get_errhandler(comm, back)
    call expect(back == h, 'the same handler')
    call MPI_Send(x, 1, MPI_INTEGER, 99, 0, comm, ierror)
    call expect(handled == 1 .and. class_seen == MPI_ERR_RANK .and. ierror /= MPI_SUCCESS, 'comm')
    call MPI_Send(x, 1, MPI_INTEGER, 99, 0, comm)
    call expect(handled == 2, 'without ierror')
    call expect(c_raises(0_c_int, int(comm%MPI_VAL, c_int), int(MPI_ERR_TAG, c_int)) == 0, 'C raises')
    call expect(handled == 3 .and. class_seen == MPI_ERR_TAG, 'comm, from C')
    call MPI_Comm_free(comm)
    call MPI_Win_create(memory, 16_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_SELF, win)
    call MPI_Win_create_errhandler(win_error, h)
    call MPI_Win_set_errhandler(win, h)
    call MPI_Put(x, 1, MPI_INTEGER, 99, 0_MPI_ADDRESS_KIND, 1, MPI_INTEGER, win, ierror)
    call expect(handled == 4 .and. ierror /= MPI_SUCCESS, 'win')
    call expect(c_raises(1_c_int, int(win%MPI_VAL, c_int), int(MPI_ERR_DISP, c_int)) == 0, 'C raises')
    call expect(handled == 5 .and. class_seen == MPI_ERR_DISP, 'win, from C')
    call MPI_Win_free(win)
    write (name, '(a,i0)') 'callbacks.handlers.', rank
    call MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE + MPI_MODE_RDWR + MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, file)
    call MPI_File_create_errhandler(file_error, h)
    call MPI_File_set_errhandler(file, h)
    call MPI_File_seek(file, -4_MPI_OFFSET_KIND, MPI_SEEK_SET, ierror)
    call expect(handled == 6 .and. ierror /= MPI_SUCCESS, 'file')
    call expect(c_raises(2_c_int, int(file%MPI_VAL, c_int), int(MPI_ERR_AMODE, c_int)) == 0, 'C raises')
    call expect(handled == 7 .and. class_seen == MPI_ERR_AMODE, 'file, from C')
    call MPI_File_close(file)
    call MPI_Session_create_errhandler(session_error, h)
    call MPI_Session_init(MPI_INFO_NULL, h, session)
    call MPI_Session_call_errhandler(session, MPI_ERR_NAME)
    call expect(handled == 8 .and. class_seen == MPI_ERR_NAME, 'session')
    call expect(c_raises(3_c_int, int(session%MPI_VAL, c_int), int(MPI_ERR_ARG, c_int)) == 0, 'C raises')
    call expect(handled == 9 .and. class_seen == MPI_ERR_ARG, 'session, from C')
    call MPI_Session_finalize(session)
    call MPI_Errhandler_free(h)
  end subroutine

  subroutine operations
    type(MPI_Datatype) :: row, pair
    type(MPI_Op) :: op
    type(MPI_Request) :: request
    integer, parameter :: many = 20000
    real(8), allocatable :: a(:), b(:)
    integer :: k, i
    call MPI_Type_contiguous(2, MPI_REAL8, row)
    call MPI_Type_create_resized(row, 0_MPI_ADDRESS_KIND, 24_MPI_ADDRESS_KIND, pair)
    call MPI_Type_commit(pair)
    allocate (a(3 * many), b(3 * many))
    do k = 1, 2
      if (k == 1) call MPI_Op_create(larger, .true., op)
      if (k == 2) call MPI_Op_create_c(larger_c, .true., op)
      longest = 0
      do i = 1, many
        a(3 * i - 2:3 * i) = [real(i + rank, 8), 1d0, 99d0]
      end do
      b = -7
      call MPI_Allreduce(a, b, many, pair, op, MPI_COMM_WORLD)
      call expect(all(b(1::3) == [(real(i + n - 1, 8), i = 1, many)]) .and. all(b(2::3) == n) .and. all(b(3::3) == -7), 'pairs')
      b = -7
      call MPI_Iallreduce(a, b, int(many, MPI_COUNT_KIND), pair, op, MPI_COMM_WORLD, request)
      call MPI_Wait(request, MPI_STATUS_IGNORE)
      call expect(b(3 * many - 2) == many + n - 1 .and. b(2) == n .and. b(3) == -7, 'pairs, in the background')
      call expect(longest > 0, 'called')
      call expect(c_reduces(int(op%MPI_VAL, c_int), int(pair%MPI_VAL, c_int), 5_c_int) == 1, 'C reduces by it')
      call MPI_Op_free(op)
    end do
    call MPI_Type_free(pair)
    call MPI_Type_free(row)
  end subroutine

  subroutine requests
    type(MPI_Request) :: request
    type(MPI_Status) :: status
    integer :: count
    call MPI_Grequest_start(asked, released, cancelled, 3_MPI_ADDRESS_KIND, request)
    call MPI_Cancel(request)
    call MPI_Grequest_complete(request)
    call MPI_Wait(request, status)
    call MPI_Get_count(status, MPI_INTEGER, count)
    call expect(count == 3 .and. status%MPI_TAG == 17 .and. freed == 3, 'a generalized request')
  end subroutine

  subroutine representations
    type(MPI_File) :: file
    character(len=60) :: name, rep
    integer :: k, a(100), b(100), i
    a = [(i, i = 1, 100)]
    do k = 1, 2
      write (rep, '(a,i0)') 'plus', k
      if (k == 1) call MPI_Register_datarep(rep, reads, writes, extent_of, 1000_MPI_ADDRESS_KIND)
      if (k == 2) call MPI_Register_datarep_c(rep, reads_c, writes_c, extent_of, 1000_MPI_ADDRESS_KIND)
      converted = 0
      write (name, '(a,i0,a,i0)') 'callbacks.rep.', k, '.', rank
      call MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE + MPI_MODE_RDWR + MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, file)
      call MPI_File_set_view(file, 0_MPI_OFFSET_KIND, MPI_INTEGER, MPI_INTEGER, rep, MPI_INFO_NULL)
      call MPI_File_write_at(file, 0_MPI_OFFSET_KIND, a, 100, MPI_INTEGER, MPI_STATUS_IGNORE)
      b = 0
      call MPI_File_read_at(file, 0_MPI_OFFSET_KIND, b, 100, MPI_INTEGER, MPI_STATUS_IGNORE)
      call expect(all(b == a) .and. converted == 200, 'there and back')
      call MPI_File_set_view(file, 0_MPI_OFFSET_KIND, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL)
      call MPI_File_read_at(file, 0_MPI_OFFSET_KIND, b, 100, MPI_INTEGER, MPI_STATUS_IGNORE)
      call expect(all(b == a + 1000), 'converted in the file')
      call MPI_File_close(file)
    end do
    call MPI_Register_datarep_c('none', MPI_CONVERSION_FN_NULL_C, MPI_CONVERSION_FN_NULL_C, extent_of, 1_MPI_ADDRESS_KIND, i)
    call expect(i == MPI_SUCCESS, 'without conversions')
  end subroutine

  subroutine envelopes
    type(MPI_Datatype) :: datatype, types(1)
    integer :: combiner
    integer :: ints(3), ni, na, nd
    integer(kind=MPI_ADDRESS_KIND) :: addresses(3)
    call MPI_Type_vector(3, 2, 5, MPI_INTEGER, datatype)
    call MPI_Type_get_envelope(datatype, ni, na, nd, combiner)
    call expect(ni == 3 .and. na == 0 .and. nd == 1 .and. combiner == MPI_COMBINER_VECTOR, 'an envelope')
    call MPI_Type_get_contents(datatype, ni, na, nd, ints, addresses, types)
    call expect(all(ints == [3, 2, 5]) .and. types(1) == MPI_INTEGER, 'contents')
    call MPI_Type_free(datatype)
    call large_envelopes
  end subroutine

  ! By the names of the large forms: with INTEGERs of 8 bytes they have no other.
  subroutine large_envelopes
    integer(kind=MPI_COUNT_KIND), parameter :: huge_count = 5000000000_MPI_COUNT_KIND
    type(MPI_Datatype) :: datatype, types(2)
    integer :: combiner, ints(2), ierror
    integer(kind=MPI_COUNT_KIND) :: ni, na, nl, nd, counts(3)
    integer(kind=MPI_ADDRESS_KIND) :: addresses(2)
    call MPI_Type_contiguous(huge_count, MPI_INTEGER, datatype)
    call MPI_Type_get_envelope_c(datatype, ni, na, nl, nd, combiner)
    call expect(ni + na == 0 .and. nl == 1 .and. nd == 1 .and. combiner == MPI_COMBINER_CONTIGUOUS, 'a large envelope')
    counts = -1
    ints = -1
    types = MPI_BYTE
    call MPI_Type_get_contents_c(datatype, ni, na, nl, nd, ints, addresses, counts, types)
    call expect(all(counts == [huge_count, -1_MPI_COUNT_KIND, -1_MPI_COUNT_KIND]) .and. all(ints == -1), 'large contents')
    call expect(types(1) == MPI_INTEGER .and. types(2) == MPI_BYTE, 'as many datatypes as there are')
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
    call MPI_Type_get_contents_c(datatype, ni, na, 0_MPI_COUNT_KIND, nd, ints, addresses, counts, types, ierror)
    call expect(ierror /= MPI_SUCCESS, 'no room for a count')
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL)
    call MPI_Type_free(datatype)
  end subroutine
end program
