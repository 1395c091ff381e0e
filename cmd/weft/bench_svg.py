# SPDX-License-Identifier: BSD-3-Clause
"""Charts as SVG: a curve or a group of bars per implementation, with the spread."""

import html
import math
import re
import textwrap

COLOURS = ("#0a6ebd", "#d1495b", "#edae49", "#66a182", "#7a5195", "#56b4e9", "#8d6a4f", "#4c566a", "#c77cba", "#9aa800")
DASHES = ("7 4", "2 3", "1 6")
KNOWN = ("weft", "mpich", "openmpi", "openmpi-tuned", "limit", "weft progress off")  # the same colour in every picture
LABEL = 24  # letters that fit below the axis
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 820, 360, 70, 170, 34, 90


def number(value):
    return f"{value:.4g}" if abs(value) < 10000 else f"{value:.0f}"


def tick(value):
    """A number that leaves room for the axis' name."""
    if value < 1e6:
        return number(value)
    return f"{value / 1e6:.4g} M"


def ticks_linear(low, high):
    step = 10 ** math.floor(math.log10((high - low) / 4))
    step *= next((m for m in (1, 2, 5, 10) if (high - low) / (step * m) <= 6), 10)
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


def colours(impls):
    """{impl: colour}; an unknown one takes what the known ones here leave."""
    free = [c for n, c in enumerate(COLOURS) if n >= len(KNOWN) or KNOWN[n] not in impls]
    others = [impl for impl in impls if impl not in KNOWN]
    return {impl: COLOURS[KNOWN.index(impl)] if impl in KNOWN else free[others.index(impl) % len(free)]
            for impl in impls}


class Axis:
    """From values to heights."""

    def __init__(self, values, log):
        self.log = log and min(values) > 0
        if self.log:
            self.low = math.floor(math.log10(min(values)))
            self.high = max(math.ceil(math.log10(max(values))), self.low + 1)
            self.ticks = [10.0 ** e for e in range(self.low, self.high + 1)]
        else:
            self.low, self.high = min(0, *values), max(0, *values)
            if self.low == self.high:
                self.high = self.low + 1
            self.high += (self.high - self.low) * 0.04
            self.ticks = ticks_linear(self.low, self.high)

    def y(self, value):
        place = math.log10(value) if self.log else value
        return TOP + (HEIGHT - TOP - BOTTOM) * (self.high - place) / (self.high - self.low)


def is_flat(cases, slot):
    """Do the labels stand side by side?"""
    return all(len(case) * 7 < slot for case in cases)


def frame(axis, title, unit, cases, slot, x_name):
    """Title, lines and labels."""
    out = [f'<text x="{LEFT}" y="18" font-size="14">{html.escape(title)}</text>',
           f'<text x="14" y="{(TOP + HEIGHT - BOTTOM) / 2}" text-anchor="middle" transform='
           f'"rotate(-90 14 {(TOP + HEIGHT - BOTTOM) / 2})">{html.escape(unit)}</text>']
    for value in axis.ticks:
        y = axis.y(value)
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" '
                   f'stroke="#ddd"/><text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">'
                   f'{tick(value)}</text>')
    flat = is_flat(cases, slot)
    if x_name:
        out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - (BOTTOM - 36 if flat else 8)}" '
                   f'text-anchor="middle">{html.escape(x_name)}</text>')
    for i, case in enumerate(cases):
        x, y = LEFT + slot * (i + 0.5), HEIGHT - BOTTOM + 16
        if flat:
            out.append(f'<text x="{x:.1f}" y="{y}" text-anchor="middle">{html.escape(case)}</text>')
            continue
        lines = "".join(f'<tspan x="{x:.1f}" dy="{12 if n else 0}">{html.escape(line)}</tspan>'
                        for n, line in enumerate(textwrap.wrap(case, LABEL)))
        out.append(f'<text x="{x:.1f}" y="{y}" text-anchor="end" transform="rotate(-30 {x:.1f} {y})">{lines}</text>')
    return out


def whisker(axis, x, low, high):
    return (f'<path d="M{x:.1f} {axis.y(low):.1f}V{axis.y(high):.1f}" stroke="#333" '
            'stroke-width="1"/>')


def level(axis, colour, median, dashes):
    """What has no place on the axis below: a dashed line at its height."""
    y = axis.y(median)
    return (f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="{colour}" '
            f'stroke-width="1.5" stroke-dasharray="{dashes}"/>')


def draw(title, unit, cases, impls, cells, log=False, bars=False, all_impls=None, x_name="", levels=()):
    """cells: {(case, impl): (least, median, most)}, also of the cases in levels, which become dashed lines;
    all_impls: those that have a colour in the charts of a page.  The text of an <svg> element."""
    values = [v for cell in cells.values() for v in cell]
    axis = Axis(values, log)
    slot = (WIDTH - LEFT - RIGHT) / len(cases)
    # Labels side by side need less room than slanted ones.
    high = HEIGHT - (BOTTOM - 46 if is_flat(cases, slot) else 0)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {high}" width="{WIDTH}" '
           'font-family="sans-serif" font-size="11">'
           f'<rect width="{WIDTH}" height="{high}" fill="white"/>']
    out += frame(axis, title, unit, cases, slot, x_name)
    floor = axis.y(10.0 ** axis.low if axis.log else 0)
    paint = colours(all_impls or impls)
    for n, impl in enumerate(impls):
        colour, points = paint[impl], []
        for i, case in enumerate(cases):
            if (case, impl) not in cells:
                continue
            low, median, high = cells[case, impl]
            y = axis.y(median)
            if bars:
                width = slot * 0.8 / len(impls)
                x = LEFT + slot * (i + 0.1) + width * n
                out.append(f'<rect x="{x:.1f}" y="{min(y, floor):.1f}" width="{width:.1f}" '
                           f'height="{abs(floor - y):.1f}" fill="{colour}"/>')
                x += width / 2
            else:
                x = LEFT + slot * (i + 0.5)
                points.append(f"{x:.1f},{y:.1f}")
                out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')
            out.append(whisker(axis, x, low, high))
        for case, dashes in zip(levels, DASHES):
            if (case, impl) in cells:
                out.append(level(axis, colour, cells[case, impl][1], dashes))
        if points:
            out.append(f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" '
                       'stroke-width="2"/>')
        y = TOP + 18 * n
        out.append(f'<rect x="{WIDTH - RIGHT + 12}" y="{y}" width="12" height="12" fill="{colour}"/>'
                   f'<text x="{WIDTH - RIGHT + 30}" y="{y + 10}">{html.escape(impl)}</text>')
    for n, (case, dashes) in enumerate(zip(levels, DASHES), len(impls)):
        x, y = WIDTH - RIGHT + 8, TOP + 18 * n
        out.append(f'<line x1="{x}" x2="{x + 18}" y1="{y + 6}" y2="{y + 6}" stroke="#333" '
                   f'stroke-width="1.5" stroke-dasharray="{dashes}"/>'
                   f'<text x="{WIDTH - RIGHT + 30}" y="{y + 10}">{html.escape(case)}</text>')
    return "\n".join(out) + "\n</svg>\n"


def bounded(metrics):
    """Where a metric "M" comes with "M at least" and "M at most", these are its spread."""
    out = {}
    for metric, (unit, cases, impls, cells) in metrics.items():
        if metric.endswith((" at least", " at most")):
            continue
        low, high = (metrics.get(metric + end, (0, 0, 0, {}))[3] for end in (" at least", " at most"))
        out[metric] = (unit, cases, impls, {key: (low.get(key, cell)[1 if low else 0], cell[1], high.get(key, cell)[1 if high else 2])
                                            for key, cell in cells.items()})
    return out


def axes_of(bench, cases):
    """[(name of the axis, {case: label})]: a chart for each; and the cases on none of them."""
    axes = bench.x if bench else ""
    if isinstance(axes, str):
        return [(axes, {case: case for case in cases})], []
    found = [(name, {case: match[1] for case in cases for match in [re.fullmatch(pattern, case)] if match})
             for name, pattern in axes]
    left = [case for case in cases if not any(case in labels for _, labels in found)]
    return [axis for axis in found if axis[1]] or [("", {case: case for case in cases})], left


def charts(title, bench, metrics, all_impls=None):
    """metrics: {metric: (unit, cases, impls, {(case, impl): (least, median, most)})}.  [(metric, its charts)]"""
    out = []
    for metric, (unit, cases, impls, cells) in bounded(metrics).items():
        mine = []
        axes, levels = axes_of(bench, cases)
        # Nothing but zeros, or one figure alone, is a table, not a picture.
        drawn = (not bench or metric not in bench.undrawn) and len(cells) > 1 and \
            any(v for cell in cells.values() for v in cell)
        for x_name, labels in axes if drawn else ():
            shown = {(labels.get(case, case), impl): cell for (case, impl), cell in cells.items()
                     if case in labels or case in levels}
            mine.append(draw(f"{title}: {metric}", f"{metric}, {unit}", list(labels.values()), impls, shown,
                             log=bench.log_of(metric) if bench else False, bars=bench.bars if bench else False,
                             all_impls=all_impls, x_name=x_name, levels=levels if len(levels) < len(cases) else ()))
        out.append((metric, mine))
    return out


def title_of(name, link, bench):
    """One that is alone in the machine has no link."""
    return name if bench and bench.alone else f"{name} over {link}"


def below_each_other(charts):
    """One <svg> of several."""
    if len(charts) == 1:
        return charts[0]
    inner = [chart.replace("<svg ", f'<svg y="{HEIGHT * i}" height="{HEIGHT}" ', 1) for i, chart in enumerate(charts)]
    high = HEIGHT * len(charts)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {high}" width="{WIDTH}">\n' +
            "".join(inner) + "</svg>\n")
