# SPDX-License-Identifier: BSD-3-Clause
# What users of MPICH and Open MPI type works, or gets one line that names what comes nearest.
. "$(dirname "$0")/lib.sh"
sorted() { sort "$T/out" | tr '\n' ' '; }

# --- numbers of ranks
for n in -n2 -np2 -c2 --np2 '-n 2' -n=2 -N2 '-N 2' '-ppn 2' -npernode2 '--npernode 2'; do
	want 0 "$MPIEXEC" $n sh -c 'echo $PMI_RANK/$PMI_SIZE'
	[ "$(sorted)" = "0/2 1/2 " ] || fail "$n: $(cat "$T/out")"
done
want 0 "$MPIEXEC" -N 2 -n 3 sh -c 'echo $PMI_SIZE' # with -n, -N is about hosts
[ "$(sorted)" = "3 3 3 " ] || fail "-N 2 -n 3"
want 0 "$MPIEXEC" -pernode sh -c 'echo $PMI_SIZE'
out_is "1
"
for args in -n2=3 -n2x -nx -N0 '-n 2.5'; do
	want 2 "$MPIEXEC" $args true
	err_lines 1
done

# --- the environment
A=a B=b
export A B
want 0 "$MPIEXEC" -genvnone sh -c 'echo "$A$B${PATH:+p}"'
out_is "p
"
want 0 "$MPIEXEC" -genvlist A,NOT_SET sh -c 'echo "$A$B"'
out_is "a
"
err_has 'NOT_SET: the variable is not set'
want 0 "$MPIEXEC" -genvnone -envall sh -c 'echo "$A$B"' : sh -c 'echo "none$A$B"' : -envlist B sh -c 'echo "list$A$B"' \
	: -env C c sh -c 'echo "env$A$B$C"'
[ "$(sorted)" = "ab envc listb none " ] || fail "per program: $(cat "$T/out")"
want 0 "$MPIEXEC" -genvnone -n 2 "$PROBE" exchange
want 0 "$MPIEXEC" -iface lo sh -c 'echo $WEFT_TCP_INTERFACE'
out_is "lo
"

# --- programs from a file
cat >"$T/programs" <<'END'
# one program a line
-n 2 echo 'two words' \
	"and more"   # a comment
  -x C=c\ d sh -c 'echo "$C"'

END
printf -- '-n 1 echo no newline' >>"$T/programs"
for option in -configfile -file --app; do
	want 0 "$MPIEXEC" $option "$T/programs"
	[ "$(sort "$T/out" | tr '\n' ';')" = "c d;no newline;two words and more;two words and more;" ] ||
		fail "$option: $(cat "$T/out")"
done
want 0 "$MPIEXEC" -l -n 1 echo first : -configfile "$T/programs"
[ "$(wc -l <"$T/out")" = 5 ] || fail "a program and a file"
echo "-configfile $T/itself" >"$T/itself"
want 2 "$MPIEXEC" -configfile "$T/itself"
err_has 'more than 16 files'
: >"$T/empty"
want 2 "$MPIEXEC" --app "$T/empty"
err_has 'names no program'
echo "echo 'x" >"$T/quote"
want 2 "$MPIEXEC" --app "$T/quote"
err_has 'quote, line 1: a quote that does not end'
want 2 "$MPIEXEC" --app "$T/none"
err_has 'cannot be read: No such file'
want 2 "$MPIEXEC" --app "$T/programs" echo more
err_has "'echo' comes after"

# --- cores, on a machine of 2 packages with an L3 and a NUMA node each, 4 cores, 2 threads a core
HWLOC_SYNTHETIC='pack:2 numa:1 l3:1 core:4 pu:2'
export HWLOC_SYNTHETIC
# bound WANT ARGS: the hardware threads of each rank
bound() {
	wanted=$1
	shift
	want 0 "$MPIEXEC" "$@" --report-bindings true
	got=$(sed -n 's/^mpiexec: rank [0-9]* on .* is bound to hardware threads* \([-0-9,]*\) .*/\1/p' "$T/err" | tr '\n' ' ')
	[ "$got" = "$wanted " ] || fail "$*: bound to $got instead of $wanted"
	[ "$(sed -n 's/^mpiexec: rank \([0-9]*\) .*/\1/p' "$T/err" | tr '\n' ' ')" = "$(seq 0 $(($(wc -l <"$T/err") - 1)) | tr '\n' ' ')" ] ||
		fail "$*: ranks are reported out of order"
}
bound '0-1 2-3 4-5' -n 3 --bind-to core
bound '0-1 2-3 4-5 6-7 8-9 10-11 12-13 14-15 0-1' -n 9 --bind-to core
bound '0 1 2' -n 3 --bind-to hwthread
bound '0 1' -n 2 --use-hwthread-cpus --bind-to core --map-by hwthread
bound '0-7 8-15 0-7' -n 3 --bind-to socket
bound '0-7 8-15' -n 2 --bind-to package
bound '0-7 8-15' -n 2 --bind-to l3cache
bound '0-7 8-15' -n 2 --bind-to numa
bound '0-1 8-9 2-3 10-11' -n 4 --map-by socket --bind-to core
bound '0-1 8-9 2-3 10-11' -n 4 --map-by numa --bind-to core:overload-allowed
bound '0-7 0-7 0-7' -n 3 --map-by core --bind-to socket
bound '0-3 8-11 4-7 12-15 0-3' -n 5 --map-by socket:PE=2
bound '0-3 4-7 8-11' -n 3 --map-by slot:PE=2:OVERSUBSCRIBE
bound '0-3 4-7' -n 2 --cpus-per-rank 2
bound '0-1 2-3 8-9 10-11' --map-by ppr:2:socket --bind-to core
bound '0-7 0-7 8-15 8-15' -npersocket 2 --bind-to socket
bound '0-1 2-3 8-9 10-11' -n 4 --map-by socket --rank-by fill --bind-to core
bound '0-1 8-9 2-3 10-11' -n 4 --map-by ppr:2:socket --rank-by socket --bind-to core
bound '0-1 8-9 2-3' -n 3 --map-by core --rank-by slot --bind-to core --cpu-set 0-3,8-9 --map-by socket
bound '4-5 6-7 4-5' -n 3 --bind-to core --cpu-set 4-7
printf '# by hand\nrank 1=localhost slot=0-1,7\nrank 0=localhost slot=1:0-1\nrank 2=+n0 slots=*\n' >"$T/ranks"
bound '8-11 0-3,14-15 0-15' -n 3 --rankfile "$T/ranks"
bound '8-11 0-3,14-15 0-15' -n 3 -rf "$T/ranks"
bound '8-11 0-3,14-15 0-15' -n 3 --map-by rankfile:file="$T/ranks"
want 0 "$MPIEXEC" -n 1 --report-bindings true
err_has 'rank 0 on .* is not bound: 8 cores'
want 0 "$MPIEXEC" -n 1 --bind-to core --report-bindings true
err_has '\[BB/\.\./\.\./\.\.\]\[\.\./\.\./\.\./\.\.\]$'
want 2 "$MPIEXEC" -n 5 --map-by ppr:2:socket true
err_has 'room for 4 ranks'
want 2 "$MPIEXEC" -n 1 --map-by socket:PE=5 true
err_has 'has 4 cores only'
want 2 "$MPIEXEC" -n 1 --bind-to l2cache true
err_has 'no L2'
want 2 "$MPIEXEC" -n 1 --cpu-set 99 --bind-to core true
err_has 'may use the cores 0-15'
# wrong_ranks TEXT SAID
wrong_ranks() {
	printf "$1" >"$T/ranks"
	want 2 "$MPIEXEC" -n 1 --rankfile "$T/ranks" true
	err_has "$2"
	err_lines 1
}
wrong_ranks '' 'no line for rank 0'
wrong_ranks 'rank 1=localhost slot=0\n' 'line 1: there is no such rank'
wrong_ranks 'rank 0=elsewhere slot=0\n' 'line 1: this host is not among'
wrong_ranks 'rank 0=localhost\n' 'slot=CORES is missing'
wrong_ranks 'rank 0=localhost slot=a\n' 'cores are written'
wrong_ranks 'rank 0=localhost slot=88\n' 'no such core'
wrong_ranks 'rank 0=localhost slot=9:0\n' 'no such core'
wrong_ranks 'rank 0=localhost slot=0\nrank 0=localhost slot=0\n' 'line 2: this rank has a line'
wrong_ranks 'hello\n' 'line 1: a line is'
unset HWLOC_SYNTHETIC

# --- for real, within the cores that this process may use
want 0 "$MPIEXEC" -n 2 --bind-to socket nproc
[ "$(sort -u "$T/out" | wc -l)" = 1 ] || fail "--bind-to socket on this machine"
last=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status | sed 's/.*[-,]//')
want 0 taskset -c "$last" "$MPIEXEC" -n 2 --bind-to core sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status
out_is "$last
$last
"
want 0 "$MPIEXEC" -n 1 --bind-to hwthread --cpu-set "$last" sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status
out_is "$last
"

# --- output into files
want 0 "$MPIEXEC" -n 3 -outfile-pattern "$T/o.%r" -errfile-pattern "$T/e.%h.%%" sh -c 'echo out $PMI_RANK; echo err >&2'
out_is ""
for r in 0 1 2; do
	[ "$(cat "$T/o.$r")" = "out $r" ] || fail "-outfile-pattern: rank $r"
done
[ "$(cat "$T/e.$(hostname).%")" = "err
err
err" ] || fail "-errfile-pattern: $(ls "$T")"
want 0 "$MPIEXEC" -n 12 --output-filename "$T/dir" sh -c 'echo out $PMI_RANK; echo err >&2'
[ "$(cat "$T/dir/1/rank.11/stdout" "$T/dir/1/rank.03/stderr")" = "out 11
err" ] || fail "--output-filename: $(find "$T/dir")"
[ "$(wc -l <"$T/out")" = 12 ] || fail "--output-filename copies"
want 0 "$MPIEXEC" -n 2 --output-filename "$T/only:nocopy" sh -c 'yes | head -c 300000'
out_is ""
[ "$(cat "$T"/only/1/rank.*/stdout | wc -c)" = 600000 ] || fail "--output-filename :nocopy"
want 1 "$MPIEXEC" -n 2 -outfile-pattern "$T/no/such/%r" true
err_has 'cannot write to .*/no/such/0: No such file'
err_lines 1
want 1 "$MPIEXEC" -n 1 -outfile-pattern /dev/full sh -c 'echo lost'
err_has 'cannot write to the files'
want 2 "$MPIEXEC" -n 1 -outfile-pattern 'a%z' true
err_has '%r (rank), %h (host)'

# --- how ranks end
want 3 "$MPIEXEC" -n 4 -print-all-exitcodes -disable-auto-cleanup sh -c "test \$PMI_RANK = 1 && touch '$T/one' && exit 3; while ! test -e '$T/one'; do sleep 0.05; done
	test \$PMI_RANK = 3 && sleep 1 && kill -9 \$\$; sleep 2; echo lived"
[ "$(sorted)" = "lived lived " ] || fail "-disable-auto-cleanup: $(cat "$T/out")"
err_has 'exit codes: 0:0 1:3 2:0 3:SIGKILL'
err_has 'rank 1 .* ended with exit code 3'
err_has 'rank 3 .* was killed by signal SIGKILL'
want 0 "$MPIEXEC" -n 3 -print-all-exitcodes true
err_has 'exit codes: 0-2:0$'
want 3 "$MPIEXEC" -n 2 -disable-auto-cleanup "$PROBE" identity - 3
# an abort ends all ranks all the same
want 7 "$MPIEXEC" -n 3 -disable-auto-cleanup "$PROBE" abort 7
MPIEXEC_TIMEOUT=0.3 want 124 env MPIEXEC_TIMEOUT=0.3 "$MPIEXEC" -n 2 sleep 1000
err_has 'longer than 0.3 s (MPIEXEC_TIMEOUT)'
want 0 env MPIEXEC_TIMEOUT=0.01 "$MPIEXEC" -n 1 --timeout 100 sleep 0.1
want 0 env MPIEXEC_TIMEOUT=-1 "$MPIEXEC" -n 1 true
want 2 env MPIEXEC_TIMEOUT=soon "$MPIEXEC" -n 1 true
err_has 'MPIEXEC_TIMEOUT=soon'

# --- a rank that is late for MPI_Init is waited for, and named once
want 0 env WEFT_INIT_TIMEOUT=1 "$MPIEXEC" -n 1 sh -c "sleep 3; exec '$PROBE' exchange" : -n 2 "$PROBE" exchange
err_has 'rank 0 has not called MPI_Init, and other ranks have waited for it for 1 s'
err_lines 1
want 1 env WEFT_INIT_TIMEOUT=1 "$MPIEXEC" -n 1 sleep 3 : -n 2 "$PROBE" exchange
err_has 'rank 0 .* ended while other ranks wait'

# --- accepted, with a note or without
want 0 "$MPIEXEC" --mca btl tcp,self --mca nothing known -n 1 echo ran
out_is "ran
"
err_has 'mca btl tcp,self: .*WEFT_DRIVERS'
err_has 'mca nothing known: .*weft info'
err_lines 2
want 0 "$MPIEXEC" --oversubscribe --allow-run-as-root -q --nooversubscribe -n 1 true
err_lines 0
want 0 "$MPIEXEC" --prefix /x -n 1 true
err_has 'prefix has no meaning here'

# --- unknown: one line, with what comes nearest
for pair in 'bindto:did you mean --bind-to' 'hostfle:did you mean --hostfile' 'bind-to-core:write --bind-to core' \
	'genvuser:reaches every rank' 'xyzzy:mpiexec --help' 'report-binding:did you mean --report-bindings'; do
	want 2 "$MPIEXEC" --${pair%%:*} true
	err_has "${pair#*:}"
	err_lines 1
done
done_testing
