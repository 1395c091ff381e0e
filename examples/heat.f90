! SPDX-License-Identifier: BSD-3-Clause
!
! heat.f90 - heat spreads in a thick plate with a picture painted hot on its top: heat.c in Fortran.
!
! The picture's rows are divided among the ranks, the plate's layers among the threads.  A plate is
! plate(x, y, z), so the edge that a thread sends is the section plate(:, y, z0:z1): it goes to the
! neighbour and arrives in the neighbour's own section while the inner rows are computed.  No copy
! of it is made by the program, and none by the compiler, since MPI_SUBARRAYS_SUPPORTED is true.
!
!   mpifort -O2 -fopenmp examples/heat.f90 -o heat && mpiexec -n 2 ./heat
!   mpiexec -n 2 ./heat [--in FILE] [--out FILE] [--steps N] [--layers N]
!
! Reads and writes PGM.  The picture is the same to the bit as heat.c's: each cell is computed once,
! from the same numbers, in the same order (where a processor adds and multiplies in one
! instruction, compile both with -ffp-contract=off).
program heat
  use mpi_f08
  use omp_lib, only: omp_get_thread_num, omp_get_num_threads, omp_get_max_threads
  use, intrinsic :: iso_fortran_env, only: real64, int64, error_unit
  implicit none

  real(real64), parameter :: alpha = 0.15_real64 ! below 1/6 the scheme is stable
  character(len=1), parameter :: newline = achar(10)
  integer :: rank, ranks, level, above, below
  integer :: width, height, rows, steps, layers
  character(len=4096) :: in, out
  real(real64), allocatable :: picture(:, :)
  ! Rows 0 and rows + 1 are the neighbours'.
  real(real64), pointer, contiguous, asynchronous :: now(:, :, :), next(:, :, :)
  real(real64) :: total, waits

  call MPI_Init_thread(MPI_THREAD_MULTIPLE, level)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  if (level < MPI_THREAD_MULTIPLE) call give_up('this MPI does not give MPI_THREAD_MULTIPLE')
  call read_arguments()
  allocate (picture(0, 0))
  if (rank == 0) call read_picture()
  call MPI_Bcast(width, 1, MPI_INTEGER, 0, MPI_COMM_WORLD)
  call MPI_Bcast(height, 1, MPI_INTEGER, 0, MPI_COMM_WORLD)
  if (height < ranks) call give_up('the picture has fewer rows than there are ranks')

  above = merge(rank - 1, MPI_PROC_NULL, rank > 0)
  below = merge(rank + 1, MPI_PROC_NULL, rank < ranks - 1)
  rows = first_of(height, rank + 1, ranks) - first_of(height, rank, ranks)
  allocate (now(width, 0:rows + 1, layers), next(width, 0:rows + 1, layers))
  now = 0
  next = 0
  call spread_picture()
  if (rank == 0) print '("plate of ", i0, " x ", i0, " x ", i0, " cells, ", i0, " ranks of ", i0, " threads, ", i0, " steps")', &
    width, height, layers, ranks, omp_get_max_threads(), steps
  call simulate()
  call report()
  call collect_picture()
  if (rank == 0) call write_picture()
  call MPI_Finalize()

contains

  ! Where part i of n equal parts of `all` begins, from 0.
  pure integer function first_of(all, i, n)
    integer, intent(in) :: all, i, n
    first_of = int(int(all, int64)*i/n)
  end function

  subroutine give_up(text)
    character(len=*), intent(in) :: text
    write (error_unit, '(2a)') 'heat: ', text
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine

  ! ---- one step, by all threads ----------------------------------------------------------------

  ! Layers z0 .. z1 of the edges go to the same thread of the neighbours: the tag is the thread.
  subroutine exchange_start(z0, z1, thread, requests)
    integer, intent(in) :: z0, z1, thread
    type(MPI_Request), intent(out) :: requests(4)
    integer :: n
    n = width*(z1 - z0 + 1)
    call MPI_Irecv(now(:, 0, z0:z1), n, MPI_DOUBLE_PRECISION, above, thread, MPI_COMM_WORLD, requests(1))
    call MPI_Irecv(now(:, rows + 1, z0:z1), n, MPI_DOUBLE_PRECISION, below, thread, MPI_COMM_WORLD, requests(2))
    call MPI_Isend(now(:, 1, z0:z1), n, MPI_DOUBLE_PRECISION, above, thread, MPI_COMM_WORLD, requests(3))
    call MPI_Isend(now(:, rows, z0:z1), n, MPI_DOUBLE_PRECISION, below, thread, MPI_COMM_WORLD, requests(4))
  end subroutine

  ! Rows y0 .. y1 of layers z0 .. z1.  A neighbour beyond the plate's end is the cell itself.
  subroutine compute(y0, y1, z0, z1)
    integer, intent(in) :: y0, y1, z0, z1
    integer :: x, y, z, up, down, over, under
    real(real64) :: left, right, around
    do z = z0, z1
      over = max(z - 1, 1)
      under = min(z + 1, layers)
      do y = y0, y1
        up = merge(y, y - 1, y == 1 .and. rank == 0)
        down = merge(y, y + 1, y == rows .and. rank == ranks - 1)
        do x = 1, width
          left = now(max(x - 1, 1), y, z)
          right = now(min(x + 1, width), y, z)
          around = ((left + right) + (now(x, y, over) + now(x, y, under))) + (now(x, up, z) + now(x, down, z))
          next(x, y, z) = now(x, y, z) + alpha*(around - 6*now(x, y, z))
        end do
      end do
    end do
  end subroutine

  subroutine simulate()
    type(MPI_Request) :: requests(4)
    real(real64), pointer, contiguous, asynchronous :: other(:, :, :)
    real(real64) :: began, waited
    integer :: step, thread, z0, z1
    call MPI_Barrier(MPI_COMM_WORLD)
    waits = 0
    total = MPI_Wtime()
    !$omp parallel private(requests, began, waited, step, thread, z0, z1) reduction(+: waits)
    thread = omp_get_thread_num()
    z0 = first_of(layers, thread, omp_get_num_threads()) + 1
    z1 = first_of(layers, thread + 1, omp_get_num_threads())
    waited = 0
    do step = 1, steps
      call exchange_start(z0, z1, thread, requests)
      call compute(2, rows - 1, z0, z1)
      began = MPI_Wtime()
      call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE)
      call MPI_F_sync_reg(now)
      waited = waited + (MPI_Wtime() - began)
      ! A line at a share's end needs the layer beside it, which another thread received.
      !$omp barrier
      call compute(1, 1, z0, z1)
      if (rows > 1) call compute(rows, rows, z0, z1)
      !$omp barrier
      !$omp single
      other => now
      now => next
      next => other
      !$omp end single
    end do
    waits = waits + waited/omp_get_num_threads()
    !$omp end parallel
    total = MPI_Wtime() - total
  end subroutine

  subroutine report()
    real(real64) :: longest, mean
    call MPI_Reduce(total, longest, 1, MPI_DOUBLE_PRECISION, MPI_MAX, 0, MPI_COMM_WORLD)
    call MPI_Reduce(waits, mean, 1, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD)
    if (rank == 0) print '("total ", f0.3, " s", /, "in waits ", f0.3, " s")', longest, mean/ranks
  end subroutine

  ! ---- the picture -----------------------------------------------------------------------------

  ! Counts and displacements of every rank's rows in the picture.
  subroutine shares(counts, at)
    integer, intent(out) :: counts(ranks), at(ranks)
    integer :: r
    do r = 1, ranks
      at(r) = first_of(height, r - 1, ranks)*width
      counts(r) = first_of(height, r, ranks)*width - at(r)
    end do
  end subroutine

  ! The top layer's rows go out to the ranks, and come back.
  subroutine spread_picture()
    integer :: counts(ranks), at(ranks)
    call shares(counts, at)
    call MPI_Scatterv(picture, counts, at, MPI_DOUBLE_PRECISION, now(:, 1:rows, 1), width*rows, MPI_DOUBLE_PRECISION, 0, &
                      MPI_COMM_WORLD)
  end subroutine

  subroutine collect_picture()
    integer :: counts(ranks), at(ranks)
    call shares(counts, at)
    call MPI_Gatherv(now(:, 1:rows, 1), width*rows, MPI_DOUBLE_PRECISION, picture, counts, at, MPI_DOUBLE_PRECISION, 0, &
                     MPI_COMM_WORLD)
  end subroutine

  ! The next number of a PGM's head, after blanks and comments.
  integer function number(unit)
    integer, intent(in) :: unit
    character(len=1) :: c
    number = 0
    read (unit) c
    do while (index(' #'//achar(9)//achar(13)//newline, c) > 0)
      if (c == '#') then
        do while (c /= newline)
          read (unit) c
        end do
      end if
      read (unit) c
    end do
    do while (c >= '0' .and. c <= '9' .and. number < 100000000)
      number = number*10 + (iachar(c) - iachar('0'))
      read (unit) c
    end do
  end function

  subroutine read_picture()
    character(len=2) :: magic
    character(len=1), allocatable :: bytes(:, :)
    integer :: unit, most, bad
    open (newunit=unit, file=in, access='stream', form='unformatted', action='read', status='old', iostat=bad)
    if (bad /= 0) call give_up('cannot open '//trim(in))
    read (unit, iostat=bad) magic
    if (bad /= 0 .or. magic /= 'P5') call give_up(trim(in)//' is no binary PGM')
    width = number(unit)
    height = number(unit)
    most = number(unit)
    if (width < 1 .or. height < 1 .or. most < 1 .or. most > 255) call give_up(trim(in)//': its head is wrong')
    allocate (bytes(width, height))
    read (unit, iostat=bad) bytes
    if (bad /= 0) call give_up(trim(in)//' is cut short')
    close (unit)
    picture = real(ichar(bytes), real64)/most
  end subroutine

  ! Brightest becomes white.
  subroutine write_picture()
    character(len=64) :: size
    real(real64) :: most
    integer :: unit, bad
    most = maxval(picture)
    if (most <= 0) most = 1
    open (newunit=unit, file=out, access='stream', form='unformatted', action='write', status='replace', iostat=bad)
    if (bad /= 0) call give_up('cannot write '//trim(out))
    write (size, '(i0, 1x, i0)') width, height
    write (unit, iostat=bad) 'P5'//newline//trim(size)//newline//'255'//newline, char(int(picture/most*255 + 0.5_real64))
    if (bad == 0) close (unit, iostat=bad)
    if (bad /= 0) call give_up('cannot write '//trim(out))
  end subroutine

  ! ---- arguments -------------------------------------------------------------------------------

  subroutine read_arguments()
    character(len=4096) :: word, value
    integer :: i, bad
    in = 'examples/heat.pgm'
    out = 'heat-out.pgm'
    steps = 200
    layers = 256
    do i = 1, command_argument_count(), 2
      call get_command_argument(i, word)
      call get_command_argument(i + 1, value)
      bad = merge(0, 1, value /= '')
      select case (word)
      case ('--in'); in = value
      case ('--out'); out = value
      case ('--steps'); read (value, *, iostat=bad) steps
      case ('--layers'); read (value, *, iostat=bad) layers
      case default; bad = 1
      end select
      if (bad /= 0 .or. steps < 0 .or. layers < 1) &
        call give_up('usage: heat [--in FILE] [--out FILE] [--steps N] [--layers N]')
    end do
  end subroutine
end program
