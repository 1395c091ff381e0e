#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that `weft` says what is here, lists functions and settings, and answers wrong words with one
# line and exit code 2.  Run with BUILD, SOURCE and VERSION set.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
bad=0
weft=$BUILD/bin/weft
fail() {
	echo "FAILED: $*" >&2
	bad=1
}
# want RC PATTERN command...: exit code, and a line of its output, stdout and stderr together.
want() {
	rc=$1 pattern=$2
	shift 2
	"$@" >"$work/out" 2>&1 </dev/null
	got=$?
	[ $got = "$rc" ] || fail "exit code $got instead of $rc: $*"
	grep -qE -- "$pattern" "$work/out" || {
		fail "no line like '$pattern': $*"
		head -n 5 "$work/out" >&2
	}
}
# A mistake is answered by exactly one line.
wrong() {
	want 2 "$@"
	[ "$(wc -l <"$work/out")" = 1 ] || fail "more than one line: $*"
}

want 0 "^weft $VERSION" "$weft" --version
want 0 "^usage: weft" "$weft" --help
want 2 "^usage: weft" "$weft"
want 0 "^weft $VERSION" "$weft" info
want 0 "queue of" "$weft" info
want 0 "^  progress +on" "$weft" info
want 0 "^  progress +off" env WEFT_PROGRESS=off "$weft" info --settings
want 1 "WEFT_PROGRESS=maybe" env WEFT_PROGRESS=maybe "$weft" info --settings
want 0 "^turns +on " "$weft" info --mechanisms
want 0 "^turns +off" env WEFT_WITHOUT=line_runs,turns "$weft" info --mechanisms
want 1 'WEFT_WITHOUT names "turn", .* line_runs,' env WEFT_WITHOUT=turn "$weft" info --mechanisms
want 0 "^MPI 5.0: 662 functions, [0-9]+ work" "$weft" info --mpi
grep -q 'MPI_Send ' "$work/out" && fail "MPI_Send is listed as unsupported"
want 0 "rank 1 of 2" "$BUILD/bin/mpiexec" -n 2 "$weft" info
wrong "no command 'foo'" "$weft" foo
wrong "no option '--foo'" "$weft" info --foo
want 0 "^usage: weft" "$weft" info --help
want 0 "^usage: weft" "$weft" sample -h

if command -v python3 >/dev/null 2>&1; then
	for bench in latency bandwidth rate overlap waiters idle coll; do
		want 0 "^$bench " "$weft" bench list
	done
	wrong "which one" "$weft" bench
	wrong "no bench 'foo'" "$weft" bench foo
	wrong "--ranks 3" "$weft" bench latency --ranks 3
	wrong "--ranks 4" "$weft" bench overlap --ranks 4
	wrong "no 'foo'" "$weft" bench latency --against foo
	wrong "--runs 0" "$weft" bench latency --runs 0
	wrong "cannot write" "$weft" bench latency --csv /nonexistent/x.csv
	want 2 "invalid choice" "$weft" bench latency --link carrier-pigeon

	# Completion offers each command, what a command's help names, and the benches.
	completes() { # completes WANTED WORD...
		wanted=$1
		shift
		want 0 "^$wanted\$" bash -c '. "$1"; shift; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _weft_weft; echo "${COMPREPLY[@]}"' - \
			"$SOURCE/packaging/completion/weft" "$weft" "$@"
	}
	if command -v bash >/dev/null 2>&1; then
		completes "--version bench doctor info sample trace" ""
		completes "--settings" info --s
		completes "--summary --svg" trace --s
		completes "list latency layout load" bench l
		completes "--link" bench idle --l
		completes "mpich mpich,.*" bench idle --against mpi
	fi
fi
exit $bad
