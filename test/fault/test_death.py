# SPDX-License-Identifier: BSD-3-Clause
"""A rank that waits for one that dies hears of it: the job ends with one line, or the call returns an error."""

import itertools
import os
import random
import signal
import sys

from lib import *

WHERE = ["recv", "probe", "ssend", "send", "bigsend", "bigrecv", "barrier", "allreduce", "waitall"]
POINT_TO_POINT = [w for w in WHERE if w not in ("barrier", "allreduce")]
HOW = {"kill": 137, "exit0": 1, "exit3": 3, "_exit0": 1, "_exit3": 3, "abort": 134, "segv": 139}
SAYS = {"kill": "SIGKILL", "exit0": "without MPI_Finalize", "exit3": "exit code 3", "_exit0": "without MPI_Finalize",
        "_exit3": "exit code 3", "abort": "SIGABRT", "segv": "SIGSEGV"}

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 20261121
print("seed", seed)
dice = random.Random(seed)
host = os.uname().nodename
RAILS = "rails tcp:127.0.0.2,tcp:127.0.0.3"
count = itertools.count(1)
calls = []


def start(number, how, where, handler, fabric):
    place = os.path.join(scratch, "d%d" % next(count))
    os.mkdir(place)
    name, value = ("WEFT_RAILS", fabric.split()[1]) if fabric == RAILS else ("WEFT_DRIVERS", fabric)
    job = Job(ranks(3, "victim", how, where, handler, number, place), {name: value})
    if not wait_for(os.path.join(place, "ready.1")):
        fail("%s does not start" % job.command)
    return job, place


def go(place):
    open(os.path.join(place, "go"), "w").close()


def default_handler(number, how, where, fabric):
    what = "%s in %s over %s" % (how, where, fabric)
    job, place = start(number, how, where, "fatal", fabric)
    go(place)
    result = job.wait()
    expect(what, result, HOW[how], 2 if how.startswith("exit") else 1, ["rank 1 on " + host, SAYS[how]])
    told = [x for x in result.lines if "rank 1 on" in x]
    if len(told) != 1:
        fail("%s: the cause is told in %d lines" % (what, len(told)), result.text())
    nobody_left(what, job.mark)


def errors_return(number, how, where, fabric):
    """The launcher would end the job: stopped, it leaves the survivors to what they notice themselves."""
    what = "%s in %s over %s, survivors" % (how, where, fabric)
    job, place = start(number, how, where, "return", fabric)
    stopped = job.launchers()
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    go(place)
    since = time.monotonic()
    for rank in (0, 2):
        if not wait_for(os.path.join(place, "ok.%d" % rank)):
            fail("%s: rank %d does not go on" % (what, rank))
            stacks()
    print("noticed in %.0f ms: %s" % ((time.monotonic() - since) * 1e3, what))
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)
    result = job.wait()
    expect(what, result, HOW[how], 4, ["rank 1 on " + host, SAYS[how]])
    nobody_left(what, job.mark)


def later(function, *args):
    calls.append((function, dice.randrange(1 << 30)) + args)


def kill_all(fabric):
    """All processes at once, mpiexec and its keeper too: none is left to clean up, and nothing needs it."""
    what = "all killed over %s" % fabric
    before = litter()
    job, place = start(dice.randrange(1 << 30), "kill", "barrier", "fatal", fabric)
    for pid in marked(job.mark):
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    job.wait()
    nobody_left(what)
    left = left_behind(before)
    if left:
        fail("%s: left behind: %s" % (what, left))


before = litter()
for fabric in FABRICS:
    for where in WHERE:
        later(default_handler, "kill", where, fabric)
    for how in HOW:
        later(default_handler, how, dice.choice(WHERE), fabric)
    for where in WHERE:
        later(errors_return, "kill", where, fabric)
    later(errors_return, dice.choice(["exit0", "_exit3", "abort"]), dice.choice(POINT_TO_POINT), fabric)
# Ranks that get ahead of it in shared memory.
for where in ("gather", "bcast"):
    later(default_handler, "kill", where, "self,shm")
    later(errors_return, "kill", where, "self,shm")
# Before it dies, it writes over the memory in which the others meet.
for i in range(3):
    later(errors_return, "kill", "meeting", "self,shm")
for where in dice.sample(POINT_TO_POINT, 2):
    later(errors_return, "kill", where, RAILS)
beside(calls)
for fabric in FABRICS:
    kill_all(fabric)
if litter() - before - {scratch}:
    print("beside us appeared:", litter() - before)
finish()
