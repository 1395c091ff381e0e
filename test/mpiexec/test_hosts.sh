# SPDX-License-Identifier: BSD-3-Clause
# Several hosts under mpiexec itself: ranks are where the command line says, talk, and see what they would see on
# the first host; their output comes whole.
. "$(dirname "$0")/hosts_lib.sh"

# --- which rank runs where
# placed WANT ARGS: "rank:local number" of each
placed() {
	wanted=$1
	shift
	want 0 "$MPIEXEC" "$@" sh -c 'echo $PMI_RANK:$MPI_LOCALRANKID/$MPI_LOCALNRANKS'
	[ "$(sorted)" = "$wanted " ] || fail "$*: $(sorted)"
}
placed '0:0/2 1:0/2 2:1/2 3:1/2' --hosts a,b -n 4
placed '0:0/2 1:1/2 2:0/2 3:1/2' --hosts a,b -ppn 2 -n 4
placed '0:0/3 1:1/3 2:0/1 3:2/3' --hosts a:2,b:1 -n 4
placed '0:0/3 1:0/1 2:1/3 3:2/3' --hosts a:3,b:1 --rank-by node -n 4
placed '0:0/2 1:0/2 2:1/2 3:1/2' --hosts a:2,b:2 --map-by node -n 4
placed '0:0/1 1:0/2 2:1/2' --hosts a,b,b -n 3
# Hosts without a rank are left alone.
placed '0:0/1' --hosts a:2,b:2 -n 1
placed '0:0/2 1:1/2' --hosts a:2,b:2,c -n 2
placed '0:0/2 1:1/2 2:0/2 3:1/2' --host a,b -N 2
printf '# two\na slots=2\nb:1\n' >"$T/hosts"
placed '0:0/2 1:1/2 2:0/1' -f "$T/hosts" -n 3
printf 'rank 0=+n1 slot=0\nrank 1=a slot=0\n' >"$T/ranks"
placed '0:0/1 1:0/1' --hosts a,b -rf "$T/ranks" -n 2
want 2 "$MPIEXEC" --hosts 'n[1-3]' -n 2 true
err_has 'each host is named by itself'

# --- key-value space, names of hosts, several programs
want 0 "$MPIEXEC" --hosts a,b -n 6 "$PROBE" exchange 50000
want 0 "$MPIEXEC" --hosts a,b,c -n 2 "$PROBE" identity : -n 2 "$PROBE" identity
grep -q 'rank 3 size 4 appnum 1 launcher weft secret_by_kvs 0' "$T/out" || fail "identity: $(cat "$T/out")"
want 0 env WEFT_RSH_FANOUT=2 "$MPIEXEC" --hosts a,b,c,d,e,f,g,h,i,j,k -n 22 "$PROBE" exchange
want 0 env WEFT_RSH_FANOUT=1 "$MPIEXEC" --hosts a,b,c,d -n 4 "$PROBE" exchange

# --- the secret: nowhere in arguments or environment, of agents neither
want 0 "$MPIEXEC" --hosts a,b -n 2 sh -c 'for p in /proc/[0-9]*; do tr "\0" "\n" <$p/cmdline; tr "\0" "\n" <$p/environ; done 2>/dev/null | grep -ac weft-agent'
want 0 "$MPIEXEC" --hosts a,b -n 2 sh -c 'env; tr "\0" " " </proc/$PPID/cmdline; tr "\0" "\n" </proc/$PPID/environ'
grep -iqE 'secret|weftjob' "$T/out" && fail "a secret in the environment"
# nothing of the agent's is open in a rank but its channels
want 0 "$MPIEXEC" --hosts a,b -n 4 sh -c 'cd /proc/$$/fd; for f in [0-9]*; do case $f in 0 | 1 | 2 | $PMI_FD | $WEFT_BOOT_FD) ;; *) [ -e $f ] && readlink $f ;; esac; done; true'
for f in /proc/$$/fd/*; do readlink "$f"; done >"$T/inherited" 2>/dev/null
grep -vxF -f "$T/inherited" "$T/out" | grep -qE 'pipe|socket|anon' && fail "open in a rank: $(cat "$T/out")"

# --- environment and directory as on the first host
A='a  b' B='q"'
export A B
mkdir "$T/here it's"
cd "$T/here it's"
want 0 "$MPIEXEC" --hosts a,b -n 2 -x C=c sh -c 'echo "$A:$B:$C:$OWN:$(pwd):$(umask)"'
[ "$(sort -u "$T/out")" = "a  b:q\":c::$T/here it's:$(umask)" ] || fail "environment: $(cat "$T/out")"
want 0 "$MPIEXEC" --hosts a,b -n 2 -genvlist A sh -c 'echo "$A:$B"'
[ "$(sort -u "$T/out")" = "a  b:" ] || fail "-genvlist: $(cat "$T/out")"
cd /
want 1 "$MPIEXEC" --hosts a,b --wdir /nowhere -n 2 pwd
err_has "cannot change to directory '/nowhere'"
err_lines 1

# --- output: whole lines, everything, labels, files, bindings
want 0 "$MPIEXEC" --hosts a,b -n 6 -l sh -c 'i=0; while [ $i -lt 200 ]; do printf "<$PMI_RANK:$i:"; echo "$i>"; i=$((i + 1)); done'
[ "$(wc -l <"$T/out")" = 1200 ] || fail "lines are lost: $(wc -l <"$T/out")"
grep -vqE '^\[([0-5])\] <\1:([0-9]+):\2>$' "$T/out" && fail "torn: $(grep -vE '^\[([0-5])\] <\1:([0-9]+):\2>$' "$T/out" | head -3)"
want 0 "$MPIEXEC" --hosts a -n 1 head -c 3000000 /dev/zero
[ "$(wc -c <"$T/out")" = 3000000 ] || fail "3 MB: $(wc -c <"$T/out")"
want 0 "$MPIEXEC" --hosts a,b -n 4 -outfile-pattern "$T/o.%h.%r" echo x
[ "$(cat "$T/o.a.0" "$T/o.b.1" "$T/o.a.2" "$T/o.b.3" | tr -d '\n')" = xxxx ] || fail "-outfile-pattern: $(ls "$T")"
want 0 "$MPIEXEC" --hosts a,b -n 4 --bind-to core --report-bindings true
[ "$(grep -cE '^mpiexec: rank [0-3] on [ab] is bound to' "$T/err")" = 4 ] || fail "--report-bindings"
# a reader that stops: PMI goes on
mkfifo "$T/stuck"
(JOB_MARK=$JOB_MARK.ranks "$MPIEXEC" --hosts a,b -n 2 sh -c "(yes | head -c 30000000) & '$PROBE' exchange && touch '$T/done.'\$PMI_RANK; wait" >"$T/stuck" 2>/dev/null) &
exec 6<"$T/stuck"
until_true 100 test -e "$T/done.0" -a -e "$T/done.1" || fail "PMI waits for a stuck reader"
[ "$(wc -c <&6)" = 60000000 ] || fail "output lost behind a slow reader"
exec 6<&-
wait

# --- stdin goes to rank 0
seq 1 300000 >"$T/numbers"
for how in file pipe; do
	if [ $how = file ]; then
		JOB_MARK=$JOB_MARK.ranks "$MPIEXEC" --hosts a,b -n 2 sh -c 'wc -l' <"$T/numbers" >"$T/out"
	else
		cat "$T/numbers" | JOB_MARK=$JOB_MARK.ranks "$MPIEXEC" --hosts a,b -n 2 sh -c 'wc -l' >"$T/out"
	fi
	[ "$(sorted)" = "0 300000 " ] || fail "stdin from a $how: $(cat "$T/out")"
done

# --- real networks of their own
two=$here/../../cmd/weft/two-hosts
if "$two" --rate none true 2>/dev/null; then
	printf '#!/bin/sh\nexec "%s" --agent "$@"\n' "$two" >"$T/agent"
	chmod +x "$T/agent"
	want 0 "$two" --rate none "$MPIEXEC" --launcher-exec "$T/agent" --hosts a,b -n 4 sh -c "hostname; '$PROBE' exchange"
	[ "$(sorted)" = "a a b b " ] || fail "two networks: $(cat "$T/out")"
	want 139 "$two" --rate none "$MPIEXEC" --launcher-exec "$T/agent" --hosts a,b -n 4 "$PROBE" signal 11
	if [ -x "$(dirname "$MPIEXEC")/mpicc" ] && "$(dirname "$MPIEXEC")/mpicc" -o "$T/ring" "$here/ring.c" 2>"$T/err"; then
		want 0 "$two" --rate none "$MPIEXEC" --launcher-exec "$T/agent" --hosts a,b -ppn 2 -n 4 "$T/ring"
		grep -q '^ring of 4: 6$' "$T/out" || fail "ring: $(cat "$T/out" "$T/err")"
	fi
else
	echo "skipped: no namespaces" >&2
fi
done_testing
