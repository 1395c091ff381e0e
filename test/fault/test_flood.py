# SPDX-License-Identifier: BSD-3-Clause
"""More than a receiver takes: nothing is lost, nothing hangs, and what lies unreceived stays within the credit."""

import os

from lib import *

LONG = bool(os.environ.get("WEFT_LONG"))

for fabric in FABRICS:
    drivers = {"WEFT_DRIVERS": fabric}
    expect("reverse order over " + fabric, run(ranks(2, "flood", "reverse", 1000000 if LONG else 20000), drivers, 600), 0)
    few = dict(drivers, WEFT_EAGER_CREDIT="1m")
    expect("deaf receiver over " + fabric, run(ranks(2, "flood", "deaf", 100000 if LONG else 10000, 4096), few, 600), 0)
    # Next to no credit, and none.
    for credit in ("300", "0"):
        expect("credit %s over %s" % (credit, fabric),
               run(ranks(3, "flood", "all", 200, 20), dict(drivers, WEFT_EAGER_CREDIT=credit), 120), 0)

# More ranks than cores by far, everything eager, everything posted before anything is received.
expect("64 ranks", run(ranks(64, "flood", "all", 1024, 20 if LONG else 4), {"WEFT_DRIVERS": "self,shm"}, 600), 0)
finish()
