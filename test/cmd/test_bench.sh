#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that every bench of `weft bench` runs on weft and writes the CSV columns that it promises.
# No figure is judged.  Run with BUILD set.
set -u
command -v python3 >/dev/null 2>&1 || {
	echo "skipped: no python3" >&2
	exit 77
}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
XDG_CACHE_HOME=$work
export XDG_CACHE_HOME
bad=0
for bench in $("$BUILD/bin/weft" bench list | sed -n 's/^\([a-z0-9]*\) .*/\1/p' | grep .); do
	if ! "$BUILD/bin/weft" bench $bench --quick --runs 1 --csv "$work/$bench.csv" >"$work/out" 2>&1; then
		echo "FAILED: weft bench $bench" >&2
		tail -n 5 "$work/out" >&2
		bad=1
		continue
	fi
	head -n 1 "$work/$bench.csv" | grep -qx 'bench,impl,link,case,metric,unit,min,median,max,n' || {
		echo "FAILED: columns of $bench: $(head -n 1 "$work/$bench.csv")" >&2
		bad=1
	}
	grep -qE "^$bench,weft,shm,[^,]+,[a-z]+,[^,]+,[-0-9.e+]+,[-0-9.e+]+,[-0-9.e+]+,1\$" "$work/$bench.csv" || {
		echo "FAILED: no row of weft in $bench" >&2
		bad=1
	}
done
exit $bad
