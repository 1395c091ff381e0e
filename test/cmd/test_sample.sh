#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# weft sample: what it writes is read at the next start, settings win over it, a spoilt file is one line.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
weft=$BUILD/bin/weft
unset WEFT_EAGER_SHM WEFT_EAGER_TCP WEFT_SHARE_COPY
WEFT_SAMPLE_FILE=$work/a/b/file
export WEFT_SAMPLE_FILE

"$weft" info --settings | grep -q '^  eager_shm  *8k  (guessed)' || fail "no guess without a file"
"$weft" sample --quick >"$work/out" || fail "sample --quick: $(cat "$work/out")"
[ "$(ls "$work/a/b")" = file ] || fail "more than the file: $(ls "$work/a/b")"
for name in eager_shm eager_tcp; do
	bytes=$(sed -n "s/^$name //p" "$WEFT_SAMPLE_FILE")
	[ "$bytes" -ge 512 ] || fail "$name: '$bytes'"
	"$weft" info --settings | grep -q "^  $name  *$bytes  (from the file)" || fail "$name is not used"
done
WEFT_EAGER_SHM=3k "$weft" info --settings | grep -q '^  eager_shm  *3k  (set)' || fail "a setting does not win"

echo rubbish >>"$WEFT_SAMPLE_FILE"
"$weft" info >"$work/out" 2>"$work/err" || fail "info with a spoilt file: $?"
[ "$(wc -l <"$work/err")" = 1 ] || fail "not one line: $(cat "$work/err")"
grep -q "$WEFT_SAMPLE_FILE: line [0-9]*: no switch point" "$work/err" || fail "$(cat "$work/err")"
grep -q '^  eager_shm  *8k  (guessed)' "$work/out" || fail "the guess does not stand"

# Two hosts: the launcher that reaches them is made here, and its hosts differ in their names alone.  It is
# called srun, which mpiexec prefers in an allocation to any that may be installed.
if unshare -u true 2>/dev/null; then as=-u; elif unshare -Uru true 2>/dev/null; then as=-Uru; else as=; fi
if [ "$as" ]; then
	mkdir "$work/bin"
	cat >"$work/bin/srun" <<-END
		#!/bin/sh
		[ "\$1 \$2 \$3" = "--mpi=pmi2 --nodelist=a,b --ntasks-per-node=1" ] || exit 1
		while [ "\$1" != "$weft" ]; do shift; done
		exec "$BUILD/bin/mpiexec" -n 2 unshare $as sh -c 'hostname host\$PMI_RANK && exec "\$@"' - "\$@"
	END
	chmod +x "$work/bin/srun"
	PATH=$work/bin:$PATH SLURM_JOB_ID=1
	export SLURM_JOB_ID
	# Both write to one file here: one after the other.
	printf 'weft-sample 1\neager_shm 4096\n' >"$WEFT_SAMPLE_FILE"
	"$weft" sample --quick --hosts a,b >"$work/out" 2>&1 || fail "sample --hosts: $(cat "$work/out")"
	bytes=$(sed -n 's/^host host1 eager_tcp //p' "$WEFT_SAMPLE_FILE")
	grep -qx "host host0 eager_tcp ${bytes:-none}" "$WEFT_SAMPLE_FILE" && grep -qx 'eager_shm 4096' "$WEFT_SAMPLE_FILE" ||
		fail "not of both hosts: $(cat "$WEFT_SAMPLE_FILE")"
	printf 'weft-sample 2\nhost host1 eager_tcp 50000\n' >"$WEFT_SAMPLE_FILE"
	WEFT_DRIVERS=self,tcp "$BUILD/bin/mpiexec" -hosts a,b -ppn 1 -n 2 "$weft" info >"$work/out" 2>&1
	grep -q 'rank 1: eager to 50000 bytes' "$work/out" || fail "not used: $(cat "$work/out")"
	grep -q 'rank 0: eager to' "$work/out" && fail "used for another: $(cat "$work/out")"
	unset SLURM_JOB_ID
fi

"$weft" sample --hosts a 2>"$work/err"
[ $? = 2 ] || fail "one host is enough"
"$weft" sample --foo 2>"$work/err"
[ $? = 2 ] || fail "no error for --foo"
WEFT_SAMPLE_FILE=none "$weft" sample --quick 2>"$work/err"
[ $? = 1 ] || fail "no error without a file"
WEFT_SAMPLE_FILE=/dev/null/x "$weft" info --settings >/dev/null 2>"$work/err" || fail "a place that is none"
exit 0
