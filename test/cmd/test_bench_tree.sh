#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that the rows of `weft bench task` follow the engine's tree of queues: on machines made up for
# hwloc a row for each place, at the right distance; and a measured row for each level above our own
# cores.  Rows are counted, no figure is judged.  Run with BUILD set.
set -u
prog=$BUILD/bench/bench_task
[ -x "$prog" ] || {
	echo "skipped: no bench_task in this build" >&2
	exit 77
}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
bad=0
# rows MACHINE COUNT...: how many places lie 0, 1, 2, ... levels up from the first core's queue.
rows() {
	machine=$1
	shift
	HWLOC_SYNTHETIC=$machine "$prog" --tree >"$work/rows" 2>"$work/err" || bad=1
	levels=0
	all=0
	for count; do
		got=$(grep -c ",distance,levels,$levels\$" "$work/rows")
		[ "$got" = "$count" ] || {
			echo "FAILED: $machine: $got places $levels levels up, not $count" >&2
			bad=1
		}
		levels=$((levels + 1))
		all=$((all + count))
	done
	[ "$(grep -c . "$work/rows")" = "$all" ] || {
		echo "FAILED: $machine: $(grep -c . "$work/rows") rows, not $all" >&2
		bad=1
	}
}
# own queue | siblings and the place they share | ...
rows "pack:2 l3:2 core:2 pu:1" 1 2 4 8
rows "pack:4 core:4 pu:1" 1 4 16
rows "pack:2 core:2 pu:2" 1 2 4 8
rows "pack:1 l3:1 core:4 pu:1" 1 4
rows "pack:8 l3:8 core:32 pu:2" 1 2 94 680 5440
rows "pu:1" 1

# Measured: each level above the cores that we have, in one short run.
HWLOC_SYNTHETIC="pack:2 l3:2 core:2 pu:1" "$prog" --brief >"$work/rows" 2>"$work/err" || {
	echo "FAILED: $prog: $(cat "$work/err")" >&2
	bad=1
}
wanted="local machine"
if taskset -pc $$ | grep -q ': 0[-,]1'; then
	wanted="$wanted|local core 0|remote core 1|local L3 0|local package 0|machine"
fi
echo "$wanted" | tr '|' '\n' >"$work/wanted"
while read -r name; do
	grep -q "^weft,$name,time,ns," "$work/rows" || {
		echo "FAILED: no measured row of weft for $name" >&2
		bad=1
	}
done <"$work/wanted"
exit $bad
