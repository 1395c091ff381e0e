# SPDX-License-Identifier: BSD-3-Clause
# Several hosts under mpiexec itself: all ranks are gone when anything dies or falls silent, and a line says what.
. "$(dirname "$0")/hosts_lib.sh"

# --- how it ends
want 139 "$MPIEXEC" --hosts a,b -n 4 "$PROBE" signal 11
err_has 'rank 1 on b was killed by signal SIGSEGV'
err_lines 1
want 4 "$MPIEXEC" --hosts a,b -n 3 "$PROBE" exit 4
err_has 'rank 1 on b ended with exit code 4'
want 7 "$MPIEXEC" --hosts a,b -n 3 "$PROBE" abort 7
err_has 'aborted the job with code 7'
want 1 "$MPIEXEC" --hosts a,b -n 3 "$PROBE" exit 0
err_has 'rank 1 on b .* without MPI_Finalize'
want 6 "$MPIEXEC" --hosts a,b -n 3 "$PROBE" identity - 6
want 127 "$MPIEXEC" --hosts a,b -n 4 no-such-program
err_has "'no-such-program': No such file"
err_lines 1
want 1 "$MPIEXEC" --hosts a,b -n 1 "$PROBE" hang 0 : -n 1 true
err_has 'rank 1 .* while other ranks wait'
want 124 "$MPIEXEC" --hosts a,b --timeout 1 -n 2 sleep 1000
want 2 "$MPIEXEC" --hosts a,b -n 3 -disable-auto-cleanup -print-all-exitcodes sh -c 'exit $((PMI_RANK % 2 * 2))'
err_has 'exit codes: 0:0 1:2 2:0'
want 0 "$MPIEXEC" --hosts a,b -n 2 sh -c 'setsid sleep 1000 & true'
nobody_left || fail "background processes are left"
want 1 "$MPIEXEC" --hosts a,b -n 2 bash -c 'echo garbage >&"$PMI_FD"; sleep 1000' # dash takes one digit
err_has 'sent a line that is not PMI-1'
all_gone 100 "after failures"

# --- anything dies: all ranks are gone
start_job() {
	rm -f "$T"/up.*
	JOB_MARK=$JOB_MARK.ranks "$MPIEXEC" "$@" sh -c "setsid sleep 1000 & (trap '' TERM INT HUP; touch '$T/up.'\$PMI_RANK; '$PROBE' hang 0; true) & wait; true" \
		>"$T/out" 2>"$T/err" </dev/null &
	MPID=$!
	until_true 100 test -e "$T/up.0" -a -e "$T/up.1" -a -e "$T/up.2" || fail "the job does not start: $(cat "$T/err")"
}
keeper_of() { tr '\n' ' ' <"/proc/$1/task/$1/children" | cut -d' ' -f1; }
start_job --hosts a,b,c -n 3
kill -9 $MPID
wait $MPID 2>/dev/null
all_gone 100 "mpiexec killed"
for what in a b; do # in a tree, the second one is below the first
	start_job --hosts a,b,c -n 3
	kill -9 "$(cat "$T/rsh.$what")" # the script has become the agent
	wait $MPID
	[ $? = 1 ] || fail "agent $what killed: exit code"
	err_has "the agent on $what is lost: .*SIGKILL"
	all_gone 100 "agent $what killed"
done
WEFT_RSH_FANOUT=1
export WEFT_RSH_FANOUT
start_job --hosts a,b,c -n 3
kill -9 "$(cat "$T/rsh.b")"
wait $MPID
[ $? = 1 ] || fail "agent in a chain killed: exit code"
err_has 'the agent on [bc] is lost'
all_gone 100 "agent in a chain killed"
start_job --hosts a,b,c -n 3
kill -9 $MPID
wait $MPID 2>/dev/null
all_gone 100 "mpiexec killed above a chain"
unset WEFT_RSH_FANOUT
start_job --hosts a,b,c -n 3
kill -9 "$(keeper_of "$(cat "$T/rsh.b")")"
wait $MPID
[ $? = 1 ] || fail "keeper killed: exit code"
err_has 'keeps the ranks of b was killed'
all_gone 100 "keeper killed"
for s in INT:130 TERM:143; do
	start_job --hosts a,b,c -n 3
	kill -"${s%:*}" $MPID
	until_true 100 grep -q "SIG${s%:*}: asking" "$T/err" || fail "SIG${s%:*}: no answer"
	kill -INT $MPID 2>/dev/null
	wait $MPID
	rc=$?
	[ $rc = "${s#*:}" ] || fail "SIG${s%:*} twice: exit code $rc"
	all_gone 100 "SIG${s%:*} twice"
done

# --- silence: the connection stands, and nothing comes
WEFT_AGENT_SILENCE=2
export WEFT_AGENT_SILENCE
start_job --hosts a,b,c -n 3
kill -STOP "$(cat "$T/rsh.b")"
wait $MPID
[ $? = 1 ] || fail "a silent agent: exit code"
err_has 'the agent on b is lost: its agent has fallen silent'
kill -CONT "$(cat "$T/rsh.b")" 2>/dev/null
all_gone 100 "a silent agent"
start_job --hosts a,b,c -n 3
kill -STOP $MPID # not by its own Ctrl-Z: agents hear nothing
only_mpiexec_left() { [ "$(job_pids)" = $MPID ]; }
until_true 100 only_mpiexec_left || fail "a silent mpiexec: $(job_pids)"
kill -9 $MPID
wait $MPID 2>/dev/null
# stopped by Ctrl-Z it says so, and may stay away for longer
rm -f "$T"/up.* "$T/go.on"
JOB_MARK=$JOB_MARK.ranks "$MPIEXEC" --hosts a,b -n 2 sh -c "touch '$T/up.'\$PMI_RANK; while ! test -e '$T/go.on'; do sleep 0.05; done; echo done" >"$T/out" 2>"$T/err" </dev/null &
MPID=$!
until_true 100 test -e "$T/up.0" -a -e "$T/up.1"
state_is() { sed 's/.*) \(.\).*/\1/' "/proc/$1/stat" | grep -q "^$2\$"; }
kill -TSTP $MPID
until_true 100 state_is $MPID T || fail "mpiexec does not stop"
sleep 3 # longer than the silence: no agent may end its ranks for it
touch "$T/go.on"
kill -CONT $MPID
wait $MPID || fail "stop and go on: $(cat "$T/err")"
out_is "done
done
"
unset WEFT_AGENT_SILENCE

# --- agents that do not start
want 1 env WEFT_RSH=false "$MPIEXEC" --hosts a,b -n 2 true
err_has "is lost: 'false' ended with exit code 1 before an agent answered"
want 1 "$MPIEXEC" --launcher-exec "$T/none" --hosts a,b -n 2 true
err_has "weft has to be there under the same path"
printf '#!/bin/sh\ntest "$1" = b && exit 9\nexec "%s" "$@"\n' "$T/rsh" >"$T/half"
chmod +x "$T/half"
want 1 env WEFT_RSH="$T/half" "$MPIEXEC" --hosts a,b,c -n 3 sleep 1000
err_has "the agent on b is lost: .* ended with exit code 9"
err_lines 1
all_gone 100 "one agent that does not start"
printf '#!/bin/sh\necho; echo weft-agent 0.0.9 9999; cat >/dev/null\n' >"$T/other"
chmod +x "$T/other"
want 1 env WEFT_RSH="$T/other" "$MPIEXEC" --hosts a,b -n 2 true
err_has 'weft 0.0.9 is installed there, whose agent this mpiexec .* does not speak with: install the same'
want 2 sh -c "'$MPIEXEC' --weft-agent </dev/null"
err_has 'started by mpiexec'
printf '\001\002\003\004 garbage that is no frame, and goes on for a while ...............' | "$MPIEXEC" --weft-agent >"$T/out" 2>"$T/err"
head -c 100000 /dev/urandom | "$MPIEXEC" --weft-agent >"$T/out" 2>"$T/err"
[ $? -lt 128 ] || fail "an agent dies of garbage"

# --- without a command of its own, names of this host need none
unset WEFT_RSH
want 0 env PATH=/usr/bin:/bin "$MPIEXEC" --engine ssh --hosts localhost -n 2 "$PROBE" exchange

done_testing
