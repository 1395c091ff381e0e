! SPDX-License-Identifier: BSD-3-Clause
! attributes.f90 - values set in Fortran and read in C and back, callbacks of both generations.  ranks: 1
module callbacks
  use mpi
  implicit none
  integer :: copies = 0, deletes = 0, old_copies = 0, old_deletes = 0
  integer(kind=MPI_ADDRESS_KIND) :: seen_extra = 0, seen_value = 0
contains
  subroutine copy(comm, key, extra, in, out, flag, ierr)
    integer :: comm, key, ierr
    integer(kind=MPI_ADDRESS_KIND) :: extra, in, out
    logical :: flag
    copies = copies + 1
    seen_extra = extra
    out = in + 1
    flag = .true.
    ierr = MPI_SUCCESS
    if (comm /= MPI_COMM_WORLD .or. key < 0) ierr = MPI_ERR_OTHER
  end subroutine
  subroutine drop(comm, key, value, extra, ierr)
    integer :: comm, key, ierr
    integer(kind=MPI_ADDRESS_KIND) :: value, extra
    deletes = deletes + 1
    seen_extra = extra
    seen_value = value
    ierr = MPI_SUCCESS
    if (comm == MPI_COMM_NULL .or. key < 0) ierr = MPI_ERR_OTHER
  end subroutine
  subroutine old_copy(comm, key, extra, in, out, flag, ierr)
    integer :: comm, key, extra, in, out, ierr
    logical :: flag
    old_copies = old_copies + extra
    out = in
    flag = .false.
    ierr = MPI_SUCCESS
    if (comm == MPI_COMM_NULL .or. key < 0) ierr = MPI_ERR_OTHER
  end subroutine
  subroutine old_drop(comm, key, value, extra, ierr)
    integer :: comm, key, value, extra, ierr
    old_deletes = old_deletes + extra
    ierr = MPI_SUCCESS
    if (comm == MPI_COMM_NULL .or. key < 0 .or. value == 0) ierr = MPI_ERR_OTHER
  end subroutine
end module

program attributes
  use, intrinsic :: iso_c_binding
  use callbacks
  implicit none
  ! attributes_c.c
  interface
    function c_reads_address(comm, key) bind(C)
      import c_int, c_intptr_t
      integer(c_int), value :: comm, key
      integer(c_intptr_t) :: c_reads_address
    end function
    function c_reads_integer(comm, key) bind(C)
      import c_int
      integer(c_int), value :: comm, key
      integer(c_int) :: c_reads_integer
    end function
    subroutine c_sets(comm, key, value) bind(C)
      import c_int, c_intptr_t
      integer(c_int), value :: comm, key
      integer(c_intptr_t), value :: value
    end subroutine
    function c_key() bind(C)
      import c_int
      integer(c_int) :: c_key
    end function
  end interface
  integer :: ierr, key, null_key, dup_key, old, ckey, comm, i, win, type_key, new
  integer(kind=MPI_ADDRESS_KIND) :: value, extra
  logical :: flag
  call MPI_Init(ierr)
  extra = 1234567890123_MPI_ADDRESS_KIND
  call MPI_Comm_create_keyval(copy, drop, key, extra, ierr)
  call MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, null_key, extra, ierr)
  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, dup_key, extra, ierr)
  call MPI_Keyval_create(old_copy, old_drop, old, 3, ierr)
  ckey = c_key()
  ! Set here, read in both languages.
  value = -9876543210_MPI_ADDRESS_KIND
  call MPI_Comm_set_attr(MPI_COMM_WORLD, key, value, ierr)
  call MPI_Comm_set_attr(MPI_COMM_WORLD, null_key, value, ierr)
  call MPI_Comm_set_attr(MPI_COMM_WORLD, dup_key, value, ierr)
  call MPI_Comm_set_attr(MPI_COMM_WORLD, ckey, value, ierr)
  call MPI_Attr_put(MPI_COMM_WORLD, old, -77, ierr)
  call read_back(MPI_COMM_WORLD, key, value)
  call expect(c_reads_address(int(MPI_COMM_WORLD, c_int), int(key, c_int)) == value, 'C reads an address-sized value')
  call expect(c_reads_address(int(MPI_COMM_WORLD, c_int), int(ckey, c_int)) == value, 'C reads under its own key')
  call expect(c_reads_integer(int(MPI_COMM_WORLD, c_int), int(old, c_int)) == -77, 'C reads an INTEGER')
  call MPI_Attr_get(MPI_COMM_WORLD, old, i, flag, ierr)
  call expect(flag .and. i == -77, 'an INTEGER comes back')
  call read_back(MPI_COMM_WORLD, old, -77_MPI_ADDRESS_KIND)
  ! Set in C, read here.
  call c_sets(int(MPI_COMM_WORLD, c_int), int(null_key, c_int), 4096_c_intptr_t)
  call read_back(MPI_COMM_WORLD, null_key, 4096_MPI_ADDRESS_KIND)
  ! Copied and deleted.
  call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierr)
  call expect(copies == 1 .and. seen_extra == extra, 'copy function')
  call expect(old_copies == 3, 'old copy function')
  call read_back(comm, key, value + 1)
  call read_back(comm, dup_key, value)
  call MPI_Comm_get_attr(comm, null_key, value, flag, ierr)
  call expect(.not. flag, 'null copy function')
  call MPI_Attr_get(comm, old, i, flag, ierr)
  call expect(.not. flag, 'a copy function that says no')
  call MPI_Comm_free(comm, ierr)
  call expect(deletes == 1 .and. seen_value == -9876543210_MPI_ADDRESS_KIND + 1, 'delete function')
  call MPI_Comm_delete_attr(MPI_COMM_WORLD, key, ierr)
  call MPI_Attr_delete(MPI_COMM_WORLD, old, ierr)
  call expect(deletes == 2 .and. old_deletes == 3, 'deleted')
  call MPI_Comm_free_keyval(key, ierr)
  call expect(key == MPI_KEYVAL_INVALID, 'key freed')
  ! Predefined ones are numbers.
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierr)
  call expect(flag .and. value >= 32767, 'MPI_TAG_UB')
  call MPI_Attr_get(MPI_COMM_WORLD, MPI_TAG_UB, i, flag, ierr)
  call expect(flag .and. i >= 32767, 'MPI_TAG_UB, old')
  call MPI_Win_create(ckey, 4_MPI_ADDRESS_KIND, 2, MPI_INFO_NULL, MPI_COMM_SELF, win, ierr)
  call MPI_Win_get_attr(win, MPI_WIN_SIZE, value, flag, ierr)
  call expect(flag .and. value == 4, 'MPI_WIN_SIZE')
  call MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, value, flag, ierr)
  call expect(flag .and. value == 2, 'MPI_WIN_DISP_UNIT')
  call MPI_Win_get_attr(win, MPI_WIN_BASE, value, flag, ierr)
  call MPI_Get_address(ckey, extra, ierr)
  call expect(flag .and. value == extra, 'MPI_WIN_BASE')
  call MPI_Win_free(win, ierr)
  call MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, type_key, extra, ierr)
  call MPI_Type_set_attr(MPI_INTEGER, type_key, 5_MPI_ADDRESS_KIND, ierr)
  call MPI_Type_dup(MPI_INTEGER, new, ierr)
  call MPI_Type_get_attr(new, type_key, value, flag, ierr)
  call expect(flag .and. value == 5, 'on datatypes')
  call MPI_Type_free(new, ierr)
  call MPI_Finalize(ierr)
contains
  subroutine read_back(comm, key, want)
    integer, intent(in) :: comm, key
    integer(kind=MPI_ADDRESS_KIND), intent(in) :: want
    integer(kind=MPI_ADDRESS_KIND) :: got
    logical :: have
    call MPI_Comm_get_attr(comm, key, got, have, ierr)
    call expect(have, 'a value is there')
    call expect(got == want, 'the value comes back')
  end subroutine
end program
