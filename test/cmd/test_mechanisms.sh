#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Messages and collectives are right without each of the mechanisms, and without all of them at once:
# none is more than speed.
set -u
mechanisms=$("$BUILD/bin/weft" info --mechanisms | awk '{ print $1 }')
[ -n "$mechanisms" ] || exit 1
right() { # right NAMES DRIVERS RANKS PROGRAM
	WEFT_WITHOUT=$1 WEFT_DRIVERS=$2 timeout 100 "$BUILD/bin/mpiexec" -n "$3" "$BUILD/test/mpi/$4" >/dev/null || {
		echo "wrong without $1: $4 over $2"
		exit 1
	}
}
all=
for name in $mechanisms; do
	all=$all${all:+,}$name
	right "$name" shm,self 2 mpi_p2p_basic
	right "$name" shm,self 4 mpi_coll_basic
	right "$name" tcp,self 2 mpi_p2p_basic
done
for program in mpi_p2p_basic mpi_p2p_large mpi_p2p_threads mpi_coll_basic; do
	right "$all" shm,self 2 $program
	right "$all" tcp,self 2 $program
done
right "$all" shm,self 4 mpi_coll_basic
