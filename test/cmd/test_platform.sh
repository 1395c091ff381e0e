#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that a big-endian, a 32-bit and a foreign system's build ends at configure time with a line that says so.
# Run with SOURCE set.
set -u
bad=0
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
try() { # try WORD BYTES ORDER SYSTEM
	cmake -DCMAKE_SIZEOF_VOID_P=$2 -DCMAKE_C_BYTE_ORDER=$3 -DCMAKE_SYSTEM_NAME=$4 -P "$SOURCE/tools/cmake/WeftPlatform.cmake" >"$out" 2>&1
	rc=$?
	if [ -z "$1" ]; then
		[ $rc = 0 ] || { echo "FAILED: $*: $(cat "$out")" >&2; bad=1; }
	elif [ $rc = 0 ] || ! tr -s ' \n' ' ' <"$out" | grep -q "$1.* unsupported"; then
		echo "FAILED: $*: $(cat "$out")" >&2
		bad=1
	fi
}
try '' 8 LITTLE_ENDIAN Linux
try '32-bit builds are' 4 LITTLE_ENDIAN Linux
try 'big-endian machines are' 8 BIG_ENDIAN Linux
try 'FreeBSD is' 8 LITTLE_ENDIAN FreeBSD
grep -q 'include(WeftPlatform)' "$SOURCE/CMakeLists.txt" || { echo "FAILED: nothing looks at the platform" >&2; bad=1; }
exit $bad
