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
for what in 'poll_(explicit|watcher|timer|hook|server|idle)' 'late_(10us|100us|1ms|10ms|more)' '(watcher|idle)_wakeups' \
	budget_pauses mask_skips; do # each clause's, also where it is 0
	n=$(echo "$what" | tr '|' '\n' | grep -c .)
	[ "$(grep -Ec "^  $what +[0-9]+ +[0-9.]+\$" "$work/live")" = "$n" ] || fail "no $what in: $(cat "$work/live")"
done
echo >&9
wait $pid || fail "the program: $?"
refused() { # refused PID LINE: exit code 1 and that line alone
	"$BUILD/bin/weft" info --live $1 10 >"$work/live" 2>"$work/err"
	[ $? = 1 ] && [ "$(cat "$work/err")" = "weft: process $1 $2" ] && [ ! -s "$work/live" ] ||
		fail "process $1: $(cat "$work/err")"
}
refused $$ "does not use weft, or has not begun to"
refused $pid "is not there"
if [ "$(id -u)" != 0 ]; then
	[ ! -d /proc/1 ] || refused 1 "belongs to somebody else"
elif command -v setpriv >/dev/null; then
	chmod 755 "$work"
	setpriv --reuid=65534 --clear-groups "$BUILD/bin/weft" info --live $$ 10 2>"$work/err"
	case $? in
	1) grep -q "process $$ belongs to somebody else" "$work/err" || fail "as another user: $(cat "$work/err")" ;;
	126 | 127) ;; # a build that he may not read
	*) fail "as another user: no error" ;;
	esac
fi
"$BUILD/bin/weft" info --live 2>/dev/null
[ $? = 2 ] || fail "no process, no error"
"$BUILD/bin/weft" info --live x 2>/dev/null
[ $? = 2 ] || fail "not a number, no error"
exit 0
