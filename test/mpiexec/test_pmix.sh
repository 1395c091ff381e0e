# SPDX-License-Identifier: BSD-3-Clause
# PMIx: ranks of weft under Open MPI's mpirun, which is a PMIx server.
. "$(dirname "$0")/lib.sh"
command -v mpirun.openmpi >/dev/null || skip "no mpirun.openmpi"
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
# Open MPI's daemon listens on loopback alone.  From 5 on it takes that only where there is no other interface.
case $(mpirun.openmpi --version) in
*" 4."*) start() { mpirun.openmpi --mca oob_tcp_if_include lo "$@"; } ;;
*) start() { unshare --net sh -c 'ip link set lo up && exec mpirun.openmpi "$@"' mpirun "$@"; } ;;
esac
# Open MPI's mpirun ends now and then with a signal of its own while it leaves, its job done, or (5) stumbles over the
# folder of an earlier one that ended so: that run counts for nothing.
openmpi() {
	for openmpi_turn in 1 2 3 4; do
		start --oversubscribe "$@" >"$T/openmpi.out" 2>"$T/openmpi.err"
		openmpi_rc=$?
		[ $openmpi_rc != 213 ] || ! grep -q prte_session_dir "$T/openmpi.err" || continue
		[ $openmpi_rc = 139 ] || break
		grep -q 'on signal 11' "$T/openmpi.err" && ! grep -q orte_finalize "$T/openmpi.err" && break # a rank's
	done
	cat "$T/openmpi.out"
	cat "$T/openmpi.err" >&2
	return $openmpi_rc
}
RUN=openmpi

want 0 $RUN -n 1 "$PROBE" exchange
want 0 $RUN -n 4 "$PROBE" exchange 50000
want 0 $RUN -n 2 "$PROBE" identity
grep -q 'rank 0 size 2 appnum 0 launcher Open MPI or PRRTE, by PMIx secret_by_kvs 1' "$T/out" || fail "identity"
grep -q 'rank 1 size 2' "$T/out" || fail "identity of rank 1"

# the exit code of an abort; the cause on stderr, once
want 7 $RUN -n 3 "$PROBE" abort 7
[ "$(grep -c 'abort on purpose' "$T/err")" = 1 ] || fail "the cause of the abort: $(cat "$T/err")"
# Open MPI 5 tells the others of the end, and may take the code of one that ends by that for the job's.
$RUN -n 3 "$PROBE" exit 9 >"$T/out" 2>"$T/err"
rc=$?
[ $rc = 9 ] || { [ $rc = 5 ] && grep -q 'fence: PMIX_ERR_PARTIAL_SUCCESS' "$T/err"; } ||
	fail "exit code $rc instead of 9: $(cat "$T/err")"

# two signs: a PMI_FD that is inherited and closed counts for nothing
want 0 $RUN -n 2 env PMI_FD=900 PMI_RANK=0 PMI_SIZE=9 "$PROBE" exchange
# and weft's mpiexec, started by a rank, speaks for its own ranks
want 0 $RUN -n 1 "$MPIEXEC" -n 2 "$PROBE" exchange

# a library that is none: one line per rank, and no rank runs alone
mkdir "$T/lib"
: >"$T/lib/none.c"
if cc -shared -o "$T/lib/libpmix.so.2" "$T/lib/none.c" 2>/dev/null; then
	want 3 $RUN -n 1 env LD_LIBRARY_PATH="$T/lib" "$PROBE" identity
	err_has 'libpmix.so.2 has no PMIx_Init'
fi

# mpirun is killed, and nothing else would end its ranks: each ends by itself, with one line
JOB_MARK=$JOB_MARK.ranks start --oversubscribe -n 2 sh -c "exec '$PROBE' stay 0 2>>'$T/own.err'" >"$T/out" 2>"$T/err" </dev/null &
started=$!
soon() { # COMMAND: true within a minute
	soon_tries=600
	until eval "$1"; do
		soon_tries=$((soon_tries - 1))
		[ $soon_tries -gt 0 ] || return 1
		sleep 0.1
	done
}
soon '[ "$(grep -c joined "$T/out")" = 2 ]' || fail "the ranks do not join: $(cat "$T/err" "$T/own.err")"
kill -9 $(pgrep -P $started)
wait $started
soon '[ -z "$(job_pids)" ]' || fail "ranks outlive mpirun: $(job_pids)"
[ "$(grep -c 'launcher is gone' "$T/own.err")" = 2 ] && [ "$(wc -l <"$T/own.err")" = 2 ] ||
	fail "what the ranks say without mpirun: $(cat "$T/own.err")"
done_testing
