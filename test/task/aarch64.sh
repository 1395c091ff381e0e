#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that the engine runs on AArch64: libweft-task and its tests, cross-compiled, run under
# qemu-user.  Memory orders are proved by the models alone: qemu runs on a stronger machine.
# Run with SOURCE set; in ./check --long.
set -u
for tool in aarch64-linux-gnu-gcc qemu-aarch64; do
	command -v $tool >/dev/null 2>&1 || {
		echo "skipped: no $tool (tools/setup long)" >&2
		exit 77
	}
done
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$SOURCE" || exit 1
# hwloc is not there for that machine: it finds nothing, and the engine takes its flat tree.
cat >"$work/hwloc.h" <<'END'
#include <stdio.h>
typedef struct hwloc_topology *hwloc_topology_t;
typedef struct hwloc_bitmap *hwloc_bitmap_t;
typedef struct hwloc_obj {
	int type;
	unsigned os_index, logical_index, arity;
	struct hwloc_obj *first_child, **children;
} *hwloc_obj_t;
enum {
	HWLOC_OBJ_CORE,
	HWLOC_TOPOLOGY_FLAG_NO_DISTANCES,
	HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS,
	HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS
};
#define hwloc_topology_init(t) (-1)
#define hwloc_topology_set_flags(t, f) (-1)
#define hwloc_topology_load(t) (-1)
#define hwloc_topology_restrict(t, b, f) (-1)
#define hwloc_topology_is_thissystem(t) 0
#define hwloc_topology_destroy(t) ((void)0)
#define hwloc_get_root_obj(t) NULL
#define hwloc_bitmap_alloc() NULL
#define hwloc_bitmap_set(b, i) ((void)0)
#define hwloc_bitmap_free(b) ((void)0)
#define hwloc_obj_type_snprintf(s, n, o, v) snprintf(s, n, "?")
END
compile() {
	aarch64-linux-gnu-gcc -w -O2 -std=gnu11 -D_GNU_SOURCE -DWEFT_VERSION=\"qemu\" -I"$work" -Isrc -Iinclude -Itest "$@" ||
		exit 1
}
for source in src/task/*.c src/topo/*.c src/wait/*.c src/base/*.c; do
	compile -c "$source" -o "$work/$(echo "$source" | tr / _).o"
done
bad=0
# Machines made up for hwloc are not tried; what a machine does is.
for source in test/task/test_*.c test/wait/test_*.c; do
	test=$(basename "$source" .c)
	case $test in
	test_model_* | test_idle_place | test_visits | test_quota) continue ;;
	esac
	compile -static "$source" "$work"/*.o -o "$work/$test" -lm -lpthread
	timeout 200 qemu-aarch64 "$work/$test" >"$work/said" 2>&1
	rc=$?
	rm "$work/$test"
	case $rc in
	0) echo "$test: passed" ;;
	77) echo "$test: $(tail -n 1 "$work/said")" ;;
	*)
		tail -n 5 "$work/said"
		echo "FAILED: $test under qemu-aarch64: exit code $rc" >&2
		bad=1
		;;
	esac
done
exit $bad
