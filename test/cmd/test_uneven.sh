#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that ranks which may use different cores choose the same algorithms: bound unevenly, with
# more and with fewer ranks than cores, collectives end and are right.  Run with BUILD set.
set -u
command -v taskset >/dev/null 2>&1 || {
	echo "skipped: no taskset" >&2
	exit 77
}
first=$(taskset -pc $$ | sed 's/.*: *\([0-9]*\).*/\1/')
prog=$BUILD/test/mpi/mpi_coll_basic
bad=0
for n in 1 3; do
	"$BUILD/bin/mpiexec" --timeout 60 -n 1 taskset -c "$first" "$prog" : -n $n "$prog" || {
		echo "FAILED: one rank bound to core $first, $n not" >&2
		bad=1
	}
done
exit $bad
