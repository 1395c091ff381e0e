# SPDX-License-Identifier: BSD-3-Clause
"""A trace as a picture: ranks and threads as rows, states as colours, messages as lines."""

import html
from trace_summary import printable, span

COLOUR = {"run": "#2a9d5c", "ready": "#f2c14e", "wait": "#cfd6e4", "call": "#8e6bbf", "sleep": "#e9ecf2",
          "idle": "#dfe3ea", "inside": "#23407e", "worker": "#7fb7be", "awake": "#b9d3ee", "task": "#e07a3f"}
NAME = {"run": "runs a thread", "ready": "ready, not running", "wait": "waits", "call": "blocking call",
        "worker": "worker looks for threads", "idle": "worker without work", "sleep": "asleep",
        "awake": "awake", "task": "task", "inside": "inside an MPI call"}
LEFT, WIDTH, ROW, GAP, TOP = 250, 1250, 15, 3, 64
LINES = 600  # messages that are drawn
LETTERS = 36


def nice_step(length, most):
    step = 1.0
    while length / step > most:  # ends: it grows
        for factor in (2, 2.5, 2):
            step *= factor
            if length / step <= most:
                break
    return step


class Picture:
    def __init__(self, trace, begin, end, most):
        self.trace, self.begin, self.end = trace, begin, max(end, begin + 1)
        self.most = most
        self.out, self.y = [], TOP
        self.rows = {}  # id of a thread -> height of its middle
        self.used = set()

    def x(self, t):
        return LEFT + (min(max(t, self.begin), self.end) - self.begin) * WIDTH / (self.end - self.begin)

    def text(self, x, y, words, more=""):
        self.out.append(f'<text x="{x:.1f}" y="{y:.1f}" {more}>{html.escape(printable(words))}</text>')

    def axis(self):
        step = nice_step(self.end - self.begin, 10)
        t = -(-self.begin // step) * step
        while t <= self.end:  # ends: t grows
            x = self.x(t)
            self.out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 6}" y2="{self.y}" stroke="#eee"/>')
            self.text(x, TOP - 10, span(t) if t else "0", 'text-anchor="middle" fill="#555"')
            t += step

    def strip(self, parts, y, height):
        """Column by column the state that takes most of it, so that a picture stays small."""
        columns = [None] * WIDTH
        weight = [0.0] * WIDTH
        for state, begin, end in parts:
            if end <= self.begin or begin >= self.end or state not in COLOUR:
                continue
            a, b = self.x(begin) - LEFT, self.x(end) - LEFT
            for c in range(int(a), min(int(b), WIDTH - 1) + 1):
                share = min(b, c + 1) - max(a, c)
                # What runs is seen even where it is short.
                share = share * (4 if state in ("run", "task") else 1) + 1e-9
                if share > weight[c]:
                    weight[c], columns[c] = share, state
        first = 0
        for c in range(1, WIDTH + 1):
            if c < WIDTH and columns[c] == columns[first]:
                continue
            if columns[first]:
                self.used.add(columns[first])
                self.out.append(f'<rect x="{LEFT + first}" y="{y}" width="{c - first}" height="{height}" '
                                f'fill="{COLOUR[columns[first]]}"/>')
            first = c

    def row(self, thread, name, parts):
        self.text(LEFT - 8, self.y + ROW - 4, name if len(name) <= LETTERS else name[:LETTERS - 2] + "..",
                  'text-anchor="end"')
        self.strip(parts, self.y, ROW)
        calls = [("inside", c[1], c[2]) for c in thread.calls]
        if calls:
            self.strip(calls, self.y + ROW - 3, 3)
        self.rows[id(thread)] = self.y + ROW / 2
        self.y += ROW + GAP

    def process(self, p):
        self.y += 8
        self.text(8, self.y + 12, f"{p.label()}: {p.program}", 'font-weight="bold"')
        self.y += 18
        for k in p.kernels:
            if k.events:
                parts = [(s, a, b) for s, a, b, _ in k.parts] + [("task", a, b) for _, a, b in k.tasks]
                self.row(k, k.label(), parts)
        inside = [v for v in p.lives if v.parts and v.parts[0][1] < self.end and v.parts[-1][2] > self.begin]
        chosen = sorted(inside, key=lambda v: -v.total("run"))[:self.most]
        for v in sorted(chosen, key=lambda v: v.parts[0][1]):
            self.row(v, v.label(), [(q[0], q[1], q[2]) for q in v.parts])
        if len(inside) > len(chosen):
            self.text(LEFT - 8, self.y + ROW - 4, f"and {len(inside) - len(chosen)} more",
                      'text-anchor="end" fill="#777"')
            self.y += ROW + GAP

    def height(self, process_of, rank, thread):
        """Of a thread's row; where it has none, of the kernel thread that has one."""
        found = self.rows.get(id(thread))
        if found is None and rank in process_of:
            found = next((self.rows[id(k)] for k in process_of[rank].kernels if k.switches and id(k) in self.rows),
                         None)
        return found

    def messages(self):
        process_of = {p.rank: p for p in self.trace.processes}
        inside = [m for m in self.trace.messages if m.sent is not None and m.arrived is not None and
                  m.sent < self.end and m.arrived > self.begin]
        drawn = sorted(inside, key=lambda m: m.sent - m.arrived)[:LINES]
        for m in drawn:
            a, b = self.height(process_of, m.source, m.by), self.height(process_of, m.target, m.taker)
            if a is None or b is None:
                continue
            colour = "#b3001b" if m.how == "rendezvous" else "#333"
            self.out.append(
                f'<path d="M{self.x(m.sent):.1f} {a:.1f}L{self.x(m.arrived):.1f} {b:.1f}" stroke="{colour}" '
                f'stroke-width="0.8" stroke-opacity="0.35" fill="none" marker-end="url(#to)"><title>{m.source} to '
                f'{m.target}, tag {m.tag}, {m.bytes} bytes, {m.how}, {span(m.arrived - m.sent)}</title></path>')
        return len(drawn), len(inside)

    def legend(self, drawn, inside):
        x, y = LEFT, self.y + 24
        for state in COLOUR:
            if state not in self.used:
                continue
            self.out.append(f'<rect x="{x}" y="{y - 10}" width="12" height="12" fill="{COLOUR[state]}"/>')
            self.text(x + 17, y, NAME[state])
            x += 34 + 6.4 * len(NAME[state])
        y += 20
        if inside:
            self.text(LEFT, y, f"lines: {'the slowest ' if drawn < inside else ''}{drawn} of {inside} messages; red: "
                      "by rendezvous", 'fill="#555"')
        self.y = y + 14

    def draw(self):
        for p in self.trace.processes:
            self.process(p)
        body, self.out = self.out, []
        self.axis()
        self.out += body
        drawn, inside = self.messages()
        self.legend(drawn, inside)
        head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 30}" height="{self.y:.0f}" '
                'font-family="sans-serif" font-size="11"><defs><marker id="to" viewBox="0 0 6 6" refX="6" refY="3" '
                'markerWidth="5" markerHeight="5" orient="auto"><path d="M0 0L6 3L0 6z" fill="#333"/></marker></defs>'
                '<rect width="100%" height="100%" fill="#fff"/>')
        title = f"{span(self.end - self.begin)} of {len(self.trace.processes)} processes"
        self.out.insert(0, f'<text x="8" y="22" font-size="15">{title}</text>')
        return head + "\n".join(self.out) + "</svg>\n"


def write(trace, out, begin, end, most):
    out.write(Picture(trace, begin, end, most).draw())
