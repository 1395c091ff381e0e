# SPDX-License-Identifier: BSD-3-Clause
# Each option of mpiexec does what --help says; wrong ones get one line and the right exit code.
. "$(dirname "$0")/lib.sh"

# --- ranks and programs
want 0 "$MPIEXEC" -n 3 sh -c 'echo $PMI_RANK/$PMI_SIZE'
[ "$(sort "$T/out" | tr '\n' ' ')" = "0/3 1/3 2/3 " ] || fail "-n 3"
want 0 "$MPIEXEC" -np 2 -l sh -c 'echo $MPI_LOCALRANKID/$MPI_LOCALNRANKS'
[ "$(sort "$T/out" | tr '\n' ' ')" = "[0] 0/2 [1] 1/2 " ] || fail "-np 2 -l"
want 0 "$MPIEXEC" echo alone
out_is "alone
"
want 0 "$MPIEXEC" --label -n 1 echo a : -n 2 echo b
[ "$(sort "$T/out" | tr '\n' ' ')" = "[0] a [1] b [2] b " ] || fail "several programs"
want 0 "$MPIEXEC" -n 1 "$PROBE" who : -n 1 "$PROBE" who
grep -q 'rank 0 size 2 appnum 0' "$T/out" && grep -q 'rank 1 size 2 appnum 1' "$T/out" ||
	fail "appnum"
want 0 "$MPIEXEC" -n 1 -- echo -n -x
out_is "-x"

# --- environment and directory
A=outer
export A
want 0 "$MPIEXEC" -x A -x B=b=c -env C 'c d' -genv D d sh -c 'echo "$A $B $C $D"' : sh -c 'echo "$B$C$D"'
[ "$(sort "$T/out" | tr '\n' ';')" = "d;outer b=c c d d;" ] || fail "variables: $(cat "$T/out")"
want 0 "$MPIEXEC" -x NOT_SET_ANYWHERE true
err_has 'NOT_SET_ANYWHERE: the variable is not set'
want 0 "$MPIEXEC" --wdir / pwd
out_is "/
"
want 0 "$MPIEXEC" -wdir=/usr pwd : -wdir / true
out_is "/usr
"
want 1 "$MPIEXEC" -n 2 -wdir /nowhere pwd
err_has "/nowhere': No such file"
err_lines 1

# --- cores
cpus=$(nproc)
want 0 "$MPIEXEC" -n 3 --bind-to core nproc
out_is "1
1
1
"
want 0 "$MPIEXEC" -n 3 -l --bind-to core sh -c "grep Cpus_allowed_list /proc/self/status"
[ "$(sed 's/.*://' "$T/out" | sort -u | wc -l)" = $((cpus < 3 ? cpus : 3)) ] || fail "--bind-to core"
want 0 "$MPIEXEC" -n 1 --bind-to none nproc
out_is "$cpus
"
want 0 "$MPIEXEC" --oversubscribe -n 5 true

# --- help and version
want 0 "$MPIEXEC" --help
grep -q -- '--timeout SECONDS' "$T/out" || fail "--help"
want 0 "$MPIEXEC" -h
want 0 "$MPIEXEC" --version
grep -q '^weft mpiexec [0-9]' "$T/out" || fail "--version"

# --- mistakes: one line each
for args in '' '-n' '-n 0 true' '-n -1 true' '-n x true' '-n 99999999999 true' '-n 2' '-n 2 :' \
	'true :' ': true' '--nonsense true' '-n=2x true' '--bind-to socket true' '--timeout -1 true' \
	'--timeout soon true' '-env A' '-env =a b true' '-x =v true' '--label=3 true' '-ppn 0 true'; do
	want 2 "$MPIEXEC" $args
	err_lines 1
	err_has '^mpiexec: '
done
want 127 "$MPIEXEC" -n 4 no-such-program
err_lines 1
err_has "'no-such-program': No such file"
want 126 "$MPIEXEC" -n 2 /etc/passwd
err_lines 1
echo '#!/no/such/interpreter' >"$T/script" && chmod +x "$T/script"
want 127 "$MPIEXEC" "$T/script"
err_has interpreter
cd "$T" && cp /bin/true here && want 127 "$MPIEXEC" here
err_has './ before it'
want 127 "$MPIEXEC" -n 2 sleep 1000 : no-such-program
all_gone 100 "a program that is missing"

# --- other machines: the words of each engine
mkdir "$T/bin"
for e in srun prterun mpiexec.hydra; do
	printf '#!/bin/sh\necho %s "$@" V=$V T=$MPIEXEC_TIMEOUT\n' $e >"$T/bin/$e"
	chmod +x "$T/bin/$e"
done
PATH=$T/bin:/usr/bin:/bin
export PATH
want 0 "$MPIEXEC" --engine hydra -hosts a,b -ppn 2 -n 4 -l --timeout 9 --wdir /x -genv V 1 -env W 2 p q : -n 1 r
out_is "mpiexec.hydra -hosts a,b -ppn 2 -l -genv V 1 -n 4 -wdir /x -env W 2 p q : -n 1 r V= T=9
"
want 0 "$MPIEXEC" -hosts a,b -ppn 2 -n 4 -l --timeout 90 --wdir /x -genv V 1 p q
out_is "srun --mpi=pmi2 --nodelist=a,b --ntasks-per-node=2 --label --time=1:30 --ntasks=4 --chdir=/x p q V=1 T=
"
want 0 "$MPIEXEC" --engine=prterun --hostfile h -n 4 --bind-to core -x V=1 p q
out_is "prterun --hostfile h --bind-to core -n 4 -x V=1 p q V= T=
"
want 127 env PATH=/nowhere "$MPIEXEC" -f hosts -n 2 true
err_has 'srun, prterun or mpiexec.hydra'
err_lines 1
done_testing
