# SPDX-License-Identifier: BSD-3-Clause
"""Files on a bad day: no memory, or none that may be locked, at a collective access, and a rank that is killed in one, or in open,
set_view or close, at any moment: no hang, an error on each survivor, and no file left but the program's.

usage: test_file.py [SEED [KILLS]]"""

import os
import random
import resource
import shutil
import sys

from lib import *

LONG = bool(os.environ.get("WEFT_LONG"))
SHIM = os.path.join(PROGRAMS, "libfault_shim.so")
WAYS = ("two_phase", "straight")

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 20261126
kills = int(sys.argv[2]) if len(sys.argv) > 2 else 1000 if LONG else 9
print("seed", seed, "kills", kills)
dice = random.Random(seed)
folder = os.path.join(scratch, "files")
os.mkdir(folder)
before = litter()

for way in WAYS:
    for fabric in FABRICS if LONG else FABRICS[:1]:
        result = run([MPIEXEC, "-n", "3", "env", "LD_PRELOAD=" + SHIM, program("file_nomem"), folder],
                     {"WEFT_FILE_STRATEGY": way, "WEFT_DRIVERS": fabric}, 120)
        expect("collective accesses without memory, %s over %s" % (way, fabric), result, 0)
        print(result.out, end="")
for name in os.listdir(folder):
    os.unlink(os.path.join(folder, name))

# Memory that may not be locked: rings of io_uring do without.
result = run([MPIEXEC, "-n", "2", os.path.join(BUILD, "test", "mpi", "mpi_file_random"), str(seed), "25", folder],
             prepare=lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0)))
expect("random accesses without locked memory", result, 0)


def killed(way, fabric, crowded, us, all_of_them, ranks, files):
    """One rank dies, the others go on; or all of them, since mpiexec ends what is left."""
    what = "one of %d ranks killed after %d us, %s over %s%s, crowded %s" % (
        ranks, us, way, fabric, ", in any call" if files else "", crowded)
    more = [] if all_of_them else ["-disable-auto-cleanup"]
    result = run([MPIEXEC, *more, "-n", str(ranks), program("file_victim"), str(us), folder] + ["files"] * files,
                 {"WEFT_FILE_STRATEGY": way, "WEFT_DRIVERS": fabric, "WEFT_CROWDED": crowded}, 60)
    if result.rc == "HANG":
        fail(what + ": hang", result.text())
    if not all_of_them and result.out.count("is fine") != ranks - 1:
        fail(what + ": not every survivor is fine", result.text())
    nobody_left(what)
    names = os.listdir(folder)
    if len(names) > 1 or any(not name.startswith("test-file-victim-") for name in names):
        fail(what + ": files are left: " + " ".join(names))
    for name in names:
        os.unlink(os.path.join(folder, name))


# More than 16 members tell each other by way of others.
for i in range(kills):
    killed(("two_phase", "straight", "auto")[i % 3], FABRICS[i // 2 % 2], "no" if i % 5 in (1, 2) else "auto",
           dice.randrange(100, 60000), i % 4 == 3, 18 if i % 7 == 4 else 4, i % 2)
print(kills, "kills done")
if left_behind(before):
    fail("left behind: " + " ".join(left_behind(before)))
shutil.rmtree(folder)
finish()
