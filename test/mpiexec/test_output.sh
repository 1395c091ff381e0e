# SPDX-License-Identifier: BSD-3-Clause
# What ranks write arrives whole: no line torn, none lost, no deadlock without a reader.
. "$(dirname "$0")/lib.sh"

# --- lines of many ranks, written byte by byte and in halves, stay whole
cat >"$T/lines.sh" <<'END'
r=$PMI_RANK i=0
while [ $i -lt 200 ]; do
	printf '<%s:%s:' $r $i
	printf '%s\n' "$i>"
	i=$((i + 1))
done
END
want 0 "$MPIEXEC" -n 6 sh "$T/lines.sh"
[ "$(wc -l <"$T/out")" = 1200 ] || fail "lines are lost: $(wc -l <"$T/out")"
grep -vqE '^<([0-5]):([0-9]+):\2>$' "$T/out" && fail "torn: $(grep -vE '^<([0-5]):([0-9]+):\2>$' "$T/out" | head -3)"
want 0 "$MPIEXEC" -n 4 --label sh "$T/lines.sh"
grep -vqE '^\[([0-5])\] <\1:([0-9]+):\2>$' "$T/out" && fail "torn with labels"

# --- lines of a megabyte
want 0 "$MPIEXEC" -n 3 sh -c 'for i in 1 2 3; do head -c 1000000 /dev/zero | tr "\0" $PMI_RANK; echo; done'
[ "$(wc -l <"$T/out")" = 9 ] || fail "long lines"
[ "$(awk '{print length($0)}' "$T/out" | sort -u)" = 1000000 ] || fail "long lines are torn"
[ "$(cut -c1-1,999999-999999 "$T/out" | sort -u | tr '\n' ' ')" = "00 11 22 " ] || fail "long lines are mixed"

# --- stdout and stderr in the same file
want 0 sh -c "\"$MPIEXEC\" -n 3 sh -c 'for i in 1 2 3 4 5 6 7 8 9; do printf out; echo \$i; printf err >&2; echo \$i >&2; done' 2>&1"
[ "$(grep -cE '^(out|err)[1-9]$' "$T/out")" = 54 ] || fail "stdout and stderr mixed"

# --- last lines without their newline
want 0 "$MPIEXEC" -n 1 printf 'no newline'
out_is "no newline"
want 0 "$MPIEXEC" -n 3 sh -c 'printf "rank%s" $PMI_RANK'
[ "$(tr '\n' ' ' <"$T/out" | tr ' ' '\n' | sort | tr '\n' ' ')" = "rank0 rank1 rank2 " ] || fail "last lines"
want 0 "$MPIEXEC" -n 2 sh -c 'printf "a\n\n\nb" ; exec >&-; exec 2>&-'
[ "$(grep -c '^$' "$T/out")" = 4 ] || fail "empty lines"

# --- binary bytes pass
want 0 "$MPIEXEC" -n 1 head -c 300000 /bin/sh
head -c 300000 /bin/sh | cmp -s - "$T/out" || fail "binary output"

# --- output before an abort is not lost
want 7 "$MPIEXEC" -n 3 "$PROBE" abort 7
out_is "last words"
err_has 'abort on purpose'
err_has 'rank 1 .* aborted the job with code 7'

# --- an unfinished line of a single rank shows at once (a prompt)
mkfifo "$T/in" "$T/answer"
JOB_MARK=$JOB_MARK.ranks "$MPIEXEC" -n 1 sh -c 'printf "name? "; read a; echo "hello $a"' <"$T/in" >"$T/answer" &
exec 3>"$T/in" 4<"$T/answer"
prompt=$(head -c 6 <&4)
[ "$prompt" = "name? " ] || fail "prompt"
echo you >&3
exec 3>&-
[ "$(cat <&4)" = "hello you" ] || fail "answer"
exec 4<&-
wait

# --- stdin: rank 0 only, and only what it reads
printf '1\n2\n3\n' >"$T/numbers"
(
	JOB_MARK=$JOB_MARK.ranks "$MPIEXEC" -n 2 -l sh -c 'dd bs=2 count=1 2>/dev/null; cat /dev/null'
	cat
) <"$T/numbers" >"$T/out"
out_is "[0] 1
2
3
"

# --- a reader that stops: ranks block, the PMI server does not, the end comes when it reads on
mkfifo "$T/slow"
(JOB_MARK=$JOB_MARK.ranks "$MPIEXEC" -n 2 sh -c "yes | head -c 20000000; exec '$PROBE' exchange" >"$T/slow"; echo $? >"$T/rc") &
exec 5<"$T/slow"
JOB_MARK=$JOB_MARK.ranks "$MPIEXEC" -n 2 "$PROBE" exchange >&0 </dev/null 2>"$T/err" || fail "another job meanwhile"
[ "$(wc -c <&5)" = 40000000 ] || fail "output lost behind a slow reader"
exec 5<&-
until_true 100 test -s "$T/rc"
[ "$(cat "$T/rc")" = 0 ] || fail "slow reader: exit code"

# --- PMI goes on while stdout is stuck
mkfifo "$T/stuck"
(JOB_MARK=$JOB_MARK.ranks "$MPIEXEC" -n 2 sh -c "(yes | head -c 30000000) & '$PROBE' exchange && touch '$T/done.'\$PMI_RANK; wait" >"$T/stuck" 2>/dev/null) &
exec 6<"$T/stuck"
until_true 100 test -e "$T/done.0" -a -e "$T/done.1" || fail "PMI waits for a stuck reader"
cat <&6 >/dev/null
exec 6<&-
wait

# --- a reader that leaves: the ranks see a broken pipe, the job ends
(JOB_MARK=$JOB_MARK.ranks "$MPIEXEC" -n 2 yes 2>"$T/err"; echo $? >"$T/rc2") | head -1 >"$T/out"
out_is "y
"
until_true 100 test -s "$T/rc2" || fail "yes | head does not end"
[ "$(cat "$T/rc2")" = 141 ] || fail "yes | head: exit code $(cat "$T/rc2")"
[ ! -s "$T/err" ] || fail "yes | head: $(cat "$T/err")"

# --- a full disk: said, and a failure
"$MPIEXEC" -n 2 echo something >/dev/full 2>"$T/err"
[ $? != 0 ] || fail "a full disk: exit code 0"
err_has 'cannot write to standard output'
# The same for ranks that go on writing and die of it: the disk is the cause, their SIGPIPE is not.
"$MPIEXEC" -n 2 yes >/dev/full 2>"$T/err"
rc=$?
[ $rc = 1 ] || fail "a full disk: exit code $rc"
err_has 'cannot write to standard output'
[ "$(wc -l <"$T/err")" = 1 ] || fail "a full disk: $(cat "$T/err")"

# --- closed descriptors
want 0 sh -c "\"$MPIEXEC\" -n 2 '$PROBE' exchange <&- >&- 2>&-"
done_testing
