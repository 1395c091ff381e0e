# SPDX-License-Identifier: BSD-3-Clause
# PMI-1 both ways: weft's ranks under weft's mpiexec and under Hydra, MPICH's programs under ours.
. "$(dirname "$0")/lib.sh"

want 0 "$MPIEXEC" -n 1 "$PROBE" exchange
want 0 "$MPIEXEC" -n 4 "$PROBE" exchange 50000
want 0 "$MPIEXEC" -n 40 "$PROBE" exchange 10
want 0 "$MPIEXEC" -n 2 sh -c "'$PROBE' exchange; true"
want 0 "$MPIEXEC" -n 2 "$PROBE" identity
grep -q 'rank 0 size 2 appnum 0 launcher weft secret_by_kvs 0' "$T/out" || fail "identity"

# the secret is nowhere to be seen
want 0 "$MPIEXEC" -n 1 sh -c 'env; tr "\0" " " </proc/$$/cmdline'
grep -iq secret "$T/out" && fail "a secret in the environment"

# nothing of mpiexec's is open in a rank but its two channels
want 0 "$MPIEXEC" -n 5 sh -c 'cd /proc/$$/fd; for f in [0-9]*; do case $f in 0 | 1 | 2 | $PMI_FD | $WEFT_BOOT_FD) ;; *) [ -e $f ] && readlink $f ;; esac; done; true'
for f in /proc/$$/fd/*; do readlink "$f"; done >"$T/inherited" 2>/dev/null
grep -vxF -f "$T/inherited" "$T/out" | grep -qE 'pipe|socket|anon' && fail "open in a rank: $(cat "$T/out")"

# --- no launcher, and launchers that we cannot talk to
want 0 "$PROBE" identity
grep -q 'rank 0 size 1 appnum 0 launcher none' "$T/out" || fail "alone"
for e in 'PMI_RANK=1' 'PMI_FD=700 PMI_RANK=0 PMI_SIZE=2' 'PMI_FD=x PMI_RANK=0 PMI_SIZE=2' \
	'PMI_FD=0 PMI_RANK=-1 PMI_SIZE=2' 'PMI_FD=0 PMI_RANK=0 PMI_SIZE=2147483648' \
	'PMI_FD=0 PMI_RANK=2 PMI_SIZE=2' 'PMI_FD=0 PMI_RANK=0 PMI_SIZE=0' 'PMI_FD=0 PMI_SIZE=2' \
	'PMI_FD=0 PMI_RANK=0' 'PMI_FD= PMI_RANK=0 PMI_SIZE=1' 'PMIX_NAMESPACE=x PMIX_RANK=0' \
	'OMPI_COMM_WORLD_SIZE=2' 'PMI_PORT=h:1 PMI_ID=0' 'SLURM_PROCID=0 SLURM_NTASKS=4' \
	'PMI_FD=0 PMI_RANK=0 PMI_SIZE=2'; do
	want 3 env $e "$PROBE" identity
	err_lines 1
done
want 0 env SLURM_PROCID=0 SLURM_NTASKS=1 "$PROBE" identity
want 0 env PMI_RANK=7 PMI_SIZE=9 PMI_FD=99 PMIX_RANK=3 "$MPIEXEC" -n 2 "$PROBE" exchange

# --- an MPI program started by a rank is told what to do, and does not hang
want 3 "$MPIEXEC" -n 1 sh -c "'$PROBE' exchange && exec '$PROBE' identity"
err_has WEFT_BOOT_FD

# --- garbage from a rank ends the job with a line
want 1 "$MPIEXEC" -n 2 sh -c 'echo garbage >&$PMI_FD; sleep 1000'
err_has 'sent a line that is not PMI-1'
want 1 "$MPIEXEC" -n 2 sh -c 'head -c 1000000 /dev/zero | tr "\0" x >&$PMI_FD; sleep 1000'
err_has 'sent a line that does not end'
want 1 "$MPIEXEC" -n 1 sh -c 'printf "cmd=get\0x\n" >&$PMI_FD; sleep 1000'
err_has 'NUL'
want 0 "$MPIEXEC" -n 1 sh -c 'echo cmd=nonsense >&$PMI_FD; read -r a <&$PMI_FD; echo "$a"'
out_is "cmd=nonsense_result rc=-1 msg=unknown_command
"
want 0 "$MPIEXEC" -n 1 sh -c 'printf "mcmd=spawn\nnprocs=2\nexecname=x\nendcmd\n" >&$PMI_FD; read -r a <&$PMI_FD; echo "$a"'
grep -q 'cmd=spawn_result rc=-1' "$T/out" || fail "spawn"

# --- two network namespaces under one mpiexec
if [ "$(id -u)" = 0 ] && command -v ip >/dev/null && ip netns add "weft-a-$$" 2>/dev/null; then
	ip netns add "weft-b-$$"
	# In a chroot whose / is no mount point, ip cannot make the mounts of its own.
	if ip netns exec "weft-a-$$" true 2>/dev/null; then
		want 0 "$MPIEXEC" -n 1 ip netns exec "weft-a-$$" "$PROBE" exchange : \
			-n 1 ip netns exec "weft-b-$$" "$PROBE" exchange
		want 139 "$MPIEXEC" -n 1 ip netns exec "weft-a-$$" "$PROBE" signal 11 : \
			-n 1 ip netns exec "weft-b-$$" "$PROBE" signal 11
	fi
	ip netns del "weft-a-$$"
	ip netns del "weft-b-$$"
fi

# --- Hydra
if command -v mpiexec.hydra >/dev/null; then
	want 0 mpiexec.hydra -n 4 "$PROBE" exchange 5000
	want 0 mpiexec.hydra -n 2 "$PROBE" identity
	grep -q 'rank 1 size 2 appnum 0 launcher hydra secret_by_kvs 1' "$T/out" || fail "hydra: identity"
	JOB_MARK=$JOB_MARK.ranks mpiexec.hydra -n 3 "$PROBE" abort 7 >"$T/out" 2>"$T/err" && fail "hydra: abort"
	# Below a batch script of Slurm: a hint that there are several hosts puts the addresses into the first round; ranks without it go along.
	for some in none 1 3 '[0-3]'; do
		want 0 env SLURM_PROCID=0 WEFT_DRIVERS=tcp,self mpiexec.hydra -n 4 sh -c '
			case $PMI_RANK in '"$some"') export SLURM_STEP_NUM_NODES=2 ;; esac
			exec "$0" ring' "$(dirname "$MPIEXEC")/../test/launchers/launcher_cells"
		grep -q '^ring ok 4 on 1$' "$T/out" || fail "hydra: a hint to some ($some)"
	done
	# below Hydra, ours again
	want 0 mpiexec.hydra -n 1 "$MPIEXEC" -n 2 "$PROBE" exchange
	want 0 "$MPIEXEC" -n 1 mpiexec.hydra -n 2 "$PROBE" exchange
else
	echo "skipped: no mpiexec.hydra" >&2
fi

# --- programs of MPICH
if command -v mpicc.mpich >/dev/null && mpicc.mpich -o "$T/mpich" "$(dirname "$0")/mpich_probe.c" 2>"$T/err"; then
	want 0 "$MPIEXEC" -n 4 "$T/mpich" sum
	grep -q '^sum 6 of 4$' "$T/out" || fail "MPICH under our mpiexec"
	want 7 "$MPIEXEC" -n 3 "$T/mpich" abort
	want 1 "$MPIEXEC" -n 3 "$T/mpich" exit
	err_has 'rank 1 .* without MPI_Finalize'
	want 139 "$MPIEXEC" -n 3 "$T/mpich" crash
	err_has 'rank 1 .* SIGSEGV'
	JOB_MARK=$JOB_MARK.ranks "$MPIEXEC" -n 2 --timeout 200 "$T/mpich" spawn >"$T/out" 2>"$T/err" && fail "spawn"
	[ $? != 124 ] || fail "spawn hangs"
	want 0 "$MPIEXEC" -n 1 "$T/mpich" sum : -n 2 "$T/mpich" sum
else
	echo "skipped: no mpicc.mpich" >&2
fi
done_testing
