# SPDX-License-Identifier: BSD-3-Clause
"""pairs.py - two things measured in turn, pair by pair, and a sign test; for paired and compare-builds."""
import math
import statistics


def rows_of(text):
    """{"CASE, METRIC, UNIT": value} of the lines "CASE,METRIC,UNIT,VALUE" that a bench program prints."""
    found = {}
    for line in text.splitlines():
        part = line.rsplit(",", 3)
        if len(part) == 4:
            found[", ".join(part[:3])] = float(part[3])
    return found


def interleaved(pairs, first, second, seen):
    """Appends (rows of first, rows of second) to seen, pair by pair; the order within a pair alternates."""
    for i in range(pairs):
        if i % 2 == 0:
            one = first()
            seen.append((one, second()))
        else:
            other = second()
            seen.append((first(), other))


def chance_of(larger, n):
    """How likely that many of n, or more, on either side are by chance."""
    tail = max(larger, n - larger)
    return min(1.0, 2 * sum(math.comb(n, k) for k in range(tail, n + 1)) / 2**n)


class Compared:
    """One row: medians of both, quartiles of second / first, and the sign test."""

    def __init__(self, case, both):
        ratios = [b / a for a, b in both]
        differ = [r for r in ratios if r != 1]
        self.case = case
        self.first, self.second = (statistics.median(side) for side in zip(*both))
        self.low, self.ratio, self.high = statistics.quantiles(ratios, n=4)
        self.larger, self.differ = sum(r > 1 for r in differ), len(differ)
        self.chance = chance_of(self.larger, self.differ)


def compared(seen):
    """A Compared for each row that at least four pairs have."""
    found = []
    for case in seen[0][0] if seen else []:
        both = [(a[case], b[case]) for a, b in seen if a.get(case, 0) > 0 and case in b]
        if len(both) >= 4:
            found.append(Compared(case, both))
    return found
