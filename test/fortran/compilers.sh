#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that one installed weft serves a compiler of Fortran, with INTEGERs of 4 and of 8 bytes: programs of each interface
# compile and run, and CMake's find_package(MPI COMPONENTS Fortran) gives a program that runs.
#
# usage: compilers.sh COMPILER     with BUILD and SOURCE set; 77: it is not here
set -u
fc=$1
command -v "$fc" >/dev/null 2>&1 || {
	echo "skipped: no $fc" >&2
	exit 77
}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
bad=0
tests=$SOURCE/test/fortran
export WEFT_FORTRAN_CACHE="$work/cache"
unset MPICH_FC OMPI_FC WEFT_FC
fail() {
	echo "FAILED: $fc: $*" >&2
	bad=1
}
case $fc in
*flang*16) experimental=-flang-experimental-exec ;;
*) experimental= ;;
esac

# Which interfaces this compiler has: doc/fortran.md says the same.
widths='4 8'
modules=yes     # mpi, mpi_f08
descriptors=yes # array sections
ranks=yes       # arrays of any rank in a procedure of Fortran, as the random sections' routines have them
case $fc in
*flang*1[0-8]) descriptors=no modules=no ranks=no widths=4 ;; # its LOGICALs stay 4 bytes long
*flang*19) ranks=no ;;
*gfortran-8 | *gfortran-9 | *gfortran-1[01]) descriptors=no ranks=no ;;
esac

cc -c -I"$BUILD/include" "$tests/section_types_c.c" -o "$work/tool.o" || exit 1
python3 -B "$tests/sections_random.py" 20261128 16 "$work/sections_random.f90" || exit 1

# Compiles and runs a test program of this folder, with INTEGERs of $width.
try() {
	flags=
	[ "$width" = 4 ] || flags=-fdefault-integer-8
	extra=
	[ "$1" != section_types.f90 ] || extra=$work/tool.o
	source=$tests/$1
	[ -e "$source" ] || source=$work/$1
	exe=$work/$1.$width
	n=$(sed -n 's/.*ranks: \([0-9]*\).*/\1/p' "$source" | head -n 1)
	mkdir -p "$exe.d"
	# shellcheck disable=SC2086
	(cd "$exe.d" && "$BUILD/bin/mpifort" -fc="$fc" $experimental $flags -I"$tests" "$source" "$tests/expect.f90" $extra -o "$exe") \
		>"$work/log" 2>&1 || {
		fail "$1 ($width) does not compile: $(grep -i error "$work/log" | head -n 3)"
		return
	}
	"$BUILD/bin/mpiexec" -n "$n" --timeout 200 "$exe" >"$work/log" 2>&1 ||
		fail "$1 ($width): $(grep -v '^ *#' "$work/log" | head -n 5)"
}

for width in $widths; do
	try messages.f
	try wrong_mpif.f90
	[ $modules = no ] || for name in objects.f90 wrong_mpi.f90 wrong_f08.f90; do
		try $name
	done
	[ $descriptors = no ] || for name in sections.f90 section_types.f90; do
		try $name
	done
	[ $ranks = no ] || try sections_random.f90
done

# CMake, which asks mpifort; a project of INTEGERs of 8 bytes names the compiler with them.
command -v cmake >/dev/null 2>&1 && for width in $widths; do
	[ $modules = yes ] || break
	mkdir -p "$work/project"
	cat >"$work/project/CMakeLists.txt" <<'E2'
cmake_minimum_required(VERSION 3.18)
project(p Fortran)
find_package(MPI REQUIRED COMPONENTS Fortran)
add_executable(p p.f90)
target_link_libraries(p MPI::MPI_Fortran)
E2
	cat >"$work/project/p.f90" <<'E2'
program p
  use mpi_f08
  implicit none
  integer :: bytes, total
  call MPI_Init()
  call MPI_Type_size(MPI_INTEGER, bytes)
  if (bytes /= storage_size(bytes) / 8) error stop 1
  total = 0
  call MPI_Allreduce(1, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  if (total /= 2) error stop 2
  call MPI_Finalize()
end program
E2
	flags=
	[ $width = 4 ] || flags=-fdefault-integer-8
	rm -rf "$work/project/build"
	if WEFT_FC="$fc${flags:+ $flags}" cmake -S "$work/project" -B "$work/project/build" -DCMAKE_Fortran_COMPILER="$fc" \
		-DCMAKE_Fortran_FLAGS="$flags" -DMPI_Fortran_COMPILER="$BUILD/bin/mpifort" >"$work/log" 2>&1 &&
		cmake --build "$work/project/build" >>"$work/log" 2>&1; then
		"$BUILD/bin/mpiexec" -n 2 --timeout 60 "$work/project/build/p" >"$work/log" 2>&1 || fail "CMake's program ($width): $(head -n 5 "$work/log")"
	else
		fail "CMake ($width): $(grep -i -A3 error "$work/log" | head -n 8)"
	fi
done
exit $bad
