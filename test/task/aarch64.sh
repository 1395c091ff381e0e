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
# hwloc's headers are the same for every machine of 64 bits; its library is not there, and nothing asks for it.
folder=$(pkg-config --variable=includedir hwloc)
mkdir "$work/hwloc"
ln -s "$folder/hwloc.h" "$work"
ln -s "$folder"/hwloc/* "$work/hwloc"
# Debian keeps what configure has found out in this machine's own folder.
[ -e "$work/hwloc/autogen/config.h" ] || ln -sfn "$folder/$(cc -print-multiarch)/hwloc/autogen" "$work/hwloc/autogen"
compile() {
	aarch64-linux-gnu-gcc -w -O2 -std=gnu11 -D_GNU_SOURCE -DWEFT_VERSION=\"qemu\" -DWEFT_HWLOC_FOLDER=\"\" -I"$work" -Isrc -Iinclude -Itest "$@" ||
		exit 1
}
for source in $(find src/task src/topo src/wait src/base -name "*.c"); do
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
