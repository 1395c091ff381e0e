# SPDX-License-Identifier: BSD-3-Clause
"""Few descriptors, few threads, little memory: works with less and a warning, or says which limit it was."""

import os
import resource
import shutil
import signal

from lib import *

CRASHES = (139, 134, 135, 136, 153, "HANG")


def limited(what, n):
    def apply():
        resource.setrlimit(what, (n, n))
    return apply


def works_or_says(what, result, words, most):
    if result.rc in CRASHES:
        fail("%s: crash or hang" % what, result.text())
    elif result.rc != 0 and not 1 <= len(result.lines) <= most:
        fail("%s: %d lines" % (what, len(result.lines)), result.text())
    elif result.rc != 0 and not any(w in result.err for w in words):
        fail("%s: does not say which limit" % what, result.text())
    nobody_left(what)
    return result.rc == 0


DESCRIPTORS = ("descriptors", "open files", "ulimit -n", "Too many open files")
worked = {}
for fabric in FABRICS:
    for n in (6, 8, 12, 16, 20, 24, 32, 64):
        for ranks_n in (1, 2, 4):
            what = "%d descriptors, %d ranks, %s" % (n, ranks_n, fabric)
            limit = limited(resource.RLIMIT_NOFILE, n)
            result = run(ranks(ranks_n, "traffic", "plain", 3), {"WEFT_DRIVERS": fabric}, prepare=limit)
            # Each rank may say it, a second line tells of the consequence.
            worked[n, ranks_n] = works_or_says(what, result, DESCRIPTORS, 2 * ranks_n + 1)
    if not worked[64, 2]:
        fail("64 descriptors are too few for two ranks over " + fabric)

# Threads that cannot be made.  Root is not bound by the limit, so as another user.
if os.geteuid() == 0 and shutil.which("setpriv") and shutil.which("prlimit"):
    place = os.path.join(scratch, "tree")
    for part in ("bin", "lib", os.path.join("test", "fault")):
        shutil.copytree(os.path.join(BUILD, part), os.path.join(place, part), symlinks=True,
                        ignore=shutil.ignore_patterns("CMakeFiles", "*.cmake"))
    os.chmod(scratch, 0o755)
    uid = 64000 + os.getpid() % 1000
    for fabric in FABRICS:
        for n in (4, 5, 6, 7, 8, 10, 12, 40):
            command = ["setpriv", "--reuid=%d" % uid, "--regid=%d" % uid, "--clear-groups", "prlimit", "--nproc=%d" % n,
                       os.path.join(place, "bin", "mpiexec"), "-n", "2",
                       os.path.join(place, "test", "fault", "fault_traffic"), "plain", "3"]
            what = "%d processes and threads, %s" % (n, fabric)
            result = run(command, {"WEFT_DRIVERS": fabric})
            ok = works_or_says(what, result, ("thread", "process", "ulimit -u", "temporarily unavailable"), 5)
            if n == 40 and not ok:
                fail(what + ": does not work", result.text())
else:
    print("limits of threads not tested: not root, or no setpriv or prlimit")

for name, which, n in (("locked memory", resource.RLIMIT_MEMLOCK, 0), ("core", resource.RLIMIT_CORE, 0),
                       ("stack", resource.RLIMIT_STACK, 256 << 10)):
    expect("little " + name, run(ranks(2, "traffic", "plain", 3), prepare=limited(which, n)), 0)

# Files, which shared memory is made of: without them ranks of a host talk over tcp.
for drivers in ("self,shm,tcp", "self,shm"):
    for kib in (4, 64, 200, 340, 4000, 100000):
        for extra in ({}, {"WEFT_TRACE": os.path.join(scratch, "trace")}):
            what = "files of %d KiB, %s%s" % (kib, drivers, ", traced" if extra else "")
            result = run(ranks(2, "traffic", "plain", 3), {"WEFT_DRIVERS": drivers, **extra},
                         prepare=limited(resource.RLIMIT_FSIZE, kib << 10))
            ok = works_or_says(what, result, ("ulimit -f",), 7)
            if not ok and (drivers != "self,shm" or kib > 320):
                fail(what + ": does not work", result.text())

# mpiexec's own output is a file, too.
result = run(ranks(2, "traffic", "plain", 3), prepare=limited(resource.RLIMIT_FSIZE, 0))
if result.rc in CRASHES or result.rc == -signal.SIGXFSZ:
    fail("files of 0 KiB: crash or hang", result.text())

# Little address space: works, or says so.
for fabric in FABRICS:
    for mib in (24, 48, 96, 192, 384, 4096):
        what = "%d MiB of address space, %s" % (mib, fabric)
        result = run(ranks(2, "traffic", "plain", 3), {"WEFT_DRIVERS": fabric},
                     prepare=limited(resource.RLIMIT_AS, mib << 20))
        ok = works_or_says(what, result, ("emory", "shared object", "failed to map", "Resource", "thread"), 6)
        if mib == 4096 and not ok:
            fail(what + ": does not work", result.text())
finish()
