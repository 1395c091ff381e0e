#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# heat.f90 paints to the bit what heat.c paints, whatever the numbers of ranks and threads.
#   heat_fortran.sh MPIEXEC HEAT HEAT_FORTRAN PICTURE
mpiexec=$1 heat=$2 fortran=$3 picture=$4
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
what="--in $picture --steps 24 --layers 6"
OMP_NUM_THREADS=1 "$mpiexec" -n 1 --timeout 30 "$heat" $what --out "$dir/c.pgm" || exit 1
cmp -s "$picture" "$dir/c.pgm" && { echo "24 steps have changed nothing"; exit 1; }
# Threads without a layer, ranks with unequal shares.
for shape in "1 1" "2 2" "3 8"; do
	set -- $shape
	OMP_NUM_THREADS=$2 OMP_WAIT_POLICY=passive "$mpiexec" -n "$1" --timeout 30 "$fortran" $what --out "$dir/f.pgm" || exit 1
	cmp "$dir/c.pgm" "$dir/f.pgm" || { echo "$1 ranks of $2 threads paint another picture"; exit 1; }
	rm "$dir/f.pgm"
done
"$mpiexec" -n 2 --timeout 30 "$fortran" --layers none 2>"$dir/said" && { echo "a wrong argument is taken"; exit 1; }
grep -q '^.*heat: usage' "$dir/said" || { cat "$dir/said"; exit 1; }
