# SPDX-License-Identifier: BSD-3-Clause
"""Time goes wrong: the clock of day jumps, ranks have clocks of their own, the whole job is frozen, a neighbour with
real-time priority takes a core: results are the same, and no rank is taken for dead."""

import os
import shutil
import signal
import subprocess
import sys
import time

from lib import *

ROUNDS = 30
FROZEN_S = 120 if os.environ.get("WEFT_LONG") else 3
SHIM = os.path.join(PROGRAMS, "libfault_shim.so")
NEIGHBOUR = """
import os, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
print("ready", flush=True)
while os.getppid() == %d:
    end = time.monotonic() + 0.045
    while time.monotonic() < end:
        pass
    time.sleep(0.005)  # the kernel's own limit for such threads may be off
"""
# Shorter than the freeze: a count of time in which no rank runs would give peers up.  The kernel acknowledges,
# whichever process has a core, so a busy machine does not matter.
HASTE = {} if os.environ.get("WEFT_LONG") else {"WEFT_TCP_SILENCE": "2"}

wanted = run(ranks(2, "traffic", "plain", ROUNDS))
expect("plain", wanted, 0)


def same(what, result, sum_of=wanted):
    if not expect(what, result, 0):
        return
    if result.lines:
        fail("%s: it complains" % what, result.text())
    if result.out != sum_of.out:
        fail("%s: %s, want %s" % (what, result.out.strip(), sum_of.out.strip()))


# ---- clocks

for fabric in FABRICS:
    jumps = [MPIEXEC, "-n", "2", "env", "LD_PRELOAD=" + SHIM, "FAULT_CLOCK=3600", program("traffic"), "plain", str(ROUNDS)]
    same("the clock of day jumps, " + fabric, run(jumps, {"WEFT_DRIVERS": fabric}))
apart = ["unshare", "--time", "--monotonic", "86400", "--boottime", "86400"]
if shutil.which("unshare") and subprocess.run(apart + ["true"], stderr=subprocess.DEVNULL).returncode == 0:
    inside = '[ $PMI_RANK = 1 ] && exec %s "$@"; exec "$@"' % " ".join(apart)
    for fabric in FABRICS:
        same("clocks a day apart, " + fabric,
             run([MPIEXEC, "-n", "2", "sh", "-c", inside, "sh"] + ranks(2, "traffic", "plain", ROUNDS)[3:],
                 {"WEFT_DRIVERS": fabric}))
else:
    print("not tried here: time namespaces")

# ---- a neighbour

if os.geteuid() == 0:
    neighbour = subprocess.Popen([sys.executable, "-c", NEIGHBOUR % os.getpid()], stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL, text=True)
    if neighbour.stdout.readline().strip() == "ready":
        for fabric in FABRICS:
            same("beside a real-time neighbour, " + fabric, run(ranks(2, "traffic", "plain", ROUNDS),
                                                               {"WEFT_DRIVERS": fabric}))
    else:
        print("not tried here: SCHED_FIFO")
    neighbour.kill()
    neighbour.wait()
else:
    print("not tried here: a real-time neighbour, which only root may start")

# ---- frozen


class Freezer:
    """A control group of our own, either version; without one, SIGSTOP for each process."""

    def __init__(self, name):
        self.path = self.pids = None
        for top, key in (("/sys/fs/cgroup/freezer", "freezer.state"), ("/sys/fs/cgroup", "cgroup.freeze")):
            path = os.path.join(top, "weft-%s-%s" % (mark, name))
            try:
                os.mkdir(path)
            except OSError:
                continue
            if os.path.exists(os.path.join(path, key)):
                self.path, self.key, self.words = path, key, ("FROZEN", "THAWED") if "state" in key else ("1", "0")
                return
            os.rmdir(path)

    def enter(self):
        """In the child, before it starts."""
        if self.path:
            with open(os.path.join(self.path, "cgroup.procs"), "w") as f:
                f.write("0")

    def set(self, pids, frozen):
        if not self.path:
            for p in pids:
                os.kill(p, signal.SIGSTOP if frozen else signal.SIGCONT)
            return
        with open(os.path.join(self.path, self.key), "w") as f:
            f.write(self.words[not frozen])

    def close(self):
        if self.path:
            os.rmdir(self.path)


jobs = []
for fabric in FABRICS:
    freezer = Freezer(fabric.replace(",", "-"))
    place = os.path.join(scratch, "frozen-" + fabric.replace(",", "-"))
    os.mkdir(place)
    job = Job(ranks(2, "traffic", "stopped", 200, place), dict(HASTE, WEFT_DRIVERS=fabric), freezer.enter)
    if not all(wait_for(os.path.join(place, "pid.%d" % r)) for r in (0, 1)):
        fail("%s does not start" % job.command)
    pids = [job.process.pid] + [int(open(os.path.join(place, "pid.%d" % r)).read()) for r in (0, 1)]
    freezer.set(pids, True)
    jobs.append((fabric, job, freezer, pids))
print("frozen by", "control group" if jobs[0][2].path else "SIGSTOP")
time.sleep(FROZEN_S)
sums = []
for fabric, job, freezer, pids in jobs:
    freezer.set(pids, False)
for fabric, job, freezer, pids in jobs:
    result = job.wait()
    same("frozen for %d s, %s" % (FROZEN_S, fabric), result, result)
    sums.append(result.out)
nobody_left("after the freezer")
for _, _, freezer, _ in jobs:
    freezer.close()
if len(set(sums)) != 1:
    fail("frozen jobs: different results: %s" % sums)
finish()
