# SPDX-License-Identifier: BSD-3-Clause
# The programs of doc/engine.md compile as they are printed, and do what the page says.
set -u
lib=$BUILD/lib/libweft-task.so
[ -e "$lib" ] || { echo "skipped: no libweft-task" >&2; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
fail() { echo "$*" >&2; exit 1; }

# Whole programs only: pieces that show a call stay pieces.
awk -v out="$work" '
	/^```c$/ { on = 1; text = ""; main = 0; next }
	/^```$/ { if (on && main) printf "%s", text > (out "/" ++n ".c"); on = 0 }
	on { text = text $0 "\n"; if (/^int main\(/) main = 1 }' "$SOURCE/doc/engine.md"

# The device that the page takes for granted: ready at the third look.
cat >"$work/device.h" <<'END'
#include <stdint.h>
static int looks;
static inline void *device_open(void) { return &looks; }
static inline int device_start(void *d) { (void)d; return 5; }
static inline uint64_t device_status(void *d) { return ++*(int *)d >= 3 ? 1u << 5 : 0; }
static inline int64_t device_result(void *d, int slot) { (void)d; return slot * 8 + 2; }
static inline void compute(void) { }
END
want() { # want N OUTPUT: program N compiles without a word, and prints that
	[ -f "$work/$1.c" ] || fail "doc/engine.md: no program $1"
	${CC:-cc} -std=gnu11 -Wall -Wextra -Wno-unused-parameter -Werror -I"$work" -I"$SOURCE/include" "$work/$1.c" \
		-o "$work/$1" "$lib" -Wl,-rpath,"$BUILD/lib" -pthread >"$work/said" 2>&1 ||
		fail "program $1: $(cat "$work/said")"
	for WEFT_PROGRESS in on off; do
		export WEFT_PROGRESS
		got=$("$work/$1") || fail "program $1: exit code $?"
		[ "$got" = "$2" ] || fail "program $1 prints '$got', want '$2'"
	done
}
want 1 49
want 2 42
[ "$(wc -l <"$work/2.c")" -le 40 ] || fail "a working poller takes more than 40 lines"
exit 0
