#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that gdb sees user-level threads: names, states and backtraces, in a live process and in a
# core file; and that valgrind, which knows their stacks, has nothing to say.
# Run with BUILD and SOURCE set.
set -u
command -v gdb >/dev/null 2>&1 || {
	echo "skipped: no gdb" >&2
	exit 77
}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
cat >"$work/three.c" <<'END_C'
#include <stddef.h>
#include <weft/ult.h>

static weft_ult_sem sem;
static int begun; /* all on one worker: who is not running is parked */

__attribute__((noinline)) static void waits_deep_down(int n)
{
	if (n > 0)
		waits_deep_down(n - 1);
	else
		weft_ult_sem_wait(&sem);
	__asm__ volatile("" ::: "memory"); /* no tail call */
}

static void *sleeper(void *arg)
{
	begun++;
	waits_deep_down(3);
	return arg;
}

__attribute__((noinline)) static void now(void)
{
	__asm__ volatile("");
}

static void *parks(void *arg)
{
	begun++;
	weft_ult_park();
	return arg;
}

static weft_ult *t[4];

static void *last(void *arg)
{
	while (begun < 3)
		weft_ult_yield();
	now();
	weft_ult_unpark(t[2]);
	weft_ult_sem_post(&sem);
	weft_ult_sem_post(&sem);
	return arg;
}

int main(void)
{
	static void *(*const runs[])(void *) = { sleeper, sleeper, parks, last };
	static const char *const names[] = { "sleeper", "sleeper", "parker", "last" };
	struct weft_ult_attr a = WEFT_ULT_ATTR_INIT;
	if (weft_ult_start(1) != WEFT_OK)
		return 1;
	for (int i = 0; i < 4; i++) {
		a.name = names[i];
		if (weft_ult_create(&t[i], &a, runs[i], NULL) != WEFT_OK)
			return 1;
	}
	for (int i = 0; i < 4; i++)
		weft_ult_join(t[i], NULL);
	return weft_ult_stop() == WEFT_OK ? 0 : 1;
}
END_C
"$BUILD/bin/mpicc" -g -O1 "$work/three.c" -o "$work/three" || fail "mpicc"
script=$BUILD/share/weft/weft-gdb.py
look() {
	[ "$(grep -c '^0\.[0-9]* sleeper waits for' "$work/out")" = 2 ] &&
		grep -q '^0\.[0-9]* last runs on worker 0' "$work/out" &&
		grep -q '^0\.[0-9]* parker waits' "$work/out" &&
		grep -q '^4 user-level threads' "$work/out" &&
		[ "$(grep -c ' waits_deep_down ' "$work/out")" = 8 ] &&
		[ "$(grep -c ' sleeper ' "$work/out")" = 4 ] && return
	fail "gdb, $1: $(cat "$work/out")"
}
gdb -q -nx -batch -x "$script" -ex 'break now' -ex run -ex 'weft-ults bt' -ex kill "$work/three" >"$work/out" 2>&1
look "live"
# The core is gdb's own: the system's may be switched off.  It cannot read across light guards.
WEFT_ULT_GUARDS=100 gdb -q -nx -batch -ex 'break now' -ex run -ex "gcore $work/core" -ex kill "$work/three" >"$work/out" 2>&1
if [ -f "$work/core" ]; then
	gdb -q -nx -batch -x "$script" -ex 'weft-ults bt' "$work/three" "$work/core" >"$work/out" 2>&1
	look "core file"
fi
command -v valgrind >/dev/null 2>&1 || exit 0
valgrind -q --error-exitcode=9 --fair-sched=yes "$work/three" >"$work/out" 2>&1 || fail "valgrind: exit code $?: $(cat "$work/out")"
[ ! -s "$work/out" ] || fail "valgrind says: $(cat "$work/out")"
