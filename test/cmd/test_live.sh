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
# User-level threads: one holds a mutex and waits for another, one for the mutex, the others for unpark.
cat >"$work/u.c" <<'END'
#include <stdio.h>
#include <weft/ult.h>
static weft_ult_mutex mutex = WEFT_ULT_MUTEX_INIT;
static weft_ult_sem held = WEFT_ULT_SEM_INIT(0);
static weft_ult *t[102];
static void *parks(void *arg) { weft_ult_park(); return arg; }
static void *holds(void *arg)
{
	weft_ult_mutex_lock(&mutex);
	weft_ult_sem_post(&held);
	weft_ult_join(t[0], NULL);
	weft_ult_mutex_unlock(&mutex);
	return arg;
}
static void *wants(void *arg)
{
	weft_ult_mutex_lock(&mutex);
	weft_ult_mutex_unlock(&mutex);
	return arg;
}
int main(void)
{
	struct weft_ult_attr a = WEFT_ULT_ATTR_INIT;
	char line[16];
	a.worker = 0;
	a.name = "first";
	weft_ult_create(&t[0], &a, parks, NULL);
	a.name = "kant";
	weft_ult_create(&t[1], &a, holds, NULL);
	weft_ult_sem_wait(&held); /* who is signalled later may run first */
	a.name = "plato";
	weft_ult_create(&t[2], &a, wants, NULL);
	a.name = NULL;
	for (int i = 3; i < 102; i++)
		weft_ult_create(&t[i], &a, parks, NULL);
	puts("ready");
	fflush(stdout);
	(void)!fgets(line, sizeof line, stdin);
	for (int i = 0; i < 102; i++)
		if (i < 1 || i > 2)
			weft_ult_unpark(t[i]);
	for (int i = 1; i < 102; i++)
		weft_ult_join(t[i], NULL);
	return weft_ult_stop() != 0;
}
END
"$BUILD/bin/mpicc" "$work/u.c" -o "$work/u" || fail "mpicc"
"$work/u" <"$work/in" >"$work/out" &
pid=$!
exec 9>"$work/in"
until grep -q ready "$work/out"; do
	kill -0 $pid 2>/dev/null || fail "the program ended early"
done
until "$BUILD/bin/weft" info --live $pid 10 --threads 3 >"$work/live" && grep -q '102 wait$' "$work/live"; do
	kill -0 $pid 2>/dev/null || fail "the program ended early: $(cat "$work/live")"
	grep -q 'not to be read: Operation not permitted' "$work/live" && break # ptrace_scope
done
if ! grep -q 'not to be read' "$work/live"; then
	for line in '102 on [0-9]* workers: 0 run, 0 are ready, 102 wait' ' 100 wait for weft_ult_unpark' ' 1 wait for mutex' \
		' 1 wait for the end of thread' 'thread 0.0 first: waits for weft_ult_unpark' \
		'thread 0.1 kant: waits for the end of thread, which is 0.0 first' \
		'thread 0.2 plato: waits for mutex, held by 0.1 kant' 'and 99 more'; do
		grep -q "$line\$" "$work/live" || fail "no '$line' in: $(cat "$work/live")"
	done
	[ "$(grep -c 'thread 0' "$work/live")" = 3 ] || fail "more than three: $(cat "$work/live")"
fi
echo >&9
wait $pid || fail "the program with user-level threads: $?"
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
	1) grep -q "process $$ belongs to another user" "$work/err" || fail "as another user: $(cat "$work/err")" ;;
	126 | 127) ;; # a build that this user may not read
	*) fail "as another user: no error" ;;
	esac
fi
"$BUILD/bin/weft" info --live 2>/dev/null
[ $? = 2 ] || fail "no process, no error"
"$BUILD/bin/weft" info --live x 2>/dev/null
[ $? = 2 ] || fail "not a number, no error"
exit 0
