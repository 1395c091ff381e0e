# SPDX-License-Identifier: BSD-3-Clause
"""A trace in tables: what each thread did for how long, what was waited for, the longest waits."""

from collections import defaultdict
from trace_read import NOBODY

LONGEST = 10


def span(ns):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}" if ns < 1000 * size else f"{ns / size:.0f} {unit}"
    return f"{ns:.0f} ns"


def printable(text):
    return "".join(c if c.isprintable() else "?" for c in text)


def table(head, rows):
    """The first column to the left, the others to the right."""
    rows = [[printable(str(c)) for c in row] for row in rows]
    wide = [max(len(r[i]) for r in [head] + rows) for i in range(len(head))]
    for row in [head] + rows:
        print(("  " + row[0].ljust(wide[0]) +
               "".join("  " + c.rjust(w) for c, w in zip(row[1:], wide[1:]))).rstrip())
    print()


def kernels(process):
    rows = []
    for k in process.kernels:
        if k.events:
            rows.append([k.label(), k.events, k.lost, k.switches, span(k.total("run")), span(k.total("idle")),
                         span(k.total("sleep"))])
    if rows:
        table(["kernel thread", "events", "overwritten", "switches", "runs threads", "idle", "asleep"], rows)


def threads(process, most):
    lives = sorted(process.lives, key=lambda v: -(v.total("run") + v.total("wait")))
    if not lives:
        return
    rows = []
    for life in lives[:most]:
        on = defaultdict(float)
        for p in life.parts:
            if p[0] in ("wait", "call"):
                on[p[4] or "a blocking call"] += p[2] - p[1]
        first = max(on, key=on.get) if on else ""
        rows.append([life.label(), sum(p[0] == "run" for p in life.parts), span(life.total("run")),
                     span(life.total("ready")), span(life.total("wait") + life.total("call")), first])
    table(["user-level thread", "runs", "running", "ready", "waiting", "most of it for"], rows)
    if len(lives) > most:
        print(f"  and {len(lives) - most} more; together:")
        totals = [span(sum(v.total(s) for v in lives)) for s in ("run", "ready", "wait")]
        print(f"  {len(lives)} threads: {totals[0]} running, {totals[1]} ready, {totals[2]} waiting\n")


def waits(trace):
    kinds, longest = defaultdict(list), []
    for process in trace.processes:
        for life in process.lives:
            for p in life.parts:
                if p[0] in ("wait", "call"):
                    what = p[4] or ("a blocking call" if p[0] == "call" else "?")
                    kinds[what].append(p[2] - p[1])
                    longest.append((p[2] - p[1], process, life, what, p))
    if not kinds:
        return
    rows = [[what, len(v), span(sum(v)), span(sum(v) / len(v)), span(max(v))]
            for what, v in sorted(kinds.items(), key=lambda kv: -sum(kv[1]))]
    table(["waits of user-level threads for", "count", "together", "mean", "longest"], rows)
    longest.sort(key=lambda x: -x[0])
    rows = []
    for ns, process, life, what, p in longest[:LONGEST]:
        by = p[6]
        who = "not yet" if by is None else "" if by == NOBODY else f"{by >> 24}.{by & 0xffffff}"
        which = f"{p[5]:#x}" if p[5] else ""
        rows.append([f"{process.label()}, {life.label()}", span(ns), span(p[1]), what, which, who])
    table(["longest waits", "took", "began at", "for", "which", "ended by"], rows)


def messages(trace):
    kinds = defaultdict(list)
    for m in trace.messages:
        kinds[m.how].append(m)
    rows = []
    for how, group in sorted(kinds.items()):
        way = sorted(m.arrived - m.sent for m in group if m.arrived is not None and m.sent is not None)
        whole = sorted(m.over - m.sent for m in group if m.over is not None and m.sent is not None)
        half = sum(m.arrived is None or m.sent is None for m in group)
        rows.append([how, len(group), sum(m.bytes for m in group)] +
                    ([span(way[len(way) // 2]), span(way[-1])] if way else ["", ""]) +
                    ([span(whole[len(whole) // 2]), span(whole[-1])] if whole else ["", ""]) + [half])
    if rows:
        table(["messages between ranks", "count", "bytes", "arrive after", "at most", "have their data after",
               "at most", "one end not seen"], rows)
        print(f"  {sum(p.taken for p in trace.processes)} of all came before their receive; "
              f"{sum(len(p.posts) for p in trace.processes)} receives were posted\n")


def rails(trace):
    rows = []
    for process in trace.processes:
        ways = defaultdict(list)
        for r in process.rails:
            ways[r[3], r[2]].append(r)
        for (peer, rail), group in sorted(ways.items()):
            used = [r[5] for r in group if r[1] == "used"]
            broken = [r[5] for r in group if r[1] == "breaks"]
            rows.append([f"{process.label()} to {peer}, rail {rail}", len(used), sum(used), len(broken), sum(broken),
                         sum(r[1] == "is back" for r in group)])
    if rows:
        table(["rails", "packets", "bytes", "broken", "packets again", "back"], rows)


def calls(trace):
    kinds = defaultdict(list)
    for process in trace.processes:
        for thread in process.lives + process.kernels:
            for name, begin, end in thread.calls:
                kinds[name].append(end - begin)
    rows = [[name, len(v), span(sum(v)), span(sum(v) / len(v)), span(max(v))]
            for name, v in sorted(kinds.items(), key=lambda kv: -sum(kv[1]))]
    if rows:
        table(["MPI calls", "count", "together", "mean", "longest"], rows[:LONGEST])


def tasks(trace):
    kinds = defaultdict(list)
    for process in trace.processes:
        for k in process.kernels:
            for name, begin, end in k.tasks:
                kinds[name].append(end - begin)
    rows = [[name, len(v), span(sum(v)), span(sum(v) / len(v)), span(max(v))]
            for name, v in sorted(kinds.items(), key=lambda kv: -sum(kv[1]))]
    if rows:
        table(["tasks", "count", "together", "mean", "longest"], rows[:LONGEST])


def show(trace, most):
    print(f"{len(trace.processes)} process{'es' if len(trace.processes) != 1 else ''}, "
          f"{trace.events()} events within {span(trace.end)}, {trace.lost()} older ones overwritten or lost\n")
    for process in trace.processes:
        f = process.file
        how = "" if f.ended else "; it goes on, or did not end in order"
        how += "; the file is cut off" if f.cut else ""
        print(printable(f"{process.label()}: {f.program}, process {f.pid} on {f.host}, {len(process.lives)} "
                        f"user-level threads seen, {process.steals} stolen{how}") + "\n")
        kernels(process)
        threads(process, most)
    waits(trace)
    messages(trace)
    rails(trace)
    calls(trace)
    tasks(trace)
