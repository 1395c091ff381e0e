#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that shadow stacks (CET) are not broken: what switches stacks does not say that it could do
# under one, so neither does the library, and the loader leaves them off; and that a program built
# for them runs.  Indirect branches are marked as targets.  Run with BUILD and SOURCE set.
set -u
[ "$(uname -m)" = x86_64 ] || { echo "no shadow stacks on $(uname -m)"; exit 77; }
command -v readelf >/dev/null || { echo "no readelf"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
fail()
{
	echo "$*"
	exit 1
}
marks()
{
	LC_ALL=C readelf -n "$1" 2>/dev/null | grep 'x86 feature:'
}

lib=$BUILD/lib/libmpi_abi.so
marks "$lib" | grep -q SHSTK && fail "$lib claims to work under a shadow stack"

# Each object that switches or may be switched away from in its middle.
ar x "$BUILD/libweft_ult.a" || fail "no $BUILD/libweft_ult.a"
for o in *.o; do
	marks "$o" | grep -q SHSTK && fail "$o claims to work under a shadow stack"
	marks "$o" | grep -q IBT || fail "$o: its branch targets are not marked"
done

cat >user.c <<'EOF'
#include <weft/ult.h>
static void *twice(void *arg)
{
	weft_ult_yield();
	return (char *)arg + 1;
}
int main(void)
{
	void *got;
	weft_ult *t;
	return weft_ult_create(&t, 0, twice, 0) || weft_ult_join(t, &got) || got != (void *)1 ||
	       weft_ult_stop();
}
EOF
"$BUILD/bin/mpicc" -fcf-protection=full -Wl,-z,shstk user.c -o user || fail "does not compile"
marks user | grep -q SHSTK || fail "the program is not marked: the compiler knows no shadow stacks"
# glibc turns them on for programs when asked; a library without the mark must turn them off again.
GLIBC_TUNABLES=glibc.cpu.hwcaps=SHSTK:glibc.cpu.x86_shstk=permissive ./user ||
	fail "a program built for shadow stacks ends with $?"
