# SPDX-License-Identifier: BSD-3-Clause
# weft info --live: shows what a running process counts, and refuses what is none.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
fail() { echo "$*" >&2; exit 1; }

cat >"$work/t.c" <<'END'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	char line[16];
	MPI_Init(&argc, &argv);
	MPI_Barrier(MPI_COMM_WORLD);
	puts("ready");
	fflush(stdout);
	(void)!fgets(line, sizeof line, stdin);
	return MPI_Finalize();
}
END
"$BUILD/bin/mpicc" "$work/t.c" -o "$work/t" || fail "mpicc"
mkfifo "$work/in"
"$work/t" <"$work/in" >"$work/out" &
pid=$!
exec 9>"$work/in"
until grep -q ready "$work/out"; do
	kill -0 $pid 2>/dev/null || fail "the program ended early"
done
"$BUILD/bin/weft" info --live $pid 100 >"$work/live" || fail "info --live: $?"
grep -q 'weft-watcher' "$work/live" || fail "no watcher in: $(cat "$work/live")"
grep -Eq '^  watcher_wakeups +[0-9]+' "$work/live" || fail "no counters in: $(cat "$work/live")"
echo >&9
wait $pid || fail "the program: $?"
"$BUILD/bin/weft" info --live $$ 10 2>/dev/null && fail "a shell has no counters"
"$BUILD/bin/weft" info --live 2>/dev/null
[ $? = 2 ] || fail "no process, no error"
"$BUILD/bin/weft" info --live x 2>/dev/null
[ $? = 2 ] || fail "not a number, no error"
exit 0
