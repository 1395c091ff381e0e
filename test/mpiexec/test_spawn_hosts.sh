# SPDX-License-Identifier: BSD-3-Clause
# Several hosts under mpiexec itself: MPI_Comm_spawn reaches each of them, and --hosts behind a ':' is that program's.
. "$(dirname "$0")/hosts_lib.sh"
spawner=$(dirname "$PROBE")/../mpi/mpi_spawn_host

# placed WANT ARGS: "rank:local number" of each
placed() {
	wanted=$1
	shift
	want 0 "$MPIEXEC" "$@"
	[ "$(sorted)" = "$wanted " ] || fail "$*: $(sorted)"
}
show='echo $PMI_RANK:$WEFT_JOB_HOST:$WEFT_JOB_HOSTS'
placed '0:a:a,b 1:b:a,b 2:b:a,b' --hosts a -n 1 sh -c "$show" : --hosts b -n 2 sh -c "$show"
placed '0:b:b,a 1:a:b,a 2:b:b,a' --hosts b -n 1 sh -c "$show" : --hosts a,b -n 2 sh -c "$show"
placed '0:a:a,b 1:a:a,b 2:b:a,b' --hosts a -n 1 sh -c "$show" : -n 1 sh -c "$show" : --hosts b -n 1 sh -c "$show"
printf 'rank 0=b slot=0\nrank 1=a slot=0\n' >"$T/ranks"
placed '0:b:a,b 1:a:a,b' --hosts a,b -rf "$T/ranks" -n 1 sh -c "$show" : --hosts a -n 1 sh -c "$show"
want 2 "$MPIEXEC" -n 1 true : --hosts b -n 1 true
err_has 'the first one needs it, too'
err_lines 1
# A job of one host has no such variables, nor those of the job that it was started in.
want 0 env WEFT_JOB_HOSTS=x,y WEFT_JOB_HOST=x "$MPIEXEC" -n 1 sh -c 'env | grep -c WEFT_JOB_; true'
out_is '0
'
# they are there without the rest of the environment, too
placed '0:a:a,b 1:b:a,b' --hosts a,b -genvnone -n 2 sh -c "$show"

[ -x "$spawner" ] || done_testing
want 0 "$MPIEXEC" --hosts a,b -n 2 "$spawner" away
want 0 "$MPIEXEC" -n 1 "$spawner"
want 0 "$MPIEXEC" -n 1 "$spawner" added
want 0 "$spawner" added
done_testing
