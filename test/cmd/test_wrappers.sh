#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that mpicc and mpicxx compile, link, print what they would do, take another compiler by
# WEFT_CC and WEFT_CXX, keep arguments with spaces whole, and refuse what they do not know.
# Run with BUILD and SOURCE set.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
bad=0
fail() {
	echo "FAILED: $*" >&2
	bad=1
}
is() { # is WHAT GOT WANTED
	[ "$2" = "$3" ] || fail "$1: '$2' instead of '$3'"
}
unset WEFT_CC WEFT_CXX
mpicc=$BUILD/bin/mpicc mpicxx=$BUILD/bin/mpicxx
link="-L$BUILD/lib -Wl,-rpath,$BUILD/lib -lmpi_abi"

is "-show -c" "$($mpicc -show -c a.c)" "gcc -I$BUILD/include -c a.c"
is "-show, link" "$($mpicc -show a.c -o a)" "gcc -I$BUILD/include a.c -o a $link"
is "-showme" "$($mpicc -showme a.c -o a)" "$($mpicc -show a.c -o a)"
is "-showme:compile" "$($mpicc -showme:compile)" "-I$BUILD/include"
is "-showme:link" "$($mpicc -showme:link)" "$link"
is "-showme:incdirs" "$($mpicc -showme:incdirs)" "$BUILD/include"
is "-showme:libdirs" "$($mpicc -showme:libdirs)" "$BUILD/lib"
is "-showme:libs" "$($mpicc -showme:libs)" mpi_abi
is "-showme:command" "$($mpicc -showme:command)" gcc
is "-compile-info" "$($mpicc -compile-info)" "gcc -I$BUILD/include -c"
is "-link-info" "$($mpicc -link-info)" "gcc -I$BUILD/include $link"
for option in -show -showme -showme:compile -showme:link -showme:incdirs -showme:libdirs -showme:libs -showme:command \
	-showme:version -compile-info -link-info; do
	is "-$option" "$($mpicc -$option a.c -o a)" "$($mpicc $option a.c -o a)"
done
is "mpicxx" "$($mpicxx -showme:command)" g++
is "mpic++" "$("$BUILD/bin/mpic++" -showme:command)" g++
is "mpiCC" "$("$BUILD/bin/mpiCC" --showme:command)" g++
is "WEFT_CC" "$(WEFT_CC=clang $mpicc -show -c a.c)" "clang -I$BUILD/include -c a.c"
is "WEFT_CC with arguments" "$(WEFT_CC='ccache gcc' $mpicc -show -c a.c)" "ccache gcc -I$BUILD/include -c a.c"
is "WEFT_CXX" "$(WEFT_CXX=clang++ $mpicxx -show -c a.cc)" "clang++ -I$BUILD/include -c a.cc"
is "quotes" "$($mpicc -show -c '-DX="a b"' a.c)" "gcc -I$BUILD/include -c '-DX=\"a b\"' a.c"

$mpicc -showme:nonsense >/dev/null 2>&1
is "exit code for nonsense" $? 2
$mpicc --showme:nonsense >/dev/null 2>&1
is "exit code for nonsense with two dashes" $? 2
$mpicc "$work/absent.c" >/dev/null 2>&1 && fail "an absent file compiles"
$mpicc --version >/dev/null 2>&1 || fail "mpicc --version"

mkdir "$work/a folder"
cp "$SOURCE/examples/hello.c" "$work/a folder/it's.c"
$mpicc '-DUNUSED="a b"' "$work/a folder/it's.c" -o "$work/a folder/hello" || fail "a path with spaces"
"$work/a folder/hello" >/dev/null || fail "hello does not run by itself"
$mpicc -c "$work/a folder/it's.c" -o "$work/h.o" && $mpicc "$work/h.o" -o "$work/h" || fail "compile and link apart"

# Through a link from elsewhere it still finds its own place.
ln -s "$mpicc" "$work/mycc"
is "through a link" "$("$work/mycc" -showme:incdirs)" "$BUILD/include"
is "from PATH" "$(PATH=$work:$PATH mycc -showme:incdirs)" "$BUILD/include"
exit $bad
