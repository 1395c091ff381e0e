#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that mpifort's cache of modules belongs to a compiler and its sizes: compilers do not wait for each other, nor inherit
# a lock; a compiler that hangs is waited for 10 s at most; what holds no module is neither kept nor believed.
# Run with BUILD and FC (a gfortran) set.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
bad=0
fail() {
	echo "FAILED: $*" >&2
	bad=1
}
export WEFT_FORTRAN_CACHE="$work/cache" TMPDIR="$work/tmp"
unset WEFT_FC MPICH_FC OMPI_FC
mkdir "$TMPDIR"
mpifort=$BUILD/bin/mpifort
printf 'program p\nuse mpi_f08\nprint *, MPI_VERSION\nend program\n' >"$work/p.f90"
cd "$work" || exit 1

folders() { # how many folders hold modules, or might
	find "$WEFT_FORTRAN_CACHE" -mindepth 1 -maxdepth 1 -type d | wc -l
}
compiler() { # compiler NAME: a script that does what stands on standard input, then compiles
	{
		echo '#!/bin/sh'
		cat
		echo "exec $FC \"\$@\""
	} >"$work/$1"
	chmod +x "$work/$1"
}

# No lock is handed on.
compiler plain <<'E2'
[ ! -e /proc/self/fd/9 ] || echo yes >>inherited
E2
sed -i "s|>>inherited|>>$work/inherited|" plain
$mpifort -fc="$work/plain" -c p.f90 || fail "plain does not compile"
[ ! -e inherited ] || fail "the compiler inherits the lock"
[ "$(folders)" = 1 ] || fail "$(folders) folders instead of 1"
$mpifort -fc="$work/plain" -fdefault-integer-8 -c p.f90 2>log || fail "plain does not compile with longer INTEGERs"
[ "$(folders)" = 2 ] || fail "$(folders) folders instead of 2"
$mpifort -fc="$work/plain" -c p.f90 2>log || fail "plain does not compile again"
[ ! -s log ] || fail "a second time: $(cat log)"

# What was interrupted is made again.
for d in "$WEFT_FORTRAN_CACHE"/*/; do rm -f "$d/compiler" "$d"/*.mod; done
$mpifort -fc="$work/plain" -c p.f90 2>log || fail "a folder without modules is believed"
grep -q "compiling weft's modules" log || fail "a folder without modules: no line"

# A compiler that compiles no module leaves nothing, and programs without modules still compile.
compiler none <<'E2'
case "$*" in *weft/fortran*) echo "Error: not today" >&2; exit 1 ;; esac
E2
before=$(folders)
printf "program q\ninclude 'mpif.h'\nprint *, MPI_VERSION\nend program\n" >q.f90
for try in first second; do
	$mpifort -fc="$work/none" -c q.f90 2>log || fail "no module, $try: mpif.h does not do: $(cat log)"
	grep -q 'going on without modules' log || fail "no module, $try: no line"
	grep -q 'Error: not today' log || fail "no module, $try: no reason"
done
[ "$(folders)" = "$before" ] || fail "a folder without any module is kept"
# Nor does one that is killed meanwhile.
compiler killed <<'E2'
case "$*" in *weft/fortran/mpi.F90*) kill -9 $$ ;; esac
E2
$mpifort -fc="$work/killed" -c q.f90 2>log || fail "killed: mpif.h does not do"
[ "$(folders)" = "$before" ] || fail "a folder with some modules of a killed compiler is kept"

# One hangs: others do not wait; a second of the same does for 10 s, with a line.
mkfifo gate
compiler slow <<'E2'
case "$*" in *weft/fortran/mpi.F90*) [ -e WORK/hangs ] || { : >WORK/hangs; read -r go <WORK/gate; } ;; esac
E2
sed -i "s|WORK|$work|g" slow
$mpifort -fc="$work/slow" -c q.f90 2>slow.log &
slow=$!
until [ -e hangs ]; do # ends: it hangs, or is over
	kill -0 $slow || break
done
compiler other </dev/null
$mpifort -fc="$work/other" -c p.f90 2>log || fail "another compiler does not compile"
! grep -q waiting log || fail "another compiler waits"
$mpifort -fc="$work/slow" -c p.f90 2>log || fail "the second of the same compiler does not compile"
grep -q 'waiting for another mpifort' log || fail "the second of the same compiler does not wait: $(cat log)"
grep -q 'compiling them here' log || fail "the second of the same compiler: $(cat log)"
echo go >gate
wait $slow || fail "the slow one fails: $(cat slow.log)"
[ -z "$(find "$WEFT_FORTRAN_CACHE" -name 'new.*')" ] || fail "something is left over"

[ "$($mpifort -showme:cache)" = "$WEFT_FORTRAN_CACHE" ] || fail "-showme:cache"
"$BUILD/bin/weft" info | grep -q "$WEFT_FORTRAN_CACHE" || fail "weft info does not name the cache"
exit $bad
