#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that plain MPI programs stay clean under valgrind, AddressSanitizer and gdb.
# Each is left out where it is not installed.  Run with BUILD and SOURCE set.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
bad=0 done=0
user=$SOURCE/test/install/cmake/user.c
"$BUILD/bin/mpicc" -g "$user" -o "$work/user" || exit 1
try() { # try WHAT command...
	what=$1
	shift
	if "$BUILD/bin/mpiexec" -n 2 --timeout 60 "$@" >"$work/out" 2>&1 </dev/null && grep -q 'sum 1' "$work/out"; then
		done=$((done + 1))
	else
		echo "FAILED: under $what" >&2
		head -n 20 "$work/out" >&2
		bad=1
	fi
}
if command -v valgrind >/dev/null 2>&1; then
	try valgrind valgrind -q --error-exitcode=9 --leak-check=full "$work/user"
	WEFT_DRIVERS=tcp,self try "valgrind, tcp" valgrind -q --error-exitcode=9 --leak-check=full "$work/user"
fi
if command -v gdb >/dev/null 2>&1; then
	try gdb gdb -q -batch -return-child-result -ex run "$work/user"
	# Asked to stop inside MPI, gdb finds its way through the library's frames.
	"$BUILD/bin/mpiexec" -n 2 --timeout 60 gdb -q -batch -ex 'set breakpoint pending on' \
		-ex 'break PMPI_Allreduce' -ex run -ex bt -ex continue "$work/user" >"$work/out" 2>&1 </dev/null
	grep -q '^#[0-9].* main ' "$work/out" || grep -q '^#[0-9].*in main' "$work/out" || {
		echo "FAILED: gdb shows no way from MPI_Allreduce to main" >&2
		head -n 20 "$work/out" >&2
		bad=1
	}
fi
if echo 'int main(void){return 0;}' | gcc -x c -fsanitize=address - -o "$work/asan" 2>/dev/null && "$work/asan"; then
	"$BUILD/bin/mpicc" -g -fsanitize=address,undefined "$user" -o "$work/asan" || bad=1
	try AddressSanitizer "$work/asan"
fi
[ $bad = 0 ] || exit 1
[ $done -gt 0 ] || {
	echo "skipped: no valgrind, gdb or AddressSanitizer" >&2
	exit 77
}
