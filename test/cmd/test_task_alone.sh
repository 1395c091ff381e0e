#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# libweft-task alone: it needs no MPI, programs are linked with it as people do (only as needed,
# another compiler, C++), and one that loads it by itself may unload it and load it again, and have
# a second copy with an engine of its own.
set -u
lib=$BUILD/lib/libweft-task.so.0
[ -e "$lib" ] || { echo "skipped: no libweft-task" >&2; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
fail() { echo "$*" >&2; exit 1; }

ldd "$lib" >"$work/needs" || fail "ldd"
grep -Ei 'mpi|sodium|fabric' "$work/needs" && fail "libweft-task needs what only messages need"
nm -D --undefined-only "$lib" | grep -E ' P?MPI_| weft_' && fail "libweft-task lacks something of weft"

user=$SOURCE/test/install/task/user.c
for compiler in "gcc -O2" "clang -O3" "g++ -x c++ -std=c++11 -O1"; do
	command -v "${compiler%% *}" >/dev/null || continue
	$compiler -w -I"$SOURCE/include" "$user" -x none -Wl,--as-needed -L"$BUILD/lib" -lweft-task -Wl,-rpath,"$BUILD/lib" \
		-o "$work/user" && [ "$("$work/user")" = 328350 ] || fail "$compiler"
done

cat >"$work/load.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <weft/task.h>
static enum weft_task_verdict count(struct weft_task *t, void *arg)
{
	++*(int *)arg;
	return WEFT_TASK_DONE;
}
struct lib {
	void *dl;
	weft_err (*start)(void), (*wait)(struct weft_task *t);
	void (*stop)(void), (*launch)(struct weft_task *, const char *, weft_task_fn *, void *);
};
static int begin(struct lib *l, void *dl)
{
	if (!dl)
		return puts(dlerror());
	l->dl = dl;
	*(void **)&l->start = dlsym(dl, "weft_engine_start");
	*(void **)&l->stop = dlsym(dl, "weft_engine_stop");
	*(void **)&l->launch = dlsym(dl, "weft_task_launch");
	*(void **)&l->wait = dlsym(dl, "weft_task_wait");
	return l->start();
}
static int use(struct lib *l)
{
	struct weft_task t;
	int n = 0;
	l->launch(&t, "count", count, &n);
	return l->wait(&t) || n != 1;
}
int main(int argc, char **argv)
{
	struct lib a, b;
	for (int i = 0; i < 10; i++) { /* the fifth time its threads still run when it is unloaded */
		if (begin(&a, dlopen(argv[1], RTLD_NOW | RTLD_LOCAL)) || use(&a))
			return 1;
		if (i != 5)
			a.stop();
		dlclose(a.dl);
	}
	if (begin(&a, dlopen(argv[1], RTLD_NOW)) || begin(&b, dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW)))
		return 2;
	if (a.start == b.start || use(&a) || use(&b))
		return 3;
	b.stop();
	if (use(&a))
		return 4;
	a.stop();
	return 0;
}
END
gcc -w -I"$SOURCE/include" "$work/load.c" -o "$work/load" -ldl || fail "gcc"
"$work/load" "$lib" || fail "loaded at run time: $?"
exit 0
