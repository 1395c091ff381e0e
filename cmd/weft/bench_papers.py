# SPDX-License-Identifier: BSD-3-Clause
"""What the papers measured, figure by figure, and which bench asks the same question here.

RenPar 2008   PIOMan, a manager of input and output, for NewMadeleine and Marcel
CAC 2008      a multithreaded communication engine for multicore architectures
2009          a scalable and generic task scheduling system for communication libraries (Cluster)
2015          pioman: a pthread-based multithreaded communication engine (PDP)
2016          toward million communicating threads

Their machines are not ours: the shape of a curve compares, a microsecond does not.
"""

import re


class Figure:
    """A figure or table: where it is, the benches that remake it, what it says."""

    def __init__(self, where, asks, benches, says, head=(), rows=()):
        self.where, self.asks, self.benches, self.says = where, asks, benches, says
        self.head, self.rows = head, rows  # their numbers, where the text or a table gives them


FIGURES = (
    Figure("2009, tables I and II", "what does an empty task cost, by the queue it is put into?",
           ("task",),
           "Created and waited for on core 0, 4 x 2 cores (Opteron 8218) and 4 x 4 cores (8347HE). "
           "Local submission and scheduling is about 700 ns; one queue for the whole machine "
           "suffers from its lock.",
           ("queue", "4 x 2 cores, ns", "4 x 4 cores, ns"),
           (("core 0", "770", "723"), ("other cores", "788 to 1,819", "697 to 1,867"),
            ("per chip", "1,059 to 1,199", "1,905 to 5,216"),
            ("whole machine", "4,720 (8 cores)", "13,585 (16 cores)"))),
    Figure("2015, section IV-B", "what does it cost to submit where another core polls?", ("task",),
           "A lock held while tasks run, and a lock-free ring from which each poll is taken and put back, "
           "were both tried and rejected: who submits and who polls fight for the same words. Taken: a "
           "queue for submissions beside the one under a lock, and the lock only tried."),
    Figure("2009, figure 4; 2015, figure 10", "latency of one sender and N receiving threads",
           ("waiters",),
           "4 bytes (2009) and 1 byte (2015) over InfiniBand: nearly constant in N with PIOMan, "
           "beyond the number of cores too; MVAPICH2 grows linearly; Open MPI could not run it."),
    Figure("2009, figures 5 to 7; 2015, figures 7 and 8",
           "overlap: computing on the sender's side, the receiver's, both", ("overlap",),
           "Ratio T_comp / T_total for 32 KB, 1 MB (2009) and 4 MB (2015): reaches 1 as soon as the "
           "computation is as long as the transfer, on every side. Open MPI overlaps with the "
           "computation on the sender's side only, MVAPICH2 not at all."),
    Figure("2015, figure 9", "send time against the message's size, computing on both sides",
           ("overlap", "offload"),
           "The longer of computation and transfer, from 100 us of computation on; the others take "
           "the sum."),
    Figure("2015, figure 11", "N pairs of threads, 1 byte", ("pairs",),
           "Linear in N; a smaller slope than MVAPICH2, because messages of several threads "
           "travel in one packet."),
    Figure("2015, figure 12", "latency of 1 MB beside N computing threads", ("load",),
           "Median constant in N, as MVAPICH2's; Open MPI's grows linearly beyond 16 threads on 32 "
           "cores.",
           ("", "maximum"), (("PIOMan", "< 20 ms, always"), ("Open MPI", "unbounded"))),
    Figure("2015, figures 2 to 4", "what does polling on idle cores cost the others?",
           ("noise", "quiet", "nas"),
           "Latency and NAS EP while idle threads poll every 0 to 10,000 us.",
           ("", "effect"),
           (("latency, period from 10 us on", "negligible"),
            ("NAS EP, period 0 to 1,000 us", "< 0.5 % between all"),
            ("timer thread, 1 to 100 ms", "none to be seen"))),
    Figure("2015, figures 5 and 6; RenPar 2008, table 2",
           "what does the engine cost when nothing is to be hidden?", ("latency", "overhead", "nas"),
           "Latency without other threads, and NAS.",
           ("", "latency", "over the bare library"),
           (("RenPar: bare NewMadeleine, 4 bytes", "3.00 us", ""),
            ("RenPar: PIOMan, polling", "3.80 us", "+0.8 us"),
            ("RenPar: PIOMan, blocking call", "4.59 us", "+1.6 us"),
            ("2015: no threads", "", "+100 ns"),
            ("2015: threads, median", "", "+100 to 200 ns more"), ("2015: NAS", "", "< 2 %"))),
    Figure("RenPar 2008, figure 2", "reaction time with N computing threads per core",
           ("reaction",),
           "Exchange of 4 bytes over TCP. Without the engine the time grows with N; by polling it "
           "is half a time slice; by a blocking call it stays near that of an idle machine."),
    Figure("RenPar 2008, figure 3 (program: table 1)",
           "time to send while the receiver computes 50 ms", ("progress",),
           "Above the rendezvous threshold.",
           ("", "send time"),
           (("bare NewMadeleine", "the 50 ms"), ("PIOMan, polling", "at most 10 ms, a clock tick"),
            ("PIOMan, blocking call", "not delayed"))),
    Figure("CAC 2008, figures 5 and 6", "isend, compute 20 us (small) or 100 us (large), wait",
           ("offload",),
           "Measured time is the longer of computation and transfer; without offloading it is the "
           "sum.",
           ("", "overhead"), (("where both are equal, small messages", "2 us"),)),
    Figure("CAC 2008, table 1", "convolution with an exchange of borders, 2 nodes", ("halo",),
           "Time of a step.",
           ("", "4 threads", "16 threads"),
           (("no offloading", "441 us", "1,183 us"), ("offloading", "382 us", "1,031 us"),
            ("gain", "14 %", "13 %"))),
    Figure("2016, section 4.1", "the thread scheduler: switch, signal, many threads", ("ult",),
           "The paper's own experiments were not published; the text gives these.",
           ("", "claim"),
           (("switch of threads", "< 100 cycles"), ("signal a thread", "1 instruction"),
            ("threads per worker", "262,144"))),
    Figure("2016, sections 4.2 and 4.3", "matching and the packets that wait in it", ("match",),
           "The hash table alone and within a receive; unexpected messages take packets of the pool.",
           ("", "claim"), (("match a message", "1 cache miss"),)),
    Figure("2016, section 4.4, figure 3", "latency over the raw driver", ("latency",),
           "Row limit: the bare link, on which nothing is matched."),
    Figure("2016, section 4.4, figures 4 and 5",
           "ping-pong and rate with one thread and with many", ("waiters", "rate"),
           "Threads that wait each for its own message; pairs of ranks or threads that send."),
    Figure("2016, section 4.5", "applications on threads that block", ("apps",),
           "The section is empty in the paper."),
    Figure("2016", "a million threads that communicate", ("million",),
           "What its title asks for."),
)


def figures_of(bench):
    """Where the papers have what this bench measures."""
    return "; ".join(f.where for f in FIGURES if bench in f.benches) or "none"


def benches_of(word):
    """What remakes a paper or a section of it, in the order of its figures: 2016, 4.4."""
    return list(dict.fromkeys(b for f in FIGURES if word in re.split("[ ,;]+", f.where) for b in f.benches))
