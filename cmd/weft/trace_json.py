# SPDX-License-Identifier: BSD-3-Clause
"""A trace as JSON that Perfetto and chrome://tracing show: tracks of kernel threads and of user-level
threads, and arrows from each send to its arrival."""

import json
from collections import defaultdict

COLOUR = {"run": "thread_state_running", "ready": "thread_state_runnable", "wait": "thread_state_sleeping",
          "call": "thread_state_iowait", "sleep": "thread_state_sleeping", "idle": "grey", "awake": "good", "worker": "good"}
ULTS = 1 << 24  # tracks of user-level threads begin here, those of kernel threads at 1
MARK_NS = 1  # of a message in its thread's track


def cut(parts, calls):
    """The parts, none of which is on both sides of a call's edge: they nest then."""
    edges = sorted({e for c in calls for e in (c[1], c[2])})
    out, i = [], 0
    for p in parts:
        begin = p[1]
        while i < len(edges) and edges[i] <= begin:
            i += 1
        k = i
        while k < len(edges) and edges[k] < p[2]:
            out.append((p, begin, edges[k]))
            begin = edges[k]
            k += 1
        out.append((p, begin, p[2]))
    return out


class Writer:
    def __init__(self, out):
        self.out, self.first = out, True
        out.write('{"displayTimeUnit":"ns","traceEvents":[\n')

    def put(self, **event):
        self.out.write(("" if self.first else ",\n") + json.dumps(event, separators=(",", ":")))
        self.first = False

    def end(self):
        self.out.write("\n]}\n")

    def piece(self, pid, tid, name, begin, end, colour=None, args=None):
        event = {"ph": "X", "pid": pid, "tid": tid, "name": name, "ts": round(begin / 1000, 3),
                 "dur": round((end - begin) / 1000, 3)}
        if colour:
            event["cname"] = colour
        if args:
            event["args"] = args
        self.put(**event)

    def label(self, what, pid, tid, name, order):
        self.put(ph="M", pid=pid, tid=tid, name=f"{what}_name", args={"name": name})
        self.put(ph="M", pid=pid, tid=tid, name=f"{what}_sort_index", args={"sort_index": order})


def number_name(number):
    return "nobody among them" if number == 0xffffffff else f"{number >> 24}.{number & 0xffffff}"


def kernel_thread(w, pid, k):
    tid = k.index + 1
    w.label("thread", pid, tid, k.label() or f"thread {tid}", tid)
    for name, begin, end in k.calls:
        w.piece(pid, tid, name, begin, end)
    for part, begin, end in cut(k.parts, k.calls + k.tasks):
        w.piece(pid, tid, part[3].label() if part[0] == "run" else part[0], begin, end, COLOUR[part[0]])
    for name, begin, end in k.tasks:
        w.piece(pid, tid, f"task {name}", begin, end)


def life(w, pid, tid, v):
    begin = v.parts[0][1] if v.parts else 0
    end = v.parts[-1][2] if v.parts else 0
    w.piece(pid, tid, v.label(), begin, end, None, {"function": v.code, "number": number_name(v.number)})
    for name, a, b in v.calls:
        w.piece(pid, tid, name, a, b)
    for part, a, b in cut(v.parts, v.calls):
        name = {"run": "runs", "ready": "ready", "call": "blocking call"}.get(part[0], f"waits: {part[4]}")
        args = {}
        if part[0] == "run" and part[3]:
            args["on"] = part[3].label()
        if part[5]:
            args["which"] = f"{part[5]:#x}"
        if part[6] is not None:
            args["called by"] = number_name(part[6])
        w.piece(pid, tid, name, a, b, COLOUR.get(part[0]), args)


def track_of(thread):
    """Of a message's end: its user-level thread's, or its kernel thread's."""
    return ULTS + thread.number if hasattr(thread, "number") else thread.index + 1


def messages(w, trace, pids):
    for i, m in enumerate(trace.messages):
        ends = []
        if m.sent is not None:
            ends.append((m.source, m.by, m.sent, f"send to {m.target}", "s"))
        if m.arrived is not None:
            ends.append((m.target, m.taker, m.arrived, f"arrives from {m.source}", "f"))
        for rank, thread, t, name, phase in ends:
            tid = track_of(thread)
            args = {"tag": m.tag, "bytes": m.bytes, "how": m.how}
            if phase == "f" and m.over is not None:
                args["has its data after us"] = round((m.over - m.arrived) / 1000, 3)
            w.piece(pids[rank], tid, name, t, t + MARK_NS, None, args)
            if len(ends) == 2:
                flow = {"ph": phase, "pid": pids[rank], "tid": tid, "ts": round(t / 1000, 3), "id": i,
                        "cat": "message", "name": "message"}
                if phase == "f":
                    flow["bp"] = "e"
                w.put(**flow)


def posts(w, process, pid):
    for t, thread, peer, tag, size in process.posts:
        args = {"tag": "any" if tag is None else tag, "room": size}
        w.piece(pid, track_of(thread), f"posts a receive from {'anybody' if peer is None else peer}", t, t + MARK_NS,
                None, args)


def rails(w, process, pid):
    """A curve of what each has carried, and marks where it comes and goes."""
    carried = defaultdict(int)
    for t, what, rail, peer, thread, n in process.rails:
        if what == "used":
            carried[rail] += n
            w.put(ph="C", pid=pid, tid=0, name=f"rail {rail}", ts=round(t / 1000, 3), args={"bytes sent": carried[rail]})
        else:
            w.put(ph="i", pid=pid, tid=track_of(thread), s="p", name=f"rail {rail} to rank {peer} {what}",
                  ts=round(t / 1000, 3), args={"packets that go again": n})


def write(trace, out):
    w = Writer(out)
    pids = {}
    for order, process in enumerate(trace.processes):
        pid = process.pid if process.rank < 0 else process.rank + 1
        pids[process.rank] = pid
        w.label("process", pid, 0, f"{process.label()}: {process.program} {process.pid} on {process.file.host}",
                order)
        for k in process.kernels:
            if k.events:
                kernel_thread(w, pid, k)
        slots = defaultdict(list)
        for v in process.lives:
            slots[v.number].append(v)
        for number, lives in sorted(slots.items()):
            name = lives[0].label() if len(lives) == 1 else f"{number_name(number)} ({len(lives)} threads)"
            w.label("thread", pid, ULTS + number, name, ULTS + number)
            for v in lives:
                life(w, pid, ULTS + number, v)
        posts(w, process, pid)
        rails(w, process, pid)
    messages(w, trace, pids)
    w.end()
