# SPDX-License-Identifier: BSD-3-Clause
# Many ranks, few descriptors: works, or says which limit stands in the way.
. "$(dirname "$0")/lib.sh"

want 0 "$MPIEXEC" -n 200 --timeout 300 "$PROBE" exchange 10
want 0 sh -c "ulimit -Sn 64; \"$MPIEXEC\" -n 60 sh -c 'ulimit -Sn'"
[ "$(sort -u "$T/out")" = 64 ] || fail "ranks do not get the limit back"
want 1 sh -c "ulimit -n 64; \"$MPIEXEC\" -n 60 true"
err_has 'descriptors, the limit is 64'
err_lines 1

want 0 sh -c "ulimit -n 32; \"$MPIEXEC\" -n 2 '$PROBE' exchange"

# --- a place where not even the program's file can be opened twice: no hang
want 1 sh -c "ulimit -n 12; \"$MPIEXEC\" -n 1 true"
err_lines 1

# --- as another user, where nothing may be signalled but one's own
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null && command -v prlimit >/dev/null; then
	cp "$MPIEXEC" "$PROBE" "$T" && chmod 755 "$T" "$T/mpiexec" "$T/boot_probe"
	want 0 setpriv --reuid=65534 --regid=65534 --clear-groups "$T/mpiexec" -n 3 "$T/boot_probe" exchange
	want 139 setpriv --reuid=65534 --regid=65534 --clear-groups "$T/mpiexec" -n 2 sh -c \
		"setsid sleep 1000 & exec '$T/boot_probe' signal 11"
	nobody_left || fail "as nobody: processes are left"
	for n in 1 2 3 4 6 12; do
		want 1 setpriv --reuid=65533 --regid=65533 --clear-groups prlimit --nproc=$n \
			"$T/mpiexec" -n 20 sleep 1000
		err_lines 1
		nobody_left || fail "limit of $n processes: some are left"
	done
fi
done_testing
