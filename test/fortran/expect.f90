! SPDX-License-Identifier: BSD-3-Clause
! expect.f90 - linked with every program here: a line and an end when something is not as it should be.
subroutine expect(truth, text)
  implicit none
  logical, intent(in) :: truth
  character(len=*), intent(in) :: text
  integer :: ierr
  include 'mpif.h'
  if (truth) return
  print '(2a)', 'not so: ', text
  call flush(6)
  call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
end subroutine
