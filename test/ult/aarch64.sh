#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that the AArch64 assembly switches, and that user-level threads run with it: cross-compiled,
# run under qemu-user.  It proves the assembly; memory orders are proved by the models alone.
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
# The order of stealing needs hwloc, which is not there for that machine: a ring instead.
cat >"$work/near.c" <<'END'
#include "ult/ult_int.h"
void weft_ult_near(const int *cpu, int n, int id, uint16_t *order)
{
	for (int d = 1; d < n; d++)
		order[d - 1] = (uint16_t)((id + d) % n);
}
END
sources=$(ls src/ult/*.c src/ult/*/*.c | grep -v /near.c)
for test in test_ctx test_thread test_sync test_deep; do
	aarch64-linux-gnu-gcc -static -O2 -std=gnu11 -D_GNU_SOURCE -DWEFT_VERSION=\"qemu\" -Isrc -Iinclude -Itest \
		test/ult/$test.c $sources "$work/near.c" src/wait/*.c src/base/*.c -o "$work/$test" -lm -lpthread || exit 1
	[ $test = test_deep ] && short=1 || short= # no overflows: qemu handles no fault on a full stack
	timeout 200 qemu-aarch64 "$work/$test" $short || {
		echo "FAILED: $test under qemu-aarch64: exit code $?" >&2
		exit 1
	}
done
