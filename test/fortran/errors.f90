! SPDX-License-Identifier: BSD-3-Clause
! errors.f90 - error handlers of the program, classes, texts, and names padded with blanks.  ranks: 1
module handlers
  use mpi
  implicit none
  integer :: called = 0, seen_comm = 0, seen_class = 0
contains
  subroutine handler(comm, code)
    integer :: comm, code
    integer :: ierr
    called = called + 1
    seen_comm = comm
    call MPI_Error_class(code, seen_class, ierr)
  end subroutine
end module

program errors
  use handlers
  implicit none
  integer :: ierr, h, dup, n, class, code, info, keys, k
  character(len=MPI_MAX_ERROR_STRING) :: text
  character(len=30) :: name, value
  logical :: flag
  call MPI_Init(ierr)
  call MPI_Comm_dup(MPI_COMM_WORLD, dup, ierr)
  call MPI_Comm_create_errhandler(handler, h, ierr)
  call MPI_Comm_set_errhandler(dup, h, ierr)
  call MPI_Errhandler_free(h, ierr)
  call expect(h == MPI_ERRHANDLER_NULL, 'handler freed')
  call MPI_Send(n, 1, MPI_INTEGER, 99, 0, dup, ierr)
  call expect(called == 1 .and. seen_comm == dup .and. seen_class == MPI_ERR_RANK, 'the handler hears of a rank')
  call MPI_Error_class(ierr, class, ierr)
  call expect(class == MPI_ERR_RANK, 'the code is returned')
  call MPI_Comm_call_errhandler(dup, MPI_ERR_TAG, ierr)
  call expect(called == 2 .and. seen_class == MPI_ERR_TAG, 'called by hand')
  call MPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN, ierr)
  call MPI_Send(n, -1, MPI_INTEGER, 0, 0, dup, ierr)
  call MPI_Error_class(ierr, class, k)
  call expect(class == MPI_ERR_COUNT, 'a count below zero')
  text = 'x'
  call MPI_Error_string(ierr, text, n, k)
  call expect(n > 10 .and. text(n + 1:) == ' ', 'the text is padded')
  call MPI_Add_error_class(class, ierr)
  call MPI_Add_error_code(class, code, ierr)
  call MPI_Add_error_string(code, 'of the program   ', ierr)
  call MPI_Error_string(code, text, n, ierr)
  call expect(text == 'of the program' .and. n == 14, 'a text of the program')
  ! Names.
  call MPI_Comm_set_name(dup, 'a name  ', ierr)
  call MPI_Comm_get_name(dup, name, n, ierr)
  call expect(name == 'a name' .and. n == 6, 'a name')
  call MPI_Comm_get_name(dup, name(1:3), n, ierr)
  call expect(name(1:3) == 'a n', 'a name that is cut')
  ! Info: blanks at both ends do not count.
  call MPI_Info_create(info, ierr)
  call MPI_Info_set(info, '  key ', ' a value ', ierr)
  call MPI_Info_get_nkeys(info, keys, ierr)
  call expect(keys == 1, 'one key')
  call MPI_Info_get_nthkey(info, 0, name, ierr)
  call expect(name == 'key', 'its name')
  call MPI_Info_get(info, 'key', 30, value, flag, ierr)
  call expect(flag .and. value == 'a value', 'its value')
  n = 30
  call MPI_Info_get_string(info, 'key', n, value, flag, ierr)
  call expect(flag .and. value == 'a value' .and. n == 7, 'its length')
  n = 0
  value = 'kept'
  call MPI_Info_get_string(info, 'key', n, value, flag, ierr)
  call expect(flag .and. n == 7 .and. value == 'kept', 'its length alone')
  call MPI_Info_get(info, 'none', 30, value, flag, ierr)
  call expect(.not. flag, 'no such key')
  call MPI_Info_free(info, ierr)
  call MPI_Comm_free(dup, ierr)
  call MPI_Finalize(ierr)
end program
