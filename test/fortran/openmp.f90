! SPDX-License-Identifier: BSD-3-Clause
! openmp.f90 - use mpi_f08 from OpenMP's threads: each blocks in a receive of its own, into a row of an array, while the peer
! sends in the reverse order; then all at once, there and back.  ranks: 2  flags: -fopenmp
program openmp_threads
  use mpi_f08
  use omp_lib
  implicit none
  integer, parameter :: threads = 8, n = 6, rounds = 50
  integer, asynchronous :: a(threads, n), b(n, threads)
  integer :: rank, peer, provided, t, i, k, bad, got(n)
  call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided)
  call expect(provided == MPI_THREAD_MULTIPLE, 'threads may call')
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  peer = 1 - rank
  bad = 0
  a = -1
  !$omp parallel num_threads(threads) private(t, i, k, got) reduction(+:bad)
  t = omp_get_thread_num() + 1
  if (rank == 0) then
    call MPI_Recv(a(t, :), n, MPI_INTEGER, peer, t, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  else
    !$omp single
    do k = omp_get_num_threads(), 1, -1
      b(:, k) = [(100 * k + i, i=1, n)]
      call MPI_Send(b(n:1:-1, k), n, MPI_INTEGER, peer, k, MPI_COMM_WORLD)
    end do
    !$omp end single
  end if
  do k = 1, rounds
    got = 0
    call MPI_Sendrecv([(1000 * rank + 10 * t + i, i=1, n)], n, MPI_INTEGER, peer, 50 + t, &
                      got, n, MPI_INTEGER, peer, 50 + t, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    if (any(got /= [(1000 * peer + 10 * t + i, i=1, n)])) bad = bad + 1
  end do
  !$omp end parallel
  call expect(bad == 0, 'each thread has got its own messages')
  if (rank == 0) then
    do t = 1, threads
      call expect(all(a(t, :) == [(100 * t + n + 1 - i, i=1, n)]) .or. all(a(t, :) == -1), 'a row for each thread')
    end do
    call expect(any(a /= -1), 'rows')
  end if
  call MPI_Finalize()
end program
