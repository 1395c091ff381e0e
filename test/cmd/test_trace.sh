#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that a trace is written, is consistent, outlives its process, and that `weft trace` answers bad
# files and bad words with one line.  Run with BUILD and SOURCE set.
set -u
command -v python3 >/dev/null 2>&1 || { echo "skipped: no python3"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
exec python3 "$SOURCE/test/cmd/trace_check.py" "$BUILD" "$work"
