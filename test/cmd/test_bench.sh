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
# Four at once: most of a bench's time is waiting for time to pass.
one() { # one BENCH
	if ! "$BUILD/bin/weft" bench "$1" --quick --runs 1 --csv "$work/$1.csv" --svg "$work/$1.svg" >"$work/$1.out" 2>&1; then
		echo "FAILED: weft bench $1: $(tail -n 5 "$work/$1.out")"
		return
	fi
	head -n 1 "$work/$1.csv" | grep -qx 'bench,impl,link,case,metric,unit,min,median,max,n' ||
		echo "FAILED: columns of $1: $(head -n 1 "$work/$1.csv")"
	grep -qE "^$1,weft,shm,[^,]+,[a-z]+,[^,]+,[-0-9.e+]+,[-0-9.e+]+,[-0-9.e+]+,1\$" "$work/$1.csv" ||
		echo "FAILED: no row of weft in $1"
}
for lane in 0 1 2 3; do
	n=0
	for bench in $("$BUILD/bin/weft" bench list | sed -n 's/^\([a-z0-9]*\) .*/\1/p' | grep .); do
		[ $((n % 4)) -ne $lane ] || one "$bench"
		n=$((n + 1))
	done >"$work/lane$lane" &
done
wait
if cat "$work"/lane? | grep . >&2; then
	bad=1
fi

# Parts that --quick leaves out; their rows are weft's and say which case they are.
part() { # part BENCH PART CASE,METRIC
	if "$BUILD/bin/weft" bench "$1" --quick --part "$2" --runs 1 --csv "$work/part.csv" >"$work/out" 2>&1 &&
		grep -q "^$1,weft,shm,$3,us," "$work/part.csv" && ! cut -d, -f2 "$work/part.csv" | grep -vqx 'impl\|weft'; then
		return
	fi
	echo "FAILED: weft bench $1 --part '$2':" >&2
	cat "$work/out" "$work/part.csv" >&2
	bad=1
}
part halo 'unbound 2' '4 threads unbound,step'
part halo 'idle 2' '4 threads one idle,step'
part offload idle '1 KiB idle,computing'

# Another MPI by its prefix: weft itself; one with an unknown launcher; and the system's, where there is one.
mkdir -p "$work/own/bin"
printf '#!/bin/sh\nexec "%s/bin/mpicc" "$@"\n' "$BUILD" >"$work/own/bin/mpicc"
printf '#!/bin/sh\n[ "$1" != --version ] || { echo "own 1.0"; exit 0; }\nexec "%s/bin/mpiexec" "$@"\n' "$BUILD" >"$work/own/bin/mpiexec"
chmod +x "$work/own/bin/mpicc" "$work/own/bin/mpiexec"
beside=own=$work/own,twin=$BUILD
[ ! -x /usr/bin/mpicc ] || [ ! -x /usr/bin/mpiexec ] || beside=$beside,system=/usr
"$BUILD/bin/weft" bench rate --quick --runs 1 --against "$beside" --csv "$work/beside.csv" >"$work/out" 2>&1
for name in $(echo "$beside" | tr , '\n' | sed 's/=.*//'); do
	grep -q "^rate,$name,shm,8 B,rate,M/s," "$work/beside.csv" || {
		echo "FAILED: weft bench rate --against $beside has no row of $name: $(cat "$work/out")" >&2
		bad=1
	}
done

# What the axes of pictures are called; bounds are whiskers, not charts of their own.
drawn() { # drawn BENCH TEXT
	grep -q "$2" "$work/$1.svg" && ! grep -q ' at least' "$work/$1.svg" || {
		echo "FAILED: the picture of $1 lacks '$2', or has bounds as charts" >&2
		bad=1
	}
}
drawn reaction 'computing threads on each core'
drawn noise "period of the idle workers"
drawn overhead 'size of the message'

# One page of what was measured, without measuring again; what cannot work is said in a line.
page=$work/paper.html
head -n 1 "$work/latency.csv" >"$work/all.csv"
for bench in latency waiters rate coll; do
	sed 1d "$work/$bench.csv" >>"$work/all.csv"
done
if "$BUILD/bin/weft" bench paper --from "$work/all.csv" --html "$page" >"$work/out" 2>&1; then
	grep -q '<svg' "$page" && grep -q '13,585' "$page" && grep -q 'id="beyond-the-papers--coll"' "$page" || {
		echo "FAILED: the page of weft bench paper lacks charts, papers' numbers or a bench" >&2
		bad=1
	}
else
	echo "FAILED: weft bench paper --from: $(cat "$work/out")" >&2
	bad=1
fi
# In parts: what is measured replaces its rows, the rest stays; nothing is missing in the end.  A
# section of a paper (4.4 of 2016: latency, waiters, rate) stands for its benches.
grep -v '^rate,' "$work/all.csv" >"$work/parts.csv"
sed 's/,shm,/,tcp,/' "$work/latency.csv" >"$work/tcp.csv"
if "$BUILD/bin/weft" bench paper --from "$work/all.csv,$work/tcp.csv" --csv "$work/both.csv" --html "$page" >"$work/out" 2>&1 &&
	"$BUILD/bin/weft" bench paper --into "$work/parts.csv" --missing --only 4.4,coll --link shm --html "$page" \
		--quick --runs 1 --against '' >"$work/out" 2>&1; then
	grep -q '^latency,weft,shm' "$work/both.csv" && grep -q '^latency,weft,tcp' "$work/both.csv" &&
		[ "$(cut -d, -f1,4,5 "$work/all.csv" | sort)" = "$(cut -d, -f1,4,5 "$work/parts.csv" | sort)" ] &&
		! grep '^[^rb]' "$work/parts.csv" | grep -qv ',all$' && grep -q 'In short' "$page" || {
		echo "FAILED: parts of weft bench paper do not come together" >&2
		bad=1
	}
else
	echo "FAILED: weft bench paper in parts: $(cat "$work/out")" >&2
	bad=1
fi
refused() {
	"$BUILD/bin/weft" bench "$@" >"$work/out" 2>&1
	code=$?
	[ $code -eq 2 ] && [ "$(wc -l <"$work/out")" -eq 1 ] && return
	echo "FAILED: weft bench $*: exit code $code, says: $(cat "$work/out")" >&2
	bad=1
}
refused nonsense
refused coll --ranks 3
refused coll --ranks 2,x
refused coll --link 1g
refused latency --runs 0
refused latency --csv /nowhere/at/all
refused waiters --part 3
refused rate --against "mpich=$BUILD"
refused rate --against "gone=$work/gone"
refused rate --link tcp --against "own=$work/own"
refused task --against "twin=$BUILD"
refused paper --only nonsense
refused paper --from /nowhere/at/all
refused paper --missing
refused paper --into a --csv b
# A full disk: the table was printed, and one line says why there is no file.
"$BUILD/bin/weft" bench rate --quick --runs 1 --csv /dev/full >"$work/out" 2>"$work/err"
code=$?
[ $code -eq 1 ] && grep -q 'M/s' "$work/out" && [ "$(grep -c 'No space left' "$work/err")" -eq 1 ] &&
	! grep -q Traceback "$work/err" || {
	echo "FAILED: weft bench --csv on a full disk: exit code $code, says: $(cat "$work/err")" >&2
	bad=1
}
# Ended from outside it ends what it had started.
"$BUILD/bin/weft" bench quiet --runs 1 >"$work/out" 2>&1 &
bench=$!
child=
for i in $(seq 600); do
	child=$(pgrep -P $bench mpiexec) && break
	kill -0 $bench || break
	sleep 0.05
done
kill -TERM $bench
wait $bench
code=$?
if [ -z "$child" ] || [ $code -ne 143 ] || kill -0 "$child" 2>/dev/null; then
	echo "FAILED: weft bench that is terminated: exit code $code, child '$child', says: $(cat "$work/out")" >&2
	bad=1
fi
exit $bad
