# SPDX-License-Identifier: BSD-3-Clause
"""The system refuses: an allocation at a time, sockets that take and give little: right results, or one clear line."""

import os
import random
import sys

from lib import *

LONG = bool(os.environ.get("WEFT_LONG"))
SHIM = os.path.join(PROGRAMS, "libfault_shim.so")
CRASHES = (139, 134, 135, 136, "HANG")

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 20261121
print("seed", seed)
dice = random.Random(seed)


def shimmed(extra, *args, n=2):
    preload = ["env", "LD_PRELOAD=" + SHIM] + ["%s=%s" % x for x in extra.items()]
    return [MPIEXEC, "-n", str(n)] + preload + [program("traffic")] + [str(a) for a in args]


wanted = run(ranks(2, "traffic", "plain", 10))
expect("plain", wanted, 0)
for fabric in FABRICS:
    for i in range(20 if LONG else 2):
        net = dice.randrange(1 << 30)
        result = run(shimmed({"FAULT_NET": net}, "plain", 10), {"WEFT_DRIVERS": fabric}, 120)
        if expect("sockets that fail, seed %d, %s" % (net, fabric), result, 0) and result.out != wanted.out:
            fail("sockets that fail, seed %d, %s: wrong data" % (net, fabric), result.text())

# Every call that makes something, every allocation in it: an error class, and then it works.
for fabric in FABRICS:
    swept = run([MPIEXEC, "-n", "2", "env", "LD_PRELOAD=" + SHIM, program("alloc")], {"WEFT_DRIVERS": fabric})
    expect("calls without memory over " + fabric, swept, 0)
    print(swept.out, end="")

for fabric in FABRICS:
    count = os.path.join(scratch, "count")
    drivers = {"WEFT_DRIVERS": fabric}
    expect("counting", run(shimmed({"FAULT_COUNT": count, "FAULT_RANK": 1}, "plain", 3), drivers), 0)
    with open(count) as f:
        total = int(f.read())
    print("%s: %d allocations in a rank" % (fabric, total))
    points = range(1, total + 1) if LONG else sorted(dice.sample(range(1, total + 1), min(total, 12)))
    for k in points:
        what = "allocation %d of %d fails, %s" % (k, total, fabric)
        result = run(shimmed({"FAULT_ALLOC": k, "FAULT_RANK": 1}, "plain", 3), drivers, 60)
        if result.rc in CRASHES:
            fail(what + ": crash or hang", result.text())
        elif result.rc != 0 and not 1 <= len(result.lines) <= 6:
            fail("%s: %d lines" % (what, len(result.lines)), result.text())
        nobody_left(what)
finish()
