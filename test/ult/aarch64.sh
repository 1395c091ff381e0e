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
for test in test_ctx test_thread test_sync; do
	aarch64-linux-gnu-gcc -static -O2 -std=gnu11 -D_GNU_SOURCE -DWEFT_VERSION=\"qemu\" -Isrc -Iinclude -Itest \
		test/ult/$test.c src/ult/*.c src/wait/*.c src/base/*.c -o "$work/$test" -lm -lpthread || exit 1
	timeout 200 qemu-aarch64 "$work/$test" || {
		echo "FAILED: $test under qemu-aarch64: exit code $?" >&2
		exit 1
	}
done
