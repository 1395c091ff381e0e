# SPDX-License-Identifier: BSD-3-Clause
# The examples of examples/engine do what they say, with background progress and without.
set -u
bin=$BUILD/examples/engine
[ -x "$bin/device" ] || exit 77
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
fail() { echo "$*" >&2; exit 1; }

for WEFT_PROGRESS in on off; do
	export WEFT_PROGRESS
	"$bin/device" | grep -q '^1000 operations' || fail "device, progress $WEFT_PROGRESS"

	head -c 3000001 /dev/urandom >"$work/a"
	"$bin/copy" "$work/a" "$work/b" >"$work/out" 2>"$work/err" || fail "copy: $(cat "$work/err")"
	cmp "$work/a" "$work/b" || fail "copy copies wrongly"
	grep -q '100 %' "$work/err" || fail "no progress bar"
	: >"$work/a"
	"$bin/copy" "$work/a" "$work/b" >/dev/null 2>&1 && cmp "$work/a" "$work/b" || fail "copy: empty file"

	"$bin/loop" >"$work/out" || fail "loop"
	[ "$(grep -c '^timer' "$work/out")" = 10 ] && grep -q 'the pipe spoke' "$work/out" ||
		fail "loop: $(cat "$work/out")"

	python3 -B "$SOURCE/examples/engine/loop.py" "$BUILD/lib/libweft-task.so.0" >"$work/out" ||
		fail "loop.py"
	[ "$(grep -c '^timer' "$work/out")" = 10 ] || fail "loop.py: $(cat "$work/out")"

	printf 'hello\nhow are you\n' | "$bin/chat" "$work/s" >"$work/1" &
	first=$!
	until [ -S "$work/s" ]; do kill -0 $first || fail "chat did not listen"; done
	printf 'well\n' | "$bin/chat" "$work/s" >"$work/2" || fail "chat, second"
	wait $first || fail "chat, first"
	grep -q '^> well' "$work/1" && grep -q 'how are you' "$work/2" || fail "chat: not heard"
done
"$bin/copy" /nonexistent "$work/b" 2>/dev/null && fail "copy of nothing"
exit 0
