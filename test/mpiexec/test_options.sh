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
want 0 "$MPIEXEC" -n 1 "$PROBE" identity : -n 1 "$PROBE" identity
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

# --- what MPI names besides
mkdir -p "$T/one" "$T/two"
printf '#!/bin/sh\necho from two\n' >"$T/two/only_there" && chmod +x "$T/two/only_there"
want 0 "$MPIEXEC" -n 1 -path "$T/one:$T/two" only_there : -path "$T/one" true
out_is "from two
"
want 0 "$MPIEXEC" -path /nowhere true
for row in "5 2:4 4" "3 2:4 3" "9 1,7,12 7" "30 3:30:5 28" "30 30:3:-9 30" "29 30:3:-9 21" "4 4 4"; do
	set -- $row
	want 0 "$MPIEXEC" -n "$1" -soft "$2" echo r
	out_is "$(yes r | head -n "$3")
"
done
for list in 7:9 x 1: 3:1:0 1:2:3:4; do
	want 2 "$MPIEXEC" -n 5 -soft "$list" true
	err_has "-soft $list: it allows no number from 1 to 5"
done
want 0 "$MPIEXEC" -arch "$(uname -m)" true
want 2 "$MPIEXEC" -arch vax true
err_has "-arch vax: this host is $(uname -m)"
want 2 "$MPIEXEC" -initial-errhandler mpi_errors_vanish true
err_has 'mpi_errors_are_fatal, mpi_errors_abort or mpi_errors_return'

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
	'true :' ': true' '--nonsense true' '-n=2x true' '--bind-to slot true' '--timeout -1 true' \
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
want 0 env -u SLURM_JOB_ID "$MPIEXEC" -hosts a,b -n 2 p
grep -q '^prterun ' "$T/out" || fail "outside an allocation srun is no launcher: $(cat "$T/out")"
SLURM_JOB_ID=7
export SLURM_JOB_ID
want 0 "$MPIEXEC" -hosts a,b -ppn 2 -n 4 -l --timeout 90 --wdir /x -genv V 1 p q
out_is "srun --mpi=pmi2 --nodelist=a,b --ntasks-per-node=2 --label --time=1:30 --ntasks=4 --chdir=/x p q V=1 T=
"
want 127 env PATH=/nowhere "$MPIEXEC" --engine srun -f hosts -n 2 true
err_has 'srun, prterun and mpiexec.hydra are known'
err_lines 1
want 1 env PATH=/nowhere "$MPIEXEC" --hosts no-such-host -n 2 true
err_has "no-such-host is lost: 'ssh' ended with exit code 127"
err_has "cannot start 'ssh': No such file"

# --- files of hosts, as their launchers want them
for e in srun prterun mpiexec.hydra; do
	printf '#!/bin/sh\nfor w; do case $w in *self/fd*) cat "${w#*=}"; esac; done\n' >"$T/bin/$e"
done
printf '# ours\n\na\nb-1.x:3\t\r\n\tc slots=4 max_slots=9 # more\n[fe80::1]:2' >"$T/h"
want 0 "$MPIEXEC" --engine=prterun --hostfile "$T/h" -n 4 --bind-to core -x V=1 p q
out_is 'a
b-1.x slots=3
c slots=4
[fe80::1] slots=2
'
want 0 "$MPIEXEC" --engine=hydra -f "$T/h" -n 4 p
out_is 'a
b-1.x:3
c:4
[fe80::1]:2
'
printf 'n[1-3,7] ib=1\nm\n' >"$T/h"
want 0 "$MPIEXEC" -f "$T/h" -n 4 p
out_is 'n[1-3,7]
m
'
# wrong_file TEXT SAID: one line, with the number of the one that is wrong
wrong_file() {
	printf -- "$1" >"$T/h"
	for e in ${3:-srun prterun hydra}; do
		want 2 "$MPIEXEC" --engine $e -f "$T/h" -n 2 p
		err_has "$2"
		err_lines 1
	done
}
wrong_file '' 'names no host'
wrong_file '# a\n \n' 'names no host'
wrong_file 'a\nb:-3\n' "line 2: a host takes 1 to 65536 ranks: '-3'"
wrong_file 'a slots=0\n' "line 1: a host takes"
wrong_file 'a:99999999999\n' "line 1: a host takes"
wrong_file 'a:\n' "line 1: a host takes"
wrong_file 'a b\n' "one host a line; this follows its name: 'b'"
wrong_file '-oProxyCommand=x\n' 'no host.s name'
wrong_file 'a[1\n' 'no host.s name'
wrong_file ':3\n' 'no host.s name'
wrong_file 'a;b\n' 'no host.s name'
wrong_file '\033[2Ja\n' "no host.s name: '?\[2Ja'"
wrong_file 'a\0b\n' 'no text'
wrong_file 'a:2\n' 'by -ppn' srun
head -c 1000000 /dev/zero | tr '\0' a >"$T/big" # one name
want 2 "$MPIEXEC" -f "$T/big" -n 2 p
err_has 'no host.s name'
want 2 "$MPIEXEC" -f "$T/none" -n 2 p
err_has 'cannot be read: No such file'
want 2 "$MPIEXEC" -f "$T" -n 2 p
err_has 'cannot be read: Is a directory'
for list in '' a, ,a a,,b -x,b 'a b' a:0 a:x; do
	want 2 "$MPIEXEC" --engine hydra --hosts "$list" -n 2 p
	err_has '^mpiexec: --hosts: '
	err_lines 1
done
want 0 "$MPIEXEC" --engine hydra --hosts 'a:2,[::1],n[1-3,7]:4' -n 2 p
done_testing
