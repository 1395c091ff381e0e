# SPDX-License-Identifier: BSD-3-Clause
"""Signals, children and descriptors of the application: it keeps its handlers, its children get nothing of ours."""

from lib import *

for fabric in FABRICS:
    drivers = {"WEFT_DRIVERS": fabric}
    for mode, rounds in (("signals", 150), ("children", 24), ("descriptors", 3)):
        what = "%s over %s" % (mode, fabric)
        result = run(ranks(2, "traffic", mode, rounds), drivers)
        expect(what, result, 0)
        if result.lines:
            fail(what + ": says something", result.text())
        nobody_left(what)
expect("three ranks with children", run(ranks(3, "traffic", "children", 12)), 0)
finish()
