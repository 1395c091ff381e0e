# SPDX-License-Identifier: BSD-3-Clause
# lib.sh - what the scripts of this folder share.  Arguments: mpiexec, boot_probe.
set -u
MPIEXEC=$1 PROBE=$2
export LC_ALL=C
unset PMI_FD PMI_RANK PMI_SIZE PMI_PORT PMIX_NAMESPACE PMIX_RANK WEFT_BOOT_FD WEFT_LOG 2>/dev/null
T=$(mktemp -d) || exit 1
JOB_MARK=mark-$$-$(basename "$T")
export JOB_MARK
FAILED=0

# Processes, ours excepted, that carry this script's mark in their environment.
job_pids() {
	for f in $(grep -lzx "JOB_MARK=$JOB_MARK.ranks" /proc/[0-9]*/environ 2>/dev/null); do
		pid=${f#/proc/} pid=${pid%/environ}
		# Zombies hold nothing; some container's first process may never reap them.
		grep -q '^State:[[:space:]]*[^Z[:space:]]' "/proc/$pid/status" 2>/dev/null && echo "$pid"
	done
}

clean_up() {
	left=$(job_pids)
	[ -n "$left" ] && kill -9 $left 2>/dev/null
	rm -rf "$T"
}
trap clean_up EXIT
trap 'exit 1' INT TERM

skip() {
	echo "skipped: $*" >&2
	exit 77
}

fail() {
	echo "FAILED: $*" >&2
	FAILED=1
}

# want RC command...: runs it with stdout and stderr in $T/out and $T/err.
want() {
	want_rc=$1
	shift
	JOB_MARK=$JOB_MARK.ranks "$@" >"$T/out" 2>"$T/err" </dev/null
	got_rc=$?
	if [ $got_rc != "$want_rc" ]; then
		fail "exit code $got_rc instead of $want_rc: $*"
		sed 's/^/    /' "$T/out" "$T/err" | head -20 >&2
	fi
}

out_is() { # TEXT: stdout is exactly this
	printf '%s' "$1" >"$T/wanted"
	cmp -s "$T/wanted" "$T/out" || { fail "stdout is not as wanted:"; head -c 2000 "$T/out" >&2; }
}

err_has() { # REGEX
	grep -q -e "$1" "$T/err" || { fail "stderr lacks '$1':"; head -20 "$T/err" >&2; }
}

err_lines() { # N
	[ "$(wc -l <"$T/err")" = "$1" ] || { fail "stderr has not $1 lines:"; head -20 "$T/err" >&2; }
}

# until_true SECONDS command...: polls until it succeeds.
until_true() {
	tries=$(($1 * 50))
	shift
	while ! "$@"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		sleep 0.02
	done
}

nobody_left() { [ -z "$(job_pids)" ]; }

all_gone() { # SECONDS WHAT
	until_true "$1" nobody_left || {
		fail "$2: processes are left:"
		for p in $(job_pids); do tr '\0' ' ' <"/proc/$p/cmdline" >&2; echo >&2; done
	}
}

done_testing() {
	all_gone 100 "at the end"
	exit $FAILED
}
