#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that a fatal error in a Fortran program names the routine and what is wrong, through each interface, as in C; errors
# that the binding finds itself, too, on the object of the call.
# Run with BUILD and FC set.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
bad=0
export WEFT_FC="$FC"
dies() { # dies NAME WORDS...: NAME.f90 ends with a line of these words
	name=$1
	shift
	"$BUILD/bin/mpifort" -w "$name.f90" -o "$name" 2>log || {
		echo "FAILED: $name: $(cat log)" >&2
		bad=1
		return
	}
	"$BUILD/bin/mpiexec" -n 1 --timeout 60 "./$name" >log 2>&1 && {
		echo "FAILED: $name does not end" >&2
		bad=1
	}
	for word in "$@"; do
		grep -q -- "$word" log || {
			echo "FAILED: $name: no '$word' in: $(cat log)" >&2
			bad=1
		}
	done
}
for interface in mpif mpi f08; do
	case $interface in
	mpif) use= include="include 'mpif.h'" ;;
	mpi) use='use mpi' include= ;;
	f08) use='use mpi_f08' include= ;;
	esac
	cat >rank_$interface.f90 <<E2
program p
$use
implicit none
$include
integer :: x(4), ierr
call MPI_Init(ierr)
call MPI_Send(x, 4, MPI_INTEGER, 7, 0, MPI_COMM_WORLD, ierr)
end program
E2
	dies rank_$interface 'MPI_Send' 'MPI_ERR_RANK' 'MPI_COMM_WORLD'
done
cat >short.f90 <<'E2'
program p
use mpi_f08
implicit none
integer :: x(8)
type(MPI_Comm) :: other
call MPI_Init()
call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
call MPI_Comm_dup(MPI_COMM_SELF, other)
call MPI_Comm_set_errhandler(other, MPI_ERRORS_ARE_FATAL)
call MPI_Send(x(1:8:2), 5, MPI_INTEGER, MPI_PROC_NULL, 0, other)
end program
E2
dies short 'MPI_Send' 'MPI_ERR_COUNT' 'array section'
exit $bad
