# SPDX-License-Identifier: BSD-3-Clause
"""The benches: one line each.  A program in share/weft/bench and an entry here make a bench: `weft
bench NAME`, `weft bench list`, `weft bench paper` and the tests find it by themselves.  Which figures of the papers a bench remakes
stands in bench_papers.py."""

LINKS = ("shm", "tcp", "1g")
PEERS = ("mpich", "openmpi", "openmpi-tuned")


class Bench:
    """One question: its program, what it can run over, and how it is split into runs."""

    def __init__(self, source, asks, unit, links=LINKS, parts=((),), quick_parts=None, limit=None,
                 ranks=True, seconds=60, tuned=None, also_off=False, log=False, bars=False,
                 at=(2,), quick_at=None, peers=PEERS, alone=False, also=(), ult=None,
                 examples=False, argobots=None, x="", undrawn=(), names_rows=False, places=False, starts=False):
        self.source, self.asks, self.unit, self.links = source, asks, unit, links
        self.parts, self.quick_parts = parts, quick_parts or parts
        self.limit = limit or {}          # link -> arguments of the program `limit`
        self.ranks = ranks                # does --ranks mean something?
        self.at, self.quick_at = at, quick_at or at  # numbers of ranks without --ranks
        self.seconds = seconds            # one run that takes longer is ended
        self.tuned = tuned or {}          # link -> Open MPI's tuned mode
        self.also_off = also_off          # weft once more with background progress off
        self.log, self.bars = log, bars   # how --svg draws it; log: True, or the metrics so drawn
        self.x = x                        # what the cases are; or (axis, pattern) of the cases on it, a chart each
        self.undrawn = undrawn            # metrics that are no picture
        self.peers = peers                # the other MPIs that can be measured
        self.alone = alone                # one process without a launcher
        self.also = also                  # weft's program with other arguments: (name, arguments)
        self.ult = ult                    # arguments that --ult adds one more row with
        self.names_rows = names_rows      # the program holds several rows and names each in front
        self.argobots = argobots          # a program that asks Argobots the same, where it is installed
        self.places = places              # the program is told folders on several file systems (bench_places.py)
        self.starts = starts              # one process, which is told the launcher's command and runs it itself
        self.examples = examples          # several programs that print rows when called with --rows

    def log_of(self, metric):
        return self.log if isinstance(self.log, bool) else metric in self.log


YIELD = {link: ("mpi_yield_when_idle", "1") for link in LINKS}
THREAD = {link: ("btl_tcp_progress_thread", "1") for link in ("tcp", "1g")}
SIZE = "size of the message"
COLLECTIVES = ("barrier", "allreduce", "bcast", "reduce", "allgather", "alltoall", "allreduce-persistent", "bcast-persistent",
               "alltoall-persistent", "ring-partitioned")
BENCHES = {
    "latency": Bench("p2p/latency", "how long is a message under way?", "us, half of there and back",
                     limit={"shm": ["latency", "shm"], "tcp": ["latency", "socket"],
                            "1g": ["latency", "socket"]},
                     tuned=THREAD, also_off=True, log=True, x=SIZE),
    "bandwidth": Bench("p2p/bandwidth", "how many bytes pass in a second?", "MB/s, one direction",
                       limit={"tcp": ["bandwidth", "socket"], "1g": ["bandwidth", "socket"]},
                       tuned=THREAD, log=True, x=SIZE),
    "rate": Bench("p2p/rate", "how many small messages pass in a second?", "millions per second",
                  limit={"shm": ["rate", "shm"], "tcp": ["rate", "socket"], "1g": ["rate", "socket"]},
                  tuned=THREAD, bars=True),
    "flood": Bench("p2p/flood", "how soon are many messages sent to a receiver that waits, or computes?",
                   "us per message", links=("shm", "tcp"), ranks=False, seconds=120, tuned=THREAD, log=True, bars=True),
    "layout": Bench("p2p/layout", "what does it cost that a message's data have holes?",
                    "us, until the answer of one byte", ranks=False, log=True, bars=True),
    "match": Bench("p2p/match", "what does a message cost when N others lie in matching?",
                   "us, half of there and back; drained: per message", links=("shm", "tcp"),
                   parts=tuple((str(n),) for n in (1, 1000, 30000, 1000000)),
                   quick_parts=(("1",), ("1000",)), ranks=False, seconds=30, log=True,
                   x=(("other receives that are posted", r"(\d+) posted"),
                      ("other messages that are unexpected", r"(\d+) unexpected"),
                      ("messages that are taken out", r"(\d+) drained"))),
    "polling": Bench("p2p/polling", "what does a message cost where ranks poll instead of waiting, and cores are short?",
                     "us per hop round the ranks", links=("shm", "tcp"),
                     parts=tuple((k,) for k in ("recv", "test", "testany", "iprobe", "busy", "threads")),
                     quick_parts=(("recv",), ("test",), ("busy",)), at=(2, 4, 8), quick_at=(2, 4),
                     tuned=YIELD, log=True),
    "overlap": Bench("overlap/overlap", "do messages move while the program computes?",
                     "share of the transfer that was hidden",
                     limit={"tcp": ["overlap", "socket"], "1g": ["overlap", "socket"]},
                     ranks=False, tuned=THREAD, bars=True),
    "waiters": Bench("threads/waiters",
                     "what does a message cost when N threads wait, each for its own?",
                     "us, half of there and back",
                     parts=tuple((str(n),) for n in (1, 2, 16, 64, 512)),
                     quick_parts=(("2",), ("64",)), ranks=False, seconds=12, tuned=YIELD, log=True,
                     limit={link: ["waiters", "futex"] for link in LINKS},
                     x=(("receiving threads, one after the other", r"(\d+) round robin"),
                        ("receiving threads, in random order", r"(\d+) random")),
                     ult=("--ult",)),
    "pairs": Bench("threads/pairs",
                   "what does a message cost when N pairs of threads exchange one byte at once?",
                   "us, half of there and back of one pair",
                   parts=tuple((str(n),) for n in (1, 2, 4, 8, 16, 32, 64)),
                   quick_parts=(("1",), ("8",)), ranks=False, seconds=20, tuned=YIELD, log=True,
                   x=(("pairs of threads", r"(\d+) pairs"),)),
    "load": Bench("overlap/load",
                  "what does a message of 1 MiB cost beside N computing threads on each core?",
                  "us, half of there and back",
                  parts=tuple((str(n),) for n in (0, 1, 2, 4, 8)), quick_parts=(("0",), ("2",)),
                  ranks=False, seconds=40, tuned=THREAD, also_off=True, log=True,
                  limit={"shm": ["load", "shm"]},
                  x=(("computing threads on each core", r"(\d+) threads"),)),
    "offload": Bench("overlap/offload", "how long does the sender take for: start, compute, wait?",
                     "us; 20 us of computation up to 32 KiB, 100 us above; idle: a core is",
                     parts=((), ("idle",)), quick_parts=((),), ranks=False, tuned=THREAD,
                     also_off=True, log=True),
    "halo": Bench("overlap/halo", "how long is a step of threads that exchange borders and compute?",
                  "us per step; borders of 4 KiB, 105 us of computation per thread",
                  parts=(("2",), ("8",), ("unbound", "2"), ("unbound", "8"), ("idle", "2")),
                  quick_parts=(("2",),), ranks=False, seconds=30, tuned=YIELD, also_off=True,
                  bars=True),
    "idle": Bench("threads/idle", "what does it cost to wait a second for a message?",
                  "percent of a core", ranks=False, tuned=YIELD, bars=True),
    "coll": Bench("coll/coll", "how long does a collective take, also with more ranks than cores?",
                  "us per call", parts=tuple((k,) for k in COLLECTIVES),
                  quick_parts=(("barrier",), ("allreduce",)), links=("shm", "tcp"), at=(2, 4, 8, 16),
                  quick_at=(2, 4), tuned=YIELD, log=True),
    "hidden": Bench("coll/hidden", "do non-blocking collectives move while all ranks compute?",
                    "share of the collective that was hidden; limit: 1 MiB by a raw socket and a helper thread",
                    parts=tuple((k,) for k in ("iallreduce", "ialltoall", "ibcast")),
                    limit={"tcp": ["hidden", "socket"], "1g": ["hidden", "socket"]}, ranks=False, tuned=THREAD, bars=True),
    "rest": Bench("coll/rest", "how long is an exchange of ranks that have computed for a while?",
                  "us from the last arrival to the last return", parts=(("0",), ("100",), ("1000",), ("10000",), ("1000", "busy"), ("1000", "free")),
                  quick_parts=(("0",), ("1000",)), links=("shm", "tcp"), tuned=YIELD, log=True, bars=True),
    "event": Bench("calls/event", "what does an event of MPI_T cost the message that it tells of?",
                   "us, half of there and back; ns per event", links=("shm",), ranks=False, peers=(), bars=True),
    "continue": Bench("calls/continue", "how soon does a continuation's callback run?",
                      "ns after the completion on the same core; us from MPI_Send to the callback", links=("shm", "tcp"), ranks=False,
                      peers=(), bars=True),
    "session": Bench("calls/session", "what does a session cost after the first, and does it leave anything behind?",
                     "us; KiB that the process grows by", links=("shm",), at=(1, 2), quick_at=(2,), peers=("mpich",), bars=True),
    "fortran": Bench("calls/fortran", "what does a call by mpi_f08 or mpif.h cost beyond the same in C?",
                     "ns per call that goes nowhere; us, half of there and back", links=("shm",), ranks=False, peers=(), bars=True),
    "part": Bench("part/part", "what do partitioned messages cost, and do they hide behind the computation?",
                  "ns per MPI_Pready, millions of partitions per second, us to the end", ranks=False,
                  peers=("mpich",), log=True, bars=True),
    "spawn": Bench("dyn/spawn", "how long does it take to start a process, to part from it, and to meet another job?",
                   "ms (Open MPI over tcp alone)", links=("shm", "tcp"), peers=("openmpi",), seconds=180, parts=(("spawn",), ("connect",), ("many",)),
                   quick_parts=(("spawn",), ("connect",)), ranks=False, at=(1,), bars=True),
    "start": Bench("dyn/start", "what does it take to start ranks that do nothing, and to end them?",
                   "ms; cpu: of launcher and ranks together", links=("shm", "tcp"), at=(1, 8), starts=True, seconds=120, bars=True),
    "rma": Bench("rma/rma", "what does an access to the memory of a rank cost that waits, or computes?",
                 "us per access and flush", ranks=False, tuned=YIELD, log=True, bars=True),
    "epoch": Bench("rma/epoch", "what does it cost to open and close epochs of one-sided accesses, also with more ranks than cores?",
                   "us; lock: by the locks of all ranks", parts=(("lock",), ("fence",), ("pscw",)), links=("shm", "tcp"),
                   at=(2, 4, 8, 16), quick_at=(2, 8), tuned=YIELD, log=("time",)),
    "io": Bench("io/io", "what does MPI-IO cost beside the system's own calls, and does it hide behind computation?",
                "us per access of the slowest rank; records per second; share hidden", links=("shm", "tcp"), seconds=120,
                parts=tuple((k,) for k in ("contiguous", "strided", "subarray", "pointer", "many", "overlap")),
                at=(2, 4), quick_at=(2,), tuned=YIELD, names_rows=True, places=True, bars=True, log=("time", "rate")),
    "task": Bench("task/task", "what does a task cost, by where its queue hangs?",
                  "ns from create to done; beside it simpler schemes",
                  names_rows=True, links=("shm",), ranks=False,
                  peers=(), alone=True, bars=True, log=("time",), undrawn=("distance",)),
    "reaction": Bench("engine/reaction", "how soon is an event noticed while N threads per core compute?",
                      "us from the event to its function",
                      names_rows=True, links=("shm",), ranks=False, peers=(),
                      parts=(("auto",), ("scan",), ("block",), ("limit",)), alone=True, log=True,
                      x=(("computing threads on each core", r"(\d+) per core"),)),
    "quiet": Bench("engine/quiet", "what does doing nothing cost?", "wake-ups per second",
                   ranks=False, bars=True),
    "noise": Bench("engine/noise", "what does polling on idle cores cost loops and messages?",
                   "percent slower; us, half of there and back",
                   names_rows=True, links=("shm",), ranks=False, peers=(),
                   parts=(("nothing",), ("default",)) + tuple(("idle", str(us)) for us in (0, 1, 10, 100, 1000, 10000)) +
                   tuple(("timer", str(ms)) for ms in (1, 10, 100)),
                   quick_parts=(("nothing",), ("default",), ("idle", "100")),
                   x=(("period of the idle workers' polling, us", r"idle period (\d+) us"),
                      ("period of the watcher's polling, ms", r"timer period (\d+) ms"))),
    "strangers": Bench("p2p/strangers", "what do strangers who connect to a rank cost its messages?",
                       "us, half of there and back, 8 B; beside it the same connections elsewhere",
                       links=("shm", "tcp"), ranks=False, peers=(), log=True, bars=True,
                       parts=(("100",), ("1000",)), quick_parts=(("1000",),)),
    "progress": Bench("engine/progress", "how long does a send take while the receiver computes 50 ms?",
                      "ms", ranks=False, tuned=THREAD, also_off=True, log=True, x=SIZE),
    "overhead": Bench("engine/overhead", "what does the engine cost when there is nothing to hide?",
                      "us, half of there and back",
                      names_rows=True, ranks=False, peers=(), log=True, x=SIZE,
                      parts=(("explicit",), ("threads",), ("server",)),
                      quick_parts=(("explicit",), ("threads",)),
                      limit={"shm": ["latency", "shm"], "tcp": ["latency", "socket"],
                             "1g": ["latency", "socket"]}),
    "ult": Bench("threads/ult", "what does it cost to switch, create, block and wake a thread?",
                 "ns; for a million threads s and KiB", links=("shm",), ranks=False, peers=(),
                 parts=(("switch", "create", "wake", "wake2", "mutex", "random", "switch-many", "limit"),
                        ("million-on-1",), ("million",)),
                 quick_parts=(("switch", "create", "wake", "wake2", "mutex", "limit"), ("million-on-1",)),
                 alone=True, also=(("pthreads", ("--pthreads",)),), log=True, bars=True,
                 argobots="threads/ult_argobots"),
    "million": Bench("threads/million",
                     "what does a message cost when up to a million threads wait?",
                     "us half of there and back; messages per second, KiB for each, s", ranks=False,
                     links=("shm", "tcp"), also=(("weft, pthreads", ("--pthreads",)),),
                     parts=tuple((str(n),) for n in (1000, 10000, 100000, 1000000)),
                     quick_parts=(("1000",), ("10000",)), log=True, seconds=90,
                     x=(("threads that wait", r"(\d+) threads"),)),
    "apps": Bench("../examples/ult/",
                  "how long do programs with many threads that wait for messages take?",
                  "ms; the search: million edges per second", links=("shm", "tcp"), ranks=False,
                  peers=(), examples=True, also=(("pthreads", ("--pthreads",)),), log=True, bars=True,
                  parts=(("stencil", "--side", "1024", "--block", "16"),
                         ("stencil", "--side", "2048", "--block", "64"),
                         ("bfs", "--scale", "16", "--threads", "64", "--searches", "8"),
                         ("bfs", "--scale", "16", "--threads", "512", "--searches", "8"),
                         ("uts", "--tree", "1"), ("uts", "--tree", "3")),
                  quick_parts=(("stencil", "--side", "256"), ("bfs",), ("uts",))),
}
