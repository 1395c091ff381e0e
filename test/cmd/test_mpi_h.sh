#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that mpi.h with its inline part compiles without a warning in every C and C++ that programs use, that the
# library exports nothing for it, that a macro leaves it out, and that deleted names say what to write.
# Run with BUILD and SOURCE set.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
bad=0
fail() {
	echo "FAILED: $*" >&2
	bad=1
}
unset WEFT_CC WEFT_CXX
cat >"$work/a.c" <<'END'
#include <mpi.h>
#include <mpi.h>
int use(MPI_Comm comm, MPI_Fint f);
int use(MPI_Comm comm, MPI_Fint f)
{
	MPI_Status s;
	MPI_Fint fs[MPI_F_STATUS_SIZE];
	MPI_F08_status f08;
	s.MPI_SOURCE = s.MPI_TAG = s.MPI_ERROR = 0;
	return MPI_Comm_f2c(MPI_Comm_c2f(comm)) != MPI_Comm_f2c(f) && MPI_Type_c2f(MPI_INT) && MPI_Status_c2f(&s, fs) && MPI_Status_c2f08(&s, &f08) &&
	       MPI_F08_STATUS_IGNORE != &f08;
}
END
cp "$work/a.c" "$work/a.cc"
strict='-Wall -Wextra -pedantic -Werror -Wshadow -Wstrict-prototypes'
for cc in gcc clang; do
	command -v $cc >/dev/null || continue
	for std in gnu89 c99 gnu99 c11 gnu17; do
		WEFT_CC=$cc "$BUILD/bin/mpicc" -std=$std $strict -Wno-long-long -c "$work/a.c" -o "$work/a.o" || fail "$cc -std=$std"
	done
done
for cxx in g++ clang++; do
	command -v $cxx >/dev/null || continue
	for std in c++98 c++11 gnu++14 c++17 c++20; do
		WEFT_CXX=$cxx "$BUILD/bin/mpicxx" -std=$std -Wall -Wextra -pedantic -Werror -Wno-long-long -c "$work/a.cc" -o "$work/a.o" ||
			fail "$cxx -std=$std"
	done
done
nm -D --defined-only "$BUILD/lib/libmpi_abi.so" | awk '{print $3}' | grep -E 'c2f|f2c|MPI_Address|MPI_Type_struct|MPI_Errhandler_set' && fail "exported"
nm "$work/a.o" | grep -E ' [TW] .*(c2f|f2c)' && fail "left in the object"

"$BUILD/bin/mpicc" -DWEFT_MPI_H_ABI_ONLY -c "$work/a.c" -o "$work/a.o" 2>"$work/err" && fail "the macro leaves MPI_Fint in"
grep -q MPI_Fint "$work/err" || fail "the macro: $(cat "$work/err")"
printf '#include <mpi.h>\ntypedef int MPI_Fint;\nint MPI_Comm_c2f(MPI_Comm c);\nint MPI_Address;\nint main(void) { return 0; }\n' >"$work/own.c"
"$BUILD/bin/mpicc" -DWEFT_MPI_H_ABI_ONLY -Wall -Werror -c "$work/own.c" -o "$work/a.o" || fail "own names beside the macro"

printf '#include <mpi.h>\nint f(void *p, MPI_Aint *a) { return MPI_Address(p, a); }\n' >"$work/old.c"
"$BUILD/bin/mpicc" -c "$work/old.c" -o "$work/a.o" 2>"$work/err" || fail "MPI_Address does not compile"
grep -q 'deleted in MPI-3.0: use MPI_Get_address' "$work/err" || fail "MPI_Address: $(cat "$work/err")"
printf '#include <mpi.h>\nMPI_Datatype t(void) { return MPI_UB; }\n' >"$work/ub.c"
"$BUILD/bin/mpicc" -c "$work/ub.c" -o "$work/a.o" 2>"$work/err" && fail "MPI_UB compiles"
grep -q 'use_MPI_Type_create_resized' "$work/err" || fail "MPI_UB: $(cat "$work/err")"
exit $bad
