# SPDX-License-Identifier: BSD-3-Clause
"""What the records of a trace say: the lives of user-level threads, what kernel threads do."""

from collections import defaultdict
from trace_read import NOBODY, clock_of

ANY_TAG = -(1 << 31)
EARLY_NS = 5000  # two cores' clocks may differ by less


class Calls:
    """MPI calls that a thread of either kind makes, one inside the other: [name, from, to]."""

    def __init__(self):
        self.calls, self.inside = [], []

    def call(self, name, t):
        self.inside.append([name, t, None])
        self.calls.append(self.inside[-1])

    def returned(self, name, t):
        while self.inside:  # ends: one less each turn
            last = self.inside.pop()
            last[2] = t
            if last[0] == name:
                return

    def close(self, t):
        for c in self.inside:
            c[2] = t


class Life(Calls):
    """A user-level thread.  parts: [state, from, to, kernel thread, what, which, ended by]."""

    def __init__(self, process, number, code, created):
        super().__init__()
        self.process, self.number, self.code = process, number, code
        self.name = ""
        self.created, self.ended = created, None
        self.parts = []
        self.called_early = None

    def label(self):
        where = f"{self.number >> 24}.{self.number & 0xffffff}"
        return f"{where} {self.name or self.code}".strip()

    def state(self):
        return self.parts[-1][0] if self.parts else None

    def go(self, state, t, on=None, what="", which=0):
        if self.parts and self.parts[-1][2] is None:
            self.parts[-1][2] = t
        self.parts.append([state, t, None, on, what, which, None])

    def total(self, state):
        return sum(p[2] - p[1] for p in self.parts if p[0] == state)


class Kernel(Calls):
    """A kernel thread.  parts: [what, from, to, user-level thread]; tasks: [name, from, to]."""

    def __init__(self, process, index):
        super().__init__()
        self.tasks = []
        self.life = None  # that runs here
        self.process, self.index = process, index
        self.tid, self.name = 0, ""
        self.parts = []
        self.events = self.lost = self.switches = 0
        self.first = self.last = None

    def label(self):
        return f"{self.name} {self.tid}".strip()

    def go(self, what, t, ult=None):
        self.stop(t)
        if what != "sleep" and what != "awake":
            self.life = ult
        self.parts.append([what, t, None, ult])

    def stop(self, t):
        if self.parts and self.parts[-1][2] is None:
            self.parts[-1][2] = t

    def total(self, what):
        return sum(p[2] - p[1] for p in self.parts if p[0] == what)


class Message:
    """From its send to its arrival, and to its end where it was fetched; None: not seen."""

    __slots__ = ("source", "target", "tag", "bytes", "how", "sent", "by", "arrived", "taker", "over")

    def __init__(self, source, target, tag, size, how):
        self.source, self.target, self.tag, self.bytes, self.how = source, target, tag, size, how
        self.sent = self.by = self.arrived = self.taker = self.over = None


HOW = {1: "eager", 2: "rendezvous", 3: "packed", 4: "self"}


def signed(tag):
    return tag - (1 << 32) if tag >> 31 else tag


class Process:
    def __init__(self, file, clock):
        self.file, self.rank, self.pid, self.program = file, file.rank, file.pid, file.program
        self.kernels, self.lives, self.open = [], [], {}
        self.steals = self.taken = 0
        self.posts = []  # (t, poster, peer or None, tag or None, bytes)
        self.rails = []  # (t, what, rail, peer, by, n): packets' bytes, packets that go again, was up before
        self.sends, self.arrivals, self.fetched = {}, {}, {}  # (peer, number): (t, tag, bytes, how, actor)
        self.clock = clock
        self.events = []
        self.read(clock)
        self.follow()

    def label(self):
        return f"rank {self.rank}" if self.rank >= 0 else f"{self.program} {self.pid}"

    def new_kernel(self):
        k = Kernel(self, len(self.kernels))
        self.kernels.append(k)
        return k

    def read(self, clock):
        """All records in the order of time; a ring that was a later thread's too becomes two."""
        for ring in self.file.rings:
            k = self.new_kernel()
            k.lost = ring.lost
            if not any(r[1] == "thread" for r in ring.records):
                k.tid, k.name = ring.tid, ring.name
            for time, kind, small, who, a, b in ring.records:
                if kind == "sync":
                    continue
                if kind == "thread":
                    if k.events or k.tid:
                        k = self.new_kernel()
                    k.tid = who
                    k.name = (a.to_bytes(8, "little") + b.to_bytes(8, "little")).split(b"\0")[0].decode(
                        "utf-8", "replace")
                    continue
                t = clock(time)
                k.events += 1
                k.first = t if k.first is None else k.first
                k.last = t
                self.events.append((t, k.index, kind, small, who, a, b))
        self.events.sort(key=lambda e: e[0])

    def life(self, number, t):
        """The one that has this number now; one whose beginning was overwritten begins here."""
        found = self.open.get(number)
        if not found:
            found = self.open[number] = Life(self, number, "", None)
            found.first = t
            self.lives.append(found)
        return found

    def follow(self):
        for t, k, kind, small, who, a, b in self.events:
            handler = HANDLERS.get(kind)
            if handler:
                handler(self, t, self.kernels[k], small, who, a, b)
        end = self.events[-1][0] if self.events else 0
        for life in self.lives:
            if life.parts and life.parts[-1][2] is None:
                life.parts[-1][2] = end
            life.close(end)
        for k in self.kernels:
            k.stop(end)
            k.close(end)

    # One for each kind of record.

    def on_create(self, t, k, small, who, a, b):
        life = self.open[who] = Life(self, who, self.file.text(small), t)
        life.go("ready", t)
        self.lives.append(life)

    def on_name(self, t, k, small, who, a, b):
        raw = a.to_bytes(8, "little") + b.to_bytes(8, "little")
        self.life(who, t).name = raw.split(b"\0")[0].decode("utf-8", "replace")

    def on_run(self, t, k, small, who, a, b):
        k.switches += 1
        if who == NOBODY:
            k.go("worker", t)
            return
        life = self.life(who, t)
        life.go("run", t, k)
        k.go("run", t, life)

    def on_yield(self, t, k, small, who, a, b):
        self.life(who, t).go("ready", t)
        k.go("worker", t)

    def on_block(self, t, k, small, who, a, b):
        life = self.life(who, t)
        life.go("wait", t, k, self.file.text(small), a)
        k.go("worker", t)
        if life.called_early is not None and t - life.called_early < EARLY_NS:
            life.go("ready", t)
        life.called_early = None

    def on_stay(self, t, k, small, who, a, b):
        life = self.life(who, t)
        if life.state() == "wait":
            life.parts.pop()
            if life.parts:
                life.parts[-1][2] = None
            else:
                life.go("run", t, k)
        k.go("run", t, life)

    def on_wake(self, t, k, small, who, a, b):
        life = self.life(who, t)
        if life.state() == "run":
            life.called_early = t
            return
        if life.parts:
            life.parts[-1][6] = a
        life.go("ready", t)

    def on_end(self, t, k, small, who, a, b):
        life = self.life(who, t)
        life.go("end", t)
        life.parts.pop()
        life.ended = t
        del self.open[who]
        k.go("worker", t)

    def on_steal(self, t, k, small, who, a, b):
        self.steals += 1

    def on_keep(self, t, k, small, who, a, b):
        self.life(who, t).go("call", t, k)

    def on_idle(self, t, k, small, who, a, b):
        k.go("idle", t)

    def on_busy(self, t, k, small, who, a, b):
        k.go("worker", t)

    def on_thread_end(self, t, k, small, who, a, b):
        k.stop(t)

    def on_task(self, t, k, small, who, a, b):
        k.tasks.append([self.file.text(small) or "a task", self.clock(a), t])

    @staticmethod
    def envelope(t, k, small, a, b):
        return (t, signed(a >> 32), b, HOW.get(small, "?"), k.life or k)

    def on_send(self, t, k, small, who, a, b):
        self.sends[who, a & 0xffffffff] = self.envelope(t, k, small, a, b)

    def on_arrive(self, t, k, small, who, a, b):
        self.arrivals[who, a & 0xffffffff] = self.envelope(t, k, small, a, b)
        if HOW.get(small) == "rendezvous":
            self.fetched.setdefault((who, a >> 32), [[], []])[0].append((a & 0xffffffff))

    def on_received(self, t, k, small, who, a, b):
        if not small and (who, a >> 32) in self.fetched:
            self.fetched[who, a >> 32][1].append(t)

    def on_take(self, t, k, small, who, a, b):
        self.taken += 1

    def on_post(self, t, k, small, who, a, b):
        tag = signed(a >> 32)
        self.posts.append((t, k.life or k, None if who == NOBODY else who, None if tag == ANY_TAG else tag, b))

    def on_rail(self, t, k, small, who, a, b):
        self.rails.append((t, "used", small, who, k.life or k, b))

    def on_rail_up(self, t, k, small, who, a, b):
        self.rails.append((t, "is back" if a else "is up", small, who, k.life or k, 0))

    def on_rail_down(self, t, k, small, who, a, b):
        self.rails.append((t, "breaks", small, who, k.life or k, b))

    def on_call(self, t, k, small, who, a, b):
        (k.life or k).call(self.file.text(small), t)

    def on_return(self, t, k, small, who, a, b):
        (k.life or k).returned(self.file.text(small), t)

    def on_sleep(self, t, k, small, who, a, b):
        k.go("sleep", t)

    def on_awake(self, t, k, small, who, a, b):
        k.go("awake", t)


HANDLERS = {
    "ult_create": Process.on_create, "ult_name": Process.on_name, "ult_run": Process.on_run,
    "ult_yield": Process.on_yield, "ult_block": Process.on_block, "ult_stay": Process.on_stay,
    "ult_wake": Process.on_wake, "ult_end": Process.on_end, "ult_steal": Process.on_steal,
    "ult_keep": Process.on_keep, "idle": Process.on_idle, "busy": Process.on_busy,
    "thread_end": Process.on_thread_end, "sleep": Process.on_sleep, "awake": Process.on_awake, "task": Process.on_task, "send": Process.on_send,
    "arrive": Process.on_arrive, "received": Process.on_received, "take": Process.on_take,
    "post": Process.on_post, "rail": Process.on_rail, "rail_up": Process.on_rail_up,
    "rail_down": Process.on_rail_down, "call": Process.on_call, "return": Process.on_return,
}


class Trace:
    """All processes; times in ns from the first record of all."""

    def __init__(self, files):
        groups = defaultdict(list)
        for f in files:
            groups[f.host, f.boot].append(f)
        self.groups = list(groups.values())
        self.hosts = len(self.groups)
        # Between hosts: by the time of day, as far as their clocks agree; then by messages.
        shifts = [g[0].real_ns - g[0].pairs[0][1] if self.hosts > 1 and g[0].pairs else 0 for g in self.groups]
        self.build(shifts)
        if self.hosts > 1:
            self.build([s - o for s, o in zip(shifts, self.offsets())])

    def build(self, shifts):
        clocks = [clock_of(g) for g in self.groups]
        begin = min((clock(ring.records[0][0]) + shift for g, clock, shift in zip(self.groups, clocks, shifts)
                     for f in g for ring in f.rings if ring.records), default=0)
        self.processes = []
        for g, clock, shift in zip(self.groups, clocks, shifts):
            for f in g:
                self.processes.append(Process(f, lambda t, c=clock, s=shift: c(t) + s - begin))
        self.processes.sort(key=lambda p: (p.rank, p.pid))
        self.end = max((p.events[-1][0] for p in self.processes if p.events), default=0)
        self.messages = self.match()

    def offsets(self):
        """How far each host's clock is before the first one's: the least times of both ways are made equal."""
        host = {f.rank: i for i, g in enumerate(self.groups) for f in g}
        least = {}
        for m in self.messages:
            if m.sent is not None and m.arrived is not None:
                way = host[m.source], host[m.target]
                least[way] = min(m.arrived - m.sent, least.get(way, m.arrived - m.sent))
        return [(least[0, i] - least[i, 0]) // 2 if (0, i) in least and (i, 0) in least and i else 0
                for i in range(self.hosts)]

    def match(self):
        """Each send with its arrival: the number between two ranks is the same on both sides."""
        ranks = {p.rank: p for p in self.processes if p.rank >= 0}
        found = {}
        for p in ranks.values():
            for (peer, number), (t, tag, size, how, by) in p.sends.items():
                m = found[p.rank, peer, number] = Message(p.rank, peer, tag, size, how)
                m.sent, m.by = t, by
        for p in ranks.values():
            over = {}
            for (peer, _), (numbers, ends) in p.fetched.items():
                over.update({(peer, n): t for n, t in zip(numbers, ends)})
            for (peer, number), (t, tag, size, how, taker) in p.arrivals.items():
                m = found.get((peer, p.rank, number))
                if not m:
                    m = found[peer, p.rank, number] = Message(peer, p.rank, tag, size, how)
                m.arrived, m.taker, m.over = t, taker, over.get((peer, number))
        return sorted(found.values(), key=lambda m: m.sent if m.sent is not None else m.arrived)

    def events(self):
        return sum(len(p.events) for p in self.processes)

    def lost(self):
        return sum(p.file.lost + sum(r.lost for r in p.file.rings) for p in self.processes)
