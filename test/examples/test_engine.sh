# SPDX-License-Identifier: BSD-3-Clause
# The examples of examples/engine do what they say, with background progress and without.
set -u
bin=$BUILD/examples/engine
[ -x "$bin/device" ] || exit 77
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
fail() { echo "$*" >&2; exit 1; }
listens() { # listens PID: until clients can connect
	until grep -q " 00010000 .* $work/s\$" /proc/net/unix; do kill -0 $1 || fail "chat did not listen"; done
}

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
	listens $first
	printf 'well\n' | "$bin/chat" "$work/s" >"$work/2" || fail "chat, second"
	wait $first || fail "chat, first"
	grep -q '^> well' "$work/1" && grep -q 'how are you' "$work/2" || fail "chat: not heard"
done
# Bad input: one line that names it, exit code 1, nothing lost.
refused() { # refused LINE COMMAND...
	want=$1
	shift
	"$@" >"$work/out" 2>"$work/err" && fail "$*: no error"
	[ "$(grep -c . "$work/err")" = 1 ] && grep -q "$want" "$work/err" || fail "$*: $(cat "$work/err")"
}
echo precious >"$work/a"
refused 'No such file' "$bin/copy" /nonexistent "$work/b"
refused 'not a regular file' "$bin/copy" "$work" "$work/b"
refused 'the same file' "$bin/copy" "$work/a" "$work/a"
grep -q precious "$work/a" || fail "copy empties what it reads"
refused 'No such file' "$bin/copy" "$work/a" "$work/none/b"
if [ -c /dev/full ]; then
	"$bin/copy" "$work/a" /dev/full >"$work/out" 2>"$work/err" && fail "copy to a full disk"
	grep -q '^copy: No space left' "$work/err" || fail "copy to a full disk: $(cat "$work/err")"
fi
refused 'in use' "$bin/chat" "$work/a"
refused 'too long' "$bin/chat" "$work/$(printf '%0200d' 1)"
refused 'usage' python3 -B "$SOURCE/examples/engine/loop.py"
refused '/nonexistent' python3 -B "$SOURCE/examples/engine/loop.py" /nonexistent

# Without io_uring threads do it; what an interrupted chat left behind is no obstacle.
without=$BUILD/test/fault/fault_seccomp
if [ -x "$without" ] && "$without" enosys io_uring_setup true; then
	"$without" enosys io_uring_setup "$bin/copy" "$work/a" "$work/b" 2>/dev/null | grep -q 'through threads' ||
		fail "copy without io_uring"
	cmp "$work/a" "$work/b" || fail "copy without io_uring copies wrongly"
fi
for how in TERM KILL; do
	"$bin/chat" "$work/s" <"$work/a" >"$work/1" &
	first=$!
	listens $first
	kill -$how $first
	wait $first
done
printf 'hello\n' | "$bin/chat" "$work/s" >"$work/1" &
first=$!
listens $first
printf 'again\n' | "$bin/chat" "$work/s" >"$work/2" || fail "chat after ^C, second"
wait $first || fail "chat after ^C, first"
grep -q '^> again' "$work/1" || fail "chat after ^C: not heard"
exit 0
