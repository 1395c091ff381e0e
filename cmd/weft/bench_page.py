# SPDX-License-Identifier: BSD-3-Clause
"""One HTML page: every figure of the papers, what they found, and what was measured here."""

import html
import os
import platform
import time

from bench_papers import FIGURES
from bench_svg import bounded, charts, number, title_of
from bench_table import BENCHES, PEERS

STYLE = """:root{color-scheme:light dark;--ink:#222;--soft:#555;--line:#ccc;--head:#f3f3f3;--theirs:#fbf7ec}
@media(prefers-color-scheme:dark){:root{--ink:#ddd;--soft:#aaa;--line:#555;--head:#2b2b2b;--theirs:#2e2a1f}}
body{font:15px/1.45 sans-serif;max-width:920px;margin:2em auto;padding:0 1em;color:var(--ink)}
table{border-collapse:collapse;margin:.6em 0}td,th{border:1px solid var(--line);padding:.15em .6em}
th{background:var(--head);text-align:left}td.n{text-align:right;font-variant-numeric:tabular-nums}
.asks{color:var(--soft)}.theirs{background:var(--theirs);padding:.4em .8em;border-left:3px solid #edae49}
svg{max-width:100%;height:auto}h2{margin-top:2.2em}nav li{margin:.1em 0}"""
RESTLESS = 0.1  # of the rows: so many may differ twofold between the rounds on a quiet machine


class Rows:
    """The rows of one bench over one link: {metric: (unit, cases, impls, cells)}."""

    def __init__(self, rows):
        self.metrics = {}
        for row in rows:
            case, impl = row["case"], row["impl"]
            if case.endswith(" progress off"):
                case, impl = case[:-len(" progress off")], impl + " progress off"
            _, cases, impls, cells = self.metrics.setdefault(row["metric"], (row["unit"], [], [], {}))
            if case not in cases:
                cases.append(case)
            if impl not in impls:
                impls.append(impl)
            cells[case, impl] = tuple(float(row[k]) for k in ("min", "median", "max"))


def cell(text, tag="td", kind=""):
    return f"<{tag}{kind}>{html.escape(str(text))}</{tag}>"


def table(head, rows, numbers=False):
    kind = ' class="n"' if numbers else ""
    out = ["<table><tr>" + "".join(cell(h, "th") for h in head) + "</tr>"]
    for first, *rest in rows:
        out.append("<tr>" + cell(first) + "".join(cell(v, kind=kind) for v in rest) + "</tr>")
    return "\n".join(out) + "</table>"


def lines(cases, impls, cells, text):
    """A row per case, a column per implementation."""
    return [[case] + [text(cells[case, impl]) if (case, impl) in cells else "-" for impl in impls]
            for case in cases]


def silent(link, rows, bench, asked):
    """The peers that were asked elsewhere in this run, could have been here, and have no row."""
    there = {row["impl"] for row in rows}
    return [p for p in asked if p in bench.peers and p not in there and
            (p != "openmpi-tuned" or link in bench.tuned)] if bench else []


def measured(name, link, rows, bench, asked):
    out, metrics = [], bounded(Rows(rows).metrics)
    all_impls = list(dict.fromkeys(impl for _, _, impls, _ in metrics.values() for impl in impls))
    drawn = dict(charts(title_of(name, link, bench), bench, metrics, all_impls))
    missing = silent(link, rows, bench, asked)
    if missing:
        out.append(f"<p><b>{html.escape(title_of(name, link, bench))}</b>: no answer in time from {', '.join(missing)}.</p>")
    for metric, (unit, cases, impls, cells) in metrics.items():
        out += drawn.get(metric, [])
        head = [f"{metric}, {unit}", *impls]
        out.append(table(head, lines(cases, impls, cells, lambda c: number(c[1])), numbers=True))
        out.append("<details><summary>least / median / most</summary>" +
                   table(head, lines(cases, impls, cells, lambda c: " / ".join(map(number, c))), numbers=True) +
                   "</details>")
    return out


def machine():
    model = ""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as f:
            model = next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")),
                         "")
    except OSError:
        pass
    return f"{len(os.sched_getaffinity(0))} cores, {model or platform.machine()}, {platform.system()} " \
           f"{platform.release()}"


def anchor(text):
    return "".join(c if c.isalnum() else "-" for c in text)


def section(title, asks, theirs, names, rows, benches, drawn):
    """One figure, or one bench without one.  drawn: bench -> the section that shows it, in and out."""
    out = [f'<h2 id="{anchor(title)}">{html.escape(title)}</h2>',
           f'<p class="asks">{html.escape(asks)}</p>', theirs]
    for name in names:
        links = dict.fromkeys(row["link"] for row in rows if row["bench"] == name)
        asked = [p for p in PEERS if any(row["impl"] == p for row in rows)]
        if not links:
            out.append(f"<p><b>weft bench {html.escape(name)}</b>: not measured in this run.</p>")
        if drawn.setdefault(name, title) != title and links:
            out.append(f'<p><b>weft bench {html.escape(name)}</b>: drawn under '
                       f'<a href="#{anchor(drawn[name])}">{html.escape(drawn[name])}</a>.</p>')
            continue
        for link in links:
            mine = [row for row in rows if row["bench"] == name and row["link"] == link]
            out += measured(name, link, mine, benches.get(name), asked)
    return out


def medians(rows, link, impl, metric):
    """[(case, median)] in their order."""
    return [(row["case"], float(row["median"])) for row in rows
            if (row["link"], row["impl"], row["metric"]) == (link, impl, metric)]


def in_short(name, rows):
    """One line for each link: the first metric's first and last case, weft beside the others."""
    out = []
    for link in dict.fromkeys(row["link"] for row in rows):
        mine = [row for row in rows if row["link"] == link]
        metric, unit = mine[0]["metric"], mine[0]["unit"]
        cases = list(dict.fromkeys(row["case"] for row in mine if row["metric"] == metric and
                                   not row["case"].endswith(" progress off")))
        for case in dict.fromkeys((cases[0], cases[-1])):
            values = {impl: dict(medians(mine, link, impl, metric)).get(case)
                      for impl in dict.fromkeys(row["impl"] for row in mine)}
            said = "; ".join(f"{impl} {number(v)}" for impl, v in values.items() if v is not None)
            out.append((title_of(name, link, BENCHES.get(name)), f"{metric}, {case}", f"{said} {unit}"))
    return out


def overview(rows):
    """The page's first table."""
    lines = []
    for name in dict.fromkeys(row["bench"] for row in rows):
        lines += in_short(name, [row for row in rows if row["bench"] == name])
    return ("<h2>In short</h2><p>The first measure of each bench, in its first and its last case, median.</p>" +
            table(("bench", "what", "here"), lines)) if lines else ""


def restless(rows):
    """What to think of figures that the machine's other work has moved."""
    again = [row for row in rows if int(row["n"]) > 1 and float(row["min"]) > 0]
    moved = sum(float(row["max"]) > 2 * float(row["min"]) for row in again)
    if moved <= RESTLESS * len(again):
        return ""
    return (f'<p class="theirs"><b>{moved} of {len(again)} rows differ more than twofold between their rounds:</b> the '
            "machine had other work. Measure again on a quiet one before you believe a figure here.</p>")


def page(rows, benches, command):
    """rows: of the CSV.  The text of the page."""
    out, nav, told = [], [], set()
    # Several figures may ask the same bench: drawn where it is what they ask first.
    drawn = {f.benches[0]: f.where for f in reversed(FIGURES)}
    for f in FIGURES:
        theirs = f'<div class="theirs"><b>In the paper.</b> {html.escape(f.says)}' + \
                 (table(f.head, f.rows) if f.rows else "") + "</div>"
        nav.append(f.where)
        out += section(f.where, f.asks, theirs, f.benches, rows, benches, drawn)
        told.update(f.benches)
    for name in dict.fromkeys(row["bench"] for row in rows):
        if name not in told:
            title = f"beyond the papers: {name}"
            nav.append(title)
            asks = benches[name].asks if name in benches else ""
            out += section(title, asks, "", (name,), rows, benches, drawn)
    links = "\n".join(f'<li><a href="#{anchor(t)}">{html.escape(t)}</a></li>' for t in nav)
    return (f'<!doctype html><html lang="en"><meta charset="utf-8"><title>weft bench paper</title>'
            f"<style>{STYLE}</style><h1>The papers' figures, remade</h1>"
            f"<p>{html.escape(machine())}; {time.strftime('%Y-%m-%d %H:%M')}; "
            f"<code>{html.escape(command)}</code>. The papers' machines were others: shapes compare, "
            f"microseconds do not. All implementations were run in turn.</p><nav><ul>{links}</ul></nav>"
            + restless(rows) + overview(rows) + "\n".join(out) + "</html>\n")
