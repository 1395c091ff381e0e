# SPDX-License-Identifier: BSD-3-Clause
"""A rank that waits for a message uses hardly any of a core, over shm and tcp, with background progress and without."""

from lib import *

for fabric in FABRICS:
    for progress in ("on", "off"):
        result = run(ranks(2, "idle"), {"WEFT_DRIVERS": fabric, "WEFT_PROGRESS": progress})
        if expect("idle over %s, progress %s" % (fabric, progress), result, 0):
            print(fabric, "progress", progress, [x for x in result.out.splitlines() if x.startswith("rank 1")])
result = run(ranks(8, "idle"), None)
expect("eight idle ranks", result, 0)
finish()
